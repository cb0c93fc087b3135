"""`tinychat models`, `show`, `recipes`, `runs`, `data`, `config`, `export` and `eval`, as text and as JSON."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tinychat
from tinychat.cli.evaluate import eval_
from tinychat.cli.main import COMMANDS, run
from tinychat.config.settings import SETTINGS
from tinychat.corpus import registry
from tinychat.generate.engine import OVERLAP
from tinychat.store.models import find_model, read_training

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """A function that runs `tinychat` and returns its exit code, stdout and stderr."""

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(call: Call, command: str) -> None:
    code, out, _ = call(command, "--help")
    assert code == 0
    assert out.startswith(f"Usage: tinychat {command}")


def test_help_lists_every_setting_and_every_command(call: Call) -> None:
    out = call("--help")[1]
    for setting in SETTINGS.values():
        assert setting.flag in out
    for command in COMMANDS:
        assert f"  {command} " in out


def test_show_describes_the_architecture(call: Call, letters: Path) -> None:
    shown = json.loads(call("show", str(letters), "--json")[1])
    assert set(shown) >= {"name", "mode", "parameters", "parts", "config", "training"}
    assert sum(part["parameters"] for part in shown["parts"]) == shown["parameters"]
    assert set(shown["parts"][0]) == {"name", "kind", "parameters"}
    drawn = call("show", str(letters))[1].splitlines()
    assert drawn[2].split() == ["embedding", "28", "×", "16", "32", "×", "16", "448"]
    assert any(line.split() == ["in", "all", f"{shown['parameters']:,}"] for line in drawn)


def test_models_lists_the_users_own(call: Call, letters: Path, tmp_path: Path) -> None:
    assert call("import", str(letters), "--name", "mine")[0] == 0
    assert "mine" in [model["name"] for model in json.loads(call("models", "--json")[1])]
    assert ["mine", "completion", "char"] in [line.split()[:3] for line in call("models")[1].splitlines()]
    code, _, err = call("import", str(letters), "--name", "mine")
    assert code == 1
    assert "there is a run or a model 'mine' already" in err
    assert call("import", str(letters), "--name", "../x")[0] == 2
    (tmp_path / "mine.txt").touch()
    assert "mine.txt is no model that can be read" in call("import", str(tmp_path / "mine.txt"))[2]


def test_an_imported_model_takes_no_name_of_a_run(call: Call, letters: Path, home: Path, tmp_path: Path) -> None:
    run = home / "runs" / "Novel"
    run.mkdir(parents=True)
    (run / "recipe.toml").touch()
    code, _, err = call("import", str(letters), "--name", "novel")
    assert (code, err.splitlines()) == (
        1,
        [
            "tinychat: there is a run or a model 'Novel' already",
            "  take another --name, or remove it: `tinychat rm Novel`",
        ],
    )
    code, _, err = call("import", str(letters), "--name", "Tales")
    assert (code, err.splitlines()[1]) == (1, "  take another --name: tales comes with tinychat")
    assert not (home / "models").exists()
    assert call("import", str(letters), "--name", "novel", "--out", str(tmp_path / "out"))[0] == 0
    code, _, err = call("import", str(letters), "--out", str(tmp_path / "out"))
    assert (code, err) == (
        1,
        f"tinychat: {tmp_path / 'out'} already exists\n  give another --out, or remove it\n",
    )


def test_models_are_removed_and_renamed_without_a_question_only_if_told_so(call: Call, letters: Path) -> None:
    assert call("import", str(letters), "--name", "My Novel") == (
        0, "My Novel (char, 4.0k, completion): `tinychat -m 'My Novel'` talks to it\n", ""
    )  # fmt: skip
    code, out, err = call("rm", "my novel")
    assert (code, out) == (2, "")
    assert re.fullmatch(
        r"tinychat: nobody can be asked: remove the model 'My Novel' \(\d+\.\d kB\)\?\n"
        r"  --yes does it without a question\n",
        err,
    )
    assert call("rm", "my", "novel")[2] == err
    assert call("rename", "my novel", "v1.2", "--yes") == (0, "", "My Novel is now v1.2\n")
    assert call("show", "V1.2")[1].startswith("v1.2 (char, ")
    assert call("rm", "v1.2", "nobody", "--yes")[0] == 1  # nothing is removed then
    assert call("rm", "v1.2", "-y") == (0, "", "removed: v1.2\n")
    assert call("show", "v1.2")[0] == 1


def test_models_have_headings_date_size_and_loss(call: Call) -> None:
    lines = call("models")[1].splitlines()
    assert lines[0].split() == ["model", "mode", "tokenizer", "params", "date", "size", "loss", "about"]
    loss = read_training(find_model("smalltalk"))["loss"]
    assert lines[1].startswith(
        f"smalltalk        chat         wordpiece    4.5M  bundled  5.1 MB  {loss:.3f}  small talk: "
    )
    facts = json.loads(call("models", "--json")[1])[0]
    assert (facts["date"], facts["loss"]) == (None, pytest.approx(loss, abs=1e-4))
    assert facts["bytes"] > 5_000_000


def test_a_damaged_model_is_listed_with_the_reason(call: Call, home: Path) -> None:
    folder = home / "models" / "bad"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("[" * 100_000)
    reason = f"{folder / 'config.json'} is damaged: it is nested more than 64 deep"
    code, out, _ = call("models", "--json")
    assert (code, json.loads(out)[-1]) == (0, {"name": "bad", "folder": str(folder), "error": reason})
    code, out, _ = call("models")
    assert code == 0
    assert out.splitlines()[-1].split(maxsplit=2) == ["bad", "damaged", reason]
    assert "smalltalk" in out


def test_recipes_are_listed_and_printed(call: Call) -> None:
    names = [recipe["name"] for recipe in json.loads(call("recipes", "--json")[1])]
    assert names[0] == "default"
    for name in names:
        assert call("recipes", name)[1].startswith(f"{name}: ")
        assert "[optimizer]" in call("recipes", name, "--toml")[1]
    known = json.loads(call("recipes", "nanogpt-cpu", "--json")[1])
    assert (known["author"], known["year"], known["parameters"]) == ("Andrej Karpathy", 2022, 804_096)
    assert known["source"].startswith("https://")
    assert known["model"]["n_layer"] == 4
    assert [(stage["name"], stage["times"]) for stage in known["stages"]] == [("input", 1), ("block", 4), ("output", 1)]
    assert "stages" not in json.loads(call("recipes", "default", "--json")[1])
    code, _, err = call("recipes", "nonsense")
    assert code == 1
    assert "there is no recipe 'nonsense'" in err


def test_runs_are_listed_and_compared(call: Call, home: Path) -> None:
    assert call("runs")[1] == "no runs yet: `tinychat train TEXT` begins one\n"
    for name, position in (("one", "rotary"), ("two", "learned")):
        (home / "runs" / name).mkdir(parents=True)
        (home / "runs" / name / "recipe.toml").write_text(f'[model]\nposition = "{position}"\n')
    lines = [line.split() for line in call("runs", "one", "t*")[1].splitlines()]
    assert (lines[0], lines[-1]) == (["run", "one", "two"], ["position", "rotary", "learned"])
    assert {run["name"]: run["recipe"]["position"] for run in json.loads(call("runs", "--json")[1])} == {
        "one": "rotary", "two": "learned"
    }  # fmt: skip
    assert call("runs", "three")[0] == 1


def test_data_sets_are_listed_with_their_licence(call: Call) -> None:
    known = {dataset["name"]: dataset for dataset in json.loads(call("data", "--json")[1])}
    assert {"tinyshakespeare", "ag_news", "eng_spa", "names", "bert_uncased_vocab"} <= set(known)
    for dataset in known.values():
        assert dataset["licence"]
        assert dataset["split"]
        assert all(len(file["sha256"]) == 64 for file in dataset["files"])
        assert all(file["url"].startswith("https://") != dataset["is_generated"] for file in dataset["files"])
    assert call("data", "get", "nonsense")[0] == 1


def test_tinychats_own_data_sets_are_generated(
    call: Call, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "make.py").write_text("import sys; sys.stderr.write(' '.join(sys.argv[1:]))")
    monkeypatch.setattr(registry, "generators_folder", lambda: tmp_path)
    folder = home / "cache" / "data" / "tales"
    assert call("data", "make", "tales") == (0, f"{folder}\n", f"tales --out {folder} --seed 1\n")
    called = call("data", "make", "tales", "--out", "x", "--seed", "5", "--count", "9")
    assert called == (0, "x\n", "tales --out x --seed 5 --count 9\n")
    for other in (("--seed", "5"), ("--count", "3")):  # the data set of that name stays what it is
        code, _, err = call("data", "make", "tales", *other)
        assert code == 2
        assert "make another text than tales" in err
    assert call("data", "make", "tales", "--seed", "1")[0] == 0
    code, _, err = call("data", "make", "tinyshakespeare")
    assert code == 2
    assert "`tinychat data get tinyshakespeare` fetches it" in err


def test_config_shows_the_origin_of_values(call: Call, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text('model = "mine"\ntop-p = 0.5\n')
    monkeypatch.setenv("TINYCHAT_SEED", "3")
    values = json.loads(call("config", "--json")[1])
    assert values["config_file"] == str(home / "config.toml")
    assert values["model"] == "mine"
    assert values["settings"]["top_p"] == {"value": 0.5, "from": "file"}
    assert values["settings"]["seed"] == {"value": 3, "from": "environment"}
    assert values["settings"]["temperature"]["from"] == "default"


def test_eval_scores_a_text(call: Call, letters: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 20)
    values = json.loads(call("eval", str(letters), str(text), "--split", "all", "--json")[1])
    assert values["tokens"] == values["characters"] == 44 * 20 - 1
    assert values["bits_per_character"] == pytest.approx(values["loss"] / 0.6931472, rel=1e-5)
    separate = json.loads(call("eval", str(letters), str(text), "--split", "all", "--overlap", "0", "--json")[1])
    assert separate["tokens"] == values["tokens"]
    assert separate["loss"] != values["loss"]
    assert next(option.default for option in eval_.params if option.name == "overlap") == OVERLAP
    val = json.loads(call("eval", str(letters), str(text), "--json")[1])
    assert val["tokens"] == 88 - 1
    code, _, err = call("eval", str(letters), str(text), "--exact")
    assert code == 2
    assert err.splitlines()[0] == "tinychat: letters is for completion: exact matches are counted of translations"
    code, _, err = call("eval", str(letters), "nowhere.txt")
    assert code == 1
    assert "nowhere.txt" in err


@pytest.mark.parametrize(
    "arguments",
    ["show MODEL --json", "eval MODEL text.txt --split all", "bench MODEL", "import MODEL --name x",
     "export MODEL --to tinychat --out x", "export MODEL --to transformers --out x"],
)  # fmt: skip
def test_every_command_refuses_weights_of_another_architecture(
    call: Call, letters: Path, tmp_path: Path, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "huge"
    shutil.copytree(letters, folder)
    config = json.loads((folder / "config.json").read_text())
    config["architecture"]["n_layer"] = 4096
    (folder / "config.json").write_text(json.dumps(config))
    (tmp_path / "text.txt").write_text("the quick brown fox\n" * 20)
    code, out, err = call(*(str(folder) if word == "MODEL" else word for word in arguments.split()))
    assert (code, out) == (1, "")
    assert "do not fit its architecture: decoder.blocks.1.attention.sublayer.query.weight is missing" in err
    assert len(err.splitlines()) == 2


def test_a_model_is_exported_whatever_its_folder_is_called(
    call: Call, letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(letters, "x (copy)")
    config = Path("x (copy)", "config.json")
    config.write_text(json.dumps({**json.loads(config.read_text()), "name": "../x (copy)"}))
    assert call("export", "x (copy)", "--to", "tinychat") == (0, "x-copy-tinychat\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x (copy)", "x-copy-tinychat"]


def test_export_does_not_overwrite(call: Call, letters: Path, tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "precious").touch()
    assert call("export", str(letters), "--to", "transformers", "--out", str(tmp_path / "x"))[0] == 2
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["precious"]


def test_a_page_begins_with_a_saved_conversation(call: Call, letters: Path, tmp_path: Path) -> None:
    talk, page = tmp_path / "talk.json", tmp_path / "page.html"
    talk.write_text(json.dumps({"turns": [{"prompt": "once", "answer": " upon a time"}]}))
    arguments = ("export", str(letters), "--chat", str(talk), "--out", str(page))
    code, _, err = call(*arguments, "--to", "tinychat")
    assert (code, err.splitlines()[0]) == (2, "tinychat: --chat goes with --to html, not with --to tinychat")
    code, _, err = call("export", str(letters), "--to", "html", "--out", "page.pdf")
    assert (code, err.splitlines()[0]) == (2, "tinychat: page.pdf: .pdf cannot be written")
    arguments = (*arguments[:-1], str(page.with_suffix("")))
    assert call(*arguments, "--to", "html")[0] == 0
    assert page.read_text("utf-8") == tinychat.load(letters).to_html([("once", " upon a time")])
    page.unlink()
    talk.write_text("[]")
    code, _, err = call(*arguments, "--to", "html")
    assert (code, err.splitlines()[0]) == (1, f"tinychat: {talk} is no transcript")
    assert not page.exists()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("evla", "eval"),
        ("help", "--help"),
        ("help train", "train --help"),
        ("help tarin", "--help"),
        ("list", "models"),
    ],
)
def test_a_mistyped_command_gets_a_suggestion(call: Call, typed: str, meant: str) -> None:
    words = typed.split()
    code, _, err = call(*words)
    assert code == 2
    assert err == f"tinychat: there is no command {words[0]!r}\n  did you mean `tinychat {meant}`?\n"
