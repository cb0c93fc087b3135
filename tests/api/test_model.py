"""`tinychat.load`: stream, generate, chat and score, in Python as on the command line."""

import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import tinychat
from tinychat import Model


def test_the_import_reads_neither_torch_nor_numpy() -> None:
    code = (
        "import sys, tinychat; dir(tinychat)\n"
        "own = [name for name in sys.modules if name.startswith('tinychat.')]\n"
        "sys.exit(f'{own}' if own or {'torch', 'numpy'} & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_public_name_is_there_and_documented() -> None:
    assert set(tinychat.__all__) <= set(dir(tinychat))
    for name in tinychat.__all__:
        assert getattr(tinychat, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tinychat.nothing  # type: ignore[attr-defined]


def test_docstrings_tell_of_every_argument() -> None:
    classes = (tinychat.Model, tinychat.Chat, tinychat.Run, tinychat.Stream)
    methods = [value for one in classes for name, value in vars(one).items() if name[0] != "_" and callable(value)]
    for function in [tinychat.load, tinychat.train, tinychat.models, tinychat.runs, *methods]:
        doc = function.__doc__ or ""
        names = [name for name in inspect.signature(function).parameters if name != "self"]
        missing = [name for name in names if f" {name}: " not in doc and f"*{name}: " not in doc]
        assert not missing or "Arguments and errors are those of" in doc, (function, missing)


def test_a_stream_is_the_answer_token_by_token(loaded: Model) -> None:
    stream = loaded.stream("abc", seed=3)
    tokens = list(stream)
    answer = loaded.generate("abc", seed=3)
    assert "".join(token.text for token in tokens) == answer.text == str(answer) == stream.answer.text
    assert [token.id for token in answer.tokens] == [token.id for token in tokens]
    assert (answer.finish_reason, answer.seed, len(answer.tokens)) == ("length", 3, 30)
    first = answer.tokens[0]
    assert len(first.top) == 5
    assert first.top[0].logprob >= first.logprob
    assert loaded.generate("abc", seed=3, logprobs=0).tokens[0].top == ()


def test_texts_are_those_of_json_lines(loaded: Model, letters: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tinychat.cli.main import run

    prompts = ["abc", "abc", "the", ""]
    flags = [word for prompt in prompts for word in ("-p", prompt)]
    assert run(["-m", str(letters), "--jsonl", "--seed", "7", "-n", "30", "--engine", "torch", "--temperature", "0.9",
                *[flag if flag == "-p" else json.dumps(flag) for flag in flags]]) == 0  # fmt: skip
    lines = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    answers = loaded.generate(prompts, seed=7, temperature=0.9)
    assert [(one.text, one.seed) for one in answers] == [(line["completion"], line["seed"]) for line in lines]
    assert answers[0].text != answers[1].text
    alone = loaded.generate("abc", seed=answers[1].seed, temperature=0.9)
    assert alone.text == answers[1].text


def test_odd_values_are_taken(loaded: Model) -> None:
    numbers = {"seed": np.int64(3), "temperature": np.float32(1), "top_k": np.int32(4)}
    assert loaded.generate("ab", **numbers).seed == 3  # type: ignore[arg-type]
    assert len(loaded.generate("ab", logprobs=np.int64(3), max_tokens=1).tokens[0].top) == 3  # type: ignore[call-overload]
    assert loaded.generate("a\ud800b", max_tokens=2).notices == ("unknown to this model, left out: '�'",)


def test_texts_that_are_typed_for_no_value_are_texts(loaded: Model, letters: Path) -> None:
    assert loaded.generate("ab", begin="none", max_tokens=6, seed=1).text.startswith("none")
    assert loaded.stream("ab", stop="-").answer.settings.stop == ("-",)
    assert tinychat.load(letters, stop="none").settings.stop == ("none",)


def test_greedy_false_samples(letters: Path) -> None:
    model = tinychat.load(letters, engine="torch", temperature=0.5)
    chat = model.chat(greedy=True, max_tokens=3)
    assert chat.say("ab").settings.temperature == 0
    assert chat.say("ab", greedy=False).settings.temperature == 0.5
    greedy = tinychat.load(letters, engine="torch", greedy=True)
    assert greedy.generate("ab", greedy=False, max_tokens=3).settings.temperature == 0.8


def test_greedy_false_samples_where_the_model_is_greedy(letters: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(letters, tmp_path / "greedy")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"settings": {"temperature": 0}}), encoding="utf-8")
    assert tinychat.load(folder).settings.greedy
    assert tinychat.load(folder, greedy=False).settings.temperature == 0.8
    assert tinychat.load(folder).generate("ab", greedy=False, max_tokens=3).settings.temperature == 0.8


@pytest.mark.slow
def test_a_closed_model_loads_again(letters: Path) -> None:
    with tinychat.load(letters, engine="torch") as model:
        before = model.generate("ab", seed=1).text
    assert repr(model) == "<Model letters (char, 4.0k, completion) · closed>"
    assert model.generate("ab", seed=1).text == before


def test_more_prompts_than_a_batch_keep_their_order(loaded: Model) -> None:
    prompts = [letter * length for length in range(1, 14) for letter in "abc"]
    together = loaded.generate(prompts, greedy=True, max_tokens=5)
    assert [one.prompt for one in together] == prompts
    assert together[20].text == loaded.generate(prompts[20], greedy=True, max_tokens=5).text
    assert loaded.generate([]) == []


def test_a_chat_is_that_of_conversation(chatter: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from tinychat.cli.main import run

    flags = ["-m", str(chatter), "--conversation", "--seed", "5", "-n", "12"]
    assert run([*flags, "-p", "hello there", "-p", "fine"]) == 0
    chat = tinychat.load(chatter, max_tokens=12).chat(seed=5)
    texts = [chat.say("hello there").text, chat.say("fine").text]
    assert "".join(f"{text}\n" for text in texts) == capfd.readouterr().out
    assert [answer.prompt for answer in chat.answers] == ["hello there", "fine"]
    assert "\n› fine\n" in repr(chat)
    later = chat.model.chat(turns=[("hello there", texts[0])], seed=5)
    assert later.say("fine").text == texts[1]
    assert [answer.prompt for answer in later.answers] == ["fine"]
    with pytest.raises(tinychat.UsageError, match="reads no system message"):
        chat.model.chat(system="Answer in rhymes.")


def test_a_stream_left_early_is_a_turn_and_leaves_the_model_sound(loaded: Model) -> None:
    whole = loaded.generate("abc", seed=1).text
    chat = loaded.chat(seed=1)
    stream = chat.stream("abc")
    begun = next(stream).text + next(stream).text
    assert repr(stream).startswith("<Stream")
    second = chat.say("b")  # ends the open stream
    assert [(one.text, one.finish_reason) for one in chat.answers] == [(begun, "interrupted"), (second.text, "length")]
    assert list(stream) == []
    with loaded.stream("abc", seed=1) as again:
        next(again)
    assert again.answer.finish_reason == "interrupted"
    assert loaded.generate("abc", seed=1).text == whole


def test_the_last_reference_to_a_stream_of_a_chat_makes_its_turn(loaded: Model) -> None:
    chat = loaded.chat(seed=3)
    for _ in chat.stream("abc"):
        break
    assert [(len(one.tokens), one.finish_reason) for one in chat.answers] == [(1, "interrupted")]
    assert chat.turns == [("abc", chat.answers[0].text)]
    stream = chat.stream("abc")
    next(stream)
    assert len(chat.turns) == 1
    chat.say("abc")  # ends the open one first
    assert [one.finish_reason for one in chat.answers] == ["interrupted", "interrupted", "length"]
    del stream
    assert len(chat.turns) == 3


def test_an_error_before_the_first_token_leaves_no_turn(loaded: Model) -> None:
    chat = loaded.chat(seed=3)
    for _ in range(2):
        with pytest.raises(tinychat.TinychatError):
            chat.say("abc", choices=["中文"])
    assert chat.turns == chat.answers == []
    assert chat.say("abc").text == loaded.chat(seed=3).say("abc").text


def test_streams_take_turns_and_threads_wait(loaded: Model) -> None:
    prompts = ["abc", "xyz", "hello"]
    alone = [loaded.generate(prompt, seed=4).text for prompt in prompts]
    streams = [loaded.stream(prompt, seed=4) for prompt in prompts]
    taken = [""] * 3
    while any(tokens := [next(stream, None) for stream in streams]):
        taken = [text + (token.text if token else "") for text, token in zip(taken, tokens, strict=True)]
    assert taken == alone
    in_threads: dict[str, str] = {}
    threads = [
        threading.Thread(target=lambda prompt=prompt: in_threads.update({prompt: loaded.generate(prompt, seed=4).text}))
        for prompt in prompts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [in_threads[prompt] for prompt in prompts] == alone


@pytest.fixture
def interrupting(loaded: Model, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Returns a function after which the next call of the engine gets a SIGINT while it computes."""
    engine = loaded._opened.engine
    extend = engine.extend

    def interrupted(*arguments: object, **options: object) -> object:
        monkeypatch.setattr(engine, "extend", extend)
        os.kill(os.getpid(), signal.SIGINT)
        return extend(*arguments, **options)  # type: ignore[arg-type]

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: monkeypatch.setattr(engine, "extend", interrupted)
    signal.signal(signal.SIGINT, previous)


def test_ctrl_c_ends_a_stream_between_two_tokens(loaded: Model, interrupting: Callable[[], None]) -> None:
    whole = loaded.generate("abc", seed=1).text
    interrupting()
    stream = loaded.stream("abc", seed=1)
    with pytest.raises(KeyboardInterrupt):
        list(stream)
    assert stream.answer.finish_reason == "interrupted"
    list(stream)  # it goes on, and nothing is lost
    assert (stream.answer.text, stream.answer.finish_reason) == (whole, "length")
    interrupting()
    with pytest.raises(KeyboardInterrupt):
        loaded.generate(["abc", "x"])
    assert loaded.generate("abc", seed=1).text == whole


def test_a_prompt_that_is_no_text_is_named(loaded: Model) -> None:
    for prompt in (None, 5, [None]):
        with pytest.raises(tinychat.UsageError, match=r"a text is wanted, not (None|5)"):
            loaded.generate(prompt)  # type: ignore[arg-type]


def test_two_models_answer_beside_each_other(loaded: Model, chatter: Path) -> None:
    other = tinychat.load(chatter, max_tokens=8, seed=2)
    pairs = [(loaded.generate("abc", seed=1).text, other.generate("hello there").text) for _ in range(2)]
    assert pairs[0] == pairs[1]
    assert other.settings.temperature == 0.7  # the model's own
    assert "chatter (wordpiece" in repr(other)


def test_a_score_is_that_of_the_command(loaded: Model) -> None:
    score = loaded.score("hello there")
    assert [token.text for token in score.tokens] == list("hello there")
    assert score.logprobs.shape == score.entropies.shape == (11,)
    assert np.isnan(score.logprobs[0])
    assert score.loss == pytest.approx(-np.nanmean(score.logprobs))
    assert score.perplexity == pytest.approx(np.exp(score.loss))
    assert score.bits_per_character == pytest.approx(score.loss / np.log(2))
    assert "11 tokens" in repr(score)
    assert score.notices == ()
    assert "unknown to this model, left out: 'é'" in loaded.score("hé there").notices[0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda model: model.generate("x", temprature=1),
            "there is no setting 'temprature'\ndid you mean temperature?",
        ),
        (lambda model: model.generate("x", temperature="hot"), "temperature takes a number from 0 to 100, not 'hot'"),
        (lambda model: model.generate("x", temperature=np.array([1.0, 2.0])), "temperature takes a number"),
        (lambda model: model.generate("x", logprobs=1.5), "logprobs takes a whole number of at least 0, not 1.5"),
        (lambda model: model.generate("x", greedy=True, temperature=1.2), "greedy is true, and the temperature 1.2"),
        (lambda model: model.stream("x", device="cuda"), "device takes effect when a model is loaded\n"),
        (lambda model: model.chat().say("x", logprobs=-1), "logprobs takes a whole number of at least 0, not -1"),
        (lambda model: model.score(""), "nothing can be predicted"),
        (lambda model: model.generate(["x", 3]), "a text is wanted, not 3"),
        (lambda model: model.chat(turns=[("x", None)]), "a text is wanted, not None"),
        (lambda model: model.chat(turns=[{"role": "user", "content": "x"}]), "a turn is a prompt and its answer"),
        (lambda model: model.chat(turns=["hi"]), "a turn is a prompt and its answer, not 'hi'"),
        (lambda model: model.to_html([("hi",)]), "a turn is a prompt and its answer"),
        (lambda model: tinychat.load("nobody"), "there is no model 'nobody'"),
        (lambda model: tinychat.load(None), "a name or a path is wanted, not None"),
        (lambda model: tinychat.load(top_q=1), "there is no setting 'top_q'"),
    ],
)
def test_errors_are_those_of_the_program(loaded: Model, wrong: Callable[[Model], object], message: str) -> None:
    with pytest.raises(tinychat.TinychatError) as error:
        wrong(loaded)
    assert str(error.value).startswith(message)


def test_a_page_is_that_of_the_export(letters: Path, tmp_path: Path) -> None:
    from tinychat.cli.main import run

    assert run(["export", str(letters), "--to", "html", "--out", str(tmp_path / "page.html")]) == 0
    model = tinychat.load(letters)
    assert model.to_html() == (tmp_path / "page.html").read_text(encoding="utf-8")
    chat = model.chat(turns=[("once", " upon")])
    chat.say(" a", max_tokens=3)
    assert "\n¶  a\n" in repr(chat)
    assert model.to_html(chat) == model.to_html([("once", " upon"), (" a", chat.answers[0].text)]) != model.to_html()
