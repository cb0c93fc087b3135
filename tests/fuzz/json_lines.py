"""Mutated lines of JSON in a pipe: each is answered or gets an error in its place, and all others are answered."""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import Case, Outcome, main, mutate_json

from models import ENGINES, originals

LINES = 40
GOOD: tuple[Any, ...] = (
    "hello",
    {"prompt": "hello", "id": 7},
    {"prompt": "how", "temperature": 0.5, "top_k": 3, "top_p": 0.9, "min_p": 0.1, "repetition_penalty": 1.2},
    {"prompt": "you", "greedy": True, "max_tokens": 3, "stop": ["a", "b"]},
    {
        "prompt": "you",
        "ban": ["a", "B c", "\n"],
        "boost": ["d 2", "e f -3"],
        "dry_multiplier": 0.8,
        "no_repeat_ngram": 3,
    },
    {"prompt": "", "ban": "a, e", "presence_penalty": 1, "frequency_penalty": -1, "dry_sequence_breakers": ["."]},
    {"prompt": "", "seed": 3, "id": {"a": [1, None]}},
    {"messages": [{"role": "system", "content": "be nice"}, {"role": "user", "content": "hello"}], "seed": 1},
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "prompt": "how"},
)


def cases(random: random.Random, folder: Path) -> Iterator[Case]:
    """Yield one pipe of good and mutated lines."""
    lines: list[bytes] = []
    good: list[int] = []
    for index in range(LINES):
        values = random.choice(GOOD)
        if random.random() < 0.5:
            good.append(index)
            lines.append(json.dumps(values).encode())
        else:
            line = mutate_json(random, values if isinstance(values, dict) else [values]).replace(b"\n", b" ")
            # An answer of thousands of tokens takes as long as it is asked to.
            lines.append(b"[]" if re.search(rb'max_tokens": *\d{3}', line) else line)
    model = random.choice(originals())
    engine = "torch" if model is originals()[-1] else random.choice(ENGINES)  # the native one knows no encoder
    options = ["--jsonl", "-n", "4", "--engine", engine]
    if random.random() < 0.3:
        options += ["--logprobs", "2"]
    if random.random() < 0.2 and not any(b"messages" in line for line in lines):
        options += ["--conversation"]
    call = ["-m", str(model), *options]
    yield Case(f"{model.name} {LINES} lines", call, folder, b"\n".join(lines) + b"\n", answers(lines, good))


def answers(lines: list[bytes], good: list[int]) -> Callable[[Outcome], str]:
    """Return a check that each line has one line of output, and the good ones a completion."""
    asked = [index for index, line in enumerate(lines) if line.decode("utf-8", "replace").strip()]

    def check(outcome: Outcome) -> str:
        out = outcome.out.splitlines()
        if len(out) != len(asked):
            return f"{len(asked)} lines got {len(out)} answers"
        for index, line in zip(asked, out, strict=True):
            values = json.loads(line)
            if "completion" not in values and ("error" not in values or index in good):
                return f"line {index + 1}, {lines[index][:80]!r}, got {line[:80]!r}"
        return ""

    return check


if __name__ == "__main__":
    main(cases)
