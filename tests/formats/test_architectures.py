"""Every architecture of `transformers` that is read: its logits and its greedy text, by both engines."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tinychat.config.settings import Settings
from tinychat.errors import ModelError
from tinychat.formats.registry import export_model, import_model, open_model
from tinychat.generate.engine import Engine, Request
from tinychat.generate.loading import open_engine
from tinychat.store.models import map_weights, read_tokenizer

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.usefixtures("compiled")

VOCABULARY, CONTEXT = 28, 256
LLAMA: dict[str, Any] = {
    "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT, "hidden_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 44,
}  # fmt: skip
ROPE = {"rope_type": "default", "rope_theta": 5000.0}
LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # fmt: skip
CASES: dict[str, dict[str, Any]] = {
    "gpt2": {"model_type": "gpt2", "vocab_size": VOCABULARY, "n_positions": CONTEXT, "n_embd": 32, "n_layer": 2,
             "n_head": 2, "tie_word_embeddings": True},
    "gpt2 unscaled": {"model_type": "gpt2", "vocab_size": VOCABULARY, "n_positions": CONTEXT, "n_embd": 32,
                      "n_layer": 2, "n_head": 2, "scale_attn_weights": False, "activation_function": "relu"},
    "llama": {"model_type": "llama", **LLAMA, "rope_parameters": ROPE},
    "llama tied": {"model_type": "llama", **LLAMA, "tie_word_embeddings": True, "head_dim": 10},
    "llama scaled": {"model_type": "llama", **LLAMA, "head_dim": 16, "rope_parameters": LLAMA3},
    "mistral": {"model_type": "mistral", **LLAMA, "sliding_window": 7, "head_dim": 16},
    "qwen2": {"model_type": "qwen2", **LLAMA, "tie_word_embeddings": True, "rope_parameters": ROPE},
    "qwen2 windows": {"model_type": "qwen2", **LLAMA, "use_sliding_window": True, "sliding_window": 9,
                      "max_window_layers": 1},
    "qwen2 scaled": {"model_type": "qwen2", **LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}},
    "qwen3": {"model_type": "qwen3", **LLAMA, "head_dim": 20},
    "gpt_neox": {"model_type": "gpt_neox", "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT,
                 "hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 70,
                 "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}},
    "gpt_neox serial": {"model_type": "gpt_neox", "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT,
                        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40,
                        "use_parallel_residual": False, "hidden_act": "gelu_new"},
    "gpt_neox scaled": {"model_type": "gpt_neox", "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT,
                        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 40,
                        "rope_parameters": LLAMA3 | {"partial_rotary_factor": 0.5}},
    "gpt_neo": {"model_type": "gpt_neo", "vocab_size": VOCABULARY, "max_position_embeddings": CONTEXT,
                "hidden_size": 32, "num_layers": 3, "num_heads": 2, "window_size": 8,
                "attention_types": [[["global", "local"], 1], [["global"], 1]]},
}  # fmt: skip


def make(case: str, letters: Path, folder: Path) -> Any:
    """Save a small model of `transformers`, trained for some steps from weights that are nowhere zero."""
    torch.manual_seed(5)
    config = transformers.AutoConfig.for_model(**CASES[case])
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(3):
        ids = torch.randint(VOCABULARY, (2, 30))
        model(ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval().save_pretrained(folder)
    read_tokenizer(letters).save(folder / "tokenizer.json")
    return model


def engines(folder: Path) -> dict[str, Engine]:
    info = open_model(str(folder))
    settings = {"native": Settings(engine="native", precision="f32"), "torch": Settings(engine="torch", device="cpu")}
    return {name: open_engine(info, one) for name, one in settings.items()}


def greedy(engine: Engine, ids: list[int], n: int) -> list[int]:
    (tokens,) = engine.extend([Request(0, ids, 0, Settings(temperature=0, max_tokens=n), 1)], n)
    return [token.id for token in tokens]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_every_architecture_predicts_as_in_transformers(case: str, letters: Path, tmp_path: Path) -> None:
    theirs = make(case, letters, tmp_path)
    ids = torch.randint(VOCABULARY, (1, 40))
    with torch.inference_mode():
        logits = theirs(ids).logits[0]
    expected = logits.log_softmax(-1)
    for engine in engines(tmp_path).values():
        scores = torch.tensor(engine.score(ids[0].tolist()))
        torch.testing.assert_close(scores, expected[:-1].gather(1, ids[0, 1:, None])[:, 0], rtol=1e-4, atol=1e-5)
        request = Request(0, ids[0].tolist(), 1, Settings(), 1)
        found = torch.tensor([one.logprob for one in sorted(engine.probabilities(request), key=lambda one: one.id)])
        torch.testing.assert_close(found, expected[-1], rtol=1e-4, atol=1e-5)
        model = getattr(engine, "model", None)
        if model is not None:
            with torch.inference_mode():
                torch.testing.assert_close(model(ids)[0], logits, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_architecture_goes_out_as_it_came(case: str, letters: Path, tmp_path: Path) -> None:
    theirs = make(case, letters, tmp_path / "theirs")
    import_model(tmp_path / "theirs", "kept", tmp_path / "kept")
    ids = torch.randint(VOCABULARY, (1, 40))
    for name in ("theirs", "kept"):
        export_model(open_model(str(tmp_path / name)), "transformers", tmp_path / f"{name} again")
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / f"{name} again")
        assert again.config.model_type == CASES[case]["model_type"]
        assert again.state_dict().keys() == theirs.state_dict().keys()
        assert all(torch.equal(again.state_dict()[name], weight) for name, weight in theirs.state_dict().items())
        with torch.inference_mode():
            torch.testing.assert_close(again(ids).logits, theirs(ids).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_architecture_writes_the_same_200_tokens(case: str, letters: Path, tmp_path: Path) -> None:
    theirs = make(case, letters, tmp_path)
    ids = [3, 1, 4, 1, 5, 9, 2, 6]
    options = {"max_new_tokens": 200, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    expected = theirs.generate(torch.tensor([ids]), **options)[0, len(ids) :].tolist()
    assert len(expected) == 200
    for name, engine in engines(tmp_path).items():
        assert greedy(engine, ids, 200) == expected, name
    int8 = open_engine(open_model(str(tmp_path)), Settings(engine="native", precision="int8"))
    assert len(greedy(int8, ids, 200)) == 200


def test_what_is_not_known_is_refused_by_name(letters: Path, tmp_path: Path) -> None:
    read_tokenizer(letters).save(tmp_path / "tokenizer.json")
    for changes, said in [
        ({"rope_scaling": LLAMA3 | {"rope_type": "yarn"}}, "scaled ('yarn')"),
        ({"rope_scaling": {"type": "longrope"}}, "scaled ('longrope')"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "scaled ('dynamic')"),
        ({"rope_parameters": {"full_attention": ROPE, "sliding_attention": LLAMA3}}, "scaled ('by layer')"),
        ({"rope_scaling": {"type": "linear"}}, "lacks 'factor'"),
        ({"rope_scaling": LLAMA3 | {"factor": "8"}}, "rotary_factor is '8'"),
        ({"rope_scaling": LLAMA3 | {"low_freq_factor": 0}}, "low_freq_factor is 0"),
        ({"rope_scaling": LLAMA3 | {"low_freq_factor": 4.0}}, "rotary_long_wavelength is 16.0"),
        ({"rope_parameters": ROPE | {"partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"),
        ({"hidden_act": "gelu"}, "activation 'gelu'"), ({"num_hidden_layers": "2"}, "n_layer is '2'"),
        ({"max_position_embeddings": None}, "max_position_embeddings is None"), ({"model_type": "mamba"}, "'mamba'"),
        ({"num_attention_heads": 0}, "n_head is 0"), ({"attention_bias": True}, "attention_bias is true"),
        (CASES["gpt_neo"] | {"attention_layers": 3, "attention_types": [[["x"] * 9999, 1 << 60]]}, "kind 'x'"),
        (CASES["gpt_neo"] | {"attention_types": [[[], 1 << 60], [["x"], 1]]}, "kind 'x'"),
        (CASES["qwen3"] | {"layer_types": ["full_attention", "linear_attention"]}, "kind 'linear_attention'"),
    ]:  # fmt: skip
        (tmp_path / "config.json").write_text(json.dumps(CASES["llama"] | changes))
        with pytest.raises(ModelError, match=re.escape(said)):
            open_model(str(tmp_path))


@pytest.mark.parametrize("change", ["lacks", "extra", "shape"])
def test_weights_that_are_not_those_of_the_config_are_refused(change: str, letters: Path, tmp_path: Path) -> None:
    make("qwen2", letters, tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    bias = weights.pop("model.layers.1.self_attn.q_proj.bias")
    if change != "lacks":
        weights["model.layers.1.self_attn.q_proj.bias"] = bias[: None if change == "extra" else 3].clone()
    if change == "extra":
        weights["model.layers.1.self_attn.o_proj.bias"] = bias
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    name = {"lacks": "lacks model.layers.1.self_attn.q_proj.bias", "extra": "has model.layers.1.self_attn.o_proj.bias"}
    with pytest.raises(ModelError, match=name.get(change, "has the shape 3, not 32")):
        open_engine(open_model(str(tmp_path)), Settings(engine="native"))


@pytest.mark.parametrize(
    ("case", "name", "shape"),
    [
        ("gpt2", "transformer.h.0.attn.c_attn.weight", ()),
        ("gpt_neox", "gpt_neox.layers.0.attention.query_key_value.weight", (4, 5)),
    ],
)
def test_weights_that_cannot_be_rearranged_are_refused(
    case: str, name: str, shape: tuple[int, ...], letters: Path, tmp_path: Path
) -> None:
    make(case, letters, tmp_path)
    weights = load_file(tmp_path / "model.safetensors") | {name: torch.ones(shape)}
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=f"{name} in .* has the shape (of a number|4 × 5), which"):
        map_weights(open_model(str(tmp_path)))


def test_bf16_weights_stay_bf16(letters: Path, tmp_path: Path) -> None:
    make("llama", letters, tmp_path).to(torch.bfloat16).save_pretrained(tmp_path)
    info = open_model(str(tmp_path))
    assert open_engine(info, Settings(engine="native")).about.startswith("native engine, bf16")
    kept = import_model(tmp_path, "kept", tmp_path / "kept")
    assert {one.dtype for one in map_weights(kept).values()} == {"BF16"}
    assert kept.description == info.description
