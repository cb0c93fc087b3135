"""What the loss curves of a run say: what is left when their noise is gone, and whether the model overfits."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tinychat.events import Evaluated, Event, Stepped

Points = Sequence[tuple[float, float]]
"""steps and losses, in the order of steps"""

SPAN = 0.05
"""the share of a run over which the loss of training is averaged"""
RISE = 0.005
"""how far validation loss must rise, as a share of it, before it is more than noise"""


@dataclass
class Curves:
    """Losses by step, as the events of a run tell them; a run that goes back takes back what came after."""

    training: list[tuple[float, float]] = field(default_factory=list)
    validation: list[tuple[float, float]] = field(default_factory=list)
    """of the part kept for it, or of the text itself where there is none"""
    is_kept: bool = True
    """whether a part is kept for validation"""

    def take(self, event: Event) -> None:
        """Notes what happened."""
        if isinstance(event, Stepped):
            while self.training and self.training[-1][0] >= event.step:
                self.training.pop()
            while self.validation and self.validation[-1][0] > event.step:  # which may come before its step is told
                self.validation.pop()
            self.training.append((event.step, event.loss))
        elif isinstance(event, Evaluated):
            self.validation.append((event.step, event.loss))
            self.is_kept = event.split != "train"

    @property
    def overfits_since(self) -> int | None:
        """The step of the lowest validation loss, where that has risen since, and that of training fallen; or None."""
        return overfits_since(self.training, self.validation) if self.is_kept else None


def smoothed(points: Points, span: float = SPAN) -> list[tuple[float, float]]:
    """Each point's mean with its neighbours, as many before as behind it: nothing is late, the beginning stays steep.

    Args:
        span: the share of all steps that the neighbours lie in.
    """
    reach = span / 2 * (points[-1][0] - points[0][0]) if points else 0.0
    means = []
    first = last = 0
    total = 0.0
    for index, (step, _) in enumerate(points):
        near = min(reach, step - points[0][0])  # or the first points would be averaged with later, lower ones alone
        while last < len(points) and points[last][0] <= step + near:
            total += points[last][1]
            last += 1
        while points[first][0] < step - near:
            total -= points[first][1]
            first += 1
        means.append((step, total / (last - first) if last > first else points[index][1]))
    return means


def recent_loss(losses: Points, step: float | None = None) -> float | None:
    """The mean loss over the last twentieth of the run until `step`; None where there is none.

    Args:
        losses: of training.
        step: None: the last one.
    """
    until = [point for point in losses if step is None or point[0] <= step]
    if not until:
        return None
    reach = SPAN * (losses[-1][0] - losses[0][0])
    recent = [loss for at, loss in until if at >= until[-1][0] - reach]
    return sum(recent) / len(recent)


def overfits_since(losses: Points, evaluations: Points) -> int | None:
    """The step of the lowest validation loss, where that has risen since while the loss of training fell; else None."""
    if not evaluations:
        return None
    best, lowest = min(evaluations, key=lambda point: (point[1], point[0]))
    step, loss = max(evaluations, key=lambda point: point[0])
    before, now = recent_loss(losses, best), recent_loss(losses, step)
    rose = step > best and loss > (1 + RISE) * lowest
    return int(best) if rose and before is not None and now is not None and now < before else None
