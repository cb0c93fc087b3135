"""What the loop around the model costs: batches, events, checkpoints, and looking whether anything was asked."""

import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np
from torch import Tensor

from tinychat.model.config import ModelConfig
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import Batch, Batches
from tinychat.train.checkpoint import State, save_checkpoint
from tinychat.train.control import Control
from tinychat.train.data import TrainingText
from tinychat.train.journal import Journal
from tinychat.train.learner import Learner
from tinychat.train.loop import SAVE_INTERVAL, SAVE_SHARE, Loop
from tinychat.train.plan import Plan, Portion, TextFacts
from tinychat.train.publishing import Publisher
from tinychat.train.recipe import Recipe

TOKENS = 1_000_000
"""of a text of noise; as many as a usual one has"""
NEVER = 1 << 40
WARM_UP = 3
"""steps"""


class TimedLearner(Learner):
    """Notes when each step began and ended; waits for the device, so that nothing is hidden behind what it computes."""

    def __init__(self, config: ModelConfig, recipe: Recipe, control: Control, seconds: float) -> None:
        super().__init__(config, recipe)
        self.moments: list[tuple[float, float]] = []
        self._control, self._seconds = control, seconds

    def step(self, batch: Batch, factor: float, step: int = 0) -> Tensor:
        """As the learner's; the run is over after the seconds."""
        began = time.perf_counter()
        loss = super().step(batch, factor, step)
        loss.item()
        self.moments.append((began, time.perf_counter()))
        self._control.stopping = self.moments[-1][1] - self.moments[0][0] > self._seconds and step > WARM_UP
        return loss


def loop_share(
    recipe: Recipe, config: ModelConfig, batch_size: int, tokenizer: Tokenizer, folder: Path, seconds: float
) -> float:
    """The fraction of training that the loop takes, without evaluations and samples, found by training on noise.

    Checkpoints count as often as a long run writes them.

    Args:
        recipe: with device and precision filled in.
        config: of the model; it has the tokenizer's vocabulary.
        folder: what is written is written in here, and removed: on the disk that runs are on.
        seconds: of training.
    """
    random = np.random.default_rng(0)
    train, val = (random.integers(config.vocab_size, size=n).astype(tokenizer.dtype) for n in (TOKENS, TOKENS // 10))
    facts = TextFacts("noise", len(train), 1, len(train) + len(val), config.vocab_size, tokenizer.kind)
    text = TrainingText(
        facts, "completion", tokenizer, None, None, (train,), val, prompt="", fingerprint="", notices=()
    )
    recipe = dataclasses.replace(recipe, evaluate_every=NEVER, sample_tokens=0)
    plan = Plan(recipe, config, batch_size, None, NEVER, 1.0, (Portion(1.0, len(train)),), len(val), 1, 1)
    saves: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".bench-") as scratch:

        def save(state: State) -> None:
            began = time.perf_counter()
            save_checkpoint(Path(scratch, "checkpoints"), state)
            saves.append((began, time.perf_counter()))

        control = Control(Path(scratch, "control.jsonl"))
        learner = TimedLearner(config, recipe, control, seconds)
        batches = Batches(train, config.context, batch_size, recipe.seed)
        journal = Journal(Path(scratch, "events.jsonl"))
        publisher = Publisher(RunFolder(Path(scratch)), lambda step, weights: None, tied=config.tie_embeddings)
        Loop(plan, learner, batches, text, control, journal.write, save, lambda: None, publisher).run()
        journal.close()
    first, last = learner.moments[WARM_UP - 1][1], learner.moments[-1][1]
    stepping = sum(ended - began for began, ended in learner.moments[WARM_UP:])
    saving = sum(ended - began for began, ended in saves if first < began < last)
    cost = sum(ended - began for began, ended in saves) / len(saves)
    return 1 - stepping / (last - first - saving) + min(SAVE_SHARE, cost / SAVE_INTERVAL)
