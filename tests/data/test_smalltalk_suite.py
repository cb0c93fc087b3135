"""The smalltalk suite is reproducible, can be passed, and shares no question with the training split."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tinychat.evaluate.suite import read_suite

pytestmark = pytest.mark.slow  # generating conversations takes seconds

SUITE = Path(__file__).parents[2] / "data" / "smalltalk" / "suite.jsonl"


def test_made_anew_it_is_the_same(programs: None) -> None:
    from smalltalk import suite

    first, *lines = map(json.loads, SUITE.read_text().splitlines())
    assert first == {"words": "words.txt"}
    checks = list(suite.checks())
    assert [check for check in checks if check in lines] == lines
    assert len(lines) > 0.9 * len(checks)


def test_it_has_many_checks_of_each_kind() -> None:
    groups = Counter(check.group for check in read_suite(SUITE).checks)
    assert groups.total() > 2000
    assert min(groups.values()) >= 50
    assert {"arithmetic", "opposites", "sequences", "capitals", "commands", "a name, 4 turns later"} < set(groups)


def test_what_is_asked_is_never_trained_on(programs: None, known: Callable[..., tuple[bytes, bytes]]) -> None:
    from smalltalk import suite

    talks = [json.loads(line)["messages"] for line in known("smalltalk", 40_000)[0].splitlines()]
    trained_on = {suite.normalize(message["content"]) for talk in talks for message in talk[::2]}
    checks = [check for check in read_suite(SUITE).checks if check.group != suite.HAND_WRITTEN]
    prompts = {suite.normalize(check.prompts[-1]) for check in checks if len(check.prompts) == 1}
    assert len(prompts) > 1500
    assert not prompts & trained_on


def test_the_corpus_itself_passes(programs: None) -> None:
    from grammar import Dice
    from smalltalk import suite

    dice = Dice("the corpus itself")
    for topics in suite.FACTS.values():
        for topic in topics:
            if turn := suite.held_out_turn(dice, suite.SCENES[topic]):
                assert re.search(suite.has_value(turn)["pattern"], turn.assistant), turn
                assert not re.search(suite.REFUSAL, turn.assistant)
    for topic in suite.TALK:
        if turn := suite.held_out_turn(dice, suite.SCENES[topic]):
            assert re.search(suite.matches_templates(turn)["pattern"], turn.assistant), turn
    for _ in range(100):
        refused = suite.held_out_turn(dice, suite.SCENES["what it does not know"])
        assert refused is not None
        assert re.search(suite.REFUSAL, refused.assistant)


def test_replies_have_the_words_of_the_list_and_those_that_the_person_said(programs: None) -> None:
    from smalltalk import suite

    assert suite.words_and_prompts(1000)[0] <= set(SUITE.with_name("words.txt").read_text().split())
