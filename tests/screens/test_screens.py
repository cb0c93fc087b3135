"""The README's pictures contain the expected text; `make screens` generates them anew."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

HERE = Path(__file__).parent
README = HERE.parent.parent / "README.md"
MAX_BYTES = 40_000
WORDS = {
    "first-minute": ["tinychat 0.1", "› hello there", "⟨temp 0.7⟩", "tok/s · stop: end of turn"],
    "why": ["/why", "surprisal", "before sampling", "after temp", "▇▇"],
    "attention": ["/attention 2 3 cross", "quiere", "% or more"],
    "training": ["loss", "tok/s", "learning rate", "sample at step", "◆ val", "q stop and keep"],
}


@pytest.mark.parametrize("name", WORDS)
def test_a_picture_contains_its_text_and_is_in_the_readme(name: str) -> None:
    path = HERE / f"{name}.svg"
    picture = ElementTree.parse(path)
    text = "".join(picture.getroot().itertext()).replace("\xa0", " ")
    assert [words for words in WORDS[name] if words not in text] == []
    assert path.stat().st_size < MAX_BYTES
    assert f"tests/screens/{name}.svg" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", WORDS)
def test_a_picture_fetches_nothing_and_runs_nothing(name: str) -> None:
    text = (HERE / f"{name}.svg").read_text(encoding="utf-8")
    assert not any(word in text for word in ("<script", "@font-face", "@import", "url(http", "href"))


def test_the_picture_of_a_page_is_small_and_in_the_readme() -> None:
    path = HERE / "page.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size < MAX_BYTES
    assert "tests/screens/page.png" in README.read_text(encoding="utf-8")
