"""Plots about deeds: overcoming a fear, a storm, a contest, learning, growing, seeing something rare."""

from __future__ import annotations

from tales import beats, cast
from tales.telling import Tale


def fear(tale: Tale) -> None:
    """Tell how a fear is faced because a friend needs help."""
    tale.record("fear", tale.draw("fear", "fear")["what"], tale.hero.name)
    if tale.dice.chance(0.6):
        beats.open_with(tale, "not to be afraid of <what> any more")
    else:
        beats.introduce(tale)
        tale.say(
            "<name> was afraid of <what>, and (wished|wanted) nothing more than to be brave.",
            "<He> was brave in many ways, but not with <what>, and <he> wished it were different.",
        )
    tale.say("But <like>.", "It was no use: <like>.")
    tale.say(
        "<His> best friend was <the_friend>, (who was afraid of nothing|who never teased <him> for it).",
        "Only <the_friend>, <his> best friend, knew about it.",
        "<the_friend>, <his> best friend, was not afraid of anything.",
    )
    tale.maybe(0.25, "Others called <him> a scaredy-cat.", "<eName> said that courage comes when it is needed.")
    tale.paragraph()
    tale.say("Then it happened: <need>.", "But one day <need>.", "And then, of all times on a Sunday, <need>.")
    tale.say("There was nobody else (about|near).", "<name> looked round for help. There was none.")
    if tale.dice.chance(0.6):
        tale.speaks(
            tale.hero,
            "I am coming, <fname>!",
            "Hold on, I am on my way!",
            "I am afraid, but I am coming!",
            how=("called", "cried"),
        )
    else:
        tale.say(
            "<His> (legs|knees) shook. <His> heart (hammered|drummed). But <fname> was more important.",
            "For a moment <he> could not move. Then <he> thought of <fname>.",
        )
    tale.say("And <name> <how>.", "So <he> <how>, (bit by bit|trembling all over), until it was done.", "<name> <how>.")
    tale.say(
        "It worked.",
        "It seemed to take a year.",
        "Slowly, very slowly, the fear grew smaller.",
        "And the fear? It walked along, but it walked behind.",
    )
    tale.paragraph()
    tale.speaks(
        tale.friend,
        "But you are afraid of <what>!",
        "You came! Were you not afraid?",
        "I knew you would come. Were you very much afraid?",
        "That was the bravest thing I ever saw. Were you not afraid?",
        how=("cried", "said"),
    )
    tale.speaks(
        tale.hero,
        "I was afraid. And then I was not.",
        "I still am, a little.",
        "You were more important.",
        "I forgot to be afraid.",
        how=("said", "answered"),
    )
    tale.say("And that is how <name> found out: <after>.", "And <name> had found out something: <after>.")
    tale.say(
        "<He> was not afraid of <what> any more, or only on Sundays.",
        "<He> never (hid|ran) from <what> again.",
        "So <his> wish had come true: <what> had lost its terror.",
    )


def storm(tale: Tale) -> None:
    """Tell how a storm's damage is mended together."""
    tale.record("storm", tale.draw("storm", "damage")["damage"], tale.hero.name)
    wish = tale.pick(
        (
            "to spend the evening (reading|baking apples) by the fire",
            "to finish <his> ship in a bottle in peace",
            "to stay in <his> armchair and look at the rain",
            "to bake a cake and eat it by the stove",
        )
    )
    tale.let(wish=wish)
    beats.introduce(tale)
    tale.say(
        "(That day|One grey afternoon), <he> wanted only <wish>.",
        "All <he> wanted (that day|that autumn evening) was <wish>.",
    )
    tale.say(
        "But the wind (rose|began to howl|rattled at the shutters), and the sky turned (green|as black as ink).",
        "But clouds came over the hill like (a herd of bulls|dark sheep), and the first gust slammed the door.",
    )
    tale.maybe(
        0.5,
        "It was the worst storm in (years|living memory).",
        "Rain drummed on everything. Lightning (split the sky|lit the room).",
    )
    tale.maybe(0.5, "<name> (pulled the blanket up to <his> chin|closed the shutters|put another log on the fire).")
    tale.paragraph()
    tale.say(
        "Then there was a knock. It was <the_friend>, (wet to the skin|dripping and shivering).",
        "There was a knock, and in came <the_friend>, (wet to the skin|with dripping sleeves|and a good deal of rain).",
    )
    tale.speaks(tale.friend, "The storm! It <damage>!", how=("cried", "gasped", "panted"))
    tale.say("<name> gave <fhim> (a dry towel and hot tea|a blanket and the best chair|soup and thick socks).")
    tale.speaks(
        tale.hero,
        "You stay here tonight. Tomorrow we will see.",
        "Come in, come in. There is room.",
        "First get warm. Then we will think.",
        "In the morning I will help you.",
        how=("said",),
    )
    tale.maybe(
        0.35,
        "All night the house (creaked|groaned) like a ship, but the two told stories until they fell asleep.",
        "They played cards while the storm raged, and it was almost cosy.",
    )
    tale.paragraph()
    tale.say(
        "In the morning the world was (washed and still|full of puddles and broken twigs). They called the"
        " neighbours, and together they <repair>.",
        "At dawn the storm was over. With <ename> and half the neighbourhood, they <repair>.",
    )
    tale.say("And in the end <better>.", "When all was done, <better>.")
    tale.say(
        "It had not been the quiet time that <name> had wanted. It had been a better one.",
        "And then <name>"
        " got what <he> had wanted, at last, only now <fname> was there too, and that made it"
        " (twice as nice|perfect).",
        "That evening <name> could finally sit down in peace, and <he> found that <he> had rather enjoyed the company.",
    )


def contest(tale: Tale) -> None:
    """Tell that winning is not everything."""
    row = tale.draw("contest", "contest")
    tale.record("contest", row["event"], tale.hero.name)
    tale.let(the_prize="the" + row["prize"].removeprefix("a"))
    beats.open_with(tale, "to win <event>")
    tale.say(
        "The prize was <prize>, and <name> <skill>.",
        "<He> <skill>, and <he> could already see <the_prize> on the shelf.",
    )
    tale.say(
        "The only one as good as <he> was <the_friend>.",
        "Only <the_friend> was just as good at it.",
        "There was only one rival to fear: <the_friend>.",
    )
    tale.maybe(0.25, "<eName> was the judge, as every year.", "The whole (village|neighbourhood) came to watch.")
    tale.paragraph()
    tale.say(
        "When the day came, everything went (well|splendidly) at first.",
        "The great day came, with (flags|drums and lemonade|sunshine).",
    )
    tale.say("But then <mishap>.", "And then it happened: <mishap>.")
    tale.say(
        "<name> could have gone on. <He> thought of <the_prize>. Then <he> looked at <fname>'s face.",
        "Now nobody stood between <name> and <the_prize>. But it did not feel right.",
        "For the length of a breath <name> (hesitated|was glad). Then <he> was ashamed of it.",
    )
    tale.say("<He> <deed>.", "So <name> <deed>.")
    tale.speaks(
        tale.friend,
        "But you could have won!",
        "But that was your prize!",
        "Now you will not win!",
        how=("cried", "whispered", "said"),
    )
    tale.speaks(
        tale.hero,
        "Winning alone is no fun.",
        "You would have done the same.",
        "I know. Never mind.",
        "What is a prize without a friend?",
        how=("said", "answered", "laughed"),
    )
    tale.say("In the end, <decided>.", "And so <decided>.")
    tale.paragraph()
    tale.say(
        "<name> did not take home <the_prize>. <He> took home something better, and it talked all the way.",
        "Did <name> win? Not <the_prize>. But ask <fname> who was best that day.",
        "<name> had wanted to win."
        " Now <he> did not mind at all, for <fname> walked beside <him>, telling everyone what <name> had"
        " done.",
    )
    beats.close(tale)


def learned(tale: Tale) -> None:
    """Tell how something is learned by trying again."""
    skill = tale.draw("learned", "skill")["skill"]
    while skill == "swim" and tale.hero.kind in ("otter", "beaver"):
        skill = tale.draw("learned", "skill")["skill"]
    tale.record("learn", skill, tale.hero.name)
    beats.open_with(tale, "to learn to <skill>")
    tale.paragraph()
    tale.say(
        "<He> tried on Monday: <failing>.",
        "The first time <he> tried, <failing>.",
        "But whenever <he> tried, <failing>.",
    )
    tale.say(
        "<He> tried on Tuesday, and it was (no better|worse).",
        "The second time was (worse|no better), and about the third we will not speak.",
        "<the_friend>, who watched, had to look away so as not to laugh.",
    )
    tale.maybe(
        0.6,
        "I am too (small|clumsy|stupid) for it, thought <name>.",
        "<name> threw <his> cap on the ground.",
        "<He> said that <he> would never, ever try again.",
    )
    tale.say(
        "But <ename> had seen it.", "Then <ename> came by and sat down beside <him>.", "<eName> scratched <ehis> chin."
    )
    tale.speaks(
        tale.elder,
        "<Advice>.",
        "Here is the secret. <Advice>.",
        "When I was your age, I was no better. <Advice>.",
        how=("said",),
    )
    tale.say(
        "<name> tried it that way. It went wrong. <He> tried again, (in the rain|after supper|before"
        " breakfast), day after day.",
        "So <name> practised, (behind the barn|where nobody could see|until the"
        " moon rose), for a week, and"
        " another week.",
        "It was not easy. But each day it was a crumb better than the day before.",
    )
    tale.paragraph()
    tale.say("And then, <one_day>, <success>.", "And one day, when <he> had nearly stopped hoping, <success>!")
    if tale.dice.chance(0.6):
        tale.speaks(
            tale.hero, "I can do it!", "Did you see that?", "Look! Look at me!", how=("cried", "shouted", "called")
        )
    tale.say("(Before the month was out|Within a few weeks|In no time), <later>.", "It was not long before <later>.")
    tale.say(
        "And when the little ones ask how <he> learned it, <name> tells them what <ename> once told <him>.",
        "<name> had learned it at last, and <ename> was nearly as proud as <he>.",
        "<eName> only winked. Some wishes need patience, that is all.",
    )


IMPATIENCE = (
    "dug it up to see if it was growing, and buried it again quickly",
    "watered it until the bed was a swamp",
    "played the drum for it, to wake it",
    "pulled at the soil and said: hurry up",
    "slept beside it so as not to miss anything",
    "read to it from the longest book in the house",
    "shone a lantern on it all night",
)


def grown(tale: Tale) -> None:
    """Tell that a seed needs time."""
    one, other = tale.dice.sample(IMPATIENCE, 2)
    tale.record("grown", tale.draw("grown", "seed")["seed"], tale.hero.name)
    tale.let(one=one, other=other, here=tale.pick(cast.PLACES))
    beats.open_with(tale, "to grow <plant>")
    tale.say("<One_day>, <ename> gave <him> (just what <he> needed|a small present): <a:seed>.")
    tale.say(
        "<name> (pressed|tucked) it into the earth near <here>.",
        "<name> (made|scratched) a hole (by the wall|under the window), put it in and covered it up.",
    )
    tale.paragraph()
    tale.say(
        "Nothing happened. Not on Monday, not on Tuesday.",
        "The next morning <he> ran out to look. There was only (mud|earth).",
        "Then <he> waited. Waiting was the (hardest|longest) part.",
    )
    tale.say("So <name> <one>.", "On Wednesday <he> <one>.")
    tale.say("The day after, <he> <other>.", "When that did not help, <he> <other>.")
    tale.say("<the_friend> shook <fhis> head.", "<the_friend> came to see, and there was nothing to see.")
    tale.speaks(
        tale.friend,
        "It is dead, I think.",
        "Perhaps it was only a pebble.",
        "You are too impatient.",
        "Give it time.",
        how=("said",),
    )
    tale.speaks(
        tale.elder,
        "A seed has its own clock.",
        "It is working hard, down there where you cannot see it.",
        "Water it a little, and then do something else.",
        "You cannot hurry the spring.",
        how=("said",),
    )
    tale.say(
        "So <name> went (fishing|for walks) and did not look for (seven|ten) days. It was terribly hard.",
        "<name> sighed. But <he> did as <he> was told: a little water, and a lot of patience.",
    )
    tale.paragraph()
    tale.say("And then, one morning, <grown>.", "And one day, when <he> had almost forgotten it, <grown>!")
    tale.say(
        "<He> (danced around it|called the whole neighbourhood|dared not breathe).",
        "<name> (laughed out loud|tiptoed round it three times).",
    )
    tale.say("It was what <he> had wished for, and <after>.", "<name> had grown <plant>, and <after>.")


def sight(tale: Tale) -> None:
    """Tell of a wish to see something that comes in its own time."""
    what = tale.draw("sight", "sight")["what"]
    tale.record("sight", what, tale.hero.name)
    beats.open_with(tale, "to see <what>, just once")
    tale.say("But <hindrance>.", "There was only one difficulty: <hindrance>.")
    tale.paragraph()
    tale.say(
        "The first time, <he> waited by the window and fell asleep with <his> nose on the sill.",
        "The first time, <he> packed a lunch, took the wrong path and came home with wet socks.",
        "The first time, it rained.",
    )
    tale.say(
        "The second time, it was too (foggy|windy), and <he> saw only <his> own <paw> in front of <him>.",
        "The second time, <he> sneezed at the wrong moment and missed it."
        if what in ("a shooting star", "the night train go by", "a whale")
        else "The second time, <he> came (an hour|a day) too late.",
    )
    beats.feels_low(tale)
    if tale.dice.chance(0.5):
        tale.speaks(
            tale.elder,
            "Good things like to be waited for.",
            "Try once more, and take someone along.",
            "It will come when it is ready. Are you?",
            "Two can keep each other awake.",
            how=("said",),
        )
    else:
        tale.maybe(
            0.8,
            "<eName> said that good things like to be waited for.",
            "<eName> gave <him> a blanket and a bottle of hot milk.",
        )
    tale.paragraph()
    tale.say("So <one_day>, <he> took <the_friend> along.", "The third time, <the_friend> came too.")
    tale.say(
        "They (told each other stories|shared a blanket and a bag of nuts|sang every song they knew) so that"
        " they would not fall asleep."
        if what not in ("the sea", "the first snow falling")
        else "They (told each other stories|shared a bag of nuts|sang every song they knew) on the way."
    )
    if what == "the sea":
        tale.say("They climbed the seventh hill, puffing.", "Six hills lay behind them, and their feet ached.")
    else:
        tale.say(
            "They were just about to give up.", "It was very (still|quiet).", "Nothing happened for a long, long while."
        )
    tale.speaks(tale.friend, "Look!", "There!", "<name>! Look!", how=("whispered", "cried"))
    tale.say("And (then|now) <seen>.", "<name> looked, and <seen>.")
    tale.say("<name> <did>.", "And what did <name> do? <He> <did>.")
    tale.say(
        "It was even (more beautiful|bigger|stranger) than in <his> dreams, and it was good not to be alone with it.",
        "Now <name> had seen it at last, and <he> will never forget it.",
        "On the way home neither of them spoke. There are things for which there are no words.",
    )


PLOTS = (fear, storm, contest, learned, grown, sight)
