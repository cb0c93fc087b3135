"""Adjectives in English and Spanish (masculine) with the nouns that they fit; those in `ESTAR` describe a state."""

from __future__ import annotations

from typing import NamedTuple

from phrases import nouns
from phrases.nouns import Noun


class Adjective(NamedTuple):
    """An adjective in both languages."""

    english: str
    spanish: str
    nouns: tuple[Noun, ...]
    more: str = ""
    """English comparative, such as “bigger”; empty if it is formed with “more”"""

    @property
    def comparative(self) -> str:
        return self.more or f"more {self.english}"


_THINGS = nouns.CLOTHES + nouns.SMALL + nouns.LARGE
_COLOURED = (
    nouns.CLOTHES
    + nouns.PAIRS
    + tuple(
        noun for noun in nouns.SMALL + nouns.LARGE + nouns.VEHICLES if noun.english in
        ["bag", "umbrella", "phone", "notebook", "pencil", "bottle", "cup", "plate", "box", "ball", "lamp",
            "backpack", "suitcase", "towel", "blanket", "wallet", "flower", "candle", "basket", "guitar", "table",
                "chair", "bed", "sofa", "bicycle", "carpet", "armchair", "car", "bus", "boat", "motorbike", "truck",
                    "pillow", "brush", "toy", "desk", "fridge"]
    )
)  # fmt: skip

COLOURS = tuple(
    Adjective(english, spanish, _COLOURED)
    for english, spanish in (
        ("red", "rojo"), ("blue", "azul"), ("green", "verde"), ("yellow", "amarillo"), ("white", "blanco"),
        ("black", "negro"), ("brown", "marrón"), ("grey", "gris"), ("purple", "morado"),
    )
)  # fmt: skip


def _named(words: str) -> tuple[Noun, ...]:
    return tuple(nouns.BY_NAME[word] for word in words.split())


SER = (
    Adjective("big", "grande", nouns.LARGE + nouns.HOMES + nouns.ANIMALS + nouns.TOWN + nouns.NATURE
              + nouns.VEHICLES
              + _named("bag box suitcase backpack bottle plate ball umbrella basket key map"), "bigger"),
    Adjective("small", "pequeño", nouns.LARGE + nouns.HOMES + nouns.ANIMALS + nouns.SHOPS + nouns.VEHICLES
              + _named("village island lake garden book bag umbrella watch phone camera notebook bottle cup")
              + _named("glass plate knife spoon box ball lamp map backpack suitcase towel ring toy flower")
              + _named("candle basket guitar radio pillow"),
              "smaller"),
    Adjective("expensive", "caro", nouns.PRICED + nouns.VEHICLES
              + _named("house flat hotel restaurant shop supermarket bread cheese fish meat coffee wine")),
    Adjective("cheap", "barato", nouns.PRICED
              + _named("house flat hotel restaurant shop supermarket bread rice fruit car motorbike beer"), "cheaper"),
    Adjective("beautiful", "bonito", nouns.CLOTHES + nouns.HOMES + nouns.NATURE
              + _named("ring lamp flower mirror painting carpet bird horse cat church square song photo postcard")),
    Adjective("new", "nuevo", _THINGS + nouns.PAIRS + nouns.VEHICLES
              + _named("house flat office hotel school library hospital station"), "newer"),
    Adjective("old", "viejo", _THINGS + nouns.PAIRS + nouns.VEHICLES
              + _named("house flat bridge tree theatre dog horse school"), "older"),
    Adjective("modern", "moderno", _named("house flat office hotel school library hospital station kitchen museum "
              "theatre airport train computer")),
    Adjective("heavy", "pesado", nouns.HEAVY, "heavier"),
    Adjective("comfortable", "cómodo", nouns.SOFT + nouns.PAIRS[:2]),
    Adjective("fast", "rápido", nouns.VEHICLES + _named("horse dog bicycle rabbit computer"), "faster"),
    Adjective("slow", "lento", nouns.VEHICLES[:4] + _named("turtle donkey computer"), "slower"),
    Adjective("easy", "fácil", nouns.STUDY, "easier"),
    Adjective("difficult", "difícil", nouns.STUDY),
    Adjective("important", "importante", _named("question exam lesson word letter bridge city port")),
    Adjective("interesting", "interesante", nouns.SHOWS + _named("lesson game exercise city question")),
    Adjective("boring", "aburrido", nouns.SHOWS[:1] + nouns.SHOWS[3:5] + _named("lesson exercise novel book party "
              "programme game")),
    Adjective("long", "largo",
        _named("film book story concert class song novel trip poem lesson exam street river bridge "
              "letter dress coat scarf skirt beach word"), "longer"),
    Adjective("short", "corto", _named("film book story concert class song novel trip poem lesson exam street letter "
              "dress skirt word tie"), "shorter"),
    Adjective("funny", "divertido", _named("film book story class song programme game party"), "funnier"),
    Adjective("sad", "triste", _named("film book story song novel poem"), "sadder"),
    Adjective("quiet", "tranquilo", _named("street village beach hotel park room library island café square lake"),
              "quieter"),
    Adjective("dangerous", "peligroso", _named("street river mountain game bridge")),
    Adjective("useful", "útil", _named("book map dictionary word lesson phone knife computer exercise idea")),
    Adjective("strong", "fuerte", _named("horse donkey bridge table box coffee tea"), "stronger"),
    Adjective("famous", "famoso", _named("museum theatre restaurant song novel painting bridge square beach hotel")),
    Adjective("deep", "profundo", _named("river lake"), "deeper"),
    Adjective("high", "alto", _named("mountain bridge tree"), "higher"),
)  # fmt: skip

ESTAR = (
    Adjective("clean", "limpio", nouns.CLOTHES + nouns.PAIRS[:5] + nouns.HOMES
              + _named("cup glass plate knife spoon table car window towel blanket fridge mirror street beach river"),
              "cleaner"),
    Adjective("dirty", "sucio", nouns.CLOTHES + nouns.PAIRS[:6] + nouns.HOMES
              + _named("cup glass plate knife spoon table car window towel blanket fridge mirror street beach dog "
                       "carpet"), "dirtier"),
    Adjective("broken", "roto", nouns.BREAKABLE),
    Adjective("full", "lleno", nouns.CONTENTS),
    Adjective("empty", "vacío", nouns.CONTENTS + _named("house flat room street park beach")),
    Adjective("open", "abierto", nouns.OPENINGS + nouns.SHOPS + _named("box bag suitcase bottle")),
    Adjective("closed", "cerrado", nouns.OPENINGS + nouns.SHOPS + _named("box suitcase park school station")),
    Adjective("hot", "caliente", _named("soup coffee tea milk pizza bread oven omelette")),
    Adjective("cold", "frío", _named("soup coffee tea milk pizza beer rice chicken lemonade")),
    Adjective("delicious", "delicioso", nouns.DISHES + _named("bread cheese rice fish meat chicken chocolate honey ham "
              "pasta coffee wine jam")),
    Adjective("wet", "mojado", nouns.CLOTHES[:8] + nouns.PAIRS[:1] + _named("towel blanket umbrella street dog "
              "cat carpet newspaper")),
    Adjective("dry", "seco", nouns.CLOTHES[:8] + _named("towel blanket carpet bread")),
    Adjective("occupied", "ocupado", _named("table chair room bathroom taxi")),
)  # fmt: skip
