"""Write any model as a folder of `transformers`, with its tokenizer, chat template and settings.

A model whose shape `transformers` does not know brings its own code: that of `remote_code/` is copied into the folder,
and whoever reads it opts in with `trust_remote_code=True`. So does a translator whose languages have a tokenizer each.
"""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinychat.atomic import atomic_folder
from tinychat.config.settings import SETTINGS, Settings
from tinychat.formats.own_code import CODE, CONFIGURATION, MODELING, TOKENIZATION, class_kind
from tinychat.formats.text_files import GENERATION, GENERATION_CONFIG, SAMPLING, TEMPLATE, TOKENIZER_CONFIG
from tinychat.store.models import (
    CARD,
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    ModelInfo,
    map_weights,
    read_tokenizers,
    read_weights,
)
from tinychat.tokenizer.jinja_template import JinjaTemplate
from tinychat.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

TARGET_TOKENIZER = "target_tokenizer.json"
"""Tokenizer of what a translator writes; `tokenizer.json` is that of what it reads."""
USAGE = """\
    from transformers import AutoModelFor{kind}, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("{folder}"{option})
    model = AutoModelFor{kind}.from_pretrained("{folder}"{option})
    inputs = {inputs}
    print(tokenizer.decode(model.generate(**inputs)[0], skip_special_tokens=True))
"""
INPUTS = {
    "chat": """tokenizer.apply_chat_template(
        [{"role": "user", "content": "hello"}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )""",
    "completion": 'tokenizer("Once upon a time", return_tensors="pt")',
    "translation": 'tokenizer("Where is the station?", return_tensors="pt")',
}


def write_folder(info: ModelInfo, folder: Path, converted: "tuple[dict[str, Any], Weights]") -> None:
    """Write a model as a folder of `transformers`, atomically, given fields of its `config.json` and its weights."""
    from safetensors.torch import save

    fields, weights = converted
    tokenizer, source = read_tokenizers(info)
    specials, generation = find_special_ids(info, tokenizer), describe_generation(info)
    config = {
        **fields, "vocab_size": info.architecture["vocab_size"], "torch_dtype": "float32",
        "tie_word_embeddings": info.architecture["tie_embeddings"], **specials,
    }  # fmt: skip
    files = {
        CONFIG: config, GENERATION_CONFIG: generation | specials, **describe_texts(info, tokenizer, source),
        CARD: make_card(info, folder, brings_code="auto_map" in fields),
    }  # fmt: skip
    with atomic_folder(folder) as draft:
        (draft / WEIGHTS).write_bytes(save(weights, metadata={"format": "pt"}))
        for name, content in files.items():
            text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False) + "\n"
            (draft / name).write_text(text, encoding="utf-8")
        used = [CONFIGURATION, MODELING] * ("auto_map" in fields) + [TOKENIZATION] * (TARGET_TOKENIZER in files)
        for module in used:
            shutil.copyfile(CODE / f"{module}.py", draft / f"{module}.py")


def read_stored_weights(info: ModelInfo) -> "Weights":
    """Read the weights of a model like `read_weights`, but each of the type in which it is stored."""
    stored = map_weights(info)
    return {
        name: weight.to(stored[name].to_torch().dtype) if name in stored and weight.is_floating_point() else weight
        for name, weight in read_weights(info).items()
    }


def find_special_ids(info: ModelInfo, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the ids of the tokens with which texts and answers begin and end, by their names in `transformers`."""
    begin, end, pad = (tokenizer.special(role) for role in ("begin", "end", "pad"))
    ends = sorted({*info.end_ids, *(info.template.end_ids(tokenizer) if info.template else ())}) or [end]
    start = end if begin is None else begin
    return {
        "bos_token_id": begin, "eos_token_id": ends[0] if len(ends) == 1 else ends,
        "pad_token_id": (0 if end is None else end) if pad is None else pad,
        **({"decoder_start_token_id": start or 0} if info.mode == "translation" else {}),
    }  # fmt: skip


def describe_generation(info: ModelInfo) -> dict[str, Any]:
    """Return how tinychat generates with this model, as fields of `generation_config.json`."""
    settings = Settings(**info.settings)
    left_out = SAMPLING if settings.greedy else ()
    values = {name: getattr(settings, name) for name in GENERATION if name not in left_out}
    if not settings.greedy and settings.top_k is None:
        values["top_k"] = 0  # there, none given is 50
    off = {name: SETTINGS[name].neutral for name in GENERATION} | {"num_beams": 1}
    found = {GENERATION[name]: value for name, value in values.items() if value != off[name]}
    if info.architecture["position"] == "learned":  # no text may be longer than the table of positions
        del found["max_new_tokens"]
        found["max_length"] = info.architecture["context_length"]
    return {"do_sample": not settings.greedy, **found}


def describe_texts(info: ModelInfo, tokenizer: Tokenizer, source: Tokenizer) -> dict[str, Any]:
    """Return the files about texts, by their names: tokenizers and chat template.

    `source` is the tokenizer of prompts: the one that a translator's encoder has.
    """
    begin, end, pad, unknown = (source.special(role) for role in ("begin", "end", "pad", "unknown"))
    start = end if begin is None else begin
    names = {
        "bos_token": start if info.mode == "completion" else begin, "eos_token": end,
        "pad_token": end if pad is None else pad, "unk_token": unknown,
    }  # fmt: skip
    config: dict[str, Any] = {
        # Without this, transformers uses the model type's tokenizer class, which expects other files.
        "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"], "model_max_length": info.architecture["context_length"],
        "padding_side": "right" if info.mode == "translation" else "left",
        **{name: source.token_text(id) for name, id in names.items() if id is not None},
    }  # fmt: skip
    files: dict[str, Any] = {TOKENIZER_CONFIG: config}
    if info.template is not None:
        files |= {TOKENIZER: tokenizer.to_json(), TEMPLATE: info.template.to_jinja()}
        if isinstance(info.template, JinjaTemplate):
            config |= info.template.special_tokens
    elif info.mode != "translation":
        files[TOKENIZER] = tokenizer.to_json(first=start)
    elif source is tokenizer:
        files[TOKENIZER] = source.to_json(first=begin, last=end)
    else:
        files[TOKENIZER] = source.to_json(first=begin, last=end)
        files[TARGET_TOKENIZER] = tokenizer.to_json(last=tokenizer.special("end"))
        config["tokenizer_class"] = "TinychatTokenizer"
        config["auto_map"] = {"AutoTokenizer": [None, f"{TOKENIZATION}.TinychatTokenizer"]}
    return files


def make_card(info: ModelInfo, folder: Path, *, brings_code: bool) -> str:
    """Return a `README.md` that shows how to use the folder."""
    option = ", trust_remote_code=True" if brings_code else ""
    usage = USAGE.format(
        kind=class_kind(info.architecture), folder=folder.name, option=option, inputs=INPUTS[info.mode]
    )
    return f"# {info.name}\n\n{info.description}\n\n{usage}"
