"""`tinychat bench`: the keys of its JSON output, and the width of its table."""

import json
import time
from pathlib import Path

import pytest

from tinychat.cli.main import run
from tinychat.evaluate import bench
from tinychat.generate.torch_engine import TorchEngine
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary
from tinychat.train.batches import Batches
from tinychat.train.recipe import load_recipe


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten all measurements."""
    monkeypatch.setattr(bench, "MEASURE_SECONDS", 0.01)
    monkeypatch.setattr(bench, "LOOP_SECONDS", 0.1)


@pytest.mark.slow
def test_every_engine_and_precision_is_measured(
    letters: Path, kernel: Path | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["bench", str(letters), "--device", "cpu", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    for part in ("prefill", "decode", "training"):
        assert result[part]["tokens_per_second"] > 0
        assert result[part]["fraction_of_limit"] > 0
    assert result["start_up"] > 0
    measured = [(rates["engine"], rates["precision"]) for rates in result["engines"]]
    assert measured[-2:] == [("torch", "f32"), ("torch", "bf16")]
    if kernel is not None:
        assert measured[0] == ("native", "f32")
    assert result["decode"] == result["engines"][0]["decode"]
    assert all(rates[part]["limit"] > 1e8 for rates in result["engines"] for part in ("prefill", "decode"))


@pytest.mark.slow
def test_the_table_fits_a_screen(letters: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", str(letters), "--device", "cpu", "--engine", "torch", "--precision", "f32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("torch f32")
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("context_length", [1, 2, 3])
def test_decoding_is_measured_in_the_shortest_contexts(context_length: int) -> None:
    model = Transformer(ModelConfig(27, context_length=context_length, n_layer=1, d_model=16)).eval()
    rate = bench._measure_decode(TorchEngine(model), model, 4)
    assert rate.tokens_per_second > 0
    assert rate.fraction_of_limit > 0


@pytest.mark.slow
def test_the_overhead_of_the_loop_is_the_time_outside_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer(train_vocabulary("char", ["abcdefgh"], 300, []))
    config = ModelConfig(tokenizer.vocab_size, context_length=16, n_layer=1, d_model=32)
    fields = {"device": "cpu", "precision": "f32", "learning_rate": 1e-4, "embedding_learning_rate": 1e-4}
    recipe = load_recipe().merged(fields)
    small = bench.loop_overhead(recipe, config, 8, tokenizer, tmp_path, 0.3)
    batch = Batches.batch
    monkeypatch.setattr(Batches, "batch", lambda *args: (time.sleep(0.2), batch(*args))[1])
    assert 0 < small < bench.loop_overhead(recipe, config, 8, tokenizer, tmp_path, 1.0)
    assert not list(tmp_path.iterdir())
