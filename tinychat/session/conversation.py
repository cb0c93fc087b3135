"""What has been said: a tree of turns, of which one path is the conversation at hand."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tinychat.config.settings import Settings
from tinychat.errors import UsageError
from tinychat.events import Finished, Record, Token


@dataclass
class Turn:
    """A prompt and what was answered to it."""

    prompt: str
    prompt_ids: list[int] = field(default_factory=list)
    tokens: list[Token] = field(default_factory=list)
    finished: Finished | None = None
    given: str | None = None
    """the answer of an opened transcript, of which no tokens are known"""
    model: str = ""
    """the name or path of the model that answered; empty where it is not known"""
    settings: Settings | None = None
    """what the answer was begun with; None where it is not known"""
    why_not_reproducible: str = ""
    """why the same call would not make the answer again; empty where it would"""
    changes: list[tuple[int, Settings]] = field(default_factory=list)
    """the settings that tokens were drawn with, each behind the place (from 0) of the first of these tokens"""
    parent: "Turn | None" = field(default=None, compare=False, repr=False)
    """the turn that this one follows; None at the beginning of a conversation"""

    @property
    def answer(self) -> str:
        """The text so far."""
        return (self.given or "") + "".join(token.text for token in self.tokens)

    def record(self, record: Record, settings: Settings) -> None:
        """Add a record of the answer, made with these settings.

        Thousands of tokens come in a second, nearly always with the same settings object: it is compared by identity
        first, and its fields are compared only once for each object.
        """
        if isinstance(record, Finished):
            self.finished = record
            if record.reason == "interrupted":
                self.why_not_reproducible = self.why_not_reproducible or "it was stopped"
        is_known = bool(self.changes) and self.changes[-1][1] is settings
        if not (is_known or self.why_not_reproducible or self._makes_the_same(settings)):
            self.why_not_reproducible = "its settings changed meanwhile"
        if isinstance(record, Token):
            if not is_known:
                self._draw_with(settings)
            self.tokens.append(record)

    def _makes_the_same(self, settings: Settings) -> bool:
        """Return whether tokens are chosen as they were when the answer began: pace and seed do not count."""
        begun = self.settings
        if begun is None or begun is settings:
            return begun is settings
        return replace(settings, slow=begun.slow, seed=begun.seed) == begun

    def _draw_with(self, settings: Settings) -> None:
        """Note what the next tokens are drawn with."""
        if self.changes and self.changes[-1][1] == settings:
            self.changes[-1] = (self.changes[-1][0], settings)  # equal: only the object to compare with is new
        else:
            self.changes.append((len(self.tokens), settings))

    def settings_at(self, index: int) -> Settings | None:
        """What the token at a place (from 0) of the answer was drawn with; None where it is not known."""
        return next((settings for first, settings in reversed(self.changes) if first <= index), self.settings)

    def path(self) -> "list[Turn]":
        """From the beginning of the conversation to this turn."""
        path = [self]
        while (parent := path[-1].parent) is not None:
            path.append(parent)
        return path[::-1]


class Conversation:
    """Turns that follow turns; what comes next follows the one at hand, or begins anew where there is none."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self.all: list[Turn] = []
        """in the order in which they were begun; the number of a turn is its place here, the first is 1"""
        self.here: Turn | None = None
        for turn in turns:
            self.add(turn)

    @property
    def turns(self) -> list[Turn]:
        """What has been said on the way to where the conversation stands."""
        return self.here.path() if self.here else []

    def add(self, turn: Turn) -> None:
        """Goes on with a new turn from where the conversation stands."""
        turn.parent = self.here
        self.all.append(turn)
        self.here = turn

    def back(self) -> Turn | None:
        """Goes to before the newest turn, which stays in the tree; returns it, None where there is none."""
        turn = self.here
        if turn is not None:
            self.here = turn.parent
        return turn

    def go_to(self, number: int) -> Turn:
        """Goes to the turn of that number: what is said next follows it.

        Raises:
            UsageError: there is none.
        """
        if not 1 <= number <= len(self.all):
            raise UsageError(
                f"there is no turn {number}", f"/tree shows turns 1 to {len(self.all)}" if self.all else "none yet"
            )
        self.here = self.all[number - 1]
        return self.here

    def number(self, turn: Turn) -> int:
        """Of a turn; the first is 1."""
        return next(number for number, one in enumerate(self.all, 1) if one is turn)

    def children(self, turn: Turn | None) -> list[Turn]:
        """What follows a turn, or begins a conversation, in the order in which it was said."""
        return [one for one in self.all if one.parent is turn]
