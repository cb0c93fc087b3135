"""Nouns in English and Spanish with their gender, grouped by what can be said of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from phrases import english, spanish
from phrases.spanish import Gender


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; `number` is 2 for plural-only nouns such as “trousers”."""

    english: str
    spanish: str
    gender: Gender
    number: int = 1

    def in_english(self, number: int = 1) -> str:
        return english.plural(self.english) if number == 2 and self.number == 1 else self.english

    def in_spanish(self, number: int = 1) -> str:
        return spanish.plural(self.spanish) if number == 2 and self.number == 1 else self.spanish

    def the(self, number: int = 1) -> str:
        """Return the Spanish noun with its definite article."""
        return f"{spanish.the(self.gender, max(number, self.number))} {self.in_spanish(number)}"


def read(table: str, number: int = 1) -> tuple[Noun, ...]:
    """Parse nouns written as `english = spanish gender`, separated by semicolons."""
    nouns = []
    for entry in table.replace("\n", " ").split(";"):
        if entry.strip():
            left, right = entry.split("=")
            word, gender = right.rsplit(maxsplit=1)
            nouns.append(Noun(left.strip(), word.strip(), cast("Gender", gender), number))
    return tuple(nouns)


CLOTHES = read("""
shirt = camisa f; dress = vestido m; skirt = falda f; jacket = chaqueta f; coat = abrigo m; hat = sombrero m;
sweater = suéter m; scarf = bufanda f; tie = corbata f; T-shirt = camiseta f; belt = cinturón m; cap = gorra f;
suit = traje m; raincoat = impermeable m
""")
PAIRS = read(
    """
shoes = zapatos m; trousers = pantalones m; glasses = gafas f; gloves = guantes m; socks = calcetines m;
boots = botas f; sandals = sandalias f; earrings = pendientes m
""",
    number=2,
)
SMALL = read("""
book = libro m; bag = bolsa f; umbrella = paraguas m; watch = reloj m; phone = teléfono m; camera = cámara f;
notebook = cuaderno m; pencil = lápiz m; key = llave f; letter = carta f; newspaper = periódico m; bottle = botella f;
cup = taza f; glass = vaso m; plate = plato m; knife = cuchillo m; spoon = cuchara f; box = caja f; ball = pelota f;
lamp = lámpara f; ticket = billete m; map = mapa m; backpack = mochila f; suitcase = maleta f; towel = toalla f;
blanket = manta f; ring = anillo m; wallet = cartera f; magazine = revista f; dictionary = diccionario m;
passport = pasaporte m; toy = juguete m; flower = flor f; candle = vela f; basket = cesta f; brush = cepillo m;
guitar = guitarra f; radio = radio f; pillow = almohada f; photo = foto f; postcard = postal f
""")
LARGE = read("""
table = mesa f; chair = silla f; bed = cama f; sofa = sofá m; computer = ordenador m; bicycle = bicicleta f;
mirror = espejo m; clock = reloj m; desk = escritorio m; bookshelf = estantería f; carpet = alfombra f;
fridge = nevera f;
television = televisor m; painting = cuadro m; piano = piano m; armchair = sillón m; oven = horno m
""")
VEHICLES = read("""
car = coche m; bus = autobús m; train = tren m; boat = barco m; plane = avión m; motorbike = moto f; taxi = taxi m;
truck = camión m
""")
HOMES = read("""
house = casa f; flat = piso m; kitchen = cocina f; room = habitación f; garden = jardín m; office = oficina f;
bathroom = cuarto de baño m; garage = garaje m; balcony = balcón m; living room = salón m
""")
OPENINGS = read("door = puerta f; window = ventana f")
TOWN = read("""
bank = banco m; hotel = hotel m; hospital = hospital m; school = escuela f; station = estación f; museum = museo m;
library = biblioteca f; church = iglesia f; market = mercado m; pharmacy = farmacia f; restaurant = restaurante m;
supermarket = supermercado m; park = parque m; beach = playa f; cinema = cine m; theatre = teatro m;
airport = aeropuerto m;
post office = oficina de correos f; bakery = panadería f; bookshop = librería f; university = universidad f;
swimming pool = piscina f; town hall = ayuntamiento m; police station = comisaría f; bus stop = parada de autobús f;
café = cafetería f; zoo = zoológico m; shop = tienda f; square = plaza f; port = puerto m
""")
SHOPS = tuple(
    noun for noun in TOWN if noun.english in
    ["bank", "museum", "library", "market", "pharmacy", "restaurant", "supermarket", "cinema", "bakery", "bookshop",
        "café", "shop", "zoo", "church"]
)  # fmt: skip
NATURE = read("""
river = río m; lake = lago m; mountain = montaña f; forest = bosque m; tree = árbol m; island = isla f;
garden = jardín m;
beach = playa f; street = calle f; bridge = puente m; village = pueblo m; city = ciudad f
""")
ANIMALS = read("""
dog = perro m; cat = gato m; horse = caballo m; bird = pájaro m; cow = vaca f; rabbit = conejo m; duck = pato m;
sheep = oveja f; pig = cerdo m; goat = cabra f; hen = gallina f; mouse = ratón m; turtle = tortuga f;
donkey = burro m;
parrot = loro m; frog = rana f
""")
FRUIT = read("""
apple = manzana f; orange = naranja f; banana = plátano m; pear = pera f; peach = melocotón m; lemon = limón m;
tomato = tomate m; potato = patata f; carrot = zanahoria f; onion = cebolla f; egg = huevo m; melon = melón m
""")
DISHES = read("""
soup = sopa f; salad = ensalada f; cake = tarta f; sandwich = bocadillo m; omelette = tortilla f; pizza = pizza f;
ice cream = helado m; pie = empanada f; biscuit = galleta f
""")
FOOD = read("""
bread = pan m; cheese = queso m; rice = arroz m; fish = pescado m; meat = carne f; chicken = pollo m;
chocolate = chocolate m;
butter = mantequilla f; sugar = azúcar m; salt = sal f; honey = miel f; ham = jamón m; pasta = pasta f;
fruit = fruta f;
jam = mermelada f; oil = aceite m
""")
DRINKS = read("""
coffee = café m; tea = té m; milk = leche f; wine = vino m; beer = cerveza f; orange juice = zumo de naranja m;
hot chocolate = chocolate caliente m; lemonade = limonada f; apple juice = zumo de manzana m
""")
STUDY = read("""
question = pregunta f; exam = examen m; exercise = ejercicio m; lesson = lección f; game = juego m; word = palabra f;
homework = tarea f
""")
SHOWS = read("""
film = película f; book = libro m; story = cuento m; concert = concierto m; class = clase f; song = canción f;
novel = novela f; party = fiesta f; programme = programa m; poem = poema m; trip = viaje m; idea = idea f;
museum = museo m; magazine = revista f
""")
BODY = read("""
head = cabeza f; back = espalda f; stomach = estómago m; leg = pierna f; arm = brazo m; hand = mano f; foot = pie m;
throat = garganta f; knee = rodilla f; ear = oído m; tooth = diente m
""")
PLURAL_BODY = read("feet = pies m; eyes = ojos m; legs = piernas f; hands = manos f; ears = oídos m", number=2)
COUNTED = SMALL + CLOTHES + ANIMALS + FRUIT

CONTENTS = read("""
bottle = botella f; glass = vaso m; box = caja f; bag = bolsa f; fridge = nevera f; bus = autobús m; train = tren m;
restaurant = restaurante m; cup = taza f; basket = cesta f; cinema = cine m; suitcase = maleta f; bath = bañera f
""")
HEAVY = read("""
box = caja f; bag = bolsa f; suitcase = maleta f; table = mesa f; backpack = mochila f; armchair = sillón m;
basket = cesta f; stone = piedra f; door = puerta f
""")
SOFT = read("""
chair = silla f; sofa = sofá m; bed = cama f; armchair = sillón m; jacket = chaqueta f; pillow = almohada f;
hotel = hotel m; car = coche m
""")
BREAKABLE = read("""
chair = silla f; lamp = lámpara f; phone = teléfono m; cup = taza f; clock = reloj m; computer = ordenador m;
window = ventana f; toy = juguete m; camera = cámara f; radio = radio f; umbrella = paraguas m; plate = plato m;
mirror = espejo m
""")
PRICED = tuple(
    noun for noun in CLOTHES + PAIRS + SMALL + LARGE
    if noun.english not in ("letter", "passport", "key", "photo", "box", "glass", "spoon")
)  # fmt: skip
BY_NAME = {
    noun.english: noun
    for noun in (*CLOTHES, *PAIRS, *SMALL, *LARGE, *VEHICLES, *HOMES, *OPENINGS, *TOWN, *NATURE, *ANIMALS, *FRUIT,
                 *DISHES, *FOOD, *DRINKS, *STUDY, *SHOWS, *BODY)
}  # fmt: skip
