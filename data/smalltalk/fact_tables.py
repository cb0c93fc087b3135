"""Tables for `facts.py`, written as “x=y” entries."""

from __future__ import annotations

from grammar import listed

from smalltalk.words import DAYS, MONTHS, SEASONS

__all__ = ["DAYS", "MONTHS", "SEASONS"]  # re-exported

SOUNDS = (
    "cat=meow, dog=woof, cow=moo, sheep=baa, pig=oink, duck=quack, horse=neigh, hen=cluck, "
    "rooster=cock-a-doodle-doo, frog=ribbit, bee=buzz, owl=hoo-hoo, lion=roar, mouse=squeak, snake=hiss, wolf=awoo, "
    "crow=caw, cuckoo=cuckoo, donkey=hee-haw, goat=meh, turkey=gobble gobble, pigeon=coo, chick=peep, elephant=toot, "
    "fly=bzz"
)

COLOURS = (
    "the sky=blue, grass=green, snow=white, coal=black, a banana=yellow, a tomato=red, an orange=orange, the "
    "sun=yellow, a carrot=orange, milk=white, chocolate=brown, a cucumber=green, a lemon=yellow, a strawberry=red, a "
    "plum=purple, an elephant=grey, a polar bear=white, a crow=black, a frog=green, a flamingo=pink, a fire "
    "engine=red, a pea=green, the night=black, the sea=blue, a cherry=red, honey=golden, a mouse=grey, a "
    "pumpkin=orange, a swan=white, salt=white, a fox=red, a leaf in spring=green, a leaf in autumn=red or yellow, a "
    "zebra=black and white, a panda=black and white, a pig=pink, blood=red, chalk=white, wood=brown, an "
    "aubergine=purple, lavender=purple, a chick=yellow, cheese=yellow, coffee=brown, rice=white, a raven=black, "
    "lime=green, a brick=red, sand=yellow, ash=grey"
)

OPPOSITES = (
    "big=small, hot=cold, up=down, left=right, day=night, black=white, open=closed, fast=slow, happy=sad, old=young, "
    "rich=poor, hard=soft, loud=quiet, wet=dry, full=empty, early=late, heavy=light, near=far, high=low, long=short, "
    "clean=dirty, strong=weak, good=bad, first=last, inside=outside, before=after, in=out, on=off, yes=no, "
    "begin=end, push=pull, give=take, win=lose, love=hate, buy=sell, sweet=sour, thick=thin, wide=narrow, "
    "deep=shallow, rough=smooth, true=false, always=never, everything=nothing, awake=asleep, brave=afraid, "
    "cheap=expensive, easy=difficult, laugh=cry, north=south, east=west, front=back, top=bottom, above=below, "
    "more=less, many=few, question=answer, friend=enemy, summer=winter, sharp=blunt, polite=rude, remember=forget, "
    "find=hide, start=stop, arrive=leave, alive=dead, same=different, straight=curved, wild=tame, safe=dangerous, "
    "bright=dim, peace=war, noisy=silent"
)

REGULAR = (
    "apple ball book bird tree car house table chair window door dog cat cow horse duck hen rabbit frog owl bear "
    "tiger lion monkey day boy girl friend teacher river mountain cloud star flower garden letter number hat shoe "
    "sock spoon cup plate lamp key bed boat train bike road bridge school king queen egg tomato:es potato:es bus:es "
    "box:es fox:es dish:es glass:es class:es watch:es peach:es bench:es brush:es dress:es church:es kiss:es hero:es "
    "radio piano toy song game"
)
IRREGULAR = (
    "mouse=mice, foot=feet, tooth=teeth, goose=geese, child=children, man=men, woman=women, sheep=sheep, fish=fish, "
    "deer=deer, leaf=leaves, wolf=wolves, knife=knives, life=lives, wife=wives, half=halves, shelf=shelves, "
    "loaf=loaves, baby=babies, city=cities, story=stories, lady=ladies, puppy=puppies, party=parties, "
    "cherry=cherries, berry=berries, country=countries, family=families, person=people, ox=oxen, fly=flies, "
    "pony=ponies, thief=thieves, penny=pennies"
)


def plurals() -> dict[str, str]:
    """Return each noun with its plural; “box:es” means an irregular ending, all others take an s."""
    table = {}
    for entry in REGULAR.split():
        word, _, ending = entry.partition(":")
        table[word] = word + (ending or "s")
    for entry in IRREGULAR.split(","):
        word, _, plural = entry.strip().partition("=")
        table[word] = plural
    return table


CAPITALS = (
    "France=Paris, Spain=Madrid, Italy=Rome, Germany=Berlin, England=London, Portugal=Lisbon, Ireland=Dublin, "
    "Greece=Athens, Austria=Vienna, Poland=Warsaw, Norway=Oslo, Sweden=Stockholm, Denmark=Copenhagen, "
    "Finland=Helsinki, Iceland=Reykjavik, Belgium=Brussels, Hungary=Budapest, Ukraine=Kyiv, Russia=Moscow, "
    "Turkey=Ankara, Egypt=Cairo, Kenya=Nairobi, Ghana=Accra, Morocco=Rabat, Ethiopia=Addis Ababa, India=New Delhi, "
    "China=Beijing, Japan=Tokyo, Vietnam=Hanoi, Thailand=Bangkok, Indonesia=Jakarta, Iran=Tehran, Iraq=Baghdad, "
    "Canada=Ottawa, Mexico=Mexico City, Cuba=Havana, Peru=Lima, Chile=Santiago, Argentina=Buenos Aires, "
    "Australia=Canberra, Brazil=Brasilia, the USA=Washington, the Netherlands=Amsterdam, Switzerland=Bern, "
    "South Korea=Seoul, Scotland=Edinburgh, New Zealand=Wellington, Romania=Bucharest, Croatia=Zagreb, "
    "Pakistan=Islamabad"
)
OTHER_NAMES = "America=Washington, the United States=Washington, the UK=London, Britain=London, Holland=Amsterdam"
"""alternative names of countries whose capitals are known"""
OTHER_COUNTRIES = listed(
    "Bhutan,Chad,Mali,Niger,Togo,Gabon,Malawi,Zambia,Oman,Qatar,Nepal,Laos,Fiji,Tonga,Samoa,Palau,Belize,Honduras,"
    "Suriname,Guyana,Latvia,Estonia,Slovenia,Moldova,Albania,Malta,Andorra,Angola,Benin,Burundi,Botswana,Namibia,"
    "Uganda,Tunisia,Mongolia,Brunei,Vanuatu,Tuvalu,Kiribati,Jamaica,Haiti,Barbados,Grenada,Bolivia,Paraguay,Uruguay,"
    "Ecuador,Colombia",
    ",",
)

YOUNG = (
    "dog=puppy, cat=kitten, cow=calf, horse=foal, sheep=lamb, goat=kid, duck=duckling, hen=chick, bear=cub, "
    "lion=cub, pig=piglet, frog=tadpole, goose=gosling, deer=fawn, kangaroo=joey, swan=cygnet, owl=owlet, fox=cub, "
    "whale=calf, elephant=calf, wolf=pup, seal=pup, eagle=eaglet, rabbit=kit"
)
LEGS = (
    "dog=four, cat=four, cow=four, horse=four, frog=four, mouse=four, bird=two, hen=two, duck=two, person=two, "
    "ant=six, bee=six, fly=six, beetle=six, spider=eight, crab=ten, snake=no, fish=no, worm=no, chair=four, "
    "table=four, penguin=two"
)
EATS = (
    "cow=grass, horse=hay and oats, rabbit=grass and carrots, cat=fish and meat, dog=meat and dog food, mouse=seeds "
    "and cheese, panda=bamboo, koala=leaves, lion=meat, bear=berries and fish, hen=grain, squirrel=nuts, "
    "monkey=fruit, frog=flies, owl=mice, whale=tiny shrimps, penguin=fish, caterpillar=leaves, goat=almost anything, "
    "sheep=grass, giraffe=leaves, spider=flies, hedgehog=worms and beetles, wolf=meat, elephant=grass and leaves, "
    "otter=fish"
)
LIVES = (
    "fish=in the water, bird=in a nest, bee=in a hive, fox=in a den, bear=in the forest, lion=in the savanna, "
    "camel=in the desert, penguin=on the ice, whale=in the sea, frog=by the pond, mole=under the ground, squirrel=in "
    "a tree, spider=in a web, cow=on a farm, polar bear=in the Arctic, monkey=in the jungle, crab=on the beach, "
    "horse=in a stable, rabbit=in a burrow, dolphin=in the sea, owl=in an old tree, ant=in an ant hill, wolf=in the "
    "forest, snail=in its shell, beaver=by the river"
)
USES = (
    "spoon=eat soup, knife=cut bread, fork=pick up food, cup=drink tea, pen=write, pencil=draw, umbrella=stay dry, "
    "key=open a door, clock=tell the time, bed=sleep, chair=sit, lamp=make light, broom=sweep the floor, towel=dry "
    "your hands, hammer=hit nails, saw=cut wood, needle=sew clothes, comb=tidy your hair, map=find the way, "
    "boat=cross the water, ladder=climb up, oven=bake bread, fridge=keep food cold, phone=call a friend, book=read, "
    "bag=carry things, coat=keep warm, mirror=see yourself, soap=wash your hands, ruler=measure, bucket=carry water, "
    "kite=play in the wind, bell=ring, drum=make music, shovel=dig a hole, pillow=rest your head, stamp=post a "
    "letter, candle=make a small light"
)
MEANINGS = (
    "river=a long stream of water, mountain=a very high hill, island=land with water all around, forest=a place with "
    "many trees, desert=a dry land with much sand, lake=a big water with land around, cloud=tiny drops of water in "
    "the sky, rainbow=a bow of colours after rain, star=a far sun in the night sky, planet=a big ball that goes "
    "round a sun, volcano=a mountain that can spit fire, library=a house full of books, school=a place to learn, "
    "doctor=someone who helps the sick, baker=someone who bakes bread, farmer=someone who grows food, pilot=someone "
    "who flies a plane, friend=someone you like and trust, poem=a small text that sings, song=words with a tune, "
    "story=something told from start to end, secret=something few people know, shadow=the dark shape behind you in "
    "the light, dream=a story in your sleep, word=a few letters with a meaning, sentence=a few words that belong "
    "together, computer=a machine that counts very fast, robot=a machine that can do some work, camera=a thing that "
    "takes pictures, bridge=a way over the water, garden=a place where plants grow, seed=the start of a plant, "
    "nest=a bed that birds build, egg=the start of a chick, winter=the cold season, birthday=the day you were born, "
    "token=a small piece of text, parameter=one of my many numbers, tokenizer=a program that cuts text into tokens, "
    "prompt=the text that you give me, seed number=a start for random choices, terminal=a window for typing commands"
)
KINDS = (
    "apple=a fruit, pear=a fruit, banana=a fruit, cherry=a fruit, plum=a fruit, lemon=a fruit, mango=a fruit, "
    "carrot=a vegetable, onion=a vegetable, potato=a vegetable, cabbage=a vegetable, leek=a vegetable, dog=an "
    "animal, cat=an animal, eagle=a bird, robin=a bird, penguin=a bird, owl=a bird, shark=a fish, trout=a fish, "
    "salmon=a fish, hammer=a tool, saw=a tool, rose=a flower, tulip=a flower, daisy=a flower, oak=a tree, piano=an "
    "instrument, flute=an instrument, drum=an instrument, ant=an insect, bee=an insect, snake=a reptile, frog=an "
    "amphibian, whale=an animal that lives in the sea"
)
HOW_MANY = (
    "days in a week=7, months in a year=12, seasons in a year=4, hours in a day=24, minutes in an hour=60, seconds "
    "in a minute=60, fingers on a hand=5, toes on a foot=5, letters in the alphabet=26, eggs in a dozen=12, wheels "
    "on a car=4, wheels on a bike=2, eyes on a face=2, sides of a coin=2, weeks in a year=52, days in a year=365, "
    "strings on a violin=4, legs on a spider=8, colours in a rainbow=7, players in a football team=11, days in a "
    "weekend=2, thumbs on two hands=2"
)
SHAPES = "triangle=three, square=four, rectangle=four, pentagon=five, hexagon=six, octagon=eight"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
RHYMES = (
    ("cat", "hat", "bat", "mat"), ("dog", "log", "frog", "fog"), ("house", "mouse"), ("tree", "bee", "sea", "tea",
     "key"),
    ("moon", "spoon", "soon"), ("star", "car", "far", "jar"), ("day", "play", "say", "hay"), ("cake", "lake", "snake"),
    ("night", "light", "bright", "kite"), ("rain", "train", "brain"), ("bear", "chair", "hair", "pear"), ("sun",
     "fun", "run", "bun"),
    ("king", "ring", "sing", "wing"), ("boat", "coat", "goat"), ("fox", "box", "socks"), ("ball", "tall", "wall",
     "fall"),
    ("red", "bed", "bread", "head"), ("blue", "shoe", "two", "zoo"), ("snow", "go", "slow", "toe"), ("sky", "fly",
     "pie", "high"),
)  # fmt: skip

GROUPS = {
    "animals": "cat dog horse cow fox owl bear rabbit frog mouse lion tiger",
    "birds": "owl eagle robin crow duck swan penguin parrot",
    "colours": "red blue green yellow orange purple pink white black",
    "fruits": "apple pear banana cherry plum lemon mango orange",
    "vegetables": "carrot onion potato cabbage leek pea pepper bean",
    "trees": "oak birch pine maple willow beech",
    "flowers": "rose tulip daisy lily violet poppy",
    "tools": "hammer saw spade needle broom ladder",
    "countries": "France Spain Italy Kenya Japan Peru Canada India",
    "drinks": "tea coffee milk water juice cocoa",
    "sports": "football tennis chess rowing judo cycling",
    "instruments": "piano drum flute violin guitar trumpet",
    "months": "January March May July October December",
    "numbers": "two five seven nine eleven twelve",
}

# From smallest to biggest.
SIZES = listed(
    "an ant,a bee,a mouse,a frog,a squirrel,a rabbit,a cat,a fox,a dog,a wolf,a goat,a pig,a lion,a horse,a cow,a "
    "hippo,an elephant,a whale",
    ",",
)
THING_SIZES = listed(
    "a grain of sand,a pea,a cherry,a coin,an apple,a melon,a chair,a table,a car,a bus,a house,a church,a mountain,"
    "the moon,the earth,the sun",
    ",",
)
