"""`/play`: guess how a text goes on, against the model."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tinychat.commands.registry import Command, Suggestion, command, complete_texts, to_path, unquote
from tinychat.commands.results import Play, Result
from tinychat.errors import Interrupted, UsageError
from tinychat.evaluate.shannon_game import Game
from tinychat.generate.engine import Request, TokenProbability
from tinychat.generate.prompts import fresh_seed
from tinychat.generate.stream import stream
from tinychat.session.session import Session
from tinychat.store import paths

LONGEST = 200
"""tokens to guess, at most: more than anybody will"""
LEAD = 40
"""tokens of a file that are shown before, at least"""

ShouldStop = Callable[[], bool]


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    return complete_texts(session, words) if len(words) == 1 else iter(())


@command("play", "inside", "guess along", usage="[PROMPT or FILE]", example="/play hello there", complete=_complete)
def play(session: Session, text: str) -> Result:
    """Guess how a text goes on, one character or piece after the other: your bits against the model's.

    Guessed is the model's answer to PROMPT, which stays hidden, or to the last prompt; or a passage of FILE, a text or
    known data set, out of its last tenth, which training leaves out. A guess costs what telling whether it is right
    takes, by how often earlier ones were; giving up costs as much as each of the characters or choices that are left.
    The model pays −log₂ of its probability of what comes. After Shannon (1951).
    """
    from tinychat.corpus.registry import KNOWN

    text = unquote(text)
    path = to_path(text)
    if text and (text in KNOWN or path.is_file()):
        return Play(partial(_passage, session, text if text in KNOWN else str(path)))
    index = len(session.turns)
    if not text:
        if not session.turns and session.model.info.mode != "completion":
            raise UsageError("there is no prompt yet", "for example `/play hello there`, or name a file")
        text, index = (session.turns[-1].prompt, index - 1) if session.turns else ("", 0)
    return Play(partial(_answer, session, text, index))


def _answer(session: Session, prompt: str, index: int, should_stop: ShouldStop) -> Game:
    """The game of guessing the model's answer to the prompt at that index of the conversation."""
    settings = session.settings.current
    settings = replace(settings, max_tokens=min(settings.max_tokens, LONGEST))
    model = session.model
    before = model.history(session.turns[:index])
    _wait(session, should_stop)
    answer = model.make_answer(prompt, turns=before, settings=lambda: settings, index=len(before))
    start = len(answer.ids)
    for _ in stream(model.engine, answer, should_stop):
        pass
    if should_stop():
        raise Interrupted("nothing is played: it was stopped")
    ids = answer.ids[:-1] if answer.ids[-1] in answer.request.end_ids else answer.ids
    if len(ids) <= start:
        raise UsageError(f"the model has nothing to say to {prompt!r}", "try another prompt")
    beginning = prompt if model.info.mode == "completion" else f"{prompt}\n"
    return _game(session, ids, start, beginning, model.prompt_encoder.encode_source(prompt))


def _passage(session: Session, source: str, should_stop: ShouldStop) -> Game:
    """The game of guessing a passage of a text."""
    from tinychat.corpus.sources import read_sources
    from tinychat.tokenizer.token_cache import encode_corpus, split

    template, tokenizer = session.model.info.template, session.model.tokenizer
    corpus = read_sources(
        [source], cache=paths.datasets_folder(), mirror=paths.mirror(), mode=None if template else "completion"
    )
    ids = split(encode_corpus(corpus, tokenizer, paths.ids_folder(), template=template).ids, "val")
    if len(ids) < 2 * LEAD:
        raise UsageError(f"the last tenth of {source} has {len(ids)} tokens: too few to guess", "take a longer text")
    chance = random.Random(fresh_seed() if session.settings.current.seed is None else session.settings.current.seed)
    begin = chance.randrange(max(1, len(ids) - 2 * LEAD - LONGEST))
    passage = [int(id) for id in ids[begin : begin + 2 * LEAD + LONGEST]]
    texts = [tokenizer.token_text(id) for id in passage[:LEAD]]
    begin = next((position + 1 for end in ("\n", " ") for position, text in enumerate(texts) if text.endswith(end)), 0)
    passage = passage[begin:]
    _wait(session, should_stop)
    return _game(session, passage[: LEAD + LONGEST], LEAD, tokenizer.decode(passage[:LEAD]))


def _game(
    session: Session, ids: Sequence[int], start: int, beginning: str, source: tuple[int, ...] | None = None
) -> Game:
    settings, engine = session.settings.current, session.model.engine

    def odds(known: Sequence[int]) -> list[TokenProbability]:
        return engine.probabilities(Request(0, list(known), len(known) - start, settings, seed=0, source=source))

    return Game(session.model.tokenizer, ids, start, odds, beginning)


def _wait(session: Session, should_stop: ShouldStop) -> None:
    if not session.model.wait(should_stop):
        raise Interrupted("nothing is played: it was stopped")


COMMANDS: tuple[Command, ...] = (play,)
