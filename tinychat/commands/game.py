"""`/play`: guess how a text continues, against the model (Shannon's guessing game)."""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from tinychat.commands.registry import Command, command, complete_sources, first_word, to_path, unquote
from tinychat.commands.results import GuessingGame, Result
from tinychat.errors import UsageError
from tinychat.evaluate.shannon_game import Game
from tinychat.generate.engine import Request, TokenProbability, fresh_seed
from tinychat.generate.stream import stream
from tinychat.interrupts import deferred
from tinychat.session.session import Session
from tinychat.store import paths

MAX_TOKENS = 200
CONTEXT_TOKENS = 40
"""Number of tokens shown before a passage of a file, less those up to the first line or word."""


@command(
    "play", "inside", "guess along", usage="[PROMPT or FILE]", example="/play hello there",
    complete=first_word(complete_sources),
)  # fmt: skip
def play(session: Session, text: str) -> Result:
    """Guess how a text continues, character by character or from choices: your bits against the model's.

    You guess the model's hidden answer to PROMPT (for a translator, one sentence) or, without one, to the last prompt.
    With FILE, a text or a known data set, you guess a passage of its held-out last tenth. A guess costs the bits that
    tell whether it is right, given how often earlier guesses were; giving up costs log₂ of the number of characters or
    choices left. The model pays −log₂ of its probability of the true text (Shannon 1951).
    """
    from tinychat.corpus.registry import KNOWN

    text = unquote(text)
    path = to_path(text)
    try:
        is_source = text in KNOWN or (bool(text) and path.is_file())
    except OSError:  # a prompt too long for a name
        is_source = False
    if is_source:
        return GuessingGame(partial(_passage, session, text if text in KNOWN else str(path)))
    index = len(session.turns)
    if not text:
        if not session.turns and session.model.info.mode != "completion":
            raise UsageError("there is no prompt yet", "for example `/play hello there`, or name a file")
        text, index = (session.turns[-1].prompt, index - 1) if session.turns else ("", 0)
    return GuessingGame(partial(_answer, session, text, index))


def _answer(session: Session, prompt: str, index: int) -> Game:
    """Return a game on the model's answer to a prompt, as turn `index` of the conversation."""
    model, current = session.model, session.settings.current
    if (count := len(model.prompt_encoder.encode_sentences(prompt))) > 1:  # each is read on its own
        raise UsageError(f"the game takes one sentence, not {count}", "for example `/play Where is the station?`")
    # What is guessed follows the prompt as it is cut.
    settings = replace(current, max_tokens=min(current.max_tokens, MAX_TOKENS), token_healing="off")
    history = model.history(session.turns[:index])
    answer = model.make_answer(prompt, turns=history, settings=lambda: settings)
    start = len(answer.ids)
    with deferred() as should_stop:  # an exception inside the engine could leave its cache half written
        for _ in stream(model.engine, answer, should_stop):
            pass
    ids = answer.ids[:-1] if answer.ids[-1] in answer.request.end_ids else answer.ids
    if len(ids) <= start:
        raise UsageError(f"the model has nothing to say to {prompt!r}", "try another prompt")
    shown = prompt if model.info.mode == "completion" else f"{prompt}\n"
    return _game(session, ids, start, shown, answer.request.source)


def _passage(session: Session, source: str) -> Game:
    """Return a game on a random passage of a text."""
    from tinychat.corpus.sources import read_sources
    from tinychat.tokenizer.token_cache import encode_corpus
    from tinychat.train.split import TextSplit

    model = session.model
    if model.prompt_encoder.source_tokenizer is not None:
        remedy = "give it a sentence: `/play Where is the station?`"
        raise UsageError(f"{model.name} translates, so it cannot tell how a text goes on", remedy)
    template, tokenizer = model.info.template, model.tokenizer
    corpus = read_sources(
        [source], cache=paths.datasets_folder(), mirror=paths.mirror(), mode=None if template else "completion"
    )
    ids = encode_corpus(corpus, tokenizer, paths.ids_folder(), template=template).ids
    ids = ids[TextSplit().find_end(ids, tokenizer) :]
    if len(ids) < 2 * CONTEXT_TOKENS:
        raise UsageError(f"the last tenth of {source} has too few tokens to guess", "take a longer text")
    seed = session.settings.current.seed
    rng = random.Random(fresh_seed() if seed is None else seed)
    start = rng.randrange(max(1, len(ids) - 2 * CONTEXT_TOKENS - MAX_TOKENS))
    passage = [int(id) for id in ids[start : start + 2 * CONTEXT_TOKENS + MAX_TOKENS]]
    texts = [tokenizer.token_text(id) for id in passage[:CONTEXT_TOKENS]]
    # Begin after a line break if there is one, else after a space.
    start = next((index + 1 for end in ("\n", " ") for index, text in enumerate(texts) if text.endswith(end)), 0)
    passage = passage[start : start + CONTEXT_TOKENS + MAX_TOKENS]
    return _game(session, passage, CONTEXT_TOKENS, tokenizer.decode(passage[:CONTEXT_TOKENS]))


def _game(session: Session, ids: Sequence[int], start: int, shown: str, source: tuple[int, ...] | None = None) -> Game:
    """Return a game on `ids` from index `start`, after the text shown before it."""
    settings, engine = session.settings.current, session.model.engine

    def predict(known: Sequence[int]) -> list[TokenProbability]:
        return engine.probabilities(Request(0, list(known), len(known) - start, settings, seed=0, source=source))

    return Game(session.model.tokenizer, ids, start, predict, shown)


COMMANDS: tuple[Command, ...] = (play,)
