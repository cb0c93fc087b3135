"""Generate the pairs: everyday phrases, sentences written one by one, and others drawn from the frames.

Each English sentence is unique.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

from grammar import Dice

from phrases import (
    actions,
    everyday,
    joined,
    likes,
    negations,
    objects,
    patterns,
    people,
    places,
    requests,
    sentences,
    subclauses,
    things,
    times,
    written,
)
from phrases.draft import TOGETHER, TYPED, Draft, Frames, Pair, finish
from phrases.names import HELD_OUT_MEN, HELD_OUT_WOMEN

HERE = Path(__file__).resolve().parent
SUITES = ("everyday.jsonl", "everyday-kept.jsonl")
COPIED = re.compile(r"[A-Z]-?\d|\d[A-Z]|@")
"""Codes and addresses, whose letters matter."""
ADDRESSED = re.compile(r", \w+(?=[.?!]*$)")
"""The name of who is addressed, at the end of a sentence."""
DOUBLED = re.compile(r"\b(\w+) \1\b")
"""A word twice, where two parts of a sentence do not go together."""

PARTS: tuple[tuple[float, Frames], ...] = (
    (
        32.0,
        actions.FRAMES
        + requests.FRAMES
        + people.FRAMES
        + likes.FRAMES
        + things.FRAMES
        + places.FRAMES
        + times.FRAMES
        + joined.FRAMES
        + everyday.FRAMES,
    ),
    (35.0, sentences.FRAMES + subclauses.FRAMES + negations.FRAMES),
    (16.0, objects.FRAMES),
    (17.0, patterns.FRAMES),
)
"""Shares of the corpus, and the frames that they are drawn from."""
HELD_OUT_NAMES = frozenset(HELD_OUT_MEN + HELD_OUT_WOMEN)
SHARES = [share for share, _ in PARTS]
WEIGHTS = [[weight for weight, _ in frames] for _, frames in PARTS]
WRITTEN = 0.42
"""Probability that a sentence for training is one of those written one by one, unless it has come already."""
WITHOUT_CONTRACTIONS = 0.25
"""Probability that a written sentence comes without its contractions."""
WITHOUT_APOSTROPHES = 0.3
"""Probability that a sentence as people type it has no apostrophes."""


@cache
def kept_apart() -> frozenset[str]:
    """Return the sentences of both everyday suites, which no part of the corpus has, as compared by `plain`."""
    return frozenset(map(plain, asked(SUITES)))


def _is_kept_apart(text: str) -> bool:
    """Return whether a text, or a sentence of it, is one of the suites', whoever is addressed."""
    texts = (text, *re.split(r"(?<=[.?!]) ", text))
    return not kept_apart().isdisjoint(plain(form) for one in texts for form in (one, ADDRESSED.sub("", one)))


@cache
def _written() -> tuple[Pair, ...]:
    return tuple(pair for pair in written.pairs() if not _is_kept_apart(pair.english))


def asked(suites: Iterable[str]) -> Iterator[str]:
    """Yield the sentences of suites, which are files beside this one."""
    lines = chain.from_iterable((HERE / name).read_text(encoding="utf-8").splitlines() for name in suites)
    yield from (check["say"] for check in map(json.loads, lines) if "say" in check)


def plain(sentence: str) -> str:
    """Return the words of a sentence in lower case, without contractions and marks."""
    for pattern, whole in (
        (r"won't", "will not"),
        (r"can't|cannot", "can not"),
        (r"n't", " not"),
        (r"'m", " am"),
        (r"'re", " are"),
        (r"'ll", " will"),
    ):
        sentence = re.sub(pattern, whole, sentence)
    return " ".join(re.findall(r"\w+", sentence.lower()))


def pairs(count: int, seed: int, *, held_out: bool = False) -> Iterator[Pair]:
    """Yield `count` pairs.

    With `held_out`, each has a name or a combination of words that the training split never contains.
    """
    dice = Dice(f"phrases {'held-out' if held_out else 'train'} {seed}")
    fixed = [Pair(*pair) for pair in everyday.fixed() if plain(pair[0]) not in kept_apart()]
    seen = {pair.english for pair in fixed}
    typed = TYPED["held-out" if held_out else "train"]
    if not held_out:
        yield from fixed[:count]
        count -= len(fixed)
    while count > 0:
        draft = Draft(dice, held_out=held_out)
        pair = draw_any(dice, draft, held_out=held_out)
        is_kept_apart = _is_kept_apart(pair.english)
        if dice.chance(TOGETHER):
            other = draw_any(dice, draft, held_out=held_out)
            is_kept_apart |= _is_kept_apart(other.english)
            pair = pair.with_next(other)
        fits = belongs(pair, draft, held_out=held_out)
        if dice.chance(typed) and not COPIED.search(pair.english):
            pair = pair.as_typed(without_apostrophes=dice.chance(WITHOUT_APOSTROPHES))
        if fits and not is_kept_apart and pair.english not in seen:
            seen.add(pair.english)
            count -= 1
            yield pair


def belongs(pair: Pair, draft: Draft, *, held_out: bool) -> bool:
    """Return whether a pair is sound, and of the part that is wanted."""
    is_reserved = draft.is_reserved or not HELD_OUT_NAMES.isdisjoint(re.findall(r"\w+", pair.english))
    return is_reserved == held_out and not DOUBLED.search(f"{pair.english}\n{pair.spanish}".lower())


def draw_any(dice: Dice, draft: Draft, *, held_out: bool) -> Pair:
    """Return a written sentence with probability `WRITTEN`, else one of the grammar; held out, always the latter."""
    if held_out or not dice.chance(WRITTEN):
        return draw(dice, draft)
    pair = written.draw(dice, _written())
    return written.in_full(pair) if dice.chance(WITHOUT_CONTRACTIONS) else pair


def draw(dice: Dice, draft: Draft) -> Pair:
    """Return a pair of the grammar, of any kind."""
    part = dice.weighted(SHARES)
    return finish(dice, *PARTS[part][1][dice.weighted(WEIGHTS[part])][1](draft))


def make(count: int, seed: int, *, held_out: bool = False) -> Iterator[str]:
    """Yield the pairs as lines, with a tab between the languages."""
    for english, spanish in pairs(count, seed, held_out=held_out):
        yield f"{english}\t{spanish}\n"
