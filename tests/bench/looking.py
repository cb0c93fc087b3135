"""What looking inside costs, and that decoding pays nothing for it: `python tests/bench/looking.py [MODEL]`.

    --tokens N    of each answer; 128 by default
    --rounds N    each way once, in turns; 15 by default

Each way looks, or does not, and then decodes: all that looking left behind would slow what comes after it. One thread,
and processor time, as other programs take their share of the clock.
"""

import argparse
import statistics
import time
from dataclasses import replace

from tinychat.commands import COMMANDS
from tinychat.commands.results import Walk
from tinychat.session import Session

WAYS: dict[str, tuple[int, tuple[str, ...]]] = {
    "nothing": (0, ()),
    "alternatives": (8, ()),
    "/why": (0, ("/why",)),
    "/attention": (0, ("/attention", "/attention 1", "/attention 1 1")),
    "/lens": (0, ("/lens",)),
}
"""how many alternatives are recorded while decoding, and what is asked afterwards"""


def decode(session: Session, tokens: int, top_logprobs: int) -> float:
    """Tokens a second of processor time, of an answer of just so many, without an end."""
    answer = session.model.make_answer("hello there", top_logprobs=top_logprobs)
    request = replace(answer.request, end_ids=frozenset())
    began = time.process_time()
    session.model.engine.extend([request], tokens, top_logprobs)
    return tokens / (time.process_time() - began)


def look(session: Session, line: str) -> float:
    """How many seconds of processor time a command takes."""
    began = time.process_time()
    result = COMMANDS.dispatch(session, line)
    if isinstance(result, Walk):
        result.at(result.place)
    return time.process_time() - began


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smalltalk")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    session = Session()
    session.open_model(given.model)
    for name, value in (("seed", 1), ("threads", 1), ("max_tokens", given.tokens)):
        session.settings.set(name, value)
    list(session.answer("hello there"))
    decode(session, given.tokens, 0)
    rates: dict[str, list[float]] = {name: [] for name in WAYS}
    looks: dict[str, list[float]] = {}
    for _ in range(given.rounds):
        for name, (top_logprobs, lines) in WAYS.items():
            for line in lines:
                looks.setdefault(line, []).append(look(session, line))
            rates[name].append(decode(session, given.tokens, top_logprobs))
    plain = rates["nothing"]
    print(f"{session.model.info.summary}, {given.tokens} tokens, {given.rounds} rounds; median (lowest to highest)")  # noqa: T201
    for name, all_rates in rates.items():
        ratio = statistics.median(rate / one for rate, one in zip(all_rates, plain, strict=True))
        spread = f"({min(all_rates):,.0f} to {max(all_rates):,.0f})"
        print(f"{name:14} {statistics.median(all_rates):8,.0f} tokens/s {spread:20} {ratio:.3f} of the first")  # noqa: T201
    for line, all_seconds in looks.items():
        print(f"{line:16} {1000 * statistics.median(all_seconds):6.1f} ms")  # noqa: T201


if __name__ == "__main__":
    main()
