"""Mutated config files, recipes and transcripts: each is used, or refused in a line."""

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from harness import ODD, Case, main, mutate_bytes, mutate_json

from models import originals

CONFIG = b"""temperature = 0.5
top_p = 0.9
top-k = 40
stop = ["a", "b"]
seed = 3
theme = "dark"
color = true
max_tokens = 5
engine = "native"
"""


def mutate_toml(random: random.Random, data: bytes) -> bytes:
    """Return TOML with one to three values replaced, keys changed, or bytes mutated."""
    if random.random() < 0.3:
        return mutate_bytes(random, data)
    lines = data.decode().splitlines()
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(lines))
        key, equals, value = lines[at].partition(" = ")
        if not equals:
            continue
        match random.choice(("value", "value", "value", "key", "twice", "table", "nest")):
            case "value":
                value = random.choice((*ODD, "inf", "nan", "1979-05-27", "0x" + "f" * 40, '"""', "'''\n'''"))
            case "key":
                key = random.choice(("", "x", key + "s", '"\\u001b[31m"', key.replace("_", "-"), "a" + ".a" * 20_000))
            case "twice":
                value = f"{value}\n{key} = {value}"
            case "table":
                key = f"[{key}]\n{key}"
            case "nest":
                value = "[" * 5_000 + value
        lines[at] = f"{key} = {value}"
    return ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass")


def read_transcript(arguments: list[str]) -> int:
    """Open the transcript that the arguments name, and complete its name."""
    from tinychat.commands.conversation import complete_transcripts
    from tinychat.errors import TinychatError
    from tinychat.session.transcript import read_transcript

    list(complete_transcripts(None, [""]))  # type: ignore[arg-type]
    try:
        conversation = read_transcript(Path(arguments[0]))
        for turn in conversation.all:
            json.dumps([turn.prompt, turn.answer], ensure_ascii=False).encode()
    except TinychatError as error:
        import sys

        sys.stderr.write(f"tinychat: {error}\n")
        return 1
    return 0


@cache
def transcript() -> dict[str, Any]:
    """Return the content of a transcript with a branch."""
    turn = {"prompt": "hello", "answer": "hi there", "model": "a", "seed": 3, "finish_reason": "end", "settings": {}}
    turns = [turn | {"number": 1, "parent": None}, turn | {"number": 2, "parent": 1}]
    return {"format": 1, "model": "a", "settings": {}, "turns": turns, "branches": [turn | {"number": 3, "parent": 1}]}


def cases(random: random.Random, folder: Path) -> Iterator[Case]:
    """Yield calls with one mutated config file, one recipe and one transcript."""
    home = folder / "home"
    (home / "transcripts").mkdir(parents=True)
    (home / "config.toml").write_bytes(mutate_toml(random, CONFIG))
    yield Case("config", ["config"], folder)
    yield Case("config", ["-m", str(originals()[0]), "-p", "hello"], folder)
    (home / "config.toml").unlink()

    from tinychat.train.recipe import load_recipe

    recipe = folder / "mine.toml"
    recipe.write_bytes(mutate_toml(random, load_recipe().to_toml().encode()))
    yield Case("recipe", ["recipes", str(recipe)], folder)
    yield Case("recipe", ["recipes", str(recipe), "--toml"], folder)

    saved = home / "transcripts" / "2026-01-01-000000.json"
    saved.write_bytes(mutate_json(random, transcript()))
    yield Case("transcript", [str(saved)], folder, run=read_transcript)
    log = saved.with_suffix(".jsonl")
    turns = [turn for part in ("turns", "branches") for turn in transcript()[part]]
    lines = [json.dumps(turn).encode() for turn in turns]
    lines[random.randrange(len(lines))] = mutate_json(random, random.choice(turns))
    log.write_bytes(b"".join(line + b"\n" for line in lines))
    yield Case("log", [str(log)], folder, run=read_transcript)


if __name__ == "__main__":
    main(cases)
