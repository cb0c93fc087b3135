"""Stories of three sentences on request: a hero with a wish, an obstacle, and a consistent ending."""

from __future__ import annotations

from grammar import listed

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

HEROES = listed(
    "cat dog fox owl bear rabbit frog mouse hedgehog duck goat snail bee otter squirrel penguin turtle dragon robot "
    "pirate baker king queen girl boy wizard sailor cloud teapot giant"
)
ADJECTIVES = listed("small brave shy clever old young lazy kind curious hungry quiet cheerful sleepy tiny lonely")

NAMES = words.NAMES[:80] + words.PET_NAMES

# wish | obstacle | ending (each step follows from the one before)
PLOTS = (
    (
        "wanted to see the sea",
        "The road was long, and a river without a bridge lay across it.",
        "So <name> built a boat of leaves, and the river itself went to the sea.",
    ),
    (
        "wanted to see the sea",
        "Nobody could say where it was.",
        "Then <name> followed a gull all day, and in the evening there it was, blue and loud.",
    ),
    (
        "wanted to bake the biggest bread in town",
        "The oven door was far too small.",
        "So <name> baked a hundred little loaves, and the whole town had breakfast.",
    ),
    (
        "wanted to learn to sing",
        "Every song came out as a squeak.",
        "One night the mice came to listen and squeaked along, and that was the first choir.",
    ),
    (
        "wanted to touch the moon",
        "No ladder was long enough.",
        "Then rain filled a bucket, and <name> touched the moon in the water.",
    ),
    (
        "had lost a red hat",
        "The wind had carried it up a tall tree.",
        "A bird slept in it, so <name> let it stay and knitted a new one.",
    ),
    (
        "was afraid of the dark",
        "One night the lamp went out.",
        "Then <name> saw the stars for the first time, and left the lamp off after that.",
    ),
    (
        "looked for a friend",
        "Everybody seemed too busy to stop.",
        "So <name> sat down and shared an apple, and soon three others sat there too.",
    ),
    (
        "wanted to win the race",
        "On the way a little beetle lay on its back.",
        "So <name> stopped to help, came last, and went home with a friend.",
    ),
    (
        "found an old map",
        "The map showed a cross under the oak.",
        "There lay a box with a letter: now hide something nice for the next one.",
    ),
    (
        "wanted to sleep all winter",
        "A mouse next door played the drum.",
        "So <name> joined in with a spoon, and they slept when spring came.",
    ),
    (
        "wanted to fly",
        "Jumping from the shed only made bruises.",
        "Then an old goose offered a lift, and <name> saw the whole valley from above.",
    ),
    (
        "grew one big pumpkin",
        "It was too heavy to carry home.",
        "So <name> cut a door in it and moved in.",
    ),
    (
        "wanted to write a letter",
        "There was no paper in the house.",
        "So <name> wrote on a leaf, and the wind was the postman.",
    ),
    (
        "had a secret",
        "It grew heavier every day.",
        "At last <name> told it to a good friend, and it was as light as a feather.",
    ),
    (
        "wanted to cross the bridge",
        "A grumpy goose stood in the middle.",
        "So <name> asked how the goose was, and nobody had ever asked that before.",
    ),
    (
        "wanted to catch a cloud",
        "Each one slipped through the net.",
        "In the morning there was fog in the garden, and <name> stood inside a cloud.",
    ),
    (
        "was always too late",
        "Even the slow snail arrived before.",
        "So <name> set the clock wrong on purpose, and was on time for the first time.",
    ),
    (
        "wanted to be big",
        "The others could reach every apple.",
        "Then a ring fell into a crack, and only <name> was small enough to fetch it.",
    ),
    (
        "lost the way in the wood",
        "All the trees looked the same.",
        "A bee flew by on its way home, and <name> followed it to the village.",
    ),
    (
        "wanted to paint the sky",
        "The brush was much too short.",
        "So <name> painted the pond, and the sky looked into it and was pleased.",
    ),
    (
        "wanted to make the king laugh",
        "Every joke was met with silence.",
        "Then <name> slipped on the carpet, and the king laughed and helped with both hands.",
    ),
    (
        "had a broken umbrella",
        "The rain began just outside the door.",
        "So <name> danced through the puddles, and soon the whole street danced too.",
    ),
    (
        "wanted to count the stars",
        "Sleep always came before one hundred.",
        "So <name> asked a friend to count the other half, and together they nearly finished.",
    ),
)

REQUESTS = (
    "(tell me|tell|write me|write|i want|i'd like|can you tell me|do you know|make up|please tell me|i need|read "
    "me|may i have|give me) a (story|short story|little story|tale|bedtime story|nice story|tiny story|new "
    "story|good story)",
    "(story|a story|story time|a story please|stories|story please|i want to hear a story|tell me stories|do you "
    "have a story)",
)


def tell(talk: Talk, hero: str, name: str) -> tuple[str, dict[str, str]]:
    """Return a story's template and its values."""
    wish, why_not_reproducible, ending = talk.dice.choice(PLOTS)
    adjective = talk.dice.choice(ADJECTIVES)
    start = "(Once there was|There once was|There was once) <a:who> (named|called) <name> who " + wish
    return f"{start}. {why_not_reproducible} {ending}", {"who": f"{adjective} {hero}", "name": name}


def story(talk: Talk) -> None:
    """Add a request for a story about any hero or a named one."""
    hero = talk.dice.choice(HEROES)
    name = talk.dice.choice(NAMES)
    kind = talk.dice.below(10)
    about, values = "", {}
    if kind < 5:
        about, values = " (about|with|of) <a:hero>", {"hero": hero}
    elif kind < 7:
        name = talk.new_name()
        about, values = " (about|with) <a:hero> (named|called) <name>", {"hero": hero}
    template, told = tell(talk, hero, name)
    request = talk.dice.choice(REQUESTS) + about + "( please| tinychat| now|)(?||.|)"
    talk.ask(request, template, **values, **told)
    if talk.left and talk.dice.chance(0.2):
        hero = talk.dice.choice(HEROES)
        template, told = tell(talk, hero, talk.dice.choice(NAMES))
        talk.turn("(another story|one more story|now one|and one|another|tell one more) (about|with) <a:hero>("
                  " please|)(?||.)", template,
                  hero=hero, **told)  # fmt: skip


SCENES: Scenes = (Scene("stories", 3.6, story),)
