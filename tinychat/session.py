"""The one object that a face holds: settings, the model, the conversation, the runs.

What needs torch is imported inside methods and in a thread, so that a face can draw its prompt first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.background import BackgroundRuns
from tinychat.conversation import Conversation, Turn
from tinychat.errors import ModelError, UsageError
from tinychat.events import Finished, Notice, Record
from tinychat.face import FaceStore
from tinychat.generate.engine import Drawn, Engine
from tinychat.generate.opening import Loading
from tinychat.generate.prompts import Prompting
from tinychat.generate.random import fresh_seed
from tinychat.generate.stream import Answer, stream
from tinychat.origins import Origin
from tinychat.settings import Settings, SettingStore
from tinychat.store.models import ModelInfo, call_of, find_model, read_info, read_source_tokenizer, read_tokenizer
from tinychat.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from tinychat.comparing import Comparison


class Session:
    """Settings, the model, the conversation, the runs."""

    def __init__(self, settings: SettingStore | None = None, face: FaceStore | None = None) -> None:
        self.settings = settings or SettingStore()
        self.face = face or FaceStore()
        self.conversation = Conversation()
        self.comparison: Comparison | None = None
        """the newest answers to choose from, of which none is a turn before it is chosen"""
        self.info: ModelInfo | None = None
        self.runs = BackgroundRuns(self)
        self._tokenizer: Tokenizer | None = None
        self._reader: Tokenizer | None = None
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
        self.settings.replace(info.settings, Origin.MODEL)
        self.info, self._tokenizer, self._reader, self._loading = info, None, None, None
        self.conversation = Conversation()
        return info

    def reopen_model(self, folder: Path) -> None:
        """Takes what a model has become, or the same one with other settings; the conversation goes on.

        Raises:
            ModelError: there is none, or it is damaged; the model at hand stays.
        """
        conversation = self.conversation
        self.open_model(str(folder))
        self.conversation = conversation
        self.preload()

    def choose_model(self, name: str) -> ModelInfo:
        """As `open_model`; but where a run of that name trains in the background, its newest weights answer.

        Raises:
            ModelError: there is none, or it is damaged; the model at hand stays.
        """
        run = self.runs.find(name)
        if run is not None and run.has_weights:
            self.runs.follow(run)
            return self.model
        info = self.open_model(name)
        self.runs.follow(run)  # not yet
        return info

    def preload(self) -> Loading:
        """Begins to import torch and to load the weights, in a thread."""
        if self._loading is None:
            self._loading = Loading(self.model, self.settings.current)
        return self._loading

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
        return self.preload().engine

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
    def reader(self) -> Tokenizer:
        """The tokenizer of prompts: where an encoder reads them, it may have one of its own."""
        if self._reader is None:
            self._reader = read_source_tokenizer(self.model.folder) or self.tokenizer
        return self._reader

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
            self.reader if model.mode == "translation" else None,
        )

    def close(self) -> None:
        """Lets go of the model."""
        self._loading = None

    @property
    def turns(self) -> list[Turn]:
        """What has been said in the conversation at hand, on the way to where it stands."""
        return self.conversation.turns

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

    def answer(self, prompt: str, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
        """Answers a prompt, which becomes the newest turn; the last record is `Finished`."""
        self.runs.catch_up(should_stop)
        before = self._before(len(self.turns))
        # Its place is the one that `--conversation` gives it: the same seed says the same there.
        answer = self.make_answer(prompt, turns=before, place=len(before))
        turn = Turn(prompt, list(answer.ids), model=call_of(self.model), settings=answer.request.settings)
        turn.obstacle = self.runs.obstacle
        self.conversation.add(turn)
        if notice := self.unknown_notice(prompt):
            yield notice
        yield from self._run(turn, answer, should_stop)

    def retry(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
        """Answers the last prompt again.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        self.conversation.back()
        return self.answer(turn.prompt, should_stop)

    def continue_answer(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
        """Goes on where the last answer stopped.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        answer = self.make_answer(turn.prompt)
        answer.go_on(self.ids_before(turn, len(turn.tokens)), [token.id for token in turn.tokens], made=0)
        turn.obstacle = "it was continued"
        return self._run(turn, answer, should_stop)

    def branch(
        self, place: int, instead: Sequence[int], should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Record]:
        """Says the last answer anew as far as some token, then others, and goes on from there: another turn.

        Args:
            place: of the first token (from 0) that is not said again.
            instead: the ids of what is said there, the first records.

        Raises:
            UsageError: there is no answer.
        """
        old = self._last()
        kept = old.tokens[:place]
        before = self._before(len(self.turns) - 1)
        answer = self.make_answer(old.prompt, turns=before, place=len(before))
        answer.go_on(self.ids_before(old, place), [token.id for token in kept], made=place)
        turn = replace(
            old, tokens=kept, finished=None, changes=[change for change in old.changes if change[0] < place],
            model=call_of(self.model), settings=answer.request.settings, obstacle="it goes on from another token",
        )  # fmt: skip
        self.conversation.back()
        self.conversation.add(turn)
        return self._run(turn, answer, should_stop, instead)

    def ids_before(self, turn: Turn, place: int) -> list[int]:
        """The ids of all that the model saw when it chose the token at a place (from 0) of an answer."""
        path = turn.path()[:-1] if self.model.mode == "chat" else []
        prompt = turn.prompt_ids or self.make_answer(turn.prompt, turns=path).ids
        given = self.tokenizer.encode(turn.given) if turn.given else []
        return [*prompt, *given, *(token.id for token in turn.tokens[:place])]

    def unknown_notice(self, text: str) -> Notice | None:
        """Names the characters of a text that the model's vocabulary lacks; None where it has them all."""
        unknown = self.reader.unknown(text)
        shown = " ".join(map(repr, unknown[:8])) + (" …" if len(unknown) > 8 else "")
        return Notice(f"unknown to this model, left out: {shown}") if unknown else None

    def _before(self, place: int) -> list[Turn]:
        """The turns that a prompt at that place follows: in chat mode those before it; else each stands alone."""
        return self.turns[:place] if self.model.mode == "chat" else []

    def _run(
        self, turn: Turn, answer: Answer, should_stop: Callable[[], bool], first: Sequence[int] = ()
    ) -> Iterator[Record]:
        """Streams an answer, of which the first tokens may be given, and notes it in its turn."""
        for record in self._records(answer, should_stop, first):
            turn.note(record, answer.request.settings)
            yield record

    def _records(self, answer: Answer, should_stop: Callable[[], bool], first: Sequence[int]) -> Iterator[Record]:
        if not self.wait(should_stop):
            yield Finished("interrupted", 0, 0.0, answer.request.seed)
            return
        for id in first:
            if answer.finished is None:
                logprob = next(one.logprob for one in self.engine.odds(answer.request) if one.id == id)
                yield from answer.take([Drawn(id, logprob)], self.engine.context)
        if answer.finished is None:
            yield from stream(self.engine, answer, should_stop)

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Waits for the model to load; whether it did before somebody lost patience."""
        loading = self.preload()
        while not loading.wait(0.05):
            if should_stop():
                return False
        return True

    def _last(self) -> Turn:
        if not self.turns:
            raise UsageError("there is no answer yet", "type a prompt first")
        return self.turns[-1]
