"""The session: models, conversations, transcripts, without a terminal."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tinychat.commands.settings import change
from tinychat.commands.training import answer_with_snapshots
from tinychat.config.option import Origin
from tinychat.errors import GenerationError, ModelError, TinychatError, UsageError
from tinychat.events import AnswerStart, Finished, Notice, Record, Token
from tinychat.session.session import Session
from tinychat.session.transcript import read_transcript, write_transcript
from tinychat.store.models import read_weights
from tinychat.store.weights import pack_weights


@pytest.fixture
def session(letters: Path) -> Session:
    session = Session()
    session.settings.update({"seed": 5, "max_tokens": 6}, Origin.FLAG)
    session.open_model(str(letters))
    return session


def text_of(records: Iterable[Record]) -> str:
    return "".join(record.text for record in records if isinstance(record, Token))


def test_an_answer_becomes_a_turn(session: Session) -> None:
    records = list(session.answer("hello"))
    assert isinstance(records[-1], Finished)
    (turn,) = session.turns
    assert (turn.prompt, turn.answer, turn.finished) == ("hello", text_of(records), records[-1])


def test_the_same_seed_gives_the_same_answer_and_no_seed_another_one(session: Session) -> None:
    assert text_of(session.answer("abc")) == text_of(session.answer("abc"))
    session.settings.set("seed", "none")
    session.settings.set("max_tokens", 40)
    assert len({text_of(session.answer("abc")) for _ in range(4)}) > 1
    seeds = {turn.finished.seed for turn in session.turns[2:] if turn.finished}
    assert len(seeds) == 4
    last = session.turns[-1]
    assert last.finished is not None
    session.settings.set("seed", last.finished.seed)
    assert text_of(session.answer("abc")) == last.answer  # with the seed that was shown


def test_an_answer_that_fails_before_its_first_token_is_no_turn(session: Session) -> None:
    list(session.answer("abc"))
    before, reference = session.turns, session.settings.current.device
    session.settings.set("device", "mps" if sys.platform != "darwin" else "cuda")  # `/device` would refuse it
    session.reopen_model(str(session.model.info.folder))
    for ask in (lambda: session.answer("hello"), session.retry, lambda: session.branch(1, [2])):
        with pytest.raises(TinychatError):
            list(ask())
        assert session.turns == session.conversation.all == before
    change(session, "device", reference)
    list(session.answer("hello"))
    assert [turn.prompt for turn in session.turns] == ["abc", "hello"]


def test_retry_undo_and_continue(session: Session) -> None:
    with pytest.raises(UsageError):
        session.retry()
    list(session.answer("abc"))
    first = session.turns[0].answer
    session.settings.set("seed", 9)
    assert text_of(session.retry()) == session.turns[0].answer
    assert len(session.turns) == 1
    before = session.turns[0].answer
    more = text_of(session.continue_answer())
    assert session.turns[0].answer == before + more
    assert len(more) == 6
    assert session.conversation.back() is not None
    assert session.conversation.back() is None
    assert first


def test_a_greedy_answer_that_is_continued_equals_one_longer_answer(session: Session) -> None:
    session.settings.set("temperature", 0)
    list(session.answer("abc"))
    list(session.continue_answer())
    twice = session.turns[-1].answer
    session.settings.set("max_tokens", 12)
    assert text_of(session.answer("abc")) == twice


def test_a_retry_that_fails_leaves_the_turn_where_it_is(session: Session) -> None:
    list(session.answer("abc"))
    before = list(session.turns)
    session.settings.update({"begin": "hello", "regex": "[0-9]+"}, Origin.FLAG)
    with pytest.raises(GenerationError):
        list(session.retry())
    assert session.turns == session.conversation.all == before


def test_an_answer_that_is_to_match_a_pattern_is_continued_with_as_many_tokens_more(session: Session) -> None:
    session.settings.update({"regex": "[^!]*", "max_tokens": 6}, Origin.FLAG)
    list(session.answer("abc"))
    assert len(text_of(session.continue_answer())) == 6
    assert "!" not in session.turns[0].answer


def test_checkpoints_answer_with_the_same_seed(session: Session, tmp_path: Path) -> None:
    info = session.model.info
    once, now = read_weights(info), text_of(session.answer("abc"))
    same, other = tmp_path / "same", tmp_path / "other"
    same.write_bytes(pack_weights(once, tied=False))
    other.write_bytes(pack_weights({name: weight.flip(0) for name, weight in once.items()}, tied=False))
    past = [("step 0", other), ("gone", tmp_path / "none"), ("step 2", same)]
    records = list(answer_with_snapshots(session, "abc", past))
    assert [record.name for record in records if isinstance(record, AnswerStart)] == ["step 0", "step 2"]
    then, again = text_of(records)[:6], text_of(records)[6:]
    assert (then != now, again) == (True, now)
    assert [record.tokens for record in records if isinstance(record, Finished)] == [12]
    assert len(session.turns) == 1
    assert text_of(session.retry()) == now  # by the current model


def test_answering_with_checkpoints_can_be_stopped_and_leaves_the_open_model(session: Session, tmp_path: Path) -> None:
    now, path, weights = text_of(session.answer("abc")), tmp_path / "other", read_weights(session.model.info)
    path.write_bytes(pack_weights({name: weight.flip(0) for name, weight in weights.items()}, tied=False))
    answers: list[str] = []
    for record in answer_with_snapshots(session, "abc", [("a", path), ("b", path)], should_stop=lambda: bool(answers)):
        if isinstance(record, AnswerStart):
            answers.append(record.name)
    assert answers == ["a"]
    assert isinstance(record, Finished)
    assert record.reason == "interrupted"
    assert text_of(session.retry()) == now


def test_unknown_characters_are_named(session: Session) -> None:
    records = list(session.answer("héllo ★"))
    assert records[0] == Notice("unknown to this model, left out: 'é' '★'")


def test_a_prompt_without_known_characters_still_gets_an_answer(session: Session) -> None:
    for prompt in ("★★", ""):
        assert isinstance(list(session.answer(prompt))[-1], Finished)


def test_a_prompt_longer_than_the_context_is_answered(session: Session) -> None:
    records = list(session.answer("abc " * 100))
    assert any(isinstance(record, Notice) and "longer than the model's context" in record.text for record in records)
    assert isinstance(records[-1], Finished)


@pytest.mark.parametrize("settings", [{}, {"max_tokens": 100}, {"best_of": 2}])
def test_a_chat_says_once_that_the_beginning_of_a_prompt_is_left_out(chatter: Path, settings: dict[str, int]) -> None:
    session = Session()
    session.open_model(str(chatter))
    session.settings.update({"seed": 1, "max_tokens": 4, **settings}, Origin.FLAG)
    told = [record.text for record in session.answer("hello there " * 20) if isinstance(record, Notice)]
    assert told == [
        "longer than the model's context of 32 tokens, answer included: the beginning of the prompt is left out"
    ]
    assert not any("beginning" in record.text for record in session.continue_answer() if isinstance(record, Notice))


def test_a_chat_does_not_tell_that_older_turns_are_left_out(chatter: Path) -> None:
    session = Session()
    session.open_model(str(chatter))
    session.settings.update({"seed": 1, "max_tokens": 4}, Origin.FLAG)
    records = [record for _ in range(8) for record in session.answer("hello there")]
    assert not any(isinstance(record, Notice) for record in records)


def test_stopping_before_the_model_has_loaded(session: Session) -> None:
    (record,) = list(session.answer("abc", should_stop=lambda: True))[-1:]
    assert isinstance(record, Finished)
    assert record.reason == "interrupted"


def test_a_chat_uses_the_template_and_drops_its_oldest_turns(chatter: Path) -> None:
    session = Session()
    session.open_model(str(chatter))
    assert session.settings.current.temperature == 0.7  # the model's own
    session.settings.update({"seed": 1, "max_tokens": 4}, Origin.FLAG)
    tokenizer = session.model.tokenizer
    user, assistant, end = (tokenizer.special(role) for role in ("user", "assistant", "end"))
    prompts = []
    for _ in range(8):
        list(session.answer("hello there"))
        prompts.append(session.turns[-1].prompt_ids)
    ids = prompts[1]
    assert (ids[0], ids[-1], ids.count(user), ids.count(assistant)) == (user, assistant, 2, 2)  # type: ignore[arg-type]
    assert end in ids
    assert all(len(ids) <= 32 - 4 for ids in prompts)
    assert prompts[-1].count(user) < 8  # type: ignore[arg-type]
    session.settings.set("max_tokens", 9)  # of the newest turn alone, the ids are still known
    assert [session.model.ids_before(turn, 0) for turn in session.turns] == prompts
    assert not any(turn.prompt_ids for turn in session.turns[:-1])


def test_a_model_that_does_not_exist_leaves_the_open_one(session: Session, letters: Path) -> None:
    list(session.answer("abc"))
    with pytest.raises(ModelError):
        session.open_model("nowhere")
    assert session.model.name == "letters"
    assert len(session.turns) == 1


def test_a_damaged_model_is_reported_when_it_answers(letters: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(letters, tmp_path / "m")
    (tmp_path / "m" / "model.safetensors").write_bytes(b"")
    session = Session()
    session.open_model(str(tmp_path / "m"))
    with pytest.raises(ModelError, match="cannot be read"):
        list(session.answer("abc"))


def test_transcripts_are_read_as_they_were_written(session: Session, tmp_path: Path) -> None:
    list(session.answer("one"))
    list(session.answer("two"))
    turns = [(turn.prompt, turn.answer) for turn in session.turns]
    path = tmp_path / "talk.json"
    write_transcript(path, session.model.name, session.settings.current, session.conversation)
    session.conversation = read_transcript(path)
    assert [(turn.prompt, turn.answer) for turn in session.turns] == turns
    session.settings.set("temperature", 0)
    list(session.continue_answer())
    assert session.turns[-1].answer.startswith(turns[-1][1])


def test_transcripts_of_older_and_newer_versions_open(session: Session, tmp_path: Path) -> None:
    old = {"prompt": "abc", "answer": "d", "seed": 3, "finish_reason": "end"}
    new = old | {"model": "letters", "settings": {"charm": 1}, "finish_reason": "boredom"}
    (tmp_path / "talk.json").write_text(json.dumps({"format": 1, "turns": [old, new, {"prompt": "e", "answer": "f"}]}))
    session.conversation = read_transcript(tmp_path / "talk.json")
    assert [turn.answer for turn in session.turns] == ["d", "d", "f"]
    assert [turn.settings for turn in session.turns] == [None] * 3
    assert [turn.finished for turn in session.turns] == [Finished("end", 0, 0.0, 3), None, None]


@pytest.mark.parametrize("content", ["", "[]", '{"turns": [{"prompt": "x"}]}', '{"turns": 3}'])
def test_a_file_that_is_no_transcript_leaves_the_conversation(session: Session, tmp_path: Path, content: str) -> None:
    list(session.answer("one"))
    path = tmp_path / "talk.json"
    path.write_text(content)
    with pytest.raises(TinychatError, match="is no transcript"):
        read_transcript(path)
    with pytest.raises(TinychatError, match="cannot be read"):
        read_transcript(tmp_path / "nowhere")
