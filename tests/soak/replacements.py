"""Replaces a model folder by two versions in turns while commands open it in a loop: each gets one version, whole.

    python tests/soak/replacements.py --count 1000

One process replaces the folder; another answers, evaluates, shows, exports and imports the model and prepares a run
that starts from it, and compares what comes out with that of each version alone. It goes on until the folder was
replaced and the model was opened `count` times.
"""

import argparse
import hashlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from itertools import cycle
from multiprocessing import Value
from pathlib import Path

import torch

from tinychat.atomic import atomic_folder
from tinychat.cli.main import run
from tinychat.model.config import ModelConfig
from tinychat.model.transformer import Transformer
from tinychat.store.models import ModelInfo, save_model
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary
from tinychat.train.launch import prepare_run
from tinychat.train.recipe import Recipe

TEXT = "the fox sees a bird in an old tree and says nothing at all. " * 5


def main() -> int:
    """Replace and open a model as the command line says, and print what was found; return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=1000, help="number of replacements, and of openings")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="replacements-") as folder:
        kernel = os.environ.get("TINYCHAT_HOME")
        if kernel is not None:  # so that it need not be compiled again
            shutil.copytree(Path(kernel, "cache"), Path(folder, "cache"))
        os.environ["TINYCHAT_HOME"] = folder
        os.chdir(folder)
        return soak(Path(folder), options.count)


def soak(home: Path, count: int) -> int:
    """Replace the model in a process of its own, and open it in this one."""
    torch.set_num_threads(1)
    (home / "text.txt").write_text(TEXT, encoding="utf-8")
    versions = [
        save_version(home / name, kind, width) for name, kind, width in (("one", "char", 16), ("two", "wordpiece", 24))
    ]
    model, expected = home / "model", list[Mapping[str, str]]()
    for version in versions:
        shutil.copytree(version, model)
        expected.append({name: use(model, home) for name, use in USES.items()})
        shutil.rmtree(model)
    shutil.copytree(versions[0], model)
    for name in USES:
        assert expected[0][name] != expected[1][name], f"{name} does not tell the versions apart: {expected[0][name]}"

    replaced, counts, wrong = Value("q", 0), Counter[str](), list[str]()
    replacer, began = os.fork(), time.monotonic()
    if replacer == 0:
        replace_forever(model, versions, replaced)
    try:
        while counts.total() < count or replaced.value < count:
            for name, use in USES.items():
                found = use(model, home)
                version = next((index for index, one in enumerate(expected, 1) if one[name] == found), None)
                counts[f"of version {version}" if version else "wrong"] += 1
                if version is None:
                    wrong.append(f"{name}: {found}")
    finally:
        os.kill(replacer, signal.SIGKILL)
        os.waitpid(replacer, 0)
    for line in wrong[:20]:
        sys.stdout.write(f"{line}\n")
    sys.stdout.write(
        f"{replaced.value:,} replacements and {counts.total():,} openings in {time.monotonic() - began:,.0f} s: "
        f"{counts['of version 1']:,} of one version, {counts['of version 2']:,} of the other, "
        f"{counts['wrong']:,} refused or mixed\n"
    )
    return int(bool(wrong) or len(counts) != 2)


def save_version(folder: Path, kind: str, width: int) -> Path:
    """Save a small model called `model`, whose vocabulary and sizes depend on the arguments."""
    tokenizer = Tokenizer(train_vocabulary(kind, [TEXT], 300, ["<|end|>"]))
    config = ModelConfig(tokenizer.vocab_size, context_length=32, n_layer=1, d_model=width, initialization="torch")
    torch.manual_seed(width)
    model = Transformer(config)
    info = ModelInfo("model", folder, "completion", config.to_dict(), tokenizer.kind, model.parameter_count)
    save_model(info, model.state_dict(), tokenizer, training={"seed": width}, card=f"# {width}\n")
    return folder


def replace_forever(model: Path, versions: list[Path], replaced: "Value") -> None:  # type: ignore[valid-type]
    """Replace a folder by copies of others in turns, and count the times."""
    for version in cycle(versions[::-1]):
        with atomic_folder(model) as draft:
            shutil.copytree(version, draft, dirs_exist_ok=True)
        replaced.value += 1  # type: ignore[attr-defined]


# --- ways to use a model: each returns a text that tells the versions apart -------------------------------------------


def call(*arguments: str) -> str:
    """Run a command and return what it wrote; an error is told with its exit code."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run(list(arguments))
    told = err if code else out
    told.seek(0)
    return f"exit code {code}: {told.read()}" if code else told.read()


def write_folder(write: Callable[[Path], str], folder: Path) -> str:
    """Return a digest of the files in a folder that a function writes, which is removed again."""
    try:
        problem = write(folder)
        if problem.startswith("exit code"):
            return problem
        digest = hashlib.sha256()
        for path in sorted(folder.iterdir()):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.hexdigest()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start_run(model: Path, home: Path) -> str:
    """Prepare a run that starts from a model, and return a digest of its copy."""
    run_folder = prepare_run(Recipe(sources=(str(home / "text.txt"),), from_model=str(model)))
    try:
        return write_folder(lambda _: "", run_folder.base_model)
    finally:
        shutil.rmtree(run_folder.path)


USES: Mapping[str, Callable[[Path, Path], str]] = {
    "answer": lambda model, home: call("-m", str(model), "-p", "the", "-n", "8", "--greedy", "--threads", "1"),
    "eval": lambda model, home: call("eval", str(model), str(home / "text.txt"), "--split", "all", "--json"),
    "show": lambda model, home: call("show", str(model), "--json"),
    "export": lambda model, home: write_folder(
        lambda out: call("export", str(model), "--to", "tinychat", "--out", str(out)), home / "exported"
    ),
    "import": lambda model, home: write_folder(
        lambda out: call("import", str(model), "--name", "copy", "--out", str(out)), home / "imported"
    ),
    "train --from": start_run,
}


if __name__ == "__main__":
    sys.exit(main())
