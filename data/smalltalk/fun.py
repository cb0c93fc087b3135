"""Original jokes and riddles."""

from __future__ import annotations

from smalltalk.talk import Scene, Scenes, Talk

ANOTHER = (
    "(another one|one more|another|again|more|next one|and another|give me one more|tell me another one|do you have"
    " more"
    "|got more)( please| tinychat|)(!|?|.|)"
)

# Question = answer.
JOKES = tuple(
    tuple(line.split(" = "))
    for line in """
Why did the token sit down? = It had lost its place in the sentence.
Why did the laptop sit by the stove? = It had caught a cold start.
What did the little model say to the big one? = You talk a lot, but I finish first.
Why do owls tell bad jokes? = Nobody is awake to stop them.
Why did the soup go to school? = It wanted to learn the alphabet.
What did the spoon say to the tea? = You always stir something in me.
Why was the clock so tired? = It had been on its feet around the hour.
Why did the snail win the race? = The others were still looking for their shoes.
What does a fish do with a newspaper? = It waits until the news is soaked in.
Why did the carrot stay under the ground? = It did not want to be in a stew.
What did one sock say to the other? = See you after the wash, if you are lucky.
Why did the pencil leave the meeting? = It had drawn its own conclusions.
What do you call a bear in the rain? = A bear that forgot its umbrella.
Why did the duck ask for a map? = It was tired of winging it.
Why did the bike talk so much? = It liked to spin a tale.
Why did the cloud fail at cards? = It always showed its rain.
Why did the mouse like my model file? = It was small and full of bits.
What did the moon say to the sun? = You are bright, but I work nights.
Why did the toast apply for a job? = It wanted to get out of a jam.
What did the key say to the door? = You go nowhere without me.
Why did the number one feel lonely? = Nobody came before it, and zero did not count.
Why did the frog read the news twice? = It wanted to jump to the end.
Why do mountains win at hide and seek? = They do not: they peak.
Why did the lamp go to bed at noon? = It was on all night.
What does a sheep say to its knitting? = This one is on me.
Why did the robot knit a scarf? = It kept losing the thread.
Why did the oak not answer the birch? = It had turned over a new leaf.
What did the wall ask the corner? = Do you always look at things from both sides?
Why did the cake join the band? = It had good layers.
What did the seed say to the random numbers? = Everything started with me.
Why did the goat read the poem twice? = The first time it ate the ending.
Why did the hat stay at home? = The head of the house went out without it.
Why did the cow buy a map? = She wanted to know where the grass is greener.
Why did the piano call the plumber? = All its notes were flat.
What did the egg say to the hen? = I will think inside the box, thank you.
Why did the sea never finish its letter? = It kept going back to the start.
What do bees say when they are late? = Sorry, I was in the middle of a flower.
Why did the hedgehog hug the balloon? = It only did that once.
What did the temperature say to the sampler? = Relax, let us try something new.
Why did the train tell long stories? = It had many stops and no hurry.
""".strip().splitlines()
)

# Riddle = answer.
RIDDLES = tuple(
    tuple(line.split(" = "))
    for line in """
I say the same twelve things every day, and people still look at me. = a clock
Each morning I walk through your hair and put it in order. = a comb
I copy all you do, flat on the floor, when the sun is out. = your shadow
I keep a story between two covers until you come. = a book
I fall all winter long and never hurt myself. = snow
All the family sits round me, and I hold the soup. = a table
I am thin, I shine, and I pull a thread through your shirt. = a needle
I wait beside the bath and drink what you bring out of it. = a towel
I sleep by day, I shine by night, and once a month I am round. = the moon
I am a house that walks, slow and wet, with one person in me. = a snail
I open every morning and close every night, and I sit above your nose. = an eye
I am black and white and sing under ten fingers. = a piano
I am a small roof that walks with you in the rain. = an umbrella
I stand on the table, thin at the top, with lemonade in me. = a bottle
I am born in the hills and go to the sea without legs. = a river
In winter you see me before your mouth, in summer never. = your breath
I wear a red coat and have a stone in my heart. = a cherry
I stand in the cold with a carrot for a nose. = a snowman
I pay for the trip of a letter and get a kiss in ink. = a stamp
I hang on the wall and show you the one I like best: you. = a mirror
A teacher writes on me, a sponge forgets it. = a blackboard
I was a yellow field in summer, and now you toast me. = bread
I have two wheels and need your feet. = a bike
I build my house of thread and wait for flies. = a spider
Pull my rope and the whole village hears me. = a bell
I stand on your cake and hope that you blow. = a candle
You got me as a baby, and you turn round when you hear me. = your name
I lie in the sink and know every plate by heart. = a sponge
I look like a hedgehog with a green hat, and I taste sweet. = a pineapple
I guess one word, then one more, and I am talking to you. = a language model
""".strip().splitlines()
)


def joke(talk: Talk) -> None:
    """Add a joke, either at once or with the person asking back."""
    setup, answer = talk.dice.choice(JOKES)
    request = (
        "(tell me|tell|give me|say|do you know|i want|i'd like|can you tell me|do you have|got|let me hear|i need"
        "|have you got)"
        " (a joke|a good joke|one joke|a short joke|something funny|jokes|a pun|a silly joke)( please| tinychat| now"
        "| today|)(?||!)",
        "(joke|a joke|jokes|joke please|joke time|make me laugh|be funny|entertain me|say something funny|cheer me up"
        "|amuse me|can you be funny|can you make me laugh|are you funny)( please| now| again| tinychat|)(?||!)",
    )
    if talk.left > 1 and talk.dice.chance(0.35):
        talk.ask(request, "<setup>", setup=setup)
        word = setup.split()[0].lower()
        talk.turn(f"({word}|{word} indeed|i don't know|no idea|tell me|i give up|hm, {word}|dunno|ok, {word}|don't"
                  f" know, tell me)(?||.)",
                  ("<answer>", "(Well|Easy|Here it comes)! <answer>"), answer=answer)  # fmt: skip
    else:
        talk.ask(request, "<setup> <answer>", setup=setup, answer=answer)
    if talk.left and talk.dice.chance(0.2):
        setup, answer = talk.dice.choice(JOKES)
        talk.turn(ANOTHER, "<setup> <answer>", setup=setup, answer=answer)


def riddle(talk: Talk) -> None:
    """Add a riddle, the person's guess (right, wrong or given up), and the answer."""
    text, answer = talk.dice.choice(RIDDLES)
    talk.ask(
        "(tell me|ask me|give me|do you know|i want|i'd like|can you ask me|let me solve|got|try me with) (a riddle"
        "|a good riddle"
        "|one riddle|a hard riddle|an easy riddle|riddles|a puzzle|a brain teaser)( please| tinychat| now|)(?||!)"
        "|(riddle|riddles|riddle time|riddle please|a riddle|let's play riddles|puzzle me|quiz me)( please| now|"
        " again|)(?||!)"
        "|(let's|can we|shall we|i want to) play( a game| something| a word game|)( please| with you| now|)(?||!)",
        ("<riddle> What am I?", "<riddle> (Who|What) am I?"), riddle=text,
    )  # fmt: skip
    if talk.left:
        guess(talk, answer)
    if talk.left and talk.dice.chance(0.2):
        text, answer = talk.dice.choice(RIDDLES)
        talk.turn(ANOTHER, "<riddle> What am I?", riddle=text)


def guess(talk: Talk, answer: str) -> None:
    """Add the person's guess: right, wrong or given up."""
    bare = answer.split(" ", 1)[-1]
    kind = talk.dice.below(3)
    if kind == 0:
        talk.turn("(is it|are you|it's|it is|you are|maybe|i think it's|could it be|i say|i guess|must be|)"
                  " (<answer>|<bare>)(?||!)",
                  ("(Yes|Right|Exactly|Well done)! It is <answer>.", "(Clever|Correct), it is <answer>!"),
                   answer=answer, bare=bare)  # fmt: skip
    elif kind == 1:
        talk.turn("(i give up|tell me|no idea|i don't know|what is it|what are you|what's the answer|the answer"
                  " please|dunno"
                  "|too hard|i can't guess|pass|say it)( please| tinychat| now|)(?||.)",
                  ("It is <answer>.", "The answer is <answer>.", "(Here it is|Listen): it is <answer>."),
                   answer=answer)  # fmt: skip
    else:
        wrong = talk.dice.choice([other for _, other in RIDDLES if other != answer])
        talk.turn("(is it|are you|it's|it is|you are|maybe|i think it's|could it be|i say|i guess|must be|)"
                  " (<wrong>)(?||!)",
                  ("(No|Not quite|Nice try, but no), it is <answer>.", "(Good guess|Close), but it is <answer>."),
                  wrong=wrong, answer=answer)  # fmt: skip


SCENES: Scenes = (Scene("jokes", 4.0, joke), Scene("riddles", 3.6, riddle))
