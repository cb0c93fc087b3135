"""Exported folders of `transformers`, read by it: with our own code, tokenizers, chat template and settings."""

import ast
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import jinja2.sandbox
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.chat_templates import STYLES, make_talks
from tests.foreign_tokenizers import save
from tests.texts import make_lines
from tinychat.corpus.types import Message
from tinychat.errors import ModelError
from tinychat.events import Token
from tinychat.formats.own_code import CODE, TRAINING_ONLY
from tinychat.formats.registry import export_model, import_model, open_model
from tinychat.model.config import ModelConfig
from tinychat.model.loading import load_model
from tinychat.model.transformer import Transformer
from tinychat.session.session import Session
from tinychat.store.models import ModelInfo, find_model, read_info, read_tokenizers, save_model
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import TOKENIZERS, train_vocabulary

TEXT = "the cat sat on the mat, and the dog sat on the cat. DID THE CAT SIT? é ünï 日本\n" * 3
SHAPES: dict[str, dict[str, Any]] = {
    "defaults": {"previous_token_embeddings": 2, "bigram_embedding": True, "context_length": 208},
    "turns": {"turn_attention": True, "turn_token": 3, "reply_token": 5},
    "counts and copies": {"ngram_order": 4, "context_length": 208},
    "counts alone": {"ngram_order": 3, "matches": False, "n_layer": 0, "position": "none"},
    "statquest": {
        "norm": "none", "feed_forward": "none", "position": "sinusoidal", "output_projection": False, "bias": False,
        "head_bias": True, "qk_norm": False, "n_head": 1, "n_layer": 1, "d_model": 6,
    },
    "guide": {
        "norm_affine": True, "feed_forward": "swiglu", "position": "learned", "bias": True, "qk_norm": False,
        "scale_embedding": True,
    },
    "first transformer": {"norm_position": "post", "feed_forward": "relu", "position": "sinusoidal", "bias": True},
    "grouped and tied": {"n_head": 4, "n_kv_head": 2, "norm": "rmsnorm", "norm_affine": True, "tie_embeddings": True},
    "heads of any width": {
        "d_head": 10, "n_kv_head": 1, "norm": "rmsnorm", "norm_affine": True, "qk_norm_affine": True, "qkv_bias": True,
        "attention_window": 5, "window_pattern": "GL",
    },
    "parallel": {
        "parallel": True, "rotary_fraction": 0.25, "scale_scores": False, "bias": True, "qkv_bias": False,
        "attention_window": 9, "rotary_factor": 4.0, "rotary_short_wavelength": 5.0, "rotary_long_wavelength": 300.0,
    },
    "translator": {"n_encoder_layer": 2, "previous_token_embeddings": 1},
    "translator with counts": {"n_encoder_layer": 1, "ngram_order": 3, "feed_forward": "gelu"},
}  # fmt: skip


def make(
    folder: Path, options: dict[str, Any], *, kind: str = "char", template: ChatTemplate | None = None
) -> ModelInfo:
    """Save a model with random weights, and n-gram counts of `TEXT` if it has some."""
    mode = "translation" if options.get("n_encoder_layer") else "chat" if template else "completion"
    roles = ["<|user|>", "<|assistant|>"] if template and template.user else []
    tokenizer = Tokenizer(train_vocabulary(kind, [TEXT], 300, ["<|end|>", *roles]))
    source = Tokenizer(train_vocabulary("char", [TEXT[9:]], 300, ["<|begin|>", "<|end|>"]))
    sizes = {"context_length": 48, "n_layer": 2, "d_model": 32, "initialization": "torch"} | options
    if options.get("n_encoder_layer"):
        sizes |= {"source_vocab_size": source.vocab_size}
    config = ModelConfig(tokenizer.vocab_size, **sizes)
    torch.manual_seed(1)
    model = Transformer(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn(weight.shape)
    if model.ngrams is not None:
        model.ngrams.count([tokenizer.encode_array(TEXT)])
        if not config.matches:
            model.ngrams.silence_matches()
    facts = (config.to_dict(), tokenizer.kind, model.parameter_count)
    info = ModelInfo(folder.name, folder, mode, *facts, template=template)
    save_model(info, model.state_dict(), tokenizer, source if mode == "translation" else None)
    return read_info(folder)


@torch.inference_mode()
def continue_greedily(model: Transformer, ids: list[int], count: int, source: list[int] | None = None) -> list[int]:
    """The ids followed by those of the likeliest tokens, by our own cache."""
    encoded = model.encode(torch.tensor([source])) if source else None
    cache, ids, start = model.new_cache(1), list(ids), 0
    while len(ids) < count:
        logits = model(torch.tensor([ids[start:]]), cache=cache, start=start, encoder_output=encoded)
        start = len(ids)
        ids.append(int(logits[0, -1].argmax()))
    return ids


def make_conversations(count: int) -> Iterator[list[dict[str, str]]]:
    """Conversations of 1 to 5 messages made of odd pieces, the user's first."""
    draw = random.Random(1)
    pieces = ["the cat", " SAT", "\n", "  ", "Ü", "日本", "I", "DID THE CAT SIT?", "{{ x }}", "'", '"', "\\n", "<b>"]
    for _ in range(count):
        roles = ["user", "assistant"] * 3
        yield [
            {"role": role, "content": "".join(draw.choices(pieces, k=draw.randrange(6)))}
            for role in roles[: draw.randrange(1, 6)]
        ]


TEMPLATES = [
    ChatTemplate(), ChatTemplate(user_prefix=" ", lowercase_all_caps=True), ChatTemplate(user="", assistant=""),
]  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES, ids=["plain", "lower case", "ends alone"])
def test_a_template_in_jinja_renders_what_the_template_encodes(template: ChatTemplate) -> None:
    specials = ["<|end|>", "<|user|>", "<|assistant|>"]
    tokenizers = [Tokenizer(train_vocabulary(kind, [TEXT], 300, specials)) for kind in ("char", "word", "wordpiece")]
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    jinja = environment.from_string(template.to_jinja())
    for messages in make_conversations(50):
        ours = [Message(one["role"], one["content"]) for one in messages]  # type: ignore[arg-type]
        for tokenizer in tokenizers:
            text = jinja.render(messages=messages, add_generation_prompt=True)
            reader = type(tokenizer.inner).from_str(tokenizer.to_json())
            assert reader.encode(text).ids == template.encode(ours, tokenizer, for_answer=True)


def test_the_exported_configuration_has_every_field_of_the_architecture() -> None:
    tree = ast.parse((CODE / "configuration_tinychat.py").read_text())
    arguments = next(node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    names = [argument.arg for argument in arguments.args[1:]]
    theirs = dict(zip(names, map(ast.literal_eval, arguments.defaults), strict=True))
    ours = {field.name: field.default for field in fields(ModelConfig) if field.name not in TRAINING_ONLY}
    assert theirs == ours | {"vocab_size": 65, "ngram_contexts": 1, "ngram_entries": 0}


def test_exported_code_needs_torch_and_transformers_alone() -> None:
    for path in CODE.glob("*_tinychat.py"):
        nodes = [
            node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = {getattr(node, "module", None) or node.names[0].name for node in nodes}
        allowed = {
            "functools",
            "math",
            "pathlib",
            "typing",
            "torch",
            "transformers",
            "tokenizers",
            "configuration_tinychat",
        }
        assert {name.split(".")[0] for name in names} <= allowed


def test_a_tokenizer_puts_special_tokens_around_texts_for_other_tools_only() -> None:
    tokenizer = Tokenizer(train_vocabulary("char", ["abc"], None, ["<|begin|>", "<|end|>"]))
    begin, end = tokenizer.special("begin"), tokenizer.special("end")
    framed = Tokenizer.from_json(tokenizer.to_json(first=begin, last=end))
    assert framed.inner.encode("ab").ids == [begin, *tokenizer.encode("ab"), end]
    assert framed.encode("ab") == tokenizer.encode("ab")
    assert framed.to_json(first=end) == framed.to_json()  # it has some already
    assert tokenizer.to_json(last=None) == tokenizer.to_json()


@torch.inference_mode()
@pytest.mark.parametrize("name", ["counts and copies", "grouped and tied", "translator with counts"])
def test_an_exported_model_is_opened_where_it_lies(tmp_path: Path, name: str) -> None:
    info = make(tmp_path / "m", SHAPES[name])
    export_model(info, "transformers", tmp_path / "out")
    back = open_model(str(tmp_path / "out"))
    assert (back.mode, back.parameters) == (info.mode, info.parameters)
    assert back.architecture == info.architecture | {name: back.architecture[name] for name in TRAINING_ONLY}
    ours, theirs = load_model(info).state_dict(), load_model(back).state_dict()
    assert all(torch.equal(theirs[name], weight) for name, weight in ours.items())
    for one, other in zip(read_tokenizers(info), read_tokenizers(back), strict=True):
        assert other.encode(TEXT) == one.encode(TEXT)
    kept = import_model(tmp_path / "out", "kept", tmp_path / "kept")
    assert [one.encode(TEXT) for one in read_tokenizers(kept)] == [one.encode(TEXT) for one in read_tokenizers(info)]


@pytest.mark.parametrize("template", TEMPLATES, ids=["plain", "lower case", "ends alone"])
def test_an_exported_chat_model_chats_where_it_lies(tmp_path: Path, template: ChatTemplate) -> None:
    info = make(tmp_path / "m", {}, kind="wordpiece", template=template)
    info = replace(info, settings={"temperature": 0.0, "max_tokens": 9, "repetition_penalty": 1.2})
    export_model(info, "transformers", tmp_path / "out")
    back = open_model(str(tmp_path / "out"))
    assert (back.mode, back.settings) == ("chat", info.settings)
    tokenizer, _ = read_tokenizers(info)
    assert {*back.end_ids} == {*template.end_ids(tokenizer)}
    assert back.template is not None
    for messages in make_conversations(20):
        ours = [Message(one["role"], one["content"]) for one in messages]  # type: ignore[arg-type]
        ids = back.template.encode(ours, read_tokenizers(back)[0], for_answer=True)
        assert ids == template.encode(ours, tokenizer, for_answer=True)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("starts", lambda starts: starts.flip(0), "contradict one another"),
        ("contexts", lambda contexts: contexts * 0, "contradict one another"),
        ("contexts", lambda contexts: contexts + (contexts > 0), "contradict one another"),
        ("tokens", lambda tokens: tokens + 30_000, "contradict one another"),
        ("counts", lambda counts: counts.float(), "of other types"),
        ("counts", lambda counts: counts[:0], "contradict one another"),
        ("contexts", lambda contexts: contexts[None], "of other shapes"),
        ("starts", lambda starts: starts[:0], "contradict one another"),
        ("starts", lambda starts: starts.put_(torch.tensor([1, 2]), starts.new_tensor([2**31 - 1, -(2**31)])),
         "contradict one another"),
    ],
)  # fmt: skip
def test_damaged_counts_are_refused(tmp_path: Path, name: str, change: Callable[..., Any], said: str) -> None:
    export_model(make(tmp_path / "m", SHAPES["counts and copies"]), "transformers", tmp_path / "out")
    weights = load_file(tmp_path / "out" / "model.safetensors")
    save_file(weights | {f"ngrams.{name}": change(weights[f"ngrams.{name}"])}, tmp_path / "out" / "model.safetensors")
    with pytest.raises(ModelError, match=said):
        load_model(open_model(str(tmp_path / "out")))


@pytest.mark.slow
@torch.inference_mode()
def test_transformers_computes_the_same_as_we_for_every_shape(transformers: Any, tmp_path: Path) -> None:
    for name, options in SHAPES.items():
        info = make(tmp_path / name.replace(" ", "-"), options)
        folder = tmp_path / f"{info.name}-out"
        export_model(info, "transformers", folder)
        ours, trust = load_model(info), {"trust_remote_code": True}
        tokenizer, source = read_tokenizers(info)
        reader = transformers.AutoTokenizer.from_pretrained(folder, **trust)
        length = info.architecture["context_length"]
        ids = torch.randint(info.architecture["vocab_size"], (2, length))
        ids[1, length // 2 :] = ids[1, : length // 2]  # so that something repeats
        if info.mode == "translation":
            theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, **trust).eval()
            text = "the dog sat\n"
            asked = reader(text, return_tensors="pt")
            assert asked.input_ids[0].tolist() == [
                source.special("begin"), *source.encode(text), source.special("end")
            ]  # fmt: skip
            assert reader(text_target=text).input_ids == [*tokenizer.encode(text), tokenizer.special("end")]
            encoded = ours.encode(asked.input_ids.expand(2, -1))
            expected = ours(ids, encoder_output=encoded)
            padded = {name: torch.nn.functional.pad(one, (0, 3)).expand(2, -1) for name, one in asked.items()}
            logits = theirs(**padded, decoder_input_ids=ids).logits
            start = [tokenizer.special("end") or 0]
            written = continue_greedily(ours, start, length, asked.input_ids[0].tolist())
        else:
            theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, **trust).eval()
            expected, logits = ours(ids), theirs(ids).logits
            asked = reader("the cat", return_tensors="pt")
            start = [tokenizer.special("end"), *tokenizer.encode("the cat")]
            assert asked.input_ids[0].tolist() == start
            written = continue_greedily(ours, start, length)
        torch.testing.assert_close(
            logits, expected, atol=1e-4, rtol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
        )
        greedy = {"do_sample": False, "eos_token_id": None, "max_length": length, "max_new_tokens": None}
        generated = theirs.generate(**asked, **greedy)[0].tolist()
        assert generated == written, name
        assert reader.decode(generated, skip_special_tokens=True) == tokenizer.decode(generated)
        if options.get("position") == "learned":
            longest = theirs.generate(**asked, do_sample=False, eos_token_id=None)
            assert longest.shape[1] == length
            with pytest.raises(ValueError, match="the text has 49 tokens, and the model has 48 positions"):
                theirs(torch.cat((longest, longest[:, :1]), dim=1))
        if options.get("ngram_order"):
            beams = greedy | {"num_beams": 3, "max_length": 20}
            uncached = theirs.generate(**asked, **beams, use_cache=False)
            assert torch.equal(theirs.generate(**asked, **beams), uncached), name
        if info.mode != "translation":
            two = reader(["the cat", "it"], return_tensors="pt", padding=True)  # padded in front
            assert theirs.generate(**two, **greedy | {"max_length": 30})[0].tolist() == generated[:30], name


@pytest.mark.slow
@pytest.mark.parametrize("kind", TOKENIZERS)
def test_transformers_gives_our_ids_and_texts(transformers: Any, tmp_path: Path, kind: str) -> None:
    info = make(tmp_path / "m", {}, kind=kind)
    export_model(info, "transformers", tmp_path / "out")
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    tokenizer, _ = read_tokenizers(info)
    characters = "abc the cat THE 012.,!'\"\n\t  éüß 日本語 русский עברית 😀▁<|x|>\u3000\u200b\r\n"
    draw = random.Random(3)
    for _ in range(1000):
        text = "".join(draw.choices(characters, k=draw.randrange(40)))
        ids = tokenizer.encode(text)
        assert reader(text, add_special_tokens=False).input_ids == ids
        assert reader.decode(ids) == tokenizer.decode(ids)


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES, ids=["plain", "lower case", "ends alone"])
def test_transformers_chats_by_our_template(transformers: Any, tmp_path: Path, template: ChatTemplate) -> None:
    info = make(tmp_path / "chatter", {}, kind="wordpiece", template=template)
    export_model(info, "transformers", tmp_path / "out")
    reader = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    tokenizer, _ = read_tokenizers(info)
    for messages in make_conversations(200):
        ours = [Message(one["role"], one["content"]) for one in messages]  # type: ignore[arg-type]
        theirs = reader.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert theirs == template.encode(ours, tokenizer, for_answer=True)
    with pytest.raises(jinja2.TemplateError, match="the roles of this model are user and assistant, not system"):
        reader.apply_chat_template([{"role": "system", "content": ""}])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "prompt"), [("smalltalk", "WHAT CAN YOU DO?"), ("tales", "Once upon a time there was a fox")]
)
def test_the_pipeline_continues_texts_like_tinychat(transformers: Any, tmp_path: Path, name: str, prompt: str) -> None:
    info = read_info(find_model(name))
    export_model(info, "transformers", tmp_path / name)
    ask = transformers.pipeline("text-generation", model=str(tmp_path / name), trust_remote_code=True)
    asked: Any = [{"role": "user", "content": prompt}] if info.mode == "chat" else prompt
    written = ask(asked, do_sample=False, max_new_tokens=200, return_full_text=False)[0]["generated_text"]
    session = Session()
    for setting, value in {"temperature": 0, "max_tokens": 200, "precision": "f32"}.items():
        session.settings.set(setting, value)
    session.open_model(name)
    assert written == "".join(record.text for record in session.answer(prompt) if isinstance(record, Token))


@pytest.mark.slow
def test_a_translator_translates_like_tinychat(transformers: Any, tmp_path: Path) -> None:
    export_model(read_info(find_model("translate")), "transformers", tmp_path / "out")
    trust = {"trust_remote_code": True}
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out", **trust)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out", **trust)
    for one in (model, tokenizer):
        one.save_pretrained(tmp_path / "again")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "again", **trust)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "again", **trust)
    inputs = tokenizer(["Where is the station?", "No."], padding=True, return_tensors="pt")
    translated = tokenizer.batch_decode(model.generate(**inputs), skip_special_tokens=True)
    assert translated == ["¿Dónde está la estación?", "No."]


def test_settings_of_a_model_go_out_with_it(chatter: Path, tmp_path: Path) -> None:
    export_model(read_info(chatter), "transformers", tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert settings["temperature"] == 0.7
    assert (settings["do_sample"], settings["top_p"], settings["top_k"], settings["max_new_tokens"]) == (
        True,
        0.95,
        0,
        256,
    )
    _, reader = read_tokenizers(read_info(chatter))
    assert {reader.token_text(id) for id in settings["eos_token_id"]} == {"<|end|>", "<|user|>", "<|assistant|>"}
    assert (tmp_path / "out" / "chat_template.jinja").read_text() == ChatTemplate().to_jinja()
    assert "apply_chat_template" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*STYLES, "gpt2", "unigram"])
def test_tokenizers_and_templates_of_others_go_out_as_they_came(transformers: Any, tmp_path: Path, kind: str) -> None:
    kind, template = STYLES.get(kind, (kind, ""))
    config = transformers.LlamaConfig(
        vocab_size=1_000, hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "theirs")
    save(kind, tmp_path / "theirs", **({"chat_template": template} if template else {}))
    import_model(tmp_path / "theirs", "kept", tmp_path / "kept")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    for name in ("theirs", "kept"):
        export_model(open_model(str(tmp_path / name)), "transformers", tmp_path / f"{name} again")
        again = transformers.AutoTokenizer.from_pretrained(tmp_path / f"{name} again")
        assert again.special_tokens_map.items() >= theirs.special_tokens_map.items()
        assert all(again(line).input_ids == theirs(line).input_ids for line in make_lines(100, 1))
        for system, texts in make_talks(200 if template else 0, 7, has_system=kind != "gemma"):
            talk = [{"role": role, "content": text} for role, text in zip(cycle(("user", "assistant")), texts)]
            talk = [{"role": "system", "content": system}, *talk] if system else talk
            for ends in ({"add_generation_prompt": True}, {"add_generation_prompt": False}):
                ids = again.apply_chat_template(talk, return_dict=False, **ends)
                assert ids == theirs.apply_chat_template(talk, return_dict=False, **ends)
