"""Functions that the kernel computes itself: near those of C libraries, and the same to the bit with any compiler."""

import ctypes
import math
import re
import subprocess
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from tinychat.generate.native.build import SOURCE, Unavailable, find_compiler

WRAPPERS = """
#include "portable_math.h"
double exp_of(double x) { return portable_exp(x); }
double log_of(double x) { return portable_log(x); }
double log1p_of(double x) { return portable_log1p(x); }
double erf_of(double x) { return portable_erf(x); }
double sine_of(double x) { double sine, cosine; portable_sine_cosine(x, &sine, &cosine); return sine; }
double cosine_of(double x) { double sine, cosine; portable_sine_cosine(x, &sine, &cosine); return cosine; }
"""
LIBRARY = r"\b(a?(?:sin|cos|tan)h?|exp2?|expm1|log(?:2|10|1p)?|pow|cbrt|erfc?|[lt]gamma|hypot)f?\("
"""Calls of functions of a C library that it may round as it likes."""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("portable")
    (folder / "wrappers.c").write_text(WRAPPERS)
    try:
        compiler = find_compiler().split()
    except Unavailable as error:
        pytest.skip(str(error))
    flags = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-ffp-contract=off", f"-I{SOURCE.parent}"]
    target = folder / "portable.so"
    subprocess.run([*compiler, *flags, str(folder / "wrappers.c"), "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    for name in re.findall(r"double (\w+)\(", WRAPPERS):
        getattr(library, name).restype, getattr(library, name).argtypes = ctypes.c_double, [ctypes.c_double]
    return library


def numbers(low: float, high: float, count: int = 2_000) -> list[float]:
    return list(map(float, np.random.default_rng(3).uniform(low, high, count)))


POSITIVE = [math.ldexp(1 + x, i % 200 - 100) for i, x in enumerate(numbers(0, 1))]


@pytest.mark.parametrize(
    ("name", "expected", "inputs", "relative", "absolute", "checksum"),
    [
        ("exp_of", math.exp, numbers(-708, 709), 4e-16, 0, 2826853353),
        ("log_of", math.log, POSITIVE, 6e-16, 0, 2197236044),
        ("log1p_of", math.log1p, [0.0, *POSITIVE], 8e-16, 0, 1738176275),
        ("erf_of", math.erf, numbers(-4, 4), 0, 2e-10, 1216640468),
        ("sine_of", math.sin, [*numbers(-5, 5), *numbers(0, 1e6)], 0, 4e-16, 222803866),
        ("cosine_of", math.cos, [*numbers(-5, 5), *numbers(0, 1e6)], 0, 4e-16, 3387287783),
    ],
)
def test_functions_are_accurate_and_the_same_everywhere(
    functions: ctypes.CDLL,
    name: str,
    expected: Callable[[float], float],
    inputs: list[float],
    relative: float,
    absolute: float,
    checksum: int,
) -> None:
    found, right = (np.array(list(map(function, inputs))) for function in (getattr(functions, name), expected))
    np.testing.assert_allclose(found, right, rtol=relative, atol=absolute)
    assert zlib.crc32(found.astype("<f8").tobytes()) == checksum


def test_numbers_beyond_their_ranges(functions: ctypes.CDLL) -> None:
    assert [functions.exp_of(x) for x in (-math.inf, -800, 0, 800, math.inf)] == [0, 0, 1, math.inf, math.inf]
    assert math.isnan(functions.exp_of(math.nan))
    assert [np.float32(functions.erf_of(x)) for x in (-math.inf, -5, 0, 4, math.inf)] == [-1, -1, 0, 1, 1]
    assert (functions.log_of(1), functions.log1p_of(0), functions.log1p_of(1e-30)) == (0, 0, 1e-30)


def test_the_kernel_calls_no_function_that_c_libraries_round_differently() -> None:
    assert re.findall(LIBRARY, "x = expf(1) + sin(2) + portable_exp(3) + log_of_sum(4)") == ["exp", "sin"]
    for path in SOURCE.parent.glob("*.[ch]"):
        assert re.findall(LIBRARY, path.read_text("utf-8")) == [], path.name
