"""Measure what introspection costs, and that decoding is not slowed by it: `python tests/bench/introspection.py`.

    --tokens N    tokens per answer (default: 128)
    --rounds N    rounds, each running every variant once (default: 15)

Each variant inspects the answer, or does not, and then decodes, so that any lasting effect of the inspection would slow
the decoding. One thread is used, and processor time is measured, since other programs may share the machine.
"""

import argparse
import statistics
import time
from dataclasses import replace

from tinychat.commands import COMMANDS
from tinychat.commands.results import TokenBrowser
from tinychat.session.session import Session

VARIANTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "nothing": (0, ()),
    "alternatives": (8, ()),
    "/why": (0, ("/why",)),
    "/attention": (0, ("/attention", "/attention 1", "/attention 1 1")),
    "/lens": (0, ("/lens",)),
}
"""number of top log-probabilities recorded while decoding, and commands run afterwards"""


def decode(session: Session, tokens: int, top_logprobs: int) -> float:
    """Decode an answer of exactly `tokens` tokens, and return tokens per second of processor time."""
    answer = session.model.make_answer("hello there", top_logprobs=top_logprobs)
    request = replace(answer.request, end_ids=frozenset())
    start = time.process_time()
    session.model.engine.extend([request], tokens, top_logprobs)
    return tokens / (time.process_time() - start)


def inspect(session: Session, line: str) -> float:
    """Return the seconds of processor time that a command takes."""
    start = time.process_time()
    result = COMMANDS.dispatch(session, line)
    if isinstance(result, TokenBrowser):
        result.bars_at(result.index)
    return time.process_time() - start


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smalltalk")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    session = Session()
    session.open_model(args.model)
    for name, value in (("seed", 1), ("threads", 1), ("max_tokens", args.tokens)):
        session.settings.set(name, value)
    list(session.answer("hello there"))
    decode(session, args.tokens, 0)
    rates: dict[str, list[float]] = {name: [] for name in VARIANTS}
    costs: dict[str, list[float]] = {}
    for _ in range(args.rounds):
        for name, (top_logprobs, lines) in VARIANTS.items():
            for line in lines:
                costs.setdefault(line, []).append(inspect(session, line))
            rates[name].append(decode(session, args.tokens, top_logprobs))
    plain = rates["nothing"]
    print(f"{session.model.info.summary}, {args.tokens} tokens, {args.rounds} rounds; median (lowest to highest)")  # noqa: T201
    for name, all_rates in rates.items():
        ratio = statistics.median(rate / one for rate, one in zip(all_rates, plain, strict=True))
        spread = f"({min(all_rates):,.0f} to {max(all_rates):,.0f})"
        print(f"{name:14} {statistics.median(all_rates):8,.0f} tokens/s {spread:20} {ratio:.3f} of the first")  # noqa: T201
    for line, all_seconds in costs.items():
        print(f"{line:16} {1000 * statistics.median(all_seconds):6.1f} ms")  # noqa: T201


if __name__ == "__main__":
    main()
