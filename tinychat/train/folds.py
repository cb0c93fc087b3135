"""The parts that a text falls into, so that what is learned from can be left out of what is counted. Needs no torch."""

from tinychat.text.arrays import Ids

FOLDS = 8


def split_folds(ids: Ids) -> list[Ids]:
    """The parts of a text, [N], as long as each other, by position."""
    return [ids[len(ids) * fold // FOLDS : len(ids) * (fold + 1) // FOLDS] for fold in range(FOLDS)]


def find_fold(place: int, length: int) -> int:
    """The part that a place of a text of that length stands in."""
    return place * FOLDS // length
