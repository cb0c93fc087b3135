"""The one object that a face holds: settings, the model, the conversation, the runs.

What needs torch is imported inside methods and in a thread, so that a face can draw its prompt first.
"""

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.background import Background
from tinychat.errors import ModelError, UsageError
from tinychat.events import Ended, Finished, Notice, Part, Record, Token
from tinychat.generate.engine import Engine
from tinychat.generate.opening import Loading
from tinychat.generate.prompts import Prompting
from tinychat.generate.random import fresh_seed
from tinychat.generate.stream import Answer, stream
from tinychat.layers import Layer
from tinychat.settings import Settings, SettingStore
from tinychat.store.models import ModelInfo, call_of, find_model, read_info, read_tokenizer
from tinychat.text.tokenizers import Tokenizer
from tinychat.transcript import Turn, read_transcript, write_transcript

if TYPE_CHECKING:
    from tinychat.comparing import Comparison

DEFAULT_MODEL = "smalltalk"
GLIMPSE = 100
"""tokens of an answer by a model as it once was, at most: several are to be seen at once"""


class Session:
    """Settings, the model, the conversation."""

    def __init__(self, settings: SettingStore | None = None) -> None:
        self.settings = settings or SettingStore()
        self.turns: list[Turn] = []
        self.comparison: Comparison | None = None
        """the newest answers to choose from, of which none is a turn before it is chosen"""
        self.info: ModelInfo | None = None
        self.background: list[Background] = []
        """the runs that train in the background, as far as this session knows of them"""
        self.following: Background | None = None
        """the one whose newest weights answer"""
        self.weights_step: int | None = None
        """after how many steps of it the weights are that answer now"""
        self._tokenizer: Tokenizer | None = None
        self._loading: Loading | None = None

    # --- the model -----------------------------------------------------------------------------------------------

    def open_model(self, name: str) -> ModelInfo:
        """Takes another model: a name or a path. Its weights load when they are needed, or at `preload`.

        Raises:
            ModelError: there is none, or it is damaged; the model at hand stays.
        """
        from tinychat.model.config import ModelConfig

        info = read_info(find_model(name))
        ModelConfig.from_dict(info.architecture)  # says at once what is wrong with it
        self.settings.replace(info.settings, Layer.MODEL)
        self.info, self._tokenizer, self._loading = info, None, None
        self.turns = []
        return info

    def choose_model(self, name: str) -> ModelInfo:
        """As `open_model`; but where a run of that name trains in the background, its newest weights answer.

        Raises:
            ModelError: there is none, or it is damaged; the model at hand stays.
        """
        found = next((one for one in self.background if one.run.name == name and one.last is None), None)
        if found is not None and found.has_weights:
            self.following = found
            self.keep_up(anew=True)
            return self.model
        info = self.open_model(name)
        self.following = found  # not yet
        return info

    def keep_up(self, *, anew: bool = False) -> None:
        """Opens the model of the run that is followed, as soon as there is one; and once it has ended, what it made.

        Args:
            anew: even if it is open.
        """
        following = self.following
        if following is None:
            return
        following.look()
        here = self.info.folder if self.info else None
        if following.last is None:
            if following.has_weights and (anew or here != following.run.model):
                self.open_model(str(following.run.model))
                self.weights_step = following.weights_step
                self.preload()
        else:
            self.following = self.weights_step = None
            if isinstance(following.last, Ended) and here == following.run.model:
                turns = self.turns
                self.open_model(following.last.folder)
                self.turns = turns
                self.preload()

    def catch_up(self, should_stop: Callable[[], bool]) -> None:
        """Takes the newest weights of the run that is followed, which come with the conversation as it is."""
        self.keep_up()
        if self.following is None or self.info is None or self.info.folder != self.following.run.model:
            return
        self.following.ask_for_weights(should_stop)
        step = self.following.weights_step
        if step != self.weights_step:
            self.engine.reload(self.info)
            self.weights_step = step

    @property
    def speaker(self) -> str:
        """Who answers: `shakespeare (training, step 1,480)`; empty where it is simply the model at hand."""
        if self.following is None or self.weights_step is None or self.info is None:
            return ""
        return f"{self.info.name} (training, step {self.weights_step:,})"

    def preload(self) -> None:
        """Begins to import torch and to load the weights, in a thread."""
        if self._loading is None:
            self._loading = Loading(self.model, self.settings.current)

    @property
    def model(self) -> ModelInfo:
        """The model at hand.

        Raises:
            ModelError: there is none.
        """
        if self.info is None:
            raise ModelError("no model is open", "`/model NAME` opens one, `/train TEXT` makes one")
        return self.info

    @property
    def engine(self) -> Engine:
        """The engine with the model loaded; waits for it."""
        self.preload()
        assert self._loading is not None
        return self._loading.engine

    @property
    def is_ready(self) -> bool:
        """Whether an answer can begin at once."""
        return self._loading is not None and self._loading.wait(0)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's."""
        if self._tokenizer is None:
            self._tokenizer = read_tokenizer(self.model.folder)
        return self._tokenizer

    @property
    def prompting(self) -> Prompting:
        """How prompts reach the model.

        Raises:
            ModelError: it is a chat model without a template.
        """
        model = self.model
        if model.mode == "chat" and model.template is None:
            raise ModelError(f"{model.name} is a chat model without a template", "train or import it again")
        return Prompting(
            self.tokenizer,
            int(model.architecture["context"]),
            model.template if model.mode == "chat" else None,
            translates=model.mode == "translation",
        )

    @property
    def device_name(self) -> str:
        """Where the model runs, or will, as far as can be told without torch."""
        if self.settings.current.device != "auto":
            return self.settings.current.device
        if shutil.which("nvidia-smi"):
            return "cuda"
        return "mps" if sys.platform == "darwin" else "cpu"

    def close(self) -> None:
        """Lets go of the model."""
        self._loading = None

    # --- prompts and answers -------------------------------------------------------------------------------------

    def make_answer(
        self,
        prompt: str,
        *,
        turns: Sequence[Turn] = (),
        settings: Callable[[], Settings] | None = None,
        seed: int | None = None,
        place: int = 0,
        alternatives: int = 0,
    ) -> Answer:
        """An answer that an engine can begin.

        Args:
            prompt: as it reaches the model.
            turns: the conversation before it.
            settings: asked anew before each call of the engine; default: those of the session.
            seed: None takes the one that is set, or a fresh one.
            place: of the prompt in the input.
            alternatives: how many of the likeliest tokens to record at each place.
        """
        settings = settings or (lambda: self.settings.current)
        prompting = self.prompting
        seed = settings().seed if seed is None else seed
        return Answer(
            self.tokenizer,
            prompting.ids(prompt, [(turn.prompt, turn.answer) for turn in turns], settings().max_tokens),
            settings,
            seed=fresh_seed() if seed is None else seed,
            place=place,
            end_ids=prompting.end_ids,
            alternatives=alternatives,
            source=prompting.source(prompt),
        )

    def answer(
        self, prompt: str, *, should_stop: Callable[[], bool] = lambda: False, alternatives: int = 0
    ) -> Iterator[Record]:
        """Answers a prompt, which becomes the newest turn; the last record is `Finished`."""
        self.catch_up(should_stop)
        before = self._before(len(self.turns))
        # Its place is the one that `--conversation` gives it: the same seed says the same there.
        answer = self.make_answer(prompt, turns=before, place=len(before), alternatives=alternatives)
        unknown = self.unknown(prompt)
        turn = Turn(prompt, list(answer.ids), model=call_of(self.model), settings=answer.request.settings)
        turn.obstacle = "the model was still in training" if self.speaker else ""
        self.turns.append(turn)
        if unknown:
            yield unknown_notice(unknown)
        yield from self._run(turn, answer, should_stop)

    def retry(self, *, should_stop: Callable[[], bool] = lambda: False, alternatives: int = 0) -> Iterator[Record]:
        """Answers the last prompt again.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        self.turns.pop()
        return self.answer(turn.prompt, should_stop=should_stop, alternatives=alternatives)

    def continue_answer(
        self, *, should_stop: Callable[[], bool] = lambda: False, alternatives: int = 0
    ) -> Iterator[Record]:
        """Goes on where the last answer stopped.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        answer = self.make_answer("", alternatives=alternatives)
        prompt_ids = turn.prompt_ids or self.make_answer(turn.prompt, turns=self._before(len(self.turns) - 1)).ids
        made = [token.id for token in turn.tokens]
        turn.obstacle = "it was continued"
        answer.request.ids = prompt_ids + (self.tokenizer.encode(turn.given) if turn.given else []) + made
        return self._run(turn, answer, should_stop)

    def look_back(
        self, prompt: str, past: Sequence[tuple[str, Path]], *, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Record]:
        """Answers a prompt by the model as it once was, at several times, from one seed; none of it becomes a turn.

        Args:
            past: files of weights, each with the name of its answer; a file that is gone is passed over.
        """
        finished = Finished("interrupted", 0, 0.0, self.make_answer(prompt).request.seed)
        if unknown := self.unknown(prompt):
            yield unknown_notice(unknown)
        if self.wait(should_stop):
            model, engine = self.model, self.engine
            try:
                for name, path in past:
                    if should_stop() or not path.exists():
                        continue
                    engine.reload(replace(model, snapshot=path))
                    yield Part(name)
                    answer = self.make_answer(prompt, settings=self._glimpse, seed=finished.seed)
                    for record in stream(engine, answer, should_stop):
                        if isinstance(record, Finished):
                            tokens, seconds = finished.tokens + record.tokens, finished.seconds + record.seconds
                            finished = replace(record, tokens=tokens, seconds=seconds)
                        else:
                            yield record
            finally:
                engine.reload(model)
        yield finished

    def _glimpse(self) -> Settings:
        """The settings at hand, for short answers."""
        settings = self.settings.current
        return replace(settings, max_tokens=min(settings.max_tokens, GLIMPSE))

    def undo(self) -> Turn | None:
        """Takes back the last prompt and its answer."""
        return self.turns.pop() if self.turns else None

    def clear(self) -> None:
        """Begins a new conversation."""
        self.turns = []

    def unknown(self, text: str) -> list[str]:
        """The characters of a text that the model's vocabulary lacks."""
        return self.tokenizer.unknown(text)

    def tokens(self, text: str) -> list[tuple[str, int]]:
        """The pieces into which the model's tokenizer cuts a text, with their ids."""
        return self.tokenizer.pieces(text)

    def _before(self, place: int) -> list[Turn]:
        """The turns that a prompt at that place follows: in chat mode those before it; else each stands alone."""
        return self.turns[:place] if self.model.mode == "chat" else []

    def _run(self, turn: Turn, answer: Answer, should_stop: Callable[[], bool]) -> Iterator[Record]:
        """Streams an answer and notes it in its turn."""
        if not self.wait(should_stop):
            turn.finished = Finished("interrupted", 0, 0.0, answer.request.seed)
            turn.obstacle = turn.obstacle or "it was stopped"
            yield turn.finished
            return
        for record in stream(self.engine, answer, should_stop):
            if isinstance(record, Token):
                turn.tokens.append(record)
            elif isinstance(record, Finished):
                turn.finished = record
            turn.obstacle = turn.obstacle or obstacle_to_repeating(record, turn.settings, answer.request.settings)
            yield record

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Waits for the model to load; whether it did before somebody lost patience."""
        self.preload()
        assert self._loading is not None
        while not self._loading.wait(0.05):
            if should_stop():
                return False
        return True

    def _last(self) -> Turn:
        if not self.turns:
            raise UsageError("there is no answer yet", "type a prompt first")
        return self.turns[-1]

    # --- transcripts ---------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Writes the conversation as JSON.

        Raises:
            TinychatError: it cannot be written there.
        """
        write_transcript(path, self.model.name, self.settings.current, self.turns)

    def open_transcript(self, path: Path) -> int:
        """Goes on with a conversation that was saved; returns the number of its turns.

        Raises:
            TinychatError: it is no transcript; the conversation at hand stays.
        """
        self.turns = read_transcript(path)
        return len(self.turns)


def obstacle_to_repeating(record: Record, begun: Settings | None, now: Settings) -> str:
    """Why what a record tells of would not come again; empty where it would."""
    if isinstance(record, Finished) and record.reason == "interrupted":
        return "it was stopped"
    if begun is not None:
        now = replace(now, slow=begun.slow, seed=begun.seed)  # these say nothing of what comes
    return "its settings changed meanwhile" if now != begun else ""


def unknown_notice(characters: Sequence[str]) -> Notice:
    """Names the characters that a model does not know and so never sees."""
    shown = " ".join(repr(character) for character in characters[:8]) + (" …" if len(characters) > 8 else "")
    return Notice(f"unknown to this model, left out: {shown}")
