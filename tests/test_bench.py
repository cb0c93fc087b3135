"""`tinychat bench`: the keys that scripts read, and a table that fits."""

import json
from pathlib import Path

import pytest

from tinychat import bench
from tinychat.cli.main import run


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measures for no longer than it must."""
    monkeypatch.setattr(bench, "SECONDS", 0.01)
    monkeypatch.setattr(bench, "LOOP_SECONDS", 0.1)


@pytest.mark.slow
def test_every_engine_and_precision_is_measured(
    letters: Path, kernel: Path | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bench", str(letters), "--device", "cpu", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    for part in ("prefill", "decode", "training"):
        assert said[part]["tokens_per_second"] > 0
        assert said[part]["fraction_of_limit"] > 0
    assert said["start_up"] > 0
    measured = [(rates["engine"], rates["precision"]) for rates in said["engines"]]
    assert measured[-2:] == [("torch", "f32"), ("torch", "bf16")]
    if kernel is not None:
        assert measured[0] == ("native", "f32")
    assert said["decode"] == said["engines"][0]["decode"]
    assert all(rates[part]["limit"] > 1e8 for rates in said["engines"] for part in ("prefill", "decode"))


@pytest.mark.slow
def test_the_table_fits_a_screen(letters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", str(letters), "--device", "cpu", "--engine", "torch", "--precision", "f32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("torch f32")
    assert max(map(len, lines)) <= 80
