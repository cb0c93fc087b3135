"""Looks inside in Python: `why`, `lens` and `attention` as arrays, and what notebooks and prompts show of them."""

import html
import math
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import tinychat
from tinychat import Answer, Model
from tinychat.api import html as page
from tinychat.api.model import Models, ModelSummary


@pytest.fixture(scope="module")
def answer(loaded: Model) -> Answer:
    return loaded.generate("abc ", seed=2, max_tokens=8, top_k=5)


def test_why_has_the_whole_vocabulary(loaded: Model, answer: Answer) -> None:
    why = loaded.why(answer, 3)
    token = answer.tokens[3]
    assert why.token == token.text
    assert why.ids.shape == why.logprobs.shape == why.probabilities.shape == (28,)
    assert why.ids[why.rank - 1] == token.id
    assert why.logprobs[why.rank - 1] == pytest.approx(token.logprob, abs=1e-5)
    assert list(why.logprobs) == sorted(why.logprobs, reverse=True)
    assert np.exp(why.logprobs).sum() == pytest.approx(1, abs=1e-5)
    assert (np.count_nonzero(why.probabilities), why.probabilities.sum()) == (5, pytest.approx(1, abs=1e-5))
    assert why.surprisal == pytest.approx(-token.logprob / math.log(2), abs=1e-4)
    assert [one.text for one in why.top(2)] == [one.text for one in token.top[:2]]
    surprising = loaded.why(answer)
    assert surprising.index == min(range(8), key=lambda index: answer.tokens[index].logprob)
    assert repr(surprising).startswith(f"<Why {surprising.token!r}: token {surprising.index + 1} of 8 · rank")
    assert loaded.why(answer, -1).index == 7
    assert loaded.why("abc ", 3, seed=2, max_tokens=8, top_k=5).answer.text == answer.text


def test_the_last_row_of_a_lens_is_the_prediction(loaded: Model, answer: Answer) -> None:
    lens, why = loaded.lens(answer, 3), loaded.why(answer, 3)
    assert lens.parts == ("embeddings", "layer 1")
    assert lens.ids.shape == lens.probabilities.shape == (2, 5)
    assert lens.ids[-1].tolist() == why.ids[:5].tolist()
    assert lens.probabilities[-1] == pytest.approx(np.exp(why.logprobs[:5]), abs=1e-5)
    assert (lens.rank[-1], lens.probability[-1]) == (why.rank, pytest.approx(2**-why.surprisal, abs=1e-5))
    assert np.isnan(lens.share).all()
    assert "embeddings" in repr(lens)
    assert loaded.lens(answer, 3, likeliest=2).ids.shape == (2, 2)


def test_attention_has_named_axes(loaded: Model, answer: Answer) -> None:
    whole = loaded.attention(answer)
    assert (whole.axes, whole.weights.shape) == (("layers", "heads", "queries", "keys"), (1, 2, 12, 12))
    assert whole.weights.sum(-1) == pytest.approx(np.ones((1, 2, 12)), abs=1e-5)
    assert "".join(whole.queries) == "".join(whole.keys) == answer.prompt + answer.text
    one = loaded.attention(answer, 1, 1)
    assert (one.axes, one.weights.shape) == (("queries", "keys"), (12, 12))
    assert (one.weights == whole.weights[0, 0]).all()
    assert loaded.attention(answer, 1).axes == ("heads", "queries", "keys")
    assert loaded.attention(answer, head=1).axes == ("layers", "queries", "keys")
    assert "1 layers × 2 heads × 12 queries × 12 keys" in repr(whole)
    assert "layer 1 head 1" in repr(one)


def test_attention_of_a_translator_to_its_prompt() -> None:
    model = tinychat.load(Path(__file__).parents[1] / "toys" / "translation")
    answer = model.generate("lets go", greedy=True)
    cross = model.attention(answer, cross=True)
    assert cross.weights.shape[2:] == (len(cross.queries), len(cross.keys))
    assert cross.weights.sum(-1) == pytest.approx(np.ones(cross.weights.shape[:3]), abs=1e-5)
    assert cross.keys[-2] == " go"
    with pytest.raises(tinychat.UsageError, match="scores no text alone"):
        model.score("lets go")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda model, answer: model.why(answer, 8),
            "there is no token 8: the answer has 8 tokens\nthe first one is 0",
        ),
        (lambda model, answer: model.why(answer, seed=1), "the answer has settings of its own: seed"),
        (lambda model, answer: model.lens(answer, likeliest=0), "likeliest takes a whole number of at least 1, not 0"),
        (lambda model, answer: model.lens(answer, likeliest="5"), "likeliest takes a whole number of at least"),
        (lambda model, answer: model.lens(answer, likeliest=1.5), "likeliest takes a whole number of"),
        (lambda model, answer: model.why(answer, "1"), "index takes a whole number, not '1'"),
        (lambda model, answer: model.attention(answer, layer="1"), "layer takes a whole number, not '1'"),
        (lambda model, answer: model.attention(answer, 1, True), "head takes a whole number, not True"),
        (lambda model, answer: model.attention(answer, 2), "there is no layer 2\nthe layers of this model are 1 to 1"),
        (lambda model, answer: model.attention(answer, 1, 0), "there is no head 0"),
        (lambda model, answer: model.attention(answer, cross=True), "letters has no encoder"),
        (lambda model, answer: tinychat.load("smalltalk").why(answer), "letters gave this answer, not smalltalk"),
        (lambda model, answer: model.why("abc", stop=list("abcdefghijklmnopqrstuvwxyz \n")), "the answer is empty"),
    ],
)
@pytest.mark.slow
def test_mistakes_are_told(loaded: Model, answer: Answer, wrong: Callable[..., object], message: str) -> None:
    with pytest.raises(tinychat.UsageError) as error:
        wrong(loaded, answer)
    assert message in str(error.value)


def test_too_many_weights_are_refused(loaded: Model, answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tinychat.api.inside.MAX_WEIGHTS", 287)
    with pytest.raises(tinychat.UsageError, match="these are 288 weights, of 12 tokens in 2 heads"):
        loaded.attention(answer)


def test_notebooks_show_records(loaded: Model, answer: Answer) -> None:
    chat = loaded.chat(seed=1)
    chat.say("abc")
    shown = [answer, loaded.why(answer), loaded.lens(answer), loaded.attention(answer), loaded.attention(answer, 1, 1),
             loaded.score("abc def"), chat, chat.stream("x"), loaded, tinychat.models()]  # fmt: skip
    for record in shown:
        Page(record._repr_html_())
    assert "surprisal:" in answer._repr_html_()
    assert html.escape(f"› {100 * math.exp(answer.tokens[0].logprob):.1f} %") in answer._repr_html_()


class Page(HTMLParser):
    """Reads HTML, and fails unless all elements end, in order, and none can act or fetch anything."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.feed(text)
        self.close()
        assert self.opened == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ["div", "span", "b", "table", "tr", "th", "td", "svg", "polyline", "circle", "text", "img"]
        values = dict(attributes)
        assert values.keys().isdisjoint(name for name in values if name.startswith("on") or name in ("href", "class"))
        assert (values.get("src") or "data:image/png;base64,").startswith("data:image/png;base64,")
        if tag != "img":
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ("polyline", "circle")

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


HOSTILE = '</div><script>alert(1)</script><img src=x onerror="alert(1)">\x1b]0;x\x07\' & "'


def test_the_words_of_a_model_drive_no_terminal(loaded: Model, answer: Answer) -> None:
    chat = loaded.chat()
    chat.answers.append(replace(answer, prompt=HOSTILE, text=HOSTILE))
    models = Models([ModelSummary(HOSTILE, Path(), "chat", 1, HOSTILE)])
    for record in (replace(answer, text=HOSTILE, model=HOSTILE), chat, models):
        assert "\x1b" not in repr(record)
        assert "alert(1)" in repr(record)


def test_a_surprisal_beyond_all_numbers_is_shown() -> None:
    from tinychat.commands.results import ShadedText

    shown = page.shaded_text(ShadedText((("a", 2.0), ("b", 1100.0), ("c", float("inf")))))
    for title in ("2.0 bits (1 in 4)", "1100.0 bits (1 in ∞)", "inf bits (1 in ∞)"):
        assert f"surprisal {title}" in shown


def test_the_words_of_a_model_are_never_markup(answer: Answer) -> None:
    from tinychat.commands.results import Bar, BarChart, HeatMap, HeatMaps, ShadedText, SmallMap, Table
    from tinychat.events import Evaluated, Sampled, Stepped, TopLogprob

    token = answer.tokens[0]._replace(text=HOSTILE, top=(TopLogprob(1, HOSTILE, -1.0),))
    hostile = replace(
        answer, prompt=HOSTILE, text=HOSTILE, tokens=(token,), model=HOSTILE, notices=(HOSTILE,), finish_reason="end"
    )
    events = [
        *(Stepped(step, 0.5, 1.0 / step, 0.1, 1.0, 1.0, 1.0, 1.0, 9) for step in (1, 2, 3)),
        Evaluated(3, 1.0, 1.0, 1.0, True, split=HOSTILE), Sampled(3, HOSTILE, HOSTILE),
    ]  # fmt: skip
    many = tuple((0.5,) * 80 for _ in range(80))
    drawn = [
        hostile._repr_html_(),
        page.shaded_text(ShadedText(((HOSTILE, 9.0), (HOSTILE, None)), (HOSTILE,), ((1.0,),))),
        page.bars(BarChart(HOSTILE, (Bar(HOSTILE, 0.5, True, 0.2),), (HOSTILE,), (HOSTILE,) * 3, (HOSTILE,) * 2)),
        page.table(Table((HOSTILE,), ((HOSTILE,),), HOSTILE, notes=(HOSTILE,))),
        page.heat_map(HeatMap(HOSTILE, (HOSTILE,), (HOSTILE,), ((0.5,),))),
        page.heat_map(HeatMap(HOSTILE, (HOSTILE,) * 80, (HOSTILE,) * 80, many)),
        page.heat_maps(HeatMaps(HOSTILE, ((SmallMap(HOSTILE, ((0.5,), (0.5, 1.0))),),))),
        page.facts(HOSTILE, HOSTILE, {HOSTILE: HOSTILE}),
        page.run(HOSTILE, HOSTILE, events),
    ]
    for one in drawn:
        Page(one)
        assert "\x1b" not in one
        assert "&lt;script&gt;alert(1)" in one
