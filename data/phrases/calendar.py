"""Numbers, days, months and hours in words."""

from __future__ import annotations

from grammar import listed

_ENGLISH = listed("""zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen""")
_SPANISH = listed("""cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis
diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete
veintiocho veintinueve""")
_ENGLISH_TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
_SPANISH_TENS = listed("treinta cuarenta cincuenta sesenta setenta ochenta noventa")


def _number(value: int) -> tuple[str, str]:
    tens, ones = divmod(value, 10)
    en = _ENGLISH[value] if value < 20 else _ENGLISH_TENS[tens - 2] + (f"-{_ENGLISH[ones]}" if ones else "")
    es = _SPANISH[value] if value < 30 else _SPANISH_TENS[tens - 3] + (f" y {_SPANISH[ones]}" if ones else "")
    return en, es


NUMBER_WORDS = (*map(_number, range(100)), ("one hundred", "cien"))
"""Numbers from 0 to 100 in English and Spanish."""

DAYS = tuple(zip(listed("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
                 listed("lunes martes miércoles jueves viernes sábado domingo"), strict=True))  # fmt: skip
MONTHS = tuple(zip(listed("January February March April May June July August September October November December"),
                   listed("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
                   strict=True))  # fmt: skip
SEASONS = (("spring", "primavera"), ("summer", "verano"), ("autumn", "otoño"), ("winter", "invierno"))
ORDINALS = listed("""first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth
fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second
twenty-third twenty-fourth
twenty-fifth twenty-sixth twenty-seventh twenty-eighth""")


def of_years(count: int, feminine: bool = False) -> str:
    """Return the Spanish number as written before a noun: “veintiún”, “treinta y una”."""
    word = NUMBER_WORDS[count][1]
    if not word.endswith("uno"):
        return word
    if feminine:
        return word[:-1] + "a"
    return "veintiún" if word == "veintiuno" else word[:-1]


def hour(value: int) -> str:
    """Return the hour in Spanish: “las tres”, “la una”."""
    return "la una" if value == 1 else f"las {NUMBER_WORDS[value][1]}"


def clock(hours: int, minutes: int) -> tuple[str, str]:
    """Return the time in words in both languages: “half past three”, “las tres y media”."""
    following = hours % 12 + 1
    if minutes == 0:
        return f"{NUMBER_WORDS[hours][0]} o'clock", hour(hours)
    if minutes == 15:
        return f"a quarter past {NUMBER_WORDS[hours][0]}", f"{hour(hours)} y cuarto"
    if minutes == 30:
        return f"half past {NUMBER_WORDS[hours][0]}", f"{hour(hours)} y media"
    if minutes == 45:
        return f"a quarter to {NUMBER_WORDS[following][0]}", f"{hour(following)} menos cuarto"
    if minutes < 30:
        return (
            f"{NUMBER_WORDS[minutes][0]} past {NUMBER_WORDS[hours][0]}",
            f"{hour(hours)} y {NUMBER_WORDS[minutes][1]}",
        )
    rest = 60 - minutes
    return (
        f"{NUMBER_WORDS[rest][0]} to {NUMBER_WORDS[following][0]}",
        f"{hour(following)} menos {NUMBER_WORDS[rest][1]}",
    )
