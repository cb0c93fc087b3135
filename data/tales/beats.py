"""Beats shared by many plots: openings, the hero's mood, advice, endings."""

from __future__ import annotations

from tales.telling import Tale


def open_with(tale: Tale, wish: str) -> None:
    """Introduce the hero, the home and the wish; `wish` continues “wanted”."""
    tale.let(wish=wish)
    kind = tale.dice.below(7)
    if kind == 3 and " had " in wish:
        kind = 0
    if kind == 0:
        tale.say(
            "(Once there was|There was once|Once upon a time there was) <hero> (called|named) <name>, who lived <home>."
        )
        tale.say(
            "(All <his> life|For a long time|As long as <he> could remember), <name> had wanted <wish>.",
            "(There was one thing <he> wanted|<name> had one wish|<He> had only one wish): <wish>.",
        )
    elif kind == 1:
        tale.say("<name> was <hero> who lived <home>.", "<name>, <hero>, lived <home>.")
        tale.say(
            "<He> (wanted|longed|wished with all <his> heart) <wish>.",
            "(Every night|Each evening) <he> fell asleep with the same wish: <wish>.",
        )
    elif kind == 2:
        tale.say("(More than anything in the world|Above all else|With all <his> heart), <name> wanted <wish>.")
        tale.say("<He> was <hero> and lived <home>.", "<He> was <hero>, and <his> home was <home>.")
    elif kind == 3:
        tale.speaks(tale.hero, "I (want|wish|would love) <wish>.", how=("said", "sighed", "whispered"), alone=False)
        tale.say(
            "<He> was <hero> who lived <home>.",
            "<He> said it (every day|at breakfast|to anyone who would listen|to the moon).",
        )
    elif kind == 4:
        tale.say(
            "<One_day>, <hero> called <name> woke up with a (plan|wish|thought): <wish>.",
            "<One_day>, <name>, <hero>, sat up in bed and knew what <he> wanted: <wish>.",
        )
        tale.say("<name> lived <home>.", "<He> lived <home>.")
    elif kind == 5:
        tale.say("<home> lived <hero> (called|by the name of|named) <name>.")
        tale.say(
            "<name> wanted <wish>, (and nothing else would do|and thought of little else|though <he> told nobody).",
            "What <name> wanted most was <wish>.",
        )
    else:
        tale.say(
            "Everyone (knew|had heard of) <name>, the <kind> who wanted <wish>.",
            "This is the (tale|story) of <name>, <hero> who wanted <wish>.",
        )
        tale.maybe(0.6, "<He> lived <home>.")


def introduce(tale: Tale) -> None:
    """Introduce the hero and the home, in plots whose wish arises later."""
    tale.say(
        "(Once there was|There was once|Long ago there was) <hero> (called|named) <name>, who lived <home>.",
        "<name> was <hero> who lived <home>.",
        "<home> lived <hero> (called|named|by the name of) <name>.",
        "<name>, <hero>, lived <home> (and liked it there|and knew everyone around|and had done so all <his> life).",
        "Do you know <name>? <He> is <hero> and lives <home>, and this happened to <him>.",
    )


def feels_low(tale: Tale) -> None:
    """Add a moment of sorrow; brief tales omit it."""
    if tale.is_brief:
        return
    tale.say(
        "<name> (sat down on a stone|leaned against a tree|hid <his> face) and (sighed|sniffed|felt very small).",
        "A (big|hot|slow) tear rolled down <his> nose.",
        "<His> heart (sank|felt as heavy as a wet blanket|grew heavy).",
        "<name> (felt like crying|did not know what to do|could think of nothing else|swallowed hard).",
        "For a while <he> (only stared at the ground|said nothing at all|listened to the rain|kicked at the leaves).",
    )


def asks_friend(tale: Tale) -> None:
    """Let the friend come by and ask what is wrong."""
    tale.say(
        "(Just then|A little later|Soon|After a while) <the_friend> came (by|along|down the path|round the corner).",
        "<the_friend>, who lived (next door|across the way|not far off), (heard|saw) <him> and came"
        " (over|closer|running).",
        "It was <the_friend> who found <him> (there|like that|an hour later).",
    )
    tale.speaks(
        tale.friend,
        "What is the matter?",
        "Why do you look so glum?",
        "What is wrong, <name>?",
        "Can I help?",
        "Whatever has happened?",
        "Why the long face?",
    )
    tale.say(
        "<name> told <fhim> (everything|the whole story|all about it|what had happened).",
        "<name> explained, (sniffing|in one long breath|with a small voice).",
    )


def thanks(tale: Tale) -> None:
    """Let one of the friends thank the other."""
    gladly = ("said", "laughed", "said")
    if tale.dice.chance(0.5):
        tale.speaks(
            tale.hero,
            "Thank you, <fname>!",
            "I could not have done it without you.",
            "You are the best friend there is.",
            "Thank you. I will not forget it.",
            "Thank you, <fname>. Come to supper!",
            how=gladly,
        )
    else:
        tale.speaks(
            tale.friend,
            "That is what friends are for.",
            "It was nothing.",
            "We did it together.",
            "I would do it again.",
            "I am glad. Now let us eat something.",
            how=gladly,
        )


def close(tale: Tale) -> None:
    """Add a closing sentence that suits any happy ending."""
    tale.maybe(
        0.6,
        "That night <name> (slept soundly|slept like a stone|dreamed of it|fell asleep smiling).",
        "And (to this day|ever since), <name> (smiles when <he> thinks of it|tells the story to anyone who asks).",
        "<name> had seldom been so (happy|content|glad|proud).",
        "(The stars came out one by one|The moon rose over the roofs|The crickets sang), and <name> was"
        " (happy|content).",
        "<name> hummed all the way home.",
        "And that, said <name>, was the best (day|part of the year|thing that had happened in a long time).",
        "Supper tasted better than ever, <name> thought.",
        "From then on <name> and <fname> were hardly ever seen apart.",
        "<name> and <fname> laughed until their bellies hurt.",
    )
