"""Several answers to one prompt, made together; one of them may be chosen to go on from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
from tinychat.events import Finished, Record
from tinychat.generate.stream import Answer, Batch, drive
from tinychat.session.conversation import Conversation, Turn
from tinychat.session.open_model import OpenModel
from tinychat.session.run_monitor import RunMonitor
from tinychat.store.models import model_reference


@dataclass(frozen=True)
class Variant:
    """How one of the answers is made.

    Args:
        name: of the answer.
        model: that makes it.
        settings: that it is made with.
        seed: that it is made from.
        closes_model: whether to free the model once all answers are made.
    """

    name: str
    model: OpenModel
    settings: Settings
    seed: int
    closes_model: bool = False


class Comparison:
    """Answers to one prompt, none of which is a turn before it is picked.

    Args:
        conversation: that the prompt belongs to.
        prompt: as typed.
        index: of the prompt in the conversation: the turn that has stood there gives way to the answer that is picked.
        variants: how the answers are made.
        runs: whose newest weights are loaded first.
    """

    def __init__(
        self, conversation: Conversation, prompt: str, index: int, variants: Sequence[Variant], runs: RunMonitor
    ) -> None:
        self.conversation, self.variants = conversation, variants
        self.turns = [Turn(prompt) for _ in variants]
        self._prompt, self._runs = prompt, runs
        self._before = conversation.turns[:index]

    def answer(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[tuple[int, Record]]:
        """Make all answers, each model's in one batch; yield every record with the index of its answer.

        The last one of each answer is `Finished`; none of them becomes a turn.
        """
        self._runs.catch_up(should_stop)
        batches: dict[OpenModel, Batch] = {}
        positions: dict[Answer, int] = {}
        try:
            for position, variant in enumerate(self.variants):
                model = variant.model
                if not model.wait(should_stop):
                    break
                answer = self._answer(variant)
                turn = self.turns[position]
                turn.prompt_ids, turn.model = list(answer.ids), model_reference(model.info)
                turn.settings, turn.why_not_reproducible = variant.settings, self._runs.why_not_reproducible(model)
                positions[answer] = position
                batches.setdefault(model, Batch(model.engine, should_stop)).add(answer)
                if notice := model.unknown_notice(self._prompt):
                    yield position, notice
            for answer, record in drive(*batches.values()):
                self._note(positions[answer], record)
                yield positions[answer], record
            for position, variant in list(enumerate(self.variants))[len(positions) :]:
                self._note(position, never := Finished("interrupted", 0, 0.0, variant.seed))
                yield position, never
        finally:
            for variant in self.variants:
                if variant.closes_model:
                    variant.model.close()

    def variant(self, number: int) -> Variant:
        """Return how an answer (1 is the first) was made.

        Raises:
            UsageError: there is no such answer, or it is empty.
        """
        if not 1 <= number <= len(self.variants):
            raise UsageError(f"there is no answer {number}", f"`/pick 1` to `/pick {len(self.variants)}` choose one")
        if not self.turns[number - 1].tokens:
            raise UsageError(f"answer {number} is empty", "choose another one")
        return self.variants[number - 1]

    def pick(self, number: int) -> None:
        """Make an answer (1 is the first) the newest turn of the conversation."""
        turn = self.turns[number - 1]
        if any(one is turn for one in self.conversation.all):
            self.conversation.here = turn
        else:
            self.conversation.here = self._before[-1] if self._before else None
            self.conversation.add(turn)

    def _answer(self, variant: Variant) -> Answer:
        before = variant.model.history(self._before)
        return variant.model.make_answer(
            self._prompt, turns=before, settings=lambda: variant.settings, seed=variant.seed, index=len(before)
        )

    def _note(self, position: int, record: Record) -> None:
        self.turns[position].record(record, self.variants[position].settings)
