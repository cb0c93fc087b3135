"""`/samples`, `/compare` and `/pick`: several answers to one prompt, and going on from one of them."""

import copy
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tinychat.commands.registry import Suggestion, command, complete_models, parse_number, unquote
from tinychat.commands.results import Answers, Message, Result
from tinychat.commands.settings import values_of
from tinychat.config.option import Option
from tinychat.config.settings import PENALTIES, SAMPLING, SETTINGS
from tinychat.errors import UsageError
from tinychat.generate.prompts import fresh_seed
from tinychat.session.comparison import Comparison, Variant
from tinychat.session.open_model import OpenModel
from tinychat.session.session import Session

FEWEST, MOST = 2, 8
"""answers at once"""
MOST_MODELS = 3
ASSIGNED = re.compile(r"(?P<name>[A-Za-z][\w-]*)=(?P<values>\S*)\s*")
GREEDY = re.compile(r"greedy(\s+|$)")
EXAMPLE = "for example `/compare temperature=0.2,0.8,1.4`"
ALL_THE_SAME = ("at temperature 0 all answers are the same", "/sample draws again, or set a temperature")


@command("samples", "talk", "several answers", usage="N [PROMPT]", example="/samples 4 hello there")
def samples(session: Session, text: str) -> Result:
    """Answer a prompt N times at once, from different seeds; without a prompt, the last one. `/pick` takes one.

    A seed that is set is the first one's, and the others have those after it.
    """
    count, _, prompt = text.partition(" ")
    problem = f"/samples needs a number of answers from {FEWEST} to {MOST}" + (f", not {count!r}" if count else "")
    error = UsageError(problem, "for example `/samples 4`, or `/samples 4 hello there`")
    number = parse_number(count, FEWEST, MOST, error)
    settings = session.settings.current
    if settings.greedy:
        raise UsageError(*ALL_THE_SAME)
    first = settings.seed
    seeds = [fresh_seed() if first is None else first + index for index in range(number)]
    return _compare(session, prompt, [Variant(f"seed {seed}", session.model, settings, seed) for seed in seeds])


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Names of settings, and of models; behind `NAME=`, values that are not there yet."""
    name, equals, values = words[-1].partition("=")
    if equals:
        *taken, _ = values.split(",")
        offered: Iterable[Suggestion] = ()
        if name == "model":
            offered = complete_models(session, [""])
        elif (key := name.replace("-", "_")) in SAMPLING:
            offered = values_of(session, SETTINGS[key])
        begun = "".join(f"{one}," for one in taken)
        yield from (Suggestion(f"{name}={begun}{one.text}", one.about) for one in offered if one.text not in taken)
    elif len(words) == 1 or "=" in words[-2]:
        for name in SAMPLING:
            yield Suggestion(SETTINGS[name].spelling + "=", SETTINGS[name].help)
        yield Suggestion("model=", "answers of several models")
        yield Suggestion("greedy", "the likeliest tokens")


@command(
    "compare", "talk", "settings or models", usage="NAME=VALUE,… [PROMPT]",
    example="/compare temperature=0.2,0.8,1.4 greedy", complete=_complete,
)  # fmt: skip
def compare(session: Session, text: str) -> Result:
    """Answer a prompt with several values of a setting at once, from the same seed, or by several models.

    NAME is that of a setting by which tokens are chosen, or `model`. There may be several, and `greedy`, each value in
    a column of its own; without a prompt, the last one is answered again. `/pick` takes one of the answers.
    """
    given, greedy, prompt = _parse(text)
    settings = session.settings.current
    seed = fresh_seed() if settings.seed is None else settings.seed
    if "model" in given:
        if len(given) > 1 or greedy:
            raise UsageError("models and settings are compared one after the other", "for example `/compare model=a,b`")
        return _compare(session, prompt, _models(session, given["model"], seed))
    variants = [
        Variant(_head(setting, value), session.model, replace(settings, **{setting.name: value}), seed)
        for name, values in given.items()
        for setting in [_sampling(name)]
        for value in map(setting.parse, values)
    ]
    if greedy:
        variants.append(Variant("greedy", session.model, replace(settings, temperature=0), seed))
    if not FEWEST <= len(variants) <= MOST:
        raise UsageError(f"/compare takes {FEWEST} to {MOST} values, not {len(variants)}", EXAMPLE)
    kinds = {(one.settings.greedy, *(getattr(one.settings, name) for name in PENALTIES)) for one in variants}
    if len(kinds) == 1 and variants[0].settings.greedy:
        raise UsageError(*ALL_THE_SAME)
    return _compare(session, prompt, variants)


def _complete_pick(session: Session, words: list[str]) -> Iterator[Suggestion]:
    if session.comparison is not None and len(words) == 1:
        for number, variant in enumerate(session.comparison.variants, start=1):
            yield Suggestion(str(number), variant.name)


@command("pick", "talk", "one to go on from", usage="N", example="/pick 2", complete=_complete_pick)
def pick(session: Session, text: str) -> Result:
    """Go on from one of the answers of `/samples` or `/compare`: it becomes the newest turn of the conversation.

    Another number takes another one instead. Where models were compared, the one chosen answers from now on.
    """
    if session.comparison is None:
        raise UsageError("there are no answers to choose from", "/samples and /compare make some")
    most = len(session.comparison.variants)
    error = UsageError(f"/pick needs the number of an answer, from 1 to {most}", "for example `/pick 1`")
    number = parse_number(text, 0, math.inf, error)
    before = session.model.info.folder
    variant = session.pick(number)
    is_new = session.model.info.folder != before
    return Message(
        (f"the conversation goes on from answer {number}: {variant.name}",),
        (f"{session.model.name} answers from now on",) if is_new else (),
    )


def _compare(session: Session, prompt: str, variants: list[Variant]) -> Answers:
    """Lets the session hold the answers to come; an empty prompt is the last one, at its index."""
    prompt, index = unquote(prompt.strip()), len(session.turns)
    if not prompt:
        if not session.turns:
            raise UsageError("there is no prompt yet", "type one first, or put it behind the command")
        prompt, index = session.turns[-1].prompt, index - 1
    session.comparison = Comparison(session.conversation, prompt, index, variants, session.runs)
    heads = tuple(f"{number} · {variant.name}" for number, variant in enumerate(variants, start=1))
    return Answers(heads, session.comparison.answer)


def _parse(text: str) -> tuple[dict[str, list[str]], bool, str]:
    """The values of each name, whether `greedy` is one more, and the prompt: what begins where the others end."""
    given: dict[str, list[str]] = {}
    greedy = False
    while True:
        if (found := ASSIGNED.match(text)) and (not given or found["name"].lower() == "model" or _find(found["name"])):
            given.setdefault(found["name"].lower(), []).extend(filter(None, found["values"].split(",")))
        elif found := GREEDY.match(text):
            greedy = True
        else:
            break
        text = text[found.end() :]
    if not given:
        raise UsageError("/compare needs what to compare", f"{EXAMPLE}, or `/compare model=NAME,NAME`")
    return given, greedy, text


def _find(name: str) -> Option | None:
    try:
        return SETTINGS.find(name)
    except UsageError:
        return None


def _sampling(name: str) -> Option:
    """The setting of that name, which must be one of those by which tokens are chosen."""
    known, setting = ", ".join(SETTINGS[one].spelling for one in SAMPLING), _find(name)
    if setting is None:
        raise UsageError(f"there is no setting {name!r}", f"compared are {known} and model")
    if setting.name not in SAMPLING:
        raise UsageError(f"{setting.spelling} does not say how tokens are chosen", f"compared are {known} and model")
    return setting


def _head(setting: Option, value: object) -> str:
    """`temp 0.2`."""
    if setting.name == "temperature" and value == 0:
        return "greedy"
    return (setting.toolbar(value) if setting.toolbar else "") or f"{setting.spelling} {setting.show(value)}"


def _models(session: Session, names: list[str], seed: int) -> list[Variant]:
    """A variant for each model: the open one as it is; others with settings of their own."""
    if not FEWEST <= len(set(names)) == len(names) <= MOST_MODELS:
        raise UsageError(
            f"/compare takes {FEWEST} to {MOST_MODELS} different models, not {','.join(names)!r}",
            "for example `/compare model=smalltalk,NAME`; /models lists them",
        )
    variants: list[Variant] = []
    for name in names:
        if session.info is not None and name in (session.info.name, str(session.info.folder)):
            variants.append(Variant(name, session.model, session.settings.current, seed))
        else:
            settings = copy.deepcopy(session.settings)
            model = OpenModel(name, settings)
            variants.append(Variant(name, model, settings.current, seed, closes_model=True))
    return variants


COMMANDS = (samples, compare, pick)
