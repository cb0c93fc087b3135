"""Files, JSON and TOML of others: what is read, and what is refused at once."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat import untrusted


def make_special(folder: Path, kind: str) -> Path:
    """Return a path that is no regular file."""
    path = folder / "special"
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    elif kind == "a folder":
        path.mkdir()
    else:
        path = {"a device": Path("/dev/zero"), "a file of the kernel": Path("/proc/kmsg")}[kind]
    return path


@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a folder", "a device", "a file of the kernel"])
def test_only_regular_files_are_opened(tmp_path: Path, kind: str) -> None:
    path = make_special(tmp_path, kind)
    if not path.exists():
        pytest.skip(f"there is no {path} here")
    assert untrusted.why_not_regular(path) == kind
    with pytest.raises(OSError, match=f"it is {kind}, not a file"):
        untrusted.open_regular(path)


def test_a_link_to_a_pipe_is_a_pipe_and_a_loop_of_links_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    assert untrusted.why_not_regular(tmp_path / "link") == "a named pipe"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        untrusted.open_regular(tmp_path / "loop")


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfabc")
    assert untrusted.read_text(path) == "abc"
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        untrusted.read_bytes(path, 5)
    with untrusted.open_regular(path) as file:
        assert untrusted.read_text(file) == untrusted.read_text(file) == "abc"
    path.write_bytes(b"ab\xff")
    with pytest.raises(ValueError, match="not UTF-8: byte 2 is 0xff"):
        untrusted.read_text(path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested more than 64 deep"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested more than 64 deep"),
        ('{"a": 1, "b": 2, "a": 3}', "the key 'a' twice"),
        ("[1e999]", "the number 1e999 is too large"),
        ("1" * 5_000, "of 5,000 digits does not fit in 64 bits"),
        (str(2**63), "does not fit in 64 bits"),
        ("[Infinity]", "Infinity is no number"),
        ("[NaN]", "NaN is no number"),
        ("{", "no JSON at column 2: it ends there"),
        ("", "no JSON at column 1: it ends there"),
        ("hello there", "no JSON at column 1: 'hello there'"),
        ('{"a": 1,\n"b" 2}\n', "no JSON at line 2, column 5: '2}'"),
    ],
)
def test_json_that_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        untrusted.parse_json(text)


def test_a_key_that_is_there_twice_is_found_at_once_among_many() -> None:
    keys = [*range(50_000), 49_999]
    began = time.process_time()
    with pytest.raises(ValueError, match="the key '49999' twice"):
        untrusted.parse_json("{" + ", ".join(f'"{key}": 0' for key in keys) + "}")
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 50_000, "a = " + "1" * 5_000, "a = ", "a = 1\na = 2", "a" + ".a" * 50_000 + " = 1"]
)
def test_toml_that_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        untrusted.parse_toml(text)


@pytest.mark.parametrize(
    "text",
    [
        "x = {" + "a." * 50_000 + "a = 1}",
        "a = 1\n" + '."\u2028".'.join("a" * 5_000) + " = 1",
        "[" + "a." * 900 + "a]\n" + "\n".join(f"b{number} = 1" for number in range(50_000)),
        'x = ["""\n\'""""", {' + "a . 'a' . " * 5_000 + "a = 1}]",
        ("a." * 63 + "a ") * 10_000 + "." + "a." * 64 + "a",
    ],
)
def test_a_key_of_toml_with_too_many_dots_is_refused_at_once(text: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match="too many dots"):
        untrusted.parse_toml(text)
    assert time.process_time() - began < 1


def test_dots_outside_the_keys_of_toml_do_not_count() -> None:
    dots = "a." * 5_000
    assert untrusted.parse_toml(f'x = \'{dots}\'\ny = "{dots}" # {dots}\nz = """\n{dots}"""\n') == {
        "x": dots,
        "y": dots,
        "z": dots,
    }
    assert untrusted.parse_toml("[" + ".".join("a" * 64) + "]\n")


def test_toml_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = [1, 2]\n[b]\nc = 'x'\n", encoding="utf-8")
    assert untrusted.read_toml(tmp_path / "a.toml") == {"a": [1, 2], "b": {"c": "x"}}


def test_brackets_in_strings_are_not_nesting() -> None:
    text = '["' + "[" * 1_000 + '\\"", "{"]'
    assert untrusted.parse_json(text) == json.loads(text)


NESTED = st.recursive(
    st.none() | st.text(st.sampled_from('a[]{}"\\\n')),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@pytest.mark.slow
@given(NESTED, st.booleans(), st.integers(0, 4))
def test_the_depth_of_json_is_found_without_parsing_it(values: object, ascii: bool, limit: int) -> None:
    text = json.dumps(values, ensure_ascii=ascii)
    assert untrusted.is_nested(text, limit) == (depth(values) > limit)


def test_whole_numbers_that_are_too_large_may_be_clamped() -> None:
    values = untrusted.parse_json(f"[1{'0' * 30}, -1{'0' * 5_000}, 7, {2**63 - 1}]", clamps=True)
    assert values == [2**63 - 1, 1 - 2**63, 7, 2**63 - 1]
    with pytest.raises(ValueError, match="too large"):
        untrusted.parse_json("[1e999]", clamps=True)


def test_lone_surrogates_become_text() -> None:
    values = untrusted.parse_json('{"\\ud800": ["a\\udfff", "\\ud83d\\ude00", 1]}')
    assert values == {"�": ["a�", "😀", 1]}
    assert untrusted.parse_json('"\ud800"') == "�"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_what_is_valid_is_what_the_standard_library_reads(values: object, ascii: bool) -> None:
    text = json.dumps(values, ensure_ascii=ascii)
    assert untrusted.parse_json(text) == json.loads(text)


def test_a_process_of_ours_imports_nothing_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("json", "click", "tinychat"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(99)")
    command, environment = untrusted.call_module("tinychat", "--version")
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=True, text=True)
    assert done.stdout.startswith("tinychat ")


def test_a_tilde_is_the_home_folder_or_that_of_a_user_who_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert untrusted.expand_home("~/a.txt") == Path("/home/me/a.txt")
    assert untrusted.expand_home("~no such user/a.txt") == Path("~no such user/a.txt")
