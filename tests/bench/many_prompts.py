"""Many prompts one after the other and as a batch that is refilled: `python tests/bench/many_prompts.py [MODEL]`.

    --prompts N        1,000 by default
    --tokens N         of each answer; 64 by default
    --slices N         into which the prompts fall: each way answers a slice, then the next way does; 10 by default
    --ways WORDS       leaves out all ways without these words: `native`, `batch`, …
    --ends             lets answers end where the model ends them
    --greedy           takes the likeliest token, always
    --threads N        one, and processor time, as other programs take their share of the clock; 0: as many as each
                       engine takes by itself, and the clock, on a machine where nothing else is at work

Every way has the same seed, and must say the same, byte for byte. Ratios are those of neighbours in time, their median
over the slices.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tinychat.generate.engine import Engine
from tinychat.generate.loading import open_engine
from tinychat.generate.stream import Answer, Batch, drive
from tinychat.session import Session

BEGINNINGS = ("hello there", "good morning", "tell me", "i wonder", "listen", "my dear friend", "well now", "once more")
MIDDLES = ("what do you think of", "why do people like", "do you remember", "where can i find", "who made")
ENDINGS = ("the sea", "old books", "music", "a cup of tea", "the king", "long walks", "rain", "the moon and the stars")


@dataclass(frozen=True)
class Way:
    """Which engine answers, and whether many prompts at once."""

    name: str
    engine: Engine
    together: bool


def prompts() -> Iterator[str]:
    """Texts of different lengths, no two of them the same."""
    for number in itertools.count():
        for beginning, middle, ending in itertools.product(BEGINNINGS, MIDDLES, ENDINGS):
            yield f"{beginning}, {middle} {ending}?" + f" {number}" * (number > 0)


def answer_all(way: Way, make: Callable[[int], Answer], places: range) -> dict[int, list[int]]:
    """The ids of the answers to the prompts at some places, one after the other or as a batch."""
    batch, waiting = Batch(way.engine), iter(places)
    most = way.engine.batch_size if way.together else 1
    answers: dict[int, Answer] = {}

    def admit() -> bool:
        for place in itertools.islice(waiting, most - len(batch.answers)):
            answers[place] = make(place)
            batch.add(answers[place])
        return False

    for _ in drive(batch, admit=admit):
        pass
    return {place: answer.ids for place, answer in answers.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smalltalk")
    for name, default in (("prompts", 1000), ("tokens", 64), ("slices", 10), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ways", default="")
    parser.add_argument("--ends", action="store_true")
    parser.add_argument("--greedy", action="store_true")
    given = parser.parse_args()
    session = Session()
    info = session.open_model(given.model).info
    for setting, value in (("seed", 1), ("threads", given.threads or None), ("max_tokens", given.tokens)):
        session.settings.set(setting, value)
    clock = time.process_time if given.threads else time.perf_counter
    if given.greedy:
        session.settings.set("temperature", 0)
    texts = list(itertools.islice(prompts(), given.prompts))

    def make(place: int) -> Answer:
        answer = session.model.make_answer(texts[place], index=place)
        if not given.ends:
            answer.request.end_ids = frozenset()
        return answer

    def engine(name: str) -> Engine:
        return open_engine(info, replace(session.settings.current, engine=name))

    ways = [
        Way(f"{name}, {how}", engine(name), together)
        for name in ("torch", "native")
        for how, together in (("one by one", False), ("batch", True))
        if all(word in f"{name}, {how}" for word in given.ways.split())
    ]
    rates: dict[str, list[float]] = {way.name: [] for way in ways}
    said: dict[str, dict[int, list[int]]] = {way.name: {} for way in ways}
    for way in ways:
        answer_all(way, make, range(2))
    for piece in range(given.slices):
        places = range(piece * given.prompts // given.slices, (piece + 1) * given.prompts // given.slices)
        for way in ways:
            began = clock()
            made = answer_all(way, make, places)
            tokens = sum(map(len, made.values())) - sum(len(make(place).ids) for place in places)
            rates[way.name].append(tokens / (clock() - began))
            said[way.name] |= made
    print(f"{info.summary}, {given.prompts:,} prompts, {given.tokens} tokens; median (lowest to highest)")  # noqa: T201
    for way in ways:
        first = next(other for other in ways if other.name.split(",")[0] == way.name.split(",")[0])
        ratio = statistics.median(a / b for a, b in zip(rates[way.name], rates[first.name], strict=True))
        same = sum(said[way.name][place] == ids for place, ids in said[first.name].items())
        spread = f"({min(rates[way.name]):,.0f} to {max(rates[way.name]):,.0f})"
        print(  # noqa: T201
            f"{way.name:20} {statistics.median(rates[way.name]):8,.0f} tokens/s {spread:20}"
            f" {ratio:5.2f} of {first.name}; {same:,} of {given.prompts:,} answers the same"
        )


if __name__ == "__main__":
    main()
