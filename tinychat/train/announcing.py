"""A plan in words: what is said before training starts."""

from pathlib import Path

from tinychat.events import Planned
from tinychat.model.config import ModelConfig
from tinychat.textutil import count, duration
from tinychat.train.plan import Machine, Plan, TextFacts
from tinychat.train.planner import estimate_memory


def announce(plan: Plan, facts: TextFacts, machine: Machine, parameters: int) -> Planned:
    """What is said before it starts: three lines."""
    config, tokens = plan.config, round(plan.batch_size * plan.row_tokens)
    rows, shards = -(-plan.batch_size // machine.processes), machine.processes if plan.recipe.strategy == "fsdp" else 1
    memory = estimate_memory(config, parameters, rows, plan.train_tokens, shards)
    ends = f"the ends of each, {plan.val_tokens:,} in all," if facts.mix else f"the last {plan.val_tokens:,}"
    if facts.rows:
        kind = "pairs" if facts.source_vocab_size else "documents"
        ends = f"{facts.rows - sum(text.rows for text in plan.texts):,} of {facts.rows:,} {kind}"
    kept = f"{ends} measure the model" if plan.val_tokens else "none kept for validation"
    times = " and ".join(f"{epochs:,.1f}" for epochs in plan.epochs_of_each)
    through = "through them" if facts.mix else "through the text"
    by_clock = plan.available is not None
    seconds = plan.available if plan.available is not None else plan.steps * plan.step_seconds
    begun = f", begun as {Path(plan.recipe.from_model).name}" if plan.recipe.from_model else ""
    steps = ("about " if by_clock else "") + count(plan.steps, "step")
    if plan.recipe.epochs is not None:
        steps = f"{count(plan.recipe.epochs, 'epoch')}, {steps}"
    different = f"{facts.vocab_size:,}"
    if facts.source_vocab_size:
        different = f"{facts.source_vocab_size:,} → {different}"
    lines = (
        f"text   {facts.name}: {count(facts.characters, 'character')}, {count(facts.tokens, 'token')} "
        f"({facts.tokenizer}, {different} different); {kept}",
        f"model  {layers(config)}, {count(config.n_head, 'head')}, "
        f"context {config.context}, {count(parameters, 'parameter')}, dropout {config.dropout:g}{begun}",
        f"time   about {duration(seconds)} on {machine}: {steps} of {count(tokens, 'token')}, "
        f"{times} times {through}; {memory / 1e6:,.0f} MB of memory{' each' * (machine.processes > 1)}",
    )
    return Planned(
        lines=lines,
        parameters=parameters,
        tokens=plan.train_tokens,
        steps=None if by_clock else plan.steps,
        seconds=plan.available,
        device=str(machine),
        memory=memory,
        epochs=plan.recipe.epochs,
    )


def layers(config: ModelConfig) -> str:
    """`4 layers of 128`; `3 + 3 layers of 256` with an encoder."""
    number = count(config.n_layer, "layer")
    return f"{f'{config.n_encoder_layer} + ' if config.encoder_decoder else ''}{number} of {config.d_model}"
