"""`/why`, `/color`, `/score` and `/tokens`: why a token was chosen, how likely a text is, what tokens it is made of."""

import math
from collections.abc import Iterable, Sequence
from functools import cache

from tinychat.commands.arguments import unquote
from tinychat.commands.branching import branch_at, token_place
from tinychat.commands.command import command
from tinychat.commands.results import Answer, Bar, Bars, Message, Result, Shaded, Walk
from tinychat.conversation import Turn
from tinychat.errors import UsageError
from tinychat.events import Token
from tinychat.generate.engine import Odds, Request
from tinychat.session import Session
from tinychat.settings import Settings, describe_sampling
from tinychat.textutil import count

BARS = 8
"""alternatives shown"""


@command("why", "inside", "the odds of a token", usage="[N]", example="/why 5")
def why(session: Session, text: str) -> Result:
    """How likely the model found the Nth token of the last answer, and what else it might have said.

    Without N, the last one; -2 is the last but one. The probabilities are the model's own, and those after temperature
    and filters as the token was drawn. ←/→ walk through the answer; ↑/↓ mark a token, and Enter goes on from there
    with that one.
    """
    turn = last_answer(session)
    odds_at = cache(lambda place: _odds(session, turn, place))

    def choose(place: int, bar: int) -> Answer:
        return branch_at(session, turn, place, [_shown(odds_at(place), turn.tokens[place])[bar].id])

    count = len(turn.tokens)
    return Walk(
        token_place(text, count, "why"), count, lambda place: _bars(session, turn, place, odds_at(place)), choose
    )


@command("color", "inside", "shaded by surprise", aliases=("colour",))
def color(session: Session, text: str) -> Result:
    """The last answer again, each token shaded by how likely the model found it.

    Under it a line of how surprising each token was, and one of how open it was what would come: the entropy.
    """
    turn = last_answer(session)
    given = [(turn.given, None)] if turn.given else []
    entropies: list[float] = []
    if session.prompting.reader is None:
        count = len(turn.tokens)
        entropies = session.engine.entropies(session.ids_before(turn, count))[-count:]
    return _shaded([*given, *((token.text, token.logprob) for token in turn.tokens)], entropies)


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
    if prompting.reader is not None:
        raise UsageError("a translation model has no odds for a text alone", "/why tells those of its answers")
    ids = prompting.text_ids(text)
    if len(ids) < 2:
        raise UsageError(f"nothing can be predicted in {text!r}: it is one token or none", "give a longer text")
    decoder = session.tokenizer.stream()
    texts = [decoder.push(id) for id in ids]
    texts[-1] += decoder.flush()
    logprobs = [None, *session.engine.score(ids)]
    return _shaded(zip(texts, logprobs, strict=True), session.engine.entropies(ids), _unknown(session, text))


@command(
    "tokens", "inside", "the pieces of a text", usage="[TEXT]", example="/tokens to be or not", aliases=("tokenize",)
)
def tokens(session: Session, text: str) -> Result:
    """The pieces into which the model's tokenizer cuts a text, with their ids; without a text, the last prompt."""
    if not text:
        if not session.turns:
            raise UsageError("there is no text to cut", "for example `/tokens to be or not`")
        text = session.turns[-1].prompt
    pieces = session.reader.pieces(text)
    notes = (f"{len(pieces):,} tokens for {len(text):,} characters", *_unknown(session, text))
    return Message(("  ".join(f"{piece!r} {id}" for piece, id in pieces),), notes)


def _unknown(session: Session, text: str) -> tuple[str, ...]:
    unknown = session.reader.unknown(text)
    return ("unknown to this model, left out: " + " ".join(map(repr, unknown)),) if unknown else ()


def last_answer(session: Session) -> Turn:
    """The newest turn in which the model has said something."""
    turn = next((turn for turn in reversed(session.turns) if turn.tokens), None)
    if turn is None:
        raise UsageError("there is no answer to look into yet", "type a prompt first")
    return turn


def _settings_at(session: Session, turn: Turn, place: int) -> Settings:
    return turn.settings_at(place) or session.settings.current


def _odds(session: Session, turn: Turn, place: int) -> list[Odds]:
    """Every token that could have come at a place (from 0) of an answer, the likeliest first.

    The model is asked anew, for that place alone, so that making answers costs nothing extra.
    """
    settings, source = _settings_at(session, turn, place), session.prompting.source(turn.prompt)
    return session.engine.odds(Request(0, session.ids_before(turn, place), place, settings, seed=0, source=source))


def _shown(odds: list[Odds], token: Token) -> list[Odds]:
    """The likeliest, and the one that was chosen."""
    return odds[:BARS] + [one for one in odds[BARS:] if one.id == token.id]


def _bars(session: Session, turn: Turn, place: int, odds: list[Odds]) -> Bars:
    rank, chosen = next((rank, one) for rank, one in enumerate(odds, 1) if one.id == turn.tokens[place].id)
    entropy = -sum(math.exp(one.logprob) * one.logprob for one in odds) / math.log(2)
    name = session.tokenizer.token_text
    shown = _shown(odds, turn.tokens[place])
    texts = [token.text for token in turn.tokens]
    return Bars(
        f"token {place + 1} of {len(texts)} · rank {rank:,} of {len(odds):,} · log-probability {chosen.logprob:z.2f}"
        f" · entropy {entropy:z.1f} bits",
        tuple(Bar(repr(name(one.id)), math.exp(one.logprob), one is chosen, one.drawn) for one in shown),
        (f"before and after {' · '.join(describe_sampling(_settings_at(session, turn, place)))}",),
        ((turn.given or "") + "".join(texts[:place]), texts[place], "".join(texts[place + 1 :])),
    )


def _shaded(
    tokens: Iterable[tuple[str, float | None]], entropies: Sequence[float], notes: tuple[str, ...] = ()
) -> Shaded:
    """Tokens and their log-probabilities as a shaded text, with entropies (nats), and what these say of all of it.

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
    facts.append(count(len(logprobs), "token"))
    return Shaded(tuple(pieces), (" · ".join(facts), *notes), tuple(entropy / math.log(2) for entropy in entropies))


COMMANDS = (why, color, score, tokens)
