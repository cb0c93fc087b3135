"""A session: the settings, the open model, the conversation and the training runs that a front end works with."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from tinychat.config.settings import LOADING, Settings, SettingStore, UiOptionStore
from tinychat.corpus.types import Mode
from tinychat.errors import ModelError, TinychatError, UsageError
from tinychat.events import Finished, Notice, Record, Token
from tinychat.formats.registry import open_model
from tinychat.generate.answer import Answer
from tinychat.generate.engine import SampledToken
from tinychat.generate.stream import stream
from tinychat.session.comparison import Comparison, Variant
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.lesson import LessonPlayer
from tinychat.session.open_model import OpenModel, ShouldStop
from tinychat.session.run_monitor import RunMonitor
from tinychat.store.housekeeping import Own, rename
from tinychat.store.models import ModelInfo, find_model, model_reference

NOTHING_FOLLOWS = "the answer is finished: /retry gives another one, /branch forces other words"
"""Notice where a continued answer ends at once."""


class Session:
    """The state of a front end: the settings, the open model, the conversation, the training runs."""

    def __init__(self, settings: SettingStore | None = None, ui_options: UiOptionStore | None = None) -> None:
        self.settings = settings or SettingStore()
        self.ui_options = ui_options or UiOptionStore()
        self.conversation = Conversation()
        self.comparison: Comparison | None = None
        """The newest answers to choose from; an answer becomes a turn when it is picked."""
        self.lesson: LessonPlayer | None = None
        """The lesson in progress, if any."""
        self._model: OpenModel | None = None
        self.runs = RunMonitor(lambda: self._model, self.open_model, self.reopen_model)

    @property
    def model(self) -> OpenModel:
        """The open model.

        Raises:
            ModelError: If no model is open.
        """
        if self._model is None:
            raise ModelError("no model is open", "`/model NAME` opens one, `/train TEXT` makes one")
        return self._model

    @property
    def info(self) -> ModelInfo | None:
        """The description of the open model; None if none is open."""
        return self._model.info if self._model else None

    @property
    def mode(self) -> Mode:
        """The mode of the open model; that of a chat if none is open."""
        return self._model.info.mode if self._model else "chat"

    @property
    def is_ready(self) -> bool:
        """Whether the model has loaded, so that an answer can begin at once."""
        return self._model is not None and self._model.is_ready

    def open_model(self, name: str) -> OpenModel:
        """Open another model, by its name or path, and begin a new conversation.

        The interface option `model` follows it.

        Raises:
            ModelError: If there is no such model, or it is damaged; the open one stays.
        """
        self._model = OpenModel(name, self.settings)
        self.conversation = Conversation()
        if name != self.ui_options.current.model:
            self.ui_options.set("model", self._model.reference)
        return self._model

    def reopen_model(self, name: str) -> OpenModel:
        """Reopen the model, or another version of it, and keep the conversation.

        Raises:
            ModelError: If there is no such model, or it is damaged; the open one stays.
        """
        self._model = OpenModel(name, self.settings)
        self._model.preload()
        return self._model

    def reload_model(self, before: Settings) -> None:
        """Reopen the model, if one is open, once a setting that it is loaded with differs from what it was `before`.

        Raises:
            ModelError: If it no longer exists, or is damaged; the open one stays.
        """
        now = self.settings.current
        if self.info is not None and any(getattr(now, name) != getattr(before, name) for name in LOADING):
            self.reopen_model(str(self.info.folder))

    def rename_model(self, own: Own, name: str) -> None:
        """Rename a person's own model and its run, also where the conversation and the comparison refer to them.

        Raises:
            RunError: If the run is training by now, its recipe is damaged, or another run or model has got the name.
            ModelError: If the model is damaged.
            OSError: If a folder cannot be renamed.
        """
        compared = self.comparison
        turns = [*self.conversation.all, *(compared.turns if compared else ())]
        models = {variant.model for variant in compared.variants} if compared else set()
        if self._model is not None:
            models.add(self._model)
        folders: dict[str, Path] = {}
        for turn in turns:
            with suppress(ModelError):  # it is gone, or unknown
                folders[turn.model] = find_model(turn.model)
        renamed = rename(own, name)
        for model in models:
            if (folder := own.moved(model.info.folder, renamed)) is not None:
                model.move(folder)
                if model is self._model:
                    self.ui_options.set("model", model.reference)
        moved = {old: folder for old, one in folders.items() if (folder := own.moved(one, renamed)) is not None}
        references = {old: model_reference(open_model(str(folder))) for old, folder in moved.items()}
        for turn in turns:
            turn.model = references.get(turn.model, turn.model)

    def choose_model(self, name: str) -> OpenModel:
        """Open and load another model; if a run of that name trains in the background, use its newest weights.

        Raises:
            ModelError: If there is no such model, or it is damaged; the open one stays.
        """
        run = self.runs.find(name)
        if run is None or not run.has_weights:
            self.open_model(name)
        self.runs.follow(run)  # opens its model once it has weights
        self.model.preload()
        return self.model

    def close(self) -> None:
        """Free the model's weights."""
        if self._model is not None:
            self._model.close()

    @property
    def turns(self) -> list[Turn]:
        """The turns of the current branch."""
        return self.conversation.turns

    def answer(self, prompt: str, should_stop: ShouldStop = lambda: False) -> Iterator[Record]:
        """Answer a prompt as a new turn; yield the records of the answer, the last of them `Finished`.

        Once `should_stop` returns true, the answer ends as interrupted. An error before its first token leaves no turn.

        Raises:
            ModelError: If no model is open, or it is damaged.
            GenerationError: If the model gave NaN or infinite logits.
        """
        return self._answer(prompt, should_stop)

    def _answer(self, prompt: str, should_stop: ShouldStop, retried: Turn | None = None) -> Iterator[Record]:
        """Answer a prompt as `answer` does; `retried` is the last turn if it is answered again.

        After an error before the first token, that is the current turn again.
        """
        self.runs.load_newest_weights(should_stop)
        model = self.model
        # Numbered by the turns before it, as by `--conversation`: the same seed gives the same answers there.
        answer = model.make_answer(prompt, turns=model.history(self.turns if retried is None else self.turns[:-1]))
        turn = Turn(prompt, list(answer.ids), model=model.reference, settings=answer.request.settings)
        turn.why_not_reproducible = self.runs.why_not_reproducible(model)
        notice = model.unknown_notice(prompt)
        records = chain((notice,) if notice else (), self._run(turn, answer, should_stop))
        current = self.conversation.current
        if retried is not None:
            self.conversation.back()
        yield from self._add(turn, records, current)

    def _add(self, turn: Turn, records: Iterable[Record], current: Turn | None) -> Iterator[Record]:
        """Add a turn and yield the records of its answer; an error before its next token goes back to `current`."""
        conversation, kept = self.conversation, len(turn.tokens)
        conversation.add(turn)
        try:
            yield from records
        except TinychatError:
            if len(turn.tokens) == kept:
                conversation.remove(turn)
                conversation.current = current
            raise

    def retry(self, should_stop: ShouldStop = lambda: False) -> Iterator[Record]:
        """Answer the last prompt again; arguments and records are those of `answer`.

        Raises:
            UsageError: If there is no answer yet.
        """
        turn = self._last_turn()
        return self._answer(turn.prompt, should_stop, turn)

    def continue_answer(self, should_stop: ShouldStop = lambda: False) -> Iterator[Record]:
        """Continue the last answer from where it stopped; arguments and records are those of `answer`.

        If nothing follows, the turn stays as it is, and a notice says what else can be done.

        Raises:
            UsageError: If there is no answer yet.
        """
        turn = self._last_turn()
        answer = self.model.make_answer(turn.prompt)
        self.model.resume(answer, turn, len(turn.tokens), num_generated=0)
        return self._continue(turn, answer, should_stop)

    def _continue(self, turn: Turn, answer: Answer, should_stop: ShouldStop) -> Iterator[Record]:
        has_grown = False
        for record in self._stream(answer, should_stop):
            has_grown = has_grown or isinstance(record, Token)
            if has_grown:
                turn.why_not_reproducible = "it was continued"
                turn.record(record, answer.request.settings)
            elif isinstance(record, Finished) and record.reason != "interrupted":
                yield Notice(NOTHING_FOLLOWS)
            yield record

    def branch(
        self, position: int, forced_ids: Sequence[int], should_stop: ShouldStop = lambda: False
    ) -> Iterator[Record]:
        """Regenerate the last answer from a token position on as a new turn, which begins there with the forced tokens.

        Raises:
            UsageError: If there is no answer yet.
        """
        old, model = self._last_turn(), self.model
        kept = old.tokens[:position]
        answer = model.make_answer(old.prompt, turns=model.history(self.turns[:-1]))
        model.resume(answer, old, position, num_generated=position, forced_ids=forced_ids)
        turn = replace(
            old, tokens=kept, finished=None, changes=[change for change in old.changes if change[0] < position],
            # Those that the answer began with tell what an encoder read; `changes` tell which drew the other tokens.
            model=model.reference, settings=old.settings if position else answer.request.settings,
            why_not_reproducible="it goes on from another token",
        )  # fmt: skip
        self.conversation.back()
        return self._add(turn, self._run(turn, answer, should_stop, forced_ids), old)

    def pick(self, number: int) -> Variant:
        """Make an answer of the newest comparison (from 1) the newest turn, and open the model that generated it.

        Raises:
            UsageError: If there is no such answer, it is empty, or another conversation has begun since.
            ModelError: If its model no longer exists.
        """
        if self.comparison is None:
            raise UsageError("there are no answers to choose from", "/samples and /compare make some")
        variant = self.comparison.variant(number)
        conversation = self.conversation
        if conversation is not self.comparison.conversation:
            raise UsageError("another conversation has begun since", "/samples and /compare ask anew")
        if self.model.info.folder != variant.model.info.folder:
            self.choose_model(str(variant.model.info.folder))
            self.conversation = conversation
        self.comparison.pick(number)
        for turn in conversation.all:
            turn.is_foreign = turn.model not in ("", variant.model.reference)
        return variant

    def _run(
        self, turn: Turn, answer: Answer, should_stop: ShouldStop, forced_ids: Sequence[int] = ()
    ) -> Iterator[Record]:
        for record in self._stream(answer, should_stop, forced_ids):
            turn.record(record, answer.request.settings)
            yield record

    def _stream(self, answer: Answer, should_stop: ShouldStop, forced_ids: Sequence[int] = ()) -> Iterator[Record]:
        model, settings = self.model, answer.request.settings
        if not model.wait(should_stop):
            yield Finished("interrupted", 0, 0.0, answer.request.seed)
            return
        yield from model.notices(settings)
        for id in forced_ids:
            if answer.finished is None:
                logprob = next(one.logprob for one in model.engine.probabilities(answer.request) if one.id == id)
                yield from answer.update([SampledToken(id, logprob)], model.engine)
        if answer.finished is None:
            yield from stream(model.engine, answer, should_stop)

    def _last_turn(self) -> Turn:
        if not self.turns:
            raise UsageError("there is no answer yet", "type a prompt first")
        return self.turns[-1]
