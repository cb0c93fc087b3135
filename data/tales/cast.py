"""Characters, places and times of tales."""

from __future__ import annotations

from dataclasses import dataclass

from grammar import Dice, a, listed

GIRLS = listed("""Mina Lila Tess Nell Ivy Poppy Juno Hana Maisie Dora Elsie Bea Fern Hattie Ida Josie Kira Lotte Mabel
Nina Opal Pia Ruby Sadie Tilly Una Vera Willa Yara Zoe Greta Clover Hazel Marnie Olive Petra Rosa Stella""")
BOYS = listed("""Pip Tobin Milo Finn Jasper Kit Leo Max Ned Otis Perry Quill Rufus Sam Theo Toby Wilf Alfie Barnaby
Caspar Emil Felix Gus Henry Ivo Jonah Luca Mateo Noah Oskar Basil Cedric Dunstan Fergus Hamish Linus Monty Rowan""")
HELD_OUT_GIRLS = listed("Anouk Daisy Flora Linnea Minka Saskia Thea Winnie")
HELD_OUT_BOYS = listed("Arlo Bruno Elmo Hugo Jory Otto Silas Tarek")
HELD_OUT = frozenset((*HELD_OUT_GIRLS, *HELD_OUT_BOYS))

BEGINNINGS = listed("""A Al An Ba Bar Be Ben Bi Bo Bri Bro Bu Cal Ca Co Cor Da Dan De Do Dru Du E El Em Fa Fi Fen
Flo Fri Ga Ge Gil Go Gri Ha Hal He Ho Hu I Im Is Ja Jo Ju Ka Kel Ki Ko La Le Li Lo Lu Ma Mar Me Mi Mo Mu Na Ne Ni
No Nu O Ol Or Pa Pe Pi Plu Po Pri Qui Ra Re Ri Ro Ru Sa Se Shi Si So Su Ta Te Thi Ti To Tri Tu U Ul Va Ve Vi Vo Wa
We Wi Wo Ya Ye Yo Za Ze Zi Zu""")
MIDDLES = listed("""b bb bl br c ck d dd dl f ff g gg l ll ld lf lk lm lw m mb mm mp n nd ng nk nn nt p pp r rb rd
rg rk rl rm rn rp rr rt rv s sh ss st t th tt v w x z zz lib lin mer min nar rab rin ril tam tol vel""")
GIRLS_ENDS = listed("a ia ie ina ette ora ula ela ika issa ola")
BOYS_ENDS = listed("o el in us um ert ard ock on ian")
INVENTED = 0.7
"""probability that a name is invented: such a name can't be memorized, only copied from the context"""

ANIMALS = listed("fox hare hedgehog mouse badger squirrel otter mole rabbit beaver kitten puppy dormouse raccoon"
        " vole bear shrew "
                 "marten")  # fmt: skip
NEIGHBOURS = (*ANIMALS, *listed("wren frog tortoise toad duck robin snail goat sparrow lamb newt goose owl crow heron"))
SIZES = listed("small little young tiny")
TRAITS = listed("""curious cheerful quiet lively shy stubborn gentle clever dreamy brave careful merry patient restless
thoughtful hasty sleepy proud honest bright""")

# name or description, pronoun
ELDERS_OF_CHILDREN = (
    ("Grandmother", "she"), ("Grandfather", "he"), ("Aunt Rose", "she"), ("Uncle Ben", "he"), ("Mrs. Finch", "she"),
    ("Mr. Alder", "he"), ("the old baker", "he"), ("the miller", "he"), ("the beekeeper", "she"),
    ("the ferryman", "he"),
    ("the shoemaker", "he"), ("the gardener", "she"), ("Great-aunt Ottilie", "she"), ("the lighthouse keeper", "she"),
)  # fmt: skip
ELDERS_OF_ANIMALS = (
    ("Grandmother", "she"), ("Grandfather", "he"), ("Old Owl", "he"), ("the old tortoise", "she"),
    ("Mother Goose", "she"),
    ("Mr. Toad", "he"), ("the grey heron", "he"), ("Aunt Bramble", "she"), ("Uncle Thistle", "he"),
    ("the old mole", "he"),
    ("Mrs. Magpie", "she"), ("the wise goat", "she"),
)  # fmt: skip

HOMES_OF_CHILDREN = (
    "in a (crooked|yellow|narrow|whitewashed) house (by the harbour|near the mill|above the bakery|at the end of"
    " the lane)",
    "in a village (between two hills|by the sea|where the river bends|at the foot of the mountain)",
    "on a (small|windy|hilly) farm (with nine hens and a cow|behind the orchard|beside a lake|full of geese)",
    "in a town (with seven bridges|full of chimneys|with a crooked clock tower|where every door was painted blue)",
    "in the (lighthouse|old mill|ferry house|gardener's cottage)",
)
HOMES_OF_ANIMALS = (
    "in a (snug|round|tidy|mossy) burrow (under an oak|by the brook|beneath the roots of a pine|at the edge of the"
    " meadow)",
    "in a hollow (log|tree|willow) (near the pond|in the middle of the wood|beside the stream|behind the brambles)",
    "in a (tiny|warm|stony) den (on the hillside|under a hazel bush|among the ferns|close to the waterfall)",
    "in a cottage (no bigger than a hat|thatched with reeds|with a round green door|made of twigs and clay)",
    "in the (deep|green|whispering|old) (wood|forest) (beyond the river|behind the mill|where the owls nest|on the"
    " hill)",
)

PLACES = (
    "the duck pond", "the stone bridge", "the orchard", "the hay barn", "the old oak", "the mill", "the beehives",
        "the well",
    "the willow", "the ferry landing", "the bramble hedge", "the market square", "the brook", "the windmill",
        "the boathouse",
    "the stepping stones", "the crossroads", "the sheepfold", "the cherry tree", "the clearing",
)  # fmt: skip

MORNINGS = (
    "one (bright|windy|misty|frosty|golden|quiet|rainy|warm) (morning|afternoon)", "one day in"
        " (spring|summer|autumn|winter)",
    "on the (first|last) day of (spring|summer|autumn|winter)", "on the (longest|coldest|hottest|windiest) day of"
        " the year", "one (Monday|Tuesday|Friday|Sunday)",
    "early one morning, (before the birds were up|while the dew was still on the grass|when the roofs were white"
        " with frost)",
    "one evening, (as the lamps were lit|when the swallows flew low|while the soup was on the stove)",
    "the day after (the fair|the harvest|the first snow|midsummer)",
    "one (day|morning) when (the wind smelled of rain|the plums were ripe|the snow had melted|the cuckoo called)",
)  # fmt: skip


@dataclass(frozen=True)
class Person:
    """A character in a tale."""

    name: str
    kind: str
    """girl, boy, fox …; empty for elders"""
    he: str

    @property
    def him(self) -> str:
        return "him" if self.he == "he" else "her"

    @property
    def his(self) -> str:
        return "his" if self.he == "he" else "her"

    def slots(self, prefix: str = "") -> dict[str, str]:
        """Return the template values for this person: `<name>`, `<he>` …, with a prefix for all but the hero."""
        words = {
            "name": self.name, "kind": self.kind, "he": self.he, "him": self.him, "his": self.his,
            "himself": "himself" if self.he == "he" else "herself",
                "He": self.he.capitalize(), "His": self.his.capitalize(),
            "Name": self.name[0].upper() + self.name[1:],
        }  # fmt: skip
        return {prefix + slot: word for slot, word in words.items()}


def draw_person(dice: Dice, kinds: tuple[str, ...] | list[str], *, held_out: bool, without: str = "") -> Person:
    """Return a random person of one of these kinds; with `held_out`, the name is reserved for the held-out split.

    Args:
        dice: source of randomness.
        kinds: kinds to choose from.
        held_out: whether to use held-out names.
        without: a name whose initial must not be repeated.

    Returns:
        The person.
    """
    kind = dice.choice(kinds)
    he = "she" if kind == "girl" else "he" if kind == "boy" else dice.choice(("he", "she"))
    names = (HELD_OUT_BOYS if held_out else BOYS) if he == "he" else HELD_OUT_GIRLS if held_out else GIRLS
    invents = not held_out and dice.chance(INVENTED)
    while True:
        name = invent_name(dice, he) if invents else dice.choice(names)
        if name[0] != without[:1] and (name in HELD_OUT) == held_out:
            return Person(name, kind, he)


def invent_name(dice: Dice, he: str) -> str:
    """Return an invented name, such as “Plummo” or “Quintora”."""
    return dice.choice(BEGINNINGS) + dice.choice(MIDDLES) + dice.choice(BOYS_ENDS if he == "he" else GIRLS_ENDS)


def describe(dice: Dice, person: Person) -> str:
    """Return a description such as “a small, curious fox”."""
    size, trait = dice.choice(SIZES), dice.choice(TRAITS)
    return a(dice.choice((f"{size} {person.kind}", f"{trait} {person.kind}", f"{trait} {size} {person.kind}")))
