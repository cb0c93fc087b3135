"""The training loop: steps, and between them reports, evaluations, samples, checkpoints and commands.

A run is a pure function of its recipe, text and number of steps: the batch of step s and its random numbers follow from
the seed and s, so a killed run resumes exactly as it would have continued. Time matters only to runs with a time limit.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from tinychat.errors import RunError, describe_os_error
from tinychat.events import Evaluated, Event, Noticed, Sampled, Saved, Stepped
from tinychat.generate.prompts import PromptEncoder
from tinychat.model.ngrams import COUNT_BUFFERS
from tinychat.model.transformer import Transformer
from tinychat.train.batches import Batches
from tinychat.train.checkpoint import Publisher, State
from tinychat.train.data import BaseModel, TrainingText
from tinychat.train.evaluation import Evaluation, evaluate, make_samples
from tinychat.train.event_log import Control
from tinychat.train.machine import used_memory
from tinychat.train.planner import Plan
from tinychat.train.recipe import Budget, lr_factor
from tinychat.train.step import Learner

FIRST_SAVE, SAVE_INTERVAL = 2.0, 12.0
"""Seconds of training before the first checkpoint, and between two checkpoints."""
MAX_SAVE_FRACTION, MAX_EVALUATION_FRACTION = 0.02, 0.03
"""Maximum fraction of the time that checkpoints and evaluations take."""
MAX_EVALUATIONS = 10
"""Maximum number of evaluations of a run with a time limit."""
FIRST_REPORT_INTERVAL, LATER_REPORT_INTERVAL = 0.25, 1.0
"""Seconds between two reports: at the beginning, and later."""
COMMAND_INTERVAL = 0.1
"""Seconds between two polls of the control file."""
MIN_SAMPLE_SECONDS = 0.1
"""Time below which no sample is begun."""
MIN_LR_SCALE = 0.25
"""Lowest multiplier of learning rates: halved from 1 at each return to a checkpoint."""


class Diverged(Exception):
    """The loss or its gradient has become NaN or infinite."""


@dataclass(frozen=True)
class Training:
    """The learner to train, its batches, their text, and the plan."""

    plan: Plan
    text: TrainingText
    batches: Batches
    learner: Learner


@dataclass(frozen=True)
class RunIO:
    """Connections of the loop to its run: commands come in; events, checkpoints and weights go out."""

    control: Control
    report: Callable[[Event], None]
    save: Callable[[State], None]
    load: Callable[[], State | None]
    """Read the newest checkpoint; None if there is none."""
    publisher: Publisher


class Loop:
    """Train from step 0 or the state of a checkpoint, until the budget is used or somebody stops the run."""

    def __init__(self, training: Training, io: RunIO, state: State | None = None) -> None:
        plan, text = training.plan, training.text
        self.plan, self.text, self.batches, self.learner = plan, text, training.batches, training.learner
        self.control, self.report, self.publisher = io.control, io.report, io.publisher
        self._save, self._load, self._resume_from = io.save, io.load, state
        self.prompts = plan.recipe.sample_prompt or (text.prompt,)
        self.schedule = plan.schedule
        self.budget = Budget(plan.steps if plan.available is None else None)
        self.state = self._first_state(plan.step_seconds)
        """Current state; its weights and optimizer states are filled in when it is saved."""
        self.ending = plan.make_ending()
        self.kept_start: Transformer | None = None
        """The model that the run started from, once `evaluate_best` has found it to be the best."""
        self._evaluation_seconds = self._last_step_seconds = 0.0
        self._saved_at, self._save_seconds, self._save_failed = FIRST_SAVE - SAVE_INTERVAL, 0.0, False
        self._loss_sum = torch.zeros((), device=self.learner.fabric.device)
        self._began = self._reported_at = 0.0  # set by `run`
        self._reported_step = 0
        self._told_of_graphs = False
        self._report_due = self._commands_due = 0.0  # report the first step at once

    @property
    def seconds(self) -> float:
        """Seconds of training so far, including those before a resumption."""
        return time.perf_counter() - self._began

    @property
    def step(self) -> int:
        return self.state.step

    @property
    def best(self) -> Evaluation | None:
        return best_evaluation(self.state)

    @property
    def model(self) -> Transformer:
        """The model that learns or, where that is kept, the one that the run started from."""
        return self.kept_start or self.learner.model

    def run(self) -> Literal["done", "stopped"]:
        """Train to the end, save and evaluate; take at least one step. Return why training ended.

        Raises:
            RunError: If the loss became NaN or infinite after the learning rate had been halved twice.
        """
        self.control.begin_steps()
        self._began = time.perf_counter()
        if self._resume_from is not None:
            self._began -= self._resume_from.seconds
            self.plan = replace(self.plan, available=self._resume_from.available)
            self.ending.available = self.plan.available
            self._restore_state(self._resume_from)
        self._update_budget()
        self._reported_at = self.seconds
        while True:
            try:
                return self._run()
            except Diverged as error:
                self._roll_back(error)

    def _run(self) -> Literal["done", "stopped"]:
        if self.step == 0:
            self._publish_if_due()
            if self.text.base is not None and self.best is None:
                self._evaluate_start(self.text.base)
            elif self.plan.available is not None and self.best is None:
                self.evaluate(with_samples=False)  # so that the time for the last evaluations is known from the start
        while self.step == 0 or not (self.control.stop_requested or self._is_over()):
            self._train_step()
            if self.seconds >= self._report_due:
                self._report()
            self._publish_if_due()
            if self.seconds >= self._commands_due:
                self._run_commands()
                self._commands_due = self.seconds + COMMAND_INTERVAL
            evaluates = self._evaluation_is_due()
            if evaluates:
                self.evaluate()
            if self._save_is_due(evaluates):
                self.save()
        # Decide before the last report, which may find steps faster and so time for one more.
        reason: Literal["done", "stopped"] = "done" if self._is_over() else "stopped"
        self._report()
        self.state.is_done = reason == "done"
        self.save()
        if self.state.evaluated_step != self.step:
            self.evaluate(with_samples=self.plan.available is None)
        return reason

    def evaluate(self, *, with_samples: bool = True) -> None:
        """Evaluate the model on one fixed part of the split, and keep its weights if they are the best; sample."""
        self._report()
        began = self.seconds
        result = self._evaluate(self.learner.model, self.plan.eval_windows)
        self._check_finite(result.loss)
        self.ending.record_evaluation(result.tokens, self.seconds - began)
        best = result.loss < self.state.best_loss
        if best:
            # On the CPU, which has more memory; n-gram counts do not change.
            self.state.best_weights = {
                name: weight.to("cpu", copy=True) if weight.is_floating_point() else weight
                for name, weight in self.learner.model.state_dict().items()
            }
        self._record(result, self.step, best, began, self.plan.config.context_length)
        self.state.evaluations += 1
        if with_samples and self.state.evaluations % self.plan.recipe.sample_every == 0:
            self.sample()
        self.state.evaluated_step, self.state.evaluated_at = self.step, self.seconds
        self._evaluation_seconds = self._exclude_from_speed(began)
        self._update_budget()

    def evaluate_best(self) -> Evaluation:
        """Load the best weights and return their loss on the whole split: the one measure of the run.

        Losses along the way are over a part of the split, and are comparable with each other only. If the model that
        the run started from is as good on the whole, it is kept instead.
        """
        state, base, result = self.state, self.text.base, self.best
        assert result is not None  # `run` ends with an evaluation
        if base is None or state.best_step > 0:
            self.learner.model.load_state_dict(state.best_weights)
            if self.plan.eval_windows < self.plan.final_windows:
                result = self._evaluate(self.learner.model)
            if base is None or state.start_loss is None or result.loss < state.start_loss:
                return result
        assert state.start_loss is not None  # `_evaluate_start` sets it and the best step together
        state.best_step, state.best_weights = 0, base.weights(base.config.context_length)
        self.kept_start = self._load_start(base, state.best_weights)
        return Evaluation(state.start_loss, state.start_tokens, state.start_accuracy)

    def _evaluate_start(self, base: BaseModel) -> None:
        """Evaluate the model that the run starts from, as it is: the best one until a step improves it.

        Its context may be longer than that of the run, and its counts others.
        """
        began, state, plan = self.seconds, self.state, self.plan
        state.best_weights = base.weights(base.config.context_length)
        model = self._load_start(base, state.best_weights)
        most = replace(plan, config=base.config).final_windows
        windows = max(1, most * plan.eval_windows // plan.final_windows)
        result = self._evaluate(model, windows)
        self.ending.record_evaluation(result.tokens, self.seconds - began)
        self._record(result, 0, True, began, base.config.context_length)
        if windows < most:
            result = self._evaluate(model)
        state.start_loss, state.start_tokens, state.start_accuracy = result.loss, result.tokens, result.accuracy
        self._evaluation_seconds = self._exclude_from_speed(began)
        self._update_budget()

    def _load_start(self, base: BaseModel, weights: dict[str, Tensor]) -> Transformer:
        model = Transformer(base.config).to(self.learner.fabric.device)
        if model.ngrams is not None and self.text.split == "train":  # where the weights have other counts, these go
            counts = {name: weights[f"ngrams.{name}"] for name in COUNT_BUFFERS}
            model.ngrams.count(self.text.ngram_folds(self.plan.counted_tokens), counts)
        model.load_state_dict(weights)
        return model

    def _evaluate(self, model: Transformer, windows: int | None = None) -> Evaluation:
        """Evaluate a model on `eval_text`; n-grams that were counted in it leave out each part's own counts."""
        return evaluate(model, self.text.eval_text, windows, trained_on=self.text.split == "train")

    def sample(self, *, on_request: bool = False) -> None:
        """Generate a sample from each prompt and report it, if there is time: samples have a small share of a run's."""
        seconds = self.ending.sample_seconds(self.seconds, on_request=on_request)
        if not self.plan.recipe.sample_tokens or seconds < MIN_SAMPLE_SECONDS:
            return
        began = self.seconds
        texts = self.generate_samples(self.prompts, [self.step] * len(self.prompts), seconds)
        self.ending.sampling_seconds += self.seconds - began
        # Else it answers its prompt.
        is_continuation = self.text.template is None and self.text.source_tokenizer is None
        for prompt, text in zip(self.prompts, texts, strict=True):
            self.report(Sampled(self.step, prompt, text, is_continuation))

    def generate_samples(self, prompts: Sequence[str], seeds: Sequence[int], seconds: float) -> list[str]:
        """Return the model's sample for each prompt, with its seed; they break off after some seconds."""
        recipe, text, until = self.plan.recipe, self.text, self.seconds + seconds
        tokens, temperature = recipe.sample_tokens, recipe.sample_temperature
        if temperature is None and text.base is not None:
            temperature = text.base.info.settings.get("temperature")
        context_length = self.model.config.context_length
        prompt_encoder = PromptEncoder(text.tokenizer, context_length, text.template, text.source_tokenizer)
        return make_samples(
            self.model, prompt_encoder, prompts, seeds, tokens, temperature,
            should_stop=lambda: self.seconds > until,
        )  # fmt: skip

    def save(self) -> None:
        """Write a checkpoint if all is finite; if it cannot be written, report that once: the next may succeed."""
        self._check_finite(self._loss_sum.item() + float(self.learner.gradient_norm))
        began = self.seconds
        try:
            self._save(self._with_learner(self.state))
        except OSError as error:  # a full disk, for instance
            if not self._save_failed:
                problem = f"{describe_os_error(error)}: no checkpoint of step {self.step:,}"
                self.report(Noticed(f"{problem}; training goes on"))
            self._save_failed = True
        else:
            self._save_failed = False
            self.report(Saved(self.step))
        self._saved_at = self.seconds
        self._save_seconds = self._exclude_from_speed(began)
        self.ending.record_save(self._save_seconds)

    def _with_learner(self, state: State) -> State:
        """Return a state with the learner's part filled in: its weights and its optimizers' states."""
        weights, optimizers = self.learner.model.state_dict(), self.learner.optimizer_states()
        steps = self.learner.grad_accum_steps
        return replace(state, seconds=self.seconds, weights=weights, optimizers=optimizers, grad_accum_steps=steps)

    def _record(self, result: Evaluation, step: int, best: bool, began: float, context_length: int) -> None:
        """Record an evaluation if it is the best, and report it; it began after so many seconds of training."""
        if best:
            state = self.state
            state.best_loss, state.best_tokens, state.best_accuracy = result.loss, result.tokens, result.accuracy
            state.best_step = step
        characters_per_token = self.text.characters_per_token(context_length)
        self.report(
            Evaluated(
                step=step,
                loss=result.loss,
                perplexity=result.perplexity,
                bits_per_character=result.bits_per_character(characters_per_token),
                best=best,
                split=self.text.split,
                seconds=self.seconds - began,
                training_seconds=began,
                accuracy=result.accuracy,
                epoch=self.plan.epoch_after(step) if self.plan.recipe.epochs is not None else None,
                tokens=result.tokens,
                is_part=self.plan.eval_windows < self.plan.final_windows,
            )
        )

    def _train_step(self) -> None:
        state, grad_accum_steps = self.state, self.learner.grad_accum_steps
        progress = self.budget.progress(self.step, self.seconds)
        factor = state.lr_scale * lr_factor(self.schedule, progress, self.step)
        self._loss_sum += self.learner.step(self.batches.batch(self.step), factor, self.step, progress)
        self.state.step += 1
        if self.learner.grad_accum_steps != grad_accum_steps:
            parts = f"steps are computed in {self.learner.grad_accum_steps} parts from now on"
            self.report(Noticed(f"memory ran out at step {self.step:,}: {parts}"))
            self.save()  # so that a resumed run starts with as many micro-batches
        if (graphs := self.learner.graphs) is not None and graphs.failure and not self._told_of_graphs:
            self._told_of_graphs = True
            self.report(Noticed(f"no step is recorded, and so each takes longer: {graphs.failure}"))

    def _report(self) -> None:
        """Report the steps since the last report."""
        steps = self.step - self._reported_step
        if not steps:
            return
        loss, norm = self._loss_sum.item() / steps, float(self.learner.gradient_norm)  # waits for the device
        self._check_finite(loss + norm)
        took = self.seconds - self._reported_at
        self._last_step_seconds = took / steps
        self.state.step_seconds += 0.3 * (self._last_step_seconds - self.state.step_seconds)
        self.report(
            Stepped(
                step=self.step,
                progress=self.budget.progress(self.step, self.seconds),
                loss=loss,
                learning_rate=self.learner.learning_rate,
                gradient_norm=norm,
                tokens_per_second=steps * self.batches.tokens_per_batch / took,
                seconds=self.seconds,
                remaining=self.budget.remaining(self.step, self.seconds, self.state.step_seconds),
                steps=self.budget.expected_steps(self.step, self.seconds, self.state.step_seconds),
                memory=used_memory(self.learner.fabric.device),
            )
        )
        self._loss_sum.zero_()
        self._reported_at, self._reported_step = self.seconds, self.step
        self._report_due = self.seconds + self._report_interval

    def _publish_if_due(self) -> None:
        began = self.seconds
        if self.publisher.snapshot_is_due(self.step, began):
            self.publisher.save_snapshot(self.step, self.learner.model.state_dict())
        if self.publisher.is_due(began):
            self.publish()
            self.ending.record_write(self.publisher.publish_seconds)
        self._exclude_from_speed(began)

    def publish(self) -> None:
        """Publish the newest weights, after checking that the loss and the gradient are finite."""
        self._check_finite(self._loss_sum.item() + float(self.learner.gradient_norm))
        self.publisher.publish(replace(self.state, seconds=self.seconds, weights=self.learner.model.state_dict()))

    def _run_commands(self) -> None:
        """Run the commands that have come since the last poll."""
        for command in self.control.poll_commands():
            began = self.seconds
            match command:
                case {"command": "sample"} if not self.plan.recipe.sample_tokens:
                    self.report(Noticed("there are no samples: the run was begun with --sample-tokens 0"))
                case {"command": "sample"}:
                    if isinstance(command.get("prompt"), str):
                        self.prompts = (command["prompt"],)
                    self._sample_on_request()
                    self._exclude_from_speed(began)
                case {"command": "publish"}:
                    self.publish()
                    self._exclude_from_speed(began)
                case {"command": "evaluate"}:
                    self.evaluate()  # which excludes its own time

    def _sample_on_request(self) -> None:
        self._check_finite(self._loss_sum.item() + float(self.learner.gradient_norm))
        if self.ending.sample_seconds(self.seconds, on_request=True) < MIN_SAMPLE_SECONDS:
            self.report(Noticed("no sample now: samples have had their share of the run's time"))
        self.sample(on_request=True)

    def _update_budget(self) -> None:
        """Keep back the time that the end of the run takes, by what was measured so far."""
        self.budget.seconds = self.plan.training_seconds(self.ending)

    def _is_over(self) -> bool:
        step_seconds = max(self.state.step_seconds, self._last_step_seconds)
        return self.budget.is_exhausted(self.step, self.seconds, step_seconds)

    def _save_is_due(self, evaluated: bool) -> bool:
        """Return whether to write a checkpoint: also after an evaluation, unless that takes much of the time."""
        if evaluated and self.plan.available is None:
            return True
        least = 0.0 if evaluated else SAVE_INTERVAL
        return self.seconds - self._saved_at >= max(least, self._save_seconds / MAX_SAVE_FRACTION)

    def _evaluation_is_due(self) -> bool:
        every = self.plan.recipe.evaluate_every
        if every is not None:
            return self.step % every == 0
        if self.plan.recipe.epochs is not None:
            return self.plan.epoch_after(self.step) is not None
        interval = max(self.budget.seconds / MAX_EVALUATIONS, self._evaluation_seconds / MAX_EVALUATION_FRACTION)
        left = self.budget.seconds - self.seconds
        return self.seconds - self.state.evaluated_at >= interval and left > interval / 2

    @property
    def _report_interval(self) -> float:
        """Seconds between two reports: more in longer runs, to bound the number of reports."""
        return min(LATER_REPORT_INTERVAL, max(FIRST_REPORT_INTERVAL, self.seconds / 240))

    def _exclude_from_speed(self, began: float) -> float:
        """Exclude the time since `began` from the speed of steps; return its seconds."""
        seconds = self.seconds - began
        self._reported_at += seconds
        return seconds

    def _check_finite(self, figure: float) -> None:
        """Raise `Diverged` if a figure is NaN or infinite."""
        if not math.isfinite(figure):
            raise Diverged(f"the loss or its gradient became {figure} by step {self.step:,}")

    def _roll_back(self, error: Diverged) -> None:
        """Return to the last checkpoint, or to the beginning, with half the learning rate."""
        if self.state.lr_scale <= MIN_LR_SCALE:
            raise RunError(
                f"{error}, though the learning rate had been halved twice",
                "train with a lower --learning-rate, or with --precision f32",
            )
        lr_scale, state = self.state.lr_scale / 2, self._load()
        if state is None:
            self.learner = self.learner.fresh_copy()
            state = self._with_learner(self._first_state())
        length, available = self.state.length, self.state.available  # the run may have been extended since
        self._restore_state(state)
        self.state = replace(self.state, lr_scale=lr_scale, length=length, available=available, is_done=False)
        self.report(Noticed(f"{error}: back to step {self.step:,} with half the learning rate"))
        self.save()

    def _first_state(self, step_seconds: float = 0.0) -> State:
        plan = self.plan
        return State(
            available=plan.available, step_seconds=step_seconds, fingerprint=self.text.fingerprint,
            length=plan.recipe.length, eval_windows=plan.eval_windows, val_fraction=plan.val_fraction,
            counted_tokens=plan.counted_tokens, keeps_counts=self.learner.earlier_counts is not None,
        )  # fmt: skip

    def _restore_state(self, state: State) -> None:
        self.learner.load(state.weights, state.optimizers, state.grad_accum_steps)
        step_seconds = state.step_seconds or self.state.step_seconds
        self.state = replace(state, step_seconds=step_seconds, weights={}, optimizers=[])
        self._reported_step = self.step
        self._saved_at = state.seconds + FIRST_SAVE - SAVE_INTERVAL  # soon, so that a run that is often killed advances
        self._loss_sum.zero_()
        self.learner.gradient_norm = torch.zeros(())


def best_evaluation(state: State) -> Evaluation | None:
    """Return the evaluation of the best weights so far; None before the first evaluation."""
    return Evaluation(state.best_loss, state.best_tokens, state.best_accuracy) if state.best_weights else None
