"""Tokenizers as other tools train them, on text made here, saved in folders as `transformers` does."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.texts import make_lines

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]


@cache
def corpus() -> list[str]:
    return make_lines(400, seed=99)


def train(model: Any, trainer: Any, **steps: Any) -> tokenizers.Tokenizer:
    inner = tokenizers.Tokenizer(model)
    for name, step in steps.items():
        setattr(inner, name, step)
    inner.train_from_iterator(corpus(), trainer)
    return inner


def bpe(specials: list[str], **options: Any) -> trainers.BpeTrainer:
    alphabet = options.pop("alphabet", pre_tokenizers.ByteLevel.alphabet())
    return trainers.BpeTrainer(
        vocab_size=700, special_tokens=specials, initial_alphabet=alphabet, show_progress=False, **options
    )


def gpt2() -> tokenizers.Tokenizer:
    return train(
        models.BPE(), bpe(["<|endoftext|>"]), pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoder=decoders.ByteLevel(), post_processor=processors.ByteLevel(trim_offsets=False),
    )  # fmt: skip


def llama3() -> tokenizers.Tokenizer:
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    inner = train(
        models.BPE(ignore_merges=True), bpe(specials), decoder=decoders.ByteLevel(),
        pre_tokenizer=pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)]),
    )  # fmt: skip
    begin = ("<|begin_of_text|>", inner.token_to_id("<|begin_of_text|>"))
    template = processors.TemplateProcessing("<|begin_of_text|> $A", None, [begin])
    inner.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return inner


def qwen() -> tokenizers.Tokenizer:
    split = pre_tokenizers.Split(Regex(LLAMA3.replace("{1,3}", "")), "isolated")
    inner = train(
        models.BPE(), bpe(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]), normalizer=normalizers.NFC(),
        pre_tokenizer=pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(False, use_regex=False)]),
        decoder=decoders.ByteLevel(), post_processor=processors.ByteLevel(trim_offsets=False),
    )  # fmt: skip
    inner.add_tokens([tokenizers.AddedToken("<tool_call>", normalized=False)])
    return inner


def bert() -> tokenizers.Tokenizer:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    inner = train(
        models.WordPiece(unk_token="[UNK]"),
        trainers.WordPieceTrainer(vocab_size=900, special_tokens=specials, show_progress=False),
        normalizer=normalizers.BertNormalizer(), pre_tokenizer=pre_tokenizers.BertPreTokenizer(),
        decoder=decoders.WordPiece(cleanup=True),
    )  # fmt: skip
    ids = {name: inner.token_to_id(name) for name in ("[CLS]", "[SEP]")}
    inner.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return inner


def unigram() -> tokenizers.Tokenizer:
    specials = ["<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(vocab_size=900, special_tokens=specials, unk_token="<unk>", show_progress=False)
    inner = train(
        models.Unigram(), trainer, normalizer=normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()]),
        pre_tokenizer=pre_tokenizers.Metaspace(), decoder=decoders.Metaspace(),
    )  # fmt: skip
    inner.post_processor = processors.TemplateProcessing("$A </s>", None, [("</s>", inner.token_to_id("</s>"))])
    return inner


def _byte_fallback(specials: list[str]) -> dict[str, Any]:
    """Return a model in which every byte is a token, of pieces that a trained one has."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.train_from_iterator(corpus(), bpe([], alphabet=[], limit_alphabet=150))
    values = json.loads(inner.to_str())["model"]
    names = [*specials, *BYTES, *sorted(values["vocab"], key=values["vocab"].__getitem__)]
    ids = {name: id for id, name in enumerate(dict.fromkeys(names))}
    merges = [tuple(pair) for pair in values["merges"]]
    return {"vocab": ids, "merges": merges, "byte_fallback": True, "fuse_unk": True, "unk_token": "<unk>"}


def llama2() -> tokenizers.Tokenizer:
    inner = tokenizers.Tokenizer(models.BPE(**_byte_fallback(["<unk>", "<s>", "</s>"])))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    inner.decoder = decoders.Sequence(steps)
    inner.add_special_tokens([tokenizers.AddedToken(name, normalized=False) for name in ("<unk>", "<s>", "</s>")])
    inner.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 1)])
    return inner


def mistral() -> tokenizers.Tokenizer:
    inner = llama2()
    inner.normalizer = None
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return inner


def gemma() -> tokenizers.Tokenizer:
    specials = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>"]
    inner = tokenizers.Tokenizer(models.BPE(**_byte_fallback(specials)))
    inner.normalizer = normalizers.Replace(" ", "▁")
    inner.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    inner.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    inner.add_special_tokens([tokenizers.AddedToken(name, normalized=False) for name in specials])
    inner.post_processor = processors.TemplateProcessing("<bos> $A", None, [("<bos>", 2)])
    return inner


MAKERS: dict[str, Callable[[], tokenizers.Tokenizer]] = {
    "gpt2": gpt2, "llama3": llama3, "qwen": qwen, "bert": bert, "unigram": unigram, "llama2": llama2,
    "mistral": mistral, "gemma": gemma,
}  # fmt: skip
NAMED: dict[str, dict[str, str]] = {
    "gpt2": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"},
    "llama3": {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"},
    "qwen": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    "bert": {"cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]"},
    "unigram": {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
    "llama2": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    "mistral": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    "gemma": {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>"},
}


@cache
def content(kind: str) -> str:
    return str(MAKERS[kind]().to_str())


def save(kind: str, folder: Path, **settings: Any) -> Path:
    """Write the tokenizer of a kind, with more fields of `tokenizer_config.json`; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(content(kind), encoding="utf-8")
    values = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **NAMED[kind]}
    (folder / "tokenizer_config.json").write_text(json.dumps(values | settings), encoding="utf-8")
    return folder
