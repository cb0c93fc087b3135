"""Runs that start from a model, which they never make worse, and runs that are extended."""

import json
from pathlib import Path

import pytest
from training import TINY, events, make, train, weights, write_text

from tinychat.errors import UsageError
from tinychat.events import Ended, Evaluated, Noticed, Stepped
from tinychat.store.models import find_model, read_card, read_info, read_training
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.token_cache import Ids
from tinychat.train.data import TrainingText
from tinychat.train.launch import change_recipe, describe_done, measure_length, prepare_run
from tinychat.train.recipe import choose_recipe, load_recipe

WORDS = ["the", "fox", "sees", "a", "bird", "and", "the bird", "sings", "loud", "in", "trees"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_text(tmp_path / "text.txt", WORDS, 1500)


def go_on(source: Path, **fields: object) -> RunFolder:
    """Train from the model of that text, on a source."""
    own = ("n_layer", "d_model", "context_length")
    tiny = {name: value for name, value in TINY.items() if name not in own}
    run = prepare_run(choose_recipe(None, {**tiny, "sources": [str(source)], "from_model": "text", **fields}))
    assert train(run) == 0, list(run.events())[-1]
    return run


@pytest.mark.slow
def test_going_on_begins_with_the_loss_of_the_start_and_counts_the_text_with_folds(text: Path) -> None:
    first = make(text, steps=40)
    assert train(first) == 0
    run = go_on(text, steps=20, evaluate_every=10)
    (start,), (ended,) = events(first, Ended), events(run, Ended)
    evaluated = events(run, Evaluated)[0]
    assert (evaluated.step, evaluated.best) == (0, True)
    assert evaluated.loss == pytest.approx(start.loss, abs=1e-4)  # its weights were saved in f16
    assert (ended.start, ended.start_loss) == ("text", evaluated.loss)
    assert ended.loss <= evaluated.loss
    assert f"| start | text had val {start.loss:.4f}, " in read_card(find_model(run.name))
    assert all(abs(stepped.loss - start.training_loss) < 0.3 for stepped in events(run, Stepped))  # no look at itself
    before, after = weights(find_model("text")), weights(find_model(run.name))
    assert all(before[f"ngrams.{name}"].equal(after[f"ngrams.{name}"]) for name in ("contexts", "counts"))


def test_where_nothing_is_held_out_the_start_leaves_out_its_own_counts_too(text: Path) -> None:
    first = make(text, steps=4, validation_fraction=1e-5)
    assert train(first) == 0
    (start,), evaluated = events(first, Ended), events(go_on(text, steps=2, validation_fraction=1e-5), Evaluated)
    assert [event.split for event in evaluated] == ["train", "train"]
    assert evaluated[0].loss == pytest.approx(start.loss, abs=1e-4)  # its weights were saved in f16


@pytest.mark.slow
def test_where_no_step_makes_it_better_the_start_is_kept(text: Path) -> None:
    assert train(make(text, steps=40)) == 0
    run = go_on(text, steps=8, learning_rate=50.0, embedding_learning_rate=50.0, evaluate_every=4)
    (ended,) = events(run, Ended)
    assert (ended.best_step, ended.loss) == (0, ended.start_loss)
    assert ended.training_loss is None
    before, after = weights(find_model("text")), weights(find_model(run.name))
    assert before.keys() == after.keys()
    assert all(before[name].equal(after[name]) for name in before)
    assert read_info(find_model(run.name)).architecture["context_length"] == 16
    assert read_training(find_model(run.name))["loss"] == ended.loss


@pytest.mark.slow
def test_a_start_whose_context_is_longer_is_measured_as_it_is_saved(text: Path) -> None:
    fields = {"ngram_order": 0, "bigram_embedding": False, "position": "learned"}
    first = make(text, steps=40, **fields)
    assert train(first) == 0
    rates = {"learning_rate": 50.0, "embedding_learning_rate": 50.0}
    run = go_on(text, steps=4, context_length=4, sample_tokens=8, **rates)
    (start,), (ended,), evaluated = events(first, Ended), events(run, Ended), events(run, Evaluated)[0]
    assert (ended.best_step, ended.loss, ended.tokens) == (0, ended.start_loss, start.tokens)
    assert ended.loss == pytest.approx(start.loss, abs=1e-4)  # its weights were saved in f16
    assert ended.training_loss == pytest.approx(start.training_loss, abs=0.05)
    assert (evaluated.loss, evaluated.tokens) == (ended.loss, ended.tokens)
    before, after = read_info(find_model("text")), read_info(find_model(run.name))
    assert after.architecture["context_length"] == 16
    assert before.parameters == after.parameters
    assert weights(before.folder)["decoder.position.table.weight"].equal(
        weights(after.folder)["decoder.position.table.weight"]
    )


@pytest.mark.slow
@pytest.mark.parametrize(  # a start that has learned little can gain from a little more of its own text
    ("words", "count", "start_steps", "helps"),
    [(["bold", "rats", "sit", "here"], 1500, 20, False), (WORDS, 100, 4, True)],
)
def test_counts_are_kept_where_they_help(
    text: Path, tmp_path: Path, words: list[str], count: int, start_steps: int, helps: bool
) -> None:
    assert train(make(text, steps=start_steps)) == 0
    run = go_on(write_text(tmp_path / "other.txt", words, count), steps=20, evaluate_every=10)
    (ended,) = events(run, Ended)
    assert ended.best_step > 0
    assert ended.loss < ended.start_loss
    before, after = (set(weights(find_model(name))["ngrams.contexts"].tolist()) for name in ("text", run.name))
    assert (before <= after) is helps
    assert any("are left out" in event.text for event in events(run, Noticed)) is not helps


@pytest.mark.slow
def test_a_translator_goes_on_with_pairs(tmp_path: Path) -> None:
    pairs = [f"a {x} is {y}\tun {x[::-1]} es {y[::-1]}" for x in ("fox", "bird", "tree", "king") for y in WORDS * 2]
    (tmp_path / "text.tsv").write_text("\n".join(pairs), encoding="utf-8")
    fields = {"mode": "translation", "ngram_order": None}
    assert train(make(tmp_path / "text.tsv", steps=20, **fields)) == 0
    run = go_on(tmp_path / "text.tsv", steps=20)
    (ended,) = events(run, Ended)
    assert ended.loss < ended.start_loss == pytest.approx(events(run, Evaluated)[0].loss)
    assert read_info(find_model(run.name)).mode == "translation"
    with pytest.raises(UsageError, match="text translates"):
        go_on(tmp_path / "text.tsv", mode="completion", steps=1)


@pytest.mark.slow
def test_what_the_start_has_not_seen_of_a_text_measures_both(tmp_path: Path) -> None:
    names = write_text(tmp_path / "text.csv", ["anna", "otto", "eve", "ada", "bob", "tim", "lea", "max"], 400, "\n")
    names.write_text("name\n" + names.read_text(encoding="utf-8"), encoding="utf-8")
    fields = {"packing": False, "validation_fraction": 0.05, "steps": 2}
    first = make(names, **fields)
    assert train(first) == 0
    run = go_on(names, steps=2)
    recipe = load_recipe(run.recipe_file)
    assert (recipe.packing, recipe.validation_fraction) == (False, 0.05)
    assert events(run, Evaluated)[0].tokens == events(first, Ended)[0].tokens
    assert "text has seen all but 5.0 % of this text: that part measures both" in {e.text for e in events(run, Noticed)}


@pytest.mark.slow
def test_a_run_that_is_done_says_so_and_is_extended_by_its_length(text: Path) -> None:
    run = make(text, steps=40, evaluate_every=10, ngram_order=0, bigram_embedding=False)
    assert train(run) == 0
    (first,) = events(run, Ended)
    assert not change_recipe(run, {})
    assert describe_done(run) == (
        f"text is done: 40 steps, val loss {first.loss:.4f}",
        "it goes on with a new length in all: `tinychat train --resume text --steps 80`",
    )
    with pytest.raises(UsageError, match="--steps 40 is not more than the 40"):
        change_recipe(run, {"steps": 40})
    with pytest.raises(UsageError, match="how much more"):
        change_recipe(run, {}, more=True)
    assert change_recipe(run, {"steps": 30}, more=True)
    assert load_recipe(run.recipe_file).steps == 70
    assert train(run) == 0
    ended = events(run)[-1]
    assert (ended.reason, ended.step) == ("done", 70)
    assert not run.earlier.exists()
    assert ended.loss < first.loss
    rates = {event.step: event.learning_rate for event in events(run, Stepped)}
    late = [rate for step, rate in rates.items() if step > 42]
    assert max(late) > 0.3 * max(rates.values())
    assert late[-1] < 0.2 * max(rates.values())


@pytest.mark.slow
def test_a_run_whose_text_has_changed_stays_done_when_it_cannot_be_extended(text: Path) -> None:
    run = make(text, steps=20)
    assert train(run) == 0
    before, recipe = events(run), load_recipe(run.recipe_file)
    text.write_text(text.read_text(encoding="utf-8") + "\nmore", encoding="utf-8")
    assert change_recipe(run, {"steps": 40})
    assert train(run) == 1
    assert events(run)[-1].problem == "text has changed since this run began"
    run.undo_failed_start()
    assert events(run) == before
    assert load_recipe(run.recipe_file) == recipe
    assert not change_recipe(run, {})


@pytest.mark.parametrize(
    ("name", "problem", "remedy"),
    [
        ("epochs", "--epochs 0.1 is not more than the 0.", "name the length in all, such as --epochs "),
        ("minutes", "the time is over before the next step: to start and to end takes ", "give it more in all"),
    ],
)
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "interrupted"])
def test_an_extension_without_a_step_is_refused_and_leaves_the_run_as_it_was(
    text: Path, name: str, problem: str, remedy: str, ended: bool
) -> None:
    run = make(text, steps=30, ngram_order=0, bigram_embedding=False, evaluate_every=50)
    assert train(run) == 0
    if not ended:
        lines = run.events_file.read_bytes().splitlines(keepends=True)
        run.events_file.write_bytes(b"".join(lines[:-1]))
    before, recipe = events(run), load_recipe(run.recipe_file)
    assert change_recipe(run, {name: 0.1 if name == "epochs" else measure_length(run, recipe)["minutes"] + 0.001})
    assert train(run) == 1
    failed = events(run)[-1]
    assert failed.problem.startswith(problem)
    assert failed.remedy.startswith(remedy)
    run.undo_failed_start()
    assert load_recipe(run.recipe_file) == recipe
    assert events(run) == (before if ended else [*before, failed])


@pytest.mark.slow
def test_an_extended_run_keeps_the_model_that_it_had_where_that_is_better(text: Path) -> None:
    run = make(text, steps=20, evaluate_every=10)
    assert train(run) == 0
    folder = find_model("text")
    before, record = weights(folder), read_training(folder)
    # As a loss over the whole split may be, where that over a part of it is not.
    (folder / "training.json").write_text(json.dumps(record | {"loss": record["loss"] - 5}))
    assert change_recipe(run, {"steps": 10}, more=True)
    assert train(run) == 0
    ended, after = events(run)[-1], weights(folder)
    assert (ended.step, ended.best_step, ended.loss) == (30, record["step"], record["loss"] - 5)
    assert read_training(folder)["step"] == record["step"]
    assert all(before[name].equal(after[name]) for name in before)
    notice = f"over the whole split, the model of step {record['step']} is better: it is kept"
    assert notice in {event.text for event in events(run, Noticed)}


@pytest.mark.slow
def test_a_longer_run_counts_no_more_of_the_text_than_before(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    ngram_folds = TrainingText.ngram_folds

    def count_folds(self: TrainingText, tokens: int) -> list[Ids]:
        counted.append(tokens)
        return ngram_folds(self, tokens)

    monkeypatch.setattr(TrainingText, "ngram_folds", count_folds)
    with monkeypatch.context() as shorter:
        shorter.setattr("tinychat.train.planner.count_limit", lambda seconds: 1000)
        run = make(text, steps=20)
        assert train(run) == 0
    before = weights(find_model("text"))
    assert before["ngrams.counts"][: before["ngrams.widths"][0]].sum() == 1000
    assert change_recipe(run, {"steps": 40})
    assert train(run) == 0
    assert counted == [1000, 1000]  # other counts than those of the checkpoint would have no folds to leave out
    after = weights(find_model("text"))
    assert before["ngrams.contexts"].equal(after["ngrams.contexts"])
    assert before["ngrams.counts"].equal(after["ngrams.counts"])
