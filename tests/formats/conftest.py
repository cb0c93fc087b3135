"""Fixtures of the tests of formats: `transformers`, and small models of the shapes that other tools read."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tinychat.store.models import ModelInfo, read_info

TEXT = (
    "The fox said: “How far is the sea?” The crow told her it isn't far, 12 miles at most.\n"
    "Then the fox went to the café by the old mill, and she ate 3 pies, 40 plums and 1987 nuts.\n"
    "»Naïve«, thought the crow – and flew home over the hills to sleep until the morning came.\n"
)
PROMPTS = (
    "The fox said", " and", "Then the fox went to the café", "12 miles at most.\n", "it isn't far, 1987 nuts",
    "»Naïve«",
)  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "gpt2": {
        "norm": "layernorm", "norm_affine": True, "feed_forward": "gelu_tanh", "position": "learned", "qk_norm": False,
        "bias": True, "head_bias": False, "tie_embeddings": True, "n_head": 4,
    },
    "llama": {
        "norm": "rmsnorm", "norm_affine": True, "norm_eps": 1e-5, "feed_forward": "swiglu", "position": "rotary",
        "qk_norm": False, "n_head": 4, "n_kv_head": 2, "d_ff": 96,
    },
}  # fmt: skip
SPECIALS = ("<|end|>", "<|user|>", "<|assistant|>")


BROWSER_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, driven by playwright."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright, which drives a browser, is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=BROWSER_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def transformers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    transformers = pytest.importorskip("transformers")
    from transformers import dynamic_module_utils

    dynamic_module_utils.HF_MODULES_CACHE = str(tmp_path_factory.mktemp("huggingface"))
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    return transformers


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ModelInfo]:
    """Function that returns a model of a shape and a kind of vocabulary, trained for some `steps` until it is sure."""
    import torch

    folders: dict[object, Path] = {}

    def make(
        shape: str, kind: str, *, chat: bool = False, specials: int = 0, steps: int = 0, **options: Any
    ) -> ModelInfo:
        key = (shape, kind, chat, specials, steps, *options.items())
        if key not in folders:
            folders[key] = tmp_path_factory.mktemp("made") / f"{shape}-{kind}"
            with torch.inference_mode(mode=False):
                _make(folders[key], SHAPES[shape] | options, kind, SPECIALS[: 3 if chat else specials], chat, steps)
        return read_info(folders[key])

    return make


def _make(folder: Path, options: dict[str, Any], kind: str, specials: tuple[str, ...], chat: bool, steps: int) -> None:
    import torch
    import torch.nn.functional as F

    from tinychat.model.config import ModelConfig
    from tinychat.model.transformer import Transformer
    from tinychat.store.models import save_model
    from tinychat.tokenizer.chat_template import ChatTemplate
    from tinychat.tokenizer.tokenizer import Tokenizer
    from tinychat.tokenizer.training import train_vocabulary

    tokenizer = Tokenizer(train_vocabulary(kind, [TEXT], 300, specials))
    config = ModelConfig(tokenizer.vocab_size, 256, n_layer=2, d_model=32, **options, initialization="gpt2")
    torch.manual_seed(1)
    model = Transformer(config)
    end = tokenizer.special("end")
    ids = torch.tensor([*([] if end is None else [end]), *tokenizer.encode(TEXT * 2)])[:256]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = F.cross_entropy(model(ids[None, :-1])[0], ids[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    template = ChatTemplate(user_prefix=" ", lowercase_all_caps=True) if chat else None
    facts = (config.to_dict(), tokenizer.kind, model.parameter_count, template)
    info = ModelInfo(folder.name, folder, "chat" if chat else "completion", *facts, settings={"temperature": 0.7})
    save_model(info, model.state_dict(), tokenizer)
