"""Benchmark prefill, decoding, training and start-up, and compare the rates with the machine's limits.

The limits are measured in the same run: the throughput of torch's matrix products for prefill and training, and the
memory bandwidth for decoding. Both vary by ten per cent from run to run on a shared machine.
"""

import contextlib
import dataclasses
import itertools
import subprocess
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
from tinychat.generate.native.engine import NativeEngine, choose_precision
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.kernel_layout import PRECISIONS, has_whole_head
from tinychat.model.loading import choose_device, load_model
from tinychat.model.transformer import Transformer
from tinychat.session.session import Session
from tinychat.store import paths
from tinychat.store.models import ModelInfo, map_weights, read_tokenizers
from tinychat.store.runs import RunFolder
from tinychat.store.weights import EMBEDDING
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import Batch, Batches
from tinychat.train.checkpoint import Publisher, State, save_checkpoint
from tinychat.train.data import TrainingText
from tinychat.train.event_log import Control, EventLog
from tinychat.train.loop import MAX_SAVE_FRACTION, SAVE_INTERVAL, Loop, RunIO, Training
from tinychat.train.machine import StepTimer, find_machine
from tinychat.train.planner import Plan
from tinychat.train.recipe import Recipe, load_recipe
from tinychat.train.sizes import SplitSize, TextFacts
from tinychat.train.step import Learner
from tinychat.untrusted import call_module

MEASURE_SECONDS = 0.5
LOOP_SECONDS = 4.0
"""Duration of the training loop's run, enough for two checkpoints."""
NOISE_TOKENS = 1_000_000
"""Number of tokens of the random text that the loop trains on, about that of a usual text."""
CPU_BATCH, GPU_BATCH = 2_048, 65_536
"""Tokens of a training step: a GPU is busy with many only."""
NEVER = 1 << 40
WARMUP_STEPS = 3
DECODE_TOKENS = 128
NATIVE_PRECISIONS = tuple(name for name in PRECISIONS if name in SETTINGS["precision"].choices)
BYTES_PER_WEIGHT = {"f32": 4, "bf16": 2, "int8": 1}


@dataclass(frozen=True)
class Rate:
    """A throughput and the machine's limit for it."""

    tokens_per_second: float
    fraction_of_limit: float
    limit: float
    """Floating-point operations per second of matrix products, or memory bandwidth in bytes per second."""


@dataclass(frozen=True)
class EngineRates:
    """The rates of an engine in one precision."""

    engine: str
    precision: str
    threads: int
    prefill: Rate
    decode: Rate


@dataclass(frozen=True)
class Bench:
    """The results of a benchmark."""

    model: ModelInfo
    device: str
    engines: list[EngineRates]
    """Rates by engine and precision; those that the model runs with by default come first."""
    training: Rate
    training_precision: str
    training_threads: int
    loop_overhead: float
    """Fraction of training time spent on batches, events and checkpoints, apart from evaluations and samples."""
    start_up: float
    """Seconds from the start of the process to the end of an answer of one token."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON output."""
        engines = [dataclasses.asdict(rates) for rates in self.engines]
        training = dataclasses.asdict(self.training) | {"loop_share": self.loop_overhead}
        training |= {"precision": self.training_precision, "threads": self.training_threads}
        return {
            "model": self.model.name, "device": self.device,
            "prefill": engines[0]["prefill"], "decode": engines[0]["decode"], "engines": engines,
            "training": training, "start_up": self.start_up,
        }  # fmt: skip


def run_bench(session: Session) -> Bench:
    """Measure the session's model with each engine and precision that the settings allow.

    Raises:
        UsageError: If the model translates, or no engine supports the settings.
        GenerationError: If the settings require the native engine, and it is not available.
    """
    info, settings = session.model.info, session.settings.current
    if info.mode == "translation":
        raise UsageError(f"{info.name} translates, and bench measures what goes on with a text", "name another model")
    device = choose_device(settings.device)
    model = load_model(info, device)  # refuses a damaged model before other processes open it
    start_up = sorted(_time_start_up(info) for _ in range(3))[1]
    engines: list[EngineRates] = []
    default_threads = torch.get_num_threads()
    for name, precision in _combinations(info, settings):
        torch.set_num_threads(default_threads)
        try:
            engine = open_engine(info, dataclasses.replace(settings, engine=name, precision=precision))
        except (Unavailable, UsageError):  # no compiler, or a GPU
            if name == settings.engine:
                raise
            continue
        threads = engine.threads if isinstance(engine, TorchEngine) else native_threads(info, settings)[1]
        if isinstance(engine, NativeEngine):
            engine.set_drafting("never")  # with speculative decoding, not each token reads all weights
        torch.set_num_threads(threads)  # measure the limits with the same number of threads
        prefill, decode = _measure_prefill(engine, model), _measure_decode(engine, model, BYTES_PER_WEIGHT[precision])
        engines.append(EngineRates(name, precision, threads, prefill, decode))
    if not engines:
        raise UsageError(f"no engine here decodes in {settings.precision} on {device}", "leave out --precision")
    return Bench(info, device, engines, *_measure_training(model, device, info), start_up)


def _combinations(info: ModelInfo, settings: Settings) -> list[tuple[str, str]]:
    """Return the engines and precisions to measure; the default of the model comes first."""
    weights = map_weights(info)
    is_half = weights[EMBEDDING].dtype == "BF16" and not any(one.largest for one in weights.values())
    possible = {"native": NATIVE_PRECISIONS, "torch": ("f32", "bf16")}
    found = [
        # The native engine keeps bf16 weights as they are.
        (engine, "bf16" if engine == "native" and is_half and precision == "f32" else precision)
        for engine in (("native", "torch") if settings.engine == "auto" else (settings.engine,))
        for precision in possible[engine]
        if settings.precision in ("auto", precision)
    ]
    with contextlib.suppress(Unavailable):
        default = ("native", choose_precision(info, native_threads(info, settings)[0]))
        found.sort(key=lambda one: one != default)
    return list(dict.fromkeys(found))


def _time_start_up(info: ModelInfo) -> float:
    """Return the seconds in which a new process answers with one token."""
    began = time.perf_counter()
    command, environment = call_module("tinychat", "-m", str(info.folder), "-p", "", "-n", "1")
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def _measure_decode(engine: Engine, model: Transformer, bytes_per_weight: int) -> Rate:
    """Measure greedy decoding of one sequence: each token reads all weights but the other tokens' embeddings."""
    count = max(1, min(DECODE_TOKENS, model.config.context_length - 2))  # one follows in any context
    settings = Settings(temperature=0)
    seconds = _median_seconds(lambda: engine.extend([Request(0, [0], 0, settings, seed=0)], count)) / count
    head_bytes = (
        4 if bytes_per_weight == BYTES_PER_WEIGHT["int8"] and has_whole_head(model.config) else bytes_per_weight
    )
    size = bytes_per_weight * sum(weight.numel() for weight in model.matrices())
    size += head_bytes * model.head.weight.numel()
    limit = _bandwidth_limit(size, model.head.weight.device)
    return Rate(1 / seconds, size / seconds / limit, limit)


def _measure_prefill(engine: Engine, model: Transformer) -> Rate:
    """Measure reading a prompt as long as the context, without a cached prefix."""
    context_length, settings = model.config.context_length, Settings(temperature=0)
    prompts = itertools.cycle([first] + [0] * (context_length - 1) for first in (0, 1))  # differ from the first token
    seconds = _median_seconds(lambda: engine.extend([Request(0, next(prompts), 0, settings, seed=0)], 1))
    limit = _matmul_limit(torch.float32, model.head.weight.device)
    return Rate(context_length / seconds, _forward_operations(model) * context_length / seconds / limit, limit)


def _measure_training(model: Transformer, device: str, info: ModelInfo) -> tuple[Rate, str, int, float]:
    """Measure training with the default recipe: the rate of steps, the precision, the threads, the loop's overhead."""
    threads = torch.get_num_threads()
    recipe = load_recipe().merged({"device": device, "learning_rate": 1e-4, "embedding_learning_rate": 1e-4})
    machine = find_machine(recipe)
    recipe = dataclasses.replace(recipe, device=machine.device, precision=machine.precision)
    batch_size = max(1, (CPU_BATCH if device == "cpu" else GPU_BATCH) // model.config.context_length)
    tokens = batch_size * model.config.context_length
    seconds = StepTimer(recipe)(model.config, batch_size)
    limit = _matmul_limit(torch.bfloat16 if machine.precision == "bf16" else torch.float32, model.head.weight.device)
    operations = 3 * _forward_operations(model) * tokens  # the backward pass has two products for each forward one
    rate = Rate(tokens / seconds, operations / seconds / limit, limit)
    runs = paths.runs_folder()
    runs.mkdir(parents=True, exist_ok=True)
    overhead = loop_overhead(recipe, model.config, batch_size, read_tokenizers(info)[0], runs, LOOP_SECONDS)
    torch.set_num_threads(threads)
    return rate, machine.precision, machine.threads, overhead


class TimedLearner(Learner):
    """Records the start and end of each step, and stops the run after some seconds."""

    def __init__(self, config: ModelConfig, recipe: Recipe, control: Control, seconds: float) -> None:
        super().__init__(config, recipe)
        self.times: list[tuple[float, float]] = []
        self._control, self._seconds = control, seconds

    def step(self, batch: Batch, factor: float, step: int = 0, progress: float = 1.0) -> Tensor:
        began = time.perf_counter()
        loss = super().step(batch, factor, step, progress)
        loss.item()  # waits for the device, so that steps hide none of the loop's time
        self.times.append((began, time.perf_counter()))
        self._control.stop_requested = self.times[-1][1] - self.times[0][0] > self._seconds and step > WARMUP_STEPS
        return loss


def loop_overhead(
    recipe: Recipe, config: ModelConfig, batch_size: int, tokenizer: Tokenizer, folder: Path, seconds: float
) -> float:
    """Train on random tokens; return the fraction of the time spent outside steps: batches, events, checkpoints.

    Evaluations and samples are left out; checkpoints, written to `folder`, count as often as a long run writes them.
    """
    random = np.random.default_rng(0)
    sizes = (NOISE_TOKENS, NOISE_TOKENS // 10)
    vocab_size = min(config.vocab_size, tokenizer.vocab_size)  # a model may have room for more
    train, val = (random.integers(vocab_size, size=size).astype(tokenizer.dtype) for size in sizes)
    facts = TextFacts("noise", len(train), 1, len(train) + len(val), config.vocab_size, tokenizer.kind)
    text = TrainingText(
        facts, "completion", tokenizer, None, None, (train,), (val,), prompt="", fingerprint="", notices=()
    )
    recipe = dataclasses.replace(recipe, evaluate_every=NEVER, sample_tokens=0)
    plan = Plan(recipe, config, batch_size, None, NEVER, 1.0, (SplitSize(1.0, len(train), len(val)),), 1)
    saves: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".bench-") as scratch:

        def save(state: State) -> None:
            began = time.perf_counter()
            save_checkpoint(run.checkpoints, state)
            saves.append((began, time.perf_counter()))

        run = RunFolder(Path(scratch))
        control, log = Control(run.control_file), EventLog(run.events_file)
        learner = TimedLearner(config, recipe, control, seconds)
        batches = Batches(train, config.context_length, batch_size, recipe.seed, config=config)
        publisher = Publisher(run, lambda state: None, tied=config.tie_embeddings)
        io = RunIO(control, log.write, save, lambda: None, publisher)
        Loop(Training(plan, text, batches, learner), io).run()
        log.close()
    first, last = learner.times[WARMUP_STEPS - 1][1], learner.times[-1][1]
    in_steps = sum(ended - began for began, ended in learner.times[WARMUP_STEPS:])
    in_saves = sum(ended - began for began, ended in saves if first < began < last)
    save_seconds = sum(ended - began for began, ended in saves) / len(saves)
    return 1 - in_steps / (last - first - in_saves) + min(MAX_SAVE_FRACTION, save_seconds / SAVE_INTERVAL)


def _forward_operations(model: Transformer) -> float:
    """Return the floating-point operations per token of the forward pass: two per weight of a matrix, and attention."""
    config = model.config
    weights = sum(weight.numel() for weight in model.matrices()) + model.head.weight.numel()
    attended = config.context_length / 2  # on average
    return 2.0 * weights + 2 * 2 * config.n_layer * config.d_model * attended


def _matmul_limit(dtype: torch.dtype, device: torch.device) -> float:
    """Return the floating-point operations per second of a matrix product of a size that suits the machine."""
    size = 1024 if device.type == "cpu" else 8192
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    return 2 * size**3 / _median_seconds(lambda: a @ b, device)


@torch.inference_mode()
def _bandwidth_limit(size: int, device: torch.device) -> float:
    """Return the memory bandwidth, in bytes per second, of reading `size` bytes again and again."""
    numbers = torch.ones(size // 4, device=device)
    return size / _median_seconds(lambda: numbers.amax(), device)


def _median_seconds(call: Callable[[], object], device: torch.device | None = None) -> float:
    """Return the median duration of a call, repeated for `MEASURE_SECONDS` after a warm-up."""
    call()
    times: list[float] = []
    while sum(times) < MEASURE_SECONDS:
        began = time.perf_counter()
        call()
        if device is not None and device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2]
