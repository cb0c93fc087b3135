"""Mutated models of other tools, opened where they lie: configurations, tokenizers, templates, indexes and weights.

Every call answers, or refuses the model in a line, with both engines.
"""

import json
import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from harness import Case, main, mutate_bytes, mutate_json

from models import ENGINES, make_special, mutate_weights

LLAMA = {"norm": "rmsnorm", "norm_affine": True, "feed_forward": "swiglu", "qk_norm": False}
GPT2 = {
    "norm_affine": True, "bias": True, "head_bias": False, "feed_forward": "gelu_tanh", "qk_norm": False,
    "position": "learned", "tie_embeddings": True,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "llama": LLAMA,
    "gpt2": GPT2,
    "qwen3": LLAMA | {"qk_norm": True, "qk_norm_affine": True, "attention_window": 5, "window_pattern": "GL"},
    "gpt_neox": GPT2 | {"position": "rotary", "parallel": True, "tie_embeddings": False, "rotary_fraction": 0.5},
    "gpt_neo": GPT2 | {"qkv_bias": False, "scale_scores": False, "attention_window": 3, "window_pattern": "GL"},
}


@cache
def originals() -> list[Path]:
    """Return the folders that small models of each shape were exported to, in every format that is also read."""
    import torch

    from tinychat.errors import TinychatError
    from tinychat.formats.registry import FORMATS, export_model
    from tinychat.model.config import ModelConfig
    from tinychat.model.transformer import Transformer
    from tinychat.store.models import ModelInfo, read_info, save_model
    from tinychat.tokenizer.chat_template import ChatTemplate
    from tinychat.tokenizer.tokenizer import Tokenizer
    from tinychat.tokenizer.training import train_vocabulary

    root, folders = Path(mkdtemp(prefix="fuzz-foreign-")), list[Path]()
    texts, chat = ["hello there, how are you? fine, thanks! and what about you " * 5], ["<|user|>", "<|assistant|>"]
    for index, (name, options) in enumerate(SHAPES.items()):
        torch.manual_seed(index)
        kind = ("bpe", "char", "wordpiece")[index % 3]
        tokenizer = Tokenizer(train_vocabulary(kind, texts, 300, ["<|end|>", *chat]))
        model = Transformer(ModelConfig(tokenizer.vocab_size, context_length=32, n_layer=2, d_model=16, **options))
        facts = (model.config.to_dict(), tokenizer.kind, model.parameter_count)
        template = ChatTemplate() if index % 2 else None
        mode = "chat" if template else "completion"
        save_model(ModelInfo(name, root / name, mode, *facts, template), model.state_dict(), tokenizer)
        for format in (format for format, one in FORMATS.items() if one.read and one.write):
            target = root / f"{name}-{format}"
            try:
                export_model(read_info(root / name), format, target)
            except TinychatError:  # it holds no such model
                continue
            folders.append(target)
    return folders


def cases(random: random.Random, folder: Path) -> Iterator[Case]:
    """Yield the calls on one mutated model: an answer with each engine, and a look at it."""
    original = random.choice(originals())
    copy = folder / "theirs"
    shutil.copytree(original, copy)
    path = random.choice([path for path in sorted(copy.iterdir()) if path.suffix != ".py" and path.name != "README.md"])
    if random.random() < 0.05:
        make_special(random, path)
    elif path.suffix == ".json":
        path.write_bytes(mutate_json(random, json.loads(path.read_bytes())))
    elif path.suffix == ".safetensors":
        path.write_bytes(mutate_weights(random, path.read_bytes()))
    else:
        path.write_bytes(mutate_bytes(random, path.read_bytes()))
    files = [one for one in copy.iterdir() if one.suffix in (".gguf", ".bin", ".pt") and one.stem != "tokenizer"]
    model = str(files[0] if files and not (copy / "config.json").exists() else copy)
    name = f"{original.name} {path.name}"
    for engine in ENGINES:
        yield Case(name, ["-m", model, "-p", "hello you", "-n", "8", "-s", "1", "--engine", engine], folder)
    yield Case(name, ["show", model], folder)


if __name__ == "__main__":
    main(cases)
