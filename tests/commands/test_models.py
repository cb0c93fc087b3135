"""Commands on models: which one speaks, what there is, what models can be trained like, what they are made of."""

import os
import re
import shutil
from pathlib import Path

import pytest
from scripted import Talk

from tinychat.commands.models import complete_models, describe_recipe, renaming_of
from tinychat.commands.results import Architecture, Message, ParallelAnswers, Question, Table, TokenBrowser
from tinychat.errors import ModelError, RunError, TinychatError, UsageError
from tinychat.formats.registry import open_model
from tinychat.model.config import ModelConfig, make_diagram
from tinychat.session.session import Session
from tinychat.store.models import find_model, list_bundled_models, read_training
from tinychat.train.recipe import RecipeInfo, list_recipes

LONGEST = 64
"""characters: a line of 80, with the longest name before it"""


def test_recipes_are_listed_with_a_line_each(talk: Talk) -> None:
    listed = talk.do("/recipes")
    assert isinstance(listed, Table)
    assert [row[0] for row in listed.rows] == [recipe.name for recipe in list_recipes()]


@pytest.mark.parametrize("recipe", list_recipes(), ids=lambda recipe: recipe.name)
def test_each_says_what_it_is_and_whose_work_it_follows(recipe: RecipeInfo) -> None:
    assert 0 < len(recipe.about) <= LONGEST
    if recipe.source:
        assert all((recipe.title, recipe.author, recipe.year))
        assert recipe.source.startswith("https://")


def test_one_is_shown_with_its_parts_and_where_it_comes_from(talk: Talk) -> None:
    shown = talk.do("/recipes nanogpt-cpu")
    assert isinstance(shown, Architecture)
    assert shown.diagram.parameters == 804_096
    assert shown.notes == (
        'after Andrej Karpathy, "nanoGPT", 2022, https://github.com/karpathy/nanoGPT',
        "tinyshakespeare · adamw · 2,000 steps · 12 windows a step · dropout 0",
        "/train --recipe nanogpt-cpu",
    )


def test_one_whose_sizes_are_open_says_so() -> None:
    shown = describe_recipe("default")
    assert not shown.is_sized
    assert "n_layer" in shown.notes[0]
    assert shown.notes[-1] == "tinychat train TEXT --recipe default"


def test_one_that_is_not_there_is_refused_with_those_that_are(talk: Talk) -> None:
    with pytest.raises(RunError, match="nonsense") as error:
        talk.do("/recipes nonsense")
    assert "nanogpt-cpu" in error.value.remedy


def test_show_draws_the_model_at_hand(talk: Talk) -> None:
    shown = talk.do("/show")
    assert isinstance(shown, Architecture)
    assert shown.title == "parrot (wordpiece, 3.4M, chat)"
    config = ModelConfig.from_dict(talk.session.model.info.architecture)
    assert shown.diagram == make_diagram(config)
    assert f"context_length {config.context_length}" in shown.notes[-2]
    assert shown.notes[-1].startswith("in ")
    assert talk.do("/show other").title.startswith("other ")


@pytest.mark.parametrize("line", ["/model talk", "/load talk.json", '/model "talk"'])
def test_a_saved_conversation_is_no_model_and_says_how_it_is_opened(talk: Talk, line: str) -> None:
    talk.ask("hello")
    talk.do("/save talk")
    with pytest.raises(ModelError, match="there is no model") as caught:
        talk.do(line)
    command = f"/open {line.partition(' ')[2]}"
    assert caught.value.remedy == f"`{command}` opens the conversation of that name"
    talk.do(command)
    with pytest.raises(ModelError) as caught:
        talk.do("/model walk")
    assert caught.value.remedy.startswith("models: ")


def test_a_model_is_opened_by_its_name(talk: Talk) -> None:
    talk.ask("hello")
    result = talk.do("/model other")
    assert isinstance(result, Message)
    assert result.lines == ("other (wordpiece, 3.4M, completion) is open: type how a text begins, and it goes on",)
    assert talk.session.turns == []
    assert talk.ask("abc") == "you said: abc"


def test_a_model_that_is_not_there_leaves_the_one_at_hand(talk: Talk) -> None:
    talk.ask("hello")
    with pytest.raises(ModelError, match="there is no model 'nobody'"):
        talk.do("/model nobody")
    assert talk.session.model.name == "parrot"
    assert talk.session.turns


def test_models_marks_the_one_that_is_open(talk: Talk) -> None:
    table = talk.do("/models")
    assert isinstance(table, Table)
    bundled = [("", info.name) for info in list_bundled_models().sound]
    assert [(row[0], row[1]) for row in table.rows] == [("›", "parrot"), ("", "other"), *bundled]


def test_model_alone_offers_what_is_bundled_and_what_is_open(talk: Talk) -> None:
    table = talk.do("/model")
    assert isinstance(table, Table)
    assert table.rows[0][:3] == ("›", "parrot", "answers in turns")
    assert [row[1] for row in table.rows[1:]] == [info.name for info in list_bundled_models().sound]
    assert all(row[3] for row in table.rows[1:])  # each says what it is for
    assert table.wraps  # and is not cut in the middle of that
    talk.do("/model smalltalk")
    offered = talk.do("/model")
    assert isinstance(offered, Table)
    assert [row[1] for row in offered.rows if row[0] == "›"] == ["smalltalk"]
    assert "parrot" not in [row[1] for row in offered.rows]


def test_models_have_date_size_and_loss(talk: Talk, home: Path) -> None:
    (home / "models" / "other" / "training.json").write_text('{"loss": 1.23456}')
    os.utime(home / "models" / "other" / "config.json", (0, 86_400 * 366))
    table = talk.do("/models")
    assert isinstance(table, Table)
    assert table.columns == ("", "model", "mode", "tokenizer", "params", "date", "size", "loss", "about")
    rows = {row[1]: row[5:8] for row in table.rows}
    assert (rows["other"][0], rows["other"][2]) == ("1971-01-02", "1.235")
    assert rows["other"][1].endswith(" kB")
    loss = read_training(find_model("smalltalk"))["loss"]
    assert rows["smalltalk"] == ("bundled", "5.1 MB", f"{loss:.3f}")
    assert rows["parrot"][2] == "–"


def test_rm_asks_and_removes(talk: Talk, home: Path) -> None:
    question = talk.do("/rm OTHER")
    assert isinstance(question, Question)
    assert re.fullmatch(r"remove the model 'other' \(\d+\.\d kB\)\?", question.text)
    assert (home / "models" / "other").exists()
    assert question.act() == Message(("removed: other",))
    assert not (home / "models" / "other").exists()


def test_rename_asks_unless_told_not_to_and_keeps_the_open_model(talk: Talk, home: Path) -> None:
    question = talk.do("/rename other 'My Novel'")
    assert isinstance(question, Question)
    assert question.text == "rename the model 'other' to 'My Novel'?"
    talk.do("/model other")
    talk.ask("hello")
    assert talk.do("/rename other My\\ Novel --yes") == Message(("other is now My Novel",))
    assert (talk.session.model.name, len(talk.session.turns)) == ("My Novel", 1)
    assert talk.do("/model my novel") == talk.do("/model 'MY NOVEL'") == talk.do("/model My\\ Novel")
    assert list(talk.completions("rm", "")) == ["My Novel"]
    with pytest.raises(UsageError, match="My Novel is open"):
        talk.do("/rm 'My Novel' --yes")


def test_answers_and_choices_follow_a_model_to_its_new_name(talk: Talk) -> None:
    talk.do("/model other")
    talk.ask("hello")
    compared = talk.do("/samples 2 more")
    assert isinstance(compared, ParallelAnswers)
    list(compared.start(lambda: False))
    talk.do("/rename other novel --yes")
    talk.do("/pick 1")
    assert [turn.model for turn in talk.session.turns] == ["novel", "novel"]
    assert talk.session.model.reference == "novel"
    repeated = talk.do("/repeat 1")
    assert isinstance(repeated, Message)
    assert repeated.lines[0].startswith("tinychat -m novel ")
    talk.do("/goto 1")
    assert isinstance(talk.do("/why 1"), TokenBrowser)
    assert talk.generate("/retry") == "you said: hello"


def test_a_compared_model_that_is_not_open_can_be_picked_by_its_new_name(talk: Talk) -> None:
    compared = talk.do("/compare model=parrot,other hello")
    assert isinstance(compared, ParallelAnswers)
    list(compared.start(lambda: False))
    talk.do("/rename other novel --yes")
    assert talk.session.model.name == "parrot"
    talk.do("/pick 2")
    assert talk.session.model.name == "novel"
    assert [turn.model for turn in talk.session.turns] == ["novel"]


def test_a_model_that_is_renamed_while_it_is_open_answers_on(letters: Path, home: Path) -> None:
    shutil.copytree(letters, home / "models" / "old")
    session = Session()
    session.settings.set("seed", 1)
    session.open_model("old")
    list(session.answer("abc"))
    renaming_of("old", "new", session).act()
    list(session.retry())
    first, second = session.conversation.all
    assert first.answer == second.answer
    assert (first.model, second.model) == ("new", "new")
    assert session.info == open_model("new")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/rm", "/rm needs a name"),
        ("/rm other --force", "/rm has no --force"),
        ("/rm other --yesno", "/rm has no --yesno"),
        ("/rm other --yes=no", "/rm has no --yes=no"),
        ("/rename other new --yes --yes-no", "/rename has no --yes-no"),
        ("/rm a--yes-b", "you have no model or run 'a--yes-b'"),
        ("/rm smalltalk --yes", "smalltalk comes with tinychat, and stays as it is"),
        ("/rm parrot --yes", "models/parrot is not in "),
        ("/rename other", "/rename needs two names"),
        ("/rename other a/b --yes", "'a/b' cannot be a name: it has '/'"),
    ],
)
def test_a_wrong_removal_or_renaming_is_refused(talk: Talk, line: str, problem: str) -> None:
    with pytest.raises(TinychatError) as caught:
        talk.do(line)
    assert caught.value.problem.startswith(problem)
    assert caught.value.remedy


def test_a_damaged_model_is_listed_with_the_reason_and_never_completed(talk: Talk, home: Path) -> None:
    folder = home / "models" / "bad"
    folder.mkdir()
    (folder / "config.json").write_text('{"format": 1, "template": 5}')
    table = talk.do("/models")
    assert isinstance(table, Table)
    assert [row[:3] for row in table.rows if row[2] == "damaged"] == [("", "bad", "damaged")]
    assert table.rows[-1][-1].startswith(f"{folder / 'config.json'} cannot be read: it lacks mode, ")
    assert "bad" not in [one.text for one in complete_models(talk.session, ["b"])]
