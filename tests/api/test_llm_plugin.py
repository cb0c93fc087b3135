"""The plugin of `llm`, with its own command line."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tinychat

ROOT = Path(__file__).parents[2]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder to import from, with the entry point of pyproject.toml as an installation has it."""
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]["llm"]
    folder = tmp_path / "tinychat_plugin-0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tinychat-plugin\nVersion: 0\n", encoding="utf-8")
    lines = ["[llm]", *(f"{name} = {module}" for name, module in entries.items())]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_llm_answers_with_our_models(installed: Path, chatter: Path, home: Path) -> None:
    shutil.copytree(chatter, home / "models" / "chatter")
    path = os.pathsep.join([str(ROOT), str(installed)])
    environment = {**os.environ, "PYTHONPATH": path, "LLM_USER_PATH": str(installed / "user")}

    def llm(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "llm", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    options = ["-o", "seed", "5", "-o", "max_tokens", "12"]
    first = llm("-m", "tinychat/chatter", *options, "hello there")
    chat = tinychat.load("chatter", seed=5, max_tokens=12).chat()
    assert (first.stdout, first.stderr) == (chat.say("hello there").text + "\n", "")
    assert llm("-c", *options, "fine").stdout == chat.say("fine").text + "\n"  # it goes on


@pytest.mark.slow
def test_the_plugin_streams_and_is_not_imported_otherwise(chatter: Path, home: Path) -> None:
    pytest.importorskip("llm")
    from tinychat.api.llm_plugin import TinychatModel

    shutil.copytree(chatter, home / "models" / "chatter")
    response = TinychatModel("chatter").prompt("hello there", seed=5, max_tokens=12)
    pieces = list(response)
    assert len(pieces) > 1
    assert "".join(pieces) == tinychat.load("chatter").generate("hello there", seed=5, max_tokens=12).text
    assert response.usage().output == 12
    with pytest.raises(tinychat.SettingError, match="temperature takes a number from 0 to 100, not 900"):
        list(TinychatModel("chatter").prompt("hello", temperature=900))
    code = "import sys, tinychat; tinychat.load; sys.exit('llm' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
