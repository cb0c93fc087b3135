"""What a model in training says: the same engine and the same stream of records as anywhere else."""

from dataclasses import dataclass

from tinychat.events import Token
from tinychat.generate.prompts import Prompting
from tinychat.generate.stream import Answer, Batch
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.transformer import Transformer
from tinychat.settings import Settings
from tinychat.text.chat import ChatTemplate
from tinychat.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class Sampler:
    """Makes samples.

    Args:
        tokenizer: of the model.
        template: of a chat model: the prompt is what the user says.
        tokens: the most that a sample has.
    """

    tokenizer: Tokenizer
    template: ChatTemplate | None
    tokens: int

    def sample(self, model: Transformer, prompt: str, seeds: list[int]) -> list[str]:
        """An answer to the prompt for each seed; the model is left as it was, in training mode or not."""
        settings = Settings(max_tokens=self.tokens)
        prompting = Prompting(self.tokenizer, model.config.context, self.template)
        ids, ends = prompting.ids(prompt, max_tokens=self.tokens), prompting.end_ids
        answers = [Answer(self.tokenizer, ids, lambda: settings, seed=seed, end_ids=ends) for seed in seeds]
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
