"""Commands that show and change settings."""

import pytest
from scripted import Talk

from tinychat.commands.results import Change, Message, Table
from tinychat.commands.settings import change, nudge, suggest_values, toggle_greedy
from tinychat.config.option import Option, Origin
from tinychat.config.settings import SETTINGS, UI_OPTIONS
from tinychat.errors import SettingError, UsageError


def test_a_setting_is_changed_by_its_name(talk: Talk) -> None:
    assert talk.do("/temperature 1.2") == Change("temperature", "0.8", "1.2")
    assert talk.do("/max 100") == Change("max-tokens", "256", "100")
    assert talk.do("/set top-p 0.5") == Change("top-p", "0.95", "0.5")
    assert talk.do("/seed 7") == Change("seed", "–", "7")
    assert talk.do("/seed none") == Change("seed", "7", "–")
    assert talk.do(r"/stop \n") == Change("stop", "–", r"'\n'")
    assert talk.session.settings.current.stop == ("\n",)


def test_a_banned_text_is_added_to_the_others(talk: Talk) -> None:
    assert talk.do("/ban sad, ice cream") == Change("ban", "–", "sad, ice cream")
    assert talk.do("/ban rain, sad") == Change("ban", "sad, ice cream", "sad, ice cream, rain")
    assert talk.do("/ban off") == Change("ban", "sad, ice cream, rain", "–")


def test_the_newest_boost_of_a_text_holds(talk: Talk) -> None:
    assert talk.do("/boost ice cream 2") == Change("boost", "–", "ice cream 2")
    assert talk.do("/boost sad -1.5, Ice cream 3") == Change("boost", "ice cream 2", "Ice cream 3, sad -1.5")
    assert talk.do("/boost sad 0") == Change("boost", "Ice cream 3, sad -1.5", "Ice cream 3")
    assert talk.do("/boost ice cream 0") == Change("boost", "Ice cream 3", "–")


def test_a_setting_alone_is_shown_with_its_bound_and_meaning(talk: Talk) -> None:
    talk.session.settings.set("top_p", 0.9, Origin.FLAG)
    assert talk.do("/top-p") == Message(
        ("top-p 0.9",),
        (
            "keep the likeliest tokens of this total probability",
            "a number above 0 and at most 1 · default 0.95 · now from: flag",
        ),
    )


@pytest.mark.parametrize("line", ["/temperature hot", "/top-p 0", "/max-tokens 2.5", "/device tpu", "/set temp -1"])
def test_a_wrong_value_is_refused_and_changes_nothing(talk: Talk, line: str) -> None:
    before = talk.session.settings.current
    with pytest.raises(SettingError):
        talk.do(line)
    assert talk.session.settings.current == before


@pytest.mark.parametrize(
    "line",
    [
        "/temp0.5", "/temperature=0.5", "/temperature = 0.5", "/set temperature 0.5", "/set temperature=0.5",
        "/set temperature = 0.5", "/set temperature: 0.5", "/set parameter temperature 0.5", "/set parameter temp=0.5",
    ],
)  # fmt: skip
def test_there_are_many_ways_to_change_one(talk: Talk, line: str) -> None:
    assert talk.do(line) == Change("temperature", "0.8", "0.5")


def test_zero_turns_off_what_may_be_off(talk: Talk) -> None:
    for name in ("slow", "top-k", "threads"):
        talk.do(f"/{name} 5")
        assert talk.do(f"/{name} 0") == Change(name, "5", "–")
    assert talk.do("/seed 0") == Change("seed", "–", "0")


@pytest.mark.parametrize("line", ['/begin "Oh, "', '/set begin "Oh, "', "/set begin=Oh, "])
def test_quotation_marks_keep_the_spaces_around_a_beginning(talk: Talk, line: str) -> None:
    talk.do(line)
    assert talk.session.settings.current.begin == ("Oh, " if '"' in line else "Oh,")


def test_spaces_at_the_ends_of_a_value_are_visible(talk: Talk) -> None:
    assert talk.do('/begin "  "') == Change("begin", "–", "'  '")
    assert talk.do("/begin Well") == Change("begin", "'  '", "Well")
    talk.do('/begin "Oh, "')
    assert talk.do("/begin").lines == ("begin 'Oh, '",)
    (now, *_) = suggest_values(talk.session, SETTINGS["begin"])
    assert now.text == '"Oh, "'


def test_quotation_marks_keep_a_word_for_no_value(talk: Talk) -> None:
    for typed, value in (('"- "', "- "), ('"none"', "none"), ("none", None), ("'-'", "-"), ("-", None)):
        talk.do(f"/begin {typed}")
        assert talk.session.settings.current.begin == value
        (now, *_) = suggest_values(talk.session, SETTINGS["begin"])
        talk.do(f"/begin {now.text}")
        assert talk.session.settings.current.begin == value


def test_quotation_marks_and_an_equals_sign_belong_to_a_pattern(talk: Talk) -> None:
    for pattern in ('"[a-z]+"', "=+"):
        talk.do(f"/regex {pattern}")
        assert talk.session.settings.current.regex == pattern
    with pytest.raises(SettingError, match="unterminated subpattern"):
        talk.do("/regex (a")
    assert talk.session.settings.current.regex == "=+"


def test_set_without_a_value_shows(talk: Talk) -> None:
    assert talk.do("/set") == talk.do("/settings")
    assert talk.do("/set temperature") == talk.do("/set parameter temperature") == talk.do("/temperature")


def test_a_text_to_stop_at_may_be_an_equals_sign(talk: Talk) -> None:
    for line in ("/stop =", "/stop==", "/set stop =", "/set stop =="):
        talk.do(line)
        assert talk.session.settings.current.stop == ("=",), line


@pytest.mark.parametrize("line", ["/set top", "/set top 1", "/reset top", "/set zzz"])
def test_names_in_a_remedy_are_spelled_as_they_are_typed(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        talk.do(line)
    assert "top-p" in caught.value.remedy
    assert "_" not in caught.value.remedy


@pytest.mark.parametrize("line", ["/set nonsense", "/set nonsense 1", "/reset nonsense"])
def test_a_wrong_call_is_refused(talk: Talk, line: str) -> None:
    with pytest.raises(UsageError):
        talk.do(line)


def test_greedy_is_temperature_0_and_sample_brings_back_the_last_one(talk: Talk) -> None:
    talk.do("/temp 1.3")
    assert talk.do("/greedy") == Change("temperature", "1.3", "0")
    assert talk.do("/sample") == Change("temperature", "0", "1.3")
    assert toggle_greedy(talk.session) == Change("temperature", "1.3", "0")
    assert toggle_greedy(talk.session) == Change("temperature", "0", "1.3")


def test_a_nudge_goes_as_far_as_the_bounds(talk: Talk) -> None:
    assert nudge(talk.session, "temperature", 0.1).new == "0.9"
    assert nudge(talk.session, "temperature", -5).new == "0"
    assert nudge(talk.session, "max_tokens", -16).new == "240"
    assert nudge(talk.session, "max_tokens", -1000).new == "1"


def test_a_nudge_leaves_what_it_would_make_invalid(talk: Talk) -> None:
    talk.do("/top-p 0.04")
    assert nudge(talk.session, "top_p", -0.05) == Change("top-p", "0.04", "0.04")


def test_reset_takes_back_what_commands_set_and_no_more(talk: Talk) -> None:
    talk.session.settings.set("top_p", 0.9, Origin.FLAG)
    talk.do("/top-p 0.5")
    talk.do("/temperature 1.2")
    assert talk.do("/reset top-p") == Message(("top-p 0.5 → 0.9",))
    assert talk.do("/reset") == Message(("temperature 1.2 → 0.8",))
    assert talk.do("/reset") == Message(("nothing to take back",))


def test_settings_shows_all_of_them_with_where_they_come_from(talk: Talk) -> None:
    talk.do("/temperature 1.2")
    table = talk.do("/settings")
    assert isinstance(table, Table)
    assert len(table.rows) == len(SETTINGS) + len(UI_OPTIONS)
    assert table.rows[0][:3] == ("temperature", "1.2", "command")
    assert table.rows[-1][:3] == ("theme", "dark", "default")


def test_settings_shows_the_open_model(talk: Talk) -> None:
    def row() -> tuple[str, ...]:
        table = talk.do("/settings")
        assert isinstance(table, Table)
        return next(row[1:3] for row in table.rows if row[0] == "model")

    talk.do("/model other")
    assert row() == ("other", "command")
    talk.do("/rename other third --yes")
    assert row() == ("third", "command")
    with pytest.raises(UsageError, match="a model is opened, not set") as caught:
        talk.do("/set model parrot")
    assert caught.value.remedy == "`/model parrot` opens it"


def test_a_device_that_is_not_there_is_refused(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for line in ("/device cuda", "/set device cuda"):
        with pytest.raises(UsageError, match="there is no cuda device here") as caught:
            talk.do(line)
        assert caught.value.remedy == "`/device auto` chooses one"
    assert talk.session.settings.current.device == "auto"
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert talk.do("/device cuda") == Change("device", "auto", "cuda")


def test_options_of_the_face_are_shown_but_chosen_at_the_start(talk: Talk) -> None:
    with pytest.raises(UsageError, match="theme is chosen when tinychat starts"):
        talk.do("/set theme light")


def test_what_a_model_is_loaded_with_loads_it_again_and_keeps_the_conversation(talk: Talk) -> None:
    talk.ask("hello")
    engine = talk.session.model.engine
    change(talk.session, "threads", "1")
    assert talk.session.model.engine is not engine
    assert [turn.prompt for turn in talk.session.turns] == ["hello"]


def test_what_is_reset_loads_the_model_again_if_it_is_loaded_with_that(talk: Talk) -> None:
    for line in ("/reset", "/reset threads"):
        talk.do("/threads 1")
        talk.do("/temperature 1.2")
        engine = talk.session.model.engine
        talk.do("/reset temperature")
        assert talk.session.model.engine is engine
        talk.do(line)
        assert talk.session.model.engine is not engine


def test_values_are_completed_with_the_one_in_force_first(talk: Talk) -> None:
    assert [one.text for one in suggest_values(talk.session, SETTINGS["device"])] == ["auto", "cpu", "cuda", "mps"]
    assert [one.text for one in suggest_values(talk.session, SETTINGS["top_k"])] == ["none", "5", "40"]
    assert [(one.text, one.about) for one in suggest_values(talk.session, SETTINGS["temperature"])] == [
        ("0.8", "now · 0 to 100 · higher: more random"),
        ("0", "greedy: always the most likely token"),
        ("0.5", "predictable"),
        ("1", "the model's own probabilities"),
        ("1.2", "more varied"),
    ]
    talk.do(r"/stop \n")
    assert [one.text for one in suggest_values(talk.session, SETTINGS["stop"])] == [r"\n", "none", r"\n\n"]
    talk.do("/top-p 0.5")
    assert [(one.text, one.about) for one in suggest_values(talk.session, SETTINGS["top_p"])] == [
        ("0.5", "now · above 0, to 1 · lower: less random"),
        ("0.9", "all but unlikely tokens"),
        ("1", "all tokens"),
        ("0.95", "default"),
    ]
    assert "top-p" in talk.completions("set", "to")
    assert "cuda" in talk.completions("set", "device", "")
    assert talk.completions("set", "nonsense", "") == {}


@pytest.mark.parametrize(
    ("typed", "stop"),
    [('" end"', " end"), ("'.'", "."), ('"', '"'), ('""x""', '"x"'), ("'", "'"), ('"-"', "-"), ("'none'", "none")],
)
def test_a_stop_text_is_typed_in_quotation_marks_or_not(talk: Talk, typed: str, stop: str) -> None:
    for line in (f"/stop {typed}", f"/set stop {typed}"):
        talk.do(line)
        assert talk.session.settings.current.stop == (stop,)
        talk.do("/reset stop")


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=lambda setting: setting.name)
def test_every_value_that_is_offered_can_be_set_and_says_what_it_does(talk: Talk, setting: Option) -> None:
    for one in suggest_values(talk.session, setting):
        talk.session.settings.set(setting.name, one.text)
        assert one.about
