"""What a model in training says: the same engine and the same stream of records as anywhere else."""

from collections.abc import Sequence
from dataclasses import replace

from tinychat.events import Token
from tinychat.generate.prompts import Prompting
from tinychat.generate.stream import Answer, Batch, drive
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.transformer import Transformer
from tinychat.settings import Settings


def make_samples(
    model: Transformer,
    prompting: Prompting,
    prompts: Sequence[str],
    seeds: Sequence[int],
    tokens: int,
    temperature: float | None = None,
) -> list[str]:
    """An answer to each prompt with its seed; the model is left as it was, in training mode or not.

    Args:
        tokens: the most that an answer has.
        temperature: None: the usual one.
    """
    usual = Settings(max_tokens=tokens)
    settings = usual if temperature is None else replace(usual, temperature=temperature)
    was_training = model.training
    model.eval()
    try:
        batch = Batch(TorchEngine(model))
        texts: dict[Answer, str] = {}
        for prompt, seed in zip(prompts, seeds, strict=True):
            answer = Answer(
                prompting.tokenizer,
                prompting.ids(prompt, max_tokens=tokens),
                lambda: settings,
                seed=seed,
                end_ids=prompting.end_ids,
                source=prompting.source(prompt),
            )
            batch.add(answer)
            texts[answer] = ""
        for answer, record in drive(batch):
            if isinstance(record, Token):
                texts[answer] += record.text
    finally:
        model.train(was_training)
    return list(texts.values())
