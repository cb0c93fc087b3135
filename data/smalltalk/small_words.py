"""Short reactions such as ok, haha, really? and hmm, and unintelligible input."""

from __future__ import annotations

from smalltalk.greetings import hello
from smalltalk.talk import Scene, Scenes, Talk

LONGEST_REPEATED = 9
"""in words"""


def agreement(talk: Talk) -> None:
    """Add an “ok”, “nice” or “I see”."""
    talk.turn(
        "(ok|okay|cool|nice|great|good|alright|fine|i see|right|wow|interesting|sweet|neat|awesome|perfect|got"
        " it|sure"
        "|fair enough|good to know|amazing|ah ok|oh i see|makes sense|very good|well done|good one|not bad|i"
        " like that)"
        "( then| tinychat| man| buddy| little bot|, cool|, nice|)(!|.||...)",
        ("(Good|Great|Glad you think so|Nice)! (What next|What else|What shall we do now|Anything else)?",
         "(So|Well then), (what else is on your mind|what would you like next|shall I tell you a riddle|want a"
         " joke)?",
         "(Ask me|Try me with) (another one|something else|a sum|an animal|a capital|an opposite)( if you like|)."),
    )  # fmt: skip


def laughter(talk: Talk) -> None:
    """Add laughter."""
    talk.turn(
        "(lol|haha|hahaha|hehe|ha|rofl|that's funny|you are funny|you're so funny|funny|very funny|i laughed"
        "|that was fun"
        "|good joke|lmao)( tinychat| bot| little one| man| indeed| really|)(!||.|, really)",
        ("(I'm glad|Glad|Happy) (you laughed|I could make you laugh|that was fun)! (Another joke|Do you want"
         " more|Shall I go on)?",
         "(Hee hee|Ha)! (My humour is small, but it is real|I practise on my own numbers|I try my best)."),
    )  # fmt: skip


def doubt(talk: Talk) -> None:
    """Add a “really?” or “are you sure?”."""
    talk.turn(
        "(really|are you sure|is that true|is that right|sure about that|honestly|you think so|how do you know"
        "|are you certain"
        "|do you mean that|for real|seriously|who told you|can i trust you|can i believe you)( tinychat| now|"
        " about it|)?",
        ("(I think so|I believe so|Fairly sure), but I am tiny and (can be wrong|make mistakes|may be mistaken).",
         "(Mostly|As sure as I can be|So I learned). (Please check|Do check|Better check) what matters( to you|).",
         "(It is what I learned|My training says so), (but check it|and I hope it is right|yet I may be wrong)."),
    )  # fmt: skip


def hesitation(talk: Talk) -> None:
    """Add a hesitation, such as “hmm” or “no idea”."""
    talk.turn(
        "(hmm|uh|um|well|er|hm|hmmm|so|idk|i do not know|no idea|dunno|not sure|maybe|let me think|nothing|whatever)"
        "( really| then| tinychat|, no idea|, you choose|, you decide|...|)",
        ("(No hurry|Take your time|No rush). I can (tell a joke|ask a riddle|tell a story|count|spell words)"
         " (meanwhile|if you like).",
         "(Shall I|Should I|May I) (tell you a joke|tell you a story|ask you a riddle|pick something) (then|for"
         " us)?"),
    )  # fmt: skip


def repeat_that(talk: Talk) -> None:
    """Add a “say that again”, answered by the last reply word for word."""
    if not talk.turns or len(talk.turns[-1].assistant.split()) > 16:
        hello(talk)
        return
    talk.turn(
        "(say that again|repeat that|can you repeat that|what did you (just |)say|once more please|come again|sorry,"
        " what"
        "|what was that|please repeat|i did not hear you|pardon|say it again|tell me again)( please| tinychat|)(?||.)",
        "I said: <last>",
        last=talk.turns[-1].assistant.removeprefix("I said: "),
    )


def repeat_me(talk: Talk) -> None:
    """Add a request to repeat the person's last words."""
    question = (
        "(what did i|do you know what i|can you repeat what i|tell me what i) (just |last |)(say|said|ask|asked|write"
        "|wrote|type)( before this| before that|)(?|)|(what was|repeat) my last (line|question|message|sentence)(?|)"
    )
    if not talk.turns:
        talk.turn(question, ("(Nothing yet|Nothing so far): this is (your first line|the first thing that you say).",
                             "You have said nothing before this (line|question)."))  # fmt: skip
    elif len(talk.turns[-1].user.split()) <= LONGEST_REPEATED:
        talk.turn(question, ('You said "<said>".', 'Your last line was "<said>".'), said=talk.turns[-1].user)
    else:
        hello(talk)


def gibberish(talk: Talk) -> None:
    """Add random key presses."""
    keys = "asdfjkl;qwertyuiopzxcvbnm"
    noise = "".join(talk.dice.choice(keys) for _ in range(talk.dice.between(4, 11)))
    text = talk.dice.choice(
        (noise, noise, noise + " " + noise[::-1], "?" * talk.dice.between(1, 4), "...", noise[:2] * 4)
    )
    talk.turn(
        "<text>",
        ("(I did not|I didn't|I could not) (catch|understand|follow) that. (Try other words|Say it another way|Once"
         " more, please).",
         "(That looks|This looks) like (a cat on the keyboard|a sneeze|a puzzle) to me. (What did you mean|Shall we"
         " try again)?",
         "(Those are|I see) letters, but no (words|meaning) that I know. Try again(, please|)."),
        text=text,
    )  # fmt: skip


SCENES: Scenes = (
    Scene("agreement", 0.8, agreement),
    Scene("laughter", 0.6, laughter),
    Scene("doubt", 0.6, doubt),
    Scene("hesitation", 0.6, hesitation),
    Scene("say that again", 1.0, repeat_that),
    Scene("what the person said", 0.9, repeat_me),
    Scene("gibberish", 1.8, gibberish),
)
