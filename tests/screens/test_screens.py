"""The README's pictures show what they are there for. How they look is a matter of the day: `make screens`."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

HERE = Path(__file__).parent
README = HERE.parent.parent / "README.md"
MOST = 40_000
"""bytes"""
WORDS = {
    "first-minute": ["tinychat 0.1", "› hello there", "⟨temp 0.7⟩", "tok/s · stop: end of turn"],
    "why": ["/why 5", "entropy", "before", "after", "▇▇"],
    "training": ["loss", "tok/s", "learning rate", "sample at step", "◆ val", "q stop and keep"],
}


@pytest.mark.parametrize("name", WORDS)
def test_a_picture_shows_what_it_is_there_for(name: str) -> None:
    path = HERE / f"{name}.svg"
    picture = ElementTree.parse(path)
    text = "".join(picture.getroot().itertext()).replace("\xa0", " ")
    assert [words for words in WORDS[name] if words not in text] == []
    assert path.stat().st_size < MOST
    assert f"tests/screens/{name}.svg" in README.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", WORDS)
def test_a_picture_fetches_nothing_and_runs_nothing(name: str) -> None:
    text = (HERE / f"{name}.svg").read_text(encoding="utf-8")
    assert not any(word in text for word in ("<script", "@font-face", "@import", "url(http", "href"))
