"""Compare nanoGPT's and tinychat's time to equal loss: `python tests/bench/train_vs_peer.py --peer NANOGPT`.

The peer trains by its README's recipe for a CPU on tinyshakespeare. tinychat trains on the same text with only a time
limit: the first of `--minutes` after which its loss is no higher than the peer's. It does so in several ways
(`--ways`): as by default, where n-gram counts alone reach the peer's loss within a few steps, and, like for like, with
a transformer alone, in f32 and in bf16. Peer and ways alternate for `--rounds` rounds,
since the speed of a machine varies over time. All losses are over the whole validation split, the last tenth, in
non-overlapping windows of the model's own context length, and are measured after the clock has stopped. tinychat starts
with an empty home each time, so its time includes tokenizing; the peer's text is tokenized beforehand.

The peer runs in a copy, so nothing is written to the given folder. `--peer-steps 50` is a quick trial.
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
from tinychat.store import paths

TEXT = "tinyshakespeare"
STEPS = 2000
MINUTES = [0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.4, 0.5]
"""in minutes"""

WAYS = {
    "default": [],
    "layers-f32": ["--ngram-order", "0", "--precision", "f32"],
    "layers-bf16": ["--ngram-order", "0", "--precision", "bf16"],
}
"""name → flags of `tinychat train`"""

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
"""program run in the peer's folder: prints the loss of its saved checkpoint"""


@dataclass
class Run:
    """A training run."""

    name: str
    loss: float
    """nats per character over the whole validation split"""
    training: float
    """seconds in the loop: steps and the evaluations between them"""
    whole: float
    """seconds from the start of the process to its end"""
    steps: int
    curve: list[tuple[float, float]]
    """seconds of training, and the loss the program itself measured then on part of the split"""


def prepare_peer(peer: Path, copy: Path, text: bytes) -> None:
    """Copy the peer and let it tokenize the text."""
    shutil.copytree(peer, copy, ignore=shutil.ignore_patterns(".git", "out*", "assets"))
    data = copy / "data" / "shakespeare_char"
    (data / "input.txt").write_bytes(text)
    if importlib.util.find_spec("requests") is None:
        (data / "requests.py").touch()  # imported only for a download that is not needed
    run([sys.executable, "prepare.py"], cwd=data)


def run(call: list[str], **where: object) -> str:
    """Run a command and return its standard output."""
    return subprocess.run(call, check=True, text=True, stdout=subprocess.PIPE, **where).stdout


def train_peer(copy: Path, steps: int) -> Run:
    """Train the peer from scratch."""
    call = [sys.executable, "train.py", *RECIPE, f"--max_iters={steps}", f"--lr_decay_iters={steps}"]
    if steps < 250:
        call.append(f"--eval_interval={steps}")
    start = time.perf_counter()
    out = run(call, cwd=copy, env=os.environ | {"PYTHONWARNINGS": "ignore"})
    whole = time.perf_counter() - start
    seconds, curve = 0.0, []
    for line in out.splitlines():
        if evaluation := re.match(r"step \d+: .*val loss ([\d.]+)", line):
            curve.append((seconds, float(evaluation[1])))
        elif duration := re.match(r"iter \d+: .*time ([\d.]+)ms", line):
            seconds += float(duration[1]) / 1000
    loss = float(run([sys.executable, "-c", WHOLE_LOSS], cwd=copy).split()[-1])
    return Run("nanoGPT", loss, seconds, whole, steps, curve)


def train_ours(way: str, minutes: float, mirror: Path) -> Run:
    """Train tinychat in one of `WAYS` for a given time in an empty home."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"TINYCHAT_HOME": home, "TINYCHAT_MIRROR": str(mirror)}
        tinychat = [sys.executable, "-m", "tinychat"]
        call = [*tinychat, "train", TEXT, "--name", "ours", "--minutes", str(minutes), "--json", *WAYS[way]]
        start = time.perf_counter()
        out = run(call, env=environment)
        whole = time.perf_counter() - start
        events = [json.loads(line) for line in out.splitlines()]
        last = [event for event in events if event["event"] == "stepped"][-1]
        evaluations = [event for event in events if event["event"] == "evaluated" and event["step"] <= last["step"]]
        points = [(event["training_seconds"], event["loss"]) for event in evaluations]
        curve = [(seconds, loss) for seconds, loss in points if seconds <= last["seconds"]]
        loss = json.loads(run([*tinychat, "eval", "ours", TEXT, "--overlap", "0", "--json"], env=environment))["loss"]
    return Run(f"{way} --minutes {minutes:g}", loss, last["seconds"], whole, last["step"], curve)


def train_until(way: str, ladder: list[float], target: float, mirror: Path) -> list[Run]:
    """Train for increasing times until the loss is no higher than the target."""
    runs: list[Run] = []
    for minutes in ladder:
        try:
            runs.append(train_ours(way, minutes, mirror))
        except subprocess.CalledProcessError:  # too short a time even to start
            report(f"  {way} --minutes {minutes:g}: no step")
            continue
        report(f"  {describe(runs[-1])}")
        if runs[-1].loss <= target:
            break
    return runs


def describe(one: Run) -> str:
    return (
        f"{one.name:25} loss {one.loss:.4f} over the whole split, {one.steps:,} steps, "
        f"{one.training:.2f} s of training, {one.whole:.2f} s in all"
    )


def report(line: str = "") -> None:
    print(line, flush=True)  # noqa: T201


def show_curves(runs: list[Run]) -> None:
    """Print seconds of training and loss: intermediate evaluations of each program, then the whole split at the end."""
    points = [(seconds, one.name, loss, "a part") for one in runs for seconds, loss in one.curve]
    points += [(one.training, one.name, one.loss, "all") for one in runs]
    report(f"\n{'training, s':>12}  {'loss':>7}  {'of':6}  by")
    for seconds, name, loss, part in sorted(points):
        report(f"{seconds:12.2f}  {loss:7.4f}  {part:6}  {name}")


def show_ratios(pairs: list[tuple[Run, Run]]) -> None:
    """Print how much sooner tinychat reaches the peer's loss in one way, by round, and the medians."""
    report(f"\n{pairs[0][1].name.partition(' ')[0]}")
    report(f"{'':8}{'nanoGPT, s':>12}{'tinychat, s':>13}{'ratio':>8}")
    for name in ("training", "whole"):
        ratios = []
        for peer, ours in pairs:
            theirs, mine = getattr(peer, name), getattr(ours, name)
            ratios.append(theirs / mine)
            report(f"{name:8}{theirs:12.2f}{mine:13.2f}{ratios[-1]:8.1f}")
        report(f"{name:8}{'median':>25}{statistics.median(ratios):8.1f}")


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", type=Path, required=True, help="checkout of nanoGPT")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--minutes", type=float, nargs="+", default=MINUTES, help="time limits for tinychat, in increasing order"
    )
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="of tinychat to train")
    parser.add_argument(
        "--peer-steps", type=int, default=STEPS, help="number of the peer's steps; fewer for a quick trial"
    )
    args = parser.parse_args()
    folder = fetch(TEXT, cache=paths.datasets_folder(), mirror=paths.mirror())
    with open_bytes(find_file(folder, find_dataset(TEXT).files[0])) as file:
        text = file.read()
    pairs: dict[str, list[tuple[Run, Run]]] = {way: [] for way in args.ways}
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "peer"
        prepare_peer(args.peer, copy, text)
        for number in range(args.rounds):
            report(f"round {number + 1} of {args.rounds}")
            peer = train_peer(copy, args.peer_steps)
            report(f"  {describe(peer)}")
            for way, rounds in pairs.items():
                ours = train_until(way, args.minutes, peer.loss, folder.parent)
                show_curves([peer, *ours])
                report()
                if not ours or ours[-1].loss > peer.loss:
                    sys.exit(f"no value of --minutes reached {peer.loss:.4f}: add a longer one")
                rounds.append((peer, ours[-1]))
    for rounds in pairs.values():
        show_ratios(rounds)


if __name__ == "__main__":
    main()
