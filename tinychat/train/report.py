"""What is said of a run at its end: the same words in the terminal and on the model's card."""

from collections.abc import Iterator

from tinychat.events import Ended
from tinychat.textutil import count, duration, percent

SLIGHT = 0.1
"""how far, as a share of the loss of training, validation loss may lie above it before that is worth a word"""
QUOTED = 40
"""characters of a copied span that are shown"""


def report(ended: Ended) -> Iterator[tuple[str, str]]:
    """What a person wants to know beside the loss, in rows: what it is about, and how it is.

    An `Ended` that an older version wrote has fewer.
    """
    if ended.last_loss is not None and ended.best_step != ended.step:
        train = "" if ended.last_training_loss is None else f" · train {ended.last_training_loss:.4f}"
        yield "last", f"{ended.split} {ended.last_loss:.4f}{train}, at step {ended.step:,}"
    if ended.training_loss is not None:
        yield "overfits", fit(ended)
    if ended.samples and ended.copied_searched:
        yield "copies", copied(ended)
    yield "time", times(ended)


def told_samples(ended: Ended) -> list[str]:
    """The samples, each behind its prompt where prompts differ."""
    if len(set(ended.prompts)) < 2:
        return list(ended.samples)
    return [f"{prompt} → {sample}" for prompt, sample in zip(ended.prompts, ended.samples, strict=True)]


def fit(ended: Ended) -> str:
    """Whether the model overfits, with the gap."""
    if ended.split == "train" or ended.training_loss is None:
        return "not known: no part of the text was kept for validation"
    gap = ended.loss - ended.training_loss
    losses = (
        f"train loss is {ended.training_loss:.4f}, {ended.split} {abs(gap):.2f} {'above' if gap >= 0 else 'below'} it"
    )
    if ended.overfits_since is not None:
        return f"yes, since step {ended.overfits_since:,}, whose weights are kept: {losses}"
    if gap > SLIGHT * ended.training_loss:
        return f"a little: {losses}; val was not rising"
    return f"no: {losses}"


def copied(ended: Ended) -> str:
    """The longest span that samples copied."""
    if not ended.copied:
        return "nothing word for word"
    quoted = ended.copied if len(ended.copied) <= QUOTED else ended.copied[:QUOTED].rstrip() + "…"
    where = f"{percent(ended.copied_position, 0)} into the text"
    searched = "" if ended.copied_searched >= 1 else f" (looked at: its first {percent(ended.copied_searched, 0)})"
    return f"at most {count(len(ended.copied), 'character')} word for word: {quoted!r}, {where}{searched}"


def times(ended: Ended) -> str:
    """Where the time went."""
    whole = f"{duration(ended.start_seconds + ended.seconds)} in all"
    if not ended.step_seconds:
        return whole
    other = max(0.0, ended.seconds - ended.step_seconds - ended.evaluation_seconds)
    parts = (
        f"{duration(ended.start_seconds)} to start",
        f"{duration(ended.step_seconds)} in {count(ended.step, 'step')}",
        f"{duration(ended.evaluation_seconds)} evaluating",
        f"{duration(other)} sampling and saving",
    )
    return f"{whole}: {', '.join(parts)}"
