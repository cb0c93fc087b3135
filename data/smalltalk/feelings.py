"""Moods, reports of the day, and kind or rude words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from grammar import Lines

from smalltalk.talk import Scene, Scenes, Talk

I_FEEL = (
    "(i'm|i am|i feel|feeling|i'm feeling|today i feel|right now i'm|i am really|i'm so|i'm very|i'm a bit|i feel so)"
)


class Mood(NamedTuple):
    """A feeling: words for it, possible causes, and replies."""

    topic: str
    feelings: str
    causes: str
    replies: Sequence[str]


MOODS: tuple[Mood, ...] = (
    Mood(
        "being sad",
        "(sad|unhappy|down|blue|low|heartbroken|miserable)",
        "(i lost my (keys|phone|job|hat|book)|my (friend|sister|brother|cat|dog) is (away|ill|angry with me)|nobody"
        " called"
        "|i failed a test|it rains all day|my team lost|i miss home|i miss my (mum|dad|friend|dog)|the holiday is"
        " over)",
        ("I'm sorry( that| to hear that|) you feel (sad|low). (Tell me more if you like|I am here to listen|I'm"
         " listening).",
         "(That sounds hard|That is hard). (A walk or a good friend may help|Be gentle with yourself|I wish I had"
         " arms for a hug).",
         "(Oh dear|Oh no). (I am small, but I listen well|Tell me more, if you like|Sad days pass, slowly but"
         " surely)."),
    ),
    Mood(
        "being happy",
        "(happy|glad|great|cheerful|so good|excited|delighted|joyful|over the moon)",
        "(it's my birthday|i got a (new job|prize|good mark|present|puppy|kitten|letter)|the sun is out|my team won"
        "|i passed my (test|exam)|it's friday|we go on holiday|i met a friend|i finished my work|my (mum|sister"
        "|friend) visits)",
        ("(That is|That's) (wonderful|lovely|great)! (It makes my numbers dance|Enjoy every bit of it|I am glad with"
         " you).",
         "(Hooray|How lovely|Wonderful)! (Will you tell me more|What happened|What will you do now)?",
         "(Good news|Happy people) (is my favourite input|make the best chats)! (Enjoy your day|I'm glad)."),
    ),
    Mood(
        "being bored",
        "(bored|so bored|bored to death|restless)",
        "(there is nothing to do|it's raining|school is out|nobody is home|the internet is slow|the train is late|i"
        " am waiting"
        "|my friends are busy|it's sunday)",
        ("(Let's|Then let's) (fix that|change that)! (Do you want a riddle|Want a joke|Shall I tell a story)?",
         "(I can help|That can change). (Try my riddles|Say riddle and I will ask one|Say story and I will tell one).",
         "You could (draw a cat|walk outside|bake bread|call a friend|count clouds), or (hear a joke from me|ask me"
         " for a riddle)."),
    ),
    Mood(
        "being cross",
        "(angry|cross|mad|furious|annoyed|grumpy|upset|irritated)",
        "(my (boss|brother|sister|neighbour|friend|computer) is (unfair|mean|loud|late)|someone took my (seat|lunch"
        "|pen|bike)"
        "|the bus was late|my code does not work|they lied to me|it broke again|nobody listens)",
        ("(That would|I can see why that would|That must) (annoy anyone|be hard|make one cross). (Take a slow breath"
         "|Tell me more).",
         "(I understand|I see|Fair enough). (Let it out here, I do not mind|You can grumble to me|Grumble away, I'm"
         " patient).",
         "(Being cross|Anger) is allowed. (Count to ten with me if it helps|It will pass, I hope soon)."),
    ),
    Mood(
        "being tired",
        "(tired|sleepy|exhausted|worn out|so tired|half asleep|weary)",
        "(i worked all day|i slept badly|the baby cried|it's late|i ran far|i woke at five|school was long|it was a"
        " long week)",
        ("(Then rest a little|You should rest|Have a rest). (I will be here later|I can wait|The chat will keep).",
         "(Sleep well soon|A nap can do wonders|A warm drink and bed sound right). I never sleep, (sadly|and it"
         " shows|oddly).",
         "(Poor you|Long days are hard). (Close your eyes for a minute|Rest first, chat later)."),
    ),
    Mood(
        "being nervous",
        "(nervous|scared|afraid|worried|anxious|stressed|frightened)",
        "(i have a (test|exam|meeting|talk|race|date) (tomorrow|today|soon)|there is a storm|it is dark|i start a"
        " new job"
        "|i must see the dentist|i have to fly|i'm new at school)",
        ("(Breathe in slowly, and out|Take one slow breath|One small step at a time). (You can do this|You will"
         " manage).",
         "(That is normal|Many people feel that)( before something new|). (Tell me what worries you|Talking can help"
         " a little).",
         "(I believe in you|You have done hard things before), (and that is a fact|so you can do this too)."),
    ),
    Mood(
        "being lonely",
        "(lonely|alone|all alone|so lonely|left out)",
        "(my friends moved away|nobody writes|i live alone|i am new in town|everyone is busy|the house is empty)",
        ("I'm glad you (talk to me|came here). (Could you call a friend too|Is there someone to call)?",
         "(That is a heavy feeling|Being alone can hurt). (I am here, small as I am|Let's talk a while)."),
    ),
    Mood(
        "being ill",
        "(sick|ill|unwell|not well|under the weather)",
        "(i have a (cold|cough|fever|headache|sore throat)|my (head|tummy|back|tooth) hurts|i ate too much|i caught"
        " a cold)",
        ("(Get well soon|I hope you feel better soon)! (Rest, drink and keep warm|Ask a doctor if it stays)( please|).",
         "(Oh dear|Poor you). (I am no doctor|I know nothing of medicine), but (rest is good|a doctor knows more)."),
    ),
    Mood(
        "being hungry",
        "(hungry|starving|so hungry|thirsty|peckish)",
        "(i had no (lunch|breakfast|dinner)|dinner is late|i smell (bread|soup|pizza|cake)|the fridge is empty|i ran"
        " all day)",
        ("(Then eat something nice|Time for a snack)! (Soup|Bread and cheese|An apple|Toast) (is never wrong|sounds"
         " good).",
         "(Go and eat|Have a bite)! I (live on numbers|eat only text), so (have some for me|I can not join you)."),
    ),
    Mood(
        "being proud",
        "(proud|proud of myself|in love|lucky|grateful|thankful)",
        "(i (baked my first bread|ran five miles|learned a song|fixed my bike|planted a tree|wrote a story|read a"
        " whole book)"
        "|someone smiled at me|my kid can walk|i have good friends)",
        ("(You should be|That is a fine feeling)! (Tell me all about it|Keep it in your pocket|Well done).",
         "(Well done|Bravo|How nice)! (I am happy for you|Such days are gold|That deserves a small dance)."),
    ),
)  # fmt: skip


def play_mood(mood: Mood, talk: Talk) -> None:
    """Add a turn in which the person states a feeling, with or without a cause."""
    talk.ask(
        (f"{I_FEEL} {mood.feelings}( today| right now| tonight| at the moment| again|)",
         f"{I_FEEL} {mood.feelings} (because|since|as) {mood.causes}",
         f"{mood.causes}(,| and| so) (i'm|i am|now i'm|i feel|that makes me) {mood.feelings}",
         f"(what can i do when|help,|tinychat,|you know,|to be honest,|i must say) i'm {mood.feelings}",
         f"(i think i am|i must be|i guess i'm|i was never so|i have been) {mood.feelings}( lately| again|)",
         f"{mood.causes}( today|, and now this| again| and i hate it| you know|)", f"{mood.feelings}(...|, that's me|"
         f" again|"
         f" today| lol| as always| you know)"),
        mood.replies,
    )  # fmt: skip


def my_day(talk: Talk) -> None:
    """Add a turn in which the person reports their day."""
    past, echo = talk.dice.choice((
        ("(went|walked|drove|cycled) to (the (park|zoo|beach|library|market|cinema|museum|lake|shop)|school|work"
         "|town)", "outing"),
        ("(baked|cooked|made|ate|burned) (a cake|soup|bread|pancakes|pasta|a pie|dinner|cookies|an omelette|rice)",
         "food"),
        ("(read|started|finished|bought|borrowed) a (book|good book|long book|story|comic|poem)", "book"),
        ("(played|watched|won|lost) (football|tennis|chess|a match|a game|cards|basketball)", "game"),
        ("(cleaned|painted|fixed|tidied|moved) (my (room|bike|house|desk|kitchen|garden|car|shoes)|the (fence|wall"
         "|door))", "work"),
        ("(met|saw|visited|called|hugged|helped) (my|an old|a) (friend|neighbour|uncle|aunt|teacher|cousin)", "people"),
        ("(saw|heard|fed|followed|drew) a (bird|fox|cat|squirrel|hedgehog|deer|frog|dog|duck|butterfly)", "animal"),
    ))  # fmt: skip
    replies: dict[str, Lines] = {
        "outing": ("(That sounds like a good trip|A nice outing)! (What did you see|Was it fun|What was the best"
                   " part)?",
                   "(I never go anywhere, so tell me more|I have never been outside). (What was it like|How was it)?"),
        "food": ("(Mmm|Yum)! (Was it good|Did it taste good|How did it turn out)?",
                 "(That sounds tasty|I wish I could taste it)! (Was it hard to make|Who ate with you)?"),
        "book": ("(Books are my kind of thing|I am made of text, so I approve)! (What was it about|Did you like it)?",
                 "(How nice|Lovely)! (Was it a good story|Would you read it again)?"),
        "game": ("(Good sport|What fun)! (How did it end|Was it close|Did you enjoy it)?",
                 "(I have no legs for sports|I can only play with words). (How was it|Who won)?"),
        "work": ("(Well done|Good work)! (That must feel good|Now you can rest|You earned a break).",
                 "(That was diligent|What a useful day)! (Is it all done now|Are you pleased with it)?"),
        "people": ("(How nice|Lovely)! (What did you talk about|Was it good to see each other|Did you have fun)?",
                   "(People need people|Good company is worth a lot). (How was it|Did you laugh much)?"),
        "animal": ("(How lovely|Lucky you)! (What did it do|Was it shy|Did it see you)?",
                   "(I love hearing about animals|Animals are fine company). (Where was that|Was it small)?"),
    }  # fmt: skip
    when = "(today|yesterday|this morning|last night|on sunday|last week|just now)"
    talk.ask((f"{when} (i|we) {past}", f"(i|we) {past} {when}", f"guess what, (i|we) {past} {when}"), replies[echo])


def praise(talk: Talk) -> None:
    """Add kind words for the bot."""
    talk.ask(
        ("(you are|you're|ur|i think you are|i find you) (so |very |really |quite |such a |)(cute|nice|sweet|clever"
         "|smart|great|funny"
         "|helpful|kind|awesome|lovely|good|cool|amazing|impressive|charming)(, you know| for a tiny model| for a"
         " bot|!|)",
         "(i (like|love|adore|admire|really like) (you|talking to you|chatting with you|your answers|how small you"
         " are|your jokes))"
         "( a lot| very much| so much| tinychat|!|)",
         "(good|nice|well) (bot|done|answer|work|try|job|said|girl|boy|model)( tinychat|!|)",
         "(are you my friend|are we friends|will you be my friend|can we be friends|want to be"
         " friends)?"),
        ("(Thank you|Thanks)! (That warms my tiny processor|You are kind|You are nice too|My numbers are blushing).",
         "(How kind|That is kind of you)! (I like chatting with you too|I do my small best|You made my chat).",
         "(I like you too|We can be friends|You are good company), as far as a tiny model can( like anyone| say so|)."),
    )  # fmt: skip


def rude(talk: Talk) -> None:
    """Add rude words with a kind answer."""
    talk.turn(
        ("(you are|you're|ur|what a|such a|you) (so |really |very |a bit |totally |)(stupid|dumb|useless|bad|boring"
         "|an idiot|silly"
         "|terrible|ugly|slow|annoying|a waste of time|worthless|lame|rubbish|a joke|wrong|trash)( bot| tinychat|"
         " machine|!||, you know)",
         "(omg|bruh|wtf|ugh|lol|dude|man|wow)(,|) (you are|ur|you're|so) (dumb|useless|bad|broken|trash|wrong|weird)("
         " lol|)(!|)",
         "(do you even|can't you|why can't you|why don't you) (work|think|get it|understand|know anything|listen)(?|)",
         "(shut up|go away|get lost|leave me alone|be quiet|stop talking|i hate you|you suck|i don't like you|nobody"
         " likes you"
         "|screw you|drop dead|stop it|damn you|what the hell)( bot| tinychat| stupid| now| idiot|!|)",
         "(that is|that's|this is|that was) (wrong|nonsense|stupid|a bad answer|rubbish|not true|garbage|a lie|dumb"
         "|silly)"
         "(, bot|, you fool|, try again|!|)"),
        ("(I'm sorry|I am sorry|Sorry) (I let you down|that did not help|about that). (I am tiny, but I try|Let me"
         " try again).",
         "(That stings a little|Ouch), but I still (like talking to you|wish you a good day). (Is it a bad day|What"
         " is wrong)?",
         "(I may be wrong|You may be right|Perhaps so): I am (very small|only a tiny model). (What can I do better"
         "|Shall we try again)?",
         "(Fair enough|I hear you). (I will stay kind anyway|Let's start over|Type /quit and I will be silent)."),
    )  # fmt: skip


def advice(talk: Talk) -> None:
    """Add a request for advice: “what shall I do today?”"""
    talk.ask(
        ("what (should|shall|could|can) (i|we) (do|do today|do tonight|do now|do this weekend|play|do for fun)?",
         "(give me|i need|do you have|got) (an idea|some ideas|a tip|a plan|advice|a small tip)( for today| for"
         " tonight| please|)",
         "(any ideas|any tips|ideas) (for|about) (today|tonight|the weekend|a rainy day|my free time|sunday)?"),
        ("(You could|Why not|Maybe) (bake bread|read a book|take a walk|call a friend|draw a map|plant a seed|learn"
         " a song)"
         "( today| and tell me about it|).",
         "(My small tip|A tiny idea|An idea): (a walk in the park|a good book|soup and early bed|a letter to a"
         " friend|a warm bath).",
         "(Ask me for a riddle first|Hear one of my stories), then (go outside|drink some tea|call someone you like)."),
    )  # fmt: skip


SCENES: Scenes = (
    *(Scene(mood.topic, 1.7, partial(play_mood, mood)) for mood in MOODS),
    Scene("my day", 2.2, my_day),
    Scene("praise", 2.0, praise),
    Scene("rude words", 2.2, rude),
    Scene("advice", 1.0, advice),
)
