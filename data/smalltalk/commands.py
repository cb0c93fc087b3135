"""About tinychat itself: what to type to change how it answers, to train, to save, to leave.

The bot can't turn its own knobs: it names the command. The commands are those of the design, § 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from grammar import Lines, listed

from smalltalk.talk import Scenes, Talk

HOW = (
    "(how (do|can|could|would|should) i|how to|can i|is there a way to|i want to|i'd like to|what do i type to|which "
    "command can|what command lets me|help me)"
)
MAKE = (
    "(how (do|can) i make you|can you be|be|i want you to be|make yourself|please be|could you be|you should be|how "
    "do i get you to be)"
)
CAN = (
    "(how do i|how can i|i want to|i need to|what do i type to|which command lets me|can i|how to|what must i type "
    "to|is it possible to)"
)


class Wish(NamedTuple):
    """What a person wants, and the command that does it. `<v>` is a value that the person names."""

    questions: Lines
    replies: Sequence[str]
    value: Sequence[str] = ("",)


def command(name: str, effect: str) -> tuple[str, ...]:
    """The usual forms of an answer that names one command."""
    return (f"Type {name} {effect}.", f"Use {name} {effect}.", f"(Try|You type) {name} {effect}.")


FILES = listed(
    "novel.txt letters.txt notes.md poems.txt diary.txt mails.csv recipes.txt songs.txt story.txt book.txt "
    "corpus.jsonl my-text.txt chats.jsonl plays.txt talks.txt essays.md"
)

WISHES: tuple[Wish, ...] = (
    Wish((f"{MAKE} (more|a bit more|much more) (random|creative|surprising|wild|crazy|playful|varied|adventurous)(?|)",
          f"{HOW} (raise|increase|turn up|put up) (the |your |)temperature(?|)",
          "(your answers are|you are) (too (boring|dull|same|predictable)|always the same)",
          "(more|a little more) (randomness|variety|creativity|surprise)( please|)"),
         ("Type /temperature 1.2 (to make me|and I become) more random.",
          "(Try|Use) /temperature 1.2, and I (surprise you|get wilder).",
          "Raise my temperature: type /temperature 1.2.")),
    Wish((f"{MAKE} (less|a bit less|much less) (random|creative|wild|crazy|chaotic|odd|strange)(?|)",
          f"{MAKE} (more|a bit more) (careful|serious|predictable|sensible|calm|focused)(?|)",
          f"{HOW} (lower|reduce|turn down|decrease) (the |your |)temperature(?|)",
          "(your answers are|you are|you talk) (too (random|wild|crazy|odd)|nonsense today)",
          "less (randomness|nonsense|chaos)( please|)"),
         ("Type /temperature 0.5 (to make me|and I become) calmer.",
          "(Try|Use) /temperature 0.5, and I (calm down|get more careful).",
          "Lower my temperature: type /temperature 0.5.")),
    Wish((f"{HOW} (set|change|put) (the |your |)temperature to <v>(?|)",
          "(set|change|put|make) (the |your |)temperature (to |)<v>", "temperature <v>( please|)",
          "i want (a |)temperature (of |)<v>"),
         ("Type /temperature <v> (to set it|and it is set).", "You type /temperature <v>.",
          "That is /temperature <v>, and it holds at once."),
         ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0", "1.1", "1.2", "1.3", "1.4", "1.5",
          "0")),
    Wish(("what (is|means) (the |)temperature?|what does (the |)temperature (do|mean)?",
          "(explain|tell me about|what's) (the |)temperature(| setting| command| of a model)?",
          "what does {/temperature} do?"),
         ("Temperature sets how (bold|random) I am: low is (careful|calm), high is wild. Type /temperature 0.8 to"
          " set it.",
          "(Low|A low) temperature makes me (careful|calm), high makes me wild. The command is /temperature.")),
    Wish((f"{MAKE} (greedy|deterministic|fully predictable|exact)(?|)",
          f"{HOW} (always take the likeliest word|turn on greedy|turn off randomness|turn sampling off|get the same"
          f" answer each time|use greedy)(?|)",
          "(what is|explain|what about) (greedy|{/greedy})?|what does (greedy|{/greedy}) (do|mean)?",
          "(greedy|greedy mode)( please| on|)", "no (randomness|sampling)( please| at all|)"),
         ("Type /greedy, and I always take the likeliest word.",
          "Use /greedy (for|to get) the same answer each time.", "That is /greedy: no dice, only the likeliest word.")),
    Wish((f"{HOW} (turn off greedy|turn sampling on|sample again|leave greedy mode|use sampling|get different"
          f" answers|go back to sampling)(?|)", "(what is|explain|what about) (sampling|{/sample})?|what does"
          " (sampling|{/sample}) (do|mean)?",
          "(sampling|sample mode)( please| on|)"),
         ("Type /sample, and I (roll dice|choose at random) again.", "Use /sample: then each answer may differ.",
          "That is /sample, the opposite of /greedy.")),
    Wish((f"{MAKE} (shorter|brief|briefer|more brief|less chatty|short)(?|)",
          f"{HOW} (shorten|limit|cut) (your |the )(answers|replies|output|length)(?|)",
          "(your (answers|replies) are|you talk) too (long|much)", "shorter (answers|replies)( please|)"),
         ("Type /max-tokens 30 (for|to get) shorter answers.", "Use /max-tokens 30, and I stop (sooner|earlier).",
          "Lower my limit: type /max-tokens 30.")),
    Wish((f"{MAKE} (longer|more chatty|less brief|talk more)(?|)",
          f"{HOW} (lengthen|get longer|have longer) (your |)(answers|replies|output)(?|)",
          "(your (answers|replies) are|you talk) too (short|little)", "longer (answers|replies|texts)( please|)"),
         ("Type /max-tokens 500 (for|to allow) longer answers.", "Use /max-tokens 500, and I may go on longer.",
          "Raise my limit: type /max-tokens 500.")),
    Wish((f"{HOW} (set|limit|change) (the |your |)(length|answers|tokens|max tokens) to <v>( tokens|)(?|)",
          "(at most|no more than|only|up to) <v> tokens( please|)", "(set|put) max tokens (to |)<v>"),
         ("Type /max-tokens <v> (to set it|and it is set).", "You type /max-tokens <v>.", "That is /max-tokens <v>."),
         ("10", "20", "30", "40", "50", "60", "80", "100", "120", "150", "200", "250", "300", "400", "500")),
    Wish((f"{HOW} (set|change|use) (the |)(top k|top-k)(?|)",
          "(what is|explain|what about) (top k|top-k|{/top-k})?|what does (top k|top-k|{/top-k}) (do|mean)?",
          "(explain|set) (top k|top-k)", f"{HOW} choose only among the k likeliest(?|)"),
         ("Type /top-k 40: I then choose among the 40 likeliest tokens.",
          "Top-k keeps only the k likeliest tokens: /top-k 40 keeps 40.")),
    Wish((f"{HOW} (set|change|use) (the |)(top p|top-p|nucleus)(?|)",
          "(what is|explain|what about) (top p|top-p|{/top-p}|nucleus sampling)?|what does (top p|top-p|{/top-p}"
          "|nucleus sampling) (do|mean)?", "(explain|set) (top p|top-p)"),
         ("Type /top-p 0.9: I then drop the unlikeliest tenth.",
          "Top-p keeps the likeliest part of the choices: try /top-p 0.9.")),
    Wish((f"{HOW} (set|change|use) (the |)(min p|min-p)(?|)",
          "(what is|explain|what about) (min p|min-p|{/min-p})?|what does (min p|min-p|{/min-p}) (do|mean)?",
          "(explain|set) (min p|min-p)"),
         ("Type /min-p 0.05: I then skip what is far less likely than the best.",
          "Min-p drops tokens far below the best one: try /min-p 0.05.")),
    Wish((f"{MAKE} (less repetitive|stop repeating)(?|)",
          "(you repeat yourself|stop repeating yourself|why do you repeat (things|yourself)|you say the same thing"
          " again)( a lot| all the time|)(?|)",
          "(what is|explain|what about) (the |)(repetition penalty|{/repetition-penalty})?|what does (the "
          "|)(repetition penalty|{/repetition-penalty}) (do|mean)?",
          f"{HOW} (set the repetition penalty|stop you from repeating|avoid repeats)(?|)"),
         ("Type /repetition-penalty 1.2, and I repeat myself less.", "Use /repetition-penalty 1.2 against repeats.",
          "(Sorry|Oops)! Type /repetition-penalty 1.2 to stop that.")),
    Wish((f"{HOW} (get the same answer again|repeat a random answer|fix the seed|set the seed|set a seed|make it"
          f" repeatable|reproduce an answer)(?|)", "(what is|explain|what about) (the |a |)(seed|{/seed})?|what does"
          " (the |a |)(seed|{/seed}) (do|mean)?"),
         ("Type /seed 1 (to make|and) my dice fall the same way each time.",
          "Use /seed 1: the same seed gives the same answer.", "A seed fixes my dice: type /seed 1.")),
    Wish((f"{HOW} (set|change) (the |)seed to <v>(?|)", "(set|use|put) (the |)seed (to |)<v>", "seed <v>( please|)"),
         ("Type /seed <v> (to set it|and it is set).", "You type /seed <v>.", "That is /seed <v>."),
         ("1", "2", "3", "5", "7", "9", "11", "12", "17", "21", "23", "33", "42", "64", "77", "99", "100", "123")),
    Wish((f"{HOW} (make you stop at a word|set a stop word|set a stop text|end answers at a word|use a stop"
          f" string)(?|)", "(what is|explain|what about) (a stop string|{/stop}|a stop word)?|what does (a stop"
          " string|{/stop}|a stop word) (do|mean)?"),
         ("Type /stop and a text: I end when I write it.", "Use /stop TEXT, and I stop when I come to that text.")),
    Wish((f"{CAN} (stop|interrupt|cancel|silence|break off) (you|an answer|your answer|this answer|you while you"
          f" talk|the output)(?|)", "(how do i|can i) (shut you up|cut you short|make you stop)( now|)?"),
         ("Press Ctrl-C or Esc, and I stop (at once|talking).", "Ctrl-C stops my answer. It never ends the chat.",
          "Press Esc (to stop me|and I fall silent).")),
    Wish((f"{CAN} (see|list|show|check|look at) (all |my |your |the |)(settings|options|knobs|values)(?|)",
          "what (are your|are the|settings are there|can i set|can i change|is set)( settings| options|)( now|)?",
          "show (me |)(the |your |all |)settings"),
         command("/settings", "to see them all")),
    Wish((f"{CAN} (reset|restore|undo|put back|clear) (all |my |the |your |)(settings|defaults|options|knobs)(?|)",
          "(go )back to (the |)(defaults|normal settings)|(i broke|i messed up) (your |the |my )(settings|options)"),
         command("/reset", "to get the first settings back")),
    Wish((f"{CAN} (change|switch|swap|choose|load|use) (the |to |)(model|another model|a different model|other model"
          f"|my model)(?|)", "(talk to|load|give me|i want) (another|a different|my own|the other) model( please|)"),
         command("/model NAME", "to change the model")),
    Wish((f"{CAN} (list|see|show|find) (all |the |my |your |)models(?|)",
          "(what|which) models (are there|do you have|exist|can i use|have i got)( here|)?",
          "(show|list) (me |)(all |the |my |)models"),
         command("/models", "to list them all")),
    Wish((f"{CAN} (see|show|look at|inspect) (your (inside|size|parts|architecture|layers|weights)|what you are made"
          f" of|the model|how big the model is)(?|)", "(show me|what are) your (parts|layers|insides|details)?",
          "what does {/show} do?"),
         command("/show", "to see my parts and size")),
    Wish((f"{CAN} (train|make|build|create|teach|grow) (a |my own |my |a new |another |my very own |)(model|tiny"
          f" model|language model|model of my own|bot)(?|)",
          f"{CAN} (train|teach) (you|tinychat|a model) (on|with) (my (text|novel|letters|book|notes|data|diary|poems"
          f"|own text)|a (text|file|book))(?|)", "(how does|how do i start|what is) (the |)training( work|)?",
          "can (i|you) (train|learn) on my (own |)(text|data|files|novel)?"),
         ("Type /train FILE, and I train a new model on it.",
          "Use /train with your text file. (Five minutes can be enough|A few minutes will do).",
          "(That is|It is) /train FILE: a new model from your own text.")),
    Wish((f"{CAN} (train|learn|start training|make a model) (on|from|with) <v>(?|)",
          "(train|learn|start training|make a model) (on|from|with) <v>( please|)", "(use|take) <v> for training"),
         ("Type /train <v> to (start|begin).", "You type /train <v>.", "That is /train <v>, and then wait a little."),
          FILES),
    Wish((f"{CAN} (train|train a model) for <v> minutes(?|)",
          "(train|let it train|training) for <v> minutes( please|)", f"{CAN} limit (the |)training to <v> minutes(?|)"),
         ("Type /train FILE --minutes <v>.", "Add --minutes <v> to /train.",
          "Use /train FILE --minutes <v>, and it ends on time."), ("1", "2", "3", "4", "5", "8", "10", "12", "15",
          "20", "30", "45", "60")),
    Wish((f"{CAN} (see|list|show|watch|find) (my |all |the |running |old |)(runs|trainings|training runs)(?|)",
          "(which|what) (runs|trainings) (are there|are running|do i have)?"),
         command("/runs", "to list the training runs")),
    Wish((f"{CAN} (watch|join|go back to|follow|see again) (a |the |my )(running |)(run|training)( again|)(?|)",
          "what does {/attach} do?"),
         command("/attach", "to watch a run again")),
    Wish((f"{CAN} (see|show|draw|plot) (the |a |my )(loss|loss curve|curve|training curve|plot|graph)(?|)",
          "what does {/plot} do?", "(show|plot|draw) (me |)the (loss|curve)"),
         command("/plot", "to draw the loss curve")),
    Wish((f"{CAN} (get|have|see|hear) (another|a different|a new|a second) (answer|reply|try)(?|)",
          "(try|answer|say it) again (differently|in another way|with other dice)", "what does {/retry} do?",
          f"{CAN} (retry|redo) (the last answer|that|your answer)(?|)"),
         command("/retry", "to get a new answer")),
    Wish((f"{CAN} (take back|undo|remove|delete|unsay) (my last (message|line|turn|question)|the last (turn|message)"
          f"|what i said)(?|)", "what does {/undo} do?", "undo (that|the last turn|my last message)"),
         command("/undo", "to take the last turn back")),
    Wish((f"{CAN} (edit|correct|change|fix) (my last (message|line|prompt|question)|what i (said|typed)|a typo)(?|)",
          "what does {/edit} do?"),
         command("/edit", "to change your last message")),
    Wish((f"{CAN} (make you go on|let you continue|get more of (that|the answer)|continue (the|your) answer)(?|)",
          "(go on|continue|keep going|carry on|finish that)( please| with that| with your answer|)",
          "what does {/continue} do?"),
         command("/continue", "to let me go on")),
    Wish((f"{CAN} (clear|wipe|empty|restart|forget|start over) (the |this |our |)(chat|conversation|talk|history"
          f"|everything)(?|)", "(start over|start a new chat|new chat|forget everything|forget all this|clear the"
          " chat)( please|)(?|)", "what does {/clear} do?"),
         command("/clear", "to start a fresh chat")),
    Wish((f"{CAN} (see|know|find out) why you (said|say|chose|wrote|took) (that|this|that word|a word)(?|)",
          "why did you (say|write|choose) that( word|)?", "what does {/why} do?",
          "(show|what were) the (other|likely) (words|choices|tokens|alternatives)?"),
         command("/why", "to see what else I nearly said")),
    Wish((f"{CAN} (see|show|count) (the |my |)(tokens|pieces|token ids)( of a text| of a word|)(?|)",
          "what does {/tokens} do?", "how (do you|does it) cut (text|words) into (tokens|pieces)?"),
         command("/tokens TEXT", "to see its pieces")),
    Wish((f"{CAN} (compare|put side by side) (two models|models|two settings|answers|you and another model)(?|)",
          "what does {/compare} do?"),
         command("/compare", "to see answers side by side")),
    Wish((f"{CAN} (save|keep|store|write down) (this |the |our )(chat|conversation|talk|transcript)(?|)",
          "what does {/save} do?", "save (this|the) (chat|conversation)( please|)"),
         command("/save FILE", "to keep this chat")),
    Wish((f"{CAN} (open|load|go on with|read|get back) (a |an |my )(saved|old|earlier|stored) (chat|conversation"
          f"|transcript)(?|)", "what does {/open} do?"),
         command("/open FILE", "to load a saved chat")),
    Wish((f"{CAN} (export|share|give away|move|use) (a |my |the |this )model( to other tools| elsewhere| in"
          f" transformers| to a friend|)(?|)", "what does {/export} do?"),
         command("/export", "to hand a model to other tools")),
    Wish((f"{CAN} (quit|exit|leave|close|end|get out of|stop) (tinychat|this|the program|the chat|this program"
          f"|here)(?|)", "(how do i|where is the) (exit|way out|quit|get out)( here| of here|)?",
          "(quit|exit)( please| now|)", "let me out( please|)"),
         ("Type /quit, or press Ctrl-D.", "That is /quit. (Come back soon|Goodbye then)!",
          "Use /quit or /bye to leave. (See you|Take care)!")),
    Wish((f"{CAN} (see|list|show|find|learn) (all |the |your |)(commands|help|command list)(?|)",
          "(what|which) commands (are there|do you have|can i use|exist)?",
          "(list|show)( me|) (all |the |)commands|where (is|do i find) (the |)(help|manual)?",
          "(help|i need help|help please)"),
         ("Type /help to see all commands.", "Use /help: it lists all commands.",
          "That is /help. With a name, as in /help train, it says more.")),
    Wish((f"{CAN} (write|type|enter|make|send) (more lines|two lines|several lines|a new line|a longer text|many"
          f" lines)(?|)", "how do i (break a line|get a line break)?"),
         ("Press Alt-Enter or Ctrl-J for a new line.", "Use Alt-Enter (for|to make) a new line, and Enter to send.")),
    Wish((f"{CAN} (find|get back|see|search) (my |)(old|earlier|last|previous) (prompts|lines|messages|inputs)(?|)",
          "how do i search (the |my |)history?"),
         ("Press the up key, or Ctrl-R to search your history.",
          "The up key brings old lines back, and Ctrl-R searches them.")),
    Wish((f"{CAN} (change|turn) (the |your |)(settings|temperature) while you (talk|answer|write)(?|)",
          "(which|what) keys (work|can i press) while you (talk|write|answer)?"),
         ("While I talk, up and down change the temperature, and space is a pause.",
          "Press up or down while I talk: the temperature follows at once.")),
    Wish((f"{CAN} (use|run) you (in a script|from a pipe|without the chat|in a pipe|from the shell)(?|)",
          f"{CAN} (pipe|send) (text|prompts|a file) (to|into|through) you(?|)"),
         ("Pipe it in: each line is one prompt to tinychat.",
          "Use tinychat -p TEXT for one prompt, or pipe lines in.")),
    Wish(("what is (a |)token?|what are tokens?|how many tokens is a word?|(explain|tell me about) tokens",),
         ("A token is a small piece of text, often (a word|part of a word). Type /tokens TEXT to see some.",
          "Tokens are the pieces I read and write. Try /tokens TEXT.")),
    Wish(("what is (a |)(language model|neural network|tiny model|small model)?",
          "how do you (work|think|make sentences|answer|know what to say|choose words)( exactly| inside|)?",
          "(explain|tell me) how you work"),
         ("I look at the words so far and guess the next piece. Then again.",
          "(Numbers go in|Your words become numbers), (numbers come out|I multiply them), and they become my next"
          " word.", "I guess one token after the other. Type /why to watch me choose.")),
    Wish(("what is (the |a |)(loss|validation loss|perplexity|training loss)?",
          "what does (the |)(loss|val|ppl|perplexity) mean?"),
         ("Loss says how surprised a model is by text. Lower is better.",
          "It measures surprise: the lower, the better the model guesses.")),
    Wish(("(can you|please|could you|will you) (change your settings|set your temperature|train yourself|run a"
          " command|change yourself|restart yourself|switch your model)( for me| now|)?",),
         ("I can't turn my own knobs: you can. Type /help to see how.",
          "Only you can do that: commands start with a slash. Try /help.")),
)  # fmt: skip


def wish(talk: Talk) -> None:
    """The person wants something of the program; the bot names the command."""
    it = talk.dice.choice(WISHES)
    talk.ask(it.questions, it.replies, v=talk.dice.choice(it.value))


SCENES: Scenes = ((15.0, wish),)
