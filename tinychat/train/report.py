"""The report at the end of a run, with the same words in the terminal and on the model card, and summaries of runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from tinychat.errors import RunError, TinychatError
from tinychat.events import Ended, Evaluated, Event, Failed, Planned, Stepped
from tinychat.store.runs import RunFolder
from tinychat.textutil import count, duration, percent, quote
from tinychat.train.recipe import RECIPE_FIELDS, load_recipe

SLIGHT_GAP = 0.1
"""Relative gap between validation and training loss above which the model overfits a little."""


def report(ended: Ended) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report, each a heading and a text; fewer for an `Ended` event of an older version."""
    if ended.start_loss is not None:
        yield "start", describe_start(ended)
    if _has_risen(ended) and (ended.start_loss is None or ended.best_step):
        yield "last", describe_last(ended)
    if ended.training_loss is not None:
        yield "overfits", describe_overfitting(ended)
    if ended.mixture:
        yield "mixture", describe_mixture(ended)
    if ended.samples and ended.copied_searched:
        yield "copies", describe_copying(ended)
    yield "time", describe_times(ended)


def _has_risen(ended: Ended) -> bool:
    """Return whether the last weights are not the best; those of a run that was extended may be kept nevertheless."""
    last, best = ended.last_part_loss, ended.best_part_loss
    return last is not None and best is not None and last >= best and ended.best_step != ended.step


def _has_gap(ended: Ended) -> bool:
    """Return whether the validation loss is well above the training loss; false if only one of the two is known."""
    if ended.split == "train" or ended.training_loss is None:
        return False
    return ended.loss - ended.training_loss > SLIGHT_GAP * ended.training_loss


def warnings(ended: Ended) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report on what went wrong: the model overfits, or is no better than its start."""
    is_wrong = {"overfits": ended.overfits_since is not None or _has_gap(ended), "start": ended.best_step == 0}
    yield from ((heading, text) for heading, text in report(ended) if is_wrong.get(heading))


def format_samples(ended: Ended) -> list[str]:
    """Return the samples, each after its prompt if prompts differ."""
    if len(set(ended.prompts)) < 2:
        return list(ended.samples)
    return [f"{prompt} → {sample}" for prompt, sample in zip(ended.prompts, ended.samples, strict=True)]


def describe_start(ended: Ended) -> str:
    """Describe what the run made of the model that it started from."""
    assert ended.start_loss is not None
    before = f"{ended.start} had {ended.split} {ended.start_loss:.4f}"
    if ended.best_step == 0:
        return f"{before}, and no step made that better: its weights are kept"
    return f"{before}, {ended.start_loss - ended.loss:.4f} above this"


def describe_last(ended: Ended) -> str:
    """Describe the last weights, whose loss rose since the best ones: a difference within one measure."""
    rise = (ended.last_part_loss or 0.0) - (ended.best_part_loss or 0.0)
    over = f"over {ended.part_tokens:,} tokens" if ended.part_tokens < ended.tokens else "over all tokens"
    rose = f"{ended.split} loss rose by {rise:.4f}, {over}, from step {ended.best_step:,}, whose weights are kept"
    return f"at step {ended.step:,} {rose}"


def describe_overfitting(ended: Ended) -> str:
    """Describe whether the model overfits, with the gap between validation and training loss."""
    if ended.split == "train" or ended.training_loss is None:
        return "not known: no part of the text was kept for validation"
    gap = ended.loss - ended.training_loss
    side = "above" if gap >= 0 else "below"
    losses = f"train loss is {ended.training_loss:.4f}, {ended.split} {abs(gap):.2f} {side} it"
    if ended.overfits_since is not None:
        return f"yes, since step {ended.overfits_since:,}, whose weights are kept: {losses}"
    if _has_gap(ended):
        return f"a little: {losses}" + ("" if _has_risen(ended) else "; val was not rising")
    return f"no: {losses}"


def describe_mixture(ended: Ended) -> str:
    """Describe what the parts of a model with n-grams reach alone, and their mean shares."""
    layers, counts, matches = (ended.mixture[name] for name in ("layers", "counts", "matches"))
    right = f"found at {percent(matches['found'], 0)} of tokens, right {percent(matches['accuracy'], 0)} of the time"
    return (
        f"layers alone {layers['loss']:.4f} (share {percent(layers['share'], 0)}), "
        f"counts alone {counts['loss']:.4f} ({percent(counts['share'], 0)}), "
        f"matches {right} ({percent(matches['share'], 0)}); over {ended.mixture_tokens:,} tokens"
    )


def describe_copying(ended: Ended) -> str:
    """Describe the longest span that samples copied from the text."""
    if not ended.copied:
        return "nothing word for word"
    where = f"{percent(ended.copied_position, 0)} into the text"
    searched = "" if ended.copied_searched >= 1 else f" (looked at: its first {percent(ended.copied_searched, 0)})"
    return f"at most {count(len(ended.copied), 'character')} word for word: {quote(ended.copied)}, {where}{searched}"


def describe_times(ended: Ended) -> str:
    """Describe where the time went."""
    total = f"{duration(ended.start_seconds + ended.seconds)} in all"
    if not ended.step_seconds:
        return total
    other = max(0.0, ended.seconds - ended.step_seconds - ended.evaluation_seconds)
    return (
        f"{total}: {duration(ended.start_seconds)} to start, "
        f"{duration(ended.step_seconds)} in {count(ended.step, 'step')}, "
        f"{duration(ended.evaluation_seconds)} evaluating, {duration(other)} sampling and saving"
    )


# --- summaries of runs ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunSummary:
    """The state, progress, loss and speed of a run."""

    name: str
    state: str
    """At work, done, stopped, failed, interrupted, or damaged: its recipe has a bad value, or no events can be read."""
    step: int
    steps: int
    """Total number of steps, estimated for a run with a time limit; number of steps done if the run is over."""
    parameters: int | None
    loss: float | None
    """Loss in nats per token on that split: of the model, or the lowest so far."""
    split: str
    """What the loss is of: val, or train where nothing was held out."""
    is_provisional: bool
    """Whether that is of a part of the split only."""
    accuracy: float | None
    tokens_per_second: float | None
    """Average over the steps, without evaluations and checkpoints."""
    seconds: float
    remaining: float | None
    """Estimated seconds left; None if the run is not at work, or has taken no step since it began or went on."""
    recipe: Mapping[str, Any]


def read_run_summary(run: RunFolder) -> RunSummary:
    """Return the summary of a run, by its events."""
    alive = run.is_running()  # asked before the events are read, so that none of its last events is missed
    parameters: int | None = None
    best: Evaluated | Ended | None = None
    stepped: Stepped | None = None
    last: Event | None = None
    remaining: float | None = None
    steps, seconds_per_token = 0, 0.0  # sums over the steps
    recipe: dict[str, Any] = {}
    is_damaged = False
    try:
        recipe = dict(chain.from_iterable(part.items() for part in load_recipe(run.recipe_file).to_dict().values()))
    except RunError:  # a version with other fields wrote it
        pass
    except TinychatError:
        is_damaged = True
    try:
        events = list(run.events())
    except OSError:
        events, is_damaged = [], True
    for last in events:
        match last:
            case Planned():
                parameters, remaining = last.parameters, None
            case Stepped():
                done = last.step - (stepped.step if stepped else 0)
                if done > 0 and last.tokens_per_second > 0:
                    steps, seconds_per_token = steps + done, seconds_per_token + done / last.tokens_per_second
                stepped, remaining = last, last.remaining
            case Evaluated(best=True) | Ended():
                best = last
    step = last.step if isinstance(last, Ended) else stepped.step if stepped else 0
    return RunSummary(
        name=run.name,
        state="at work" if alive else "damaged" if is_damaged else _ending(last),
        step=step,
        steps=step if isinstance(last, Ended) or stepped is None else stepped.steps,
        parameters=parameters,
        loss=best.loss if best else None,
        split=best.split if best else "val",
        is_provisional=isinstance(best, Evaluated) and best.is_part,
        accuracy=best.accuracy if best else None,
        tokens_per_second=steps / seconds_per_token if seconds_per_token else None,
        seconds=last.seconds if isinstance(last, Ended) else stepped.seconds if stepped else 0.0,
        remaining=remaining if alive and not run.earlier.is_dir() else None,
        recipe=recipe,
    )


def _ending(last: Event | None) -> str:
    """Return how a run ended, by its last event."""
    if isinstance(last, Failed):
        return "stopped" if last.is_stopped else "failed"
    return last.reason if isinstance(last, Ended) else "interrupted"


def find_differences(summaries: Sequence[RunSummary]) -> list[str]:
    """Return the recipe fields in which runs differ, in the order of a recipe."""
    return [name for name in RECIPE_FIELDS if len({str(summary.recipe.get(name)) for summary in summaries}) > 1]
