"""Plots about others: sharing food, helping a stranger, making a friend, keeping a promise, cheering up."""

from __future__ import annotations

from tales import beats, cast
from tales.tables import rows
from tales.telling import ANSWERED, Tale

REASONS = (
    "had not eaten since yesterday",
    "had lost <fhis> lunch in the river",
    "had walked all night",
    "was too proud to ask",
    "had given <fhis> own to <fhis> little brothers",
    "could only look, with big round eyes",
)


def shared(tale: Tale) -> None:
    """Tell how food meant for one is shared."""
    food = tale.draw("shared", "food")["food"]
    tale.record("shared", food, tale.hero.name)
    tale.let(here=tale.pick(cast.PLACES), reason=tale.pick(REASONS))
    beats.open_with(
        tale,
        "to eat a whole <food>, all alone, down to the last crumb"
        if food not in ("pot of honey", "bowl of soup")
        else "to have a whole <food>, all alone, down to the last drop",
    )
    tale.say(
        "And <one_day>, <he> had one: <why>.",
        "<One_day>, the time had come. (There it was|<He> held it in <his> <paw>s): a <food>, and <why>.",
    )
    tale.say(
        "<name> (looked for|found) a quiet spot near <here>.",
        "<He> carried it to <here>, where nobody would (disturb|see) <him>.",
    )
    tale.paragraph()
    tale.say(
        "But there sat <the_friend>, who <reason>.",
        "Just as <he> opened <his> mouth, <he> saw <the_friend>, who <reason>.",
        "But along came <the_friend>, who <reason>.",
    )
    tale.say(
        "<name> looked at the <food>. Then <he> looked at <fname>. (It was a long moment|It was not easy).",
        "<name> (turned <his> back and took a deep"
        " breath|shut <his> eyes). The <food> smelled so good! But somehow <he> was not hungry any more.",
        "One bite, thought <name>. But it would not go down, not with <fname> looking on.",
    )
    tale.speaks(
        tale.hero,
        "Would you like half?",
        "Come and sit with me.",
        "There is enough for two.",
        "I cannot eat all this alone.",
        "Do you have a spoon?" if food in ("pot of honey", "bowl of soup") else "Here, take some.",
    )
    tale.maybe(
        0.5,
        "<fName>'s eyes (shone|grew even rounder).",
        "<fName> did not need to be asked twice.",
        "<fName> (smiled shyly|nodded) and sat down.",
    )
    tale.say(
        "They ate slowly, side by side, until nothing was left.",
        "They ate, and neither of them said a word until the last crumb was gone.",
        "Side by side they (munched|ate) and looked at the (clouds|view).",
        "They shared it fairly, down to the last bit.",
    )
    tale.say("Afterwards, <fname> <back>.", "And then, (to say thank you|in return), <fname> <back>.")
    tale.paragraph()
    tale.say(
        "Half a <food>, thought <name>, is more than a whole one."
        if food not in ("bowl of soup", "pot of honey")
        else "Half a pot, thought <name>, fills you more than a whole one.",
        "<name> had wanted to be alone with the <food>. Now <he> was glad that <he> had not been.",
        "It was not a whole <food> for <name>, but it was a whole (afternoon|friend).",
        "So <name> never did eat a whole <food> alone, and <he> never wished to again.",
    )
    beats.close(tale)


def stranger(tale: Tale) -> None:
    """Tell how a stranger needs help on the way to a wish."""
    goal = tale.draw("stranger", "goal")["goal"]
    tale.record("stranger", tale.draw("stranger", "stranger")["stranger"], goal)
    beats.open_with(tale, "to see <goal>")
    tale.say(
        "It was (a long way|half a day on foot), and <he> had counted the (days|sleeps).",
        "<He> had polished <his> (shoes|buttons) and packed a (sandwich|biscuit).",
    )
    tale.paragraph()
    tale.say(
        "<name> set out (at dawn|singing|in good time). But at the (crossroads|bridge|edge of the wood) <he>"
        " met <who>.",
        "Halfway there, <name> met <who>.",
        "<He> had just passed the last house when <he> came upon <who>.",
    )
    tale.say(
        "If <he> stopped, <he> would be late. If <he> did not stop, who would?",
        "<name> looked at the sun. It was (late|high) already. But <he> could not simply walk on.",
        "Others had (hurried|walked) past. <name> (hesitated|thought of <goal>). Then <he> (stopped|turned round).",
    )
    tale.speaks(
        tale.hero,
        "Wait, I will help you.",
        "Let me help.",
        "Two can do it faster than one.",
        "Do not worry. We will manage.",
        how=("said", "called"),
    )
    tale.say(
        "<name> <help_given>.", "So <name> <help_given>. (It took a good while|The sun wandered on|It was hard work)."
    )
    tale.say(
        "When it was done, (it was much too late to walk|the shadows were long|the clock struck, far away).",
        "By then <he> was (tired|dusty) and (very|terribly) late.",
    )
    tale.paragraph()
    tale.say("But <stranger> <reward>.", "Then came the surprise: <stranger> <reward>.")
    tale.say(
        "And when <name> arrived at <goal>, <begun>."
        if "," not in goal
        else "And when <name> arrived at the harbour, <begun>.",
        "So <name> came (just in time|not a minute too late): <begun>.",
    )
    tale.say(
        "<name> had the best place of all, right in front, with <stranger> beside <him>.",
        "It was (even|far) more beautiful than <name> had imagined.",
        "<name> saw everything <he> had wished for, and waved until <his> arm was tired.",
    )
    tale.maybe(0.4, "Kindness, it seems, is never a detour.", "The long way round had been the (shortest|right) one.")


def befriended(tale: Tale) -> None:
    """Tell how someone new and alone finds a friend who loves the same thing."""
    one, other = tale.dice.sample(rows("befriended", "attempt"), 2)
    tale.record("friend", tale.draw("befriended", "pastime")["pastime"], tale.hero.name)
    tale.let(here=tale.pick(cast.PLACES))
    tale.let(first=f"{one['deed']}, {one['result']}", second=f"{other['deed']}, {other['result']}")
    if tale.dice.chance(0.5):
        beats.open_with(tale, "to find a friend")
    else:
        tale.say(
            "<name> was new here. <He> had come (in spring|on a rainy Tuesday|with one trunk and a teapot)"
            " and now lived <home>.",
            "When <name>, <hero>, moved here, <he> knew (nobody|not a soul). The new home was <home>.",
        )
        tale.say("All <he> wished for was a friend.", "What <he> needed most was a friend.")
    tale.paragraph()
    tale.say("First <he> <first>.", "On Monday, <he> <first>.")
    tale.say("Then <he> <second>.", "On Tuesday, <he> <second>.", "Next <he> <second>.")
    beats.feels_low(tale)
    tale.paragraph()
    tale.say(
        "So <name> went off alone and <pastime>, as <he> had always done at home.",
        "To cheer <himself> up, <he> went to a quiet corner and <pastime>.",
    )
    tale.say(
        "After a while <he> felt that somebody was (there|watching). It was <the_friend>.",
        "Behind (a bush|the wall) something (moved|rustled). Out came <the_friend>.",
    )
    tale.speaks(
        tale.friend,
        "I thought I was the only one who likes that. May I join you?",
        "May I join you?",
        "I do that too, every day! Shall we do it together?",
        "You are good at that. Will you show me how?",
        "Is there room for one more?",
        how=("said",),
    )
    tale.speaks(
        tale.hero, "Of course!", "Yes, please.", "I would love that.", "Come on, there is plenty of room.", how=ANSWERED
    )
    tale.say("They <together>.", "And the two of them <together>.", "Side by side they <together>.")
    tale.paragraph()
    tale.say(
        "When it grew dark, <fname> asked if <name> would come again tomorrow. And <name>, who had"
        " (looked|searched) everywhere for a friend, said yes (three times|before the"
        " question was finished).",
        "So <name> had found a friend at last, or the friend had found <him>.",
        "You cannot make a friend with (signs|noise) alone, thought <name>. You have to be"
        " yourself, and someone has to come round the corner. <fName> had come.",
        "The next morning someone knocked at <name>'s door. It was <fname>, <his> friend.",
    )


TEMPTATIONS = (
    "to come sledging",
    "to build a raft",
    "to come to the puppet show",
    "to pick blackberries",
    "to play hide and seek",
    "to catch fireflies",
    "to swim in the pond",
    "to fly the new kite",
    "to listen to the fiddler in the square",
)


def promise(tale: Tale) -> None:
    """Tell how a promise is nearly forgotten, and then kept."""
    tale.record("promise", tale.draw("promise", "promise")["what"], tale.hero.name)
    tale.let(temptation=tale.pick(TEMPTATIONS))
    beats.introduce(tale)
    tale.say(
        "<One_day>, <he> promised <ename> to <what>.",
        "<eName> had asked a favour of <him>, and <name> had promised to <what>.",
    )
    tale.speaks(
        tale.hero,
        "You can count on me!",
        "I promise, cross my heart.",
        "I will not forget.",
        "A promise is a promise.",
        how=("said",),
    )
    tale.say(
        "<He> wanted, for once, to be someone others could rely on."
        if tale.dice.chance(0.6)
        else "<He> meant every word of it."
    )
    tale.paragraph()
    tale.say(
        "But then <the_friend> came and asked <him> <temptation>.",
        "But on the third day <the_friend> called <him> <temptation>.",
    )
    tale.speaks(
        tale.friend,
        "Come on! It will not take long.",
        "Just for an hour!",
        "Everyone is going!",
        "You can do the other thing tomorrow.",
        how=("said", "called"),
    )
    tale.say(
        "<name> (only wanted to go for a minute|forgot everything else) and ran along. It was"
        " (great|wonderful) fun, and the hour turned into two.",
        "And <name>, who could never say no, ran along. They laughed so much that the afternoon flew by.",
    )
    tale.say(
        "Suddenly <he> (stopped|turned pale|fell silent). The promise!",
        "Then, in the middle of a laugh, <he> remembered.",
        "It was (a church bell|an owl's cry|the first star) that reminded <him> of the promise.",
    )
    tale.say(
        "<name> left (everything|<his> cap behind) and ran. And (indeed|oh dear), <danger>.",
        "<He> (dashed|flew) home as fast as <he> could. There, <danger>.",
    )
    tale.say("<name> did not lose a moment: <he> <keeping>.", "<He> <keeping>.")
    tale.paragraph()
    tale.say("And (not long after|soon), <outcome>.", "Then, to <his> great relief, <outcome>.")
    tale.say(
        "<name> had kept <his> promise, (if only just|at the very last moment).",
        "<eName> never knew how"
        " close it had been, until <name> told <ehim>. <eHe> (laughed|smiled) and said that a"
        " promise kept late is still kept.",
        "Since then <name> ties a knot in <his> handkerchief whenever <he> promises something.",
    )


AT_LAST = (
    "sat down beside <ehim> and simply listened, and <ehe> told <him> about the old days until the kettle sang",
    "put on a play with socks for puppets, with a sock king and a sock dragon",
    "called all the neighbours together under the window, and they played on pots, combs and a trumpet",
    "painted a whole garden on the wall, with bees and all",
    "brought the kitten from next door, who curled up on <ehis> lap and purred like a mill",
    "hung up so many paper lanterns that the room was like a sky",
)


def cheered(tale: Tale) -> None:
    """Tell how the hero makes a sad friend smile again."""
    sorrow = tale.draw("cheered", "sorrow")["sorrow"]
    one, other = tale.dice.sample(rows("cheered", "attempt"), 2)
    last = tale.pick(AT_LAST)
    tale.record("cheered", sorrow, last)
    tale.let(last=last)
    tale.let(first=f"{one['deed']}, but {one['result']}", second=f"{other['deed']}, but {other['result']}")
    beats.open_with(tale, "to make <ename> (smile|laugh) again")
    tale.say(
        "(The trouble was this|And this was the trouble): <ename> <sorrow>.",
        "<eName> <sorrow>, and <ehis> face was as long as a (wet week|rainy Sunday).",
    )
    tale.paragraph()
    tale.say(
        "So <name> <first>. <eName> (only sighed|said it was kind of <him>|looked out of the window).",
        "First <name> <first>. <eName> nodded politely.",
    )
    tale.say(
        "Then <he> <second>. (Nothing|Not even a twitch|Not the smallest smile).",
        "The next day <he> <second>. <eName> patted <his> head, but did not smile.",
    )
    if tale.dice.chance(0.55):
        tale.say("<name> asked <the_friend> for advice.")
        tale.speaks(
            tale.friend,
            "What would cheer you up, if you were sad?",
            "Perhaps you try too hard.",
            "Do something you love yourself.",
            "Try once more. The third time counts.",
        )
    else:
        beats.feels_low(tale)
    tale.paragraph()
    tale.say("<name> thought (for a whole evening|hard|it over). Then <he> <last>.", "In the end, <name> <last>.")
    tale.say("And <ename>? <eHe> <smile>.", "<eName> looked up, slowly, and <smile>.")
    tale.say(
        "It was the smile that <name> had wished for, (warm|wide) as a summer day.",
        "<name> had done it: <ename> was smiling again.",
        "That smile, said <name> later, was better than (any prize|a sack of gold).",
    )
    tale.maybe(
        0.5,
        "And then of course they had cake.",
        "They stayed together until the lamp burned low.",
        "Since then <he> has looked in every day at four.",
    )


PLOTS = (shared, stranger, befriended, promise, cheered)
