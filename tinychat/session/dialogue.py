"""A dialogue: prompts as turns of one conversation, one after the other, for `--conversation` and chats in Python."""

from collections.abc import Callable, Iterable, Mapping

from tinychat.config.settings import Settings
from tinychat.generate.answer import Answer
from tinychat.generate.engine import derive_seed, fresh_seed
from tinychat.generate.prompts import RunningText
from tinychat.session.conversation import Turn
from tinychat.session.open_model import OpenModel


class Dialogue:
    """The turns so far, which the model sees before the next prompt, in the way of its mode.

    A chat model sees turns, a completion model one running text, and a translation model nothing but the prompt.
    `seed` (default: a fresh one) gives each answer its random numbers, unless the answer has a seed of its own.
    """

    def __init__(self, model: OpenModel, seed: int | None = None, turns: Iterable[Turn] = ()) -> None:
        self.turns: list[Turn] = []
        self.seed = fresh_seed() if seed is None else seed
        self._model = model
        self._text = RunningText(model.prompt_encoder) if model.info.mode == "completion" else None
        for turn in turns:
            self.add(turn)

    def make_answer(
        self,
        prompt: str,
        settings: Callable[[], Settings],
        *,
        seed: int | None = None,
        index: int | None = None,
        top_logprobs: int = 0,
        logit_bias: Mapping[int, float] | None = None,
    ) -> Answer:
        """Return the answer to the next prompt, for an engine to begin.

        `index` is that of the prompt in the input, by default the number of turns; other arguments are those of
        `OpenModel.make_answer`.
        """
        is_chat = self._model.info.mode == "chat"
        if seed is None:
            # A chat has one seed, as at the prompt: the number of turns before an answer tells it from others.
            seed = self.seed if is_chat else derive_seed(self.seed, len(self.turns) if index is None else index)
        return self._model.make_answer(
            prompt, turns=self._model.history(self.turns), text=self._text, settings=settings, seed=seed,
            top_logprobs=top_logprobs, logit_bias=logit_bias,
        )  # fmt: skip

    def add(self, turn: Turn) -> None:
        """Append a turn."""
        self.turns.append(turn)
        if self._text is not None:
            self._text.add(turn.prompt, turn.answer)
