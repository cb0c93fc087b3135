"""Compare the recipe `shakespeare` with a plain torch loop: `python tests/bench/plain_loop.py --steps 600 --rounds 2`.

The loop is the textbook one: torch's `TransformerEncoderLayer` of the same sizes with the same Adam and windows, in
f32, without intermediate evaluations. It gets as much processor time, on one thread, as tinychat took for its steps and
everything around them: start-up, one evaluation per epoch, samples, checkpoints, the report. Processor time is
comparable on a machine shared with other programs. Losses are over the whole validation split; evaluating the loop is
not counted.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.corpus.encoding import open_bytes
from tinychat.corpus.registry import fetch, find_dataset, find_file
from tinychat.store import paths

TEXT = "tinyshakespeare"
CONTEXT, STRIDE, BATCH, WIDTH, HEADS, INNER, LAYERS, DROPOUT = 100, 25, 64, 128, 8, 512, 2, 0.1
EPOCH = 628
"""in steps"""


class Plain(nn.Module):
    """A transformer with embeddings scaled by √d, fixed positions, post-norm layers and a head."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.02)  # as in the recipe; torch's default learns more slowly
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, DROPOUT, layer_norm_eps=1e-6, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, vocab_size)
        angles = torch.arange(CONTEXT)[:, None] * torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10_000) / WIDTH))
        self.register_buffer("places", torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, ids: Tensor) -> Tensor:
        time = ids.shape[1]
        x = F.dropout(self.embedding(ids) * WIDTH**0.5 + self.places[:time], DROPOUT, self.training)
        return self.head(self.layers(x, mask=self.mask[:time, :time], is_causal=True))


def read_ids() -> Tensor:
    folder = fetch(TEXT, cache=paths.datasets_folder(), mirror=paths.mirror())
    with open_bytes(find_file(folder, find_dataset(TEXT).files[0])) as file:
        codes = np.frombuffer(file.read(), np.uint8)
    return torch.from_numpy(np.unique(codes, return_inverse=True)[1].astype(np.int64))


def train_plain(seconds: float) -> None:
    """Train until the process has used so many seconds of processor time, then print steps and loss."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    ids = read_ids()
    train, val = ids.split([int(0.9 * len(ids)), len(ids) - int(0.9 * len(ids))])
    model = Plain(int(ids.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    starts = torch.arange(0, len(train) - CONTEXT - 1, STRIDE)
    steps = 0
    while True:
        for rows in starts[torch.randperm(len(starts))].split(BATCH):
            windows = train[rows[:, None] + torch.arange(CONTEXT + 1)]
            loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if time.process_time() > seconds:
                print(json.dumps({"steps": steps, "loss": whole_loss(model.eval(), val)}))  # noqa: T201
                return


@torch.inference_mode()
def whole_loss(model: Plain, ids: Tensor) -> float:
    """Return the loss in nats per character over non-overlapping windows."""
    total = 0.0
    for first in range(0, len(ids) - 1, CONTEXT):
        x = ids[first : min(first + CONTEXT, len(ids) - 1)]
        total += float(F.cross_entropy(model(x[None])[0], ids[first + 1 : first + 1 + len(x)], reduction="sum"))
    return total / (len(ids) - 1)


def train_ours(steps: int, mirror: Path) -> dict[str, float]:
    """Train tinychat in an empty home, and return its steps, loss and seconds of processor time."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"TINYCHAT_HOME": home, "TINYCHAT_MIRROR": str(mirror), "OMP_NUM_THREADS": "1"}
        call = [sys.executable, "-m", "tinychat", "train", "--recipe", "shakespeare", "--steps", str(steps)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        call += ["--evaluate-every", str(EPOCH), "--threads", "1", "--json"]
        out = subprocess.run(call, check=True, text=True, stdout=subprocess.PIPE, env=environment).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = json.loads(out.splitlines()[-1])
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"steps": ended["step"], "loss": ended["loss"], "seconds": round(seconds, 1)}


def main() -> None:
    """Parse the command line, run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600, help="number of tinychat's steps")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--plain-seconds", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.plain_seconds:
        train_plain(args.plain_seconds)
        return
    mirror = fetch(TEXT, cache=paths.datasets_folder(), mirror=paths.mirror()).parent
    for _ in range(args.rounds):
        ours = train_ours(args.steps, mirror)
        print("tinychat", ours, flush=True)  # noqa: T201
        call = [sys.executable, __file__, "--plain-seconds", str(ours["seconds"])]
        print("plain   ", json.loads(subprocess.run(call, check=True, text=True, stdout=subprocess.PIPE).stdout))  # noqa: T201


if __name__ == "__main__":
    main()
