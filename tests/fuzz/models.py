"""Mutated model folders: architectures, tokenizers of each kind, weights and records of training.

Every call answers, or refuses the model in a line, with both engines; other models stay listed.
"""

import json
import os
import random
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from harness import Case, Outcome, main, mutate_bytes, mutate_json

FILES = ("config.json", "config.json", "tokenizer.json", "tokenizer.json", "model.safetensors", "training.json")
"""The files to mutate, the more often the more they can break."""
ENGINES = ("torch", "native")


@cache
def originals() -> list[Path]:
    """Return the folders of small models: one of each kind of tokenizer and mode."""
    import torch
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    from tinychat.model.config import ModelConfig
    from tinychat.model.transformer import Transformer
    from tinychat.store.models import ModelInfo, save_model
    from tinychat.tokenizer.chat_template import ChatTemplate
    from tinychat.tokenizer.tokenizer import Tokenizer as Ours
    from tinychat.tokenizer.training import train_vocabulary

    text = "hello there, how are you? fine, thanks! and what about you " * 5
    chat = ["<|end|>", "<|user|>", "<|assistant|>"]
    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.NFC()
    pattern = Regex(r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
    bpe.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator([text], trainers.BpeTrainer(vocab_size=300, initial_alphabet=alphabet, show_progress=False))
    made: list[tuple[str, Ours, dict[str, Any], dict[str, Any]]] = [
        ("completion", Ours(train_vocabulary("char", [text], 300, [])), {"ngram_order": 3}, {}),
        ("chat", Ours(train_vocabulary("wordpiece", [text], 300, chat)), {"tie_embeddings": True}, {}),
        ("completion", Ours(bpe), {"bias": True, "norm_affine": True, "n_kv_head": 1}, {}),
        ("completion", Ours(train_vocabulary("char", [text], 300, [])), {"bigram_embedding": True}, {}),
        (
            "translation",
            Ours(train_vocabulary("char", [text], 300, ["<|end|>", "<|begin|>"])),
            {"n_encoder_layer": 1},
            {},
        ),
    ]
    folders: list[Path] = []
    root = Path(mkdtemp(prefix="fuzz-models-"))
    for index, (mode, tokenizer, options, info) in enumerate(made):
        torch.manual_seed(index)
        source = tokenizer if mode == "translation" else None
        if source:
            options = {"source_vocab_size": source.vocab_size} | options
        config = ModelConfig(
            tokenizer.vocab_size, context_length=32, n_layer=1, d_model=16, initialization="torch", **options
        )
        model = Transformer(config)
        folder = root / f"model{index}"
        about = ModelInfo(
            folder.name, folder, mode, config.to_dict(), tokenizer.kind, model.parameter_count,
            template=ChatTemplate() if mode == "chat" else None, **info,
        )  # fmt: skip
        save_model(about, model.state_dict(), tokenizer, source, training={"loss": 1.5, "seed": 3})
        folders.append(folder)
    return folders


def mutate_weights(random: random.Random, data: bytes) -> bytes:
    """Return a safetensors file with a mutated header, mutated bytes, or numbers that are not finite."""
    length = int.from_bytes(data[:8], "little")
    header, values = data[8 : 8 + length], data[8 + length :]
    match random.choice(("header", "header", "bytes", "length", "numbers")):
        case "header":
            header = mutate_json(random, json.loads(header))
            return len(header).to_bytes(8, "little") + header + values
        case "length":
            return (
                random.choice((0, 1, length - 1, length + 1, 2**31, 2**63, 2**64 - 1)).to_bytes(8, "little") + data[8:]
            )
        case "numbers":
            odd = random.choice((float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45))
            out = bytearray(values)
            for _ in range(random.choice((1, 10, 1000))):
                struct.pack_into("<f", out, 4 * random.randrange(len(out) // 4), odd)
            return data[: 8 + length] + bytes(out)
    return mutate_bytes(random, data)


def make_special(random: random.Random, path: Path) -> None:
    """Put something that is no file in a file's place."""
    path.unlink()
    match random.choice(("pipe", "socket", "folder", "loop", "nowhere", "device", "kernel")):
        case "pipe":
            os.mkfifo(path)
        case "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(path))
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(path.name)
        case "nowhere":
            path.symlink_to("nothing")
        case "device":
            path.symlink_to("/dev/zero")
        case "kernel":
            path.symlink_to("/proc/kmsg")


def cases(random: random.Random, folder: Path) -> Iterator[Case]:
    """Yield the calls on one mutated model: an answer with each engine, a look at it, and the list of all models."""
    original = random.choice(originals())
    model, good = folder / "models" / "mutated", folder / "models" / "whole"
    shutil.copytree(original, model)
    shutil.copytree(originals()[0], good)
    (good / "config.json").write_text((good / "config.json").read_text("utf-8").replace('"model0"', '"whole"'), "utf-8")
    path = model / random.choice([name for name in FILES if (model / name).exists()])
    if random.random() < 0.05:
        make_special(random, path)
        how = "special"
    elif random.random() < 0.02:
        path.unlink()
        how = "missing"
    elif path.suffix == ".json":
        path.write_bytes(mutate_json(random, json.loads(path.read_bytes())))
        how = "json"
    else:
        path.write_bytes(mutate_weights(random, path.read_bytes()))
        how = "weights"
    name = f"{original.name} {path.name} {how}"
    for engine in ENGINES:
        yield Case(name, ["-m", str(model), "-p", "hello you", "-n", "8", "-s", "1", "--engine", engine], folder)
    yield Case(name, ["show", str(model)], folder)
    yield Case(name, ["models"], folder, check=lists("whole"))


def lists(name: str) -> Callable[[Outcome], str]:
    """Return a check that a listing succeeds and names a model."""
    return lambda outcome: "" if outcome.code == 0 and name.encode() in outcome.out else f"{name} is not listed"


if __name__ == "__main__":
    main(cases)
