"""A trainer from its run's folder to the model: in this process, or in one of its own where it is killed."""

import itertools
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest
import training
from training import QUICK, TINY, events, train, weights

from tinychat.config.settings import SettingStore
from tinychat.corpus.sources import read_sources
from tinychat.evaluate.perplexity import score
from tinychat.events import Ended, Evaluated, Failed, Noticed, Planned, Sampled, Saved, Stepped
from tinychat.model.config import ModelConfig
from tinychat.model.loading import load_model
from tinychat.store.models import find_model, read_card, read_info, read_tokenizer, read_training
from tinychat.store.runs import RunFolder
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.token_cache import encode_corpus
from tinychat.train import trainer
from tinychat.train.checkpoint import newest_step
from tinychat.train.data import read_text
from tinychat.train.distributed import ProcessGroup
from tinychat.train.evaluation import evaluate
from tinychat.train.launch import launch, prepare_run
from tinychat.train.loop import Loop
from tinychat.train.planner import Machine
from tinychat.train.recipe import load_recipe


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A text of 12,000 characters in random sentences."""
    choose = random.Random(0).choice
    words = [["red", "old", "small", "quick"], ["fox", "bird", "king", "tree"], ["sees", "likes", "follows"]]
    lines = (
        f"the {choose(words[0])} {choose(words[1])} {choose(words[2])} the {choose(words[0])} {choose(words[1])}.\n"
        for _ in range(340)
    )
    path = tmp_path / "made up.txt"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def make(source: Path | str, **fields: object) -> RunFolder:
    return training.make(source, **{"sample_tokens": 12, **fields})


@pytest.mark.slow
def test_a_run_plans_trains_samples_and_saves_a_model(text: Path) -> None:
    run = make(text, steps=60, evaluate_every=20)
    assert train(run) == 0
    (planned,) = events(run, Planned)
    assert len(planned.lines) == 3
    assert [event.step for event in events(run, Evaluated)] == [20, 40, 60]
    assert [event.step for event in events(run, Sampled)] == [20, 40, 60]
    ended = events(run)[-1]
    assert isinstance(ended, Ended)
    assert (ended.reason, ended.step) == ("done", 60)
    assert ended.loss < 2.0  # ln 27 = 3.3 before training
    assert len(ended.samples) == 3
    folder = find_model("made-up")
    assert str(folder) == ended.folder
    training = read_training(folder)
    assert training["loss"] == ended.loss
    assert training["recipe"]["schedule"]["steps"] == 60
    assert training["curve"]["validation"][-1][0] == 60
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"{ended.loss:.4f}" in card
    assert "## Train it again" in card
    assert ended.best_step == 60
    assert ended.training_loss == pytest.approx(ended.loss, abs=0.2)
    assert ended.copied in text.read_text("utf-8")
    assert any(ended.copied in sample for sample in ended.samples)
    assert training["copied"]["text"] == ended.copied
    assert training["times"]["steps"] == pytest.approx(ended.step_seconds, abs=0.001)
    assert 0 < ended.step_seconds + ended.evaluation_seconds < ended.seconds
    assert all(event.memory > 1e7 for event in events(run, Stepped))
    assert "tinychat -m made-up" in card
    recipe = load_recipe(run.recipe_file)
    assert recipe.vocab_size == read_tokenizer(folder).vocab_size


@pytest.mark.slow
def test_a_card_names_absent_parts_of_the_architecture(text: Path) -> None:
    run = make(text, steps=2, position="none", feed_forward="none")
    assert train(run) == 0
    assert "no feed-forward, no positions" in read_card(find_model(run.name))


@pytest.mark.slow
def test_each_epoch_is_evaluated_and_every_other_one_sampled(text: Path) -> None:
    fields = {
        "ngram_order": 0,
        "batch_size": 64,
        "sample_prompt": ["the king", "the"],
        "sample_temperature": 0,
        "sample_tokens": 260,
    }
    run = make(text, epochs=4, stride=12, sample_every=2, **fields)
    assert train(run) == 0
    (planned,) = events(run, Planned)
    windows = (planned.tokens - 1 - 16) // 12
    ends = [-(-windows * epoch // 64) for epoch in (1, 2, 3, 4)]
    evaluated = events(run, Evaluated)
    assert [(event.epoch, event.step) for event in evaluated] == list(zip((1, 2, 3, 4), ends, strict=True))
    assert evaluated[0].accuracy < evaluated[-1].accuracy < 1
    expected = [(step, prompt) for step in ends[1::2] for prompt in ("the king", "the")]
    assert [(event.step, event.prompt) for event in events(run, Sampled)] == expected
    (ended,) = events(run, Ended)
    assert ended.prompts == ("the king", "the", "the king")
    assert ended.samples[0] == ended.samples[2]  # at temperature 0
    training = read_training(find_model(run.name))
    last = evaluated[-1]
    epochs = training["curve"]["epochs"]
    losses = [epoch.pop("training_loss") for epoch in epochs]
    assert losses == sorted(losses, reverse=True)
    assert epochs[-1] == {
        "epoch": 4, "step": last.step, "loss": last.loss, "perplexity": last.perplexity, "accuracy": last.accuracy
    }  # fmt: skip
    assert training["accuracy"] == ended.accuracy == last.accuracy
    assert read_info(find_model(run.name)).settings == {"temperature": 0.0, "max_tokens": 260}


@pytest.mark.slow
def test_the_reported_loss_is_that_of_the_saved_model(text: Path, tmp_path: Path) -> None:
    run = make(text, steps=30)
    train(run)
    folder = find_model(run.name)
    corpus = read_sources([str(text)], cache=tmp_path / "cache")
    ids = encode_corpus(corpus, read_tokenizer(folder), tmp_path / "elsewhere").ids
    result = evaluate(load_model(read_info(folder)), ids[int(len(ids) * 0.9) :])
    assert result.loss == pytest.approx(events(run, Ended)[0].loss, abs=1e-4)  # weights are saved in f16


@pytest.mark.slow
@pytest.mark.parametrize("length", [{"steps": 40, "evaluate_every": 10}, {"epochs": 2, "batch_size": 40}])
def test_a_stopped_run_resumes_as_if_it_had_not_been_stopped(text: Path, length: dict[str, float]) -> None:
    whole, halved = (make(text, dropout=0.1, **length) for _ in range(2))
    assert train(whole) == 0
    halved.send("stop")
    assert train(halved) == 0
    (stopped,) = events(halved, Ended)
    assert stopped.reason == "stopped"
    last = events(whole, Ended)[0].step
    assert stopped.step < last
    halved.control_file.unlink()
    assert train(halved) == 0
    (done,) = events(halved, Ended)
    assert (done.reason, done.step) == ("done", last)
    ends, known = ([(event.epoch, event.step) for event in events(run, Evaluated)] for run in (whole, halved))
    assert ends == known[-len(ends) :]  # a stopped run is also evaluated where it stopped
    one, other = weights(whole.model), weights(halved.model)
    assert all(one[name].equal(other[name]) for name in one)
    assert done.loss == events(whole, Ended)[0].loss


@pytest.mark.slow
def test_a_mix_is_evaluated_on_the_end_of_each_text_and_eval_agrees(text: Path, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("a small bird likes the tree.\n" * 30, encoding="utf-8")
    sources = [f"{text}:1", f"{tmp_path / 'short.txt'}:3"]
    run = prepare_run(load_recipe().merged({**TINY, "sources": sources, "steps": 20, "evaluate_every": 20}))
    assert train(run) == 0
    lines = events(run, Planned)[0].lines
    assert "made-up (25 %) and short (75 %)" in lines[0]
    assert "the ends of each, " in lines[0]
    assert re.search(r"; 0\.\d and 2\.\d times through them", lines[2].replace("tokens, ", "; "))
    training = read_training(find_model(run.name))
    assert [(part["name"], part["share"]) for part in training["data"]["mix"]] == [("made-up", 0.25), ("short", 0.75)]
    info = read_info(find_model(run.name))
    result = score(info, sources, settings=SettingStore().current)
    assert result.loss == pytest.approx(events(run, Ended)[0].loss, abs=1e-4)  # weights are saved in f16
    assert result.tokens == training["data"]["val_tokens"] - 1


@pytest.mark.slow
def test_a_run_depends_on_its_recipe_and_seed_only(text: Path) -> None:
    first, second, other = (make(text, steps=10, seed=seed) for seed in (1, 1, 2))
    for run in (first, second, other):
        train(run)
    name = "head.weight"
    assert weights(first.model)[name].equal(weights(second.model)[name])
    assert not weights(first.model)[name].equal(weights(other.model)[name])


@pytest.mark.slow
def test_with_a_time_limit_the_learning_rate_decays_until_time_is_up(text: Path) -> None:
    run = make(text, minutes=6 / 60)
    began = time.monotonic()
    assert train(run) == 0
    assert time.monotonic() - began < 12
    rates = [event.learning_rate for event in events(run, Stepped)]
    assert rates[-1] < 0.2 * max(rates)  # the last step may have started well before the end
    assert events(run, Ended)[0].reason == "done"


@pytest.mark.slow
def test_a_run_whose_time_is_up_is_done_even_if_its_last_steps_were_fast(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, report, reported_at = make(text, steps=100), Loop._report, [-1]

    def record_report(loop: Loop) -> None:
        report(loop)
        reported_at[0] = loop.step

    monkeypatch.setattr(Loop, "_report", record_report)
    monkeypatch.setattr(Loop, "_is_over", lambda loop: loop.step >= 3 and reported_at[0] < loop.step)
    assert train(run) == 0
    assert events(run, Ended)[0].reason == "done"


@pytest.mark.slow
def test_commands_are_run_during_training(text: Path) -> None:
    run = make(text, minutes=5 / 60)
    run.send("sample", prompt="the king")
    run.send("evaluate")
    train(run)
    assert all(step.tokens_per_second > 0 for step in events(run, Stepped))
    assert events(run, Sampled)[0].prompt == "the king"
    assert events(run, Sampled)[0].is_continuation
    assert len(events(run, Evaluated)) > 1


@pytest.mark.slow
def test_a_command_to_sample_is_declined_in_a_run_without_samples(text: Path) -> None:
    run = make(text, steps=3, sample_tokens=0)
    run.send("sample")
    train(run)
    assert events(run, Sampled) == []
    assert any("--sample-tokens 0" in event.text for event in events(run, Noticed))


@pytest.mark.slow
def test_the_best_weights_are_kept_when_the_text_is_memorized(tmp_path: Path) -> None:
    letters = random.Random(1).choices("abcdefgh", k=600)
    (tmp_path / "noise.txt").write_text("".join(letters), encoding="utf-8")
    run = make(tmp_path / "noise.txt", steps=300, evaluate_every=20, dropout=0, ngram_order=0)
    train(run)
    losses = [event.loss for event in events(run, Evaluated)]
    assert min(losses) < losses[-1]
    ended = events(run, Ended)[0]
    assert ended.loss == min(losses)
    assert ended.overfits_since == ended.best_step == 20 * (losses.index(min(losses)) + 1)
    assert (ended.best_part_loss, ended.last_part_loss) == (min(losses), losses[-1])
    assert ended.training_loss < ended.loss


@pytest.mark.slow
def test_a_model_of_a_short_text_takes_at_most_four_bytes_a_character(tmp_path: Path) -> None:
    docs = Path(__file__).parents[2] / "docs"
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(docs.glob("*.md")))[:105_000]
    (tmp_path / "docs.txt").write_text(text, encoding="utf-8")
    run = prepare_run(load_recipe().merged({**QUICK, "sources": [str(tmp_path / "docs.txt")], "steps": 2}))
    assert train(run) == 0
    assert len(text) == 105_000
    assert sum(path.stat().st_size for path in find_model(run.name).iterdir()) <= 4 * len(text)


@pytest.mark.slow
def test_a_text_too_short_for_validation_is_used_for_training_with_a_notice(tmp_path: Path) -> None:
    (tmp_path / "haiku.txt").write_text("an old pond: a frog jumps in, the sound of water", encoding="utf-8")
    run = make(tmp_path / "haiku.txt", steps=5, context_length=None)
    assert train(run) == 0
    assert any("validation" in event.text for event in events(run, Noticed))
    assert events(run, Evaluated)[-1].split == "train"


def test_ngrams_are_measured_on_their_own_text_by_the_other_folds(tmp_path: Path) -> None:
    draw, text = random.Random(3), tmp_path / "words.txt"
    words = ["".join(draw.choices("abcdefghij", k=5)) for _ in range(300)]
    text.write_text(" ".join(draw.choices(words, k=1500)), encoding="utf-8")
    run = make(text, steps=2, validation_fraction=1e-5, sample_tokens=0)
    assert train(run) == 0
    (ended,), evaluated = events(run, Ended), events(run, Evaluated)[-1]
    assert (ended.split, evaluated.split) == ("train", "train")
    assert ended.loss == ended.training_loss == evaluated.loss
    result = score(read_info(find_model(run.name)), [str(text)], "train", settings=SettingStore().current)
    assert result.loss < ended.loss - 0.1
    told = "words counted n-grams in this text, and knows it by heart: its loss elsewhere is higher"
    assert told in result.notices


@pytest.mark.slow
def test_documents_are_learned_with_their_ends(tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("name\n" + "\n".join(["anna", "otto", "eve"] * 60), encoding="utf-8")
    run = make(tmp_path / "names.csv", steps=80, sample_tokens=40)
    assert train(run) == 0
    assert {name for event in events(run, Ended) for name in event.samples} <= {"anna", "otto", "eve"}


@pytest.mark.slow
def test_conversations_make_a_chat_model(tmp_path: Path) -> None:
    lines = ['{"prompt": "how are you?", "completion": "fine, and you?"}', '{"prompt": "hello", "completion": "hi!"}']
    (tmp_path / "talk.jsonl").write_text("\n".join(lines * 50), encoding="utf-8")
    run = make(tmp_path / "talk.jsonl", steps=60, context_length=32, tokenizer="wordpiece")
    assert train(run) == 0
    info = read_info(find_model(run.name))
    assert info.mode == "chat"
    assert info.template == ChatTemplate(user_prefix=" ")
    assert events(run, Sampled)[0].prompt == "how are you?"
    assert not events(run, Sampled)[0].is_continuation


@pytest.mark.parametrize(
    ("content", "problem"),
    [("", "empty"), ("a", "one character over and over"), (None, "no file")],
    ids=["empty", "one letter", "absent"],
)
def test_an_unusable_text_ends_the_run_with_the_reason(tmp_path: Path, content: str | None, problem: str) -> None:
    path = tmp_path / "text.txt"
    path.write_text("once upon a time")
    run = make(path, steps=5)
    path.unlink() if content is None else path.write_text(content)
    assert train(run) == 1
    failed = events(run)[-1]
    assert isinstance(failed, Failed)
    assert failed.is_mistake
    assert problem in failed.problem
    assert failed.remedy or content is not None


@pytest.mark.slow
def test_a_loss_that_stays_nan_ends_the_run(text: Path) -> None:
    run = make(text, steps=200, optimizer="sgd", learning_rate=1e30, grad_clip=0)
    assert train(run) == 1
    assert "--learning-rate" in events(run, Failed)[0].remedy


def test_an_unexpected_error_is_reported_and_its_traceback_is_in_the_log(
    text: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = make(text, steps=5)
    monkeypatch.setattr("tinychat.train.trainer.find_machine", lambda *_: 1 / 0)
    assert train(run) == 1
    assert "ZeroDivisionError" in events(run, Failed)[0].problem
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.slow
def test_a_run_does_not_resume_on_a_changed_text(text: Path) -> None:
    run = make(text, steps=10)
    train(run)
    text.write_text(text.read_text("utf-8") + "the end", encoding="utf-8")
    assert train(run) == 1
    assert "changed" in events(run, Failed)[0].problem


def test_a_second_trainer_of_a_run_exits(text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.train.__main__.LOCK_TIMEOUT", 0.05)
    run = make(text, steps=5)
    with run.lock():
        assert train(run) == 1
    assert not run.events_file.exists()


@pytest.mark.slow
@pytest.mark.long
def test_a_run_killed_at_any_moment_ends_as_if_it_had_not_been(text: Path) -> None:
    fields = {"steps": 400, "evaluate_every": 40, "dropout": 0.1}
    whole, killed = make(text, **fields), make(text, **fields)
    assert launch(whole, stop_with_parent=True).wait(250) == 0
    moments = random.Random(7)
    for attempt in itertools.count():
        process = launch(killed, stop_with_parent=True)
        until = time.monotonic() + (moments.uniform(2.5, 7) if attempt < 3 else 200)
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not killed.is_running()
        for event in events(killed):  # every line but the last is whole
            assert not isinstance(event, Failed)
    assert process.returncode == 0
    one, other = weights(whole.model), weights(killed.model)
    assert all(one[name].equal(other[name]) for name in one)
    assert [event.step for event in events(killed, Evaluated)] == [event.step for event in events(whole, Evaluated)]
    assert newest_step(killed.checkpoints) == 400
    assert not list(killed.path.rglob("*.tmp"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_after_the_step_and_saves_everything(text: Path, number: signal.Signals) -> None:
    run = make(text, minutes=2)
    process = launch(run, stop_with_parent=True)
    wait_for(run, Stepped)
    process.send_signal(number)
    assert process.wait(120) == 0
    assert events(run, Ended)[0].reason == "stopped"
    assert events(run, Saved)
    assert find_model(run.name)


def wait_for(run: RunFolder, kind: type, seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while not events(run, kind):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.slow
def test_a_load_while_steps_were_timed_is_corrected_before_the_first_step(
    text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text.write_text(60 * text.read_text("utf-8"), encoding="utf-8")  # long enough for several sizes

    def planned(slow: int) -> tuple[ModelConfig, int]:
        """The architecture if the first timings are slow, and the number of timings."""
        calls = itertools.count(1)
        monkeypatch.setattr(trainer, "StepTimer", lambda *_: lambda *_: 2.0 if next(calls) <= slow else 0.001)
        fields = {"n_layer": None, "d_model": None, "context_length": None, "batch_size": None, "minutes": 1}
        run = make(text, **fields)
        recipe = load_recipe(run.recipe_file)
        machine, group = Machine("cpu", "f32", 1), ProcessGroup()
        one = trainer.Trainer(run, read_text(recipe, run), machine, group, lambda _: None, time.monotonic())
        plan, learner = one._make_plan_and_learner(recipe, None)
        assert learner.config == plan.config
        return plan.config, next(calls)

    undisturbed, _ = planned(slow=0)
    smallest, _ = planned(slow=100)
    corrected, timings = planned(slow=3)
    assert smallest.d_model < undisturbed.d_model
    assert corrected == undisturbed
    assert timings < 12
