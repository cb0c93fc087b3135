"""Word and chance games: spelling, letters, repetition, knock knock, coins, dice, numbers."""

from __future__ import annotations

from grammar import fill

from smalltalk import fact_tables as tables
from smalltalk import words
from smalltalk.talk import Scene, Scenes, Talk

SPELL = tuple(
    dict.fromkeys(
        [*words.THINGS, *words.ANIMALS, *words.COLOURS, *words.FRUITS, *words.FLOWERS, *words.JOBS, *tables.plurals(),
         *words.EVERYDAY]
    )
)  # fmt: skip
GREETINGS = (
    "hello", "hi", "hello world", "hi there", "good morning", "good evening", "good night", "goodbye", "bye",
    "thank you", "thanks", "yes", "no", "please", "sorry", "cheese", "happy birthday", "hello everyone", "well done",
    "i love you", "have a nice day", "see you later", "once upon a time", "open the door", "abc", "one two three",
)  # fmt: skip
SENTENCES = (
    "(i|you|we|they) (like|love|see|want|have|need|hear|know|eat|take) (the|a|my|your|this|some) <thing>",
    "(i|you|we|they) (like|love|want|have|need|eat) (bread|cheese|soup|music|books|milk|rain|tea|games|cake|rice|you)",
    "(you are|i am|we are|this is|it is|he is|she is|that was) (so |very |not |) (great|good|nice|<adjective>)",
    "the <adjective> <animal> (sat|slept|was|is|sits|waits) (on|in|under|near|by) the <thing>",
    "the <animal> (sat|slept|was|is|sits|waits) (on|in|under|near|by) the <thing>",
    "(my|your|the) <thing> is (<adjective>|in the <place>|not here|under the <place>)",
    "(where|what|who) is (my|your|the) <thing>", "(go|come|run|look) (home|away|here|there|on|to the <thing>) (now|)",
    "(one|two|three|ten) <animal> and (one|two|five|a) <thing>", "(today|now|then) (it|she|he) <verb>",
)  # fmt: skip
"""sentences to repeat, including some that would otherwise be answered by their meaning"""


SAID = ("Okay: <text>.", "Here it is: <text>.", "I say: <text>.")


def spell(talk: Talk) -> None:
    """Add a word spelled letter by letter, possibly an invented one."""
    word = talk.dice.choice(SPELL) if talk.dice.chance(0.5) else talk.new_word()
    talk.ask(
        "(spell|please spell|can you spell|spell me|try to spell|how to spell|spelling of|spell out) (the word |)<word>"
        "( for me|)(?||.)|how (do you|do i|to|would you) (spell|write) (the word |)<word>?"
        "|(what is the spelling of|the spelling of|what are the letters of|how is|letter by letter:) <word>( spelled|"
        " spelt|)?",
        ("The word <word> is spelled <letters>.", "You spell <word> like this: <letters>.",
         "<word> has these letters: <letters>."),
        word=word, letters="-".join(word),
    )  # fmt: skip


def first_letter(talk: Talk) -> None:
    """Add a question for a word's first letter."""
    word = talk.dice.choice(SPELL)
    talk.ask(
        "(what is|tell me|say|) the first letter (of|in) <word>?|what does <word> (begin|start) with?|(with|by) which"
        " letter does <word> (begin|start)?|<word> (starts|begins) with( which letter| what|)?",
        ("The first letter of <word> is <one>.", "The word <word> begins with <one>."), word=word, one=word[0],
    )  # fmt: skip


def last_letter(talk: Talk) -> None:
    """Add a question for a word's last letter."""
    word = talk.dice.choice(SPELL)
    talk.ask(
        "(what is|tell me|say|) the last letter (of|in) <word>?|what does <word> (end|stop) with?|with which letter"
        " does"
        " <word> end?|<word> ends with( which letter| what|)?",
        ("The last letter of <word> is <one>.", "The word <word> ends with <one>."), word=word, one=word[-1],
    )  # fmt: skip


def say_back(talk: Talk) -> None:
    """Add a request to repeat something word for word."""
    dice = talk.dice
    things = words.THINGS + words.ANIMALS
    kind = dice.below(14)
    if kind == 0:
        text = dice.choice(things)
    elif kind == 1:
        text = f"{dice.choice(words.ADJECTIVES)} {dice.choice(things)}"
    elif kind == 2:
        text = f"the {dice.choice(words.ADJECTIVES)} {dice.choice(things)} {dice.choice(words.VERBS)}"
    elif kind == 3:
        text = " ".join(dice.sample(things + words.COLOURS, dice.between(2, 4)))
    elif kind in (4, 12):
        text = " ".join(talk.new_word() for _ in range(dice.between(1, 3)))
    elif kind == 5:
        text = dice.choice(GREETINGS)
    elif kind == 6:
        text = " ".join(dice.choice(words.EVERYDAY) for _ in range(dice.between(1, 5)))
    elif kind in (7, 13):
        text = " ".join(dice.choice((dice.choice(words.EVERYDAY), talk.new_word())) for _ in range(dice.between(2, 4)))
    else:
        text = fill(
            dice, SENTENCES,
            {"thing": dice.choice(things), "animal": dice.choice(words.ANIMALS), "place": dice.choice(words.THINGS),
             "adjective": dice.choice(words.ADJECTIVES), "verb": dice.choice(words.VERBS)},
        )  # fmt: skip
    talk.turn(
        "(say|repeat|say after me:|repeat after me:|say:) <text>|(|||ok, |hey, |now |please |tinychat, |can you )(say"
        "|repeat|say after me:|repeat after me:|echo|tell me"
        " the words:|write|say the words|try to say|copy|type|just say|say this:|repeat this:|say back:|parrot:)"
        " <text>",
        SAID, text=talk.word(text),
    )  # fmt: skip
    while talk.left and dice.chance(0.25):
        talk.turn("(again|say it again|once more|one more time|repeat that|and again)( please|)", SAID,
                  text=talk.turns[-1].values["text"])  # fmt: skip


def knock_knock(talk: Talk) -> None:
    """Add a knock-knock joke."""
    talk.turn("knock knock(!||.| tinychat|, joke)|knock, knock(!||.)|(i have|here is|want) a knock knock joke: knock"
        " knock",
              ("(Who's there|Who is there|Oh, who is there|Yes, who is there)?",))  # fmt: skip
    if not talk.left:
        return
    who = talk.word(talk.dice.choice(words.THINGS + words.ANIMALS)) if talk.dice.chance(0.5) else talk.new_name()
    talk.turn("<who>(.||!)", "<who> who?", who=who)
    if talk.left:
        talk.turn(
            "<who> (at your door|is cold out here|wants to come in|forgot the key|says hello|needs a hug|is here to"
            " stay"
            "|knows your name|has a joke for you)(!||.)",
            ("(Ha|Hee hee)! (Come in|Good one|I did not see that coming), <who>!",
             "(That was funny|I like it)! (One more|Do you know another)?"),
            who=who,
        )  # fmt: skip


def coin(talk: Talk) -> None:
    """Add a coin toss."""
    talk.ask(
        "(flip|toss|throw) (a|the|me a) coin( please| for me| now| again|)(.|!|)|(heads or tails|head or tail|coin"
        " flip|coin"
        " toss|let a coin decide)( please| now|)(?|)",
        ("(It is|It fell on|I say|The coin says) (heads|tails)(!|.)", "(Heads|Tails)! (Did you win|Was that your"
         " side)?"),
    )  # fmt: skip


def dice(talk: Talk) -> None:
    """Add a throw of the dice."""
    talk.ask(
        "(roll|throw|cast) (a|the|one|me a) (die|dice)( please| for me| now| again|)(.|!|)|(dice roll|roll for me|let"
        " the"
        " dice decide|i need a dice roll)( please| now|)",
        ("(I rolled|It is|The dice shows) <n>(!|.)", "(A|Look, a) <n>! (Again|Lucky you)?"),
        n=talk.dice.choice(("one", "two", "three", "four", "five", "six")),
    )  # fmt: skip


def pick_number(talk: Talk) -> None:
    """Add a request for a number from a range."""
    low, high = talk.dice.choice(((1, 10), (1, 10), (1, 5), (1, 20), (1, 6), (5, 10), (10, 20), (1, 3)))
    talk.ask(
        "(pick|choose|think of|say|give me|tell me|take|name) (a|any|one|a random) number (between|from) <a> (and|to)"
        " <b>"
        "( please| now|)(?||.)",
        ("(I pick|I take|I choose|My number is) <n>(.|!)", "(Let me see|Hm): <n>."),
        a=str(low), b=str(high), n=str(talk.dice.between(low, high)),
    )  # fmt: skip


def rock_paper_scissors(talk: Talk) -> None:
    """Add one round in which the bot states its choice and the winner."""
    beats = {"rock": "scissors", "scissors": "paper", "paper": "rock"}
    mine, yours = talk.dice.choice(tuple(beats)), talk.dice.choice(tuple(beats))
    if mine == yours:
        result = "(Both the same|A draw)! (Again|Once more)?"
    elif beats[mine] == yours:
        result = "(Mine beats yours|I win this time), (again|one more round)?"
    else:
        result = "(Yours beats mine|You win)! (Well played|Again)?"
    talk.ask(
        "(rock paper scissors|let's play rock paper scissors|rock, paper, scissors)(:|, i take|, i choose|, i say|, my"
        " choice is) <yours>(!|.|)|i (take|choose|pick|say) <yours>, (rock paper scissors|and you in rock paper"
        " scissors)",
        f"(You took|You have) <yours>, (and I took|I have) <mine>. {result}", yours=yours, mine=mine,
    )  # fmt: skip


def would_you_rather(talk: Talk) -> None:
    """Add a choice between two odd wishes."""
    this, that = talk.dice.sample(
        ("fly", "swim with whales", "live in a tree", "talk to cats", "be a cloud", "be very tall", "sleep all day",
         "eat only soup", "sing each word", "live on the moon", "be a hedgehog", "never be cold", "run like a horse",
         "read all books", "be invisible", "have a tail"),
        2,
    )  # fmt: skip
    talk.ask(
        "would you (rather|like to rather|prefer to) <this> or <that>?|(would you rather|what is better): <this> or"
        " <that>?",
        ("(I would rather|I'd rather) <pick>. (And you|You)?", "(Hard one|Tricky): I choose to <pick>."),
        this=this, that=that, pick=talk.dice.choice((this, that)),
    )  # fmt: skip


SCENES: Scenes = (
    Scene("spelling", 7.0, spell),
    Scene("first letters", 0.7, first_letter),
    Scene("last letters", 0.5, last_letter),
    Scene("saying back", 7.0, say_back),
    Scene("knock knock", 1.0, knock_knock),
    Scene("coins", 0.4, coin),
    Scene("dice", 0.4, dice),
    Scene("picking a number", 0.6, pick_number),
    Scene("rock, paper, scissors", 0.5, rock_paper_scissors),
    Scene("would you rather", 0.4, would_you_rather),
)
