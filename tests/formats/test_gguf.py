"""GGUF files: written for llama.cpp, read where they lie, and refused if they are hostile."""

import json
import shutil
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.formats.conftest import PROMPTS, TEXT
from tests.texts import make_lines
from tinychat.cli.main import run
from tinychat.errors import ModelError, TinychatError, TokenizerError
from tinychat.formats import fitting, llama2c, nanogpt
from tinychat.formats import gguf as gguf_format
from tinychat.formats.registry import export_model, import_model, open_model
from tinychat.generate.prompts import PromptEncoder
from tinychat.model.loading import load_model
from tinychat.store.models import ModelInfo, read_info, read_tokenizers, read_weights
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import needs_no_words, train_vocabulary
from tinychat.train.recipe import load_recipe

gguf = pytest.importorskip("gguf")
Make = Callable[..., ModelInfo]
MISSING = "llama-cpp-python is not installed: `make llama` compiles it"


@torch.inference_mode()
@pytest.mark.parametrize(("shape", "kind"), [("llama", "wordpiece"), ("gpt2", "char"), ("gpt2", "bpe")])
def test_an_exported_file_holds_the_same_model(made: Make, tmp_path: Path, shape: str, kind: str) -> None:
    info = made(shape, kind, chat=kind == "wordpiece")
    export_model(info, "gguf", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{info.name}.gguf", "Modelfile"}
    back = open_model(str(tmp_path / "out" / f"{info.name}.gguf"))
    assert (back.mode, back.tokenizer_kind, back.template) == (info.mode, kind, info.template)
    assert back.settings == info.settings == {"temperature": 0.7}
    assert back.architecture["norm_eps"] == info.architecture["norm_eps"]
    tokenizer, theirs = read_tokenizers(info)[0], read_tokenizers(back)[0]
    assert [theirs.encode(prompt) for prompt in PROMPTS] == [tokenizer.encode(prompt) for prompt in PROMPTS]
    ids = torch.tensor([tokenizer.encode(PROMPTS[0])])
    logits = load_model(back)(ids)[..., : tokenizer.vocab_size]  # an end token may have been added
    assert torch.equal(logits, load_model(info)(ids))
    reader = gguf.GGUFReader(tmp_path / "out" / f"{info.name}.gguf")
    assert {tensor.tensor_type.name for tensor in reader.tensors} == {"F32"}
    assert reader.get_field("general.architecture").contents() == shape


def test_a_file_has_a_name_near_to_that_of_its_model(made: Make, tmp_path: Path) -> None:
    info = replace(made("llama", "char"), name="../x (copy)")
    export_model(info, "gguf", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"x-copy.gguf", "Modelfile"}
    assert "FROM ./x-copy.gguf\n" in (tmp_path / "out" / "Modelfile").read_text()


def test_export_says_where_llama_cpp_cuts_a_text_otherwise(
    made: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = older_pieces(made("llama", "wordpiece"), tmp_path / "old")
    for info in (*(made("llama", kind) for kind in ("wordpiece", "bpe", "char")), old):
        out = tmp_path / f"{info.folder.name} out"
        assert run(["export", str(info.folder), "--to", "gguf-f16", "--out", str(out)]) == 0
        shown = capsys.readouterr()
        assert shown.out == f"{out}\n"
        assert ("llama.cpp cuts" in shown.err) is (info is old)


def older_pieces(info: ModelInfo, folder: Path) -> ModelInfo:
    """Return a copy of a model whose tokenizer splits contractions off, as vocabularies did before."""
    shutil.copytree(info.folder, folder)
    values = json.loads((folder / "tokenizer.json").read_text())
    values["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = r"'(?:s|t|ll)| ?\p{L}+| ?[^\s\p{L}]{1,8}|\s"
    (folder / "tokenizer.json").write_text(json.dumps(values))
    return read_info(folder)


def other_pieces(piece: str) -> Tokenizer:
    """Return a vocabulary whose last word piece is replaced by another, in letters that stand for bytes."""
    values = json.loads(train_vocabulary("wordpiece", [TEXT], 300).to_str())
    values["model"]["vocab"] = {
        name if id < 299 else piece: id for name, id in values["model"]["vocab"].items() if name != piece
    }
    return Tokenizer.from_json(json.dumps(values))


@pytest.mark.parametrize(
    ("piece", "alike"), [("Ġqu", True), ("qu!", False), ("t's", False), ("Ġ'q", True), ("ĠĠq", False), (".Ċ", False),
                         ("\xa9Ã", False), ("ĠĠ", False), ("12", False)],
)  # fmt: skip
def test_a_piece_that_may_match_across_words_is_noticed(piece: str, alike: bool) -> None:
    assert needs_no_words(other_pieces(piece)) is alike


SCALED: dict[str, dict[str, Any]] = {
    "linear": {"rotary_factor": 4.0},
    "llama3": {"rotary_factor": 8.0, "rotary_short_wavelength": 12.0, "rotary_long_wavelength": 96.5},
    "llama3, all or nothing": {"rotary_factor": 8.0, "rotary_short_wavelength": 30.0, "rotary_long_wavelength": 31.0},
    "llama3, few in full": {"rotary_factor": 3.0, "rotary_short_wavelength": 3.0, "rotary_long_wavelength": 1e4},
}  # fmt: skip


@torch.inference_mode()
@pytest.mark.parametrize("kind", SCALED)
def test_scaled_rotary_positions_are_kept(made: Make, tmp_path: Path, kind: str) -> None:
    info = made("llama", "char", **SCALED[kind])
    export_model(info, "gguf", tmp_path / "out")
    model, back = load_model(info), load_model(open_model(str(tmp_path / "out")))
    assert back.config.rotary_divisors() == pytest.approx(model.config.rotary_divisors(), rel=1e-5)
    assert max(model.config.rotary_divisors()) > 2
    ids = torch.arange(200)[None] % model.config.vocab_size
    torch.testing.assert_close(back(ids)[..., : model.config.vocab_size], model(ids), rtol=1e-4, atol=1e-5)


@torch.inference_mode()
@pytest.mark.parametrize(("to", "error"), [("gguf-f16", 0.02), ("gguf-q8_0", 0.4)])
def test_numbers_of_fewer_bits_are_read_and_kept(made: Make, tmp_path: Path, to: str, error: float) -> None:
    info = made("llama", "wordpiece", chat=True)
    export_model(info, to, tmp_path / "out")
    kept = import_model(tmp_path / "out", "kept", tmp_path / "kept")
    ids = torch.tensor([read_tokenizers(kept)[0].encode(TEXT[:80])])
    difference = (load_model(kept)(ids) - load_model(info)(ids)).abs().max()
    assert 0 < difference < error
    half = sum(path.stat().st_size for path in (tmp_path / "out").iterdir())
    assert half < 4 * info.parameters


def write(path: Path, architecture: str = "llama", *, tensors: dict[str, Any] | None = None, **fields: Any) -> Path:
    """Write a file of one layer of 32 by the `gguf` package; `fields` are added to it or replace others, or remove."""
    writer, draw = gguf.GGUFWriter(path, architecture), np.random.default_rng(1)
    values: dict[str, Any] = {
        f"{architecture}.context_length": 16, f"{architecture}.embedding_length": 32, f"{architecture}.block_count": 1,
        f"{architecture}.feed_forward_length": 64, f"{architecture}.attention.head_count": 2,
        f"{architecture}.attention.layer_norm_rms_epsilon": 1e-5, "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": [*"abcdefgh", "ab", "abc"],
        "tokenizer.ggml.merges": ["a b", "ab c"],
    }  # fmt: skip
    for name, value in (values | {name.replace("__", "."): value for name, value in fields.items()}).items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, bool: writer.add_bool}
        if value is not None:
            add.get(type(value), writer.add_array)(name, value)
    shapes = {
        "token_embd": (10, 32), "output_norm": (32,), "blk.0.attn_norm": (32,), "blk.0.attn_q": (32, 32),
        "blk.0.attn_k": (32, 32), "blk.0.attn_v": (32, 32), "blk.0.attn_output": (32, 32), "blk.0.ffn_norm": (32,),
        "blk.0.ffn_gate": (64, 32), "blk.0.ffn_up": (64, 32), "blk.0.ffn_down": (32, 64),
    }  # fmt: skip
    arrays: dict[str, Any] = {name: draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    for name, array in ({f"{name}.weight": array for name, array in arrays.items()} | (tensors or {})).items():
        if isinstance(array, tuple):
            writer.add_tensor(name, gguf.quants.quantize(*array), raw_dtype=array[1])
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_models_of_qwen_are_read(transformers: Any, tmp_path: Path, kind: str) -> None:
    sizes = {"vocab_size": 10, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 8,
             "num_key_value_heads": 1, "intermediate_size": 64, "max_position_embeddings": 16}  # fmt: skip
    torch.manual_seed(3)
    theirs = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **sizes)).eval()
    for weight in theirs.parameters():
        weight.normal_(std=0.3)
    names = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    parts = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
             "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}  # fmt: skip
    names |= {f"model.layers.0.{part}": f"blk.0.{name}" for part, name in parts.items()}
    tensors = {}
    for name, weight in theirs.state_dict().items():
        module, _, suffix = name.rpartition(".")
        tensors[f"{names[module]}.{suffix}"] = weight.numpy()
    fields = {f"{kind}__attention__{name}": value for name, value in [
        ("head_count_kv", 1), ("layer_norm_rms_epsilon", 1e-6), ("key_length", 8), ("value_length", 8)
    ]}  # fmt: skip
    write(tmp_path / "m.gguf", kind, tensors=tensors, **fields)
    ids = torch.randint(10, (2, 12))
    ours = load_model(open_model(str(tmp_path / "m.gguf")))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("type", ["Q4_0", "Q5_1", "Q8_0", "BF16"])
def test_quantized_weights_are_widened(tmp_path: Path, type: str) -> None:
    kind = gguf.GGMLQuantizationType[type]
    up = np.random.default_rng(2).normal(size=(64, 32)).astype(np.float32)
    info = open_model(str(write(tmp_path / "m.gguf", tensors={"blk.0.ffn_up.weight": (up, kind)})))
    found = read_weights(info)["decoder.blocks.0.feed_forward.sublayer.up.weight"].numpy()
    assert np.array_equal(found, gguf.quants.dequantize(gguf.quants.quantize(up, kind), kind))


@pytest.mark.parametrize("begins", [True, False])
def test_the_chat_template_of_another_tool_and_what_begins_and_ends_a_text_are_read(
    tmp_path: Path, begins: bool
) -> None:
    source = "{{ bos_token }}{% for m in messages %}{{ m.content + eos_token }}{% endfor %}"
    fields = {
        "bos_token_id": 8, "eos_token_id": 9, "add_bos_token": begins, "token_type": [1] * 8 + [3] * 2,
        "tokens": [*"abcdefgh", "<s>", "</s>"], "merges": ["a b"],
    }  # fmt: skip
    named = {f"tokenizer__ggml__{name}": value for name, value in fields.items()}
    info = open_model(str(write(tmp_path / "m.gguf", tokenizer__chat_template=source, **named)))
    tokenizer = read_tokenizers(info)[0]
    assert (info.mode, info.end_ids, info.template and info.template.to_jinja()) == ("chat", (9,), source)
    assert info.template is not None
    assert info.template.encode_user_text("abc</s>", tokenizer)[0] == 8
    assert 9 not in info.template.encode_user_text("abc</s>", tokenizer)
    assert info.template.end_ids(tokenizer) == {9}
    assert PromptEncoder(tokenizer, 16).encode("ac") == [8] * begins + [0, 2]


def test_vocabularies_of_other_tools_are_read(tmp_path: Path) -> None:
    inner = train_vocabulary("bpe", [TEXT], 300, ["<|endoftext|>"])
    values = json.loads(inner.to_str())
    tokens = [inner.id_to_token(id) for id in range(300)]
    fields = {
        "tokenizer__ggml__tokens": tokens, "tokenizer__ggml__token_type": [1] * 299 + [3],
        "tokenizer__ggml__merges": [" ".join(pair) for pair in values["model"]["merges"]],
    }  # fmt: skip
    tensors = {"token_embd.weight": np.ones((300, 32), np.float32)}
    tokenizer, _ = read_tokenizers(open_model(str(write(tmp_path / "m.gguf", tensors=tensors, **fields))))
    assert tokenizer.encode(TEXT) == Tokenizer(inner).encode(TEXT)
    assert (tokenizer.decode(tokenizer.encode(TEXT)), tokenizer.special("end")) == (TEXT, 299)


def sentencepiece_fields(folder: Path) -> dict[str, Any]:
    """Train a vocabulary with SentencePiece, beside `m.model`, and return its fields in a GGUF file."""
    sentencepiece = pytest.importorskip("sentencepiece")
    (folder / "text").write_text(TEXT * 9)
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "text"), model_prefix=str(folder / "m"), vocab_size=400, model_type="bpe",
        byte_fallback=True, hard_vocab_limit=False, normalization_rule_name="identity", remove_extra_whitespaces=False,
        minloglevel=2,
    )  # fmt: skip
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(folder / "m.model"))
    ids = range(theirs.vocab_size())
    kinds = [2 if theirs.is_unknown(i) else 3 if theirs.is_control(i) else 6 if theirs.is_byte(i) else 1 for i in ids]
    return {
        "tokenizer__ggml__model": "llama", "tokenizer__ggml__tokens": [theirs.id_to_piece(id) for id in ids],
        "tokenizer__ggml__scores": [theirs.get_score(id) for id in ids], "tokenizer__ggml__token_type": kinds,
        "tokenizer__ggml__merges": None, "tokenizer__ggml__bos_token_id": theirs.bos_id(),
    }  # fmt: skip


def test_sentencepiece_ids_are_those_of_sentencepiece(tmp_path: Path) -> None:
    fields = sentencepiece_fields(tmp_path)
    theirs = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(tmp_path / "m.model"))
    tensors = {"token_embd.weight": np.ones((theirs.vocab_size(), 32), np.float32)}
    tokenizer, _ = read_tokenizers(open_model(str(write(tmp_path / "m.gguf", tensors=tensors, **fields))))
    texts = [*TEXT.splitlines(), "the quick brown fox", "  two  spaces ", "Кошка 猫 😀", "foxes"]
    assert [tokenizer.encode(text) for text in texts] == [theirs.encode(text) for text in texts]
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts
    assert tokenizer.special("end") == theirs.eos_id()


def test_what_gguf_cannot_hold_is_refused_with_the_first_field(made: Make, letters: Path, tmp_path: Path) -> None:
    said = {
        "its norm is layernorm, not rmsnorm": open_model(str(letters)),
        "its feed_forward is gelu, not gelu_tanh": made("gpt2", "char", feed_forward="gelu"),
        "no tokenizer like this one, word": made("llama", "word"),
    }
    for text, info in said.items():
        with pytest.raises(ModelError, match=text) as caught:
            export_model(info, "gguf", tmp_path / "out")
        assert "retrain with `--" in caught.value.remedy
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("format", [gguf_format, llama2c, nanogpt], ids=lambda one: one.__name__)
def test_the_recipes_that_a_refusal_names_train_what_the_format_holds(letters: Path, format: Any) -> None:
    for recipe in format.SHAPES:
        config = load_recipe(recipe).model_config(vocab_size=60)
        assert fitting.find_shape(open_model(str(letters)), config, format.SHAPES, "it") == recipe


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"general__architecture": "mamba"}, "architecture 'mamba'"),
        ({"llama__context_length": "many"}, "context_length that is no int"),
        ({"llama__context_length": None}, "lacks llama.context_length"),
        ({"llama__expert_count": 8}, "mixture of experts"), ({"split__count": 3}, "one of 3 parts"),
        ({"llama__rope__scaling__factor": 4.0, "llama__rope__scaling__type": "yarn"}, "scales its rotary"),
        ({"tensors": {"rope_freqs.weight": np.array([1, 2, 1, 2, 1, 2, 1, 2], np.float32)}}, "scales its rotary"),
        ({"tensors": {"rope_freqs.weight": np.zeros(8, np.float32)}}, "scales its rotary"),
        ({"llama__attention__head_count": 0}, "n_head is 0"), ({"llama__block_count": 2}, "lacks blk.1."),
        ({"llama__embedding_length": 64}, "has the shape"), ({"tokenizer__ggml__pre": "odd"}, "splitter 'odd'"),
        ({"tokenizer__ggml__model": "bert"}, "kind 'bert'"), ({"tokenizer__ggml__tokens": [1]}, "no list of str"),
        ({"tokenizer__ggml__token_type": [1]}, "10 tokens, and types of 1"),
        ({"general__alignment": 0}, "alignment is 0"), ({"tokenizer__huggingface__json": "{"}, "no tokenizer.json"),
        ({"tinychat__template": "[]"}, "bad chat template"),
        ({"tensors": {"blk.0.attn_q.weight": np.ones((3, 32), np.float32)}}, "attn_q.* has the shape 3 × 32, which"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    if "general__architecture" in fields:
        path = write(tmp_path / "m.gguf", fields["general__architecture"])
    else:
        path = write(tmp_path / "m.gguf", **fields)
    with pytest.raises((ModelError, TokenizerError), match=said):
        load_model(open_model(str(path)))


def header(tensors: int = 0, fields: int = 0, rest: bytes = b"") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, fields) + rest


def text(value: bytes, length: int | None = None) -> bytes:
    return struct.pack("<Q", len(value) if length is None else length) + value


HOSTILE = {
    "empty": b"", "other": b"PK\x03\x04" * 9, "version": b"GGUF" + struct.pack("<IQQ", 9, 0, 0),
    "tensors": header(1 << 60), "fields": header(0, 1 << 60), "name": header(0, 1, text(b"x", 1 << 62)),
    "type": header(0, 1, text(b"x") + struct.pack("<I", 99)),
    "nested": header(0, 1, text(b"x") + struct.pack("<IIQ", 9, 9, 1)),
    "texts": header(0, 1, text(b"x") + struct.pack("<IIQ", 9, 8, 1 << 50)),
    "numbers": header(0, 1, text(b"x") + struct.pack("<IIQ", 9, 4, 1 << 50)),
    "many": header(0, 2, 2 * (text(b"x") + struct.pack("<IIQ", 9, 0, 1 << 21) + bytes(1 << 21))),
    "shape": header(1, 0, text(b"x") + struct.pack("<IQQIQ", 2, 1 << 40, 1 << 40, 0, 0)),
    "dimensions": header(1, 0, text(b"x") + struct.pack("<I", 1 << 31)),
    "quantized": header(1, 0, text(b"x") + struct.pack("<IQIQ", 1, 32, 77, 0)),
    "outside": header(1, 0, text(b"x") + struct.pack("<IQIQ", 1, 32, 0, 1 << 62)),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_at_once(tmp_path: Path, name: str) -> None:
    path, began = tmp_path / "m.gguf", time.process_time()
    path.write_bytes(HOSTILE[name])
    with pytest.raises(ModelError, match="is no GGUF file that can be read") as caught:
        open_model(str(path))
    assert len(str(caught.value).splitlines()) <= 2
    assert time.process_time() - began < 5


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.gguf").read_bytes()
    for length in (*range(0, 1500, 97), len(whole) - 1):
        (tmp_path / "m.gguf").write_bytes(whole[:length])
        with pytest.raises(TinychatError):
            load_model(open_model(str(tmp_path / "m.gguf")))


# --- llama.cpp itself: it takes minutes to compile, so `make long` alone does --------------------------------------


def llama_ids(llama: Any, prompt: str) -> list[int]:
    """Return the ids of a chat with one message, rendered with the template in the file."""
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    formatter = Jinja2ChatFormatter(llama.metadata["tokenizer.chat_template"], eos_token="", bos_token="")
    rendered = formatter(messages=[{"role": "user", "content": prompt}]).prompt
    return llama.tokenize(rendered.encode(), add_bos=False, special=True)


@pytest.mark.slow
@pytest.mark.long
@torch.inference_mode()
@pytest.mark.parametrize(
    ("shape", "kind", "chat", "scaled"),
    [("gpt2", "char", False, ""), ("gpt2", "bpe", True, ""), ("gpt2", "wordpiece", False, ""),
     ("llama", "char", True, ""), ("llama", "bpe", False, ""), ("llama", "wordpiece", True, ""),
     ("llama", "char", False, "linear"), ("llama", "char", False, "llama3")],
)  # fmt: skip
def test_llama_cpp_computes_the_same(
    made: Make, tmp_path: Path, shape: str, kind: str, chat: bool, scaled: str
) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason=MISSING)
    info = made(shape, kind, chat=chat, steps=60, **SCALED.get(scaled, {}))
    export_model(info, "gguf", tmp_path / "out")
    file = str(tmp_path / "out" / f"{info.name}.gguf")
    llama = llama_cpp.Llama(file, n_ctx=256, n_threads=1, type_k=0, type_v=0, flash_attn=False, verbose=False)
    encoder = PromptEncoder(read_tokenizers(info)[0], 256, info.template)
    for prompt in (*PROMPTS, "HOW FAR?", "I") if chat else PROMPTS:
        ids = llama_ids(llama, prompt) if chat else llama.tokenize(prompt.encode(), add_bos=True, special=False)
        assert ids == encoder.encode(prompt)
    ours = theirs = encoder.encode(PROMPTS[0])
    model = load_model(info)
    llama.eval(theirs)
    for _ in range(200):
        ours = [*ours, int(model(torch.tensor([ours]))[0, -1].argmax())]
        logits = np.ctypeslib.as_array(llama._ctx.get_logits(), shape=(llama.n_vocab(),))
        theirs = [*theirs, int(logits.argmax())]
        llama.eval(theirs[-1:])
    assert theirs == ours


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("kind", ["char", "bpe", "wordpiece"])
def test_llama_cpp_cuts_any_text_in_the_same_way(made: Make, tmp_path: Path, kind: str) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason=MISSING)
    info = made("llama", kind)
    export_model(info, "gguf", tmp_path / "out")
    llama = llama_cpp.Llama(str(tmp_path / "out" / f"{info.name}.gguf"), vocab_only=True, verbose=False)
    tokenizer, _ = read_tokenizers(info)
    odd = (",'tis", "said,'Tis so,' said 'he'", "  two  spaces", "   three", "''s", "\n\n\n\t\tx", "don't'll", "--' 's")
    for text in (*odd, *make_lines(500)):
        known = "".join(char for char in text if char != "\0" and not tokenizer.unknown(char))
        assert llama.tokenize(known.encode(), add_bos=False, special=False) == tokenizer.encode(known), known


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("splitter", ["gpt-2", "smollm", "llama-bpe", "qwen2", "llama"])
def test_vocabularies_of_other_tools_are_those_of_llama_cpp(tmp_path: Path, splitter: str) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason=MISSING)
    fields: dict[str, Any] = {}
    if splitter == "llama":
        fields = sentencepiece_fields(tmp_path) | {"llama__vocab_size": 400}
    else:
        inner = train_vocabulary("bpe", [TEXT], 399, ["<|endoftext|>"])
        tokens = [inner.id_to_token(id) for id in range(inner.get_vocab_size())]
        fields = {
            "tokenizer__ggml__tokens": tokens, "tokenizer__ggml__token_type": [1] * (len(tokens) - 1) + [3],
            "tokenizer__ggml__merges": [" ".join(pair) for pair in json.loads(inner.to_str())["model"]["merges"]],
            "tokenizer__ggml__bos_token_id": len(tokens) - 1, "tokenizer__ggml__pre": splitter,
        }  # fmt: skip
    tensors = {"token_embd.weight": np.ones((len(fields["tokenizer__ggml__tokens"]), 32), np.float32)}
    file = write(tmp_path / "m.gguf", tensors=tensors, **fields)
    llama = llama_cpp.Llama(str(file), vocab_only=True, verbose=False)
    tokenizer, _ = read_tokenizers(open_model(str(file)))
    texts = [
        *TEXT.splitlines(),
        "I'LL go; it's 12345!\n\n\tdef f(x):  return x",
        "  two  spaces ",
        "Кошка 猫 😀 e\u0301",
        " a",
    ]
    for text in texts:
        assert llama.tokenize(text.encode(), add_bos=False) == tokenizer.encode(text)
        assert llama.tokenize(text.encode()) == tokenizer.inner.encode(text, add_special_tokens=True).ids


@pytest.mark.slow
@pytest.mark.long
def test_chats_of_other_tools_are_those_of_llama_cpp(tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason=MISSING)
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    inner = train_vocabulary("bpe", [TEXT], 400, names)
    tokens = [inner.id_to_token(id) for id in range(inner.get_vocab_size())]
    template = (
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    fields = {
        "tokenizer__ggml__tokens": tokens, "tokenizer__ggml__token_type": [1] * (len(tokens) - 3) + [3] * 3,
        "tokenizer__ggml__merges": [" ".join(pair) for pair in json.loads(inner.to_str())["model"]["merges"]],
        "tokenizer__ggml__eos_token_id": tokens.index("<|im_end|>"), "tokenizer__chat_template": template,
        "llama__context_length": 256,
    }  # fmt: skip
    tensors = {"token_embd.weight": np.ones((len(tokens), 32), np.float32)}
    info = open_model(str(write(tmp_path / "m.gguf", tensors=tensors, **fields)))
    assert (info.mode, info.end_ids) == ("chat", (tokens.index("<|im_end|>"),))
    export_model(info, "gguf", tmp_path / "again")
    for file in (tmp_path / "m.gguf", tmp_path / "again" / "m.gguf"):
        llama = llama_cpp.Llama(str(file), vocab_only=True, verbose=False)
        assert llama.token_eos() == tokens.index("<|im_end|>")
        info = open_model(str(file))
        encoder = PromptEncoder(read_tokenizers(info)[0], 256, info.template)
        for prompt in PROMPTS:
            assert encoder.encode(prompt) == llama_ids(llama, prompt)
