"""`/why` and `/tokens`: why a token was chosen, and what tokens a text is made of."""

import math

from tinychat.commands.command import command
from tinychat.commands.results import Bar, Bars, Message, Result
from tinychat.errors import UsageError
from tinychat.generate.engine import Request
from tinychat.session import Session
from tinychat.transcript import Turn

BARS = 8
"""alternatives shown"""


@command("why", "inside", "the odds of a token", usage="[N]", example="/why 5")
def why(session: Session, text: str) -> Result:
    """How likely the model found the Nth token of the last answer, and what else it might have said.

    Without N, the last one. The probabilities are the model's own, before temperature and filters.
    """
    turn = next((turn for turn in reversed(session.turns) if turn.tokens), None)
    if turn is None:
        raise UsageError("there is no answer to look into yet", "type a prompt first")
    count = len(turn.tokens)
    place = _place(text, count)
    odds = _odds(session, turn, place - 1)
    chosen = turn.tokens[place - 1].id
    rank = 1 + next((index for index, (id, _) in enumerate(odds) if id == chosen), len(odds))
    shown = odds[:BARS] + [pair for pair in odds[BARS:] if pair[0] == chosen]
    entropy = -sum(math.exp(logprob) * logprob for _, logprob in odds) / math.log(2)
    title = f"token {place} of {count} · number {rank:,} of {len(odds):,} · entropy {entropy:.1f} bits"
    name = session.tokenizer.token_text
    return Bars(title, tuple(Bar(repr(name(id)), math.exp(logprob), id == chosen) for id, logprob in shown))


@command(
    "tokens", "inside", "the pieces of a text", usage="[TEXT]", example="/tokens to be or not", aliases=("tokenize",)
)
def tokens(session: Session, text: str) -> Result:
    """The pieces into which the model's tokenizer cuts a text, with their ids; without a text, the last prompt."""
    if not text:
        if not session.turns:
            raise UsageError("there is no text to cut", "for example `/tokens to be or not`")
        text = session.turns[-1].prompt
    pieces = session.tokens(text)
    notes = [f"{len(pieces):,} tokens for {len(text):,} characters"]
    if unknown := session.unknown(text):
        notes.append("unknown to this model, left out: " + " ".join(map(repr, unknown)))
    return Message(("  ".join(f"{piece!r} {id}" for piece, id in pieces),), tuple(notes))


def _place(text: str, count: int) -> int:
    """Which token is meant: 1 is the first, -1 the last."""
    try:
        place = int(text or count)
    except ValueError:
        place = 0
    if place < 0:
        place += count + 1
    if not 1 <= place <= count:
        raise UsageError(f"/why takes the number of a token, from 1 to {count}, not {text!r}")
    return place


def _odds(session: Session, turn: Turn, place: int) -> list[tuple[int, float]]:
    """Every token with its log-probability (nats) at a place of an answer, the likeliest first.

    The model is asked anew, for that place alone, so that making answers costs nothing extra.
    """
    prompt = turn.prompt_ids + (session.tokenizer.encode(turn.given) if turn.given else [])
    ids = prompt + [token.id for token in turn.tokens[:place]]
    request = Request(0, ids, place, session.settings.current, seed=0, source=session.prompting.source(turn.prompt))
    (drawn,) = session.engine.extend([request], 1, session.tokenizer.vocab_size)
    return list(drawn[0].likeliest)


COMMANDS = (why, tokens)
