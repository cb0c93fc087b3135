"""Questions outside its world: an honest, short "I don't know that" in many forms, never a guess."""

from __future__ import annotations

from grammar import listed

from smalltalk.talk import Scenes, Talk

PEOPLE = listed(
    "the president,the mayor of <town>,napoleon,mozart,einstein,cleopatra,the king of <land>,the richest person,"
    "beyonce,the inventor of the radio,the first man on the moon,<name>,<name> <name>,shakespeare,picasso,the queen "
    "of <land>,my neighbour,the author of <name>,the winner of the cup,the prime minister of <land>,buddha,caesar,"
    "the boss of google,newton,darwin",
    ",",
)
PLACES = listed(
    "<town>,<land>,mars,the amazon,the pacific,the north pole,the white house,the longest river,everest,my street", ","
)
HARD = listed(
    "quantum physics,inflation,relativity,photosynthesis,blockchain,gravity,the stock market,evolution,a black hole,"
    "electricity,dna,philosophy,calculus,democracy,the big bang,an atom,economics,algebra,machine learning in detail,"
    "a mortgage,bitcoin,a virus,the french revolution,the roman empire,world war two,the cold war,magnetism,"
    "trigonometry,nuclear power,taxes,insulin,linux,entropy,the constitution,a transistor,hydraulics,plate tectonics,"
    "chemistry,genetics,jazz theory,astrology,the law,kant",
    ",",
)
SKILLS = listed(
    "fix my car,cook a lasagne,tie a tie,write a python script,get rich,lose weight,learn german,install windows,"
    "change a tyre,make money,repair my roof,write a contract,file my taxes,grow tomatoes,play the violin,build a "
    "house,find a job,cure a cold,invest my savings,sort a list in java,bake a wedding cake,get a passport,hack a "
    "website,train a horse,sail to <land>,book a flight to <town>,brew beer,write an essay about <hard>,delete my "
    "account,connect my printer,plan a wedding,sew a dress,win the lottery,pass my law exam",
    ",",
)
EVENTS = listed(
    "the world cup,the election in <land>,the match last night,the war of <year>,the oscars,the race in <town>,the "
    "nobel prize in <year>,the battle of <town>,the chess final,the song contest in <year>",
    ",",
)
FIGURES = listed(
    "the population of <land>,the height of everest,the distance to the moon,the price of gold,the speed of light,"
    "the size of <land>,the boiling point of iron,the age of the earth,the weight of a whale,the depth of the sea,"
    "the length of the nile,pi to ten digits,the price of a ticket to <town>,the phone number of <name>,the address "
    "of <name>,the exchange rate,my bank balance,the wifi password,the year of the battle of <town>,the distance "
    "from <town> to <town>,the temperature of the sun,the number of stars",
    ",",
)
TOWNS = listed(
    "ulm,bath,nice,salem,tunis,osaka,lagos,bonn,lille,tartu,fez,izmir,cusco,kazan,davos,arles,bruges,seville,pune,jena",
    ",",
)
LANDS = listed(
    "brazil,nigeria,korea,sweden,poland,chad,mali,nepal,egypt,china,texas,ruritania,wales,bavaria,siberia,utah", ","
)

QUESTIONS = (
    ("who (is|was|are|were) <who>?", PEOPLE), ("(tell me|what do you know|what can you say) about <who>", PEOPLE),
     ("when (was|did|is|were) <who> (born|die|famous)?", PEOPLE),
    ("how old is <who>?", PEOPLE), ("what did <who> (invent|say|do|write|discover|eat for lunch)?", PEOPLE),
     ("have you heard of <who>?", PEOPLE),
    ("how far is (it to |)<where>?", PLACES), ("what is <where> (like|famous for)?", PLACES),
     ("how do i get to <where>?", PLACES),
    ("who (discovered|lives in|owns|rules) <where>?", PLACES), ("when was <where> (built|found|discovered|founded)?",
     PLACES),
    ("(explain|can you explain|teach me|tell me about|please explain|what do you know about) <hard>", HARD),
     ("what (is|are) <hard>( exactly| really| in short|)?", HARD),
    ("how does <hard> work?", HARD), ("why is <hard> (important|so hard|bad|good)?", HARD),
     ("(write|i need) (an essay|a report|a speech|a summary) (about|on) <hard>", HARD),
    ("how (do i|can i|does one|should i) <skill>?", SKILLS), ("(help me|can you help me|i want) to <skill>", SKILLS),
     ("can you <skill>( for me|)?", SKILLS),
    ("(show me|teach me|explain) how to <skill>", SKILLS), ("what is the best way to <skill>?", SKILLS),
    ("who won <event>?", EVENTS), ("when (was|is) <event>?", EVENTS), ("what happened (in|at|after) <event>?",
     EVENTS), ("how did <event> end?", EVENTS),
    ("what is <figure>?", FIGURES), ("(tell me|give me|do you know|look up|find) <figure>", FIGURES),
     ("i need to know <figure>", FIGURES),
    ("what happened in <year>( in <land>|)?", ("",)),
     ("(translate|how do you say|what is) <thing> in (french|german|latin|japanese|spanish|greek|hindi)?", ("",)),
    ("(what is|any|tell me|show me) the (latest|newest|news|headlines|score) (of today|from <town>|about <who>|)?",
     PEOPLE),
    ("(order|buy|book|call|send|play|open|search for|download|google) (me |)(a pizza|a taxi|music by <name>|an email"
     " to <name>|a flight to <town>|the internet|a photo of <where>)", PLACES),
    ("(should i|would you) (marry <name>|sell my house|buy shares|quit my job|move to <town>|take this medicine|sue"
     " my boss|vote for <name>)?", ("",)),
    ("(who|what) is (stronger|faster|richer|more famous), <who> or <name>?", PEOPLE),
    ("who (sang|wrote|directed|painted|composed|invented) (<thing>|the <thing>|the song of <town>|<name>)?", ("",)),
    ("in (what|which) (year|century|film|book) (was|did|is) <who>?", PEOPLE),
)  # fmt: skip
THINGS = listed(
    "water,house,the wheel,good night,paper,the clock,the bicycle,love,bread,the moonlight song,the red door,the "
    "telephone,yesterday,cheese",
    ",",
)

REPLIES = (
    "I don't know that( one|, I'm afraid|, sorry|).( I am only a tiny model.| My world is very small.| Ask me "
    "something smaller.| A bigger model may.|)",
    "(Sorry|I'm sorry|I am sorry), I (don't know|never learned|can't answer|have no idea about) that.( I am very "
    "small.| It is too big for me.|)",
    "(That is|That's) (beyond|outside|too big for|more than fits into) (me|my small world|my few numbers|a tiny "
    "model).( Sorry!| Try a capital or a riddle.|)",
    "(No idea|I have no idea|I can't say), (honestly|to be honest|I'm afraid|sorry). (I only know small things|My "
    "head is tiny|Better ask a person)(.| or a book.)",
    "I (never learned|did not learn|was not taught) that, (so I won't guess|and I won't make it up|and guessing "
    "would not help|sadly).",
    "I would (only be guessing|have to guess|make something up), so (no|I say: I don't know|I'd rather say I don't "
    "know).",
    "(My training|The text I learned from) (did not have|never had|left out) that.( Ask me for a joke instead.| "
    "Sorry!|)",
    "(I'm too small|I am too small|My model is too small) (to know|for) that.( A library would know.| But I know "
    "some riddles.| But I can count to twenty.|)",
    "(Hmm|Well|Oh), I (do not|don't) know that.( Few things fit into me.| Shall we try a riddle?| Sorry!|)",
)


def _fill_in(talk: Talk, text: str) -> str:
    dice = talk.dice
    for slot, items in (("<hard>", HARD), ("<town>", TOWNS), ("<land>", LANDS), ("<thing>", THINGS)):
        while slot in text:
            text = text.replace(slot, dice.choice(items), 1)
    while "<name>" in text:
        text = text.replace("<name>", talk.new_name().lower(), 1)
    while "<year>" in text:
        text = text.replace("<year>", str(dice.between(1066, 2024)), 1)
    return text


def unknown(talk: Talk) -> None:
    """A question that the bot can't answer, and says so."""
    question, items = talk.dice.choice(QUESTIONS)
    slots = {slot: _fill_in(talk, talk.dice.choice(items)) for slot in ("who", "where", "skill", "event", "figure")}
    values = slots | {slot: _fill_in(talk, f"<{slot}>") for slot in ("hard", "town", "land", "thing", "name", "year")}
    talk.ask(question, REPLIES, **values)


SCENES: Scenes = ((9.0, unknown),)
