"""A model folder that another process replaces: each opening finds one version of it, whole."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from tinychat.config.settings import Settings, SettingStore
from tinychat.generate.loading import open_engine
from tinychat.session.open_model import OpenModel
from tinychat.store.models import read_info, read_weights


def test_every_opening_finds_a_whole_model(letters: Path, chatter: Path, tmp_path: Path, compiled: Path) -> None:
    folder = tmp_path / "model"
    program = Path(__file__).with_name("replaced.py")
    call = [sys.executable, str(program), str(folder), str(letters), str(chatter)]
    sizes = {read_info(one).name: read_info(one).architecture["vocab_size"] for one in (letters, chatter)}
    settings = Settings(engine="native", threads=1)
    found = Counter[str]()
    with subprocess.Popen(call, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        while not (folder / "config.json").exists():
            assert process.poll() is None
        for _ in range(60):
            model = OpenModel(str(folder), SettingStore())
            engine = open_engine(model.info, settings)
            size = sizes[model.name]
            assert model.info.architecture["vocab_size"] == model.tokenizer.vocab_size == size
            assert model.source_tokenizer is model.tokenizer
            assert engine.context_length == 32
            assert read_weights(model.info)["head.weight"].shape == (size, 16)
            found[model.name] += 1
        process.stdin.close()
    assert min(found.values()) > 3
    assert len(found) == 2
