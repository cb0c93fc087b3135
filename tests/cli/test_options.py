"""The config file, which may be anything: it is used, or refused in a line that names it."""

import os
import time
from pathlib import Path

import pytest

from tinychat.cli.options import MAX_CONFIG, load_server_options, load_settings, make_session
from tinychat.errors import ModelError, UsageError


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"seed = " + b"[" * 5_000, "nested too deep"),
        (b"seed = " + b"1" * 5_000, "digits"),
        (b"seed = 0x" + b"f" * 5_000, "64 bits"),
        (b"a" + b".a" * 20_000 + b" = 1", "too many dots"),
        (b"system = '\xff'", "not UTF-8"),
        (b"#" * (MAX_CONFIG + 1), "longer than"),
        (b"seed = [[1], [2]]", "seed takes a whole number"),
        (b"theme = '" + b"x" * 100_000 + b"'", "theme takes"),
    ],
)
def test_an_odd_config_file_is_refused_in_a_line(home: Path, data: bytes, said: str) -> None:
    (home / "config.toml").write_bytes(data)
    began = time.process_time()
    with pytest.raises(UsageError, match=said) as caught:
        load_settings()
    assert str(home / "config.toml") in caught.value.problem
    assert len(caught.value.problem) < 1_000
    assert time.process_time() - began < 5


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_not_a_file_is_never_opened(home: Path, kind: str) -> None:
    path = home / "config.toml"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(UsageError, match="cannot be read: it is a"):
        load_settings()


def test_there_may_be_no_config_file(home: Path) -> None:
    assert load_settings()[0].current.seed is None


def test_a_model_that_is_gone_is_told_with_what_names_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.toml").write_text('model = "gone"\n')
    for flags, source in (({}, f"{home / 'config.toml'}: "), ({"model": "gone"}, "")):
        with pytest.raises(ModelError) as caught:
            make_session(flags)
        assert caught.value.problem == f"{source}there is no model 'gone'"
    monkeypatch.setenv("TINYCHAT_MODEL", "gone")
    with pytest.raises(ModelError, match="TINYCHAT_MODEL: there is no model 'gone'"):
        make_session({})


def test_the_server_has_options_like_all_others(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.toml").write_text('port = 8001\nmax-queue = 7\nhost = "0.0.0.0"\n')
    monkeypatch.setenv("TINYCHAT_PORT", "8002")
    assert load_settings()[0].current.seed is None  # other commands know its names
    found = load_server_options({"max_batch": "3", "top_p": "0.5"})
    assert (found.port, found.max_queue, found.max_batch) == (8002, 7, 3)
    with pytest.raises(UsageError, match="there is no key"):
        found.check_key()
    monkeypatch.setenv("TINYCHAT_API_KEY", "sesame")
    load_server_options({}).check_key()
    monkeypatch.setenv("TINYCHAT_APIKEY", "sesame")
    with pytest.raises(UsageError, match="TINYCHAT_APIKEY is no variable"):
        load_settings()


def test_greedy_has_its_name_in_the_config_file_and_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "config.toml").write_text("greedy = true\n")
    assert load_settings()[0].current.greedy
    assert load_settings({"temperature": "0.6"})[0].current.temperature == 0.6
    monkeypatch.setenv("TINYCHAT_GREEDY", "0")
    assert load_settings()[0].current.temperature == 0.8
    (home / "config.toml").write_text("temperature = 0.5\n")
    assert load_settings()[0].current.temperature == 0.5
    monkeypatch.setenv("TINYCHAT_GREEDY", "1")
    assert load_settings()[0].current.greedy
    monkeypatch.setenv("TINYCHAT_TEMPERATURE", "0.6")
    with pytest.raises(UsageError, match=r"TINYCHAT_GREEDY: greedy is temperature 0, not 0\.6"):
        load_settings()


def test_only_a_name_that_is_near_is_suggested(home: Path) -> None:
    for name, remedy in (("serve", "settings: model, "), ("batch", "did you mean max_batch?")):
        (home / "config.toml").write_text(f"{name} = 1\n")
        with pytest.raises(UsageError) as caught:
            load_settings()
        assert caught.value.remedy.startswith(remedy)


@pytest.mark.parametrize(("host", "is_local"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("::", False)])
def test_only_this_machine_reaches_a_local_address(host: str, is_local: bool) -> None:
    assert load_server_options({"host": host}).is_local == is_local
