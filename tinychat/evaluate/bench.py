"""How quick tinychat is on this machine, and how near to what the machine allows.

Rates are compared with limits that are measured in the same run: the matrix products that torch makes a second, and
the speed at which weights can be read. Both vary by ten per cent from run to run on a shared machine.
"""

import contextlib
import dataclasses
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tinychat.config.settings import SETTINGS, Settings
from tinychat.errors import UsageError
from tinychat.generate.engine import Engine, Request
from tinychat.generate.loading import native_threads, open_engine
from tinychat.generate.native.build import Unavailable
from tinychat.generate.native.engine import PRECISIONS, NativeEngine, choose_precision
from tinychat.model.config import ModelConfig
from tinychat.model.loading import choose_device, load_model
from tinychat.model.transformer import Transformer
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import ModelInfo, read_tokenizer
from tinychat.store.runs import RunFolder
from tinychat.store.weights import TensorFile
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import Batch, Batches
from tinychat.train.checkpoint import Publisher, State, save_checkpoint
from tinychat.train.data import TrainingText
from tinychat.train.event_log import Control, EventLog
from tinychat.train.loop import SAVE_INTERVAL, SAVE_SHARE, Loop, RunIO, Training
from tinychat.train.machine import find_machine, step_seconds
from tinychat.train.planner import Plan, SplitSize, TextFacts
from tinychat.train.recipe import Recipe, load_recipe
from tinychat.train.step import Learner

SECONDS = 0.5
"""that each figure is measured for"""
LOOP_SECONDS = 4.0
"""that the loop is run for: two checkpoints"""
NOISE_TOKENS = 1_000_000
"""of the text of noise that the loop trains on; as many as a usual text has"""
NEVER = 1 << 40
"""steps"""
WARMUP_STEPS = 3
DECODED = 128
"""tokens of a decoding run"""
NATIVE_PRECISIONS = tuple(name for name in PRECISIONS if name in SETTINGS["precision"].choices)
BYTES = {"f32": 4, "bf16": 2, "int8": 1}
"""of a weight"""


@dataclass(frozen=True)
class Rate:
    """A speed, and the fraction of the machine's limit that it reaches."""

    tokens_per_second: float
    fraction_of_limit: float
    limit: float
    """floating-point operations a second of matrix products, or bytes a second of reading"""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class EngineRates:
    """How quick an engine is with weights of one precision."""

    engine: str
    precision: str
    threads: int
    prefill: Rate
    decode: Rate

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Bench:
    """What was measured."""

    model: ModelInfo
    device: str
    engines: list[EngineRates]
    """the one that serves the model here first"""
    training: Rate
    training_precision: str
    training_threads: int
    loop_share: float
    """the fraction of training that goes to batches, events and checkpoints; evaluations and samples aside"""
    start_up: float
    """seconds from the start of the process to the end of an answer of one token"""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        first = self.engines[0]
        return {
            "model": self.model.name,
            "device": self.device,
            "prefill": first.prefill.to_dict(),
            "decode": first.decode.to_dict(),
            "engines": [rates.to_dict() for rates in self.engines],
            "training": self.training.to_dict()
            | {"loop_share": self.loop_share, "precision": self.training_precision, "threads": self.training_threads},
            "start_up": self.start_up,
        }


def run_bench(session: Session) -> Bench:
    """Measures the session's model, by each engine and in each precision that the settings leave open.

    Raises:
        UsageError: it translates: what is measured here goes on with a text; or no engine is as the settings want it.
        GenerationError: the native engine was asked for, and is not available here.
    """
    info, settings = session.model.info, session.settings.current
    if info.mode == "translation":
        raise UsageError(f"{info.name} translates, and bench measures what goes on with a text", "name another model")
    start_up = _median(3, lambda: _start_up(info))
    device = choose_device(settings.device)
    model = load_model(info, device)
    engines: list[EngineRates] = []
    usual_threads = torch.get_num_threads()
    for name, precision in _combinations(info, settings):
        torch.set_num_threads(usual_threads)
        try:
            engine = open_engine(info, dataclasses.replace(settings, engine=name, precision=precision))
        except (Unavailable, UsageError):  # no compiler, or a GPU
            if name == settings.engine:
                raise
            continue
        threads = native_threads(info, settings)[1] if name == "native" else torch.get_num_threads()
        if isinstance(engine, NativeEngine):
            engine.set_drafting("never")  # or tokens would come without their share of the reading
        torch.set_num_threads(threads)  # the limits are those of as many
        rates = _prefill(engine, model), _decode(engine, model, BYTES[precision])
        engines.append(EngineRates(name, precision, threads, *rates))
    if not engines:
        raise UsageError(f"no engine here decodes in {settings.precision} on {device}", "leave out --precision")
    return Bench(info, device, engines, *_training(model, device, info), start_up)


def _combinations(info: ModelInfo, settings: Settings) -> list[tuple[str, str]]:
    """Engines and precisions to measure, those that serve the model first."""
    is_half = TensorFile(info.weights_file).tensors["decoder.embedding.weight"].kind == "BF16"
    possible = {"native": NATIVE_PRECISIONS, "torch": ("f32", "bf16")}
    found = [
        (engine, "bf16" if engine == "native" and is_half and precision == "f32" else precision)  # as it keeps them
        for engine in (("native", "torch") if settings.engine == "auto" else (settings.engine,))
        for precision in possible[engine]
        if settings.precision in ("auto", precision)
    ]
    with contextlib.suppress(Unavailable):
        served = ("native", choose_precision(info, native_threads(info, settings)[0]))
        found.sort(key=lambda one: one != served)
    return list(dict.fromkeys(found))


def _start_up(info: ModelInfo) -> float:
    began = time.perf_counter()
    call = [sys.executable, "-m", "tinychat", "-m", str(info.folder), "-p", "", "-n", "1"]
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def _decode(engine: Engine, model: Transformer, weight_size: int) -> Rate:
    """Batch 1, greedy, from a short prompt: each token reads every weight but the embeddings that it does not need.

    Args:
        weight_size: bytes of a weight, as the engine reads it.
    """
    count = min(DECODED, model.config.context_length - 2)
    settings = Settings(temperature=0)

    def once() -> None:
        engine.extend([Request(0, [0], 0, settings, seed=0)], count)

    seconds = _typical_seconds(once) / count
    read = weight_size * (sum(weight.numel() for weight in model.matrices()) + model.head.weight.numel())
    limit = _reading_limit(read, model.head.weight.device)
    return Rate(1 / seconds, read / seconds / limit, limit)


def _prefill(engine: Engine, model: Transformer) -> Rate:
    """One row as long as the context, of which nothing is known from before."""
    context_length = model.config.context_length
    prompts = itertools.cycle([first] + [0] * (context_length - 1) for first in (0, 1))

    def once() -> None:
        engine.extend([Request(0, next(prompts), 0, Settings(temperature=0), seed=0)], 1)

    seconds = _typical_seconds(once)
    limit = _matrix_limit(torch.float32, model.head.weight.device)
    return Rate(context_length / seconds, _forward_operations(model) * context_length / seconds / limit, limit)


def _training(model: Transformer, device: str, info: ModelInfo) -> tuple[Rate, str, int, float]:
    """Steps of a model like this one, as the default recipe trains; precision, threads, and the share of the loop.

    The rate is that of steps alone.
    """
    threads = torch.get_num_threads()
    recipe = load_recipe().merged({"device": device, "learning_rate": 1e-4, "embedding_learning_rate": 1e-4})
    machine = find_machine(recipe)
    recipe = dataclasses.replace(recipe, device=machine.device, precision=machine.precision)
    batch_size = max(1, 2048 // model.config.context_length)
    tokens = batch_size * model.config.context_length
    seconds = step_seconds(recipe, model.config, batch_size)
    dtype = torch.bfloat16 if machine.precision == "bf16" else torch.float32
    limit = _matrix_limit(dtype, model.head.weight.device)
    done = 3 * _forward_operations(model) * tokens  # the backward pass is two products for each of the forward one
    rate = Rate(tokens / seconds, done / seconds / limit, limit)
    runs = paths.runs_folder()
    runs.mkdir(parents=True, exist_ok=True)
    share = loop_share(recipe, model.config, batch_size, read_tokenizer(info.folder), runs, LOOP_SECONDS)
    torch.set_num_threads(threads)
    return rate, machine.precision, machine.threads, share


class TimedLearner(Learner):
    """Records when each step began and ended; waits for the device, so that nothing hides behind its computation."""

    def __init__(self, config: ModelConfig, recipe: Recipe, control: Control, seconds: float) -> None:
        super().__init__(config, recipe)
        self.moments: list[tuple[float, float]] = []
        self._control, self._seconds = control, seconds

    def step(self, batch: Batch, factor: float, step: int = 0) -> Tensor:
        """Take a step; stop the run once the seconds are over."""
        began = time.perf_counter()
        loss = super().step(batch, factor, step)
        loss.item()
        self.moments.append((began, time.perf_counter()))
        self._control.stopping = self.moments[-1][1] - self.moments[0][0] > self._seconds and step > WARMUP_STEPS
        return loss


def loop_share(
    recipe: Recipe, config: ModelConfig, batch_size: int, tokenizer: Tokenizer, folder: Path, seconds: float
) -> float:
    """Train on noise; return the fraction of the time that the loop takes around steps: batches, events, checkpoints.

    Evaluations and samples are left out; checkpoints count as often as a long run writes them.

    Args:
        recipe: with device and precision filled in.
        config: of the model; it has the tokenizer's vocabulary.
        folder: what is written is written in here, and removed: on the disk that runs are on.
        seconds: of training.
    """
    random = np.random.default_rng(0)
    train, val = (
        random.integers(config.vocab_size, size=n).astype(tokenizer.dtype) for n in (NOISE_TOKENS, NOISE_TOKENS // 10)
    )
    facts = TextFacts("noise", len(train), 1, len(train) + len(val), config.vocab_size, tokenizer.kind)
    text = TrainingText(
        facts, "completion", tokenizer, None, None, (train,), val, prompt="", fingerprint="", notices=()
    )
    recipe = dataclasses.replace(recipe, evaluate_every=NEVER, sample_tokens=0)
    plan = Plan(recipe, config, batch_size, None, NEVER, 1.0, (SplitSize(1.0, len(train), len(val)),), 1, 1)
    saves: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".bench-") as scratch:

        def save(state: State) -> None:
            began = time.perf_counter()
            save_checkpoint(Path(scratch, "checkpoints"), state)
            saves.append((began, time.perf_counter()))

        control = Control(Path(scratch, "control.jsonl"))
        learner = TimedLearner(config, recipe, control, seconds)
        batches = Batches(train, config.context_length, batch_size, recipe.seed)
        log = EventLog(Path(scratch, "events.jsonl"))
        publisher = Publisher(RunFolder(Path(scratch)), lambda state: None, tied=config.tie_embeddings)
        io = RunIO(control, log.write, save, lambda: None, publisher)
        Loop(Training(plan, text, batches, learner), io).run()
        log.close()
    first, last = learner.moments[WARMUP_STEPS - 1][1], learner.moments[-1][1]
    stepping = sum(ended - began for began, ended in learner.moments[WARMUP_STEPS:])
    saving = sum(ended - began for began, ended in saves if first < began < last)
    cost = sum(ended - began for began, ended in saves) / len(saves)
    return 1 - stepping / (last - first - saving) + min(SAVE_SHARE, cost / SAVE_INTERVAL)


def _forward_operations(model: Transformer) -> float:
    """Floating-point operations of the forward pass a token: two for each weight of a matrix, and attention's."""
    config = model.config
    weights = sum(weight.numel() for weight in model.matrices()) + model.head.weight.numel()
    attention = (
        2 * 2 * config.n_layer * config.d_model * config.context_length / 2
    )  # on average half of the context is seen
    return 2.0 * weights + attention


def _matrix_limit(dtype: torch.dtype, device: torch.device) -> float:
    """Floating-point operations a second of a matrix product of a size that suits the machine."""
    size = 1024 if device.type == "cpu" else 8192
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / _typical_seconds(lambda: a @ b, device)


@torch.inference_mode()
def _reading_limit(size: int, device: torch.device) -> float:
    """Bytes a second of reading that many, again and again."""
    numbers = torch.ones(size // 4, device=device)
    return size / _typical_seconds(lambda: numbers.amax(), device)


def _typical_seconds(call: Callable[[], object], device: torch.device | None = None) -> float:
    """The median seconds of a call, repeated for a while after a warm-up."""
    call()
    times: list[float] = []
    while sum(times) < SECONDS:
        began = time.perf_counter()
        call()
        if device is not None and device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]


def _median(count: int, call: Callable[[], float]) -> float:
    return sorted(call() for _ in range(count))[count // 2]
