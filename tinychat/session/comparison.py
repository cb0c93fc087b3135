"""A comparison: several answers to one prompt, generated together, of which one may become a turn."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
from tinychat.events import Finished, Record
from tinychat.generate.answer import Answer
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.open_model import OpenModel, ShouldStop
from tinychat.session.run_monitor import RunMonitor


@dataclass(frozen=True)
class Variant:
    """The label, model, settings and seed of one of the answers."""

    name: str
    model: OpenModel
    settings: Settings
    seed: int
    closes_model: bool = False
    """Whether to free the model once all answers are finished."""


class Comparison:
    """Answers to one prompt, one for each variant; the picked one becomes the turn at `index` of the current branch.

    The newest weights of the training run that is followed are loaded first.
    """

    def __init__(
        self, conversation: Conversation, prompt: str, index: int, variants: Sequence[Variant], runs: RunMonitor
    ) -> None:
        self.conversation, self.variants = conversation, variants
        self.turns = [Turn(prompt) for _ in variants]
        self._prompt, self._runs = prompt, runs
        self._history = conversation.turns[:index]

    def answer(self, should_stop: ShouldStop = lambda: False) -> Iterator[tuple[int, Record]]:
        """Generate all answers, each model's in one batch; yield every record with the index of its answer.

        The last record of each answer is `Finished`.

        Raises:
            ModelError: If a model is damaged.
            GenerationError: If a model gave NaN or infinite logits.
        """
        self._runs.load_newest_weights(should_stop)
        batches: dict[OpenModel, AnswerBatch] = {}
        indices: dict[Answer, int] = {}
        try:
            for index, variant in enumerate(self.variants):
                model = variant.model
                if not model.wait(should_stop):
                    break
                answer = self._answer(variant)
                turn = self.turns[index]
                turn.prompt_ids, turn.model = list(answer.ids), model.reference
                turn.settings, turn.why_not_reproducible = variant.settings, self._runs.why_not_reproducible(model)
                indices[answer] = index
                batches.setdefault(model, AnswerBatch(model.engine, should_stop)).add(answer)
                if notice := model.unknown_notice(self._prompt):
                    yield index, notice
            for answer, record in drive(*batches.values()):
                self._record(indices[answer], record)
                yield indices[answer], record
            for index, variant in list(enumerate(self.variants))[len(indices) :]:  # interrupted before they began
                self._record(index, finished := Finished("interrupted", 0, 0.0, variant.seed))
                yield index, finished
        finally:
            for variant in self.variants:
                if variant.closes_model:
                    variant.model.close()

    def variant(self, number: int) -> Variant:
        """Return the variant of the answer of a number (from 1).

        Raises:
            UsageError: If there is no such answer, or it is empty.
        """
        if not 1 <= number <= len(self.variants):
            raise UsageError(f"there is no answer {number}", f"`/pick 1` to `/pick {len(self.variants)}` choose one")
        if not self.turns[number - 1].tokens:
            raise UsageError(f"answer {number} is empty", "choose another one")
        return self.variants[number - 1]

    def pick(self, number: int) -> None:
        """Make the answer of a number (from 1) the current turn of the conversation."""
        turn = self.turns[number - 1]
        if any(one is turn for one in self.conversation.all):
            self.conversation.current = turn
        else:
            self.conversation.current = self._history[-1] if self._history else None
            self.conversation.add(turn)

    def _answer(self, variant: Variant) -> Answer:
        model = variant.model
        turns = model.history(self._history)
        return model.make_answer(self._prompt, turns=turns, settings=lambda: variant.settings, seed=variant.seed)

    def _record(self, index: int, record: Record) -> None:
        self.turns[index].record(record, self.variants[index].settings)
