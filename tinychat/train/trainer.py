"""Training of a run, from the tokenized text to the saved model: the part of a trainer that needs torch."""

import dataclasses
import math
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from tinychat.config.settings import Settings
from tinychat.corpus.overlap import longest_copy
from tinychat.errors import ModelError, RunError, TinychatError
from tinychat.events import Ended, Evaluated, Event, LineReader, Noticed, Stepped
from tinychat.model.config import ModelConfig
from tinychat.model.ngrams import COUNT_BUFFERS, Counts
from tinychat.model.transformer import Transformer
from tinychat.store.models import ModelInfo, open_info, read_training, read_weights, save_model
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.token_cache import Ids
from tinychat.train.checkpoint import Publisher, State, load_checkpoint, save_checkpoint
from tinychat.train.data import TrainingText
from tinychat.train.distributed import ProcessGroup
from tinychat.train.evaluation import Evaluation, MixtureMeter, evaluate
from tinychat.train.event_log import Control, Curves, EventLog, loss_curve, recent_loss, rewind
from tinychat.train.launch import ProcessRank, length_error, save_recipe
from tinychat.train.loggers import MetricsLog
from tinychat.train.loop import MIN_SAMPLE_SECONDS, Loop, RunIO, Training, best_evaluation
from tinychat.train.machine import StepTimer, check_memory, find_machine
from tinychat.train.model_card import Figures, ModelFacts, model_card, training_record
from tinychat.train.planner import (
    Machine,
    Plan,
    cut_context,
    default_seconds,
    describe_cut,
    make_plan,
    summarize_plan,
)
from tinychat.train.recipe import Recipe
from tinychat.train.step import Learner

MIN_AVAILABLE_SECONDS = 1.0
"""Seconds from the first step to the end of a run that are needed for anything to be learned."""
MIN_RECOVERY = 1.6
"""Speed-up of steps since they were timed from which the run is planned anew."""
HALF_PRECISION_PARAMETERS = 5_000
"""Number of parameters from which the model is saved in f16, which hardly changes its loss."""
TIMED_WINDOWS = (2, 8, 8)
"""Windows or documents of the evaluations that are timed before the first step."""
MIN_TRAINED_WINDOWS = 8
"""Windows of the training text below which its loss is not measured: a few say nothing of all of it."""
TOKENS_TO_CHOOSE, MIN_WINDOWS_TO_CHOOSE = 8_192, 8
"""Number of tokens, and at least of windows, by which the counts of a run with `--from` are chosen."""


def train(
    run: RunFolder, recipe: Recipe, text: TrainingText, control: Control, started: float, process: ProcessRank
) -> None:
    """Plan, train and save; resume from the newest whole checkpoint if there is one.

    Raises:
        TinychatError: If the run cannot go on, with what to do about it.
    """
    machine = find_machine(recipe, process)
    recipe = dataclasses.replace(
        recipe, device=machine.device, precision=machine.precision, validation_fraction=text.validation_fraction
    )
    state = load_checkpoint(run.checkpoints)
    if state is not None and state.fingerprint != text.fingerprint:
        raise RunError(f"{text.facts.name} has changed since this run began", "begin a new run")
    rewind(run.events_file, -1 if state is None else state.step)
    with closing(MetricsLog(run, recipe.log, run.events())) as metrics, closing(EventLog(run.events_file)) as log:

        def report(event: Event) -> None:
            log.write(event)
            metrics.write(event)
            if isinstance(event, Stepped | Ended):  # it goes on from here, whatever comes
                shutil.rmtree(run.earlier, ignore_errors=True)

        Trainer(run, text, machine, ProcessGroup(process), report, started).train(recipe, control, state)


@dataclass(frozen=True)
class Trainer:
    """Trainer of a run, from its start or resumption to its end or stop."""

    run: RunFolder
    text: TrainingText
    machine: Machine
    group: ProcessGroup
    report: Callable[[Event], None]
    started: float
    """`time.monotonic()` when the person gave the command."""

    def train(self, recipe: Recipe, control: Control, state: State | None) -> None:
        """Train from a checkpoint or the beginning to the end, or until stopped; then evaluate, save and report."""
        for notice in self.text.notices if state is None else ():
            self.report(Noticed(notice))
        extends = state is not None and state.length != recipe.length
        before = recipe if state is None else recipe.merged(state.length)
        if state is not None and extends:
            extend(state, recipe)
        plan, learner = self._make_plan_and_learner(recipe, state)
        if state is not None and extends:
            try:
                self._check_extension(plan, state)
            except TinychatError:
                save_recipe(self.run, before)
                raise
        plan = self._plan_evaluations(plan, learner, state)
        text = self.text.with_less_validation(plan.val_fraction)
        if text is not self.text:
            evaluate(learner.model, text.eval_text, 1)  # indexes the text, which is no time of an evaluation
        model = ModelFacts(self.run.name, plan, text, self.machine, learner.model.parameter_count)
        self._report_plan(model, state)
        recipe = plan.recipe
        batches = self.text.batches(recipe, plan.config, plan.row_length, plan.batch_size)
        if recipe.compile:
            self.report(Noticed("the layers are compiled first: about half a minute"))
            if problem := learner.compile(batches.batch(0)):
                self.report(Noticed(f"the layers cannot be compiled, so steps take a little longer: {problem}"))
        if state is None and plan.available is not None:  # planning took some of the time
            plan = dataclasses.replace(plan, available=self._available(60 * (recipe.minutes or 0)))
        elif state is not None and state.available is not None and extends:
            state.available -= self._elapsed
        start_seconds = self._elapsed
        writer = ModelWriter(self.run, model)
        publisher = Publisher(self.run, writer.write_newest, tied=plan.config.tie_embeddings)
        io = RunIO(control, self.report, writer.save, partial(load_checkpoint, self.run.checkpoints), publisher)
        loop = Loop(Training(plan, text, batches, learner), io, state)

        reason = loop.run()
        publisher.save_snapshot(loop.step, loop.learner.model.state_dict())
        self.group.leave()  # sharded weights were gathered for the snapshot: the workers are no longer needed
        began = loop.seconds
        best = loop.evaluate_best()
        if state is not None:
            best = self._keep_better(loop, best)
        self._save_model(loop, writer, best, make_ended_event(loop, self.run, best, began, reason, start_seconds))

    @property
    def _elapsed(self) -> float:
        """Seconds since the person gave the command."""
        return time.monotonic() - self.started

    def _available(self, seconds: float) -> float:
        """Return how much is left of the seconds that the whole run may take.

        Raises:
            RunError: If that is too little for a step.
        """
        if (left := seconds - self._elapsed) >= MIN_AVAILABLE_SECONDS:
            return left
        minutes = math.ceil((self._elapsed + 5) / 60 * 20) / 20
        problem = f"the time is over before the first step: to read the text and to start took {self._elapsed:.0f} s"
        raise RunError(f"{problem} of the {seconds:.0f}", f"give it more, such as --minutes {minutes:g}")

    def _check_extension(self, plan: Plan, state: State) -> None:
        """Check that a run that was extended has a step to take.

        Raises:
            UsageError: If it has more steps behind it.
            RunError: If there is no time for one.
        """
        ((name, length),) = plan.recipe.length.items()
        if state.available is None:
            if state.step >= plan.steps:
                epochs = state.step * plan.batch_size / plan.epoch_rows
                raise length_error(self.run, name, length, epochs if name == "epochs" else state.step)
            return
        added = state.available - state.seconds
        taken = self._elapsed + dataclasses.replace(plan, available=state.available).make_ending().seconds()
        if (missing := taken + state.step_seconds - added) > 0:
            minutes = math.ceil((60 * length + missing + 5) / 60 * 20) / 20
            problem = "the time is over before the next step: to start and to end takes"
            remedy = f"give it more in all, such as --minutes {minutes:g}"
            raise RunError(f"{problem} {taken:.1f} s of the {added:.1f} that are added", remedy)

    def _make_plan_and_learner(self, recipe: Recipe, state: State | None) -> tuple[Plan, Learner]:
        """Make the plan and its learner; plan anew if steps, timed once more, are much faster than they were.

        The machine was busy then, and a larger model may fit into the time.
        """
        timer = StepTimer(recipe, self.group, round(self.text.facts.document_tokens))
        plan = self._make_plan(recipe, state, timer)
        learner = self._make_learner(plan, state)
        if state is not None or plan.available is None or self.group.size > 1:
            return plan, learner
        if timer(cut_context(plan.config, plan.row_length), plan.batch_size) < plan.step_seconds / MIN_RECOVERY:
            again = self._make_plan(recipe, state, timer)
            same = (again.config, again.recipe) == (plan.config, plan.recipe)  # learning rates depend on the steps
            learner = learner if same else self._make_learner(again, state)
            plan = again
        return plan, learner

    def _make_plan(self, recipe: Recipe, state: State | None, timer: StepTimer) -> Plan:
        """Make the plan and save its recipe, so that a resumed run follows the same plan."""
        seconds = None
        if recipe.minutes is not None:
            seconds = 60 * recipe.minutes
        elif recipe.steps is None and recipe.epochs is None:
            seconds = default_seconds(self.text.facts.characters)

        def measure(config: ModelConfig, batch_size: int) -> float:
            check_memory(config, self.machine)
            known = state.step_seconds if state else None
            return known or timer(config, batch_size)

        elapsed = 0.0 if state else self._elapsed
        plan = make_plan(recipe, self.text.facts, self.machine, measure, seconds, elapsed)
        if state is not None:  # longer runs count more, but what this one has counted stays
            plan = dataclasses.replace(plan, counted_tokens=state.counted_tokens)
        save_recipe(self.run, plan.recipe)
        return plan

    def _plan_evaluations(self, plan: Plan, learner: Learner, state: State | None) -> Plan:
        """Return the plan with evaluations of the size that time allows, as measured; a resumed run keeps its own."""
        if state is not None and state.eval_windows:
            return dataclasses.replace(plan, eval_windows=state.eval_windows, val_fraction=state.val_fraction)
        if plan.available is None:
            return plan
        times = []
        for windows in TIMED_WINDOWS:
            began = time.perf_counter()
            tokens = evaluate(learner.model, self.text.eval_text, windows).tokens
            times.append((time.perf_counter() - began) / tokens)
        available = self._available(60 * (plan.recipe.minutes or 0))
        # The first one warms up. The slowest counts: on a busy machine, the final one will be as slow.
        return dataclasses.replace(plan, available=available).with_evaluations(max(times[1:]))

    def _make_learner(self, plan: Plan, state: State | None) -> Learner:
        """Make the model and its optimizers."""
        base, folds = self.text.base, None
        if plan.config.ngram_order:
            folds = self.text.ngram_folds(plan.counted_tokens)
        if base is None:
            return Learner(plan.config, plan.recipe, self.group, folds)
        weights = base.weights(plan.config.context_length)
        earlier = None
        if folds is not None:
            counts = {name: weights[f"ngrams.{name}"] for name in COUNT_BUFFERS}
            keeps = state.keeps_counts if state else self.text.is_known
            if keeps or (state is None and self._are_helpful(counts, plan, weights, folds)):
                earlier = counts
            elif state is None:
                self.report(Noticed(f"the n-gram counts of {base.info.name} do not help here, and are left out"))
        return Learner(plan.config, plan.recipe, self.group, folds, weights, earlier)

    def _are_helpful(self, earlier: Counts, plan: Plan, weights: dict[str, Tensor], folds: Sequence[Ids]) -> bool:
        """Return whether the counts of another text, beside those of this text, predict it no worse than these alone.

        Each fold is predicted from the others.
        """
        losses = []
        for counts in (earlier, None):
            model = Transformer(plan.config)
            model.load_state_dict(weights)
            assert model.ngrams is not None
            model.ngrams.count(folds, counts)
            model.to(self.machine.device)
            windows = max(MIN_WINDOWS_TO_CHOOSE, TOKENS_TO_CHOOSE // plan.config.context_length)
            losses.append(evaluate(model, max(self.text.parts, key=len), windows, trained_on=True).loss)
        return losses[0] <= losses[1]

    def _keep_better(self, loop: Loop, best: Evaluation) -> Evaluation:
        """Return the better of what a run has reached and what it had reached before it was extended, if it was.

        Evaluations along the way are over a part of the split, by which weights can be better that are not on the whole
        of it. The weights of the earlier model, in its folder, are loaded where that one is better.
        """
        folder, config = self.run.final_folder, loop.plan.config
        try:
            info = open_info(folder)
            record = read_training(folder, info.files)
            earlier, step = Evaluation(record["loss"], record["tokens"], record["accuracy"]), record["step"]
            is_of_text = (record["data"]["fingerprint"], earlier.tokens) == (self.text.fingerprint, best.tokens)
            if not is_of_text or info.architecture != config.to_dict() or not earlier.loss < best.loss:
                return best
            weights = read_weights(info)
            part_loss = float(record["last"]["best_part_loss"])
        except (ModelError, KeyError, TypeError):  # there is none, or it is of something else by now
            return best
        self.report(Noticed(f"over the whole split, the model of step {step:,} is better: it is kept"))
        loop.kept_start = None
        loop.learner.model.load_state_dict(weights)
        loop.state.best_weights, loop.state.best_step, loop.state.best_loss = weights, step, part_loss
        return earlier

    def _report_plan(self, model: ModelFacts, state: State | None) -> None:
        """Report the plan of a new run, or the step at which an old one resumes."""
        if state is not None:
            self.report(Noticed(f"goes on from step {state.step:,}"))
            return
        facts, plan = self.text.facts, model.plan
        for notice in plan.notices:
            self.report(Noticed(notice))
        if notice := describe_cut(plan):
            self.report(Noticed(notice))
        if cut := self.text.count_truncated(plan.config.context_length):
            self.report(Noticed(f"{cut:,} of {facts.rows:,} documents are longer than the context, and are cut"))
        self.report(summarize_plan(plan, facts, self.machine, model.parameters))

    def _save_model(self, loop: Loop, writer: "ModelWriter", best: Evaluation, ended: Ended) -> None:
        """Write the model to the run and to its final folder, and report the end of the run.

        Raises:
            RunError: If the model cannot be written.
        """
        if (start := loop.kept_start) is not None:
            plan = dataclasses.replace(writer.model.plan, config=start.config)
            facts = dataclasses.replace(writer.model, plan=plan, parameters=start.parameter_count)
            writer = dataclasses.replace(writer, model=facts)
        remedy = f"make room, and `tinychat train --resume {self.run.typed_name}` ends what is begun"
        for folder in (self.run.model, self.run.final_folder):
            try:
                curve = loss_curve(self.run.events_file)
                figures = Figures(loop.state.best_step, loop.seconds, best, curve, ended)
                writer.write(folder, loop.state.best_weights, figures)
            except OSError as error:
                raise RunError(f"the model cannot be written to {folder}: {error.strerror or error}", remedy) from None
            remedy = f"it is whole in {folder}"
        self.report(dataclasses.replace(ended, seconds=loop.seconds))


def extend(state: State, recipe: Recipe) -> None:
    """Let a run go on to the length that its recipe has by now, with the learning rates of a run of that length.

    A run that was done has used all of its minutes, including those for its last evaluation.
    """
    used = 60 * state.length["minutes"] if state.is_done and "minutes" in state.length else state.seconds
    state.available = None if recipe.minutes is None else state.seconds + 60 * recipe.minutes - used
    state.length, state.is_done = recipe.length, False


@dataclass(frozen=True)
class ModelWriter:
    """Write the folder of the model: in the run while it trains, and the final one at the end."""

    run: RunFolder
    model: ModelFacts

    def save(self, state: State) -> None:
        save_checkpoint(self.run.checkpoints, state)
        self.write_newest(state)

    def write_newest(self, state: State) -> None:
        figures = Figures(state.step, state.seconds, best_evaluation(state), loss_curve(self.run.events_file))
        self.write(self.run.model, state.weights, figures)

    def write(self, folder: Path, weights: dict[str, Tensor], figures: Figures) -> None:
        model, text = self.model, self.model.text
        info = ModelInfo(
            model.name,
            folder,
            text.mode,
            model.plan.config.to_dict(),
            text.tokenizer.kind,
            model.parameters,
            text.template,
            self._settings,
            model.plan.recipe.description or f"{model.origin}trained on {text.facts.name}",
        )
        training, card = training_record(model, figures), model_card(model, figures)
        save_model(
            info, weights, text.tokenizer, text.source_tokenizer, training=training, card=card, step=figures.step,
            precision="f16" if model.parameters >= HALF_PRECISION_PARAMETERS else "f32",
        )  # fmt: skip

    @property
    def _settings(self) -> dict[str, Any]:
        """Default settings of the model: the temperature of its samples, and their length if above the usual one.

        The others are those of the model that it started from.
        """
        recipe, base = self.model.plan.recipe, self.model.text.base
        inherited = {} if base is None else base.info.settings
        temperature = {} if recipe.sample_temperature is None else {"temperature": recipe.sample_temperature}
        longer = recipe.sample_tokens > Settings().max_tokens
        return {**inherited, **temperature, **({"max_tokens": recipe.sample_tokens} if longer else {})}


def make_ended_event(
    loop: Loop, run: RunFolder, best: Evaluation, began: float, reason: Literal["done", "stopped"], start_seconds: float
) -> Ended:
    """Return the last event of a run, whose best weights are loaded: losses, samples, their copies, and times.

    `best` is their evaluation, which began after so many seconds. What comes here gives way if time is short.
    """
    text, plan, ending = loop.text, dataclasses.replace(loop.plan, config=loop.model.config), loop.ending
    part = loop.best
    assert part is not None  # evaluated before

    def affordable_windows() -> int:
        """Return how many windows, or documents, there is time to evaluate."""
        if plan.available is None:
            return plan.eval_windows
        return min(plan.eval_windows, int(ending.training_text_tokens(loop.seconds) / plan.predicted_tokens))

    trained: Evaluation | None = best
    if loop.kept_start is not None and plan.config.ngram_order:
        trained = None  # whether its counts are of this text is not known
    elif len(text.val):
        longest = max(text.parts, key=len)
        windows = affordable_windows()
        enough = windows >= min(plan.eval_windows, MIN_TRAINED_WINDOWS)
        trained = evaluate(loop.model, longest, windows, trained_on=True) if enough else None
    meter = MixtureMeter()
    if plan.config.ngram_order and (windows := affordable_windows()):
        evaluate(loop.model, text.eval_text, windows, trained_on=text.split == "train", meter=meter)
    evaluation_seconds = loop.seconds - began
    seconds = ending.final_sample_seconds(loop.seconds)
    count = ending.samples if seconds >= MIN_SAMPLE_SECONDS else 0
    prompts = tuple(islice(cycle(loop.prompts), count))
    samples = tuple(loop.generate_samples(prompts, range(count), seconds)) if count else ()
    until = loop.seconds + ending.final_search_seconds(loop.seconds)
    copied = longest_copy(samples, text.train, text.tokenizer, lambda: loop.seconds >= until)

    events = list(LineReader(run.events_file).events())
    steps = [event for event in events if isinstance(event, Stepped)]
    curves = Curves()
    for event in events:
        curves.update(event)
    last_loss = next((loss for step, loss in reversed(curves.validation) if step == loop.step), None)
    return Ended(
        reason=reason,
        step=loop.step,
        loss=best.loss,
        perplexity=best.perplexity,
        bits_per_character=best.bits_per_character(text.characters_per_token(plan.config.context_length)),
        seconds=loop.seconds,
        folder=str(run.final_folder),
        samples=samples,
        split=text.split,
        tokens=best.tokens,
        best_step=loop.state.best_step,
        training_loss=None if trained is None else trained.loss,
        part_tokens=part.tokens,
        best_part_loss=part.loss,
        last_part_loss=last_loss,
        last_training_loss=recent_loss(curves.training),
        overfits_since=curves.overfits_since,
        copied=copied.text,
        copied_position=copied.position,
        copied_searched=copied.searched,
        start_seconds=start_seconds,
        step_seconds=sum(
            max(0, event.step - before) * loop.batches.tokens_per_batch / event.tokens_per_second
            for before, event in zip([0, *(event.step for event in steps)], steps, strict=False)
        ),
        evaluation_seconds=evaluation_seconds + sum(event.seconds for event in events if isinstance(event, Evaluated)),
        accuracy=best.accuracy,
        prompts=prompts,
        mixture=meter.figures() if meter.tokens else {},
        mixture_tokens=meter.tokens,
        start="" if text.base is None else text.base.info.name,
        start_loss=loop.state.start_loss,
    )
