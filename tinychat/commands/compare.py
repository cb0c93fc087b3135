"""`/samples`, `/compare` and `/pick`: several answers to one prompt, and continuing from one of them."""

import copy
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tinychat.commands.models import complete_models
from tinychat.commands.registry import Suggestion, command, first_word, parse_number, unquote
from tinychat.commands.results import Message, ParallelAnswers, Result
from tinychat.commands.settings import suggest_values
from tinychat.config.option import Option
from tinychat.config.settings import ALSO_GREEDY, SAMPLING, SETTINGS
from tinychat.errors import UsageError
from tinychat.generate.engine import fresh_seed
from tinychat.session.comparison import Comparison, Variant
from tinychat.session.open_model import OpenModel
from tinychat.session.session import Session
from tinychat.store.names import fold

MIN_ANSWERS, MAX_ANSWERS, MAX_MODELS = 2, 8, 3
ASSIGNMENT = re.compile(
    r"(?P<name>[A-Za-z][\w-]*)=(?P<values>(?:\\ |\s*,\s*+(?![\w-]+=)|\S)*)\s*"
)  # after a comma, the next value may follow a space, unless that is another setting
GREEDY = re.compile(r"greedy(\s+|$)")
EXAMPLE = "for example `/compare temperature=0.2,0.8,1.4`"
SAME_ANSWERS = ("at temperature 0 all answers are the same", "/sample draws again, or set a temperature")


@command("samples", "talk", "several answers", usage="N [PROMPT]", example="/samples 4 hello there")
def samples(session: Session, text: str) -> Result:
    """Answer a prompt N times side by side, or the last one, with different seeds; `/pick` takes one.

    If a seed is set, the answers use it and the seeds that follow it.
    """
    count, _, prompt = text.partition(" ")
    typed = f", not {count!r}" if count else ""
    problem = f"/samples needs a number of answers from {MIN_ANSWERS} to {MAX_ANSWERS}{typed}"
    error = UsageError(problem, "for example `/samples 4`, or `/samples 4 hello there`")
    number = parse_number(count, MIN_ANSWERS, MAX_ANSWERS, error)
    settings = session.settings.current
    if settings.greedy:
        raise UsageError(*SAME_ANSWERS)
    seeds = [fresh_seed() if settings.seed is None else settings.seed + index for index in range(number)]
    return _compare(session, prompt, [Variant(f"seed {seed}", session.model, settings, seed) for seed in seeds])


def _complete(session: Session, words: list[str]) -> Iterator[Suggestion]:
    """Complete the name of a setting, `model` or `greedy`; after `NAME=`, values not yet typed."""
    name, equals, values = words[-1].partition("=")
    if equals:
        *typed, _ = values.split(",")
        suggestions: Iterable[Suggestion] = ()
        if name == "model":
            suggestions = complete_models(session, [""])
        elif (key := name.replace("-", "_")) in SAMPLING:
            suggestions = suggest_values(session, SETTINGS[key])
        prefix = "".join(f"{value}," for value in typed)
        yield from (Suggestion(f"{name}={prefix}{one.text}", one.about) for one in suggestions if one.text not in typed)
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
    """Answer a prompt with several values of a setting, or with several models, side by side with one seed.

    NAME is a sampling setting or `model`. Several settings and `greedy` may be combined; each value gets a column.
    Without a prompt, the last one is answered; one that begins with `greedy` is put in quotation marks. `/pick` takes
    one of the answers.
    """
    values, greedy, prompt = _parse(text)
    settings = session.settings.current
    seed = fresh_seed() if settings.seed is None else settings.seed
    if "model" in values:
        if len(values) > 1 or greedy:
            raise UsageError("models and settings are compared one after the other", "for example `/compare model=a,b`")
        return _compare(session, prompt, _model_variants(session, values["model"], seed))
    variants = [
        Variant(_label(setting, value), session.model, replace(settings, **{setting.name: value}), seed)
        for name, texts in values.items()
        for setting in [_sampling_setting(name)]
        for value in map(setting.parse, texts)
    ]
    if greedy:
        variants.append(Variant("greedy", session.model, replace(settings, temperature=0), seed))
    if not MIN_ANSWERS <= len(variants) <= MAX_ANSWERS:
        raise UsageError(f"/compare takes {MIN_ANSWERS} to {MAX_ANSWERS} values, not {len(variants)}", EXAMPLE)
    distinct = {(one.settings.greedy, *(getattr(one.settings, name) for name in ALSO_GREEDY)) for one in variants}
    if len(distinct) == 1 and variants[0].settings.greedy:
        raise UsageError(*SAME_ANSWERS)
    return _compare(session, prompt, variants)


@first_word
def _complete_pick(session: Session, words: list[str]) -> Iterator[Suggestion]:
    if session.comparison is not None:
        for number, variant in enumerate(session.comparison.variants, start=1):
            yield Suggestion(str(number), variant.name)


@command("pick", "talk", "one to go on from", usage="N", example="/pick 2", complete=_complete_pick)
def pick(session: Session, text: str) -> Result:
    """Continue from an answer of `/samples` or `/compare`: it becomes the newest turn of the conversation.

    Picking again replaces that turn. If models were compared, the picked one answers from now on.
    """
    if session.comparison is None:
        raise UsageError("there are no answers to choose from", "/samples and /compare make some")
    count = len(session.comparison.variants)
    error = UsageError(f"/pick needs the number of an answer, from 1 to {count}", "for example `/pick 1`")
    number = parse_number(text, 0, math.inf, error)
    folder = session.model.info.folder
    variant = session.pick(number)
    notes = () if session.model.info.folder == folder else (f"{session.model.name} answers from now on",)
    return Message((f"the conversation goes on from answer {number}: {variant.name}",), notes)


def _compare(session: Session, prompt: str, variants: list[Variant]) -> ParallelAnswers:
    """Begin a comparison in the session; an empty prompt is the last one, at its index."""
    prompt, index = unquote(prompt.strip()), len(session.turns)
    if not prompt:
        if not session.turns:
            raise UsageError("there is no prompt yet", "type one first, or put it after the command")
        prompt, index = session.turns[-1].prompt, index - 1
    session.comparison = Comparison(session.conversation, prompt, index, variants, session.runs)
    labels = tuple(f"{number} · {variant.name}" for number, variant in enumerate(variants, start=1))
    return ParallelAnswers(labels, session.comparison.answer)


def _parse(text: str) -> tuple[dict[str, list[str]], bool, str]:
    """Return the values of each name, whether `greedy` is among them, and the prompt that follows."""
    values: dict[str, list[str]] = {}
    greedy = False
    while True:
        match = ASSIGNMENT.match(text)
        if match and (not values or match["name"].lower() == "model" or _find(match["name"])):
            name, found = match["name"].lower(), _split(match["values"])
            if name != "model" and "greedy" in found:
                greedy, found = True, [value for value in found if value != "greedy"]
            values.setdefault(name, []).extend(found)
        elif match := GREEDY.match(text):
            greedy = True
        else:
            break
        text = text[match.end() :]
    if not values:
        raise UsageError("/compare needs what to compare", f"{EXAMPLE}, or `/compare model=NAME,NAME`")
    return values, greedy, text


def _split(values: str) -> list[str]:
    """Split values at their commas, which may have spaces around them; a space in a name is written `\\ `."""
    return [value.replace("\\ ", " ") for value in map(str.strip, values.split(",")) if value]


def _find(name: str) -> Option | None:
    try:
        return SETTINGS.find(name)
    except UsageError:
        return None


def _sampling_setting(name: str) -> Option:
    """Return the sampling setting of a name, or raise a UsageError."""
    setting = _find(name)
    if setting is not None and setting.name in SAMPLING:
        return setting
    known = ", ".join(SETTINGS[one].spelling for one in SAMPLING)
    problem = f"{setting.spelling} does not say how tokens are chosen" if setting else f"there is no setting {name!r}"
    raise UsageError(problem, f"/compare takes {known} and model")


def _label(setting: Option, value: object) -> str:
    """Return the label of a column: `temp 0.2`."""
    if setting.name == "temperature" and value == 0:
        return "greedy"
    return (setting.toolbar(value) if setting.toolbar else "") or f"{setting.spelling} {setting.show(value)}"


def _model_variants(session: Session, names: list[str], seed: int) -> list[Variant]:
    """Return a variant for each model; models other than the open one get a copy of the settings."""
    if not MIN_ANSWERS <= len(set(map(fold, names))) == len(names) <= MAX_MODELS:
        problem = f"/compare takes {MIN_ANSWERS} to {MAX_MODELS} different models, not {','.join(names)!r}"
        raise UsageError(problem, "for example `/compare model=smalltalk,NAME`; /models lists them")
    variants: list[Variant] = []
    for name in names:
        info = session.info
        is_open = info is not None and (fold(name) == fold(info.name) or name == str(info.folder))
        settings = session.settings if is_open else copy.deepcopy(session.settings)
        model = session.model if is_open else OpenModel(name, settings)
        variants.append(Variant(name, model, settings.current, seed, closes_model=not is_open))
    return variants


COMMANDS = (samples, compare, pick)
