"""Files of llama2.c: written for its program `run`, read where they lie, and refused if they are damaged."""

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.formats.conftest import PROMPTS, TEXT
from tinychat.config.settings import SettingStore
from tinychat.errors import ModelError, TinychatError, TokenizerError
from tinychat.formats.registry import export_model, import_model, open_model
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.session.open_model import OpenModel
from tinychat.store.models import ModelInfo, read_tokenizers, read_weights

Make = Callable[..., ModelInfo]
SOURCE = Path(os.environ.get("TINYCHAT_PEERS", "/nowhere"), "llama2.c", "run.c")


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_an_exported_model_computes_the_same(made: Make, tmp_path: Path, kind: str) -> None:
    info = made("llama", kind, specials=1, norm_eps=1e-6, tie_embeddings=True)
    export_model(info, "llama2c", tmp_path / "out")
    kept = import_model(tmp_path / "out", "kept", tmp_path / "kept")
    ours, theirs = read_tokenizers(info)[0], read_tokenizers(kept)[0]
    ids, their_ids = ours.encode(f" {PROMPTS[0]}"), theirs.encode(PROMPTS[0])
    assert [theirs.token_bytes(id) for id in their_ids] == [ours.token_bytes(id) for id in ids]
    assert theirs.decode(theirs.encode(TEXT)).removeprefix(" ") == TEXT
    logits, their_logits = load_model(info)(torch.tensor([ids]))[0], load_model(kept)(torch.tensor([their_ids]))[0]
    end, their_end = ours.special("end"), theirs.special("end")
    assert their_end == 1
    torch.testing.assert_close(their_logits[:, their_end], logits[:, end], atol=1e-5, rtol=1e-4)
    newest, their_newest = logits.argmax(-1).tolist(), their_logits.argmax(-1).tolist()
    assert [theirs.token_bytes(id) for id in their_newest] == [ours.token_bytes(id) for id in newest]


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_a_text_begins_with_their_first_token(made: Make, tmp_path: Path, kind: str) -> None:
    export_model(made("llama", kind, specials=1, norm_eps=1e-6, tie_embeddings=True), "llama2c", tmp_path / "out")
    encoder = OpenModel(str(tmp_path / "out"), SettingStore()).prompt_encoder
    assert encoder.encode("") == [1]
    assert encoder.encode(PROMPTS[0]) == [1, *encoder.tokenizer.encode(PROMPTS[0])]


@torch.inference_mode()
def test_tokens_that_we_lack_are_hardly_ever_drawn(made: Make, tmp_path: Path) -> None:
    info = made("llama", "char", specials=1, norm_eps=1e-6, tie_embeddings=False)
    export_model(info, "llama2c", tmp_path / "out")
    theirs = import_model(tmp_path / "out", "kept", tmp_path / "kept")
    ours, vocabulary = read_tokenizers(info)[0], read_tokenizers(theirs)[0]
    ids = vocabulary.encode(TEXT[:200])
    logprobs = load_model(theirs)(torch.tensor([ids]))[0].log_softmax(-1).mean(0)
    known = {vocabulary.encode(char)[-1] for char in TEXT if ours.encode(char)}
    lacking = [id for id in range(len(logprobs)) if id not in known and id != vocabulary.special("end")]
    assert len(lacking) > 150
    assert logprobs[lacking].max() < logprobs[sorted(known)].quantile(0.25)


def to_version(folder: Path, version: int, group: int = 32) -> None:
    """Rewrite `model.bin` of version 0 in a later version, as `export.py` of llama2.c does."""
    info = open_model(str(folder))
    shape, weights = info.architecture, {name: one.numpy() for name, one in read_weights(info).items()}
    raw = (folder / "model.bin").read_bytes()
    sizes = [*struct.unpack_from("<7i", raw)]
    width = shape["d_model"] // shape["n_head"]
    layers = range(shape["n_layer"])

    def all_layers(part: str) -> list[np.ndarray]:
        arrays = [weights[f"decoder.blocks.{layer}.{part}.weight"] for layer in layers]
        if part.endswith(("query", "key")):
            arrays = [a.reshape(-1, 2, width // 2, a.shape[1]).swapaxes(1, 2).reshape(a.shape) for a in arrays]
        return arrays

    norms = [*all_layers("attention.norm"), *all_layers("feed_forward.norm"), weights["decoder.norm.weight"]]
    parts = [*(f"attention.sublayer.{part}" for part in ("query", "key", "value", "output")),
             *(f"feed_forward.sublayer.{part}" for part in ("gate", "output", "up"))]  # fmt: skip
    matrices = [weights["decoder.embedding.weight"], *(one for part in parts for one in all_layers(part))]
    matrices.append(weights["head.weight"])
    header = struct.pack("<Ii7iB", 0x616B3432, version, *sizes[:5], abs(sizes[5]), sizes[6], 0)
    header += struct.pack("<i", group) if version == 2 else b""
    data = b"".join(norm.tobytes() for norm in norms)
    for matrix in matrices:
        if version == 1:
            data += matrix.tobytes()
            continue
        groups = matrix.reshape(-1, group)
        scales = (np.abs(groups).max(1) / 127).astype("<f4")
        data += np.round(groups / scales[:, None]).astype(np.int8).tobytes() + scales.tobytes()
    (folder / "model.bin").write_bytes(header.ljust(256, b"\0") + data)


@torch.inference_mode()
@pytest.mark.parametrize(("version", "error"), [(1, 0.0), (2, 0.02)])
def test_later_versions_are_read(made: Make, tmp_path: Path, version: int, error: float) -> None:
    export_model(made("llama", "char", specials=1), "llama2c", tmp_path / "out")
    before = load_model(open_model(str(tmp_path / "out")))
    to_version(tmp_path / "out", version)
    after = load_model(open_model(str(tmp_path / "out" / "model.bin")))
    ids = torch.arange(35, 55)[None]
    torch.testing.assert_close(after(ids), before(ids), atol=error, rtol=0)


def test_what_llama2c_cannot_hold_is_refused_with_the_first_field(made: Make, tmp_path: Path) -> None:
    said = {
        "its norm is layernorm, not rmsnorm": made("gpt2", "char"),
        "its rotary_base is 5000.0, not 10000.0": made("llama", "char", rotary_base=5000.0),
        "no tokenizer wordpiece": made("llama", "wordpiece"),
    }
    for text, info in said.items():
        with pytest.raises(ModelError, match=text) as caught:
            export_model(info, "llama2c", tmp_path / "out")
        assert "retrain with `--" in caught.value.remedy


def test_damaged_files_are_refused(made: Make, tmp_path: Path) -> None:
    folder, model, vocabulary = tmp_path, tmp_path / "model.bin", tmp_path / "tokenizer.bin"
    export_model(made("llama", "char", specials=1), "llama2c", folder / "out")
    weights, words = ((folder / "out" / name).read_bytes() for name in ("model.bin", "tokenizer.bin"))
    numbers = struct.unpack_from("<7i", weights)
    damaged = [weights[:-1], weights[:20], b"", weights + b"\0", struct.pack("<7i", *[2**31 - 1] * 7)]
    for at in range(7):
        damaged += [struct.pack("<7i", *numbers[:at], one, *numbers[at + 1 :]) + weights[28:] for one in (0, -1)]
    for version, group in [(9, 1), (2, 0), (2, 7)]:
        damaged.append(struct.pack("<Ii7iBi", 0x616B3432, version, *numbers, 0, group))
    damaged.append(struct.pack("<Ii7i", 0x616B3432, 1, *numbers))
    vocabulary.write_bytes(words)
    for data in damaged:
        model.write_bytes(data)
        with pytest.raises(ModelError):
            open_model(str(folder))
    model.write_bytes(weights)
    for data in (words[:-1], b"", words[:4] + struct.pack("<fi", 0, 2**31 - 1), words[:4] + struct.pack("<fi", 0, -1)):
        vocabulary.write_bytes(data)
        with pytest.raises(TokenizerError, match="is no vocabulary of"):
            open_model(str(folder))
    vocabulary.unlink()
    with pytest.raises(TinychatError):
        open_model(str(model))


@pytest.mark.slow
@torch.inference_mode()
@pytest.mark.parametrize(("kind", "specials"), [("char", 0), ("char", 1), ("bpe", 1)])
def test_run_of_llama2c_writes_the_same_text(made: Make, tmp_path: Path, kind: str, specials: int) -> None:
    if not SOURCE.is_file() or not shutil.which("cc"):
        pytest.skip("no llama2.c in the folder TINYCHAT_PEERS (tests/README.md), or no compiler")
    subprocess.run(["cc", "-O2", "-o", tmp_path / "run", SOURCE, "-lm"], check=True)
    info = made("llama", kind, specials=specials, steps=60, norm_eps=1e-6)
    export_model(info, "llama2c", tmp_path / "out")
    tokenizer, model = read_tokenizers(info)[0], load_model(info)
    end = tokenizer.special("end")
    begin = tokenizer.encode("\n") if end is None else [end]
    for prompt in PROMPTS[:3]:
        call = [tmp_path / "run", tmp_path / "out" / "model.bin", "-z", tmp_path / "out" / "tokenizer.bin"]
        options = ["-t", "0", "-n", "200", "-i", prompt]
        shown = subprocess.run([*call, *options], check=True, capture_output=True).stdout.removesuffix(b"\n")
        ids = [*begin, *tokenizer.encode(f" {prompt}")]
        ids = complete(model, ids, 201 - len(ids), end)[1:]
        # `run` prints no single bytes of characters.
        texts = [data for data in map(tokenizer.token_bytes, ids) if len(data) > 1 or data < b"\x80"]
        assert b"".join(texts).removeprefix(b" ") == shown


def complete(model: Transformer, ids: list[int], count: int, end: int | None) -> list[int]:
    """Return ids with up to `count` likeliest ones after them, without the end token."""
    for _ in range(count):
        newest = int(model(torch.tensor([ids]))[0, -1].argmax())
        if newest == end:
            break
        ids = [*ids, newest]
    return ids
