"""Words for people: traits, states, feelings expressed by “tener”, occupations, countries."""

from __future__ import annotations


def _rows(table: str, width: int) -> tuple[tuple[str, ...], ...]:
    rows = tuple(tuple(cell.strip() for cell in row.split("=")) for row in table.replace("\n", " ").split(";"))
    if any(len(row) != width for row in rows):
        raise ValueError(f"a row has not {width} cells: {[row for row in rows if len(row) != width]}")
    return rows


TRAITS = _rows("""
tall = alto = taller; kind = amable = kinder; intelligent = inteligente = more intelligent;
nice = simpático = nicer;
young = joven = younger; strong = fuerte = stronger; shy = tímido = shyer;
hard-working = trabajador = more hard-working;
lazy = perezoso = lazier; funny = gracioso = funnier; polite = educado = more polite;
generous = generoso = more generous;
honest = sincero = more honest; patient = paciente = more patient; brave = valiente = braver;
elegant = elegante = more elegant; famous = famoso = more famous; short = bajo = shorter; thin = delgado = thinner;
rich = rico = richer; good-looking = guapo = more good-looking; cheerful = alegre = more cheerful;
serious = serio = more serious;
curious = curioso = more curious; talkative = hablador = more talkative; creative = creativo = more creative;
fast = rápido = faster; clever = listo = cleverer; responsible = responsable = more responsible
""", 3)  # fmt: skip
FEELS = _rows("""
tired = cansado; happy = contento; sad = triste; ill = enfermo; angry = enfadado; busy = ocupado;
worried = preocupado;
nervous = nervioso; bored = aburrido; ready = listo; alone = solo; surprised = sorprendido; calm = tranquilo;
married = casado; lost = perdido; awake = despierto; asleep = dormido; excited = emocionado; in love = enamorado;
grateful = agradecido; sure = seguro; relaxed = relajado; proud = orgulloso; confused = confundido;
satisfied = satisfecho; disappointed = decepcionado
""", 2)  # fmt: skip
FEELINGS = _rows("""
hungry = hambre = f; thirsty = sed = f; hot = calor = m; cold = frío = m; sleepy = sueño = m; afraid = miedo = m;
in a hurry = prisa = f; right = razón = f; lucky = suerte = f
""", 3)  # fmt: skip
WORK = _rows("""
teacher = profesor = profesora; doctor = médico = médica; nurse = enfermero = enfermera;
student = estudiante = estudiante;
cook = cocinero = cocinera; baker = panadero = panadera; lawyer = abogado = abogada;
engineer = ingeniero = ingeniera;
writer = escritor = escritora; painter = pintor = pintora; singer = cantante = cantante; actor = actor = actriz;
journalist = periodista = periodista; dentist = dentista = dentista; farmer = agricultor = agricultora;
waiter = camarero = camarera; hairdresser = peluquero = peluquera; musician = músico = música;
scientist = científico = científica; dancer = bailarín = bailarina; police officer = policía = policía;
photographer = fotógrafo = fotógrafa; architect = arquitecto = arquitecta; secretary = secretario = secretaria;
gardener = jardinero = jardinera; librarian = bibliotecario = bibliotecaria; athlete = atleta = atleta;
pilot = piloto = piloto; mechanic = mecánico = mecánica; vet = veterinario = veterinaria; judge = juez = jueza;
tailor = sastre = sastra; shop assistant = dependiente = dependienta
""", 3)  # fmt: skip
COUNTRIES = _rows("""
Spain = España = Spanish = español; Mexico = México = Mexican = mexicano; France = Francia = French = francés;
Italy = Italia = Italian = italiano; Germany = Alemania = German = alemán; England = Inglaterra = English = inglés;
Portugal = Portugal = Portuguese = portugués; Argentina = Argentina = Argentinian = argentino;
Chile = Chile = Chilean = chileno; Peru = Perú = Peruvian = peruano; Colombia = Colombia = Colombian = colombiano;
Cuba = Cuba = Cuban = cubano; Brazil = Brasil = Brazilian = brasileño; Canada = Canadá = Canadian = canadiense;
China = China = Chinese = chino; Japan = Japón = Japanese = japonés; Russia = Rusia = Russian = ruso;
Ireland = Irlanda = Irish = irlandés; Scotland = Escocia = Scottish = escocés; Greece = Grecia = Greek = griego;
Poland = Polonia = Polish = polaco; Sweden = Suecia = Swedish = sueco; Turkey = Turquía = Turkish = turco;
Egypt = Egipto = Egyptian = egipcio; Morocco = Marruecos = Moroccan = marroquí;
Australia = Australia = Australian = australiano
""", 4)  # fmt: skip
