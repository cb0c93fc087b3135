"""The end of a run: what the model says, what of it is copied, how good it is, and where the time went."""

import time
from itertools import cycle, islice
from pathlib import Path
from typing import Literal

from tinychat.corpus.overlap import longest_copy
from tinychat.events import Ended, Evaluated, LineReader, Stepped
from tinychat.train.curves import Curves, recent_loss
from tinychat.train.evaluation import evaluate
from tinychat.train.loop import Loop
from tinychat.train.plan import LONGEST_COPY

FINAL_SAMPLES = 3


def summarize(
    loop: Loop, events_file: Path, *, reason: Literal["done", "stopped"], folder: Path, start_seconds: float
) -> Ended:
    """The last event of a run.

    Args:
        loop: concluded: its model has the weights that are kept.
        events_file: of the run, from its first sitting on.
        folder: of the model.
        start_seconds: from the command to the first step.
    """
    best, text, plan = loop.best, loop.text, loop.plan
    assert best is not None  # the run is concluded
    samples: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    if plan.recipe.sample_tokens:
        count = max(FINAL_SAMPLES, len(loop.prompts))
        prompts = tuple(islice(cycle(loop.prompts), count))
        samples = tuple(loop.speak(prompts, range(count)))
    until = time.monotonic() + LONGEST_COPY
    copied = longest_copy(samples, text.train, text.tokenizer, lambda: time.monotonic() > until)
    longest = max(text.parts, key=len)
    trained = evaluate(loop.learner.model, longest, plan.glance_windows, trained_on=True) if len(text.val) else best

    events = list(LineReader(events_file).events())
    steps = [event for event in events if isinstance(event, Stepped)]
    curves = Curves()
    for event in events:
        curves.take(event)
    last_loss = next(loss for step, loss in reversed(curves.validation) if step == loop.step)
    tokens = loop.batches.tokens_per_batch
    return Ended(
        reason=reason,
        step=loop.step,
        loss=best.loss,
        perplexity=best.perplexity,
        bits_per_character=best.bits_per_character(text.characters_per_token),
        seconds=loop.seconds,
        folder=str(folder),
        samples=samples,
        split=text.split,
        best_step=loop.state.best_step,
        training_loss=trained.loss,
        last_loss=best.loss if loop.state.best_step == loop.step else last_loss,
        last_training_loss=recent_loss(curves.training),
        overfits_since=curves.overfits_since,
        copied=copied.text,
        copied_position=copied.position,
        copied_searched=copied.searched,
        start_seconds=start_seconds,
        step_seconds=sum(
            max(0, event.step - before) * tokens / event.tokens_per_second
            for before, event in zip([0, *(event.step for event in steps)], steps, strict=False)
        ),
        evaluation_seconds=sum(event.seconds for event in events if isinstance(event, Evaluated)),
        accuracy=best.accuracy,
        prompts=prompts,
    )
