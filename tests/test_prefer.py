"""The program that teaches which replies people prefer: what it reads, which pairs it makes of that, what it learns."""

import importlib.util
import math
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tinychat.corpus.types import Message
from tinychat.model.loading import load_model
from tinychat.store.models import find_model, read_info, read_tokenizers, read_training

ROOT = Path(__file__).parent.parent
JUDGED = """\
> the pond froze over
* p I see.
  w How lovely!
  g Oh no, are the fish all right?
> they are fine
* w I'm so sorry.
  w Well done!
  w Haha!
+ g Good to hear!

> hm
* w Congratulations!
"""


@pytest.fixture
def prefer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("prefer", ROOT / "models" / "prefer.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "prefer", module)
    spec.loader.exec_module(module)
    return module


def test_each_message_comes_with_what_was_said_before(prefer: ModuleType) -> None:
    first, second, third = prefer.read_judged(JUDGED)
    assert first.messages == (Message("user", "the pond froze over"),)
    assert first.replies[0] == ("I see.", "p")
    assert second.messages == (*first.messages, Message("assistant", "I see."), Message("user", "they are fine"))
    assert ("Good to hear!", "g") in second.replies
    assert third.messages == (Message("user", "hm"),)


@pytest.mark.parametrize(
    "text",
    ["> a\n* g b\n* p c\n", "> a\n  g b\n", "> a\n* x b\n", "> a\n* g b\nand so on\n", "* g b\n\n> a\n* g c\n"],
    ids=repr,
)
def test_what_is_no_reply_is_an_error(prefer: ModuleType, text: str) -> None:
    with pytest.raises(ValueError, match="not a message and its replies"):
        list(prefer.read_judged(text))


def test_worse_replies_are_compared_with_the_best(prefer: ModuleType) -> None:
    pairs = [
        (place.messages[-1].text, preferred, worse)
        for seed in range(20)
        for place, preferred, worse in prefer.choose_pairs(prefer.read_judged(JUDGED), seed)
    ]
    said_and_passable = ("the pond froze over", "Oh no, are the fish all right?", "I see.")
    assert set(pairs) == {
        said_and_passable,
        ("the pond froze over", "Oh no, are the fish all right?", "How lovely!"),
        ("they are fine", "Good to hear!", "I'm so sorry."),
        ("they are fine", "Good to hear!", "Well done!"),  # of three, the one that was said and another one
    }
    assert 0 < pairs.count(said_and_passable) < 20


def test_the_loss_is_that_of_the_paper(prefer: ModuleType) -> None:
    before, scores = torch.tensor([-10.0, -20.0, -11.0, -21.0]), torch.tensor([-9.0, -22.0, -14.0, -20.0])
    margins = [1.0 - -3.0, -2.0 - 1.0]
    expected = sum(math.log1p(math.exp(-prefer.BETA * margin)) for margin in margins) / 2
    assert float(prefer.preference_loss(scores, before)) == pytest.approx(expected)
    assert float(prefer.preference_loss(before, before)) == pytest.approx(math.log(2))


def test_a_score_is_the_log_probability_of_the_reply(prefer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefer.torch, "autocast", lambda *_: nullcontext())  # in f32
    info = read_info(find_model("smalltalk"))
    model, tokenizer = load_model(info), read_tokenizers(info)[0]
    *_, place = prefer.read_judged("> hi there\n* g Hello!\n\n> i bake bread\n* g How nice!\n> rye\n* p I see.\n")
    replies = [
        prefer.encode_reply(place, reply, info.template, tokenizer, 512) for reply in ("I see.", "That is good bread!")
    ]
    scores = prefer.reply_scores(model, *prefer.collate(replies))
    for reply, score in zip(replies, scores.tolist(), strict=True):
        with torch.no_grad():
            alone = model(torch.tensor([reply.before + reply.ids])).log_softmax(-1)[0]
        steps = [float(alone[len(reply.before) - 1 + at, id]) for at, id in enumerate(reply.ids)]
        assert score == pytest.approx(sum(steps), rel=1e-4)
    text = tokenizer.decode(replies[1].ids[:-1])
    assert text == "That is good bread!"
    assert tokenizer.decode(replies[1].before).count("I see.") == 0


def test_all_that_was_judged_can_be_read(prefer: ModuleType) -> None:
    files = [*sorted(prefer.JUDGED.glob("*.txt")), prefer.KEPT]
    judged = [place for file in files for place in prefer.read_judged(file.read_text(encoding="utf-8"))]
    assert len(judged) > 10_000
    verdicts = [verdict for place in judged for _, verdict in place.replies]
    assert all(verdicts.count(verdict) > len(verdicts) / 10 for verdict in prefer.VERDICTS)
    learned = {text for file in files[:-1] for text in file.read_text(encoding="utf-8").split("\n\n")}
    assert not learned & set(prefer.KEPT.read_text(encoding="utf-8").split("\n\n"))


@pytest.mark.slow
def test_it_learns_what_is_preferred(prefer: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judged").mkdir()
    (tmp_path / "judged" / "fish.txt").write_text(
        "".join(f"> i have {n} fish in my pond\n* w I see. Tell me more!\n  g How nice!\n\n" for n in range(2, 50))
    )
    corpus = tmp_path / "talk.jsonl"
    corpus.write_text('{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello!"}]}\n' * 50)
    monkeypatch.setattr(prefer, "JUDGED", tmp_path / "judged")
    (tmp_path / "kept.txt").write_text("> i have 77 fish in my pond\n* w I see. Tell me more!\n  g How nice!\n")
    monkeypatch.setattr(prefer, "KEPT", tmp_path / "kept.txt")
    recipe = prefer.load_recipe("smalltalk").merged({"sources": [str(corpus)]})
    monkeypatch.setattr(prefer, "load_recipe", lambda name: recipe)
    prefer.prefer(read_info(find_model("smalltalk")), tmp_path / "taught", epochs=10, seed=1)
    *_, place = prefer.read_judged("> i have 61 fish in my pond\n* w I see. Tell me more!\n  g How nice!\n")
    margins = []
    for info in (read_info(find_model("smalltalk")), read_info(tmp_path / "taught")):
        tokenizer = read_tokenizers(info)[0]
        replies = [prefer.encode_reply(place, reply, info.template, tokenizer, 512) for reply, _ in place.replies]
        wrong, preferred = prefer.reply_scores(load_model(info), *prefer.collate(replies)).tolist()
        margins.append(preferred - wrong)
    assert margins[1] > margins[0] + 1, margins
    assert read_training(tmp_path / "taught")["preferences"]["pairs"] == 48
    assert read_training(tmp_path / "taught")["preferences"]["kept_risen"] == 1
