"""A model that is open, without a conversation."""

import json
import shutil
from pathlib import Path

import pytest

from tinychat.config.settings import SettingStore
from tinychat.errors import ModelError
from tinychat.events import Finished, Notice
from tinychat.generate.stream import stream
from tinychat.model.config import ModelConfig
from tinychat.session.conversation import Turn
from tinychat.session.open_model import OpenModel


def test_opening_sets_the_defaults_of_the_model(chatter: Path) -> None:
    settings = SettingStore()
    assert OpenModel(str(chatter), settings).name == "chatter"
    assert settings.current.temperature == 0.7


def test_a_model_that_cannot_be_opened_leaves_the_settings(chatter: Path) -> None:
    settings = SettingStore()
    with pytest.raises(ModelError):
        OpenModel("nowhere", settings)
    assert settings.current == SettingStore().current


def test_weights_load_when_first_needed_and_again_after_they_were_freed(letters: Path) -> None:
    model = OpenModel(str(letters), SettingStore())
    assert not model.is_ready
    engine = model.engine
    assert model.is_ready
    model.close()
    assert not model.is_ready
    assert model.wait(lambda: False)
    assert model.engine is not engine


def test_waiting_ends_when_it_is_stopped(letters: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.generate.loading.EngineLoader.wait", lambda loading, seconds: False)
    assert not OpenModel(str(letters), SettingStore()).wait(lambda: True)


def test_a_chat_sees_the_turns_before_a_prompt_and_other_modes_none(letters: Path, chatter: Path) -> None:
    turns = [Turn("one"), Turn("two")]
    assert OpenModel(str(chatter), SettingStore()).history(turns) == turns
    assert not OpenModel(str(letters), SettingStore()).history(turns)


def test_fields_that_the_architecture_leaves_out_have_their_defaults(letters: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(letters, tmp_path / "sparse"))
    values = json.loads((folder / "config.json").read_text())
    default = ModelConfig(vocab_size=2)
    values["architecture"] = {
        name: value for name, value in values["architecture"].items() if value != getattr(default, name)
    }
    values["architecture"].pop("context_length", None)
    (folder / "config.json").write_text(json.dumps(values))
    model = OpenModel(str(folder), SettingStore())
    assert model.config.context_length == default.context_length
    assert [type(record) for record in stream(model.engine, model.make_answer("abc"))][-1] is Finished


def test_an_answer_uses_the_current_settings(letters: Path) -> None:
    settings = SettingStore()
    model = OpenModel(str(letters), settings)
    settings.set("seed", 3)
    settings.set("max_tokens", 4)
    answer = model.make_answer("abc")
    *tokens, finished = stream(model.engine, answer)
    assert (len(tokens), finished.seed) == (4, 3)  # type: ignore[union-attr]


def test_up_to_eight_unknown_characters_are_named(letters: Path) -> None:
    model = OpenModel(str(letters), SettingStore())
    assert model.unknown_notice("abc") is None
    assert model.unknown_notice("★") == Notice("unknown to this model, left out: '★'")
    notice = model.unknown_notice("".join(map(chr, range(0x4E00, 0x4E0A))))
    assert notice is not None
    assert notice.text.endswith(" …")
