"""What the loop around the model costs, measured by running it."""

import time
from pathlib import Path

import pytest

from tinychat.model.config import ModelConfig
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary
from tinychat.train.batches import Batches
from tinychat.train.overhead import loop_share
from tinychat.train.recipe import load_recipe


@pytest.mark.slow
def test_the_share_of_the_loop_is_what_is_not_spent_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = Tokenizer(train_vocabulary("char", ["abcdefgh"], 300, []))
    config = ModelConfig(tokenizer.vocab_size, context=16, n_layer=1, d_model=32)
    fields = {"device": "cpu", "precision": "f32", "learning_rate": 1e-4, "embedding_learning_rate": 1e-4}
    recipe = load_recipe().merged(fields)
    small = loop_share(recipe, config, 8, tokenizer, tmp_path, 0.3)
    batch = Batches.batch
    monkeypatch.setattr(Batches, "batch", lambda *args: (time.sleep(0.2), batch(*args))[1])
    assert 0 < small < loop_share(recipe, config, 8, tokenizer, tmp_path, 1.0)
    assert not list(tmp_path.iterdir())
