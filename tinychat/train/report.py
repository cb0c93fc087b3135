"""The report at the end of a run, with the same words in the terminal and on the model card."""

from collections.abc import Iterator

from tinychat.events import Ended
from tinychat.textutil import count, duration, percent

SLIGHT_GAP = 0.1
"""relative gap between validation and training loss above which the model overfits a little"""
MAX_QUOTED = 40
"""maximum number of characters shown of a copied span"""


def report(ended: Ended) -> Iterator[tuple[str, str]]:
    """Yield the rows of the report, each a heading and a text; fewer for an `Ended` event of an older version."""
    if ended.last_loss is not None and ended.best_step != ended.step:
        train = "" if ended.last_training_loss is None else f" · train {ended.last_training_loss:.4f}"
        yield "last", f"{ended.split} {ended.last_loss:.4f}{train}, at step {ended.step:,}"
    if ended.training_loss is not None:
        yield "overfits", describe_overfitting(ended)
    if ended.samples and ended.copied_searched:
        yield "copies", describe_copying(ended)
    yield "time", describe_times(ended)


def format_samples(ended: Ended) -> list[str]:
    """Return the samples, each after its prompt if prompts differ."""
    if len(set(ended.prompts)) < 2:
        return list(ended.samples)
    return [f"{prompt} → {sample}" for prompt, sample in zip(ended.prompts, ended.samples, strict=True)]


def describe_overfitting(ended: Ended) -> str:
    """Describe whether the model overfits, with the gap between validation and training loss."""
    if ended.split == "train" or ended.training_loss is None:
        return "not known: no part of the text was kept for validation"
    gap = ended.loss - ended.training_loss
    losses = (
        f"train loss is {ended.training_loss:.4f}, {ended.split} {abs(gap):.2f} {'above' if gap >= 0 else 'below'} it"
    )
    if ended.overfits_since is not None:
        return f"yes, since step {ended.overfits_since:,}, whose weights are kept: {losses}"
    if gap > SLIGHT_GAP * ended.training_loss:
        return f"a little: {losses}; val was not rising"
    return f"no: {losses}"


def describe_copying(ended: Ended) -> str:
    """Describe the longest span that samples copied from the text."""
    if not ended.copied:
        return "nothing word for word"
    quoted = ended.copied if len(ended.copied) <= MAX_QUOTED else ended.copied[:MAX_QUOTED].rstrip() + "…"
    where = f"{percent(ended.copied_position, 0)} into the text"
    searched = "" if ended.copied_searched >= 1 else f" (looked at: its first {percent(ended.copied_searched, 0)})"
    return f"at most {count(len(ended.copied), 'character')} word for word: {quoted!r}, {where}{searched}"


def describe_times(ended: Ended) -> str:
    """Describe where the time went."""
    total = f"{duration(ended.start_seconds + ended.seconds)} in all"
    if not ended.step_seconds:
        return total
    other = max(0.0, ended.seconds - ended.step_seconds - ended.evaluation_seconds)
    parts = (
        f"{duration(ended.start_seconds)} to start",
        f"{duration(ended.step_seconds)} in {count(ended.step, 'step')}",
        f"{duration(ended.evaluation_seconds)} evaluating",
        f"{duration(other)} sampling and saving",
    )
    return f"{total}: {', '.join(parts)}"
