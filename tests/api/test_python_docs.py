"""The examples in docs/python.md run, in their order, and print what stands below them."""

import contextlib
import io
import os
import re
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "python.md"
QUICK = "minutes=5, n_layer=1, d_model=32, context_length=32, batch_size=4, threads=1, sample_tokens=8"


@pytest.mark.slow
def test_the_examples_print_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my-novel.txt").write_text("the brave fox found a lantern in the wood.\n" * 300, encoding="utf-8")
    text = DOCUMENT.read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", text, flags=re.DOTALL)
    assert text.count("minutes=5,") == 1
    names: dict[str, object] = {}
    for code, expected in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code.replace("minutes=5", QUICK), f"{os.fspath(DOCUMENT)}", "exec"), names)
        assert printed.getvalue() == expected or not expected, code
    assert len(examples) >= 7
