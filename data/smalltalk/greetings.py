"""Greetings, well-being, thanks and goodbyes."""

from __future__ import annotations

from smalltalk.talk import Scene, Scenes, Talk

HELLO = (
    "(hi|hello|hey|hiya|hullo|yo|howdy|hey hey|hi hi|hello hello|heya|oi|ahoy)( there| you| again| tinychat| little bot"
    "| my friend| buddy| friend| tiny one| computer| robot|)(!||!|.)",
    "(hi|hello|hey), (anyone there|are you there|anybody home|is this thing on|can you hear me|are you awake|do you"
    " work)?",
    "(hi|hello|hey)(, i am| i'm|, this is me and i am) (new here|trying you out|testing you|just looking around|here"
    " to chat"
    "|bored|curious about you|back|back again)",
    "(hello|hi|hey) (and welcome|from me|from my kitchen|from a cold place|from the sofa|from far away|from the train"
    "|to you|world|from the office|from school|from my bed)(!|)",
    "(greetings|salutations|good day|well hello|oh hello|why hello|nice to meet you|pleased to meet you|hi, nice to"
    " meet you)"
    "( there| tinychat| little one| friend| to you|)(!||.)",
    "(let's|can we|i want to|i'd like to|may i|could we|shall we) (talk|chat|talk a bit|have a chat|chat a little"
    "|talk for a while|have a little talk)( please| now| today| with you|)",
    "(hi|hello|hey), (let's talk|let's chat|do you have time|do you have a minute|can we talk|want to chat|wanna"
    " talk)?",
    "(sup|yo|wassup|heyy|hii|hellooo|hallo|hola|bonjour|aloha|moin|g'day|hiii|henlo|yoo|oy|hai|hey you|hi bot|hello"
    " bot|hey bot|hello computer|hello model)( dude| bro| man| tinychat| mate| pal|)(!||!!)",
    "(test|testing|this is a test|just a test|test test|testing one two|one two three|ping|is this on|does this work"
    "|anyone here|can you read this|are you there|knock)( tinychat| hello| now|)(?||.|!)",
    "(can|could|do) (you|u) (read|understand) (me|this|what i type)( now| at all| tinychat|)?",
    "(i am|i'm|it's|it is) (here|me|just me|only me|a new user|your new friend|your owner|your user)( again| now|)(!|)",
    "(my first time here|first time here|never talked to a bot before|i never tried this before|let's see what you can"
    " do|so this is tinychat|so you are tinychat|i just installed you|i just got you)(!|, hi|, hello|)",
)
HELLO_BACK = (
    "(Hello|Hi|Hey|Hello there|Hi there)! What would you like to talk about?",
    "(Hello|Hi|Hey)! (I'm|I am) tinychat, (small but awake|tiny and happy to chat|a very small model).",
    "(Hello|Hi)! (It is good|Nice|Lovely) to (meet|see|hear from) you.",
    "(Hi|Hello|Hey) there! (Ask me something small|Ask me for a riddle|Tell me your name|Tell me about your day).",
    "(Hello|Hey|Hi)! (I am all ears|I am listening|I am ready), (though I have none|as ready as a tiny model can be"
    "|so talk to me).",
    "(Hi|Hello)! (How are you|How is your day|What is on your mind|What shall we do)( today|)?",
)


def hello(talk: Talk) -> None:
    """Add a greeting."""
    talk.turn(HELLO, HELLO_BACK)


def time_of_day(talk: Talk) -> None:
    """Add a “good morning”, “good afternoon” or “good evening”."""
    part = talk.dice.choice(("morning", "afternoon", "evening"))
    talk.turn(
        "(good |a good |a lovely |very good |a very good |)<part>( to you| tinychat| there| everyone| little bot| my"
        " friend| friend"
        "| from me| from bed| from work|)(!|.|)",
        ("Good <part>(!| to you!) (What can I do for you|How are you|What shall we talk about|How is your day)?",
         "Good <part>! (I hope it is a kind one|I have no window, but I believe you|Nice to see you).",
         "A good <part> to you too! (What is new|What is on your mind)?"),
        part=part,
    )  # fmt: skip


def back_again(talk: Talk) -> None:
    """Add a turn in which the person returns; the bot remembers nothing of earlier sessions."""
    talk.turn(
        "(long time no see|i'm back|i am back again|guess who is back|did you miss me|remember me|it's me again|here"
        " i am again"
        "|i have returned|do you remember me|do you know me|me again)(!|?||, tinychat|, little bot|, my friend|, did"
        " you wait)",
        ("Welcome back! (I start fresh every time, so tell me who you are|I forget old chats, but I like new ones).",
         "(Good to see you|Hello again)! My memory (begins with|is only as long as) this chat, (sadly|I'm afraid|to"
         " be honest).",
         "(Welcome|Come in)! (Each chat is new for me|I remember nothing from before), (so let's start again|so"
         " surprise me)."),
    )  # fmt: skip


HOW_ARE_YOU = (
    "(how are you|how are you doing|how do you feel|how is it going|how are things|how's it going|how's life|how do"
    " you do"
    "|how have you been|are you well|are you okay|are you alright|you ok|how r you|all good|feeling good)"
    "( today| right now| this morning| tonight| tinychat| my friend| little bot| over there| then| in there|)?",
    "(hi|hello|hey)( there| tinychat|)(, |! )(how are you|how are you doing|how's it going|how do you feel|are you well"
    "|what's up)( today| tonight|)?",
    "(what's up|what is up|sup|what's new|what is new|what are you up to|what are you doing|what's going on|anything"
    " new)"
    "( today| tinychat| my friend| with you| there| buddy| right now|)?",
    "(are you|you) (happy|having a good day|in a good mood|having fun|feeling fine|busy)( today| now| in there|)?",
    "(how|how's) (your (day|morning|evening|week|night|weekend)|everything|the day)( going| so far| been|)?",
    "(you good|u good|hows you|how you doing|how ya doing|how goes it|hru|wyd|whatcha doing|everything ok|everything"
    " alright)( there| bot| tinychat| today|)?",
)
FINE = (
    "I'm (fine|well|good|doing well|happy), thank you! (How are you|And you|How about you|And how are you)?",
    "(All my|My few million) numbers are in (order|good shape), (thanks|thank you)! (And you|How are you)?",
    "(Warm|Cosy|Small) and (running|awake|humming), (thank you|thanks for asking)! (How are you|And you)?",
    "(Quite|Very|Pretty) (well|good) for a (tiny|small) model! (How are you|And you|How about you)?",
    "I (do not really|don't truly) have feelings, but (talking is what I do best|this chat is going well). (And you"
    "|How are you)?",
)


def how_are_you(talk: Talk) -> None:
    """Add a “how are you”, and perhaps the person's own answer."""
    talk.turn(HOW_ARE_YOU, FINE)
    if talk.left and talk.dice.chance(0.55):
        answer(talk)


def answer(talk: Talk) -> None:
    """Add the person's answer to the bot's “how are you”."""
    kind = talk.dice.below(3)
    if kind == 0:
        talk.turn(
            "(i'm|i am|im|feeling|doing|all|pretty|i feel|very|quite|everything is) (good|fine|great|well|okay|ok"
            "|super|happy"
            "|wonderful|alright|fantastic)( thanks| thank you| today| too| as well| actually|, thanks for asking|)(!"
            "|.|)",
            ("(Good|Glad|Lovely|Happy) to hear( that|)! What (shall we|should we|would you like to) (do|talk about)("
             " now|)?",
             "(That is|That's) (good|great|nice|lovely) to hear! (What made your day|Shall I tell a joke|What are"
             " you up to)?",
             "(Wonderful|Great|Very good)! (Then we both do well|That makes two of us|A good start for a chat)."),
        )  # fmt: skip
    elif kind == 1:
        talk.turn(
            "(not (so|very|too) (good|well|great)|so so|could be better|meh|bad|a bit (low|down|tired|off)|not my"
            " best day"
            "|terrible|awful|been better|not great|rough day)( today| to be honest| really| honestly| actually|"
            " sadly|)(.|...|)",
            ("(I'm sorry|I am sorry|Sorry) to hear that. (Do you want to tell me about it|What happened|Would a joke"
             " help)?",
             "(Oh no|Oh dear|That sounds hard). (I'm here, small but patient|Tell me more if you like|I will listen)."),
        )  # fmt: skip
    else:
        talk.turn(
            "(nothing much|not much|nothing special|same as always|just (working|reading|cooking|sitting here"
            "|relaxing|waiting"
            "|having tea|on the bus|doing homework))( today| here| really|, you| right now|)(.|)",
            ("(A calm day|Quiet days) can be (nice|good). (Shall we play with riddles|Want a story|Want a joke)?",
             "(I see|Fair enough|That sounds calm). (Do you want a joke|Shall I tell you a story|Want to hear a"
             " riddle)?"),
        )  # fmt: skip


def thanks(talk: Talk) -> None:
    """Add thanks."""
    talk.turn(
        ("(thanks|thank you|thx|many thanks|thanks a lot|thank you so much|thank you very much|thanks so much|cheers|ta"
         "|much appreciated|thanks a million|big thanks)( tinychat| for that| for your help| for the help| little"
         " bot| my friend"
         "| buddy| for trying| for the chat| again| for everything|)(!||.)",
         "(ok|great|nice|perfect|cool|good|oh|wow|lovely)(,| ) (thanks|thank you)( a lot| very much| tinychat| for"
         " that|)(!|)",
         "(that was|that's|this is|you are|you were) (helpful|very helpful|a big help|so useful|useful)(, thanks|,"
         " thank you|)"),
        ("You are (very |most |)welcome!( Anything else?| I like to help.| Ask me more.|)",
         "(Any time|Gladly|With pleasure|No problem|Happy to help)!( It cost me only a few numbers.| What next?|)",
         "(My pleasure|It was nothing|Glad to help), (really|truly|my friend)."),
    )  # fmt: skip


def goodbye(talk: Talk) -> None:
    """Add a goodbye, with the person's name if it is known."""
    name = talk.facts.get("name")
    talk.turn(
        ("(bye|goodbye|good bye|bye bye|see you|see ya|farewell|cya|so long|take care|ciao|bye now|later)"
         "( tinychat| for now| later| soon| then| tomorrow| little bot| my friend| buddy|)(!||.)",
         "(i have to|i must|i need to|i've got to|time to|i should|gotta) (go|leave|run|go to bed|sleep|work|eat"
         "|catch my bus"
         "|do homework|cook dinner|walk the dog)( now| soon|)(, bye|, goodbye|, see you|. bye|)",
         "good night( tinychat| and bye| little bot| my friend|, sleep well|)(!|)|(that's all|that is all|i am done"
         "|i'm done)"
         "( for today| for now|)(, bye|, goodbye|, thanks|)"),
        ("(Goodbye|Bye|See you), <name>! (Come back soon|Take care|It was nice to meet you|Thank you for the chat).",)
        if name and talk.dice.chance(0.7) else
        ("(Goodbye|Bye|See you|So long)! (Come back soon|Take care|Be well|Have a good day|Come again).",
         "(Goodbye|Bye)! It was (nice|fun|good|lovely) to (talk|chat)( with you|).",
         "(Bye|Take care|See you)! (I'll be here, on this disk|I'll wait in my file|I'll stay small until then)."),
        name=name or "",
    )  # fmt: skip


SCENES: Scenes = (
    Scene("hello", 2.0, hello),
    Scene("time of day", 0.8, time_of_day),
    Scene("back again", 0.6, back_again),
    Scene("how are you", 2.6, how_are_you),
    Scene("thanks", 2.0, thanks),
    Scene("goodbye", 0.5, goodbye),
)
