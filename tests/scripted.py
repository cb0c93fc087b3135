"""A model without weights, and an engine that says what its prompt asks for: the REPL and its commands without torch.

Run as a program, it is `tinychat` on that engine. `TINYCHAT_TEST_DELAY` is the seconds that each token takes,
`TINYCHAT_TEST_LOADING` those that the model takes to load; with `TINYCHAT_TEST_TORCH` models are loaded in earnest.
"""

import functools
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import tokenizers

from tinychat.commands import COMMANDS
from tinychat.commands.results import Answer, Result
from tinychat.config.settings import Settings
from tinychat.errors import GenerationError
from tinychat.events import Token
from tinychat.generate.engine import Engine, Head, Request, SampledToken, TokenProbability
from tinychat.session.session import Session
from tinychat.store.models import ModelInfo, read_tokenizer
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

SPECIALS = ["<|end|>", "<|user|>", "<|assistant|>"]


@functools.cache
def vocabulary() -> tokenizers.Tokenizer:
    """Learned once for all tests."""
    return train_vocabulary("wordpiece", ["you said hello there 你好 0123456789 " * 9], 300, SPECIALS)


def make_model(folder: Path, name: str = "parrot", mode: str = "chat") -> Path:
    """A model's folder, without weights."""
    folder = folder / name
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(vocabulary())
    tokenizer.save(folder / "tokenizer.json")
    config = {
        "format": 1, "name": name, "mode": mode, "about": "repeats what it hears", "tokenizer": "wordpiece",
        "parameters": 3_400_000, "template": ChatTemplate().to_dict() if mode == "chat" else None, "settings": {},
        "architecture": {"vocab_size": tokenizer.vocab_size, "context_length": 512},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


class Scripted:
    """Says what its prompt asks for.

    `count`, `lines` and `flood` go on without end, `flood` at any speed; `temp` tells the temperature of each token,
    `fail` and `bug` end in errors, `escape` is a control sequence, `wide` is wide characters; all else is repeated.
    """

    context_length, batch_size = 512, 8
    about = "scripted engine"

    def __init__(self, tokenizer: Tokenizer, delay: float = 0.0) -> None:
        self.tokenizer, self.delay = tokenizer, delay

    def reload(self, info: ModelInfo) -> None:
        """There are no weights."""

    def extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = math.inf
    ) -> list[list[SampledToken]]:
        end = time.perf_counter() + seconds
        return [list(self._one(request, 1 if self.delay else n, top_logprobs, end)) for request in requests]

    def probabilities(self, request: Request) -> list[TokenProbability]:
        """Half for what it says, half of the rest for each other; the last token of the vocabulary is cut."""
        (drawn,) = next(iter(self.extend([request], 1, self.tokenizer.vocab_size)))
        last = drawn.top_logprobs[-1][0]
        return [
            TokenProbability(id, logprob, 0.0 if id == last else math.exp(logprob))
            for id, logprob in drawn.top_logprobs
        ]

    def score(self, ids: Sequence[int]) -> list[float]:
        """Every second token is certain, every other one in four."""
        return [math.log(0.25) * (position % 2) for position in range(len(ids) - 1)]

    def entropies(self, ids: Sequence[int]) -> list[float]:
        """One bit everywhere, but two at every third token."""
        return [math.log(2) * (1 + (position % 3 == 2)) for position in range(len(ids) - 1)]

    def heads(self, *_: object, **__: object) -> list[list[Head]]:
        raise GenerationError("it has no layers to look into", "open a model that has")

    attention = lens = heads

    def _one(self, request: Request, n: int, top_logprobs: int, end: float) -> Iterator[SampledToken]:
        for made in range(request.num_generated, request.num_generated + n):
            time.sleep(self.delay)
            ids = self._answer(self._asked(request), request.settings, made)
            chosen = ids[made % len(ids)]
            others = (chosen, *(id for id in range(top_logprobs) if id != chosen))
            tops = tuple((id, math.log(0.5) * (rank + 1)) for rank, id in enumerate(others[:top_logprobs]))
            yield SampledToken(chosen, math.log(0.5), tops)
            if chosen in request.end_ids or time.perf_counter() >= end:
                return

    def _asked(self, request: Request) -> str:
        """The newest prompt: in a chat what stands between the last marks of user and end, else everything."""
        ids = request.ids[: len(request.ids) - request.num_generated]
        user, end = self.tokenizer.special("user"), self.tokenizer.special("end")
        assert user is not None
        assert end is not None
        if user in ids:
            ids = ids[len(ids) - ids[::-1].index(user) :]
            ids = ids[: ids.index(end)]
        return self.tokenizer.decode([id for id in ids if id != end])

    def _answer(self, asked: str, settings: Settings, made: int) -> list[int]:
        match asked:
            case "fail":
                raise GenerationError("the model gave NaN or infinite logits", "train it again")
            case "bug":
                raise ValueError("a bug")
            case "count":
                text = " ".join(map(str, range(made + 2)))
            case "flood":  # over and over
                return self.tokenizer.encode(" hello there")
            case "lines":
                text = "".join(f"line {number}\n" for number in range(made + 2))
            case "temp":
                text = f"<{settings.temperature:g}>" * (made + 1)
            case "escape":
                text = "a\x1b[31mred\x07 b\tc"
            case "wide":
                text = "你好" * 60
            case _:
                text = f"you said: {asked}"
        end = self.tokenizer.special("end")
        assert end is not None
        return [*self.tokenizer.encode(text), *[end] * (made + 1)]


class Talk:
    """A session, and what to do with it in one word."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def ask(self, prompt: str) -> str:
        """Answers a prompt."""
        list(self.session.answer(prompt))
        return self.session.turns[-1].answer

    def do(self, line: str) -> Result:
        """Runs a command."""
        return COMMANDS.dispatch(self.session, line)

    def offered(self, name: str, *words: str) -> dict[str, str]:
        """What may stand behind a command's name, the last word being typed, and what it is."""
        return {one.text: one.about for one in COMMANDS[name].complete(self.session, list(words))}

    def said(self, line: str) -> str:
        """Runs a command that lets the model speak."""
        result = self.do(line)
        assert isinstance(result, Answer)
        return "".join(record.text for record in result.start(lambda: False) if isinstance(record, Token))


def open_scripted(info: ModelInfo, settings: Settings) -> Engine:
    """What stands for `open_engine`."""
    time.sleep(float(os.environ.get("TINYCHAT_TEST_LOADING", "0")))
    return Scripted(read_tokenizer(info.folder), float(os.environ.get("TINYCHAT_TEST_DELAY", "0")))


def main() -> int:
    import tinychat.generate.loading
    from tinychat.cli.options import make_session
    from tinychat.repl.app import run

    if "TINYCHAT_TEST_TORCH" not in os.environ:
        tinychat.generate.loading.open_engine = open_scripted
    session = make_session({"model": sys.argv[1]})
    try:
        return run(session)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
