"""Questions about tinychat's commands: talking, training, looking inside, saving, leaving."""

from __future__ import annotations

from grammar import listed

from smalltalk.talk import Scenes
from smalltalk.wishes import CAN, Wish, about, command, scenes

FILES = listed(
    "novel.txt letters.txt notes.md poems.txt diary.txt mails.csv recipes.txt songs.txt story.txt book.txt "
    "corpus.jsonl my-text.txt chats.jsonl plays.txt talks.txt essays.md thesis.txt data.txt blog.md lyrics.txt"
)

TALKING: tuple[Wish, ...] = (
    Wish("stopping an answer",
         (f"{CAN} (stop|interrupt|cancel|silence|break off) (you|an answer|your answer|this answer|you while you"
          f" talk|the output)(?|)", "(how do i|can i) (shut you up|cut you short|make you stop)( now|)?",
          "(which|what) key (stops you|stops an answer|interrupts you)?"),
         ("Press Ctrl-C or Esc, and I stop (at once|talking).", "Ctrl-C stops my answer. It never ends the chat.",
          "Press Esc (to stop me|and I fall silent).")),
    Wish("another answer",
         (f"{CAN} (get|have|see|hear) (another|a different|a new|a second) (answer|reply|try)(?|)",
          "(try|answer|say it) again (differently|in another way|with other dice)", about("/retry"),
          f"{CAN} (try again|try once more|have another go|make you try again|ask for another answer)(?|)",
          "(try again|try once more|another answer|a different answer)( please|)",
          f"{CAN} (retry|redo|regenerate) (the last answer|that|your answer|the answer)(?|)", "(retry|regenerate"
          "|redo)( that|)"),
         command("/retry", "to get a new answer")),
    Wish("taking back",
         (f"{CAN} (take back|undo|remove|delete|unsay) (my last (message|line|turn|question)|the last (turn|message)"
          f"|what i said)(?|)", f"{CAN} (go|step) back (one turn|a turn|a step|one step)(?|)",
          "(go|step) back (one turn|a turn|a step|one step)( please|)", about("/undo"),
          "undo( that| the last turn| my last message|)"),
         command("/undo", "to take the last turn back")),
    Wish("editing a message",
         (f"{CAN} (edit|correct|change|fix) (my last (message|line|prompt|question)|what i (said|typed)|a typo)(?|)",
          about("/edit"), "(i made a typo|i mistyped|that was a typo)(, can i fix it| in my message|)(?|)"),
         command("/edit", "to change your last message")),
    Wish("going on",
         (f"{CAN} (make you go on|let you continue|get more of (that|the answer)|continue (the|your) answer)(?|)",
          "(go on|continue|keep going|carry on|finish that|and then)( please| with that| with your answer|)",
          about("/continue")),
         command("/continue", "to let me go on")),
    Wish("a new chat",
         (f"{CAN} (clear|wipe|empty|restart|forget|start over) (the |this |our |)(chat|conversation|talk|history"
          f"|everything)(?|)", "(start over|start a new chat|new chat|forget everything|forget all this|clear the"
          " chat|reset the chat|clear)( please|)(?|)", about("/clear")),
         command("/clear", "to start a fresh chat")),
    Wish("several answers",
         (f"{CAN} (see|get|have) (several|three|some|many|a few|five) (answers|replies|samples)( at once| side by"
          f" side|)(?|)",
          about("/samples"), "(give|show) me (three|five|several) (answers|samples)( please| at once|)"),
         ("Type /samples 3 to get three answers at once.", "Use /samples 3 and then /pick to take one.",
          "Try /samples 3: three answers, from three seeds.")),
    Wish("picking an answer",
         (f"{CAN} (pick|choose|take|keep) (one of the answers|one of the samples|the best answer|the second answer)(?"
          f"|)",
          about("/pick")),
         ("Type /pick 2 to go on from the second answer.", "Use /pick 2: the second answer is then the one that"
          " counts.")),
    Wish("comparing",
         (f"{CAN} (compare|put side by side) (two models|models|two settings|temperatures|answers|you and another"
          f" model)(?|)",
          about("/compare"), "(which|what) temperature is (better|best)?"),
         ("Type /compare temperature=0.5,1.2 to see answers side by side.",
          "Use /compare temperature=0.5,1.2 to see both at once.", "Try /compare: answers side by side.")),
    Wish("branches",
         (f"{CAN} (branch|fork|go another way|try another word|change a word of your answer)( here| in the chat|)(?|)",
          about("/branch")),
         ("Type /branch N TEXT to go on from token N with other words.",
          "Use /branch: at any token the chat can go another way.")),
    Wish("the tree of the chat",
         (f"{CAN} (see|show|look at) (all branches|the branches|the tree|the whole chat|what was left aside)(?|)",
          about("/tree"), f"{CAN} (go back|return|jump) to (an earlier turn|a turn|another branch|turn two)(?|)",
          about("/goto")),
         ("Type /tree to see all branches, and /goto N to go to one.", "Use /tree, then /goto with a number.")),
    Wish("saving",
         (f"{CAN} (save|keep|store|write down) (this |the |our )(chat|conversation|talk|transcript)(?|)",
          about("/save"), "save (this|the) (chat|conversation)( please|)", "save( this| it|)( please|)(?|)"),
         command("/save FILE", "to keep this chat")),
    Wish("opening a saved chat",
         (f"{CAN} (open|load|go on with|read|get back) (a |an |my )(saved|old|earlier|stored) (chat|conversation"
          f"|transcript)(?|)", about("/open")),
         command("/open FILE", "to load a saved chat")),
    Wish("exporting",
         (f"{CAN} (export|print|share|publish) (this|the|our|my) (chat|conversation|talk)( as (text|html|a picture"
          f"|markdown|json)|)(?|)", about("/export")),
         ("Type /export chat.md to write this chat for others.", "Use /export chat.html to get it as it looks here.",
          "Try /export chat.txt: this chat as plain text.")),
    Wish("repeating a call",
         (f"{CAN} (repeat|reproduce|get) (this answer|an answer|that answer) (in the shell|from the shell|in a"
          f" script|from a script)(?|)", about("/repeat")),
         ("Type /repeat: it shows the shell command for the last answer.", "Use /repeat to get the command that says"
          " it again.")),
)  # fmt: skip

MODELS: tuple[Wish, ...] = (
    Wish("another model",
         (f"{CAN} (change|switch|swap|choose|load|use) (the |to |)(model|another model|a different model|other model"
          f"|my model|models)(?|)", "(talk to|load|give me|i want) (another|a different|my own|the other) model("
          " please|)",
          about("/model", also="load")),
         command("/model NAME", "to change the model")),
    Wish("all models",
         (f"{CAN} (list|see|show|find|look at) (all |the |my |your |all the |)models(?|)",
          "(what|which|what other|which other) models (are there|do you have|do you know|exist|can i use|can i"
          " choose|have"
          " i got|do i have)( here| now|)?",
          "(show|list) (me |)(all |the |my |)models", about("/models")),
         command("/models", "to list them all")),
    Wish("its parts",
         (f"{CAN} (see|show|look at|inspect) (your (inside|size|parts|architecture|layers|weights)|what you are made"
          f" of|your numbers|how big the model is|how big you are)(?|)", "(show me|what are) your"
          " (parts|layers|insides|details)?",
          about("/show")),
         command("/show", "to see my parts and size")),
    Wish("training",
         (f"{CAN} (train|make|build|create|teach|grow) (a |my own |my |a new |another |my very own |)(model|tiny"
          f" model|language model|model of my own|bot)(?|)",
          f"{CAN} (train|teach) (you|tinychat|a model) (on|with) (my (text|novel|letters|book|notes|data|diary|poems"
          f"|own text)|a (text|file|book))(?|)", "(how does|how do i start|what is) (the |)training( work|)?",
          "can (i|you) (train|learn) on my (own |)(text|data|files|novel)?", about("/train"), "(train|training)("
          " please|)"),
         ("Type /train FILE, and I train a new model on it.",
          "Use /train with your text file. (Five minutes can be enough|A few minutes will do).",
          "(That is|It is) /train FILE: a new model from your own text.")),
    Wish("training on a file",
         (f"{CAN} (train|learn|start training|make a model) (on|from|with) <v>(?|)",
          "(train|learn|start training|make a model) (on|from|with) <v>( please|)", "(use|take) <v> for training"),
         ("Type /train <v> to (start|begin).", "You type /train <v>.", "That is /train <v>, and then wait a little."),
         FILES),
    Wish("training for some minutes",
         (f"{CAN} (train|train a model) for <v> minutes(?|)",
          "(train|let it train|training) for (only |at most |)<v> minutes( please| now|)",
          f"{CAN} (limit|keep|end|stop) (the |a |)training (to|at|after|within) <v> minutes(?|)",
          "(limit|keep|stop|end) (the |)training (to|at|after|within) <v> minutes( please|)"),
         ("Type /train FILE --minutes <v>.", "Add --minutes <v> to /train.",
          "Use /train FILE --minutes <v>, and it ends on time."), ("1", "2", "3", "4", "5", "8", "10", "12", "15",
          "20", "30", "45", "60")),
    Wish("training in the background",
         (f"{CAN} (train|let it train) (in the background|while i chat|while we talk|beside this)(?|)",
          "(can|may) (we|i) (chat|talk) while (it|a model) trains?"),
         ("Type /train FILE & and it trains in the background.", "Put & behind /train FILE: then we can chat"
          " meanwhile.")),
    Wish("ending a run",
         (f"{CAN} (stop|end|finish|cancel) (the |a |my )(training|run|training run)( early| now|)(?|)", about(
         "/finish")),
         ("Type /finish to end a run and keep all.", "Use /finish: the run ends after its step, and nothing is lost.")),
    Wish("training runs",
         (f"{CAN} (see|list|show|watch|find) (my |all |the |running |old |)(runs|trainings|training runs)(?|)",
          "(which|what) (runs|trainings|training runs) (are there|are running|do i have|are going on|have i got)("
          " now|)?", about("/runs")),
         command("/runs", "to list the training runs")),
    Wish("watching a run",
         (f"{CAN} (watch|join|go back to|follow|see again) (a |the |my )(running |)(run|training)( again|)(?|)",
          about("/attach")),
         command("/attach", "to watch a run again")),
    Wish("recipes",
         (f"{CAN} (see|list|choose|use|find) (a |the |all |my |)(recipes|recipe|training recipes)(?|)",
          "(what is|what are) (a |)(recipe|recipes)( for training|)?", about("/recipes")),
         ("Type /recipes to list them, and /train FILE --recipe NAME to use one.",
          "A recipe says how to train: /recipes lists them.")),
    Wish("the loss curve",
         (f"{CAN} (see|show|draw|plot) (the |a |my )(loss|loss curve|curve|training curve|plot|graph)(?|)",
          about("/plot"), "(show|plot|draw) (me |)the (loss|curve)"),
         command("/plot", "to draw the loss curve")),
    Wish("how it was before",
         (f"{CAN} (see|hear|know) (how you|how a model) (talked|answered|sounded) (before|earlier|at first|during"
          f" training"
          f"|when you were young)(?|)", about("/when")),
         ("Type /when TEXT to see how I answered on my way through training.",
          "Use /when TEXT: each step of my training answers it.")),
    Wish("a model for a friend",
         (f"{CAN} (share|send|give|show) (you|a model|my model|this model|the model) (to|with) (a friend|friends"
          f"|others|somebody|my class|my mother)(?|)",
          f"{CAN} (put|get|use) (you|my model|this model) (on a web page|into a web page|in a browser|on a phone)(?|)",
          about("/share")),
         ("Type /share: it writes me as one page that any browser opens.",
          "Use /share FILE.html, and send that file to your friend.")),
    Wish("deleting a model",
         (f"{CAN} (delete|remove|throw away|get rid of) (a|my|an old|the old) (model|run|training run)(?|)",
          "(delete|remove) (my|the|an old|that) (model|run)( please|)", about("/rm")),
         ("Type /rm NAME: it asks, and then the model is gone.", "Use /rm and the name of the model.")),
    Wish("another name for a model",
         (f"{CAN} (rename|name|change the name of|give another name to) (a|my|the|that) (model|run|training run)(?|)",
          "rename (my|the|a|that) (model|run)( please|)", about("/rename")),
         ("Type /rename OLD NEW.", "Use /rename with the old name and the new one.")),
    Wish("models for other tools",
         (f"{CAN} (export|convert|use) (a |my |the |this )model( to other tools| elsewhere| in"
          f" transformers| in another program)(?|)",),
         ("In the shell, type tinychat export MODEL --to FORMAT.", "That is tinychat export MODEL, in the shell.")),
)  # fmt: skip

LOOKING: tuple[Wish, ...] = (
    Wish("why it said that",
         (f"{CAN} (see|know|find out) why you (said|say|chose|wrote|took) (that|this|that word|a word)(?|)",
          "why did you (say|write|choose) that( word|)?", about("/why"),
          "(show|what were) the (other|likely) (words|choices|tokens|alternatives)?", "what else (could|might) you"
          " have said?"),
         command("/why", "to see what else I nearly said")),
    Wish("how sure it was",
         (f"{CAN} see how (sure|certain|confident) you (were|are)( of each word| about that|)(?|)", about("/color"),
          "(shade|colour|color) (your answer|the tokens|each word)( please|)"),
         ("Type /color: the surer I was, the brighter the word.", "Use /color to see how likely each word was.")),
    Wish("how likely a text is",
         (f"{CAN} (score|rate|measure) (a|my|this) (text|sentence|line)(?|)", about("/score"),
          "how (likely|surprising) is (my|this|a) (text|sentence)?"),
         ("Type /score TEXT to see how likely I find it.", "Use /score TEXT: it shades what surprised me.")),
    Wish("tokens of a text",
         (f"{CAN} (see|show|count) (the |my |)(tokens|pieces|token ids)( of a text| of a word|)(?|)",
          about("/tokens"), "how (do you|does it) cut (text|words) into (tokens|pieces)?", "(tokenize|tokenise)"
          " (a|this|my|the) (text|word|line|sentence)( please| for me|)", "(cut|split) (a|this|my) (text|word|line)"
          " into (tokens|pieces)( please|)"),
         command("/tokens TEXT", "to see its pieces")),
    Wish("attention",
         (f"{CAN} (see|show|look at) (what you look at|your attention|the attention|your heads|the heads)(?|)",
          about("/attention"), "(what is|explain) attention?"),
         ("Type /attention to see what my heads looked at.", "Attention is looking back at earlier words: /attention"
          " draws it.")),
    Wish("the logit lens",
         (f"{CAN} (see|show) what each layer (says|thinks|would say|guesses)(?|)", about("/lens"),
          "(what is|explain) (a|the) (logit |)lens?"),
         ("Type /lens to see what each layer would have said.", "Use /lens: it reads my mind layer by layer.")),
    Wish("all steps",
         (f"{CAN} (see|follow|watch|go through) (every|each|all the) (step|steps|sum|number|calculation)(?|)",
          "(what|which) (numbers|sums) do you (calculate|compute|work out)( inside| for a word|)?", about("/steps"),
          "(show|teach) me (the math|the maths|the mathematics|the arithmetic|every step)( please|)"),
         ("Type /steps to follow every number to the next word.", "Use /steps: it shows how I get to my next word.")),
    Wish("lessons",
         (f"{CAN} (learn|study|understand) (how (a |)(language model|transformer)s? (works|work)|transformers"
          f"|language models)( here|)(?|)", "(are there|do you have|where are) (any |)(lessons|courses|exercises|a"
          " tutorial)(?|)", about("/lesson"), "(teach me|give me a lesson)( please|)"),
         ("Type /lesson: twelve lessons, with you at the keys.", "Use /lesson to learn it step by step.")),
    Wish("what it copied",
         (f"{CAN} (see|know|find out) (what you copied|whether you copied that|where that is from|if that is in your"
          f" training text)(?|)", about("/copied"), "did you (copy|make up|learn by heart) that?"),
         ("Type /copied to see what stands in my training text.", "Use /copied: it finds what I said word for word.")),
    Wish("the guessing game",
         (f"{CAN} (play|start|try) the guessing game(?|)|(can we|let's|how do we) play (against each other|a guessing"
          f" game"
          f"|guess the next letter)(?|)", about("/play")),
         ("Type /play: you guess how a text goes on, and so do I.", "Use /play to guess letters against me.")),
    Wish("tokens",
         ("what is (a |)token?|what are tokens?|how many tokens is a word?|(explain|tell me about) tokens|what do you"
          " mean by"
          " token(s|)?",),
         ("A token is a small piece of text, often (a word|part of a word). Type /tokens TEXT to see some.",
          "Tokens are the pieces I read and write. Try /tokens TEXT.")),
    Wish("how it works",
         ("what is (a |)(language model|neural network|tiny model|small model)?",
          "how do you (work|think|make sentences|answer|know what to say|choose words)( exactly| inside|)?",
          "(explain|tell me) how you work", "how (do|does) (language models|a language model|ai) work?"),
         ("I look at the words so far and guess the next piece. Then again.",
          "(Numbers go in|Your words become numbers), (numbers come out|I multiply them), and they become my next"
          " word.", "I guess one token after the other. Type /why to watch me choose.")),
    Wish("loss",
         ("what is (the |a |)(loss|validation loss|perplexity|training loss)?",
          "what does (the |)(loss|val|ppl|perplexity) mean?", "(is|what is) a (low|high|good|bad) loss( good| bad|)?"),
         ("Loss says how surprised a model is by text. Lower is better.",
          "It measures surprise: the lower, the better the model guesses.")),
)  # fmt: skip

PROGRAM: tuple[Wish, ...] = (
    Wish("leaving",
         (f"{CAN} (quit|exit|leave|close|end|get out of|stop) (tinychat|this|the program|the chat|this program"
          f"|here|this thing)(?|)", "(how do i|where is the|how can i|how to) (exit|way out|quit|get out|leave"
          "|close)( here| of here|)?",
          "(quit|exit|logout|close|q|:q|:wq|end|escape)( please| now|)", "let me out( please|)", about("/quit", also=
          "bye"),
          "(how do i|how to) (turn (this|you) off|shut (this|you) down|end this)(?|)"),
         ("Type /quit, or press Ctrl-D.", "That is /quit. (Come back soon|Goodbye then)!",
          "Use /quit or /bye to leave. (See you|Take care)!")),
    Wish("help",
         (f"{CAN} (see|list|show|find|learn) (all |the |your |)(commands|help|command list)(?|)",
          "(what|which) commands (are there|do you have|can i use|exist|do you know|can i type)?",
          "(list|show)( me|) (all |the |)commands|where (is|do i find) (the |)(help|manual|commands)?",
          "(help|i need help|help please|help me|help me please|commands|manual|man|instructions)(!|?|)", about(
          "/help")),
         ("Type /help to see all commands.", "Use /help: it lists all commands.",
          "That is /help. With a name, as in /help train, it says more.")),
    Wish("new lines",
         (f"{CAN} (write|type|enter|make|send) (more lines|two lines|several lines|a new line|a longer text|many"
          f" lines)(?|)", "how do i (break a line|get a line break)?"),
         ("Press Alt-Enter or Ctrl-J for a new line.", "Use Alt-Enter (for|to make) a new line, and Enter to send.")),
    Wish("old lines",
         (f"{CAN} (find|get back|see|search) (my |)(old|earlier|last|previous) (prompts|lines|messages|inputs)(?|)",
          "how do i search (the |my |)history?"),
         ("Press the up key, or Ctrl-R to search your history.",
          "The up key brings old lines back, and Ctrl-R searches them.")),
    Wish("scripts and pipes",
         (f"{CAN} (use|run) you (in a script|from a pipe|without the chat|in a pipe|from the shell)(?|)",
          f"{CAN} (pipe|send) (text|prompts|a file) (to|into|through) you(?|)"),
         ("Pipe it in: each line is one prompt to tinychat.",
          "Use tinychat -p TEXT for one prompt, or pipe lines in.")),
    Wish("the theme",
         (f"{CAN} (change|set|choose|switch off) (the |your |)(colours|colors|theme|look|dark mode|light mode)(?|)",
          "(is there|do you have|where is) (a |the |)(light|dark) (theme|mode)(?|)"),
         ("Start me with --theme light, dark or none.",
          "It is told at the start: tinychat --theme light, dark or none.")),
    Wish("doing it itself",
         ("(can you|please|could you|will you|can you please) (change your settings|set your temperature|train yourself"
          "|run a command|change yourself|restart yourself|switch your model|open a file|save this for me|change your"
          " settings yourself|set it yourself|do that yourself)( for me| now| please|)?",),
         ("I can't turn my own knobs: you can. Type /help to see how.",
          "Only you can do that: commands start with a slash. Try /help.")),
    Wish("commands",
         ("(what is|what are) (a |the |)(command|commands|slash command)( here|)?|how do i (type|use|give|enter|run) (a"
          " command|commands)?",),
         ("A command starts with a slash, as in /help.", "Type a slash and its name: /help lists them all.")),
)  # fmt: skip

SCENES: Scenes = (
    *scenes(TALKING, 0.66), *scenes(MODELS, 0.66), *scenes(LOOKING, 0.64), *scenes(PROGRAM, 1.0),
)  # fmt: skip
