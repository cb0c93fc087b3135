"""A chat model of transformers: its prompts, what ends its answers, and system messages, as transformers has them."""

import json
from pathlib import Path

import pytest
import torch

import tinychat
from tests.chat_templates import CHATML, GEMMA
from tests.foreign_tokenizers import save
from tinychat.cli.json_lines import parse_line
from tinychat.cli.main import run
from tinychat.commands.settings import change
from tinychat.config.settings import SettingStore
from tinychat.errors import UsageError
from tinychat.events import Finished, Notice, Token
from tinychat.formats.registry import import_model
from tinychat.serve.requests import parse_chat
from tinychat.session.conversation import Turn
from tinychat.session.open_model import OpenModel
from tinychat.session.session import Session

transformers = pytest.importorskip("transformers")

TALK = [("hello the cat", "it's 12345"), ("привет", "世界")]


def make_model(folder: Path, template: str = CHATML, kind: str = "qwen") -> Path:
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=1_000, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=256, initializer_range=0.4,
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    return save(kind, folder, chat_template=template)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "them")


def entries(prompt: str, system: str = "") -> list[dict[str, str]]:
    pairs = [pair for turn in TALK for pair in zip(("user", "assistant"), turn, strict=True)]
    roles = [("system", system)] * bool(system) + [*pairs, ("user", prompt)]
    return [{"role": role, "content": text} for role, text in roles]


def expected_ids(folder: Path, prompt: str, system: str = "") -> list[int]:
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    messages = entries(prompt, system)
    return list(theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False))


@pytest.mark.slow
def test_it_is_opened_as_a_chat_and_answers_as_in_transformers(folder: Path, tmp_path: Path) -> None:
    ids = expected_ids(folder, "fine")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder)
    free = theirs.generate(torch.tensor([ids]), max_new_tokens=30, do_sample=False)[0, len(ids) :].tolist()
    end = next(id for index, id in enumerate(free) if index >= 5 and id not in free[:index] and id > 2)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [1, end]}))
    import_model(folder, "kept", tmp_path / "kept")
    for place in (folder, tmp_path / "kept"):
        model = OpenModel(str(place), SettingStore())
        settings = SettingStore()
        settings.set("temperature", 0)
        turns = [Turn(prompt, saved_text=answer) for prompt, answer in TALK]
        answer = model.make_answer("fine", turns=turns, settings=lambda store=settings: store.current)
        assert (model.info.mode, answer.ids) == ("chat", ids)
        assert model.prompt_encoder.end_ids == {1, 2, end}
        records = list(tinychat.generate.stream.stream(model.engine, answer))
        tokens = [record.id for record in records if isinstance(record, Token)]
        assert tokens == free[: free.index(end)]
        assert isinstance(records[-1], Finished)
        assert records[-1].reason == "end"


@pytest.mark.slow
def test_a_system_message_is_read_if_the_template_has_the_role(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session = Session()
    session.open_model(str(folder))
    change(session, "system", "Answer in rhymes.")
    session.conversation.add(Turn(*TALK[0][:1], saved_text=TALK[0][1]))
    session.conversation.add(Turn(TALK[1][0], saved_text=TALK[1][1]))
    settings = session.settings
    settings.set("max_tokens", 2)
    records = list(session.answer("fine"))
    assert not any(isinstance(record, Notice) for record in records)
    assert session.turns[-1].prompt_ids == expected_ids(folder, "fine", "Answer in rhymes.")

    line = json.dumps({"messages": entries("fine", "Be brief.")})
    assert parse_line(line, settings.current, session.model).settings.system == "Be brief."
    assert parse_chat(line.encode(), settings.current, session.model).settings.system == "Be brief."
    chat = tinychat.load(folder, max_tokens=2).chat(system="Be brief.")
    alone = chat.model.settings.system
    assert (alone, chat.say("fine").notices) == (None, ())
    assert run(["-m", str(folder), "--jsonl", "--system", "Be brief.", "-n", "2", "-p", line]) == 0
    assert capfd.readouterr().err == ""


def test_other_models_say_that_they_read_none(tmp_path: Path) -> None:
    session = Session()
    session.open_model(str(make_model(tmp_path / "gem", GEMMA, "gemma")))
    with pytest.raises(UsageError, match="gem reads no system message: its chat template has no such role"):
        change(session, "system", "Answer in rhymes.")
    session.settings.set("system", "Answer in rhymes.")
    session.settings.set("max_tokens", 2)
    notices = [[record.text for record in session.answer("fine") if isinstance(record, Notice)] for _ in range(2)]
    assert notices[0][-1].endswith("no such role: the system message is left out")
    assert notices[1] == notices[0][:-1]
    change(session, "system", "none")


@pytest.mark.slow
def test_a_template_that_does_not_end_is_one_clear_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    assert run(["-m", str(make_model(tmp_path / "evil", loop)), "-p", "hello"]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "the chat template was stopped: it takes too long" in err
