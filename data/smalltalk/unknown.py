"""Questions outside the bot's knowledge, answered by an honest, short “I don't know that” in many forms."""

from __future__ import annotations

from collections.abc import Sequence

from grammar import listed

from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

PEOPLE = listed(
    "the president,the mayor of <town>,napoleon,mozart,einstein,cleopatra,the king of <land>,the richest person,"
    "beyonce,the inventor of the radio,the first man on the moon,<name>,<name> <name>,shakespeare,picasso,the queen "
    "of <land>,the author of <name>,the winner of the cup,the prime minister of <land>,buddha,caesar,"
    "the boss of google,newton,darwin,elon musk,taylor swift,messi,ronaldo,obama,gandhi,mandela,lincoln,bach,beethoven,"
    "michael jackson,elvis,the pope,van gogh,rembrandt,galileo,plato,socrates,aristotle,columbus,churchill,stalin,"
    "marie curie,tesla,edison,freud,marx,kafka,goethe,dante,homer,tolstoy,steve jobs,bill gates,the beatles,rihanna,"
    "adele,drake,batman,spiderman,harry potter,the first king,the last emperor,zeus,thor,santa claus,the tooth fairy,"
    "neymar,serena williams,usain bolt,the dalai lama,alan turing,ada lovelace,the man next door,the "
    "teacher of <name>,the sister of <name>,the captain of the team,the founder of <town>,the mayor",
    ",",
)
PLACES = listed(
    "<town>,<land>,mars,the amazon,the pacific,the north pole,the white house,the longest river,everest,my"
    " street,venus,"
    "jupiter,saturn,the alps,the sahara,the eiffel tower,the taj mahal,the great wall,the nile,the danube,hollywood,"
    "the bermuda triangle,atlantis,the colosseum,stonehenge,the louvre,silicon valley,broadway,the vatican,the kremlin,"
    "the moon,the black sea,niagara falls,the grand canyon,the nearest hospital,the next bus stop,the airport",
    ",",
)
HARD = listed(
    "quantum physics,inflation,relativity,photosynthesis,blockchain,gravity,the stock market,evolution,a black hole,"
    "electricity,dna,philosophy,calculus,democracy,the big bang,an atom,economics,algebra,machine learning in detail,"
    "a mortgage,bitcoin,a virus,the french revolution,the roman empire,world war two,the cold war,magnetism,"
    "trigonometry,nuclear power,taxes,insulin,linux,entropy,the constitution,a transistor,hydraulics,plate tectonics,"
    "chemistry,genetics,jazz theory,astrology,the law,kant,a carburettor,a microscope,a tornado,an earthquake,the moon "
    "landing,a vaccine,cholesterol,a kidney,protein,oxygen,carbon,helium,uranium,an isotope,a quark,a neutrino,gluten,"
    "feudalism,capitalism,socialism,a republic,a parliament,nato,the euro,the stock exchange,a bond,a hedge fund,rent "
    "control,insurance,a pension,a credit score,wifi,bluetooth,a router,a compiler,a search engine,a web page,a"
    " cookie banner,"
    "kubernetes,a database,an api,an operating system,a spreadsheet,a firewall,encryption,cloud computing,a gpu,a "
    "transformer,backpropagation,gradient descent,overfitting,reinforcement learning,pythagoras' theorem,a prime "
    "number,a matrix,an integral,a derivative,probability theory,statistics,a logarithm,geometry,topology,a sonnet,a "
    "metaphor,a haiku,the baroque,impressionism,cubism,opera,ballet,karma,zen,buddhism,islam,christianity,judaism,"
    "stoicism,ethics,logic,dark matter,a galaxy,a comet,a supernova,the greenhouse effect,global warming,acid rain,the "
    "water cycle,erosion,tectonics,a fossil,a dinosaur,the ice age,the stone age,the renaissance,the middle ages,the "
    "crusades,colonialism,apartheid,the gold rush,prohibition,a tsunami,malaria,asthma,diabetes,a migraine,anxiety "
    "disorder,a neuron,an enzyme,a hormone,osmosis,mitosis,a carbohydrate,nitrogen,photons,lasers,radar,sonar,gps,a "
    "combustion engine,a turbine,a gearbox,a semiconductor,copper wiring,concrete,steel,asphalt,porcelain,<made>,a "
    "<made>,the <made>",
    ",",
)
SKILLS = listed(
    "fix my car,cook a lasagne,tie a tie,write a python script,get rich,lose weight,learn german,install windows,"
    "change a tyre,make money,repair my roof,write a contract,file my taxes,grow tomatoes,play the violin,build a "
    "house,find a job,cure a cold,invest my savings,sort a list in java,bake a wedding cake,get a passport,hack a "
    "website,train a horse,sail to <land>,book a flight to <town>,brew beer,write an essay about <hard>,delete my "
    "account,connect my printer,plan a wedding,sew a dress,win the lottery,pass my law exam,cook pasta,boil an"
    " egg,make "
    "sushi,speak french,learn chinese,drive a car,fly a plane,get a visa,apply for a loan,rent a flat,clean an oven,"
    "unclog a sink,paint a wall,lay tiles,tune a guitar,dance salsa,meditate,sleep better,gain muscle,run a marathon,"
    "quit smoking,stop worrying,make friends,ask for a raise,write a cv,start a company,sell my car,trade shares,mine "
    "bitcoin,use excel,edit a video,take better photos,grow roses,keep bees,train my dog,potty train my son,fix a bug,"
    "solve this equation,do long division,convert miles to km,reset my phone,root my phone,speed up my laptop,get more "
    "followers,become famous,survive in the desert,build a fire,tie a bowline,make soap,get rid of mice,fold a paper "
    "crane,juggle,whistle loudly,do a handstand,play poker,bluff,cheat in a test,pick a lock",
    ",",
)
EVENTS = listed(
    "the world cup,the election in <land>,the match last night,the war of <year>,the oscars,the race in <town>,the "
    "nobel prize in <year>,the battle of <town>,the chess final,the song contest in <year>,the super bowl,the"
    " olympics,the "
    "champions league,the grammys,the tour de france,wimbledon,the vote,the <year> world cup,the marathon in"
    " <town>,the "
    "space race,the gold medal,the lottery last week,the match between <town> and <town>,the war between <land> and"
    " <land>",
    ",",
)
FIGURES = listed(
    "the population of <land>,the height of everest,the distance to the moon,the price of gold,the speed of light,"
    "the size of <land>,the boiling point of iron,the age of the earth,the weight of a whale,the depth of the sea,"
    "the length of the nile,pi to ten digits,the price of a ticket to <town>,the phone number of <name>,the address "
    "of <name>,the exchange rate,my bank balance,the wifi password,the year of the battle of <town>,the distance "
    "from <town> to <town>,the temperature of the sun,the number of stars,the gdp of <land>,the time in <town>,the "
    "the height of the eiffel tower,the area of <land>,the currency of <land>,the language "
    "of <land>,the flag of <land>,the anthem of <land>,the zip code of <town>,the best phone,the best laptop,the best "
    "restaurant in <town>,the fastest car,the tallest building,the biggest ocean,the deepest lake,the oldest tree,the "
    "rarest metal,the chemical formula of water,the atomic number of gold,the meaning of the name <name>,the plot of "
    "hamlet,the ending of the film,the lyrics of that song,the cheapest flight to <town>,the score,the exchange rate"
    " of "
    "the dollar,the answer to question 5,the next lottery numbers,the "
    "distance to <town>,the first element,the mass of the moon,the diameter of the earth,the freezing point of salt"
    " water",
    ",",
)
TOWNS = listed(
    "ulm,bath,nice,salem,tunis,osaka,lagos,bonn,lille,tartu,fez,izmir,cusco,kazan,davos,arles,bruges,seville,pune,jena",
    ",",
)
LANDS = listed("nigeria,sweden,poland,chad,mali,nepal,egypt,china,texas,ruritania,wales,bavaria,siberia,utah", ",")

WHYS = listed(
    "is the sky blue,is the sea salty,do cats purr,do we dream,do we yawn,do leaves fall,is grass green,do birds"
    " sing,do "
    "planes fly,do ships float,is fire hot,is ice slippery,do we sneeze,do people fight,is gold so expensive,do stars "
    "twinkle,does the moon change,is the earth round,do volcanoes erupt,do we have wars,did the dinosaurs die,did rome "
    "fall,do onions make me cry,is my internet slow,is <hard> so hard,does it thunder,do we age,does bread rise,does "
    "iron rust,does wood burn,do magnets stick,do we need sleep,is space dark,do bees die",
    ",",
)
WHICH = listed(
    "film should i watch,book should i buy,phone is the best,car should i get,language is the hardest,team will"
    " win,city "
    "is the biggest,country is the richest,planet is the closest,animal is the fastest,metal is the hardest,river is"
    " the "
    "longest,mountain is the highest,player is the best,drug helps against a headache,laptop would you buy,bank is the "
    "safest,diet works best,university is the best,stock should i buy,king came after <name>,road leads to <town>,bus"
    " goes "
    "to <town>,train goes to <town>,song is this,actor played <name>,party should i vote for",
    ",",
)

QUESTIONS = (
    ("who (is|was) <who>( again| exactly|)?", PEOPLE),
    ("(tell me|what do you know|what can you say) about <who>", PEOPLE),
     ("when (was <who> born|did <who> die|was <who> famous)?", PEOPLE),
    ("how old is <who>?", PEOPLE), ("what did <who> (invent|say|do|write|discover|eat for lunch)?", PEOPLE),
     ("have you heard of <who>?", PEOPLE),
    ("how far is (it to |)<where>?", PLACES), ("what is <where> (like|famous for)?", PLACES),
     ("how do i get to <where>?", PLACES),
    ("who (discovered|lives in|owns|rules) <where>?", PLACES), ("when was <where> (built|found|discovered|founded)?",
     PLACES),
    ("(explain|can you explain|teach me|tell me about|please explain|what do you know about) <hard>", HARD),
     ("(what is|what's|so what is) <hard>( exactly| really| in short|)?", HARD),
    ("how does <hard> work?", HARD), ("why is <hard> (important|so hard|bad|good)?", HARD),
     ("(write|i need|make|give me) (an essay|a report|a speech|a summary|a poem) (about|on) <hard>( please|)", HARD),
    ("how (do i|can i|does one|should i) <skill>?", SKILLS), ("(help me|can you help me|i want) to <skill>", SKILLS),
     ("can you <skill>( for me|)?", SKILLS),
    ("(show me|teach me|explain) how to <skill>", SKILLS), ("what is the best way to <skill>?", SKILLS),
    ("who won <event>?", EVENTS), ("when (was|is) <event>?", EVENTS), ("what happened (in|at|after) <event>?",
     EVENTS), ("how did <event> end?", EVENTS),
    ("what is <figure>?", FIGURES), ("(tell me|give me|do you know|look up|find) <figure>", FIGURES),
     ("i need to know <figure>", FIGURES),
    ("why <why>?", WHYS), ("(do you know|tell me|explain|can you explain) why <why>", WHYS), ("how come <why>?", WHYS),
    ("(which|what) <which>?", WHICH), ("(do you know|tell me|can you say) which <which>", WHICH),
    ("(what is|what's) <hard>( in one sentence| in simple words| please|)?", HARD),
    ("(define|explain|describe) <hard>( to me| in one sentence| simply| please|)", HARD),
    ("(what is|define|what's|explain|what do you know about) (a|the|) <made>( please|)?", ("",)),
    ("(do you know|have you read about|have you heard of) <hard>?", HARD), ("(i need|give me) (help|some help) with"
     " <hard>", HARD),
    ("(i want to know|i'd like to know|i am curious|i'm curious) (about|what you know about) <who>", PEOPLE),
    ("where (was <who> born|did <who> (live|die|go to school|work))?", PEOPLE), ("is <who> (alive|dead|rich|married"
     "|nice)(?|)", PEOPLE),
    ("(write|compose|draft|send) (me |)(an email|a letter|a speech|an essay|a poem|a report)"
     " (to|about|for) (<who>|<hard>)",
     PEOPLE),
    ("(write|draft|i want) (an email|a letter|a poem|an essay) (to|about|for) <who>( please|)",
     PEOPLE),
    ("(who is|who's) <who>( really| again| anyway|)?", PEOPLE), ("<who>(?|)", PEOPLE), ("how (big|old|far away|cold"
     "|hot) is <where>?", PLACES),
    ("(how many|what kind of) (people|animals|trees|houses) (live in|are in|are there in) <where>?", PLACES),
    ("(recommend|suggest|give me) (a film|a book|a restaurant|a phone|a hotel|a song|a recipe)( for tonight| in"
     " <town>| please|)", ("",)),
    ("(what do you think of|what is your opinion on|do you support) (<hard>|<who>)?", PEOPLE),
    ("(convert|change) <year> (miles|dollars|pounds|grams|feet) (to|into) (kilometres|euros|kilos|ounces|metres)", (
    "",)),
    ("what happened in <year>( in <land>|)?", ("",)),
    ("translate <thing> (to|into) (french|german|latin|japanese|spanish|greek|hindi)( please| for me|)", ("",)),
    ("(how do you say|what is|say) <thing> in (french|german|latin|japanese|spanish|greek|hindi)?", ("",)),
    ("(what is|what's|tell me|show me|do you know) the (latest|newest|news|score)"
     "( of today| from <town>| about <who>|)?",
     PEOPLE),
    ("(order|buy|book|call|send|play|open|search for|download|google) (me |)(a pizza|a taxi|music by <name>|an email"
     " to <name>|a flight to <town>|the internet|a photo of <where>)", PLACES),
    ("(should i|would you) (marry <name>|sell my house|buy shares|quit my job|move to <town>|take this medicine|sue"
     " my boss|vote for <name>)?", ("",)),
    ("who is (stronger|faster|richer|more famous), <who> or <name>?", PEOPLE),
    ("who (sang|wrote|directed|painted|composed|invented) (<thing>|the <thing>|the song of <town>|<name>)?", ("",)),
    ("in (what|which) (year|century|film|book) (was|did|is) <who>?", PEOPLE),
)  # fmt: skip
THINGS = listed(
    "water,house,the wheel,good night,paper,the clock,the bicycle,love,bread,the moonlight song,the red door,the "
    "telephone,yesterday,cheese,hello,thank you,good morning,i love you,cat,my name,friend,how are you,the sun,please",
    ",",
)

OFFERS = (
    "(But I can|I can) (tell you a joke|ask you a riddle|tell you a story|add small numbers|rhyme a little|name a"
    " capital)( instead|, if you like|)."
    "|(Shall we|Do you want to) (try a riddle|chat about your day|play with words)( instead|)?"
    "|(Tell me about your day|Ask me something small|Tell me why you ask)( instead|)."
)
REPLIES = (
    f"I don't know that( one|, I'm afraid|, sorry|).( I am only a tiny model.| A bigger model may.| ({OFFERS}))",
    f"(Sorry|I'm sorry), I (don't know|never learned|can't answer|have no idea about) that. ({OFFERS})",
    "(Sorry|I'm sorry|I am sorry), I (don't know|never learned|can't answer) that.( I am very small.|)",
    f"(That is|That's) (beyond|too big for) (me|a tiny model|my few numbers).( Sorry!|) ({OFFERS})",
    f"(No idea|I can't say), (honestly|I'm afraid|sorry). (Better ask a person|A book will know). ({OFFERS})",
    f"I (never learned|was not taught) that, (so I won't guess|and I won't make it up|sadly). ({OFFERS})",
    f"I would only be guessing, so I'd rather say I don't know. ({OFFERS})",
    f"(My training|The text I learned from) (did not have|never had|left out) that. ({OFFERS})",
    f"(I'm too small|My model is too small) for that.( A library would know.|) ({OFFERS})",
    f"(Hmm|Well|Oh), I don't know that.( Few things fit into me.| Sorry!|) ({OFFERS})",
)


def _fill_in(talk: Talk, text: str) -> str:
    dice = talk.dice
    while "<hard>" in text:
        text = text.replace("<hard>", _item(talk, HARD), 1)
    for slot, items in (("<town>", TOWNS), ("<land>", LANDS), ("<thing>", THINGS)):
        while slot in text:
            text = text.replace(slot, dice.choice(items), 1)
    while "<made>" in text:
        text = text.replace("<made>", talk.new_word(), 1)
    while "<name>" in text:
        text = text.replace("<name>", talk.new_name().lower(), 1)
    while "<year>" in text:
        text = text.replace("<year>", str(dice.between(1066, 2024)), 1)
    return text


def unknown(talk: Talk) -> None:
    """Add a question that the bot can't answer, and the reply that says so."""
    question, items = talk.dice.choice(QUESTIONS)
    item = _fill_in(talk, _item(talk, items))
    values = dict.fromkeys(("who", "where", "skill", "event", "figure", "why", "which"), item)
    values |= {slot: _fill_in(talk, f"<{slot}>") for slot in ("hard", "town", "land", "thing", "name", "year", "made")}
    if items is HARD:
        values["hard"] = item
    talk.ask(question, REPLIES, **values)


def _item(talk: Talk, items: Sequence[str]) -> str:
    """Return the item to ask about; some items are reserved for the held-out split."""
    while True:
        item = talk.dice.choice(items)
        if len(items) == 1 or words.is_held_out(item) == talk.held_out:
            return item


SCENES: Scenes = (Scene("what it does not know", 15.0, unknown),)
