"""How long nanoGPT and tinychat train to the same loss: `python tests/bench/train_vs_peer.py --peer PATH-TO-nanoGPT`.

The peer trains by its README's recipe for a CPU on tinyshakespeare; tinychat trains on the same text with nothing but a
time, the first of `--minutes` after which its loss is no higher than the peer's. Both take turns, `--rounds` times, as
a machine is not equally quick all day. Both losses are over the whole validation split, the last tenth, in windows of
the model's own context that do not overlap, and are measured when the clock has stopped. tinychat begins with an empty
home each time, so that it tokenizes the text within its time; the peer's text is tokenized before.

The peer works in a copy: nothing is written to the folder that is named. `--peer-steps 50` tries everything quickly.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tinychat.corpus.encoding import open_bytes
from tinychat.corpus.registry import fetch, find_dataset, find_file
from tinychat.store import places

TEXT = "tinyshakespeare"
STEPS = 2000
LADDER = [0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.4, 0.5]
"""minutes"""

RECIPE = [
    "config/train_shakespeare_char.py",
    "--device=cpu",
    "--compile=False",
    "--eval_iters=20",
    "--log_interval=1",
    "--block_size=64",
    "--batch_size=12",
    "--n_layer=4",
    "--n_head=4",
    "--n_embd=128",
    "--dropout=0.0",
]

WHOLE_LOSS = """
import numpy, torch
from model import GPT, GPTConfig

saved = torch.load("out-shakespeare-char/ckpt.pt", map_location="cpu", weights_only=True)
model = GPT(GPTConfig(**saved["model_args"]))
model.load_state_dict(saved["model"])
model.eval()
ids = torch.from_numpy(numpy.fromfile("data/shakespeare_char/val.bin", dtype=numpy.uint16).astype(numpy.int64))
size = saved["model_args"]["block_size"]
total, count = 0.0, 0
with torch.inference_mode():
    for first in range(0, len(ids) - 1, size):
        x = ids[first : min(first + size, len(ids) - 1)]
        _, loss = model(x[None], ids[first + 1 : first + 1 + len(x)][None])
        total, count = total + loss.item() * len(x), count + len(x)
print(total / count)
"""
"""A program for the peer's folder: the loss of the checkpoint that it has kept."""


@dataclass
class Run:
    """One training run."""

    name: str
    loss: float
    """nats per character, over the whole validation split"""
    training: float
    """seconds in the loop: steps, and the looks at the validation split between them"""
    whole: float
    """seconds from the start of the process to its end"""
    steps: int
    curve: list[tuple[float, float]]
    """seconds of training, and the loss that the program itself has seen there, over a part of the split"""


def prepare_peer(peer: Path, copy: Path, text: bytes) -> None:
    """Copies the peer and lets it tokenize the text."""
    shutil.copytree(peer, copy, ignore=shutil.ignore_patterns(".git", "out*", "assets"))
    data = copy / "data" / "shakespeare_char"
    (data / "input.txt").write_bytes(text)
    if importlib.util.find_spec("requests") is None:
        (data / "requests.py").touch()  # imported for a download that is not needed
    run([sys.executable, "prepare.py"], cwd=data)


def run(call: list[str], **where: object) -> str:
    """What a command writes to its standard output."""
    return subprocess.run(call, check=True, text=True, stdout=subprocess.PIPE, **where).stdout


def train_peer(copy: Path, steps: int) -> Run:
    """Trains the peer from the beginning."""
    call = [sys.executable, "train.py", *RECIPE, f"--max_iters={steps}", f"--lr_decay_iters={steps}"]
    if steps < 250:
        call.append(f"--eval_interval={steps}")
    began = time.perf_counter()
    out = run(call, cwd=copy, env=os.environ | {"PYTHONWARNINGS": "ignore"})
    whole = time.perf_counter() - began
    seconds, curve = 0.0, []
    for line in out.splitlines():
        if seen := re.match(r"step \d+: .*val loss ([\d.]+)", line):
            curve.append((seconds, float(seen[1])))
        elif took := re.match(r"iter \d+: .*time ([\d.]+)ms", line):
            seconds += float(took[1]) / 1000
    loss = float(run([sys.executable, "-c", WHOLE_LOSS], cwd=copy).split()[-1])
    return Run("nanoGPT", loss, seconds, whole, steps, curve)


def train_ours(minutes: float, mirror: Path) -> Run:
    """Trains for a time, in an empty home."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"TINYCHAT_HOME": home, "TINYCHAT_MIRROR": str(mirror)}
        tinychat = [sys.executable, "-m", "tinychat"]
        call = [*tinychat, "train", TEXT, "--name", "ours", "--minutes", str(minutes), "--json"]
        began = time.perf_counter()
        out = run(call, env=environment)
        whole = time.perf_counter() - began
        events = [json.loads(line) for line in out.splitlines()]
        last = [event for event in events if event["event"] == "stepped"][-1]
        looks = [event for event in events if event["event"] == "evaluated" and event["step"] <= last["step"]]
        curve = [(event["trained"], event["loss"]) for event in looks if event["trained"] <= last["seconds"]]
        loss = json.loads(run([*tinychat, "eval", "ours", TEXT, "--json"], env=environment))["loss"]
    return Run(f"tinychat --minutes {minutes:g}", loss, last["seconds"], whole, last["step"], curve)


def climb(ladder: list[float], target: float, mirror: Path) -> list[Run]:
    """Trains for longer and longer, until the loss is no higher than the target."""
    runs: list[Run] = []
    for minutes in ladder:
        runs.append(train_ours(minutes, mirror))
        tell(f"  {describe(runs[-1])}")
        if runs[-1].loss <= target:
            break
    return runs


def describe(one: Run) -> str:
    return (
        f"{one.name:25} loss {one.loss:.4f} over the whole split, {one.steps:,} steps, "
        f"{one.training:.2f} s of training, {one.whole:.2f} s in all"
    )


def tell(line: str = "") -> None:
    print(line, flush=True)  # noqa: T201


def show_curves(runs: list[Run]) -> None:
    """Seconds of training and the loss there; what each program saw on its way, and the whole split at the end."""
    points = [(seconds, one.name, loss, "a part") for one in runs for seconds, loss in one.curve]
    points += [(one.training, one.name, one.loss, "all") for one in runs]
    tell(f"\n{'training, s':>12}  {'loss':>7}  {'of':6}  by")
    for seconds, name, loss, part in sorted(points):
        tell(f"{seconds:12.2f}  {loss:7.4f}  {part:6}  {name}")


def show_ratios(pairs: list[tuple[Run, Run]]) -> None:
    """How much sooner tinychat has the peer's loss, round by round, and the medians."""
    tell(f"\n{'':8}{'nanoGPT, s':>12}{'tinychat, s':>13}{'ratio':>8}")
    for name in ("training", "whole"):
        ratios = []
        for peer, ours in pairs:
            theirs, mine = getattr(peer, name), getattr(ours, name)
            ratios.append(theirs / mine)
            tell(f"{name:8}{theirs:12.2f}{mine:13.2f}{ratios[-1]:8.1f}")
        tell(f"{name:8}{'median':>25}{statistics.median(ratios):8.1f}")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", type=Path, required=True, help="a checkout of nanoGPT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, nargs="+", default=LADDER, help="times for tinychat, shortest first")
    parser.add_argument("--peer-steps", type=int, default=STEPS, help="fewer, to try this program")
    given = parser.parse_args()
    folder = fetch(TEXT, cache=places.datasets_folder(), mirror=places.mirror())
    with open_bytes(find_file(folder, find_dataset(TEXT).files[0])) as file:
        text = file.read()
    pairs = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "peer"
        prepare_peer(given.peer, copy, text)
        for number in range(given.rounds):
            tell(f"round {number + 1} of {given.rounds}")
            peer = train_peer(copy, given.peer_steps)
            tell(f"  {describe(peer)}")
            ours = climb(given.minutes, peer.loss, folder.parent)
            show_curves([peer, *ours])
            tell()
            if ours[-1].loss > peer.loss:
                sys.exit(f"no time of --minutes reached {peer.loss:.4f}: name a longer one")
            pairs.append((peer, ours[-1]))
    show_ratios(pairs)


if __name__ == "__main__":
    main()
