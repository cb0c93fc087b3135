"""What is said to tú, said to usted or ustedes: the forms of verbs that tell who is spoken to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple, get_args

from phrases import tables, verbs
from phrases.english import capital
from phrases.nouns import BY_NAME
from phrases.spanish import PLAIN, Tense, conjugate, imperative

AUXILIARIES = frozenset(
    ("acabar", "deber", "estar", "haber", "ir", "necesitar", "poder", "querer", "saber", "ser", "soler", "tener")
)
"""Verbs that the tables of what people do need not have."""
NOUNS = frozenset(
    ("ganas", "compras", "mejores", "intereses", "copias", "firmas", "flores", "fotos", "noticias", "tardes")
)
"""Words that are forms of tú, too, but not in these sentences."""
FAMILIAR = re.compile(r"\b(?:te|ti|t[uú]s?|contigo|tuy[oa]s?)\b", re.IGNORECASE)
"""What is left of tú when its verb is that of usted."""
ENCLITIC = re.compile(r"\b(\w+(?:[aeiíáé]r|ndo))te((?:l[aeo]s?)?)\b", re.IGNORECASE)
CLITICS = re.compile(r"(?:me|te|se|nos|lo|la|le|los|las|les)+$")
OF_ONE = re.compile(r"\b(?:er[ea]s|fuiste|ser[áí]a?s|est[aáu]\w+|sol[oa]|mism[oa])\b|, (?!por favor)", re.IGNORECASE)
"""What may agree with one person, or names one."""
PLEASES = re.compile(r"(?:^|(?<=¿))(no )?te (?=gust|encant|duele|interesa|apetece|molesta|queda|falta)", re.IGNORECASE)
BEFORE_VERB = r"(?:\b(?:no|ya|nunca|siempre|también|me|se|lo|la|le|nos|los|las|les) )*"
"""What stands between a subject and its verb."""


class Formal(NamedTuple):
    """What usted and ustedes have in place of a form of tú."""

    singular: str
    plural: str


@cache
def infinitives() -> frozenset[str]:
    """Return the verbs of the grammar, without -se."""
    return frozenset(one.removesuffix("se") for one in _all_infinitives())


@cache
def _all_infinitives() -> frozenset[str]:
    found = {verb.spanish for verb in (*verbs.TRANSITIVE, *verbs.INTRANSITIVE, *verbs.PEOPLE)} | AUXILIARIES
    for line in tables.VERB_PHRASES["phrases"]["table"].strip().splitlines():
        found.add(line.partition(" = ")[2].split()[0])
    return frozenset(one for one in found if one.removesuffix("se").endswith(("ar", "er", "ir", "ír")))


@cache
def forms(person: int) -> frozenset[str]:
    """Return all forms of a person, numbered as in `spanish.conjugate`."""
    return frozenset(conjugate(verb, tense, person) for verb in infinitives() for tense in get_args(Tense))


@cache
def formal_forms() -> Mapping[str, Formal]:
    """Return the forms that are of tú and of nothing else, and what usted and ustedes have in their place."""
    nouns = {noun.spanish for noun in BY_NAME.values()} | {
        one.spanish for words in tables.WORDS.values() for one in words
    }
    others = NOUNS.union(nouns, *(forms(person) for person in (0, 2, 3, 4)))
    others |= {f"{noun}{ending}" for noun in nouns for ending in ("s", "es")}
    return {
        conjugate(verb, tense, 1): Formal(conjugate(verb, tense, 2), conjugate(verb, tense, 4))
        for verb in sorted(infinitives())
        for tense in get_args(Tense)
        if conjugate(verb, tense, 1) not in others
    }


@cache
def _imperatives() -> frozenset[str]:
    return frozenset(imperative(verb).translate(PLAIN) for verb in infinitives())


def to_usted(said: str, *, plural: bool, named: bool) -> str:
    """Return what is said to tú as it is said to usted, or with `plural` to ustedes; as it is if that cannot be told.

    A statement names usted, since without it nobody knows who is meant, and a question does if `named`.
    """
    plural = plural and not OF_ONE.search(said)
    name = "ustedes" if plural else "usted"
    formal = PLEASES.sub(lambda found: _to_whom(found, name, asked="¿" in said), said)
    replaced: list[str] = []

    def exchange(found: re.Match[str]) -> str:
        form = formal_forms().get(found[2].lower())
        if form is None:
            return found[0]
        replaced.append(form[plural])
        text = f"{'se ' if found[1] else ''}{form[plural]}"
        return capital(text) if found[0][0].isupper() else text

    formal = re.sub(r"\b(te )?(\w+)", exchange, formal, flags=re.IGNORECASE)
    formal = ENCLITIC.sub(_with_se, formal)
    formal = re.sub(r"\b([Tt])u(s?)\b", lambda found: f"{'S' if found[1] == 'T' else 's'}u{found[2]}", formal)
    if FAMILIAR.search(formal) or ENCLITIC.search(formal) or _is_familiar(formal, replaced):
        return said
    if not replaced or name in formal.lower() or ("¿" in formal and not named):
        return formal
    verb = replaced[0]
    if "¿" in formal:
        whole = rf"{verb} \w+(?:[aeií]do|to|cho)" if verb in ("ha", "han", "había", "habían") else verb
        return re.sub(rf"\b({whole})\b", rf"\1 {name}", formal, count=1, flags=re.IGNORECASE)
    return re.sub(rf"{BEFORE_VERB}\b{verb}\b", lambda found: _named(found, name), formal, count=1, flags=re.IGNORECASE)


def _to_whom(found: re.Match[str], name: str, *, asked: bool) -> str:
    """Return le, or in a statement “a usted le”."""
    text = f"{found[1] or ''}{'les' if name == 'ustedes' else 'le'} ".lower()
    return capital(text) if asked else f"A {name} {text}"


def _named(found: re.Match[str], name: str) -> str:
    """Return a verb and what stands before it behind the name of who acts."""
    text = found[0]
    return f"{capital(name)} {text[0].lower()}{text[1:]}" if text[0].isupper() else f"{name} {text}"


def _with_se(found: re.Match[str]) -> str:
    """Return levantarse for levantarte, and poniéndoselo for poniéndotelo, where that is a reflexive verb."""
    base = found[1].lower()
    is_reflexive = f"{base}se" in _all_infinitives() or f"{base.translate(PLAIN)}se" in _all_infinitives()
    return f"{found[1]}se{found[2]}" if is_reflexive or base.endswith("ndo") else found[0]


def _is_familiar(formal: str, replaced: list[str]) -> bool:
    """Return whether a form of tú is left that may be something else, too, or an order."""
    words = re.findall(r"\w+", formal.lower())
    first = re.match(r"\W*(?:por favor, )?(\w+)", formal.lower())
    return (
        any(word in forms(1) and word not in NOUNS for word in words)
        or (
            first is not None
            and first[1] not in replaced
            and first[1].translate(PLAIN) in _imperatives()
            and "¿" not in formal
        )
        or any(CLITICS.sub("", word).translate(PLAIN) in _imperatives() for word in words if CLITICS.search(word))
    )
