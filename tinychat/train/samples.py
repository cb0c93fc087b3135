"""What a model in training says: the same engine and the same stream of records as anywhere else."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinychat.events import Token
from tinychat.generate.prompts import Prompting
from tinychat.generate.stream import Answer, Batch
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.transformer import Transformer
from tinychat.settings import Settings


@dataclass(frozen=True)
class Sampler:
    """Makes samples.

    Args:
        prompting: how prompts reach the model.
        tokens: the most that a sample has.
        temperature: None: the usual one.
    """

    prompting: Prompting
    tokens: int
    temperature: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether samples go on from their prompts; else they answer them."""
        return self.prompting.template is None and self.prompting.reader is None

    def sample(self, model: Transformer, prompts: Sequence[str], seeds: Sequence[int]) -> list[str]:
        """An answer to each prompt with its seed; the model is left as it was, in training mode or not."""
        usual = Settings(max_tokens=self.tokens)
        settings = usual if self.temperature is None else replace(usual, temperature=self.temperature)
        prompting = self.prompting
        answers = [
            Answer(
                prompting.tokenizer,
                prompting.ids(prompt, max_tokens=self.tokens),
                lambda: settings,
                seed=seed,
                end_ids=prompting.end_ids,
                source=prompting.source(prompt),
            )
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]
        was_training = model.training
        model.eval()
        try:
            batch = Batch(TorchEngine(model))
            for answer in answers:
                batch.add(answer)
            texts = {id(answer): "" for answer in answers}
            while batch.answers:
                for answer, records in batch.step():
                    texts[id(answer)] += "".join(record.text for record in records if isinstance(record, Token))
        finally:
            model.train(was_training)
        return [texts[id(answer)] for answer in answers]
