"""Trace a training step: its loss, gradients, and weights before and after, number by number.

Of a toy, a small model whose recipe holds its text, such as `statquest`, it is the first step, computed again from the
recipe's seed, as the run took it. Of any other model it is a step on an answer, as if that were more text to learn.
"""

import copy
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from tinychat.errors import UsageError
from tinychat.generate.computation import Computation, Derivation, Matrix, Operation, figure
from tinychat.generate.operations import SUBSCRIPTS
from tinychat.model.config import ModelConfig
from tinychat.model.loading import load_model
from tinychat.model.transformer import IGNORED, Transformer
from tinychat.store.models import ModelInfo, read_tokenizers, read_training
from tinychat.store.runs import RunFolder
from tinychat.textutil import visible
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import Batch
from tinychat.train.data import read_text
from tinychat.train.recipe import PEAK_LEARNING_RATES, Recipe, Schedule, lr_factor

MAX_PARAMETERS = 10_000
"""Number of parameters up to which a model is a toy."""
MAX_TRAINED_PARAMETERS = 20_000_000
"""Number of parameters up to which a step of any other model is shown: it is held five times, once in f64."""
NUDGE = 0.001
"""Change of a weight by which its gradient is checked."""
OPTIMIZERS: dict[str, tuple[str, Callable[..., torch.optim.Optimizer]]] = {
    "adam": ("Adam", torch.optim.Adam),
    "adamw": ("AdamW", torch.optim.AdamW),
    "sgd": ("SGD", torch.optim.SGD),
}
"""By the recipe's name: name and class."""
ADAM_EPSILON = 1e-8
REMEDY = "`/train --recipe statquest` makes a toy in a few seconds"
SYMBOLS = {
    "embedding.weight": "E", "head.weight": "W", "head.bias": "b", "query.weight": "W_Q", "key.weight": "W_K",
    "value.weight": "W_V", "query.bias": "b_Q", "key.bias": "b_K", "value.bias": "b_V",
    "turn_gate.weight": "W_g", "turn_gate.bias": "b_g", "no_turn.weight": "W_n", "no_turn.bias": "b_n",
    "attention.sublayer.output.weight": "W_O", "attention.sublayer.output.bias": "b_O", "norm.weight": "g",
    "feed_forward.sublayer.output.weight": "W_D", "feed_forward.sublayer.output.bias": "b_D", "norm.bias": "b",
    "up.weight": "W_U", "up.bias": "b_U", "gate.weight": "W_G", "gate.bias": "b_G", "pairs.weight": "P",
    "position.table.weight": "W_P",
}  # fmt: skip
"""By the end of a weight's name: its symbol, as in the trace of a prediction."""


class Example(NamedTuple):
    """An answer to learn from."""

    ids: Sequence[int]
    """Ids of the prompt and of the answer."""
    length: int
    """Number of tokens of the answer."""
    source: Sequence[int] | None = None
    """Ids that an encoder reads."""


def trace_training_step(info: ModelInfo, example: Example | None = None) -> Computation:
    """Trace the first training step of a toy, or of another model a step on an example.

    Raises:
        UsageError: If a toy was trained in a way that cannot be repeated here, or another model has no example or is
            too large.
        TinychatError: If its record of training or its weights are damaged.
    """
    training = read_training(info.folder)
    fields = _recipe_fields(training.get("recipe"))
    if not fields.get("texts") or info.parameters > MAX_PARAMETERS or training.get("from"):
        return _trace_further_step(info, example)
    recipe = _read_recipe(info, fields)
    with TemporaryDirectory() as folder:
        text = read_text(recipe, RunFolder(Path(folder)))
    config = ModelConfig.from_dict(info.architecture)
    batches = text.batches(recipe, config, config.context_length, recipe.batch_size or 1)
    with torch.random.fork_rng(devices=[]), torch.inference_mode(mode=False), torch.enable_grad():
        torch.manual_seed(recipe.seed)
        model = Transformer(config).train()
        steps = training.get("step")
        warmup = min(recipe.warmup_steps, (steps if isinstance(steps, int) else 0) // 10)
        schedule = Schedule(recipe.schedule, warmup, recipe.lr_decay_fraction, recipe.min_lr_ratio)
        factor = lr_factor(schedule, 0.0, 0)
        return _Step(model, recipe, batches.batch(0), text.tokenizer, factor, is_first=True).trace()


def _trace_further_step(info: ModelInfo, example: Example | None) -> Computation:
    """Trace a step of a trained model on an example, by Adam, whose averages begin with it."""
    if info.parameters > MAX_TRAINED_PARAMETERS:
        most = f"{MAX_TRAINED_PARAMETERS:,}"
        raise UsageError(f"{info.name} has {info.parameters:,} parameters, and /steps train takes {most}", REMEDY)
    if example is None:
        raise UsageError("there is no answer to learn from yet", "type a prompt first")
    recipe = Recipe().merged({"optimizer": "adam"})
    length = min(len(example.ids) - 1, ModelConfig.from_dict(info.architecture).context_length)
    window = torch.tensor([example.ids[-length - 1 :]])
    counts = torch.arange(length) >= length - example.length
    targets = window[:, 1:].where(counts, IGNORED)
    source = None if example.source is None else torch.tensor([example.source])
    with torch.inference_mode(mode=False), torch.enable_grad():
        batch = Batch(window[:, :-1], targets, torch.zeros(1, dtype=torch.long), source)
        return _Step(load_model(info), recipe, batch, read_tokenizers(info)[0], 1.0, is_first=False).trace()


def _recipe_fields(record: object) -> dict[str, Any]:
    """Return the fields of all sections of a recipe, from the record of a training."""
    sections = record.values() if isinstance(record, dict) else ()
    return {name: value for section in sections if isinstance(section, dict) for name, value in section.items()}


def _read_recipe(info: ModelInfo, fields: dict[str, Any]) -> Recipe:
    """Return the recipe of a toy."""
    recipe = Recipe().merged(fields)
    if recipe.optimizer not in OPTIMIZERS or recipe.weight_decay:
        what = f"{recipe.optimizer} with a weight decay of {recipe.weight_decay or 0:g}"
        raise UsageError(f"{info.name} was trained by {what}, which /steps train does not take apart", REMEDY)
    if recipe.dropout:
        raise UsageError(f"{info.name} was trained with a dropout of {recipe.dropout:g}, at random", REMEDY)
    if recipe.ngram_order:
        raise UsageError(f"{info.name} mixes in n-gram counts, which /steps train does not take apart", REMEDY)
    return recipe


def _exact_loss(model: Transformer, batch: Batch) -> float:
    """Return the loss as `Transformer.loss` does, but in f64, for a model in f64."""
    encoded = None if batch.source is None else model.encode(batch.source)
    logits = model(batch.ids, encoder_output=encoded)  # [B, T, V]
    return float(nn.functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED))


def _symbol(name: str) -> str:
    """Return the symbol of a weight, or else the end of its name."""
    if found := re.search(r"\.earlier\.(\d+)\.weight$", name):
        return f"E-{int(found[1]) + 1}"
    return next((symbol for end, symbol in SYMBOLS.items() if name.endswith(end)), name.rpartition(".")[0][-6:])


class _Step:
    """One training step; `factor` multiplies the learning rate of the recipe, and `is_first` says if it is a run's."""

    def __init__(
        self, model: Transformer, recipe: Recipe, batch: Batch, tokenizer: Tokenizer, factor: float, *, is_first: bool
    ) -> None:
        self._model, self._recipe, self._batch, self._tokenizer = model, recipe, batch, tokenizer
        self._is_first = is_first
        self._lr = (recipe.learning_rate or PEAK_LEARNING_RATES[recipe.optimizer][0]) * factor
        self._optimizer_name = OPTIMIZERS[recipe.optimizer][0]
        self._vocabulary = [self._label(id) for id in range(model.config.vocab_size)]
        self._operations: list[Operation] = []

    def trace(self) -> Computation:
        """Take the step, and return its operations."""
        model, recipe, batch = self._model, self._recipe, self._batch
        optimizer = self._make_optimizer()
        before = self._trace_loss()
        loss = model.loss(batch.ids, batch.targets, source=batch.source)
        loss.backward()  # type: ignore[no-untyped-call]
        clip = recipe.grad_clip or math.inf
        norm = float(nn.utils.clip_grad_norm_(model.parameters(), clip))
        shrink = min(1.0, clip / (norm + 1e-6))
        names = dict(model.named_parameters())
        # To measure gradients by small changes; n-grams know f32 alone, which is too coarse for that.
        exact = copy.deepcopy(model).double() if model.ngrams is None else None
        old = {name: weight.detach().clone() for name, weight in names.items()}
        optimizer.step()
        for name, weight in names.items():
            gradient = weight.grad if weight.grad is not None else torch.zeros_like(weight)
            self._trace_update(name, old[name], gradient, weight.detach(), exact, shrink)
        with torch.no_grad():
            after = float(model.loss(batch.ids, batch.targets, source=batch.source))
        self._record(
            "", "the loss afterwards", "the same computation with the new weights",
            f"The step has made the loss smaller, from {before:.3f} to {after:.3f}. The next step does the same again."
            if after < before else f"This step was too large: the loss has grown from {before:.3f} to {after:.3f}.",
            (), Matrix("loss'", torch.tensor([[after]]), ("",), ("mean",)),
        )  # fmt: skip
        result = f"loss {before:.3f} → {after:.3f} by one step of {self._optimizer_name}, learning rate {self._lr:g}"
        which = "the first training step" if self._is_first else "a training step on the last answer"
        return Computation(f"{which} of {model.parameter_count:,} weights", tuple(self._operations), result)

    def _make_optimizer(self) -> torch.optim.Optimizer:
        recipe, weights = self._recipe, list(self._model.parameters())
        make = OPTIMIZERS[recipe.optimizer][1]
        if recipe.optimizer == "sgd":
            return make(weights, lr=self._lr, momentum=recipe.momentum)
        return make(weights, lr=self._lr, betas=(recipe.beta1, recipe.beta2), eps=ADAM_EPSILON, weight_decay=0.0)

    @torch.no_grad()
    def _trace_loss(self) -> float:
        """Trace the texts of the batch, their predictions and the loss; return the loss."""
        batch, model = self._batch, self._model
        encoded = None if batch.source is None else model.encode(batch.source)
        logits = model(batch.ids, encoder_output=encoded)  # [B, T, V]
        texts = [text for text, targets in enumerate(batch.targets) if (targets != IGNORED).any()]
        losses = [self._trace_text(text, logits[text]) for text in texts]
        values = torch.cat([part.values for part in losses])  # [N, 1]

        def average(row: int, column: int) -> Derivation:
            terms = tuple((figure(value), value) for part in losses for value in part.column(0))
            frame, total = f"({{}}) / {len(terms)}", math.fsum(value for _, value in terms)
            return Derivation(total / len(terms), frame, terms, ((None, 0),) * len(losses))

        about = "The mean over all tokens: one number, to be made smaller. By guessing alone it is ln(vocabulary)."
        signs = (*[","] * (len(losses) - 1), "→")
        output = Matrix("L", values.mean().view(1, 1), ("",), ("mean",))
        self._record("", "loss", "L = the mean of the losses", about, losses, output, average, signs)
        return float(values.mean())

    def _trace_text(self, text: int, logits: Tensor) -> Matrix:
        """Trace the losses of one text of the batch from its logits [T, V]; return those of its N tokens [N, 1]."""
        counts = self._batch.targets[text] != IGNORED  # [T]
        ids, targets = self._batch.ids[text][counts], self._batch.targets[text][counts]  # [N]
        columns = targets.tolist()
        rows = [f"{self._label(id)}→{self._label(target)}" for id, target in zip(ids.tolist(), columns, strict=True)]
        part, index = f"text {text + 1} of {len(self._batch.ids)}", str(text + 1).translate(SUBSCRIPTS)
        about = "Each token and the one after it, which is to be predicted: its target."
        about += "" if self._is_first else " Only those of the answer count."
        numbers = Matrix(f"ids{index}", torch.stack((ids, targets), 1), rows, ("token", "target"), is_whole=True)
        self._record(part, "tokens", "target = the token that follows in the text", about, (), numbers)
        about = "One operation here: /steps shows its parts."
        about += " The first weights are random, and so are the scores." if self._is_first else ""
        scores = Matrix(f"logits{index}", logits[counts], rows, self._vocabulary)
        self._record(part, "forward", "logits = what the model computes for each token", about, (), scores)
        p = Matrix(f"p{index}", scores.values.softmax(dim=-1), rows, self._vocabulary)

        def softmax(row: int, column: int) -> Derivation:
            terms = tuple((f"exp({figure(value)})", math.exp(value)) for value in scores.row(row))
            own, power = terms[column]
            return Derivation(power / math.fsum(term for _, term in terms), f"{own} / ({{}})", terms, ((row, None),))

        formula = f"{p.name} = exp({scores.name}) / sum of the row's exp({scores.name})"
        self._record(part, "softmax", formula, "Each row becomes probabilities.", (scores,), p, softmax)
        losses = Matrix(f"loss{index}", -p.values.gather(1, targets.unsqueeze(1)).log(), rows, ("-ln p",))

        def surprise(row: int, column: int) -> Derivation:
            value = p[row, columns[row]]
            return Derivation(-math.log(value), f"-ln({figure(value)})", reads=((row, columns[row]),))

        about = "How surprising the target was, in nats: 0 if it was certain. This is the cross-entropy."
        return self._record(
            part, "loss of each", f"{losses.name} = -ln({p.name} of the target)", about, (p,), losses, surprise
        )

    def _trace_update(
        self, name: str, old: Tensor, gradient: Tensor, new: Tensor, exact: Transformer | None, shrink: float
    ) -> None:
        """Trace the gradient and the update of one weight."""
        short, module = _symbol(name), self._model.get_submodule(name.rpartition(".")[0])
        is_linear = old.dim() == 2 and not isinstance(module, nn.Embedding)
        labels = self._labels(name)

        def matrix(symbol: str, values: Tensor, weight: str = "") -> Matrix:
            shown = values.unsqueeze(0) if values.dim() == 1 else values.t() if is_linear else values
            rows = labels if labels and not is_linear and old.dim() == 2 else ("",) * (old.dim() == 1)
            columns = labels if is_linear or old.dim() == 1 else ()
            return Matrix(symbol, shown, tuple(rows), tuple(columns), weight)

        weights, slopes = matrix(short, old, name), matrix("G", gradient)

        def index_of(row: int, column: int) -> tuple[int, ...]:
            return (column,) if old.dim() == 1 else (column, row) if is_linear else (row, column)

        @torch.no_grad()
        def measure(row: int, column: int) -> Derivation:
            assert exact is not None
            parameter = exact.get_parameter(name)
            index, losses = index_of(row, column), []
            original = float(parameter[index])
            for change in (NUDGE, -NUDGE):
                parameter[index] = original + change
                losses.append(_exact_loss(exact, self._batch))
            parameter[index] = original
            times = f" × {shrink:.3f}" if shrink < 1 else ""
            frame = f"({losses[0]:.6f} - {losses[1]:.6f}) / {2 * NUDGE:g}{times}"
            return Derivation((losses[0] - losses[1]) / (2 * NUDGE) * shrink, frame, reads=((row, column),))

        by = "by backpropagation" if shrink == 1 else f"all shortened to a norm of {self._recipe.grad_clip:g}"
        about = (
            f"How the loss changes with each weight, {by}."
            + f" A check: L with the weight {NUDGE} larger, minus L with it {NUDGE} smaller." * (exact is not None)
        )
        self._record(
            name,
            f"gradient of {short}",
            f"G = ∂L / ∂{short}",
            about,
            (weights,),
            slopes,
            None if exact is None else measure,
        )
        output = matrix(f"{short}'", new)

        def update(row: int, column: int) -> Derivation:
            weight, slope = weights[row, column], slopes[row, column]
            return self._update(weight, slope, (row, column))

        about, formula = self._describe(short)
        self._record(name, f"new {short}", formula, about, (weights, slopes), output, update, signs=(",", "→"))

    def _describe(self, short: str) -> tuple[str, str]:
        """Return what the optimizer does, in words and as a formula."""
        if self._recipe.optimizer == "sgd":
            return (
                f"SGD: a step against the gradient, learning rate {self._lr:g}.",
                f"{short}' = {short} - {self._lr:g} × G",
            )
        about = (
            f"{self._optimizer_name}, learning rate {self._lr:g}: its averages of the gradient and of its square begin "
            f"with this step, so each weight moves by about {self._lr:g}, whatever its gradient."
        )
        return about, f"{short}' = {short} - {self._lr:g} × G / (√(G²) + {ADAM_EPSILON:g})"

    def _update(self, weight: float, slope: float, cell: tuple[int, int]) -> Derivation:
        if self._recipe.optimizer == "sgd":
            text, value = f"{figure(weight)} - {self._lr:g} × {figure(slope)}", weight - self._lr * slope
        else:
            value = weight - self._lr * slope / (abs(slope) + ADAM_EPSILON)
            text = f"{figure(weight)} - {self._lr:g} × {slope:.6f} / (√({slope:.6f}²) + {ADAM_EPSILON:g})"
        return Derivation(value, text, reads=(cell, cell))

    def _labels(self, name: str) -> Sequence[str]:
        """Return the vocabulary, for weights with a row or column for each of its tokens."""
        if name.startswith("decoder.earlier"):
            return ["none", *self._vocabulary]
        return self._vocabulary if name.startswith(("decoder.embedding", "head")) else ()

    def _label(self, id: int) -> str:
        return visible(self._tokenizer.token_text(id).strip())

    def _record(
        self, part: str, name: str, formula: str, about: str, inputs: Sequence[Matrix], output: Matrix,
        derive: Callable[[int, int], Derivation] | None = None, signs: tuple[str, ...] = ("→",),
    ) -> Matrix:  # fmt: skip
        focus = (0, 0)
        if not self._is_first and not output.is_whole:  # of a large matrix a part is shown: where most happens
            largest = inputs[-1] if name.startswith("new") else output
            focus = divmod(int(largest.values.abs().argmax()), output.shape[1])
        self._operations.append(Operation(part, name, formula, about, tuple(inputs), signs, output, derive, focus))
        return output
