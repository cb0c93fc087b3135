"""Word lists shared by several topics."""

from __future__ import annotations

from grammar import Dice, listed

NAMES = listed(
    "Ada Adam Aisha Alba Alex Alice Amara Amir Ana Andrei Anita Anna Arjun Asha Astrid Ava Ayo Bela Ben Beth Bianca "
    "Bilal Bo Boris Bruno Carla Carlos Cato Chen Chloe Clara Dana Daniel Daria David Deepa Diego Dina Dora Edith "
    "Eduardo Ella Elena Eli Elif Elsa Emil Emily Emma Enzo Erik Esther Eva Farah Felix Femi Finn Fiona Frank Freya "
    "Gabriel Gina Giulia Grace Greta Gus Hana Hannah Hans Harry Hassan Heidi Helen Henry Hugo Ian Ibrahim Ida Igor "
    "Ines Ingrid Iris Isla Ivan Jack Jakob James Jamila Jan Jane Jasmin Jin Joan Joe John Jonas Jorge Josef Julia "
    "Jun Kai Karim Karin Kate Keiko Ken Kenji Kim Kofi Kwame Lara Lars Laura Layla Lea Lena Leo Liam Lila Lily Lin "
    "Lisa Liv Lola Luca Lucy Luis Luna Maja Malik Mara Marco Maria Mark Marta Martin Mary Mateo Maya Mei Mia Mika "
    "Mila Milo Mina Miriam Mona Musa Nadia Naomi Nell Nia Nico Nils Nina Noah Noor Nora Oda Olga Oliver Omar Oscar "
    "Otto Paola Paul Pavel Pedro Peter Petra Pia Priya Rafael Rahul Raj Rania Ravi Rita Robin Rosa Ruben Ruth Ryan "
    "Sadie Sam Samir Sara Sasha Selma Simon Sofia Sonia Stella Sven Tara Tariq Theo Thomas Tim Tina Tom Tomas Uma "
    "Ursula Vera Victor Vikram Wanda Wei Will Xavier Yara Yasmin Yuki Yusuf Zain Zara Zoe "
    "Aaron Abby Abdul Aiden Alan Albert Alexis Alfie Alina Alma Amanda Amber Amelia Amit Amy Andre Andrea Andrew "
    "Angela Anne Anton April Aria Ashley Aurora Barbara Bart Becky Bella Benjamin Betty Bill Bob Brad Brenda Brian "
    "Brittany Bruce Bryan Caleb Cameron Camille Carmen Carol Caroline Cathy Cecilia Charles Charlie Charlotte Chris "
    "Christina Christopher Cindy Claire Claudia Cody Colin Connor Courtney Craig Crystal Dan Danielle Dave Dean Debbie "
    "Denise Dennis Derek Diana Dirk Dominic Donald Donna Doris Dorothy Doug Dylan Eddie Edward Edwin Eleanor Elias "
    "Elijah Elizabeth Ellen Elliot Erica Erin Ethan Eugene Evan Evelyn Fatima Fred Frida Gary Gavin Gemma George "
    "Gerald Gloria Gordon Grant Greg Hailey Hazel Heather Hector Holly Hope Howard Imran Isaac Isabel Ivy Jackson "
    "Jacob Jade Jaden Jason Jean Jeff Jenna Jennifer Jenny Jeremy Jerry Jesse Jessica Jill Jim Jimmy Joanna Joel "
    "Johanna Jordan Joseph Josh Joshua Joyce Juan Judy Justin Karen Karl Katie Kayla Keith Kelly Kevin Kyle Lauren "
    "Leah Lewis Linda Logan Lorenzo Louis Louise Lucas Lydia Mabel Maggie Manuel Marcus Margaret Marie Mario Marvin "
    "Mason Matthew Megan Melissa Michael Michelle Miguel Mike Molly Monica Nancy Natalie Nathan Neil Nicholas Nicole "
    "Nigel Owen Pamela Patricia Patrick Paula Phil Philip Phoebe Rachel Ralph Rebecca Ricardo Richard Rob Robert Roger "
    "Ron Rose Roy Russell Samantha Samuel Sandra Sarah Scott Sean Seth Shane Sharon Sheila Simone Sophie Stan Stefan "
    "Stephanie Steve Steven Stuart Susan Tamara Tanya Ted Teresa Terry Theresa Tiffany Timothy Todd Tony Tracy Tyler "
    "Valerie Vanessa Vincent Violet Walter Wendy Wesley William Zachary"
)

SYLLABLES = listed(
    "ba be bi bo bra da de di do dra fa fe fi fo ga ge gi go gra ha he hi ho ja je jo ka ke ki ko kra la le li lo lu "
    "ma me mi mo mu na ne ni no pa pe pi po ra re ri ro ru sa se si so su ta te ti to tra va ve vi vo wa we wi ya yo "
    "za ze zi zo"
)
NAME_ENDS = listed(
    "a an ar el en eth i ia ik in is la ley lin lo ma mir n na ne nor o on ra ris s sa sha ta th ti us va vin x"
)

# Beginnings, middles and ends of syllables, for words of any shape.
ONSETS = listed(
    "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl kn l m n p ph pl pr qu r rh s sc sh sk sl sm sn sp st str sw t"
    " th "
    "tr tw v w wh y z zh b d f g h j k l m n p r s t v w"
)
VOWELS = listed("a e i o u a e i o u a e i o u ai au ay ea ee ei ie oa oo ou y ue")
CODAS = listed(
    "b ck d f g k l ll lm ld lf m mp n nd ng nk nn nt p r rd rk rl rm rn rt s ss sh st t th tt v x z zz n r l s t m d"
)


LONGEST_INVENTED = 9
"""in letters"""


def invent(dice: Dice) -> str:
    """Return an invented lowercase word, of regular syllables or of any that English allows."""
    if dice.chance(0.4):
        count = 2 if dice.chance(0.75) else 3
        return "".join(dice.choice(SYLLABLES) for _ in range(count)) + dice.choice(NAME_ENDS)
    word = ""
    while not 3 <= len(word) <= LONGEST_INVENTED:
        word = dice.choice(VOWELS) if dice.chance(0.1) else ""
        for _ in range(1 + dice.weighted((2, 5, 2))):
            word += dice.choice(ONSETS) + dice.choice(VOWELS) + (dice.choice(CODAS) if dice.chance(0.6) else "")
    return word


PET_NAMES = listed(
    "Biscuit Button Caramel Captain Cloud Coco Comet Cookie Daisy Dot Echo Fluff Ginger Goldie Honey Jelly Lucky "
    "Marble Mango Max Midnight Mitten Moss Muffin Noodle Nugget Olive Pebble Pepper Pickle Pixel Poppy Pudding Puff "
    "Rex Rocket Rusty Sausage Shadow Smoky Snow Socks Spot Star Storm Sunny Teddy Tiger Toast Toffee Tulip Waffle "
    "Whiskers Ziggy"
)

PETS = listed("cat dog rabbit hamster parrot goldfish turtle pony lizard mouse guinea-pig canary duck goat snake")

COLOURS = listed("red blue green yellow orange purple pink brown black white grey gold silver turquoise violet")
FOODS = listed(
    "pizza,soup,bread,cheese,rice,pasta,cake,apples,noodles,pancakes,chocolate,salad,curry,ice cream,bananas,"
    "dumplings,tacos,beans,toast,cherries,cookies,eggs,mangoes,sushi,pie,popcorn,olives,carrots,waffles,honey",
    ",",
)
DRINKS = listed("tea,coffee,milk,water,lemonade,apple juice,orange juice,cocoa,ginger tea,mint tea", ",")
ANIMALS = listed(
    "cat dog horse cow fox owl bear rabbit frog mouse lion tiger elephant penguin whale dolphin duck goat sheep hen "
    "bee snake turtle monkey wolf otter hedgehog squirrel camel zebra"
)
SPORTS = listed(
    "football,tennis,swimming,running,chess,cycling,judo,dancing,skiing,basketball,climbing,rowing,hiking", ","
)
HOBBIES = listed(
    "reading,painting,baking,gardening,singing,knitting,drawing,fishing,cooking,writing,sewing,skating,gaming,"
    "walking,bird watching,playing the piano,playing the guitar,taking photos,building models,riding my bike",
    ",",
)
BOOKS = listed(
    "the dictionary,Emma,Dracula,Heidi,Moby Dick,Peter Pan,Pinocchio,Frankenstein,Robinson Crusoe,Jane Eyre,Treasure"
    " Island,"
    "the atlas,a cookbook,Black Beauty,the Odyssey",
    ",",
)
GAMES = listed(
    "chess,tag,cards,dominoes,hide and seek,marbles,go,checkers,darts,bingo,tetris,hopscotch,snakes and"
    " ladders,pool,solitaire",
    ",",
)
FRUITS = listed("apple banana cherry mango pear plum peach lemon grape kiwi melon orange strawberry fig papaya lime")
FLOWERS = listed("rose tulip daisy lily violet poppy sunflower orchid iris snowdrop peony jasmine lavender")
INSTRUMENTS = listed("piano,guitar,violin,flute,drums,cello,trumpet,harp,banjo,ukulele,accordion,clarinet", ",")
SUBJECTS = listed("maths,history,music,art,biology,English,geography,physics,sport,chemistry,Latin", ",")
MUSIC = listed("jazz,rock,pop,folk,blues,opera,hip hop,classical music,techno,country,metal,soul,swing", ",")
SEASONS = ("spring", "summer", "autumn", "winter")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
TOWNS = listed(
    "Lisbon,Oslo,Lima,Cairo,Delhi,Boston,Leeds,Porto,Lyon,Kyoto,Accra,Quito,Riga,Cork,Bergen,Naples,Graz,Basel,Tampa,"
    "Austin,Denver,Geneva,Utrecht,Ghent,Bristol,Glasgow,Cardiff,Seattle,Sydney,Mumbai,Lagos,Osaka,Seoul,Prague,Zurich,"
    "Munich,Hamburg,Vienna,Warsaw,Krakow,Sofia,Athens,Helsinki,Tallinn,Boston,Houston,Montreal,Bogota,Manila,"
    "Perth,Nairobi,Dublin,York,Busan,Turin,Malmo,Split,Gdansk,Toronto,Chicago,Madrid,London,Berlin,Paris,Rome,Hanoi",
    ",",
)
JOBS = listed(
    "teacher,nurse,baker,student,doctor,farmer,driver,cook,painter,programmer,gardener,singer,pilot,builder,writer,"
    "librarian,plumber,dentist,engineer,waiter,tailor,sailor,scientist,postman,artist",
    ",",
)
THINGS = listed(
    "apple,ball,bed,book,boat,box,button,candle,chair,clock,cup,door,feather,flower,fork,garden,hat,house,key,lamp,"
    "leaf,map,moon,mountain,pencil,piano,pillow,plate,pocket,rain,ring,river,rope,shoe,snow,sock,spoon,star,stone,"
    "sun,table,tree,umbrella,wall,wheel,window,wind,ladder,kettle,kite,lemon,marble,mirror,ribbon,bucket,bridge,"
    "blanket,basket",
    ",",
)
ADJECTIVES = listed(
    "big small red blue green yellow happy sleepy funny brave old young quick slow soft loud quiet round tiny warm "
    "cold shiny sweet purple silly gentle clever golden wild kind"
)
EVERYDAY = listed(
    "about after again air all and animal answer any arm ask away baby back bag bank bath because before begin best "
    "bird black blood body bone bottle boy bread bring brother build bus buy cake call camera car card carry catch "
    "chat cheese child church city class clean close coat coffee cold colour come computer cook corner could country "
    "cousin cut dad dance dark daughter day dear desk dinner doctor dollar dream dress drink drive each ear early "
    "earth easy eat eight email end enough even evening every eye face fact family far farm farmer fast father feel "
    "fifty fire first fish five floor fly food foot football forest forget four friend full fun game girl give glass "
    "good grandma grass great ground group grow guitar hair half hand happy have head hear heart heavy hello help "
    "here high hill holiday home hope hour hundred hungry ice idea island job juice jump just keep kind king kitchen "
    "knife know language large late laugh learn left leg lesson letter life light like line listen little live long "
    "look love lunch machine make market milk minute model money month more morning mother mouth move much mum music "
    "name near never new news next nice night nine nose number nurse office often old one open orange other our out "
    "page paint paper parent park party people phone photo picture pig place plane plant play please police poor "
    "potato present pretty pull push queen question rabbit radio read ready rice rich right road rock room run sad "
    "salt sand school science sea seat second see seven shirt shop short shout sing sister sit six skin sky sleep "
    "slow small smile soap son song soon soup spell sport spring start station stop story street strong student sugar "
    "summer swim table take talk tall tea teacher tell ten thank their there thing think three time tired today "
    "together tomorrow tooth town toy train travel trip true try twenty two under uncle until village visit voice "
    "wait walk want warm wash watch water way weather week well wet what when where which while white who why winter "
    "woman wood word work world write wrong year yes yesterday young zero zoo hippo tiny tinychat python banana apple "
    "house elephant mississippi kangaroo butterfly beautiful birthday rhythm necessary"
)
VERBS = listed(
    "sings,dances,sleeps,jumps,runs,laughs,waits,swims,flies,smiles,rolls,shines,hides,sneezes,whistles", ","
)


def is_held_out(name: str) -> bool:
    """Return whether a name belongs to the tenth reserved for the held-out split."""
    return sum(ord(letter) * (at + 1) for at, letter in enumerate(name.lower())) % 10 == 3
