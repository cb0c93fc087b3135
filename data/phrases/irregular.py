"""Irregular Spanish forms, which no rule yields."""

from __future__ import annotations

FORMS: dict[tuple[str, str], str] = {
    ("ser", "present"): "soy eres es somos son",
    ("ser", "past"): "fui fuiste fue fuimos fueron",
    ("ser", "imperfect"): "era eras era éramos eran",
    ("estar", "present"): "estoy estás está estamos están",
    ("ir", "present"): "voy vas va vamos van",
    ("ir", "past"): "fui fuiste fue fuimos fueron",
    ("ir", "imperfect"): "iba ibas iba íbamos iban",
    ("tener", "present"): "tengo tienes tiene tenemos tienen",
    ("venir", "present"): "vengo vienes viene venimos vienen",
    ("hacer", "present"): "hago haces hace hacemos hacen",
    ("hacer", "past"): "hice hiciste hizo hicimos hicieron",
    ("poner", "present"): "pongo pones pone ponemos ponen",
    ("salir", "present"): "salgo sales sale salimos salen",
    ("traer", "present"): "traigo traes trae traemos traen",
    ("decir", "present"): "digo dices dice decimos dicen",
    ("dar", "present"): "doy das da damos dan",
    ("dar", "past"): "di diste dio dimos dieron",
    ("ver", "present"): "veo ves ve vemos ven",
    ("ver", "past"): "vi viste vio vimos vieron",
    ("ver", "imperfect"): "veía veías veía veíamos veían",
    ("saber", "present"): "sé sabes sabe sabemos saben",
    ("conocer", "present"): "conozco conoces conoce conocemos conocen",
    ("conducir", "present"): "conduzco conduces conduce conducimos conducen",
    ("nacer", "present"): "nazco naces nace nacemos nacen",
    ("oír", "present"): "oigo oyes oye oímos oyen",
    ("recoger", "present"): "recojo recoges recoge recogemos recogen",
}

STEM_CHANGES: dict[str, tuple[str, str]] = {
    "cerrar": ("ie", ""),
    "encender": ("ie", ""),
    "encontrar": ("ue", ""),
    "perder": ("ie", ""),
    "jugar": ("ue", ""),
    "enviar": ("í", ""),
    "querer": ("ie", ""),
    "poder": ("ue", "u"),
    "dormir": ("ue", "u"),
    "volver": ("ue", ""),
    "empezar": ("ie", ""),
    "entender": ("ie", ""),
    "pedir": ("i", "i"),
    "doler": ("ue", ""),
    "recordar": ("ue", ""),
    "contar": ("ue", ""),
    "despertarse": ("ie", ""),
    "despertar": ("ie", ""),
    "acostar": ("ue", ""),
    "sentir": ("ie", "i"),
    "sentar": ("ie", ""),
    "vestir": ("i", "i"),
    "servir": ("i", "i"),
    "preferir": ("ie", "i"),
    "probar": ("ue", ""),
    "mostrar": ("ue", ""),
    "costar": ("ue", ""),
    "regar": ("ie", ""),
    "pensar": ("ie", ""),
    "almorzar": ("ue", ""),
    "divertir": ("ie", "i"),
}
"""vowel changes: in the present of all persons but “we”; in the third-person past and the gerund"""

STRONG_PAST = {
    "estar": "estuv",
    "tener": "tuv",
    "venir": "vin",
    "poner": "pus",
    "poder": "pud",
    "querer": "quis",
    "saber": "sup",
    "traer": "traj",
    "conducir": "conduj",
    "decir": "dij",
}

FUTURE_STEMS = {
    "tener": "tendr",
    "venir": "vendr",
    "hacer": "har",
    "poner": "pondr",
    "salir": "saldr",
    "poder": "podr",
    "querer": "querr",
    "saber": "sabr",
    "decir": "dir",
    "oír": "oir",
}

GERUNDS = {"ir": "yendo", "venir": "viniendo", "poder": "pudiendo", "decir": "diciendo", "oír": "oyendo"}

PARTICIPLES = {
    "ver": "visto",
    "hacer": "hecho",
    "poner": "puesto",
    "volver": "vuelto",
    "abrir": "abierto",
    "escribir": "escrito",
    "romper": "roto",
    "decir": "dicho",
    "ser": "sido",
}
