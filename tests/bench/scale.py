"""Measure a model of SmolLM2-135M's shape, as transformers saves it: `python tests/bench/scale.py`.

    --dtype bfloat16 float32    --precision auto int8    --threads 1    --llama-cpp FOLDER (of the package llama_cpp)

Its weights are random. Opening is measured in a process of its own, in processor time from its start to the first
token, and so is memory, of all of the process, against the size of the weights. Decoding is greedy, without drafts.
With `--llama-cpp`, the same weights in Q8_0 are measured by llama.cpp, in turns.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROMPT, TOKENS, ROUNDS = [5, 100, 2000, 30_000], 40, 4
MEASURE, MEASURE_LLAMA_CPP = "--measure", "--measure-llama-cpp"


def save(folder: Path, dtype: str) -> None:
    """Save the model: 30 layers of 576, 9 heads, 3 of keys and values, 49,152 tokens."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = [letter for letter in alphabet if letter.isascii() and letter.isalpha()]
    vocabulary, merges = {token: id for id, token in enumerate(["<|endoftext|>", *alphabet])}, list[tuple[str, str]]()
    for length in (1, 2, 3):  # all texts of two and three letters, and some of four
        for letter, rest in itertools.product(letters, [token for token in vocabulary if len(token) == length]):
            if len(vocabulary) < 49_152 and rest.isascii() and rest.isalpha():
                vocabulary[letter + rest] = len(vocabulary)
                merges.append((letter, rest))
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    config = LlamaConfig(
        vocab_size=49_152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
        num_key_value_heads=3, max_position_embeddings=8192, tie_word_embeddings=True,
    )  # fmt: skip
    LlamaForCausalLM(config).to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))


def measure(folder: Path, precision: str, threads: int) -> dict[str, float]:
    """Open the model in this process and decode with it."""
    from tinychat.config.settings import Settings
    from tinychat.formats.registry import open_model
    from tinychat.generate.engine import Request
    from tinychat.generate.native.engine import NativeEngine

    info = open_model(str(folder))
    engine = NativeEngine(info, threads, precision="f32" if precision == "auto" else precision, drafts="never")
    memory = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    opening, speeds = time.process_time(), list[float]()
    for number in range(ROUNDS):
        request = Request(0, [*PROMPT, number], 0, Settings(temperature=0, max_tokens=TOKENS), 1)
        began = time.process_time()
        count = len(engine.extend([request], TOKENS)[0])
        speeds.append(count / (time.process_time() - began))
    ratio = int(memory.split()[1]) * 1024 / info.weights_file.stat().st_size
    return {"seconds to open": opening, "memory / weights": ratio, "tokens per second of a processor": max(speeds)}


def measure_llama_cpp(file: Path, threads: int) -> dict[str, float]:
    """Decode with llama.cpp in this process."""
    from llama_cpp import Llama  # type: ignore[import-not-found]

    model, speeds = Llama(str(file), n_ctx=512, n_threads=threads, verbose=False), list[float]()
    for number in range(ROUNDS):
        model.reset()
        began = time.process_time()
        for count, _ in enumerate(model.generate([*PROMPT, number], temp=0.0, top_k=1, repeat_penalty=1.0), 1):
            if count == TOKENS:
                break
        speeds.append(TOKENS / (time.process_time() - began))
    return {"tokens per second of a processor": max(speeds)}


def main() -> None:
    """Measure in turns, each in a process of its own."""
    if sys.argv[1:2] == [MEASURE]:
        print(json.dumps(measure(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))))  # noqa: T201
        return
    if sys.argv[1:2] == [MEASURE_LLAMA_CPP]:
        sys.path.append(sys.argv[4])
        print(json.dumps(measure_llama_cpp(Path(sys.argv[2]), int(sys.argv[3]))))  # noqa: T201
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--precision", nargs="+", default=["auto", "int8"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--llama-cpp", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as parent:
        for dtype in options.dtype:
            folder, exported = Path(parent, dtype), Path(parent, f"{dtype}-gguf")
            save(folder, dtype)
            for precision in options.precision:
                report(f"tinychat, {dtype}, {precision}", [MEASURE, folder, precision, options.threads])
            if options.llama_cpp:
                export = [sys.executable, "-m", "tinychat", "export", folder, "--to", "gguf-q8_0", "--out", exported]
                subprocess.run(export, check=True, stdout=subprocess.DEVNULL)
                call = [MEASURE_LLAMA_CPP, next(exported.glob("*.gguf")), options.threads, options.llama_cpp]
                report(f"llama.cpp, {dtype}, Q8_0", call)


def report(name: str, call: list[object]) -> None:
    """Run this program for one measurement and print what it found."""
    output = subprocess.run([sys.executable, __file__, *map(str, call)], check=True, capture_output=True, text=True)
    values = json.loads(output.stdout.splitlines()[-1])
    print(name, *(f"{key} {value:.2f}" for key, value in values.items()), sep=" · ", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
