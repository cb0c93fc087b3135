"""Several answers to one prompt, made together; one of them may be chosen to go on from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tinychat.conversation import Turn
from tinychat.errors import UsageError
from tinychat.events import Finished, Record
from tinychat.generate.stream import Answer, Batch, drive
from tinychat.session import Session
from tinychat.settings import Settings
from tinychat.store.models import call_of


@dataclass(frozen=True)
class Variant:
    """How one of the answers is made."""

    name: str
    session: Session
    """whose model answers"""
    settings: Settings
    seed: int


class Comparison:
    """Answers to one prompt that nothing has come of yet.

    Args:
        place: of the prompt in the conversation: what has stood there gives way to the answer that is chosen.
    """

    def __init__(self, session: Session, prompt: str, place: int, variants: Sequence[Variant]) -> None:
        self.session, self.variants = session, variants
        self.turns = [Turn(prompt) for _ in variants]
        self._prompt = prompt
        self._before = session.turns[:place]
        self._conversation = session.conversation
        self._models = [variant.session.model for variant in variants]

    def answer(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[tuple[int, Record]]:
        """Makes all answers, each model's in one batch; every record with the place of its answer.

        The last one of each answer is `Finished`; none of them becomes a turn.
        """
        self.session.runs.catch_up(should_stop)
        batches: dict[Session, Batch] = {}
        places: dict[Answer, int] = {}
        try:
            for place, variant in enumerate(self.variants):
                if not variant.session.wait(should_stop):
                    break
                answer = self._answer(variant)
                turn = self.turns[place]
                turn.prompt_ids, turn.model = list(answer.ids), call_of(variant.session.model)
                turn.settings, turn.obstacle = variant.settings, variant.session.runs.obstacle
                places[answer] = place
                batches.setdefault(variant.session, Batch(variant.session.engine, should_stop)).add(answer)
                if notice := variant.session.unknown_notice(self._prompt):
                    yield place, notice
            for answer, record in drive(*batches.values()):
                self._note(places[answer], record)
                yield places[answer], record
            for place, variant in list(enumerate(self.variants))[len(places) :]:
                self._note(place, never := Finished("interrupted", 0, 0.0, variant.seed))
                yield place, never
        finally:
            for variant in self.variants:
                if variant.session is not self.session:
                    variant.session.close()

    def pick(self, number: int) -> Turn:
        """Makes an answer (1 is the first) the newest turn; its model, if it is another, answers from now on.

        Raises:
            UsageError: there is no such answer, it is empty, or another conversation has begun since.
            ModelError: its model is gone.
        """
        if not 1 <= number <= len(self.variants):
            raise UsageError(f"there is no answer {number}", f"`/pick 1` to `/pick {len(self.variants)}` choose one")
        if not self.turns[number - 1].tokens:
            raise UsageError(f"answer {number} is empty", "choose another one")
        if self.session.conversation is not self._conversation:
            raise UsageError("another conversation has begun since", "/samples and /compare ask anew")
        model, turn = self._models[number - 1], self.turns[number - 1]
        if self.session.model.folder != model.folder:
            self.session.choose_model(str(model.folder))
            self.session.preload()
            self.session.conversation = self._conversation
        if any(one is turn for one in self._conversation.all):
            self._conversation.here = turn
        else:
            self._conversation.here = self._before[-1] if self._before else None
            self._conversation.add(turn)
        return turn

    def _answer(self, variant: Variant) -> Answer:
        before = self._before if variant.session.model.mode == "chat" else []
        return variant.session.make_answer(
            self._prompt, turns=before, settings=lambda: variant.settings, seed=variant.seed, place=len(before)
        )

    def _note(self, place: int, record: Record) -> None:
        self.turns[place].record(record, self.variants[place].settings)
