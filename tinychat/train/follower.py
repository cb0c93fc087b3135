"""A process that does its share of each step and knows nothing but what the leader tells it."""

import signal
import sys

from tinychat.train.processes import OUT_OF_MEMORY, Place, end_with, is_out_of_memory


def follow(place: Place, parent: int | None) -> int:
    """Follows the leader to the end of training; returns the exit code.

    Args:
        parent: end when this process is no longer the parent.
    """
    if parent is not None:
        end_with(parent)
    for number in (signal.SIGINT, signal.SIGTERM):  # who stops, and when, is for the leader to say
        signal.signal(number, signal.SIG_IGN)
    from tinychat.train.learner import Learner
    from tinychat.train.machine import set_up
    from tinychat.train.team import Team

    team = Team(place)
    learner: Learner | None = None
    try:
        while (order := team.hear())[0] != "leave":
            method, arguments = order
            if method == "make":
                config, recipe, counted = arguments
                set_up(recipe, recipe.device, place.local_size)
                learner = Learner(config, recipe, team, counted)
            else:
                getattr(learner, method)(*arguments)
    except Exception as error:
        print(f"process {place.rank + 1} of {place.size}: {error}", file=sys.stderr)  # noqa: T201 - into the log
        return OUT_OF_MEMORY if is_out_of_memory(error) else 1
    team.leave()
    return 0
