"""Compare answering many prompts sequentially and in a refilled batch: `python tests/bench/many_prompts.py [MODEL]`.

    --prompts N        number of prompts (default: 1,000)
    --tokens N         tokens per answer (default: 64)
    --slices N         slices of the prompts; the variants alternate after each slice (default: 10)
    --ways WORDS       run only variants whose names contain these words: `native`, `batch`, …
    --ends             let answers end where the model ends them
    --greedy           decode greedily
    --threads N        number of threads, measured in processor time (default: 1); 0 uses each engine's own choice
                       and wall-clock time, and requires an otherwise idle machine

All variants use the same seed and must return the same tokens. Ratios are medians over the slices.
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tinychat.generate.answer import Answer
from tinychat.generate.engine import Engine
from tinychat.generate.loading import open_engine
from tinychat.generate.stream import AnswerBatch, drive
from tinychat.session.session import Session

BEGINNINGS = ("hello there", "good morning", "tell me", "i wonder", "listen", "my dear friend", "well now", "once more")
MIDDLES = ("what do you think of", "why do people like", "do you remember", "where can i find", "who made")
ENDINGS = ("the sea", "old books", "music", "a cup of tea", "the king", "long walks", "rain", "the moon and the stars")


@dataclass(frozen=True)
class Variant:
    """An engine, and whether it answers many prompts at once."""

    name: str
    engine: Engine
    batched: bool


def prompts() -> Iterator[str]:
    """Yield distinct texts of different lengths."""
    for number in itertools.count():
        for beginning, middle, ending in itertools.product(BEGINNINGS, MIDDLES, ENDINGS):
            yield f"{beginning}, {middle} {ending}?" + f" {number}" * (number > 0)


def answer_all(variant: Variant, make: Callable[[int], Answer], indices: range) -> dict[int, list[int]]:
    """Return the answers' ids by prompt index, computed sequentially or as a batch."""
    batch, waiting = AnswerBatch(variant.engine), iter(indices)
    most = variant.engine.batch_size if variant.batched else 1
    answers: dict[int, Answer] = {}

    def admit() -> bool:
        for index in itertools.islice(waiting, most - len(batch.answers)):
            answers[index] = make(index)
            batch.add(answers[index])
        return False

    for _ in drive(batch, admit=admit):
        pass
    return {index: answer.ids for index, answer in answers.items()}


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smalltalk")
    for name, default in (("prompts", 1000), ("tokens", 64), ("slices", 10), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--ways", default="")
    parser.add_argument("--ends", action="store_true")
    parser.add_argument("--greedy", action="store_true")
    args = parser.parse_args()
    session = Session()
    info = session.open_model(args.model).info
    for setting, value in (("seed", 1), ("threads", args.threads or None), ("max_tokens", args.tokens)):
        session.settings.set(setting, value)
    clock = time.process_time if args.threads else time.perf_counter
    if args.greedy:
        session.settings.set("temperature", 0)
    texts = list(itertools.islice(prompts(), args.prompts))

    def make(index: int) -> Answer:
        answer = session.model.make_answer(texts[index], index=index)
        if not args.ends:
            answer.request.end_ids = frozenset()
        return answer

    def engine(name: str) -> Engine:
        return open_engine(info, replace(session.settings.current, engine=name))

    variants = [
        Variant(f"{name}, {how}", engine(name), batched)
        for name in ("torch", "native")
        for how, batched in (("one by one", False), ("batch", True))
        if all(word in f"{name}, {how}" for word in args.ways.split())
    ]
    rates: dict[str, list[float]] = {variant.name: [] for variant in variants}
    answers: dict[str, dict[int, list[int]]] = {variant.name: {} for variant in variants}
    for variant in variants:
        answer_all(variant, make, range(2))
    for number in range(args.slices):
        indices = range(number * args.prompts // args.slices, (number + 1) * args.prompts // args.slices)
        for variant in variants:
            start = clock()
            answered = answer_all(variant, make, indices)
            tokens = sum(map(len, answered.values())) - sum(len(make(index).ids) for index in indices)
            rates[variant.name].append(tokens / (clock() - start))
            answers[variant.name] |= answered
    print(f"{info.summary}, {args.prompts:,} prompts, {args.tokens} tokens; median (lowest to highest)")  # noqa: T201
    for variant in variants:
        first = next(other for other in variants if other.name.split(",")[0] == variant.name.split(",")[0])
        ratio = statistics.median(a / b for a, b in zip(rates[variant.name], rates[first.name], strict=True))
        same = sum(answers[variant.name][index] == ids for index, ids in answers[first.name].items())
        spread = f"({min(rates[variant.name]):,.0f} to {max(rates[variant.name]):,.0f})"
        print(  # noqa: T201
            f"{variant.name:20} {statistics.median(rates[variant.name]):8,.0f} tokens/s {spread:20}"
            f" {ratio:5.2f} of {first.name}; {same:,} of {args.prompts:,} answers the same"
        )


if __name__ == "__main__":
    main()
