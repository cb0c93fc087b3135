"""`/why`, `/color`, `/score` and `/tokens`: why a token was chosen, how likely a text is, what tokens it is made of."""

import math
from collections.abc import Iterable

from tinychat.commands.command import command, unquote
from tinychat.commands.results import Bar, Bars, Message, Result, Shaded
from tinychat.errors import UsageError
from tinychat.generate.engine import Odds, Request
from tinychat.session import Session
from tinychat.settings import describe_sampling
from tinychat.transcript import Turn

BARS = 8
"""alternatives shown"""


@command("why", "inside", "the odds of a token", usage="[N]", example="/why 5")
def why(session: Session, text: str) -> Result:
    """How likely the model found the Nth token of the last answer, and what else it might have said.

    Without N, the last one; -2 is the last but one. The probabilities are the model's own, and those after temperature
    and filters as they are set now.
    """
    turn = _last_answer(session)
    count = len(turn.tokens)
    place = _place(text, count)
    odds = _odds(session, turn, place - 1)
    rank, chosen = next((rank, one) for rank, one in enumerate(odds, 1) if one.id == turn.tokens[place - 1].id)
    entropy = -sum(math.exp(one.logprob) * one.logprob for one in odds) / math.log(2)
    shown = odds[:BARS] if rank <= BARS else [*odds[:BARS], chosen]
    name = session.tokenizer.token_text
    bars = (Bar(repr(name(one.id)), math.exp(one.logprob), one is chosen, one.drawn) for one in shown)
    return Bars(
        f"token {place} of {count} · rank {rank:,} of {len(odds):,} · log-probability {chosen.logprob:z.2f}"
        f" · entropy {entropy:z.1f} bits",
        tuple(bars),
        (f"before and after {' · '.join(describe_sampling(session.settings.current))}, as set now",),
    )


@command("color", "inside", "shaded by surprise", aliases=("colour",))
def color(session: Session, text: str) -> Result:
    """The last answer again, each token shaded by how likely the model found it; under it the surprise of each."""
    turn = _last_answer(session)
    given = [(turn.given, None)] if turn.given else []
    return _shaded([*given, *((token.text, token.logprob) for token in turn.tokens)])


@command("score", "inside", "how likely a text is", usage="TEXT", example="/score to be or not")
def score(session: Session, text: str) -> Result:
    """How likely the model finds a text: perplexity, bits per character, and each token shaded by it.

    The text stands by itself, as the beginning of a document; in a chat, as the first thing said. What no token stands
    before is not predicted and does not count.
    """
    text = unquote(text)
    if not text:
        raise UsageError("/score needs a text", "for example `/score to be or not`")
    prompting = session.prompting
    if prompting.translates:
        raise UsageError("a translation model has no odds for a text alone", "/why tells those of its answers")
    ids = prompting.text_ids(text)
    if len(ids) < 2:
        raise UsageError(f"nothing can be predicted in {text!r}: it is one token or none", "give a longer text")
    decoder = session.tokenizer.stream()
    texts = [decoder.push(id) for id in ids]
    texts[-1] += decoder.flush()
    unknown = session.unknown(text)
    notes = ("unknown to this model, left out: " + " ".join(map(repr, unknown)),) if unknown else ()
    return _shaded(zip(texts, [None, *session.engine.score(ids)], strict=True), notes)


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


def _last_answer(session: Session) -> Turn:
    """The newest turn in which the model has said something."""
    turn = next((turn for turn in reversed(session.turns) if turn.tokens), None)
    if turn is None:
        raise UsageError("there is no answer to look into yet", "type a prompt first")
    return turn


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


def _odds(session: Session, turn: Turn, place: int) -> list[Odds]:
    """Every token that could have come at a place of an answer, the likeliest first.

    The model is asked anew, for that place alone, so that making answers costs nothing extra.
    """
    prompt = turn.prompt_ids + (session.tokenizer.encode(turn.given) if turn.given else [])
    ids = prompt + [token.id for token in turn.tokens[:place]]
    source = session.prompting.source(turn.prompt)
    return session.engine.odds(Request(0, ids, place, session.settings.current, seed=0, source=source))


def _shaded(tokens: Iterable[tuple[str, float | None]], notes: tuple[str, ...] = ()) -> Shaded:
    """Tokens and their log-probabilities as a shaded text, and what these say of all of it.

    A token that holds only a part of a character adds to the surprise of the one that completes it.
    """
    pieces: list[tuple[str, float | None]] = []
    logprobs: list[float] = []
    characters, waiting = 0, 0.0
    for text, logprob in tokens:
        if logprob is None:
            pieces += [(text, None)] if text else []
            continue
        logprobs.append(logprob)
        characters += len(text)
        waiting -= logprob / math.log(2)
        if text:
            pieces.append((text, waiting))
            waiting = 0.0
    loss = -sum(logprobs) / len(logprobs)
    facts = [f"perplexity {math.exp(loss):,.2f}" if loss < 700 else "perplexity inf"]
    if characters:
        facts.append(f"{loss / math.log(2) * len(logprobs) / characters:.3f} bits/char")
    facts.append(f"{len(logprobs):,} {'token' if len(logprobs) == 1 else 'tokens'}")
    return Shaded(tuple(pieces), (" · ".join(facts), *notes))


COMMANDS = (why, color, score, tokens)
