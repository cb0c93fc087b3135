"""Tell one tale: its first sentence, the problem, what the hero tries, who helps, and the end."""

from __future__ import annotations

import re
from typing import Any

from grammar import Dice, choose, insert, is_reserved

from tales.heroes import a, capital, draw_hero, owner, words_of
from tales.tables import table

HELD_OUT_EVERY = 13
HELD_OUT_NAMES = 0.4
"""Probability that a held-out tale has a name that is reserved for that split."""

HELPER_GROUPS = 8
"""Number of groups of helpers: with all in one, the likeliest would help in every greedy tale."""
MEETINGS = (
    "(Then|Just then|A little later|Soon|After a while) <helper> came (by|along|round the corner|down the road).",
    "On the way <name> met <helper>.",
    "That was when <name> met <helper>.",
    "<Helper> had (seen|heard) it all and came (nearer|closer).",
    "Not far away sat <helper>.",
)
QUESTIONS = (
    "«(What is the matter|What is wrong|Can I help you|Why do you look so sad|What are you doing)?» asked <the_helper>."
    " (<Name> told <the_helper> everything.|<Name> explained it.|And <name> told the whole story.)",
    "",
)
FRAMES = {"plain": 46, "described": 22, "named": 5, "aged": 5, "feeling": 8, "spoken": 6, "owned": 2, "present": 6}
"""Kinds of first sentences, by how many of a hundred have them."""
HABIT = re.compile(r"(?:lived|always|never|loved|liked|wore|worked|grew)\b")
STATE = re.compile(
    r"(?:had (?:no|nobody|never|always|only)|was (?:always|not like|not afraid|<odd>)|never|did not (?:like|know how)"
    r"|could not <skill>)"
)
"""What a first sentence with “one day” cannot say."""
OPENING_SLOTS = re.compile(r"<([Oo]ne_day|[Pp]lace|spot|love|mood|age|item|item_a|seen)>")
LINK = re.compile(r"^(?:But|Then)\b(?: then| soon)? ")
"""What does not follow “But one day something happened.”."""
EVENT = re.compile(r"^(?:But then|Just then|Then|Suddenly|That day|On the way home|But the next morning|That night)\b")
"""Beginnings of a problem that arises on one day."""
SEAM = re.compile(
    r"^(?:But then|Just then|Then|Suddenly|But soon|That day|On the way home|After a while|But after a while)\b,?"
)
"""Beginnings of a problem that cannot follow a first sentence in which nothing happens."""
TOGETHER = {"they": "we", "They": "We", "them": "us", "their": "our"}


class Tale:
    """A tale of one hero, one plot and one helper."""

    def __init__(self, dice: Dice, *, held_out: bool) -> None:
        self.dice = dice
        self.hero = draw_hero(dice, held_out=held_out and dice.chance(HELD_OUT_NAMES))
        self.plot: dict[str, Any] = dice.choice(table("plots")["plots"])
        row: dict[str, str] = dice.choice(self.plot["rows"])
        kind = min(self.hero.words, default=self.hero.he)
        self.is_reserved = self.hero.is_reserved or is_reserved(HELD_OUT_EVERY, self.plot["plot"], *row.values(), kind)
        self.values = self.hero.slots()
        for slot, words in row.items():
            self.values[slot] = self.fill(words)
            self.values[f"{slot}_up"] = self.values[slot.capitalize()] = capital(self.values[slot])
        self.draw_helper()
        hero, helper = self.hero, self.values["the_helper"]
        both = [helper, hero.name] if hero.he == "I" else [hero.name, helper]
        self.values["both"] = "all of us" if hero.he == "we" else " and ".join(both)
        self.happens = False
        """Whether the first sentence tells what somebody did, and not only who it was."""
        self.paragraphs: list[str] = []

    def draw_helper(self) -> None:
        """Draw somebody other than the hero who helps: each plot has a few who may."""
        first = table("plots")["plots"].index(self.plot) % HELPER_GROUPS
        helpers = words_of("helpers")[first::HELPER_GROUPS]
        while (noun := self.dice.choice(helpers)) in self.hero.words or noun in self.hero.name.lower():
            pass
        adjective = self.dice.choice(words_of("helper_adjectives")) + " " if self.dice.chance(0.6) else ""
        self.values["helper"] = a(adjective + noun)
        self.values["the_helper"] = f"the {noun}"
        self.values["Helper"] = capital(self.values["helper"])
        self.values["The_helper"] = capital(self.values["the_helper"])

    def fill(self, template: str) -> str:
        """Return a wording of the template; the helper is “an owl” once, and “the owl” after that."""
        wording = choose(self.dice, template)
        first = re.search(r"<[Hh]elper>", wording)
        text = insert(wording, self.values)
        if first and "the_helper" in self.values:
            self.values["helper"], self.values["Helper"] = self.values["the_helper"], self.values["The_helper"]
        return text

    def pick(self, beat: str) -> str:
        """Return a wording of one of the plot's templates for a beat, told by the hero if the hero tells the tale."""
        template = self.dice.choice(self.plot[beat])
        if self.hero.he == "they" and beat in ("try", "advice", "turn") and self.dice.chance(0.7):
            template = template.replace("<name>", "<he>").replace("<Name>", "<He>").replace("<whom>", "<him>")
        if self.hero.speaks_of_itself:
            template = re.sub(r"\b(they|They|them|their)\b", lambda found: TOGETHER[found[1]], template)
            template = re.sub(r"\b(both|all|[Oo]ne|neither) of them\b", r"\1 of us", template)
        return self.fill(template)

    def says(self, *, is_event: bool, plotted: float) -> tuple[str, bool]:
        """Return what the first sentence says of the hero, and whether it tells the problem.

        Args:
            is_event: whether it happens on one day.
            plotted: probability that it is one of the plot's own.

        Returns:
            The predicate, and whether the problem is told.
        """
        if self.dice.chance(plotted):
            lines = [line for line in self.plot["is"] if not (is_event and STATE.match(line.removeprefix("+")))]
            if lines:
                line = self.dice.choice(lines)
                return self.agree(self.fill(line.removeprefix("+"))), not line.startswith("+")
        lines = [line for line in table("openings")["did"] if not (is_event and HABIT.match(line))]
        return self.agree(insert(self.place_in(self.dice.choice(lines)), self.values)), False

    def agree(self, predicate: str) -> str:
        """Return a predicate that agrees with a plural hero."""
        return re.sub(r"^was\b", "were", predicate) if self.hero.is_plural else predicate

    def place_in(self, template: str) -> str:
        """Fill in the slots that stand for a table of openings: places, times, things."""
        openings = table("openings")

        def draw(found: re.Match[str]) -> str:
            wording = self.place_in(self.dice.choice(openings[found[1].lower()]))
            return capital(wording) if found[1][0].isupper() else wording

        return OPENING_SLOTS.sub(draw, choose(self.dice, template))

    def open(self) -> tuple[str, bool]:
        """Return the first sentence, and whether it tells the problem."""
        hero, dice = self.hero, self.dice
        openings = table("openings")
        while True:
            kind = list(FRAMES)[dice.weighted(list(FRAMES.values()))]
            frame = dice.choice(openings[kind])
            wants = set(re.findall(r"<(\w+)>", frame))
            if (wants & {"a_who", "A_who"} and not hero.a_who) or ("a_kind" in wants and not hero.kinds):
                continue
            if kind == "owned" and not hero.has_owner_form:
                continue
            if kind == "spoken" and (hero.is_plural or hero.speaks_of_itself):
                continue
            break
        is_event = bool(re.search(r"<[Oo]ne_day>|when|When|Last|Yesterday|, and <who>", frame))
        self.happens = "says" in wants or kind == "spoken"
        says, tells = self.says(is_event=is_event, plotted=0.5) if "says" in wants else ("", False)
        if "because" in wants:
            self.values["because"], tells = self.pick("because"), True
        who = dice.choice(hero.who)
        first = {
            "who": who, "Who": capital(who), "says": says,
            "first_whom": self.values["whom"] if hero.speaks_of_itself else who,
            "Whos": capital(self.values["his"] if hero.speaks_of_itself else owner(who)),
        }  # fmt: skip
        if hero.a_who:
            first |= {"a_who": dice.choice(hero.a_who)}
            first |= {"A_who": capital(first["a_who"])}
        if hero.kinds:
            first |= {"a_kind": dice.choice(hero.kinds)}
        text = insert(self.place_in(frame), self.values | first)
        return capital(text), tells

    def tell(self) -> str:
        """Return the tale, one line per paragraph."""
        dice = self.dice
        first, tells = self.open()
        sentences = [first]
        if not tells:
            problem = self.pick("problem")
            if EVENT.match(problem) and dice.chance(0.3):
                sentences.append(dice.choice(table("openings")["said_before_an_event"]))
                problem = capital(LINK.sub("", problem))
            elif not self.happens:
                problem = SEAM.sub("One day", problem)
            sentences.append(problem)
        if dice.chance(0.7):
            sentences.append(self.pick("detail"))
        middle = [self.pick("try")]
        if "meet" in self.plot:
            middle.append(self.pick("meet"))
        else:
            middle += [self.fill(dice.choice(MEETINGS)), self.fill(dice.choice(QUESTIONS))]
        self.paragraphs = [" ".join(sentences), " ".join(filter(None, middle))]
        advice, turn = self.pick("advice"), self.pick("turn")
        self.paragraphs += [advice, turn] if dice.chance(0.4) else [f"{advice} {turn}"]
        self.paragraphs.append(self.pick("end"))
        text = "\n".join(self.paragraphs)
        return re.sub(r"[«»]", '"', text)
