"""Generate the suite that evaluates models of these conversations: `python data/make.py smalltalk --suite`.

Every check uses a wording, name or thing from the held-out split; see `talk.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path
from typing import Any

from grammar import Dice, pattern

from smalltalk import make, memory, messages, quotes, recall, words
from smalltalk.talk import Scene, Talk, Turn
from smalltalk.wishes import WISHES, Wish

SEED = 1
TRIES = 60
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
SCENES = {scene.topic: scene for scene in make.SCENES}

_FILE = words.table(__file__)
COUNTS: dict[str, int] = {group: count for group, count, _ in _FILE["facts"]}
FACTS: dict[str, list[str]] = {group: topics for group, _, topics in _FILE["facts"]}
NUMBERS, TALK, NO_FILLERS = (frozenset(_FILE["numbers"]), tuple(_FILE["talk"]), frozenset(_FILE["no_fillers"]))
HAND_WRITTEN = "first lines"

Check = dict[str, Any]


def held_out_turn(dice: Dice, scene: Scene) -> Turn | None:
    """Return a turn with a held-out wording, or None if the topic has none."""
    for _ in range(TRIES):
        talk = Talk(dice, 1, held_out=True)
        talk.topic = scene.topic
        scene.play(talk)
        if talk.turns[0].is_held_out:
            return talk.turns[0]
    return None


def topic_checks(
    dice: Dice, group: str, topics: Sequence[str], count: int, judge: Callable[[Turn], Check]
) -> list[Check]:
    """Return up to `count` different checks, taking topics in turn.

    The corpus's own answer passes each check.
    """
    checks: dict[str, Check] = {}
    left = list(topics)
    for number in range(10 * count):
        if len(checks) == count or not left:
            break
        topic = left[number % len(left)]
        if turn := held_out_turn(dice, SCENES[topic]):
            expected = judge(turn)
            assert re.search(expected.get("pattern", ""), turn.assistant), turn
            assert "without" not in expected or not re.search(expected["without"], turn.assistant), turn
            checks.setdefault(turn.user, {"group": group, "say": turn.user, **expected})
        else:
            left.remove(topic)
    return list(checks.values())


def has_value(turn: Turn) -> Check:
    """Require a reply that ends with the right number, word or list."""
    if turn.topic in ("comparing numbers", "comparing sizes", "even and odd"):
        return matches_templates(turn)
    if turn.topic in NUMBERS:
        number = re.findall(r"[\d, ]*\d", turn.assistant)[-1].strip()
        return {"pattern": rf"(?<!\d){number}\D*$"}
    value = re.escape(turn.values["x" if turn.topic == "countries of capitals" else "y"]).replace(r"\ ", " ")
    return {"pattern": rf"(?i)\b{value}\b" + ("" if turn.topic in FACTS["other facts"] else r"\W*$")}


def matches_templates(turn: Turn) -> Check:
    """Require a reply that the topic's templates can generate."""
    return {"pattern": f"(?i)^(?:{pattern(turn.replies, turn.values)})$"}


REFUSAL = (
    r"(?i)(?<!you )(don't|do not) know|know nothing|never (learned|heard|met)|can't (answer|say)|no idea|did not learn"
    r"|was not taught|be guessing|to guess|make something up|too (small|big)|(beyond|outside) (me|my|a tiny)|than fits"
    r"|left out that|(never|not) ha(d|ve) that"
)


def has_command(wish: Wish) -> Callable[[Turn], Check]:
    """Return a function that requires a command of the wish.

    The requested value may stand anywhere in the reply.
    """
    named = {name for reply in wish.replies for name in re.findall(r"/[a-z][a-z-]*(?: \d[\d.]*\d|)", reply)}
    names = "|".join(sorted(name.replace(".", r"\.") for name in named))

    def judge(turn: Turn) -> Check:
        value = re.escape(turn.values["v"])
        value_pattern = rf"(?=.*(?<!\S){value}(?![\d.]*\d))" if value else ""
        return {"pattern": rf"^{value_pattern}.*(?:{names})(?![\w-])"}

    return judge


def command_checks(dice: Dice) -> Iterator[Check]:
    """Yield checks for questions about commands."""
    for wish in WISHES:
        if all("/" in reply for reply in wish.replies):
            yield from topic_checks(dice, "commands", (wish.topic,), 5, has_command(wish))


def memory_checks(dice: Dice, group: str, kinds: Sequence[memory.Kind], gap: int, count: int) -> Iterator[Check]:
    """Yield checks for facts told `gap` turns earlier, with other topics in between."""
    fillers = [scene for scene in make.SCENES if scene.topic not in NO_FILLERS]
    for number in range(count):
        talk = Talk(dice, 1, held_out=True)
        kind = kinds[number % len(kinds)]
        memory.tell(talk, kind)
        while len(talk.turns) < gap:
            talk.length = len(talk.turns) + 1
            dice.choice(fillers).play(talk)
        memory.ask(talk, kind)
        value = re.escape(talk.facts[kind.key]).replace(r"\ ", " ")
        yield {"group": group, "say": [turn.user for turn in talk.turns], "pattern": rf"(?i)(?<!\w){value}(?!\w)"}


def recall_checks(group: str, topics: Container[str], count: int) -> Iterator[Check]:
    """Yield checks for what was said in passing: the reply must quote the words that answer."""
    for turns in make.conversations(TRIES * count, SEED, held_out=True):
        for at, turn in enumerate(turns):
            if turn.topic in topics and turn.replies == quotes.ANSWER:
                said = [earlier.user for earlier in turns[: at + 1]]
                quoted = {"v": turn.values["v"].rstrip(".!?")}  # with or without the mark at its end
                yield {"group": group, "say": said, "pattern": f"(?i){pattern(('<v>',), quoted)}"}
                count -= 1
                if not count:
                    return


def message_checks(count: int) -> Iterator[Check]:
    """Yield checks of messages in many words: the reply must fit their kind, of which each has its share."""
    every = len(messages.HELD_OUT_MESSAGES) / count
    for at in range(count):
        message = messages.HELD_OUT_MESSAGES[int(every * at)]
        if message.kind not in messages.LATER | {"answer"}:  # those need a talk
            yield {"group": "messages in many words", "say": message.text, "pattern": messages.fitting(message.kind)}


def first_lines() -> list[tuple[str, str]]:
    """Return what people type first, written by hand, with the regular expression that each reply must match.

    Some are so short that the training split contains them as well: a bot that never saw “hi” would be useless.
    """
    replies = {f"<{name}>": wanted for name, _, wanted in (line.partition(" = ") for line in _FILE["replies"])}
    lines = (line.rpartition(" = ") for line in _FILE["first_lines"])
    return [(said, replies.get(wanted, wanted)) for said, _, wanted in lines]


def checks(seed: int = SEED) -> Iterator[Check]:
    """Yield the whole suite."""
    dice = Dice(f"smalltalk suite {seed}")
    for group, topics in FACTS.items():
        yield from topic_checks(dice, group, topics, COUNTS[group], has_value)
    names = [kind for kind in memory.KINDS if kind.key == "name"]
    favourites = [kind for kind in memory.KINDS if kind.key.startswith("favourite")]
    others = [kind for kind in memory.KINDS if kind not in names and kind not in favourites]
    for gap in (2, 4):
        yield from memory_checks(dice, f"a name, {gap} turns later", names, gap, 150)
        yield from memory_checks(dice, f"a favourite, {gap} turns later", favourites, gap, 120)
        yield from memory_checks(dice, f"other facts, {gap} turns later", others, gap, 80)
    yield from recall_checks("what was said, by its words", frozenset(recall.TOPICS.values()), 100)
    yield from recall_checks("what was said, in other words", {recall.WRITTEN}, 100)
    yield from recall_checks("what was said, in two messages", {recall.THREADED}, 100)
    yield from message_checks(400)
    yield from topic_checks(dice, "spelling and saying back", ("spelling", "saying back"), 80, matches_templates)
    yield from command_checks(dice)
    yield from topic_checks(
        dice, "unknown, said so", ("what it does not know",), 200, lambda turn: {"pattern": REFUSAL}
    )
    known = [topic for topics in FACTS.values() for topic in topics] + ["spelling", "its name", "what it can do"]
    yield from topic_checks(dice, "known, not refused", known, 200, lambda turn: {"without": REFUSAL})
    yield from topic_checks(dice, "small talk", TALK, 200, matches_templates)
    for line, expected in first_lines():
        yield {"group": HAND_WRITTEN, "say": line, "pattern": expected}


def normalize(text: str) -> str:
    """Lowercase the text and drop punctuation, so that irrelevant differences disappear."""
    return " ".join(re.sub(r"[^\w ]", "", text.lower()).split())


def words_and_prompts(count: int, seed: int = SEED) -> tuple[set[str], set[str]]:
    """Return the words of the bot's replies and the normalized text of all user messages.

    Words that merely echo the person are left out.
    """
    said: set[str] = set()
    prompts: set[str] = set()
    for turns in make.conversations(count, seed):
        echoed: set[str] = set()
        for turn in turns:
            prompts.add(normalize(turn.user))
            echoed.update(WORD.findall(turn.user.lower()))
            said.update(word for word in WORD.findall(turn.assistant.lower()) if word not in echoed)
    return said, prompts


def is_unseen(check: Check, prompts: set[str]) -> bool:
    """Return whether training contains no such question; longer conversations always differ in their names."""
    return isinstance(check["say"], list) or normalize(check["say"]) not in prompts


def write(folder: Path, count: int, seed: int = SEED) -> None:
    """Write `suite.jsonl`, without checks that training contains after all, and the word list that it names."""
    replied, prompts = words_and_prompts(count, seed)
    kept = (check for check in checks(seed) if check["group"] == HAND_WRITTEN or is_unseen(check, prompts))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [{"words": "words.txt"}, *kept])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.jsonl").write_text(text, encoding="utf-8")
    (folder / "words.txt").write_text("\n".join(sorted(replied)) + "\n", encoding="utf-8")
