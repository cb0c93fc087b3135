"""The files of text in a folder of `transformers`: its tokenizer, chat template, end tokens and suggested settings."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tinychat.config.settings import SETTINGS
from tinychat.errors import ModelError, SettingError
from tinychat.store.models import read_object
from tinychat.store.weights import DAMAGED
from tinychat.tokenizer.jinja_template import MAX_TEMPLATE, JinjaTemplate
from tinychat.tokenizer.tokenizer import Tokenizer, load_tokenizer
from tinychat.untrusted import read_text

TOKENIZER_CONFIG, GENERATION_CONFIG = "tokenizer_config.json", "generation_config.json"
SPECIAL_TOKENS_MAP = "special_tokens_map.json"
"""Names of special tokens, in folders of older versions."""
TEMPLATE, TEMPLATES = "chat_template.jinja", "chat_templates"
MAX_FILE = 16 << 20
"""Maximum size of a file of settings, in bytes."""
MAX_NAME = 256
"""Maximum number of characters of the name of a special token."""
GENERATION = {
    "max_tokens": "max_new_tokens", "num_beams": "num_beams", "temperature": "temperature", "top_k": "top_k",
    "top_p": "top_p", "min_p": "min_p", "repetition_penalty": "repetition_penalty",
    "no_repeat_ngram": "no_repeat_ngram_size",
}  # fmt: skip
"""Our settings and those of `generation_config.json`, which mean the same."""
SAMPLING = SETTINGS.in_section("sampling")
"""Those that are left out of greedy decoding."""


@dataclass(frozen=True)
class TextFiles:
    """Tokenizer, chat template and end tokens of a folder."""

    tokenizer: Tokenizer
    template: JinjaTemplate | None = None
    """Chat template; None if the model only continues texts."""
    end_ids: tuple[int, ...] = ()
    """Ids of tokens that end an answer."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Sampling settings that suit the model."""


def read_text_files(folder: Path, vocab_size: int, eos_token_id: object = None) -> TextFiles:
    """Read the files of text of a model with so many tokens.

    `eos_token_id` is that of its `config.json`: one id or several, unless `generation_config.json` has them.

    Raises:
        ModelError: If a file is damaged.
        TokenizerError: If the tokenizer cannot be read.
    """
    values = _read(folder / TOKENIZER_CONFIG)
    if "added_tokens_decoder" not in values:
        values = values | _read(folder / SPECIAL_TOKENS_MAP)
    generation = _read(folder / GENERATION_CONFIG)
    named = {key: _name(token) for key, token in values.items() if key.endswith("_token") and _name(token)}
    tokenizer = load_tokenizer(folder).with_specials(_specials(values, named), vocab_size)
    source = _find_template(folder, values)
    template = JinjaTemplate(source, named) if source else None
    ends = generation.get("eos_token_id", eos_token_id)
    end_ids = {id for id in (ends if isinstance(ends, list) else [ends]) if type(id) is int and 0 <= id < vocab_size}
    if template is not None and (id := tokenizer.token_id(named.get("eos_token", ""))) is not None:
        end_ids.add(id)
    return TextFiles(tokenizer, template, tuple(sorted(end_ids)), read_settings(folder))


def _read(path: Path) -> dict[str, Any]:
    return read_object(path, MAX_FILE, clamps=True) if path.exists() else {}


def _name(token: object) -> str:
    """Return the name of a token, which is given by its name, or as an object with it; empty if there is none."""
    content = token.get("content") if isinstance(token, dict) else token
    return content if isinstance(content, str) and len(content) <= MAX_NAME else ""


def _specials(values: Mapping[str, Any], named: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of special tokens, those with an id of their own first, in the order of these."""
    numbered = values.get("added_tokens_decoder")
    if isinstance(numbered, dict):
        tokens = {int(id): token for id, token in numbered.items() if re.fullmatch("[0-9]{1,9}", id)}
        for _, token in sorted(tokens.items()):
            if isinstance(token, dict) and token.get("special"):
                yield _name(token)
    yield from named.values()
    for key in ("extra_special_tokens", "additional_special_tokens"):
        others = values.get(key)
        yield from map(
            _name, others.values() if isinstance(others, dict) else others if isinstance(others, list) else ()
        )


def _find_template(folder: Path, values: Mapping[str, Any]) -> str:
    """Return the chat template: that of a file of its own, or else of `tokenizer_config.json`; empty without one."""
    source = _read_template(folder, values)
    if len(source) > MAX_TEMPLATE:
        problem = f"the chat template of {folder} has {len(source):,} characters, over {MAX_TEMPLATE:,}"
        raise ModelError(problem, "without one, the model only continues texts")
    return source


def _read_template(folder: Path, values: Mapping[str, Any]) -> str:
    for path in (folder / TEMPLATE, folder / TEMPLATES / "default.jinja"):
        if path.exists():
            try:
                return read_text(path, 4 * MAX_TEMPLATE)
            except (OSError, ValueError) as error:
                raise ModelError(f"{path} cannot be read: {error}", DAMAGED) from None
    found = values.get("chat_template")
    if isinstance(found, list):
        named = {str(one.get("name")): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get("default", next(iter(named.values()), None))
    if found is not None and not isinstance(found, str):
        raise ModelError(f"{folder / TOKENIZER_CONFIG} has a chat_template that is no text", DAMAGED)
    return found or ""


def read_settings(folder: Path) -> dict[str, Any]:
    """Read the settings that a model is sampled with; those that have no such value here are left out."""
    generation = _read(folder / GENERATION_CONFIG)
    samples = generation.get("do_sample")
    found: dict[str, Any] = {"temperature": 0.0} if samples is False else {}
    for name, theirs in GENERATION.items():
        value = generation.get(theirs)
        if isinstance(value, int | float) and not isinstance(value, bool) and (samples is True or name not in SAMPLING):
            try:
                found[name] = SETTINGS[name].parse(value)
            except SettingError:
                continue
    return found
