"""Plots about things: losing, breaking, giving, quarrelling and discovering."""

from __future__ import annotations

from tales import beats, cast
from tales.telling import Tale

LARGE = ("walking stick", "patchwork blanket", "little drum", "picture book", "blue kite", "music box")
NARROW = ("in its nest", "on the post", "under the fern", "between the stones", "in the bucket")
WAYS = (
    "Let us walk the whole way again. Slowly, this time.",
    "When did you see it last? We will start there.",
    "Four eyes see more than two.",
    "We could ask everyone we meet.",
    "Close your eyes and think. Where did you run, where did you sit?",
    "First a biscuit, then we search. Nobody finds things on an empty stomach.",
    "You look low and I will look high.",
)


def lost(tale: Tale) -> None:
    """Tell how a treasured thing is lost, searched for and found."""
    thing, spot = tale.draw("lost", "treasure")["thing"], tale.draw("lost", "spot")["spot"]
    while thing in LARGE and spot in NARROW:
        spot = tale.draw("lost", "spot")["spot"]
    tale.record(thing, spot)
    one, two = tale.dice.sample(cast.PLACES, 2)
    tale.let(here=one, there=two)
    beats.introduce(tale)
    tale.say(
        "<His> (greatest|dearest) treasure was a <thing>: <why>.",
        "<He> owned a <thing> and loved it, for <why>.",
        "<He> never went out without <his> <thing>, because <why>.",
    )
    tale.say(
        "<One_day>, it was gone.",
        "<One_day>, <he> reached for it, and it was not there.",
        "But <one_day>, the <thing> (was nowhere to be found|had vanished).",
    )
    tale.paragraph()
    tale.say(
        "<name> looked (near|behind|all around) <here>, but found only (a snail|some feathers|an old nail|a puddle).",
        "<He> searched at <here> and turned over every (leaf|stone), but in vain.",
        "It was not at <here>, and it was not (at home|under the bed|in any pocket) either.",
    )
    tale.maybe(0.5, "<name> wanted nothing but to have it back.", "Without it the day seemed grey.")
    if tale.dice.chance(0.5):
        beats.feels_low(tale)
    beats.asks_friend(tale)
    tale.speaks(tale.friend, tale.pick(WAYS), how=("said",))
    tale.say(
        "So they set out together, past <there>.",
        "Together they went along (the path|the wall) to <there>.",
        "They began at <there>.",
    )
    tale.say(
        "(Suddenly|At last), <sign>, and <name> (stopped|held <his> breath|pricked up <his> ears).",
        "They were about to give up when <sign>.",
    )
    tale.say(
        "And (there|right there), <spot>, lay the <thing>!",
        "The <thing> was <spot>, (a little damp|dusty|quite unhurt).",
        "(Who would have thought it|What a joy)! There, <spot>, was the <thing>.",
    )
    tale.paragraph()
    if tale.dice.chance(0.5):
        beats.thanks(tale)
    tale.say(
        "<name> (tied a long string to|wrote <his> name on|sewed a little pocket for) the <thing>, so that it"
        " could never be"
        " lost again.",
        "<name> carried the <thing> home (as if it were made of glass|with both arms around it).",
        "From that day <name> looked after the <thing> twice as well, and <fname> was allowed to borrow it on Sundays.",
    )
    beats.close(tale)


def mended(tale: Tale) -> None:
    """Tell how a mistake is first hidden, then admitted and mended."""
    tale.record("mended", tale.draw("mended", "mistake")["what"], tale.hero.name)
    beats.introduce(tale)
    tale.say(
        "<One_day>, <name> <how>.",
        "Now <one_day>, <he> <how>.",
        "It was an accident: <one_day>, in a hurry as ever, <he> <how>.",
    )
    tale.say("Nobody had seen it.", "There was nobody about.", "<He> looked round. (Nobody|Not a soul) had noticed.")
    tale.say(
        "<name> (ran away|hid behind the shed|crept under the bed) and hoped that nobody would ask.",
        "<name> walked off as if nothing had happened, (whistling|humming) a little too loudly.",
        "<name> went home (very quickly|on tiptoe|by the back way) and did not say a word.",
    )
    tale.say(
        "But <his> supper tasted of nothing.",
        "But that night <he> could not sleep.",
        "But the secret (sat in <his> belly like a stone|grew bigger with every hour).",
        "But nothing was fun any more, (not even|least of all) skipping stones.",
    )
    tale.paragraph()
    if tale.dice.chance(0.45):
        tale.say(
            "<the_friend>, who lived next door, noticed at once.", "Only <the_friend> saw that something was wrong."
        )
        tale.speaks(
            tale.friend,
            "What are you hiding?",
            "You look as if you had swallowed a frog.",
            "Tell the truth. It is shorter than any other story.",
            "Mistakes can be mended. Secrets only get mouldy.",
        )
    tale.say(
        "In the morning, <name> (took a deep breath|put on <his> cap|made up <his> mind) and went to <ename>.",
        "At last <name> knocked at <ename>'s door.",
    )
    tale.speaks(
        tale.hero,
        "It was me. I am sorry.",
        "I did it, and I want to make it good again.",
        "I made a mistake. Please let me mend it.",
        "I am so sorry about the <what>.",
        how=("said", "whispered", "stammered"),
    )
    tale.say("<eName> was (quiet|silent) for a moment. Then <ehe> (smiled|nodded|put down <ehis> cup).")
    tale.speaks(
        tale.elder,
        "It takes courage to say so.",
        "Thank you for telling me. Shall we begin?",
        "I broke something once, too. Come, I will show you.",
        "Then roll up your sleeves.",
        "A thing is only a thing. The truth is worth more.",
        how=("said",),
    )
    tale.say(
        "So <name> <mending>, and <more>.",
        "It took (all day|the whole week|until dusk): <name> <mending>. Then <he> <more>.",
    )
    tale.say(
        "Everything was (almost|nearly) as before, only <his> heart was (far|much) lighter.",
        "And <his> heart was light again.",
        "When it was done, <ename> and <name> shared a pot of (mint tea|cocoa).",
        "After that <name> was (more careful|less hasty), at least on weekdays.",
    )
    tale.maybe(0.45, "That night <name> slept like a (stone|dormouse).", "<name> (skipped|hummed) all the way home.")


def gift(tale: Tale) -> None:
    """Tell how a present is made because there is no money for one."""
    tale.record("gift", tale.draw("gift", "present")["what"], tale.hero.name)
    tale.let(day=tale.pick(("birthday", "name day", "feast day", "moving day")))
    beats.open_with(tale, "to give <ename> (the finest|a beautiful|a truly good) present for <ehis> <day>")
    tale.paragraph()
    tale.say(
        "But <his> purse (was empty|held a single penny|had a hole in it).",
        "But the things in the shop window cost (more than <he> would have in a year|ten times too much).",
        "But <he> had no money, not even (a farthing|enough for a ribbon).",
    )
    beats.feels_low(tale)
    if tale.dice.chance(0.6):
        beats.asks_friend(tale)
        tale.speaks(
            tale.friend,
            "The best presents are not in shops.",
            "What can your <paw>s do? Start with that.",
            "Make something. I will keep it secret.",
            "<eName> has enough things. But nothing from you.",
            how=("said",),
        )
        tale.say("<name> (thought about that|scratched <his> head|jumped up). Then <he> knew: it would be <what>!")
    else:
        tale.say(
            "Then, looking (out of the window|into the fire|at <his> own two <paw>s), <he> had an idea: it"
            " would be <what>!"
        )
    tale.say("<He> <making>.", "So <he> <making>, (and told nobody|and it took three evenings).")
    tale.maybe(
        0.5,
        "Twice it went wrong, and twice <he> began again.",
        "<His> (back|neck) ached, but <he> did not stop.",
        "<the_friend> kept watch at the door, (whistling loudly|so that nobody would come in).",
    )
    tale.paragraph()
    tale.say("When the <day> came, <name> held out <what>, <look>.", "On the <day>, there it was: <what>, <look>.")
    tale.speaks(
        tale.elder,
        "Did you make this yourself?",
        "For me? Oh, <name>!",
        "This is the best of all.",
        "Nobody has ever given me anything like it.",
        how=("cried", "said"),
    )
    tale.say("<eName> <use>.", "And <ename> <use>, (which says everything|just as <name> had hoped).")
    tale.say(
        "So <name> had given the finest present after all.",
        "<name> had got <his> wish, and it had not cost a penny.",
        "<name> was (prouder|happier) than if it had come from the best shop in the world.",
    )


def quarrel(tale: Tale) -> None:
    """Tell how two friends quarrel over a thing, spoil it, and make up."""
    tale.record("quarrel", tale.draw("quarrel", "cause")["thing"], tale.hero.name)
    beats.introduce(tale)
    tale.say(
        "<His> best friend was <the_friend>.",
        "Next door lived <the_friend>, and the two were (always together|like pepper and salt).",
    )
    tale.say(
        "<One_day>, they (quarrelled|had a quarrel) over a <thing>: <over>.",
        "But <one_day>, there was only one <thing>, and <over>.",
    )
    tale.paragraph()
    tale.speaks(
        tale.hero, "It is my turn!", "Let go! I had it first!", "You always get your way!", how=("cried", "shouted")
    )
    tale.speaks(
        tale.friend,
        "No, mine!",
        "That is not fair!",
        "You are never my friend again!",
        how=("shouted", "cried", "snapped"),
    )
    tale.say("In the end, <spoiled>.", "Then it happened: <spoiled>.")
    tale.maybe(
        0.6,
        "<name> stamped off to the left and <fname> to the right.",
        "They turned their backs on each other and marched home.",
        "Each of them said that it was the other's fault.",
    )
    tale.say(
        "The afternoon was (long|dull|endless). <name> wanted <his> friend back, but (how does one begin|who"
        " should begin)?",
        "Playing alone was as much fun as (cold porridge|a wet sock). <name> only wished that they were friends again.",
    )
    tale.paragraph()
    tale.say(
        "At last <name> (swallowed <his> pride|took <his> last two plums) and went to <fname>'s door. <fname>"
        " was just coming out.",
        "At dusk they met (halfway|on the path|in the middle of the bridge), for both had thought the same.",
    )
    tale.speaks(
        tale.hero,
        "I am sorry.",
        "I was silly. I am sorry.",
        "I am sorry. I would rather have you than any <thing>.",
        how=("said", "mumbled", "whispered"),
    )
    tale.speaks(
        tale.friend, "So am I.", "I was just as silly.", "Me too. Shall we try again?", how=("said", "answered")
    )
    tale.say(
        "Together they <mending>, and this time <sharing>.",
        "They <mending> that same evening. From then on, <sharing>.",
    )
    tale.say(
        "It was (twice as much|far more) fun that way, and <name> and <fname> were friends (again|as before).",
        "And so <name> had <his> friend back, and that was (what counted|all <he> had wanted).",
    )


HINTS = (
    "a strange light behind <here>",
    "a glimmer near <here>",
    "a hole that had not been there yesterday",
    "a path that the grass had hidden",
    "a feather of a colour <he> did not know",
)


def discovery(tale: Tale) -> None:
    """Tell how something strange is followed, found and shared."""
    tale.record("discovery", tale.draw("discovery", "find")["what"], tale.hero.name)
    tale.let(here=tale.pick(cast.PLACES))
    tale.let(hint=tale.pick(HINTS))
    beats.open_with(tale, "to discover something that nobody had (ever seen|found) before")
    tale.paragraph()
    tale.say(
        "But (everything had been discovered already, it seemed|all the places around were old and well known).",
        "(All summer|For weeks) <he> found nothing but (acorns and snail shells|rusty nails|other people's picnics).",
    )
    teased = tale.dice.chance(0.4)
    if teased:
        tale.say("The others (laughed|teased <him>). There is nothing left to find, they said.")
    tale.say(
        "Then, <one_day>, <he> noticed <hint>.",
        "Then, (one grey afternoon|on a walk to nowhere), <he> came upon <hint>.",
    )
    tale.say("<name> (fetched|called) <the_friend>, for (two are braver than one|one does not discover things alone).")
    tale.speaks(
        tale.friend,
        "What if it is dangerous?",
        "Are you sure?",
        "You go first!",
        "Do you hear that?",
        "I brought a rope, just in case.",
    )
    tale.say(
        "They crept closer, (step by step|on tiptoe|holding <paw>s), and found <what>."
        if tale.is_about_children
        else "They crept closer, (step by step|on tiptoe|side by side), and found <what>.",
        "They went on (past <here>|through the nettles|for a long while), and came upon <what>.",
    )
    tale.say("And (look|see): <inside>!", "They could hardly believe it: <inside>.")
    tale.paragraph()
    tale.maybe(0.5, "They could have kept it to themselves.", "For a whole day it was their secret.")
    tale.say(
        "But <name> thought that (a discovery is there to be shared|good things grow when they are shared).",
        "<name> thought about it for a while and then smiled.",
    )
    tale.say("So <after>.", "And so it came that <after>.")
    if teased:
        tale.say("Nobody (laughed at|teased) <name> any more: <he> had discovered something after all.")
        return
    tale.say(
        "<name> had discovered something after all.",
        "And what did <name> want next? To discover something else, of course.",
    )


PLOTS = (lost, mended, gift, quarrel, discovery)
