"""Checkpoints of nanoGPT: written for its `sample.py`, read where they lie; no class in their pickles is called."""

import io
import os
import pickle
import shutil
import subprocess
import sys
import time
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.formats.conftest import PROMPTS
from tests.formats.test_llama2c import complete
from tinychat.errors import ModelError, TinychatError, TokenizerError
from tinychat.formats.pickles import parse_pickle
from tinychat.formats.registry import export_model, import_model, open_model
from tinychat.model.loading import load_model
from tinychat.store.models import ModelInfo, read_tokenizers, read_weights

Make = Callable[..., ModelInfo]
SOURCE = Path(os.environ.get("TINYCHAT_PEERS", "/nowhere"), "nanoGPT")
NANOGPT = {"feed_forward": "gelu"}


@torch.inference_mode()
@pytest.mark.parametrize("bias", [True, False])
def test_an_exported_checkpoint_holds_the_same_model(made: Make, tmp_path: Path, bias: bool) -> None:
    info = made("gpt2", "char", bias=bias, specials=1, **NANOGPT)
    export_model(info, "nanogpt", tmp_path / "out")
    checkpoint = torch.load(tmp_path / "out" / "ckpt.pt", weights_only=True)
    assert checkpoint["model_args"]["block_size"] == info.architecture["context_length"]
    kept = import_model(tmp_path / "out", "kept", tmp_path / "kept")
    assert (kept.tokenizer_kind, kept.parameters) == ("char", info.parameters)
    ours, theirs = read_tokenizers(info)[0], read_tokenizers(kept)[0]
    assert theirs.encode(PROMPTS[0]) == ours.encode(PROMPTS[0])
    assert theirs.special("end") == ours.special("end")
    found = read_weights(kept)
    assert all(torch.equal(found[name], weight) for name, weight in read_weights(info).items())


def test_a_data_folder_has_a_name_near_to_that_of_its_model(made: Make, tmp_path: Path) -> None:
    info = replace(made("gpt2", "char", specials=1, **NANOGPT), name="../x (copy)")
    export_model(info, "nanogpt", tmp_path / "out")
    assert [path.name for path in (tmp_path / "out" / "data").iterdir()] == ["x-copy"]


def save(folder: Path, **changes: Any) -> Path:
    """Save a checkpoint of one layer as nanoGPT's train.py does, in f16, with the state of an optimizer."""
    names = {"wte": (5, 8), "wpe": (4, 8), "ln_f": (8,), "h.0.ln_1": (8,), "h.0.ln_2": (8,), "h.0.attn.c_attn": (24, 8),
             "h.0.attn.c_proj": (8, 8), "h.0.mlp.c_fc": (32, 8), "h.0.mlp.c_proj": (8, 32)}  # fmt: skip
    torch.manual_seed(1)
    model = OrderedDict(
        (f"_orig_mod.transformer.{name}.weight", torch.nn.Parameter(torch.randn(shape).half()).detach())
        for name, shape in names.items()
    )
    model["_orig_mod.lm_head.weight"] = model["_orig_mod.transformer.wte.weight"]
    model["_orig_mod.transformer.h.0.attn.bias"] = torch.ones(1, 1, 4, 4)
    arguments = {"n_layer": 1, "n_head": 2, "n_embd": 8, "block_size": 4, "bias": False, "vocab_size": 5}
    values = {
        "model": model, "model_args": arguments | {"dropout": 0.1}, "iter_num": 7, "best_val_loss": torch.tensor(1.5),
        "optimizer": {"state": {0: {"step": torch.tensor(7.0)}}}, "config": {"dataset": "toy", "lr": 1e-3},
    }  # fmt: skip
    folder.mkdir(parents=True)
    torch.save(values | changes, folder / "ckpt.pt")
    meta = {"vocab_size": 4, "itos": dict(enumerate("abc\n")), "stoi": {char: id for id, char in enumerate("abc\n")}}
    (folder.parent / "data" / "toy").mkdir(parents=True, exist_ok=True)
    (folder.parent / "data" / "toy" / "meta.pkl").write_bytes(pickle.dumps(meta))
    return folder


def test_a_checkpoint_of_nanogpt_is_opened_where_it_lies(tmp_path: Path) -> None:
    info = open_model(str(save(tmp_path / "out-toy")))
    assert (info.name, info.description, info.architecture["dropout"]) == ("out-toy", "out-toy of nanoGPT", 0.0)
    tokenizer, _ = read_tokenizers(info)
    assert (tokenizer.encode("cab"), tokenizer.decode([2, 0, 1])) == ([2, 0, 1], "cab")
    model = load_model(info)
    theirs = torch.load(tmp_path / "out-toy" / "ckpt.pt")["model"]
    fused = theirs["_orig_mod.transformer.h.0.attn.c_attn.weight"].float()
    key = model.state_dict()["decoder.blocks.0.attention.sublayer.key.weight"]
    assert torch.equal(key, fused[8:16])
    (tmp_path / "data" / "toy" / "meta.pkl").unlink()
    with pytest.raises(TokenizerError, match="there is no vocabulary beside"):
        open_model(str(tmp_path / "out-toy" / "ckpt.pt"))


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, (os.environ["TINYCHAT_HOME"] + "/evil",)


def test_no_class_of_a_pickle_is_called(tmp_path: Path, home: Path) -> None:
    save(tmp_path / "out")
    (tmp_path / "data" / "toy" / "meta.pkl").write_bytes(pickle.dumps({"itos": Evil(), "stoi": {}}))
    with pytest.raises(ModelError, match=r"it holds posix.mkdir: no classes are read"):
        open_model(str(tmp_path / "out"))
    save(tmp_path / "evil" / "out", config=Evil())
    with pytest.raises(ModelError, match=r"it holds posix.mkdir: no classes are read"):
        open_model(str(tmp_path / "evil" / "out"))
    assert not (home / "evil").exists()


ALIKE = [count * (2**61 - 1) for count in range(1, 20_000)]
"""Numbers that all have the same hash."""
HOSTILE = {
    "empty": b"", "cut": b"\x80\x04}", "mark": b"\x80\x04u.", "memo": b"\x80\x04r\xff\xff\xff\xff.",
    "get": b"\x80\x04h\x05.", "bytes": b"\x80\x04\x8e" + b"\xff" * 8, "number": b"\x8b\xff\xff\xff\x7f.",
    "builtin": b"cbuiltins\neval\n(S'1'\ntR.", "nested": b"\x80\x04})" + b"\x85" * 50_000 + b"Ns.",
    "many": b"\x80\x04" + b"N0" * 1_000_000 + b"N.", "extension": b"\x80\x04\x82\x01.",
    "lists": b"]q\x00" + b"".join(b"](h%ch%ceq%c" % (id, id, id + 1) for id in range(40)) + b"h(h(\x93.",
    "keys": b"\x80\x02}(" + b"".join(b"\x8a\x0a" + one.to_bytes(10, "little") + b"N" for one in ALIKE) + b"u.",
    "puts": b"N" + b"".join(b"p%d\n" % one for one in ALIKE) + b".",
    "stack": b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "persistent": b"\x80\x04NQ.",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_at_once(name: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=r"pickle|instruction|no classes|expected|count|not enough|64 bits"):
        parse_pickle(HOSTILE[name])
    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"model_args": None}, "no model_args"), ({"model": {}}, "lacks transformer"),
     ({"model_args": {}}, "lack 'vocab_size'"),
     ({"model_args": {"n_layer": 1, "n_head": 3, "n_embd": 8, "block_size": 4, "vocab_size": 5}}, "n_head is 3"),
     ({"model_args": {"n_layer": 1, "n_head": 2, "n_embd": 1 << 16, "block_size": 4, "vocab_size": 5, "bias": False}},
      "has the shape"),
     ({"model": {"transformer.wte.weight": torch.zeros(1).expand(1 << 20, 1 << 20)}}, "do not lie side by side"),
     ({"model": {"transformer.wte.weight": torch.zeros(4, 4).T}}, "do not lie side by side")],
)  # fmt: skip
def test_a_checkpoint_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        load_model(open_model(str(save(tmp_path / "out", **changes))))


def test_projections_that_cannot_be_cut_are_refused(tmp_path: Path) -> None:
    file = save(tmp_path / "out") / "ckpt.pt"
    checkpoint = torch.load(file, weights_only=True)
    checkpoint["model"]["_orig_mod.transformer.h.0.attn.c_attn.weight"] = torch.tensor(1.0)
    torch.save(checkpoint, file)
    with pytest.raises(ModelError, match=r"c_attn.weight in .* has the shape of a number, which"):
        load_model(open_model(str(tmp_path / "out")))


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    whole = (save(tmp_path / "out") / "ckpt.pt").read_bytes()
    compressed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as old, zipfile.ZipFile(compressed, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    at = whole.rindex(b"PK\x06\x06") + 40  # where the size of the directory is
    huge = whole[:at] + (1 << 40).to_bytes(8, "little") + whole[at + 8 :]
    parts = (b"", b"PK", whole[: len(whole) // 2], whole[:-30], pickle.dumps({"model": 1}))
    for data in (*parts, compressed.getvalue(), huge):
        (tmp_path / "out" / "ckpt.pt").write_bytes(data)
        with pytest.raises(TinychatError) as caught:
            open_model(str(tmp_path / "out"))
        assert len(str(caught.value).splitlines()) <= 2


@pytest.mark.parametrize("itos", [None, [], {}, {0: "ab"}, {0: "a", 1: "a"}, {"a": 0}, {0: 5}])
def test_a_faulty_vocabulary_is_refused(tmp_path: Path, itos: Any) -> None:
    save(tmp_path / "out")
    (tmp_path / "data" / "toy" / "meta.pkl").write_bytes(pickle.dumps({"itos": itos}))
    with pytest.raises(TokenizerError, match="itos"):
        open_model(str(tmp_path / "out"))


def test_what_nanogpt_cannot_hold_is_refused_with_the_first_field(made: Make, tmp_path: Path) -> None:
    said = {
        "its feed_forward is gelu_tanh, not gelu": made("gpt2", "char"),
        "its d_ff is 96, not the default": made("gpt2", "char", d_ff=96, **NANOGPT),
        "its tie_embeddings is false, not true": made("gpt2", "char", tie_embeddings=False, **NANOGPT),
        "no tokenizer bpe": made("gpt2", "bpe", **NANOGPT),
        r"no special tokens like <\|user\|>": made("gpt2", "char", chat=True, **NANOGPT),
    }
    for text, info in said.items():
        with pytest.raises(ModelError, match=text) as caught:
            export_model(info, "nanogpt", tmp_path / "out")
        assert "retrain with `--" in caught.value.remedy


@pytest.mark.slow
@torch.inference_mode()
def test_sample_py_of_nanogpt_writes_the_same_text(made: Make, tmp_path: Path) -> None:
    if not (SOURCE / "sample.py").is_file():
        pytest.skip("no nanoGPT in the folder TINYCHAT_PEERS (tests/README.md)")
    info = made("gpt2", "char", steps=60, **NANOGPT)
    export_model(info, "nanogpt", tmp_path / "out")
    shutil.copytree(tmp_path / "out" / "data", tmp_path / "data")
    for name in ("sample.py", "model.py", "configurator.py"):
        shutil.copy(SOURCE / name, tmp_path)
    (tmp_path / "tiktoken.py").touch()  # is imported, but not used with characters
    options = ["--num_samples=1", "--max_new_tokens=200", "--top_k=1", "--device=cpu", "--dtype=float32"]
    call = [sys.executable, "sample.py", f"--out_dir={tmp_path / 'out'}", f"--start={PROMPTS[0]}", *options]
    shown = subprocess.run(call, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    tokenizer = read_tokenizers(info)[0]
    text = tokenizer.decode(complete(load_model(info), tokenizer.encode(PROMPTS[0]), 200, None))
    assert shown.partition("meta.pkl...\n")[2].partition("\n-----")[0] == text
