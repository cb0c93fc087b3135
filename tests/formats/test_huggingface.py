"""Import and export, compared with transformers."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tinychat.cli import main
from tinychat.config.settings import SettingStore
from tinychat.errors import ModelError, UsageError
from tinychat.formats.registry import export_model, import_model, list_models, open_model
from tinychat.model.config import ModelConfig
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.session.open_model import OpenModel
from tinychat.store.models import (
    ModelInfo,
    read_card,
    read_info,
    read_tokenizer,
    read_training,
    read_weights,
    save_model,
)
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import Recipe

transformers = pytest.importorskip("transformers")

GPT2: dict[str, Any] = {
    "norm": "layernorm", "norm_affine": True, "feed_forward": "gelu_tanh", "position": "learned", "qk_norm": False,
    "bias": True, "head_bias": False, "tie_embeddings": True, "n_head": 4,
}  # fmt: skip
LLAMA: dict[str, Any] = {
    "norm": "rmsnorm", "norm_affine": True, "norm_eps": 1e-6, "feed_forward": "swiglu", "position": "rotary",
    "qk_norm": False, "n_head": 4, "n_kv_head": 2, "d_ff": 44,
}  # fmt: skip


def make(folder: Path, letters: Path, options: dict[str, Any]) -> ModelInfo:
    tokenizer = read_tokenizer(letters)
    config = ModelConfig(tokenizer.vocab_size, context_length=24, n_layer=2, d_model=16, **options)
    torch.manual_seed(1)
    model = Transformer(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.3)
    facts = (config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(ModelInfo(folder.name, folder, "completion", *facts), model.state_dict(), tokenizer)
    return read_info(folder)


@pytest.mark.slow
@torch.inference_mode()
@pytest.mark.parametrize("options", [GPT2, LLAMA, LLAMA | {"tie_embeddings": True}], ids=["gpt2", "llama", "tied"])
def test_exported_models_compute_the_same_logits_in_transformers_and_can_be_imported(
    letters: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    info = make(tmp_path / "m", letters, options)
    export_model(info, "transformers", tmp_path / "out")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out").eval()
    ours, ids = load_model(info), torch.randint(info.architecture["vocab_size"], (2, 20))
    torch.testing.assert_close(ours(ids), theirs(ids).logits, atol=1e-5, rtol=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer.encode("hello there") == read_tokenizer(info.folder).encode("hello there")
    back = import_model(tmp_path / "out", "back", tmp_path / "back")
    torch.testing.assert_close(load_model(back)(ids), ours(ids))
    assert back.parameters == info.parameters


@pytest.mark.parametrize("form", ["whole", "split", "pickled", "pickled and split"])
def test_a_folder_of_transformers_is_opened_where_it_lies(letters: Path, tmp_path: Path, form: str) -> None:
    torch.manual_seed(2)
    config = transformers.GPT2Config(vocab_size=28, n_positions=24, n_embd=16, n_layer=2, n_head=2)
    theirs, folder = transformers.GPT2LMHeadModel(config).eval(), tmp_path / "theirs"
    theirs.save_pretrained(folder, max_shard_size="5KB" if form == "split" else "1GB")
    if form.startswith("pickled"):
        (folder / "model.safetensors").unlink()
        state = theirs.state_dict() | {"transformer.h.0.attn.bias": torch.ones(1, 1, 4, 4, dtype=torch.bool)}
        names = list(state)
        parts = [names[:5], names[5:]] if form.endswith("split") else [names]
        files = {f"pytorch_model{f'-{part}' * (len(parts) > 1)}.bin": names for part, names in enumerate(parts)}
        for file, names in files.items():
            torch.save({name: state[name] for name in names}, folder / file)
        if len(parts) > 1:
            places = {name: file for file, names in files.items() for name in names}
            (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    read_tokenizer(letters).save(folder / "tokenizer.json")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert len(before) > 4 or form != "split"
    model = OpenModel(str(folder), SettingStore())
    ids = [model.tokenizer.encode("hello there")]
    with torch.inference_mode():
        expected = theirs(torch.tensor(ids)).logits.log_softmax(-1)[0]
    scores = [expected[at, id].item() for at, id in enumerate(ids[0][1:])]
    assert model.engine.score(ids[0]) == pytest.approx(scores, abs=1e-5)
    assert model.info.description == "theirs of transformers (gpt2)"
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_of_transformers_among_the_models_is_listed_and_found_by_name(
    letters: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = transformers.GPT2Config(vocab_size=28, n_positions=24, n_embd=16, n_layer=1, n_head=2)
    for name in ("theirs", "broken"):
        transformers.GPT2LMHeadModel(config).save_pretrained(home / "models" / name)
    read_tokenizer(letters).save(home / "models" / "theirs" / "tokenizer.json")
    found = list_models()
    assert "theirs of transformers (gpt2)" in [one.description for one in found.sound]
    assert [(one.name, "holds neither tokenizer.json" in one.error) for one in found.damaged] == [("broken", True)]
    assert open_model("theirs").folder == home / "models" / "theirs"
    capsys.readouterr()
    assert main.run(["show", "theirs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "transformers"


def test_training_goes_on_from_a_folder_of_transformers(letters: Path, tmp_path: Path) -> None:
    config = transformers.GPT2Config(vocab_size=28, n_positions=24, n_embd=16, n_layer=1, n_head=2)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "theirs")
    read_tokenizer(letters).save(tmp_path / "theirs" / "tokenizer.json")
    run = prepare_run(Recipe(texts=("hello there",), from_model=str(tmp_path / "theirs")), name="more")
    assert read_info(run.base_model).architecture == open_model(str(tmp_path / "theirs")).architecture
    assert run.tokenizer_file.read_bytes() == (run.base_model / "tokenizer.json").read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weight_map": {"a": "../x.safetensors"}}, "which is no file beside it"),
        ({"weight_map": {"a": "absent.safetensors"}}, "cannot be read"), ({}, "has no weight_map"),
    ],
)  # fmt: skip
def test_a_faulty_index_is_refused(tmp_path: Path, letters: Path, change: dict[str, Any], said: str) -> None:
    transformers.GPT2Config(vocab_size=28, n_positions=24, n_embd=16, n_layer=1, n_head=2).save_pretrained(tmp_path)
    read_tokenizer(letters).save(tmp_path / "tokenizer.json")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(change))
    with pytest.raises(ModelError, match=said):
        read_weights(open_model(str(tmp_path)))


@torch.inference_mode()
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_models_of_transformers_can_be_imported(letters: Path, tmp_path: Path, kind: str) -> None:
    if kind == "gpt2":
        config = transformers.GPT2Config(vocab_size=28, n_positions=24, n_embd=16, n_layer=2, n_head=2)
    else:
        config = transformers.LlamaConfig(
            vocab_size=28, max_position_embeddings=24, hidden_size=16, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=40, rope_theta=5000.0,
        )  # fmt: skip
    torch.manual_seed(2)
    theirs = transformers.AutoModelForCausalLM.from_config(config).eval()
    folder = tmp_path / "theirs"
    theirs.save_pretrained(folder)
    read_tokenizer(letters).save(folder / "tokenizer.json")
    info = import_model(folder, "x", tmp_path / "x")
    ids = torch.randint(28, (2, 20))
    torch.testing.assert_close(load_model(info)(ids), theirs(ids).logits, atol=1e-5, rtol=1e-4)


def test_a_file_of_the_name_of_ours_in_a_folder_of_transformers_is_left_alone(letters: Path, tmp_path: Path) -> None:
    export_model(read_info(letters), "transformers", tmp_path / "theirs")
    (tmp_path / "theirs" / "training.json").write_text("[learning rate: 3e-4]")
    info = import_model(tmp_path / "theirs", "x", tmp_path / "x")
    assert read_training(info.folder) == {"imported_from": info.description}


def test_an_unknown_format_is_refused(letters: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no format 'abacus'"):
        export_model(read_info(letters), "abacus", tmp_path / "out")


@pytest.mark.parametrize(
    ("config", "said"),
    [(None, "holds no config.json"), ("{", "is damaged"), ('{"model_type": "mamba"}', "'mamba' is not known here"),
     ('{"model_type": "gpt2"}', "lacks")],
)  # fmt: skip
def test_a_folder_without_a_model_is_refused(tmp_path: Path, config: str | None, said: str) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    if config is not None:
        (folder / "config.json").write_text(config)
    with pytest.raises(ModelError, match=said):
        import_model(folder, "x", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_exported_model_has_half_the_size_and_no_paths(letters: Path, tmp_path: Path) -> None:
    info = read_info(letters)
    recipe = {
        "data": {"sources": ["/home/me/secret/novel.txt:2", "tales/train.jsonl"], "from_model": "/home/me/secret/m"},
        "tokenizer": {"tokenizer": "/home/me/secret/tokenizer.json", "vocab_size": 300},
    }
    card = "# m\n\n## Train it again\n\n    sources = ['/home/me/secret/novel.txt:2']\n\n## Samples\n"
    own = replace(info, folder=tmp_path / "m")
    save_model(own, read_weights(info), read_tokenizer(letters), card=card, training={"recipe": recipe})
    export_model(read_info(tmp_path / "m"), "tinychat", tmp_path / "out")
    assert read_training(tmp_path / "out")["recipe"] == {
        "data": {"sources": ["novel.txt:2", "tales/train.jsonl"], "from_model": "m"},
        "tokenizer": {"tokenizer": "tokenizer.json", "vocab_size": 300},
    }
    assert read_card(tmp_path / "out") == "# m\n\n## Samples\n"
    assert all(b"secret" not in path.read_bytes() for path in (tmp_path / "out").iterdir())
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("m", "out")]
    assert sizes[1] < 0.7 * sizes[0]
    ids = torch.randint(27, (1, 9))
    ours, theirs = load_model(read_info(tmp_path / "m")), load_model(read_info(tmp_path / "out"))
    torch.testing.assert_close(ours(ids), theirs(ids), atol=0.05, rtol=0.05)


def test_an_exported_model_is_as_exact_as_it_is_stored_up_to_16_bits(letters: Path, tmp_path: Path) -> None:
    info, weights = read_info(letters), read_weights(read_info(letters))
    for stored, exact in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float16)):
        own = replace(info, folder=tmp_path / stored)
        save_model(own, weights, read_tokenizer(letters), precision=stored)
        export_model(own, "tinychat", tmp_path / f"{stored} out")
        found = read_weights(read_info(tmp_path / f"{stored} out"))
        assert all(found[name].equal(weight.to(exact).float()) for name, weight in weights.items())


def test_an_export_in_int8_stays_so_when_it_is_imported_and_exported_again(letters: Path, tmp_path: Path) -> None:
    info = read_info(letters)
    for number, (to, smaller) in enumerate((("tinychat", 0.7), ("tinychat-int8", 0.85), ("tinychat", 1.01)), 1):
        export_model(info, to, tmp_path / str(number))
        exported = read_info(tmp_path / str(number))
        sizes = [(one.folder / "model.safetensors").stat().st_size for one in (info, exported)]
        assert sizes[1] < smaller * sizes[0]
        info = exported
    again = import_model(tmp_path / "3", "again", tmp_path / "again")
    ids = torch.randint(27, (1, 9))
    half, whole, copy = (load_model(one)(ids) for one in (read_info(tmp_path / "1"), info, again))
    torch.testing.assert_close(whole, half, atol=0.1, rtol=0.1)
    assert copy.equal(whole)


def test_an_exported_card_keeps_a_recipe_without_paths(letters: Path, tmp_path: Path) -> None:
    info = read_info(letters)
    card = "# m\n\n## Train it again\n\n    sources = ['tales']\n"
    training = {"recipe": {"data": {"sources": ["tales"]}}}
    own = replace(info, folder=tmp_path / "m")
    save_model(own, read_weights(info), read_tokenizer(letters), card=card, training=training)
    export_model(own, "tinychat", tmp_path / "out")
    assert read_card(tmp_path / "out") == card


def test_an_imported_model_keeps_its_card_under_its_new_name(letters: Path, tmp_path: Path) -> None:
    card = "# m\n\nA model.\n\n    tinychat -m m\n\n| loss | 1.2 |\n"
    own = replace(read_info(letters), name="m", folder=tmp_path / "m")
    save_model(own, read_weights(read_info(letters)), read_tokenizer(letters), card=card)
    import_model(tmp_path / "m", "my own", tmp_path / "copy")
    expected = "# my own\n\nA model.\n\n    tinychat -m 'my own'\n\n| loss | 1.2 |\n"
    assert read_card(tmp_path / "copy") == expected


def test_a_model_of_tinychat_is_imported_unchanged(chatter: Path, tmp_path: Path) -> None:
    info = import_model(chatter, "other", tmp_path / "other")
    assert (info.name, info.mode) == ("other", "chat")
    assert json.loads((tmp_path / "other" / "config.json").read_text())["template"] is not None
