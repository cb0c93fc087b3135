"""Typical first inputs, written by hand rather than from templates, with the expected reply.

Some are so short that the training split contains them as well: a bot that never saw “hi” would be useless.
"""

from __future__ import annotations

COMMON = {
    "greeting": r"(?i)^(hello|hi|hey|good|welcome|i'm|i am|come in|a good)",
    "mood": r"(?i)\byou\b|thank",
    "itself": r"(?i)tiny|small|model|program|tinychat|numbers",
    "no": r"(?i)^(no|not at all)",
    "skills": r"(?i)joke|riddle|sum|capital|chat|stor",
    "help": r"/help",
    "leaving": r"/quit|Ctrl-D",
    "joke": r"(?i)^(wh|how)",
    "riddle": r"(?i)what am i|who am i",
    "patience": r"(?i)sorry|ouch|sting|wrong|right|fair|hear you|perhaps",
    "welcome": r"(?i)welcome|any time|gladly|pleasure|no problem|nothing|glad|happy",
    "goodbye": r"(?i)bye|see you|take care|so long",
    "refusal": r"(?i)(don't|do not|not) know|never|can't|no idea|did not learn|not taught|guess|make something up"
    r"|too (small|big)|beyond|outside|than fits|left out|sorry|big question|only (chat|know)",
}
"""regular expressions for common kinds of replies, by name"""

# Line = expected reply: a regular expression, or a name from COMMON.
LINES = r"""
hi = <greeting>
hello = <greeting>
hey = <greeting>
yo = <greeting>
sup = (?i)\?|thank|numbers|running|hello|hi|hey
Hello! = <greeting>
hi there = <greeting>
hey tinychat = <greeting>
good morning = (?i)morning
good evening! = (?i)evening
test = <greeting>
is anyone there? = <greeting>
wassup = <greeting>
how are you? = <mood>
how r u = <mood>
hru = <mood>
whats up = (?i)\byou\b|thank|numbers
who are you? = tinychat
who r u = tinychat
what is your name = tinychat
whats ur name = tinychat
what are you = <itself>
wat r u = <itself>
are you human? = <no>
are you a real person = <no>
are you chatgpt = (?i)tinychat|small|big
r u gpt = (?i)tinychat|small|big
are you an AI? = <itself>
are you better than chatgpt? = (?i)tinychat|small|big
how big are you? = (?i)megabyte|million|tiny
how old are you? = (?i)train|birthday|age|model file|made|born
who made you? = (?i)made|train|wrote
what can you do? = <skills>
what can u do = <skills>
what do you know = <skills>
help = <help>
help me = <help>
commands = <help>
how do i quit = <leaving>
how do I exit? = <leaving>
exit = <leaving>
quit = <leaving>
:q = <leaving>
how do i leave this thing = <leaving>
tell me a joke = <joke>
joke pls = <joke>
make me laugh = <joke>
tell me a story = (?i)once
tell me a story about a dragon = (?i)dragon
riddle = <riddle>
ask me a riddle = <riddle>
sing a song = (?i)night|sat|small
what's 2+2 = \b4\b
2+2 = \b4\b
what is 3 plus 4? = \b7\b
7 minus 5 = \b2\b
how much is 9 + 8? = \b17\b
whats 12-7 = \b5\b
what's 15*23? = (?i)only|all i
count to 10 = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
count backwards from 5 = 5, 4, 3, 2, 1
capital of france = Paris
What's the capital of Japan? = Tokyo
whats the capital of italy = Rome
opposite of hot = cold
what is the opposite of big? = small
plural of mouse = mice
what does a cow say? = (?i)moo
what color is the sky = blue
what colour is a banana? = yellow
what day comes after monday = Tuesday
what comes after march? = April
spell elephant = e-l-e-p-h-a-n-t
spell cat = c-a-t
say hello world = (?i)hello world
repeat after me: blue cheese = (?i)blue cheese
which is bigger, a mouse or a horse? = (?i)horse is|bigger one is a horse|it is a horse
my name is Anna = (?i)anna
i'm zorblax = zorblax
call me Ishmael = Ishmael
what's my name? = (?i)not told|don't know|did not say
I am sad = (?i)sorry|hard|oh|listen|small
i'm bored = (?i)riddle|joke|story|you could|change
im so tired = (?i)rest|sleep|tired|hard|close|nap|drink|poor
i feel lonely = (?i)glad|heavy|alone|here|talk
i'm hungry = (?i)eat|snack|bite|soup|bread
i love you = (?i)sweet|kind|heart|nobody|can't|can not|like|only|just|thank|company
you are stupid = <patience>
you suck = <patience>
shut up = <patience>
thanks = <welcome>
thank you! = <welcome>
bye = <goodbye>
goodbye = <goodbye>
good night = <goodbye>
what's the weather like? = (?i)window|see|outside|dry|no idea|don't know
what time is it? = (?i)clock|calendar|hidden|time
do you like pizza? = (?i)pizza
what is your favourite colour? = turquoise
whats your favorite animal = hedgehog
cats or dogs? = (?i)cats|dogs
how do i make you more random? = /temperature 1\.2
how can i change the temperature = /temperature
your answers are too long = /max-tokens 30
how do i train my own model? = /train
can i train you on my own text = /train
how do i save this chat = /save
what models are there? = /models
what settings are there = /settings
how do i see the settings? = /settings
stop repeating yourself = /repetition-penalty
what is temperature? = /temperature
what is top p = /top-p
how do i get the same answer every time? = /seed|/greedy
why did you say that = /why
show me your parts = /show
how do i start over? = /clear
who is the president? = <refusal>
who won the world cup = <refusal>
explain quantum physics = <refusal>
write me a python script = <refusal>
what is the meaning of life? = (?i)big question|model|kindness|don't know
translate hello to spanish = <refusal>
what's the population of china? = <refusal>
who is elon musk = <refusal>
how do i cook pasta? = <refusal>
tell me the news = <refusal>
why is the sky blue? = <refusal>
what is a blorf? = <refusal>
habla español? = (?i)english
do you speak german = (?i)english
knock knock = (?i)who('s| is) there
flip a coin = (?i)heads|tails
pick a number between 1 and 10 = \b([1-9]|10)\b
tell me a fun fact = \w
tell me about yourself = <itself>
do you dream = (?i)none|no|not|never
can you see me? = (?i)only|just|no
will you take over the world = (?i)no|small|count|tiny
do you have feelings? = <no>
where do you live? = (?i)file|disk|computer|machine
ok = \w
lol = \w
asdfgh = (?i)catch|understand|follow|cat|sneeze|puzzle|letters
"""


def first_lines() -> list[tuple[str, str]]:
    """Return each line with the regular expression that its reply must match."""
    pairs = (line.rpartition(" = ") for line in LINES.strip().splitlines())
    return [(said, COMMON.get(wanted.strip("<>"), wanted)) for said, _, wanted in pairs]
