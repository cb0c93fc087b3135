"""The loop: steps, and between them reports, evaluations, samples, checkpoints and whatever is asked from outside.

A run is a pure function of its recipe, text and number of steps. What step s sees follows from the seed and s
(`batches.py`), and so do the random numbers it draws (dropout): nothing random outlives a step, so that a run which
was killed goes on exactly as it would have. Only where the clock decides does time enter, through the learning rate.
Where the loss becomes no number, the run goes back to its last checkpoint, with half the learning rate, twice.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from tinychat.errors import RunError, failure
from tinychat.events import Evaluated, Event, Noticed, Sampled, Saved, Stepped
from tinychat.generate.prompts import PromptEncoder
from tinychat.train.batches import Batches
from tinychat.train.checkpoint import Publisher, State
from tinychat.train.data import TrainingText
from tinychat.train.evaluation import Evaluation, evaluate, make_samples
from tinychat.train.event_log import Control
from tinychat.train.machine import used_memory
from tinychat.train.planner import SAMPLE_SECONDS, Plan
from tinychat.train.schedule import Budget, rate_factor
from tinychat.train.step import Learner

FIRST_SAVE, SAVE_INTERVAL = 2.0, 12.0
"""seconds of training before the first checkpoint, and between two"""
SAVE_SHARE, EVALUATION_SHARE = 0.02, 0.06
"""the most of the time that checkpoints and evaluations take"""
EVALUATIONS = 10
"""evaluations of a run by the clock, at most"""
REPORT_INTERVALS = (0.25, 1.0)
"""seconds between two reports, at the beginning and later"""
LISTEN_INTERVAL = 0.1
"""seconds between two looks at what is asked from outside"""
LOWEST_RATE = 0.25
"""What learning rates are multiplied by, at least: they are halved so often that a run is taken back."""


class Diverged(Exception):
    """The loss, or its gradient, has become no number."""


@dataclass(frozen=True)
class Training:
    """What is trained, on which text, and by which plan."""

    plan: Plan
    text: TrainingText
    batches: Batches
    learner: Learner


@dataclass(frozen=True)
class RunIO:
    """What connects the loop to its run: commands come in; events, checkpoints and weights go out."""

    control: Control
    report: Callable[[Event], None]
    save: Callable[[State], None]
    """writes a checkpoint"""
    load: Callable[[], State | None]
    """reads the newest checkpoint; None if there is none"""
    publisher: Publisher


class Loop:
    """Trains until the budget is used or somebody stops it.

    Args:
        state: of a checkpoint to resume from; None: start at step 0.
    """

    def __init__(self, training: Training, io: RunIO, state: State | None = None) -> None:
        plan, text = training.plan, training.text
        self.plan, self.text = plan, text
        self.batches, self.learner = training.batches, training.learner
        self.control, self.report, self.publisher = io.control, io.report, io.publisher
        self._save, self._load, self._resume_from = io.save, io.load, state
        self._prompting = PromptEncoder(text.tokenizer, plan.config.context_length, text.template, text.reader)
        prompts = plan.recipe.sample_prompt
        self.prompts = (text.prompt,) if prompts is None else prompts
        self.schedule = plan.schedule
        self.budget = Budget(plan.steps if plan.available is None else None)
        self.state = State(available=plan.available, step_seconds=plan.step_seconds, fingerprint=text.fingerprint)
        """where the run is; the weights to resume from are filled in when it is saved"""
        self._token_seconds, self._sample_seconds = plan.token_seconds, SAMPLE_SECONDS
        self._slowest_token = 0.0
        self._evaluation_cost = 0.0
        self._saved_at, self._save_cost = FIRST_SAVE - SAVE_INTERVAL, 0.0
        self._loss_sum = torch.zeros((), device=self.learner.fabric.device)
        self._unsaved = False
        self._began = self._reported_at = 0.0  # set as it begins
        self._reported_step = 0
        self._report_due = 0.0  # at once: a watcher sees that it has begun
        self._listen_due = 0.0

    @property
    def seconds(self) -> float:
        """Of training so far, over all sittings."""
        return time.perf_counter() - self._began

    @property
    def step(self) -> int:
        """Steps done."""
        return self.state.step

    @property
    def best(self) -> Evaluation | None:
        """The evaluation of the best weights so far; None before the first evaluation."""
        return best_evaluation(self.state)

    def run(self) -> Literal["done", "stopped"]:
        """Trains to the end, saves, and measures; at least one step, so that there is something to keep.

        Raises:
            RunError: the loss became no number once more.
        """
        self._begin()
        while True:
            try:
                return self._run()
            except Diverged as error:
                self._retreat(error)

    def _begin(self) -> None:
        """Start the clock; restore the state to resume from, if there is one."""
        self._began = time.perf_counter()
        if self._resume_from is not None:
            self._began -= self._resume_from.seconds
            self.plan = replace(self.plan, available=self._resume_from.available)
            self._restore(self._resume_from)
        self._provide_for_the_end()
        self._reported_at = self.seconds

    def _run(self) -> Literal["done", "stopped"]:
        if self.step == 0:
            self._show_weights()
        while self.step == 0 or not (self.control.stopping or self._is_over()):
            self._learn()
            if self.seconds >= self._report_due:
                self._report()
            self._show_weights()
            if self.seconds >= self._listen_due:
                self._obey()
                self._listen_due = self.seconds + LISTEN_INTERVAL
            if self._evaluation_is_due():
                self.evaluate()
                self.save()
            elif self.seconds - self._saved_at >= max(SAVE_INTERVAL, self._save_cost / SAVE_SHARE):
                self.save()
        # Before the last report, which may find that steps have become quicker, and that there was time for one more.
        reason: Literal["done", "stopped"] = "done" if self._is_over() else "stopped"
        self._report()
        self.save()
        if self.state.evaluated_step != self.step:
            self.evaluate()
        return reason

    def evaluate(self) -> None:
        """Measures the model at a glance, keeps its weights where they are the best, and lets it speak."""
        self._report()
        began = self.seconds
        result = evaluate(self.learner.model, self.text.measured, self.plan.glance_windows)
        self._check(result.loss)
        # A machine that others use as well may be slow again, as it was before, when the end comes.
        took = (self.seconds - began) / result.tokens
        self._slowest_token = max(self._slowest_token, took)
        self._token_seconds = (took + self._slowest_token) / 2
        best = result.loss < self.state.best_loss
        if best:
            self._record_best(result)
            self.state.best_step = self.step
            # In the host's memory, where there is more of it; what is counted stays as it is.
            self.state.best_weights = {
                name: weight.to("cpu", copy=True) if weight.is_floating_point() else weight
                for name, weight in self.learner.model.state_dict().items()
            }
        self._report_evaluation(result, self.step, best, began)
        self.state.evaluations += 1
        if self.state.evaluations % self.plan.recipe.sample_every == 0:
            self.sample()
        self.state.evaluated_step, self.state.evaluated_at = self.step, self.seconds
        self._evaluation_cost = self._pause(began)
        self._provide_for_the_end()

    def conclude(self) -> Evaluation:
        """Takes the best weights there were, and measures them over the whole, or as much of it as time allows."""
        self.learner.model.load_state_dict(self.state.best_weights)
        if self.plan.final_windows > self.plan.glance_windows:
            began = self.seconds
            result = evaluate(self.learner.model, self.text.measured, self.plan.final_windows)
            self._record_best(result)
            self._report_evaluation(result, self.state.best_step, True, began)
        assert self.best is not None  # `run` ends with an evaluation
        return self.best

    def sample(self) -> None:
        """Lets the model go on from each prompt."""
        if self.plan.recipe.sample_tokens:
            began = self.seconds
            texts = self.speak(self.prompts, [self.step] * len(self.prompts))
            self._sample_seconds = self.seconds - began
            goes_on = self.text.template is None and self.text.reader is None  # from its prompt; else it answers that
            for prompt, text in zip(self.prompts, texts, strict=True):
                self.report(Sampled(self.step, prompt, text, goes_on))

    def speak(self, prompts: Sequence[str], seeds: Sequence[int]) -> list[str]:
        """What the model says to each prompt, with its seed."""
        recipe = self.plan.recipe
        tokens, temperature = recipe.sample_tokens, recipe.sample_temperature
        return make_samples(self.learner.model, self._prompting, prompts, seeds, tokens, temperature)

    def save(self) -> None:
        """Writes a checkpoint, of weights that are good as far as is known.

        Where that cannot be done, it says so once, and tries again at the next.
        """
        self._check(self._loss_sum.item() + float(self.learner.gradient_norm))
        began = self.seconds
        try:
            self._save(
                replace(
                    self.state,
                    seconds=self.seconds,
                    weights=self.learner.model.state_dict(),
                    optimizers=self.learner.optimizer_states(),
                    grad_accum_steps=self.learner.grad_accum_steps,
                )
            )
        except OSError as error:  # a full disk: there may be room the next time
            if not self._unsaved:
                self.report(Noticed(f"{failure(error)}: no checkpoint of step {self.step:,}; training goes on"))
            self._unsaved = True
        else:
            self._unsaved = False
            self.report(Saved(self.step))
        self._saved_at = self.seconds
        self._save_cost = self._pause(began)

    def _record_best(self, result: Evaluation) -> None:
        state = self.state
        state.best_loss, state.best_tokens, state.best_accuracy = result.loss, result.tokens, result.accuracy

    def _report_evaluation(self, result: Evaluation, step: int, best: bool, began: float) -> None:
        bits = result.bits_per_character(self.text.characters_per_token)
        took = self.seconds - began
        epoch = self.plan.epoch_after(step) if self.plan.recipe.epochs is not None else None
        self.report(
            Evaluated(
                step=step,
                loss=result.loss,
                perplexity=result.perplexity,
                bits_per_character=bits,
                best=best,
                split=self.text.split,
                seconds=took,
                trained=began,
                accuracy=result.accuracy,
                epoch=epoch,
            )
        )

    def _learn(self) -> None:
        """One step."""
        progress, grad_accum_steps = self.budget.progress(self.step, self.seconds), self.learner.grad_accum_steps
        factor = self.state.rate * rate_factor(self.schedule, progress, self.step)
        self._loss_sum += self.learner.step(self.batches.batch(self.step), factor, self.step)
        self.state.step += 1
        if self.learner.grad_accum_steps != grad_accum_steps:
            parts = f"steps are computed in {self.learner.grad_accum_steps} parts from now on"
            self.report(Noticed(f"memory ran out at step {self.step:,}: {parts}"))
            self.save()  # whoever goes on from here knows it

    def _report(self) -> None:
        """Says what the steps since the last report came to."""
        steps = self.step - self._reported_step
        if not steps:
            return
        loss, norm = self._loss_sum.item() / steps, float(self.learner.gradient_norm)  # waits for the device
        self._check(loss + norm)
        took = self.seconds - self._reported_at
        self.state.step_seconds += 0.3 * (took / steps - self.state.step_seconds)
        self.report(
            Stepped(
                step=self.step,
                progress=self.budget.progress(self.step, self.seconds),
                loss=loss,
                learning_rate=self.learner.rate,
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

    def _show_weights(self) -> None:
        """Publishes weights and keeps snapshots where it is time for that."""
        began = self.seconds
        if self.publisher.snapshot_is_due(self.step, began):
            self.publisher.save_snapshot(self.step, self.learner.model.state_dict())
        if self.publisher.is_due(began):
            self.publish()
        self._pause(began)

    def publish(self) -> None:
        """Shows the newest weights to whoever wants to talk to them, if they are good as far as is known."""
        self._check(self._loss_sum.item() + float(self.learner.gradient_norm))
        self.publisher.publish(replace(self.state, seconds=self.seconds, weights=self.learner.model.state_dict()))

    def _obey(self) -> None:
        """Does what was asked from outside."""
        began, evaluated = self.seconds, 0.0
        for command in self.control.commands():
            match command:
                case {"command": "sample"} if not self.plan.recipe.sample_tokens:
                    self.report(Noticed("there are no samples: the run was begun with --sample-tokens 0"))
                case {"command": "sample"}:
                    if isinstance(command.get("prompt"), str):
                        self.prompts = (command["prompt"],)
                    self.sample()
                case {"command": "publish"}:
                    self.publish()
                case {"command": "evaluate"}:
                    self.evaluate()
                    evaluated += self._evaluation_cost  # which counts itself out
        self._pause(began + evaluated)

    def _provide_for_the_end(self) -> None:
        """Leaves time for the last evaluation and samples, by how long the last ones took."""
        self.budget.seconds = self.plan.training_seconds(self._token_seconds, self._sample_seconds)

    def _is_over(self) -> bool:
        return self.budget.is_used(self.step, self.seconds, self.state.step_seconds)

    def _evaluation_is_due(self) -> bool:
        every = self.plan.recipe.evaluate_every
        if every is not None:
            return self.step % every == 0
        if self.plan.recipe.epochs is not None:
            return self.plan.epoch_after(self.step) is not None
        interval = max(self.budget.seconds / EVALUATIONS, self._evaluation_cost / EVALUATION_SHARE)
        left = self.budget.seconds - self.seconds
        return self.seconds - self.state.evaluated_at >= interval and left > interval / 2

    @property
    def _report_interval(self) -> float:
        """Longer in a longer run: a minute is worth 240 lines, an hour is not worth 14,400."""
        least, most = REPORT_INTERVALS
        return min(most, max(least, self.seconds / 240))

    def _pause(self, began: float) -> float:
        """Counts what came since `began` out of the speed of steps; returns its seconds."""
        seconds = self.seconds - began
        self._reported_at += seconds
        return seconds

    def _check(self, figure: float) -> None:
        if not math.isfinite(figure):
            raise Diverged(f"the loss or its gradient became {figure} by step {self.step:,}")

    def _retreat(self, error: Diverged) -> None:
        """Goes back to the last checkpoint, or to the beginning, with half the learning rate."""
        if self.state.rate <= LOWEST_RATE:
            raise RunError(
                f"{error}, though the learning rate had been halved twice",
                "train with a lower --learning-rate, or with --precision f32",
            )
        rate, state = self.state.rate / 2, self._load()
        if state is None:
            self.learner = self.learner.anew()
            state = State(
                seconds=self.seconds,
                available=self.plan.available,
                weights=self.learner.model.state_dict(),
                optimizers=self.learner.optimizer_states(),
                fingerprint=self.text.fingerprint,
            )
        self._restore(state)
        self.state.rate = rate
        self.report(Noticed(f"{error}: back to step {self.step:,} with half the learning rate"))
        self.save()

    def _restore(self, state: State) -> None:
        """Takes over all but the time."""
        self.learner.load(state.weights, state.optimizers, state.grad_accum_steps)
        step_seconds = state.step_seconds or self.state.step_seconds
        self.state = replace(state, step_seconds=step_seconds, weights={}, optimizers=[])
        self._reported_step = self.step
        self._saved_at = state.seconds + FIRST_SAVE - SAVE_INTERVAL  # soon: what is killed often still comes forward
        self._loss_sum.zero_()
        self.learner.gradient_norm = torch.zeros(())


def best_evaluation(state: State) -> Evaluation | None:
    """Return the evaluation of the best weights so far; None before the first evaluation."""
    return Evaluation(state.best_loss, state.best_tokens, state.best_accuracy) if state.best_weights else None
