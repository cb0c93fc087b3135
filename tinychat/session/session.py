"""What a front end holds: the settings, the open model, the conversation, the training runs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tinychat.config.settings import SettingStore
from tinychat.config.ui_options import UiOptionStore
from tinychat.errors import ModelError, UsageError
from tinychat.events import Finished, Record
from tinychat.generate.engine import SampledToken
from tinychat.generate.stream import Answer, stream
from tinychat.session.comparison import Comparison, Variant
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.open_model import OpenModel
from tinychat.session.run_monitor import RunMonitor
from tinychat.store.models import ModelInfo, model_reference


class Session:
    """The settings, the open model, the conversation, the training runs."""

    def __init__(self, settings: SettingStore | None = None, ui_options: UiOptionStore | None = None) -> None:
        self.settings = settings or SettingStore()
        self.ui_options = ui_options or UiOptionStore()
        self.conversation = Conversation()
        self.comparison: Comparison | None = None
        """the newest answers to choose from; none of them is a turn before it is chosen"""
        self._model: OpenModel | None = None
        self.runs = RunMonitor(lambda: self._model, self.open_model, self.reopen_model)

    # --- the model -----------------------------------------------------------------------------------------------

    @property
    def model(self) -> OpenModel:
        """The open model.

        Raises:
            ModelError: none is open.
        """
        if self._model is None:
            raise ModelError("no model is open", "`/model NAME` opens one, `/train TEXT` makes one")
        return self._model

    @property
    def info(self) -> ModelInfo | None:
        """The description of the open model; None if none is open."""
        return self._model.info if self._model else None

    @property
    def is_ready(self) -> bool:
        """Whether an answer can begin at once."""
        return self._model is not None and self._model.is_ready

    def open_model(self, name: str) -> OpenModel:
        """Open another model, by a name or a path, and begin a new conversation.

        Raises:
            ModelError: there is no such model, or it is damaged; the open one stays.
        """
        self._model = OpenModel(name, self.settings)
        self.conversation = Conversation()
        return self._model

    def reopen_model(self, name: str) -> OpenModel:
        """Open another version of the same model, or the same one for other settings; the conversation goes on.

        Raises:
            ModelError: there is no such model, or it is damaged; the open one stays.
        """
        conversation = self.conversation
        model = self.open_model(name)
        self.conversation = conversation
        model.preload()
        return model

    def choose_model(self, name: str) -> OpenModel:
        """Open and load another model; if a run of that name trains in the background, its newest weights answer.

        Raises:
            ModelError: there is no such model, or it is damaged; the open one stays.
        """
        run = self.runs.find(name)
        if run is None or not run.has_weights:
            self.open_model(name)
        self.runs.follow(run)  # from its first weights on, if it has none yet
        self.model.preload()
        return self.model

    def close(self) -> None:
        """Free the model's weights."""
        if self._model is not None:
            self._model.close()

    # --- prompts and answers -------------------------------------------------------------------------------------

    @property
    def turns(self) -> list[Turn]:
        """The turns of the current branch of the conversation."""
        return self.conversation.turns

    def answer(self, prompt: str, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
        """Answer a prompt, which becomes the newest turn; the last record is `Finished`."""
        self.runs.catch_up(should_stop)
        model = self.model
        before = model.history(self.turns)
        # Its index is the one that `--conversation` gives it: the same seed says the same there.
        answer = model.make_answer(prompt, turns=before, index=len(before))
        turn = Turn(prompt, list(answer.ids), model=model_reference(model.info), settings=answer.request.settings)
        turn.why_not_reproducible = self.runs.why_not_reproducible(model)
        self.conversation.add(turn)
        if notice := model.unknown_notice(prompt):
            yield notice
        yield from self._run(turn, answer, should_stop)

    def retry(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
        """Answer the last prompt again.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        self.conversation.back()
        return self.answer(turn.prompt, should_stop)

    def continue_answer(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
        """Continue the last answer from where it stopped.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        answer = self.model.make_answer(turn.prompt)
        answer.go_on(
            self.model.ids_before(turn, len(turn.tokens)), [token.id for token in turn.tokens], num_generated=0
        )
        turn.why_not_reproducible = "it was continued"
        return self._run(turn, answer, should_stop)

    def branch(
        self, position: int, instead: Sequence[int], should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Record]:
        """Regenerate the last answer from a position on, forcing the given tokens first, as a new turn.

        Args:
            position: of the first token (from 0) that is replaced.
            instead: the ids of the tokens to force there; they are the first records.
            should_stop: asked again and again.

        Raises:
            UsageError: there is no answer.
        """
        old, model = self._last(), self.model
        kept = old.tokens[:position]
        before = model.history(self.turns[:-1])
        answer = model.make_answer(old.prompt, turns=before, index=len(before))
        answer.go_on(model.ids_before(old, position), [token.id for token in kept], num_generated=position)
        turn = replace(
            old, tokens=kept, finished=None, changes=[change for change in old.changes if change[0] < position],
            model=model_reference(model.info), settings=answer.request.settings,
            why_not_reproducible="it goes on from another token",
        )  # fmt: skip
        self.conversation.back()
        self.conversation.add(turn)
        return self._run(turn, answer, should_stop, instead)

    def pick(self, number: int) -> Variant:
        """Continue from an answer (1 is the first) of the newest comparison; if another model made it, that one opens.

        Raises:
            UsageError: there is no such answer, it is empty, or another conversation has begun since.
            ModelError: its model is gone.
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
        return variant

    def _run(
        self, turn: Turn, answer: Answer, should_stop: Callable[[], bool], first: Sequence[int] = ()
    ) -> Iterator[Record]:
        """Stream an answer, whose first tokens may be given, and record it in its turn."""
        for record in self._records(answer, should_stop, first):
            turn.record(record, answer.request.settings)
            yield record

    def _records(self, answer: Answer, should_stop: Callable[[], bool], first: Sequence[int]) -> Iterator[Record]:
        model = self.model
        if not model.wait(should_stop):
            yield Finished("interrupted", 0, 0.0, answer.request.seed)
            return
        for id in first:
            if answer.finished is None:
                logprob = next(one.logprob for one in model.engine.probabilities(answer.request) if one.id == id)
                yield from answer.take([SampledToken(id, logprob)], model.engine.context_length)
        if answer.finished is None:
            yield from stream(model.engine, answer, should_stop)

    def _last(self) -> Turn:
        if not self.turns:
            raise UsageError("there is no answer yet", "type a prompt first")
        return self.turns[-1]
