"""One sitting of a trainer, from the tokenized text to the model: all of it that needs torch."""

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

from tinychat.atomic import atomic_write
from tinychat.errors import RunError
from tinychat.events import Ended, Event, Noticed
from tinychat.model.ngrams import MOST_COUNTED
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.rows import Rows
from tinychat.train.announcing import announce
from tinychat.train.asked import find_asked
from tinychat.train.batches import Batches
from tinychat.train.checkpoint import State, load_checkpoint, save_checkpoint
from tinychat.train.control import Control
from tinychat.train.data import TrainingText
from tinychat.train.journal import Journal, loss_curve, rewind
from tinychat.train.learner import Learner
from tinychat.train.loop import Loop
from tinychat.train.machine import find_machine, step_seconds
from tinychat.train.plan import Machine, Plan
from tinychat.train.planner import default_seconds, make_plan
from tinychat.train.processes import ALONE, Place
from tinychat.train.publishing import Publisher, Weights
from tinychat.train.recipe import Recipe
from tinychat.train.result import Figures, ModelWriter
from tinychat.train.summary import summarize
from tinychat.train.team import Team


def train(
    run: RunFolder, recipe: Recipe, text: TrainingText, control: Control, started: float, place: Place = ALONE
) -> None:
    """Plans, trains and saves; goes on from the newest whole checkpoint where there is one.

    Args:
        recipe: as it stands in the run's folder.
        started: `time.monotonic()` when the person gave the command.
        place: of this process, which leads, among those that train together.

    Raises:
        TinychatError: what is in the way.
    """
    machine = find_machine(recipe, place)
    recipe = dataclasses.replace(recipe, device=machine.device, precision=machine.precision)
    state = load_checkpoint(run.checkpoints)
    if state is not None and state.fingerprint != text.fingerprint:
        raise RunError(f"{text.facts.name} has changed since this run began", "begin a new run")
    rewind(run.events_file, -1 if state is None else state.step)
    journal = Journal(run.events_file)
    try:
        Trainer(run, recipe, text, control, machine, state, journal.write, started, Team(place)).train()
    finally:
        journal.close()


class Trainer:
    """What a sitting is made of; see `train`."""

    def __init__(
        self,
        run: RunFolder,
        recipe: Recipe,
        text: TrainingText,
        control: Control,
        machine: Machine,
        state: State | None,
        report: Callable[[Event], None],
        started: float,
        team: Team,
    ) -> None:
        self.run, self.text, self.machine, self.report, self.team = run, text, machine, report, team
        for notice in text.notices if state is None else ():
            report(Noticed(notice))
        self.plan = self._plan(recipe, state, started)
        # A model that goes on keeps its counts: at its first step it is what it was.
        weights = text.start.weights(self.plan.config.context) if text.start else None
        counts = self.plan.config.ngram_order and not text.start
        counted = text.folds(MOST_COUNTED) if counts else None
        learner = Learner(self.plan.config, self.plan.recipe, team, counted, weights)
        parameters = learner.model.parameter_count
        self.writer = ModelWriter(run.name, self.plan, text, machine, parameters)
        if state is None:
            for notice in self.plan.notices:
                report(Noticed(notice))
            if cut := text.cut(self.plan.config.context):
                report(Noticed(f"{cut:,} of {text.facts.rows:,} documents are longer than the context, and are cut"))
            report(announce(self.plan, text.facts, machine, parameters))
        else:
            report(Noticed(f"goes on from step {state.step:,}"))
        batches = Batches(
            text.parts,
            self.plan.config.context,
            self.plan.batch_size,
            self.plan.recipe.seed,
            [source.share for source in text.facts.sources],
            self.plan.recipe.stride,
            find_asked(self.plan.recipe.asked_share, text.template, text.tokenizer, self.plan.recipe.seed),
        )
        if self.plan.recipe.compile:
            report(Noticed("the layers are compiled first: about half a minute"))
            if problem := learner.compile(batches.batch(0)):
                report(Noticed(f"they cannot be, and steps take a little longer: {problem}"))
        if state is None and self.plan.available is not None:  # planning took its time
            available = max(1.0, 60 * (self.plan.recipe.minutes or 0) - (time.monotonic() - started))
            self.plan = dataclasses.replace(self.plan, available=available)
        self.start_seconds = time.monotonic() - started
        publisher = Publisher(run, self._write_model, tied=self.plan.config.tie_embeddings)
        load = partial(load_checkpoint, run.checkpoints)
        self.loop = Loop(self.plan, learner, batches, text, control, report, self._save, load, publisher, state)

    def train(self) -> None:
        """Trains to the end, or until somebody stops it; then measures, saves and says so."""
        reason = self.loop.run()
        self.loop.publisher.keep_snapshot(self.loop.step, self.loop.learner.model.state_dict())
        self.team.end()  # sharded weights have been gathered for the snapshot: the others are needed no more
        result = self.loop.conclude()
        measured = self.text.measured
        context = self.plan.config.context
        whole = measured.predicted(context) if isinstance(measured, Rows) else len(measured) - 1
        if result.tokens < whole:
            self.report(
                Noticed(
                    f"the loss is that of {result.tokens:,} of {whole:,} tokens, spread evenly: "
                    f"`tinychat eval` looks at all of them"
                )
            )
        self._keep(reason)

    def _plan(self, recipe: Recipe, state: State | None, started: float) -> Plan:
        """The plan, which is also written down, so that a later sitting has the same."""
        seconds = None
        if recipe.minutes is not None:
            seconds = 60 * recipe.minutes
        elif recipe.steps is None and recipe.epochs is None:
            seconds = default_seconds(self.text.facts.characters)
        elapsed = 0.0 if state else time.monotonic() - started
        known = state.step_seconds if state else None
        plan = make_plan(
            recipe,
            self.text.facts,
            self.machine,
            lambda config, batch_size: (
                known or step_seconds(recipe, config, batch_size, self.team, round(self.text.facts.row_tokens))
            ),
            seconds,
            elapsed,
        )
        atomic_write(self.run.recipe_file, plan.recipe.to_toml())
        return plan

    def _save(self, state: State) -> None:
        """Writes a checkpoint, and the model as it stands."""
        save_checkpoint(self.run.checkpoints, state)
        self._write_model(state.step, state.weights)

    def _write_model(self, step: int, weights: Weights) -> None:
        self.writer.write(self.run.model, weights, self._figures(step))

    def _figures(self, step: int, ended: Ended | None = None) -> Figures:
        return Figures(step, self.loop.seconds, self.loop.best, loss_curve(self.run.events_file), ended)

    def _keep(self, reason: Literal["done", "stopped"]) -> None:
        """Finds out what the model has become, saves it, and says so."""
        loop = self.loop
        folder = self.run.final_folder
        ended = summarize(loop, self.run.events_file, reason=reason, folder=folder, start_seconds=self.start_seconds)
        remedy = f"make room, and `tinychat train --resume {self.run.name}` ends what is begun"
        for place in (self.run.model, folder):
            try:
                self.writer.write(place, loop.state.best_weights, self._figures(loop.state.best_step, ended))
            except OSError as error:
                raise RunError(f"the model cannot be written to {place}: {error.strerror or error}", remedy) from None
            remedy = f"it is whole in {place}"
        self.report(dataclasses.replace(ended, seconds=loop.seconds))
