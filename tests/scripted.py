"""A model without weights and an engine that follows scripts, to test the REPL and its commands without torch.

Run as a program, this is `tinychat` with that engine. The environment variable `TINYCHAT_TEST_DELAY` sets the seconds
per token, `TINYCHAT_TEST_LOADING` the seconds to load a model; `TINYCHAT_TEST_TORCH` selects the real engines.
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
from tinychat.commands.results import Result, StreamAnswer
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
    """Return the vocabulary of all scripted models, trained once."""
    return train_vocabulary("wordpiece", ["you said hello there 你好 0123456789 " * 9], 300, SPECIALS)


def make_model(folder: Path, name: str = "parrot", mode: str = "chat") -> Path:
    """Write a model folder without weights, and return it."""
    folder = folder / name
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(vocabulary())
    tokenizer.save(folder / "tokenizer.json")
    config = {
        "format": 1, "name": name, "mode": mode, "description": "repeats what it hears", "tokenizer": "wordpiece",
        "parameters": 3_400_000, "template": ChatTemplate().to_dict() if mode == "chat" else None, "settings": {},
        "architecture": {"vocab_size": tokenizer.vocab_size, "context_length": 512},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


class ScriptedEngine:
    """An engine whose answer depends on the prompt.

    `count`, `lines` and `flood` never end, and `flood` is fast at any length; `temp` prints the temperature of each
    token; `fail` and `bug` raise errors; `escape` prints a control sequence, `wide` wide characters. Any other prompt
    is repeated.
    """

    context_length, batch_size, can_steer = 512, 8, False
    about = "scripted engine"

    def __init__(self, tokenizer: Tokenizer, delay: float = 0.0) -> None:
        self.tokenizer, self.delay = tokenizer, delay

    def reload(self, info: ModelInfo) -> None:
        """Do nothing, since there are no weights."""

    def check(self, request: Request) -> None:
        """Take any request."""

    def extend(
        self, requests: Sequence[Request], n: int, top_logprobs: int = 0, seconds: float = math.inf
    ) -> list[list[SampledToken]]:
        end = time.perf_counter() + seconds
        return [list(self._one(request, 1 if self.delay else n, top_logprobs, end)) for request in requests]

    def probabilities(self, request: Request) -> list[TokenProbability]:
        """Return ½ for the scripted token, then ¼, ⅛, … for the others; the last one is cut by the settings."""
        (sampled,) = next(iter(self.extend([request], 1, self.tokenizer.vocab_size)))
        last = sampled.top_logprobs[-1][0]
        return [
            TokenProbability(id, logprob, 0.0 if id == last else math.exp(logprob))
            for id, logprob in sampled.top_logprobs
        ]

    def score(self, ids: Sequence[int]) -> list[float]:
        """Return log probabilities of 1 and ¼ in turn."""
        return [math.log(0.25) * (position % 2) for position in range(len(ids) - 1)]

    def entropies(self, ids: Sequence[int]) -> list[float]:
        """Return one bit (in nats), but two bits for every third token."""
        return [math.log(2) * (1 + (position % 3 == 2)) for position in range(len(ids) - 1)]

    def heads(self, *_: object, **__: object) -> list[list[Head]]:
        raise GenerationError("it has no layers to look into", "open a model that has")

    attention = lens = trace = heads

    def _one(self, request: Request, n: int, top_logprobs: int, end: float) -> Iterator[SampledToken]:
        for index in range(request.num_generated, request.num_generated + n):
            time.sleep(self.delay)
            ids = self._answer(self._prompt(request), request.settings, index)
            chosen = ids[index % len(ids)]
            others = (chosen, *(id for id in range(min(top_logprobs, self.tokenizer.vocab_size)) if id != chosen))
            tops = tuple((id, math.log(0.5) * (rank + 1)) for rank, id in enumerate(others[:top_logprobs]))
            yield SampledToken(chosen, math.log(0.5), tops)
            if chosen in request.end_ids or time.perf_counter() >= end:
                return

    def _prompt(self, request: Request) -> str:
        """Return the last prompt: in a chat the text between the last user and end tokens, otherwise all text."""
        ids = request.ids[: len(request.ids) - request.num_generated]
        user, end = self.tokenizer.special("user"), self.tokenizer.special("end")
        assert user is not None
        assert end is not None
        if user in ids:
            ids = ids[len(ids) - ids[::-1].index(user) :]
            ids = ids[: ids.index(end)]
        return self.tokenizer.decode([id for id in ids if id != end])

    def _answer(self, prompt: str, settings: Settings, index: int) -> list[int]:
        """Return the tokens of the answer, at least as far as the token at `index`."""
        match prompt:
            case "fail":
                raise GenerationError("the model gave NaN or infinite logits", "train it again")
            case "bug":
                raise ValueError("a bug")
            case "count":
                text = " ".join(map(str, range(index + 2)))
            case "flood":  # `_one` repeats these tokens
                return self.tokenizer.encode(" hello there")
            case "lines":
                text = "".join(f"line {number}\n" for number in range(index + 2))
            case "temp":
                text = f"<{settings.temperature:g}>" * (index + 1)
            case "escape":
                text = "a\x1b[31mred\x07 b\tc"
            case "wide":
                text = "你好" * 60
            case _:
                text = f"you said: {prompt}"
        end = self.tokenizer.special("end")
        assert end is not None
        return [*self.tokenizer.encode(text), *[end] * (index + 1)]


class Talk:
    """A session with shortcuts for tests."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def ask(self, prompt: str) -> str:
        """Answer a prompt, and return the answer."""
        list(self.session.answer(prompt))
        return self.session.turns[-1].answer

    def do(self, line: str) -> Result:
        """Run a command, and return its result."""
        return COMMANDS.dispatch(self.session, line)

    def completions(self, name: str, *words: str) -> dict[str, str]:
        """Return the completions of a command's last word, with their descriptions."""
        return {one.text: one.about for one in COMMANDS[name].complete(self.session, list(words))}

    def generate(self, line: str) -> str:
        """Run a command that generates text, and return the text."""
        result = self.do(line)
        assert isinstance(result, StreamAnswer)
        return "".join(record.text for record in result.start(lambda: False) if isinstance(record, Token))


def open_scripted(info: ModelInfo, settings: Settings) -> Engine:
    """Open a scripted engine; replaces `open_engine`."""
    time.sleep(float(os.environ.get("TINYCHAT_TEST_LOADING", "0")))
    return ScriptedEngine(read_tokenizer(info.folder), float(os.environ.get("TINYCHAT_TEST_DELAY", "0")))


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
