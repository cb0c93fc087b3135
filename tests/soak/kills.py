"""Kills short training runs at random moments, resumes them, and compares them with a run that nobody disturbed.

    python tests/soak/kills.py --seed 0 --count 1000

After each kill no event may be torn; at the end of each run its weights must be those of the undisturbed run, bit by
bit, and no temporary file may remain. Descriptors and memory of the killing process are counted before and after.
"""

import argparse
import hashlib
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch

import tinychat.train.trainer  # noqa: F401 - once, not in each forked process
from tinychat.store.models import read_info, read_weights
from tinychat.store.runs import RunFolder
from tinychat.train import __main__ as trainer
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import load_recipe

STEPS, EVALUATE_EVERY = 12, 3
MAX_KILLS = 4
"""Kills of one run before it may end."""
WORDS = ["the", "fox", "sees", "a", "bird", "in", "an", "old", "tree", "and", "says", "nothing", "at", "all"]


def main() -> int:
    """Kill runs as the command line says, and print what was found; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--count", type=int, default=1000, help="number of kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        os.environ["TINYCHAT_HOME"] = folder
        os.environ["OMP_NUM_THREADS"] = "1"
        return soak(Path(folder), options.seed, options.count)


def soak(home: Path, seed: int, count: int) -> int:
    """Make the undisturbed run, then others until there were `count` kills."""
    torch.set_num_threads(1)
    draw = random.Random(seed)
    text = home / "text.txt"
    text.write_text(" ".join(draw.choice(WORDS) for _ in range(20_000)), encoding="utf-8")
    began = time.monotonic()
    whole = make_run(text)
    if train(whole) != 0:
        sys.stdout.write(f"the undisturbed run failed: {list(whole.events())[-1:]}\n")
        return 1
    seconds = time.monotonic() - began
    expected = weights_digest(whole)
    before = usage()
    counts: Counter[str] = Counter(kills=0, runs=0, differ=0, litter=0, torn=0, failed=0)
    counts["before a checkpoint"] = 0
    while counts["kills"] < count:
        run = make_run(text)
        for _ in range(min(draw.randint(1, MAX_KILLS), count - counts["kills"])):
            if train(run, kill_after=draw.uniform(0, seconds)) != -signal.SIGKILL:
                break
            counts["kills"] += 1
            counts["torn"] += not are_whole(run)
            counts["before a checkpoint"] += not any(run.checkpoints.glob("step-*"))
        counts["runs"] += 1
        if train(run) == 0:
            counts["differ"] += weights_digest(run) != expected
        else:
            counts["failed"] += 1
        counts["torn"] += not are_whole(run)
        counts["litter"] += len(find_litter(home))
        shutil.rmtree(run.path)
        shutil.rmtree(run.final_folder, ignore_errors=True)
    after = usage()
    sys.stdout.write(
        f"{counts['kills']:,} kills of {counts['runs']:,} runs in {time.monotonic() - began:,.0f} s, "
        f"{counts['before a checkpoint']:,} before a checkpoint: {counts['differ']:,} models differ, "
        f"{counts['failed']:,} runs failed, {counts['litter']:,} temporary files, {counts['torn']:,} torn events; "
        f"descriptors {before[0]} → {after[0]}, memory {before[1]:,} → {after[1]:,} MB\n"
    )
    return int(any(counts[kind] for kind in ("differ", "failed", "litter", "torn")))


def usage() -> tuple[int, int]:
    """Return the number of open descriptors, and the peak of memory in MB."""
    return len(list(Path("/dev/fd").iterdir())), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def make_run(text: Path) -> RunFolder:
    """Make a run that is small enough to end within a second."""
    fields = {
        "sources": [str(text)], "steps": STEPS, "evaluate_every": EVALUATE_EVERY, "n_layer": 1, "d_model": 32,
        "context_length": 16, "batch_size": 8, "sample_tokens": 0, "threads": 1, "precision": "f32", "device": "cpu",
    }  # fmt: skip
    return prepare_run(load_recipe().merged(fields))


def train(run: RunFolder, kill_after: float | None = None) -> int:
    """Train in a forked process, which is killed after some seconds; return its exit code."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            code = trainer.main([str(run.path)])
        finally:
            os._exit(code)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def are_whole(run: RunFolder) -> bool:
    """Return whether each line of the events is one, with its end."""
    data = run.events_file.read_bytes() if run.events_file.exists() else b""
    return data[-1:] in (b"", b"\n") and data.count(b"\n") == sum(1 for _ in run.events())


def weights_digest(run: RunFolder) -> str:
    """Return a digest of the weights that a run ended with."""
    digest = hashlib.sha256()
    for name, weight in sorted(read_weights(read_info(run.final_folder)).items()):
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode() + weight.numpy().tobytes())
    return digest.hexdigest()


def find_litter(home: Path) -> list[Path]:
    """Return the temporary files that were left."""
    return [path for path in home.rglob("*") if path.suffix in (".tmp", ".old")]


if __name__ == "__main__":
    sys.exit(main())
