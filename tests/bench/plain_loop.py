"""The recipe `shakespeare` against a plain torch loop: `python tests/bench/plain_loop.py --seconds 60 --rounds 2`.

The loop is what a textbook writes down: torch's own `TransformerEncoderLayer` of the same sizes with the same Adam, on
the same windows, in f32, with nothing measured on the way. Both take turns, whole processes of the same length, and the
losses are over the whole validation split, measured when the clock has stopped.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tinychat.store import places
from tinychat.text.datasets import fetch, find_dataset, find_file
from tinychat.text.decoding import open_bytes

TEXT = "tinyshakespeare"
CONTEXT, STRIDE, BATCH, WIDTH, HEADS, INNER, LAYERS, DROPOUT = 100, 25, 64, 128, 8, 512, 2, 0.1
LEAVING = 1.0
"""seconds that the process takes to end"""


class Plain(nn.Module):
    """Embeddings scaled by √d and fixed positions, layers with the norm after, and a head."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.02)  # as the recipe; torch's own learns more slowly
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
    folder = fetch(TEXT, cache=places.datasets_folder(), mirror=places.mirror())
    with open_bytes(find_file(folder, find_dataset(TEXT).files[0])) as file:
        codes = np.frombuffer(file.read(), np.uint8)
    return torch.from_numpy(np.unique(codes, return_inverse=True)[1].astype(np.int64))


def train_plain(seconds: float) -> None:
    """Trains until so many seconds after the command; prints steps and loss."""
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
            if time.time() > seconds:
                print(json.dumps({"steps": steps, "loss": whole_loss(model.eval(), val)}))  # noqa: T201
                return


@torch.inference_mode()
def whole_loss(model: Plain, ids: Tensor) -> float:
    """Nats per character, in windows that do not overlap."""
    total = 0.0
    for first in range(0, len(ids) - 1, CONTEXT):
        x = ids[first : min(first + CONTEXT, len(ids) - 1)]
        total += float(F.cross_entropy(model(x[None])[0], ids[first + 1 : first + 1 + len(x)], reduction="sum"))
    return total / (len(ids) - 1)


def train_ours(seconds: float, mirror: Path) -> dict[str, float]:
    """Trains for a time, in an empty home."""
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"TINYCHAT_HOME": home, "TINYCHAT_MIRROR": str(mirror)}
        call = [sys.executable, "-m", "tinychat", "train", "--recipe", "shakespeare", "--minutes", str(seconds / 60)]
        out = subprocess.run([*call, "--json"], check=True, text=True, stdout=subprocess.PIPE, env=environment).stdout
        ended = json.loads(out.splitlines()[-1])
    return {"steps": ended["step"], "loss": ended["loss"], "best_step": ended["best_step"]}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each whole process, the plain one's look apart")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--plain-until", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.plain_until:
        train_plain(given.plain_until)
        return
    mirror = fetch(TEXT, cache=places.datasets_folder(), mirror=places.mirror()).parent
    for _ in range(given.rounds):
        until = time.time() + given.seconds - LEAVING
        call = [sys.executable, __file__, "--plain-until", str(until)]
        plain = json.loads(subprocess.run(call, check=True, text=True, stdout=subprocess.PIPE).stdout)
        print("plain    ", plain, flush=True)  # noqa: T201
        began = time.perf_counter()
        ours = train_ours(given.seconds, mirror)
        print("tinychat ", ours, f"{time.perf_counter() - began:.1f} s", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
