"""Makes the suite by which a model of these conversations is measured: `python data/make.py smalltalk --suite`.

Every check is said in a wording, or about a name or a thing, that training never sees; see `talk.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from grammar import Dice, pattern

from smalltalk import commands as others
from smalltalk import make, memory, settings
from smalltalk.first_lines import first_lines
from smalltalk.talk import Scene, Talk, Turn
from smalltalk.wishes import Wish

SEED = 1
TRIES = 60
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
SCENES = {scene.topic: scene for scene in make.SCENES}

FACTS = {
    "arithmetic": ("adding", "taking away", "doubles"),
    "opposites": ("opposites",),
    "sequences": ("counting up", "counting to a number", "counting down", "counting down to one",
                  "neighbours of numbers", "the next day", "the day before", "the next month", "the month before",
                  "the next letter", "the letter before", "seasons"),
    "capitals": ("capitals",),
    "plurals": ("plurals",),
    "comparing": ("comparing numbers", "comparing sizes", "even and odd"),
    "other facts": ("animal sounds", "colours of things", "young animals", "legs", "what animals eat",
                    "where animals live", "what things are for", "meanings", "how many", "shapes",
                    "countries of capitals"),
}  # fmt: skip
NUMBERS = (
    "adding", "taking away", "doubles", "neighbours of numbers", "counting up", "counting to a number", "counting down",
    "counting down to one",
)  # fmt: skip
"""of which the last number of the reply counts, or the last list of them"""
TALK = (
    "hello", "time of day", "how are you", "thanks", "goodbye", "agreement", "laughter", "doubt", "being sad",
    "being happy", "being bored", "being cross", "being tired", "being nervous", "being lonely", "being ill",
    "being hungry", "my day", "praise", "rude words", "advice", "its name", "its age", "what it is",
    "whether it is human", "who made it", "its size", "what it can do", "other models", "where it lives", "languages",
    "mistakes", "the weather", "the time and date", "its favourites", "love and marriage", "a fun fact", "code",
    "seeing and hearing", "rock, paper, scissors", "coins",
)  # fmt: skip
COUNTS = {
    "arithmetic": 200, "opposites": 100, "sequences": 160, "capitals": 100, "plurals": 80, "comparing": 80,
    "other facts": 160,
}  # fmt: skip

HAND_WRITTEN = "first lines"

Check = dict[str, Any]


def turn_of(dice: Dice, scene: Scene) -> Turn | None:
    """A conversation of one turn whose wording training never sees; None where a topic has none."""
    for _ in range(TRIES):
        talk = Talk(dice, 1, held_out=True)
        talk.topic = scene.topic
        scene.play(talk)
        if talk.turns[0].is_held_out:
            return talk.turns[0]
    return None


def of_topics(dice: Dice, group: str, topics: Sequence[str], count: int, judge: Callable[[Turn], Check]) -> list[Check]:
    """So many checks, the topics taking turns; no two are the same. The corpus' own answer passes each of them."""
    checks: dict[str, Check] = {}
    left = list(topics)
    for number in range(10 * count):
        if len(checks) == count or not left:
            break
        topic = left[number % len(left)]
        if turn := turn_of(dice, SCENES[topic]):
            wanted = judge(turn)
            assert re.search(wanted.get("pattern", ""), turn.bot), turn
            assert "without" not in wanted or not re.search(wanted["without"], turn.bot), turn
            checks.setdefault(turn.user, {"group": group, "say": turn.user, **wanted})
        else:
            left.remove(topic)
    return list(checks.values())


def has_value(turn: Turn) -> Check:
    """A reply that ends as the right one does: with the number, the word or the list that was asked for."""
    if turn.topic in ("comparing numbers", "comparing sizes", "even and odd"):
        return as_templates(turn)
    if turn.topic in NUMBERS:
        number = re.findall(r"[\d, ]*\d", turn.bot)[-1].strip()
        return {"pattern": rf"(?<!\d){number}\D*$"}
    value = re.escape(turn.values["x" if turn.topic == "countries of capitals" else "y"]).replace(r"\ ", " ")
    return {"pattern": rf"(?i)\b{value}\b" + ("" if turn.topic in FACTS["other facts"] else r"\W*$")}


def as_templates(turn: Turn) -> Check:
    """A reply that the topic's templates can make."""
    return {"pattern": f"(?i)^(?:{pattern(turn.replies, turn.values)})$"}


REFUSAL = (
    r"(?i)(don't|do not) know|never (learned|heard|met)|can't (answer|say)|no idea|did not learn|was not taught"
    r"|be guessing|to guess|make something up|too (small|big)|(beyond|outside) (me|my|a tiny)|than fits|left out that"
    r"|(never|not) ha(d|ve) that"
)


def has_command(wish: Wish) -> Callable[[Turn], Check]:
    """A reply that names a command of the wish, with its value or the one that was asked for, wherever that stands."""
    named = {name for reply in wish.replies for name in re.findall(r"/[a-z][a-z-]*(?: \d[\d.]*\d|)", reply)}
    names = "|".join(sorted(name.replace(".", r"\.") for name in named))

    def judge(turn: Turn) -> Check:
        value = re.escape(turn.values["v"])
        asked = rf"(?=.*(?<!\S){value}(?![\d.]*\d))" if value else ""
        return {"pattern": rf"^{asked}.*(?:{names})(?![\w-])"}

    return judge


def commands(dice: Dice) -> Iterator[Check]:
    """What to type in tinychat."""
    for wish in (*settings.WISHES, *others.TALKING, *others.MODELS, *others.LOOKING, *others.PROGRAM):
        if all("/" in reply for reply in wish.replies):
            yield from of_topics(dice, "commands", (wish.topic,), 5, has_command(wish))


def remembered(dice: Dice, group: str, kinds: Sequence[memory.Kind], gap: int, count: int) -> Iterator[Check]:
    """What was told so many turns before, with other talk in between."""
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


NO_FILLERS = {
    "things never told",
    "what the person said",
    "all that it knows",
    "who somebody is",
    "two facts at once",
    "gibberish",
    "stories",
}


def checks(seed: int = SEED) -> Iterator[Check]:
    """The whole suite."""
    dice = Dice(f"smalltalk suite {seed}")
    for group, topics in FACTS.items():
        yield from of_topics(dice, group, topics, COUNTS[group], has_value)
    names = [kind for kind in memory.KINDS if kind.key == "name"]
    favourites = [kind for kind in memory.KINDS if kind.key.startswith("favourite")]
    others = [kind for kind in memory.KINDS if kind not in names and kind not in favourites]
    for gap in (2, 4):
        yield from remembered(dice, f"a name, {gap} turns later", names, gap, 150)
        yield from remembered(dice, f"a favourite, {gap} turns later", favourites, gap, 120)
        yield from remembered(dice, f"other facts, {gap} turns later", others, gap, 80)
    yield from of_topics(dice, "spelling and saying back", ("spelling", "saying back"), 80, as_templates)
    yield from commands(dice)
    asked = ("what it does not know",)
    yield from of_topics(dice, "unknown, said so", asked, 200, lambda turn: {"pattern": REFUSAL})
    known = [topic for topics in FACTS.values() for topic in topics] + ["spelling", "its name", "what it can do"]
    yield from of_topics(dice, "known, not refused", known, 200, lambda turn: {"without": REFUSAL})
    yield from of_topics(dice, "small talk", TALK, 200, as_templates)
    for line, wanted in first_lines():
        yield {"group": HAND_WRITTEN, "say": line, "pattern": wanted}


def plain(text: str) -> str:
    """In lower case and without marks: what makes no difference."""
    return " ".join(re.sub(r"[^\w ]", "", text.lower()).split())


def heard(count: int, seed: int = SEED) -> tuple[set[str], set[str]]:
    """The words of the bot's replies that are its own, and no echo of the person's; and all that people say, plain."""
    words: set[str] = set()
    said: set[str] = set()
    for turns in make.conversations(count, seed):
        echoed: set[str] = set()
        for turn in turns:
            said.add(plain(turn.user))
            echoed.update(WORD.findall(turn.user.lower()))
            words.update(word for word in WORD.findall(turn.bot.lower()) if word not in echoed)
    return words, said


def is_unheard(check: Check, said: set[str]) -> bool:
    """Whether training has nothing like what is asked; a conversation differs from any in training by its names."""
    return isinstance(check["say"], list) or plain(check["say"]) not in said


def write(folder: Path, count: int, seed: int = SEED) -> None:
    """Writes `suite.jsonl`, without what is trained on after all, and the file of words that it names."""
    words, said = heard(count, seed)
    kept = (check for check in checks(seed) if check["group"] == HAND_WRITTEN or is_unheard(check, said))
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [{"words": "words.txt"}, *kept])
    (folder / "suite.jsonl").write_text(text, encoding="utf-8")
    (folder / "words.txt").write_text("\n".join(sorted(words)) + "\n", encoding="utf-8")
