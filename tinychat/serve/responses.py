"""Answers as OpenAI's API words them: whole, or in the chunks of a stream."""

import math
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinychat.events import Finished, FinishReason, Token, TopLogprob
from tinychat.serve.requests import Ask, Prompt
from tinychat.serve.scheduler import Scored
from tinychat.session.open_model import OpenModel

FINISH_REASONS: Mapping[FinishReason, str] = {
    "end": "stop",
    "stop": "stop",
    "length": "length",
    "interrupted": "length",
}
"""By reason: what OpenAI's API calls it. Here a limit of time interrupts an answer."""
LEAST_LOGPROB = -9999.0
"""Stands for log-probabilities below it: JSON has no infinity."""


@dataclass
class Choice:
    """One answer so far."""

    index: int
    tokens: list[Token] = field(default_factory=list)
    """Those of the prompt, if it is echoed, and those generated."""
    finish_reason: str | None = None
    seed: int | None = None
    length: int = 0
    """Number of characters of the text so far."""

    def __post_init__(self) -> None:
        self.length = len(self.text)

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    def add(self, token: Token) -> None:
        """Append a token."""
        self.tokens.append(token)
        self.length += len(token.text)

    def end(self, finished: Finished) -> None:
        """Note how it ended."""
        self.finish_reason, self.seed = FINISH_REASONS[finished.reason], finished.seed


def new_response(ask: Ask, model: str, *, is_chunk: bool) -> dict[str, Any]:
    """Return the fields that a response and all chunks of a stream have in common."""
    kind = "chat.completion" + ".chunk" * is_chunk if ask.is_chat else "text_completion"
    prefix = "chatcmpl" if ask.is_chat else "cmpl"
    return {"id": f"{prefix}-{secrets.token_hex(12)}", "object": kind, "created": int(time.time()), "model": model}


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Return the numbers of tokens as an object."""
    total = prompt_tokens + completion_tokens
    return {"prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens, "total_tokens": total}


def whole_choice(ask: Ask, choice: Choice) -> dict[str, Any]:
    """Return an answer as a whole."""
    logprobs = None if ask.logprobs is None else logprobs_of(ask, choice.tokens)
    said: dict[str, Any] = (
        {"message": {"role": "assistant", "content": choice.text, "refusal": None}}
        if ask.is_chat
        else {"text": choice.text}
    )
    end = {"logprobs": logprobs, "finish_reason": choice.finish_reason, "seed": choice.seed}
    return {"index": choice.index, **said, **end}


def chunk_of(
    ask: Ask, index: int, tokens: Sequence[Token], *, offset: int = 0, finish_reason: str | None = None
) -> dict[str, Any]:
    """Return the new tokens of an answer as a choice of a chunk; `offset` is the length of the text before them."""
    text = "".join(token.text for token in tokens)
    logprobs = logprobs_of(ask, tokens, offset) if ask.logprobs is not None and tokens else None
    said: dict[str, Any] = {"delta": {"content": text} if tokens else {}} if ask.is_chat else {"text": text}
    return {"index": index, **said, "logprobs": logprobs, "finish_reason": finish_reason}


def logprobs_of(ask: Ask, tokens: Iterable[Token], offset: int = 0) -> dict[str, Any]:
    """Return the log-probabilities of tokens, in the form of chats or of completions."""
    if ask.is_chat:
        return {"content": [_chat_logprob(token) for token in tokens], "refusal": None}
    found: dict[str, list[Any]] = {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}
    for token in tokens:
        is_known = not math.isnan(token.logprob)
        found["tokens"].append(token.text)
        found["token_logprobs"].append(_finite(token.logprob) if is_known else None)
        found["top_logprobs"].append(_tops(token) if is_known and ask.logprobs else None)
        found["text_offset"].append(offset)
        offset += len(token.text)
    return found


def _chat_logprob(token: Token) -> dict[str, Any]:
    tops = [_named(text, logprob) for text, logprob in _named_tops(token)]
    return {**_named(token.text, token.logprob), "top_logprobs": tops}


def _named(text: str, logprob: float) -> dict[str, Any]:
    return {"token": text, "logprob": _finite(logprob), "bytes": list(text.encode())}


def _tops(token: Token) -> dict[str, float]:
    """Return the likeliest texts, and that of the token itself, with their log-probabilities."""
    tops: dict[str, float] = {}
    for text, logprob in [*_named_tops(token), (token.text, token.logprob)]:
        tops.setdefault(text, _finite(logprob))  # of two tokens with one text, the likelier
    return tops


def _named_tops(token: Token) -> Iterator[tuple[str, float]]:
    """Yield the texts and log-probabilities of the likeliest tokens; the token itself has its text in the answer."""
    for top in token.top:
        yield (token.text if top.id == token.id else top.text), top.logprob


def _finite(logprob: float) -> float:
    return max(logprob, LEAST_LOGPROB)


# --- prompts that come before their answers ---------------------------------------------------------------------------


def unscored(text: str) -> Token:
    """Return a text as a token without a log-probability."""
    return Token(-1, text, math.nan, 0.0)


def text_of_prompt(prompt: Prompt, model: OpenModel) -> str:
    """Return the text of a prompt."""
    return prompt.text if prompt.ids is None else model.tokenizer.decode(prompt.ids)


def scored_tokens(score: Scored, prompt: Prompt, model: OpenModel) -> list[Token]:
    """Return the tokens of a prompt that was scored; those that begin every text count only where ids were given.

    Their texts joined are the prompt: a space that a chat's template puts before it is left out of the first one.
    """
    decoder, tokens = model.tokenizer.stream(), list[Token]()
    for id, one in zip(score.ids, score.tokens, strict=True):
        if prompt.ids is None and not tokens and id in model.vocabulary.silent_ids:
            continue
        text = decoder.push(id)
        tops = () if one is None else one.top_logprobs
        named = tuple(TopLogprob(top, model.tokenizer.token_text(top), logprob) for top, logprob in tops)
        tokens.append(Token(id, text, math.nan if one is None else one.logprob, 0.0, named))
    if tokens:
        tokens[-1] = tokens[-1]._replace(text=tokens[-1].text + decoder.flush())
    if prompt.ids is None and _count_spaces(token.text for token in tokens) > _count_spaces([prompt.text]):
        first = next(index for index, token in enumerate(tokens) if token.text)
        tokens[first] = tokens[first]._replace(text=tokens[first].text[1:])
    return tokens


def _count_spaces(texts: Iterable[str]) -> int:
    """Return the number of spaces at the beginning of texts, joined."""
    text = "".join(texts)
    return len(text) - len(text.lstrip(" "))
