"""Verbs: four English forms, the Spanish infinitive, and the objects or complements that fit."""

from __future__ import annotations

from typing import NamedTuple

from phrases import english
from phrases.nouns import BY_NAME, Noun


class Object(NamedTuple):
    """The object of a verb: kind of article (“a”, “the”, “my”, “0” for none), noun and number."""

    article: str
    noun: Noun
    number: int


class Verb(NamedTuple):
    """A verb with its English forms.

    `habit` marks actions that people do often, `now` those that may be in progress, and `lasts` verbs whose past is the
    imperfect.
    """

    base: str
    past: str
    participle: str
    gerund: str
    spanish: str
    habit: bool
    now: bool
    lasts: bool
    objects: tuple[Object, ...]
    complements: tuple[tuple[str, str], ...] = ()

    def present(self, person: int) -> str:
        """Return the English present; `person` is numbered as in `spanish.conjugate`."""
        return english.third(self.base) if person == 2 else self.base


def _object(text: str) -> Object:
    """Parse an object such as “a apple”, “the windows” or “0 bread”."""
    article, name = text.strip().split(" ", 1)
    if name in BY_NAME:
        noun = BY_NAME[name]
        return Object(article, noun, noun.number)
    for noun in BY_NAME.values():
        if noun.number == 1 and english.plural(noun.english) == name:
            return Object(article, noun, 2)
    raise ValueError(f"there is no noun {name!r}")


def _lines(table: str) -> list[str]:
    """Split a table into lines; an indented line continues the previous one."""
    return table.strip().replace("\n    ", " ").splitlines()


def _verbs(table: str) -> tuple[Verb, ...]:
    """Parse verbs from lines `base past participle gerund = infinitive flags : objects`; flags are h, n and i."""
    found = []
    for line in _lines(table):
        head, objects = line.split(":")
        forms, right = head.split("=")
        words = [form.replace("_", " ") for form in forms.split()]
        infinitive, _, flags = right.strip().partition(" ")
        base, past, participle, gerund = words
        found.append(
            Verb(base, past, participle, gerund, infinitive, "h" in flags, "n" in flags, "i" in flags,
                 tuple(_object(item) for item in objects.split(",")))
        )  # fmt: skip
    return tuple(found)


def _complemented(table: str) -> tuple[Verb, ...]:
    """Parse verbs from lines as in `_verbs`, with complements `english = spanish` separated by bars."""
    found = []
    for line in _lines(table):
        head, *complements = line.split("|")
        forms, right = head.split("=")
        base, past, participle, gerund = (form.replace("_", " ") for form in forms.split())
        infinitive, _, flags = right.strip().partition(" ")
        pairs = tuple((left.strip(), after.strip()) for left, after in (item.split("=") for item in complements))
        found.append(
            Verb(base, past, participle, gerund, infinitive, "h" in flags, "n" in flags, "i" in flags, (), pairs)
        )
    return tuple(found)


TRANSITIVE = _verbs("""
eat ate eaten eating = comer hn: a apple, a orange, a sandwich, a salad, a banana, 0 bread, 0 fish, 0 soup, 0 meat,
    0 cheese, 0 rice, a omelette, a pizza, 0 chicken, a ice cream, a pear, the cake, 0 fruit, 0 pasta, a biscuit,
    0 eggs, 0 tomatoes, 0 chocolate
drink drank drunk drinking = beber hn: 0 coffee, 0 tea, 0 milk, 0 wine, 0 beer, 0 orange juice, 0 lemonade,
    0 apple juice
cook cooked cooked cooking = cocinar hn: 0 fish, 0 rice, 0 meat, 0 soup, 0 chicken, 0 pasta, 0 potatoes
make made made making = hacer hn: a cake, a sandwich, 0 coffee, 0 tea, a salad, 0 lemonade, a pizza, the bed,
    0 jam, 0 biscuits
cut cut cut cutting = cortar n: the bread, the cheese, the meat, a lemon, the cake, the melon, the onions,
    the flowers
read read read reading = leer hn: a book, a letter, the newspaper, a magazine, a story, a poem, a novel
write wrote written writing = escribir hn: a letter, a poem, a postcard, a story, a song, a novel, a book
buy bought bought buying = comprar hn: a book, a shirt, a dress, a newspaper, a ticket, 0 bread, 0 milk, 0 fruit,
    a bicycle, a lamp, a table, 0 shoes, 0 flowers, a computer, a phone, 0 cheese, 0 eggs, a guitar, a map, a hat,
    a jacket, 0 apples, 0 gloves, a ring, a house, a car
sell sold sold selling = vender n: the house, the car, the bicycle, the piano, 0 flowers, the flat, 0 books,
    the horse, 0 fruit, 0 clocks, the motorbike
open opened opened opening = abrir n: the door, the window, a bottle, the box, the letter, the suitcase, the shop,
    the book, the umbrella
close closed closed closing = cerrar n: the door, the window, the box, the suitcase, the shop, the book,
    the restaurant
see saw seen seeing = ver : a film, a horse, the bridge, a bird, the city, the river, the mountain, a cat,
    a rabbit, the photos, the island, a boat, a plane
find found found finding = encontrar : my key, my phone, my glasses, the ticket, the hotel, my wallet, a ring,
    the map, my umbrella, my passport
lose lost lost losing = perder : my key, my phone, my glasses, the ticket, my wallet, my umbrella, my passport,
    my gloves, my hat, the map, my watch, my backpack
look_for looked_for looked_for looking_for = buscar n: my key, my phone, my glasses, the hotel, my wallet,
    my shoes, my passport, a pharmacy, a bank, the station, my umbrella, a hotel, a restaurant, a flat
wash washed washed washing = lavar hn: the car, the plates, the shirt, the windows, the towels, the cups,
    the apples, my socks
clean cleaned cleaned cleaning = limpiar hn: the kitchen, the house, the table, my room, my shoes, the bathroom,
    the windows, the garage, the fridge, the oven
break broke broken breaking = romper : a glass, the window, a plate, a cup, the mirror, the lamp, the chair,
    my glasses
forget forgot forgotten forgetting = olvidar : my key, my umbrella, my phone, the tickets, my passport, my glasses,
    the homework, my bag, my coat
bring brought brought bringing = traer n: the map, a book, the tickets, a blanket, a cake, the newspaper,
    my camera, the guitar, a bottle, 0 flowers, a chair, 0 bread, 0 wine, the plates
use used used using = usar hn: the phone, a dictionary, the computer, a knife, the oven, a map, the camera,
    the radio
pay_for paid_for paid_for paying_for = pagar n: the tickets, the coffee, the bread, the flowers, the hotel,
    the shoes, the books
send sent sent sending = enviar hn: a letter, a postcard, the photos, a box, 0 flowers
wear wore worn wearing = llevar hni: a hat, a coat, a dress, my glasses, a tie, a scarf, 0 gloves, 0 boots,
    a skirt, a jacket, a belt, a suit, 0 sandals
carry carried carried carrying = llevar hni: a suitcase, a backpack, the bags, a box, a umbrella
listen_to listened_to listened_to listening_to = escuchar hn: the radio, a song, a story, the concert, the birds
look_at looked_at looked_at looking_at = mirar n: the map, the photos, the clock, the mountain, the river,
    the painting, the birds, the flowers
learn learned learned learning = aprender n: a poem, a song, a game, the words, the lesson
study studied studied studying = estudiar hn: the lesson, the map, the words
paint painted painted painting = pintar n: the house, a flower, the door, the kitchen, a horse, a bridge, a tree,
    the chairs, the bicycle
draw drew drawn drawing = dibujar hn: a horse, a house, a tree, a cat, a map, a flower, a bird, a boat, a duck
drive drove driven driving = conducir hn: the bus, the car, a taxi, a truck
repair repaired repaired repairing = reparar n: the car, the bicycle, the clock, the computer, the radio,
    the chair, the motorbike, the oven, the umbrella
visit visited visited visiting = visitar hn: the museum, the church, a city, the island, the market, the zoo,
    a village, the library
need needed needed needing = necesitar i: a pencil, a map, a coat, 0 sugar, a blanket, a towel, a knife, a key,
    0 salt, a ticket, a bag, a dictionary, a taxi, 0 gloves, 0 eggs, a lamp, 0 butter, a chair, a umbrella
have had had having = tener i: a dog, a cat, a bicycle, a car, a garden, a question, a computer, a horse, a guitar,
    a ticket, a map, a idea, 0 books, a camera, a piano, a rabbit, a boat, a exam, a key
remember remembered remembered remembering = recordar : the song, the poem, the film, the street, the word,
    the trip, the story
understand understood understood understanding = entender : the question, the lesson, the exercise, the word,
    the film, the poem, the game
prepare prepared prepared preparing = preparar hn: the soup, the salad, the lesson, the room, the table,
    the suitcase, the coffee, a party, a trip
pick_up picked_up picked_up picking_up = recoger n: the tickets, the letters, the toys, the apples, the plates,
    the ball
turn_on turned_on turned_on turning_on = encender n: the lamp, the radio, the television, the oven, the computer
turn_off turned_off turned_off turning_off = apagar n: the lamp, the radio, the television, the oven, the computer
water watered watered watering = regar hn: the garden, the flowers, the tree
try tried tried trying = probar n: the soup, the cake, the wine, the cheese, the pizza, the ice cream, the jam
sing sang sung singing = cantar n: a song
plant planted planted planting = plantar n: a tree, 0 flowers, 0 tomatoes, 0 potatoes, 0 onions, 0 carrots
hide hid hidden hiding = esconder : the key, the letter, the ring, the chocolate, the toys, the box, the biscuits
""")

INTRANSITIVE = _complemented("""
work worked worked working = trabajar hn | in a bank = en un banco | in a hospital = en un hospital |
    at home = en casa | a lot = mucho | in an office = en una oficina | in a restaurant = en un restaurante |
    in the garden = en el jardín | at night = de noche | with Tom = con Tom | here = aquí
live lived lived living = vivir hi | in Madrid = en Madrid | in a big city = en una ciudad grande |
    in a small village = en un pueblo pequeño | near the sea = cerca del mar | in London = en Londres |
    with my parents = con mis padres | in an old house = en una casa vieja | in Mexico = en México | here = aquí |
    in Spain = en España
study studied studied studying = estudiar hn | Spanish = español | English = inglés | music = música |
    history = historia | in the library = en la biblioteca | a lot = mucho | at home = en casa |
    mathematics = matemáticas | at the university = en la universidad
speak spoke spoken speaking = hablar h | Spanish = español | English = inglés | French = francés |
    German = alemán | very fast = muy rápido | slowly = despacio | Italian = italiano
talk talked talked talking = hablar hn | on the phone = por teléfono | a lot = mucho |
    with the teacher = con el profesor | with the neighbours = con los vecinos | about football = de fútbol |
    about music = de música
sleep slept slept sleeping = dormir hn | well = bien | a lot = mucho | on the sofa = en el sofá |
    eight hours = ocho horas | in the car = en el coche | badly = mal
run ran run running = correr hn | in the park = en el parque | very fast = muy rápido |
    along the beach = por la playa
walk walked walked walking = caminar hn | in the park = por el parque | along the beach = por la playa |
    very slowly = muy despacio | to school = a la escuela | through the forest = por el bosque |
    with the dog = con el perro
swim swam swum swimming = nadar hn | in the sea = en el mar | in the river = en el río | in the lake = en el lago |
    very well = muy bien | in the swimming pool = en la piscina
dance danced danced dancing = bailar hn | very well = muy bien | at the party = en la fiesta |
    in the street = en la calle | a lot = mucho
sing sang sung singing = cantar hn | very well = muy bien | in the shower = en la ducha | in a choir = en un coro
travel travelled travelled travelling = viajar h | by train = en tren | by plane = en avión | by car = en coche |
    a lot = mucho | to Spain = a España | to Italy = a Italia | with friends = con amigos | to Mexico = a México
go went gone going = ir h | to school = a la escuela | to the beach = a la playa | to the market = al mercado |
    to work = al trabajo | to the cinema = al cine | to the library = a la biblioteca | to the park = al parque |
    to the doctor = al médico | home = a casa | to the bank = al banco | to church = a la iglesia |
    to the theatre = al teatro | to the swimming pool = a la piscina | to the station = a la estación |
    to the supermarket = al supermercado | to the museum = al museo | to the bakery = a la panadería
come came come coming = venir h | home = a casa | here = aquí | by bus = en autobús | with friends = con amigos |
    to the party = a la fiesta | on foot = a pie
play played played playing = jugar hn | football = al fútbol | tennis = al tenis | chess = al ajedrez |
    cards = a las cartas | in the garden = en el jardín | basketball = al baloncesto |
    in the street = en la calle | with the dog = con el perro
practise practised practised practising = practicar hn | the piano = el piano | the guitar = la guitarra |
    Spanish = español
play played played playing = tocar hn | the piano = el piano | the guitar = la guitarra | the violin = el violín |
    the drums = la batería | the flute = la flauta
watch watched watched watching = ver hn | television = la televisión | a film = una película |
    the news = las noticias | the match = el partido
arrive arrived arrived arriving = llegar h | late = tarde | early = temprano | on time = a tiempo |
    by train = en tren | at the station = a la estación | at the hotel = al hotel
leave left left leaving = salir h | early = temprano | late = tarde | at eight = a las ocho
wait waited waited waiting = esperar hn | here = aquí | at the station = en la estación | outside = fuera |
    in the car = en el coche | at the bus stop = en la parada de autobús | for the bus = el autobús |
    for the train = el tren | for a taxi = un taxi
rest rested rested resting = descansar hn | at home = en casa | in the garden = en el jardín |
    on the beach = en la playa | a little = un poco | on the sofa = en el sofá
eat ate eaten eating = comer hn | at home = en casa | in a restaurant = en un restaurante | a lot = mucho |
    with friends = con amigos | in the kitchen = en la cocina | outside = fuera
have_breakfast had_breakfast had_breakfast having_breakfast = desayunar hn | at home = en casa | early = temprano |
    in the garden = en el jardín | in bed = en la cama | at the hotel = en el hotel
have_dinner had_dinner had_dinner having_dinner = cenar hn | at home = en casa | late = tarde |
    with friends = con amigos | in a restaurant = en un restaurante | early = temprano
have_lunch had_lunch had_lunch having_lunch = almorzar hn | at school = en la escuela |
    at the office = en la oficina | with friends = con amigos | at home = en casa
help helped helped helping = ayudar hn | in the kitchen = en la cocina | at home = en casa | a lot = mucho |
    in the garden = en el jardín
wake_up woke_up woken_up waking_up = despertarse h | early = temprano | late = tarde | at six = a las seis |
    at seven = a las siete
get_up got_up got_up getting_up = levantarse h | early = temprano | late = tarde | at six = a las seis |
    at seven = a las siete | at eight = a las ocho
go_to_bed went_to_bed gone_to_bed going_to_bed = acostarse h | early = temprano | late = tarde |
    at ten = a las diez | at eleven = a las once
sit_down sat_down sat_down sitting_down = sentarse | here = aquí | on the sofa = en el sofá |
    on the floor = en el suelo | under the tree = bajo el árbol
have_fun had_fun had_fun having_fun = divertirse hn | at the party = en la fiesta | at the beach = en la playa |
    with friends = con amigos | at the zoo = en el zoológico
return returned returned returning = volver h | home = a casa | late = tarde | to Spain = a España |
    by bus = en autobús | to the hotel = al hotel
think_about thought_about thought_about thinking_about = pensar n | the exam = en el examen |
    the trip = en el viaje | the future = en el futuro | the party = en la fiesta
""")

PEOPLE = _complemented("""
see saw seen seeing = ver
call called called calling = llamar hn
visit visited visited visiting = visitar hn
help helped helped helping = ayudar hn
know knew known knowing = conocer i
wait_for waited_for waited_for waiting_for = esperar hn
look_for looked_for looked_for looking_for = buscar n
listen_to listened_to listened_to listening_to = escuchar hn
understand understood understood understanding = entender
invite invited invited inviting = invitar hn
greet greeted greeted greeting = saludar h
""")
