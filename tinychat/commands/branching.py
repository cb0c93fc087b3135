"""`/branch`, `/tree` and `/goto`: the conversation as a tree, in which nothing that was said is lost."""

import re
from collections.abc import Iterator
from functools import partial

from tinychat.commands.arguments import unquote
from tinychat.commands.command import Suggestion, command
from tinychat.commands.results import Answer, Message, Outline, OutlineRow, Result
from tinychat.conversation import Conversation, Turn
from tinychat.errors import UsageError
from tinychat.session import Session
from tinychat.textutil import count, shorten

EXAMPLE = 'for example `/branch 5 "blue"`; `/why` shows the tokens by their numbers'
LONGEST_PROMPT = 36
"""characters of a prompt in a row of the tree"""
NUMBER_AND_TEXT = re.compile(r"(?P<number>-?\d+)(?:\s+(?P<text>.+))?\Z", re.DOTALL)


def token_place(text: str, count: int, name: str) -> int:
    """Which token of an answer is meant, from 0: 1 is the first, -1 the last, nothing the last.

    Raises:
        UsageError: there is no such token.
    """
    try:
        number = int(text or count)
    except ValueError:
        number = 0
    if number < 0:
        number += count + 1
    if not 1 <= number <= count:
        raise UsageError(f"/{name} takes the number of a token, from 1 to {count}, not {text!r}")
    return number - 1


def branch_at(session: Session, turn: Turn, place: int, instead: list[int]) -> Answer:
    """Goes on from an answer in which other tokens stand at a place (from 0)."""
    session.conversation.here = turn
    said = (turn.given or "") + "".join(token.text for token in turn.tokens[:place])
    return Answer(partial(session.branch, place, instead), said.rpartition("\n")[2])


@command("branch", "talk", "with other words", usage='N "TEXT"', example='/branch 5 "blue"')
def branch(session: Session, text: str) -> Result:
    """Go on from the Nth token of the last answer with another text in its place.

    What was said before stays, as a branch of its own: `/tree` shows both, `/goto` returns. Enter on a token that
    `/why` shows does the same.
    """
    turn = session.turns[-1] if session.turns else None
    if turn is None or not turn.tokens:
        raise UsageError("there is no answer to branch from", "type a prompt first")
    found = NUMBER_AND_TEXT.match(text)
    if found is None or not (instead := unquote(found["text"] or "")):
        raise UsageError(f"/branch needs the number of a token and a text, not {text!r}", EXAMPLE)
    place = token_place(found["number"], len(turn.tokens), "branch")
    if unknown := session.reader.unknown(instead):
        raise UsageError(f"{session.model.name} does not know {' '.join(map(repr, unknown))}", "use other characters")
    return branch_at(session, turn, place, _ids(session, instead))


def _ids(session: Session, text: str) -> list[int]:
    """The token that looks like the text, as `/why` shows it; else those into which the text is cut."""
    tokenizer = session.tokenizer
    same = next((id for id in range(tokenizer.vocab_size) if tokenizer.token_text(id) == text), None)
    return [same] if same is not None else list(tokenizer.encode(text))


@command("tree", "talk", "all that was said")
def tree(session: Session, text: str) -> Result:
    """The conversation with all its branches: what `/retry`, `/undo`, `/edit`, `/branch` and `/pick` left aside too."""
    conversation = session.conversation
    if not conversation.all:
        raise UsageError("nothing has been said yet", "type a prompt first")
    path = {id(turn) for turn in conversation.turns}
    rows = tuple(
        OutlineRow(prefix, f"{conversation.number(turn)}  {_brief(turn)}", turn is conversation.here, id(turn) in path)
        for prefix, turn in _walk(conversation, None, "")
    )
    here = "" if conversation.here else "before the first turn · "
    return Outline(rows, (f"{here}/goto N goes to a turn, and on from there",))


def _walk(conversation: Conversation, turn: Turn | None, indent: str) -> Iterator[tuple[str, Turn]]:
    """What follows a turn, each with the lines before it; what has no siblings stands flat under what it follows."""
    children = conversation.children(turn)
    while len(children) == 1:
        yield indent, children[0]
        children = conversation.children(children[0])
    for child in children:
        last = child is children[-1]
        yield indent + ("└─ " if last else "├─ "), child
        yield from _walk(conversation, child, indent + ("   " if last else "│  "))


def _brief(turn: Turn) -> str:
    return f"{shorten(turn.prompt, LONGEST_PROMPT)} → {turn.answer}"


def _complete_goto(session: Session, words: list[str]) -> Iterator[Suggestion]:
    if len(words) == 1:
        for number, turn in enumerate(session.conversation.all, start=1):
            yield Suggestion(str(number), _brief(turn))


@command("goto", "talk", "to a turn of it", usage="N", example="/goto 2", complete=_complete_goto)
def goto(session: Session, text: str) -> Result:
    """Go to a turn of the conversation by its number in `/tree`; what is said next follows it.

    0 is before the first turn.
    """
    conversation = session.conversation
    if not text.isdecimal():
        raise UsageError(f"/goto needs the number of a turn, not {text!r}", "/tree shows them")
    if text == "0":
        conversation.here = None
        return Message(("before the first turn",))
    turn = conversation.go_to(int(text))
    before = len(conversation.turns) - 1
    return Message((f"› {turn.prompt}", turn.answer), (f"turn {text}, after {count(before, 'other')}",))


COMMANDS = (branch, tree, goto)
