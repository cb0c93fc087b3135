"""Slash commands: functions that take the session and return data. They know nothing of the terminal."""

from tinychat.commands import compare, conversation, copied, game, inspect, lesson, models, settings, training
from tinychat.commands.registry import Registry
from tinychat.config.settings import SETTINGS

_SETTINGS = [training.with_finish_hint(command) if command.name == "stop" else command for command in settings.COMMANDS]
_OTHERS = (*models.COMMANDS, *training.COMMANDS, *inspect.COMMANDS, *copied.COMMANDS, *game.COMMANDS, *lesson.COMMANDS)

_SYNONYMS = {
    "retry": "reroll rerun anew", "continue": "go-on next proceed", "undo": "back revert rewind oops",
    "edit": "change correct fix rephrase", "clear": "cls restart forget wipe", "save": "write store keep dump",
    "open": "read restore reopen", "export": "copy html markdown screenshot", "share": "send html page publish",
    "repeat": "reproduce",
    "branch": "fork force replace", "tree": "history branches log turns", "goto": "jump checkout",
    "samples": "variants several batch", "compare": "sweep versus vs diff", "pick": "choose select take",
    "greedy": "deterministic argmax", "sample": "random stochastic", "settings": "config options preferences params",
    "set": "let", "reset": "default defaults unset", "model": "switch use chat", "show": "architecture layers describe",
    "rm": "delete remove del erase", "rename": "mv move", "train": "learn fit finetune fine-tune resume",
    "attach": "watch fg dashboard", "finish": "cancel kill abort end-run", "runs": "jobs ps experiments",
    "plot": "graph curve curves loss", "when": "snapshots earlier checkpoints", "why": "explain probabilities logprobs",
    "color": "shade highlight", "score": "perplexity ppl surprisal", "tokens": "pieces split encode count",
    "attention": "heads maps", "copied": "memorized plagiarism verbatim overlap", "play": "guess game quiz",
    "help": "commands man manual usage keys shortcuts", "quit": "leave close logout end wq",
}  # fmt: skip
"""For commands, words of the same meaning, which are no commands themselves."""

COMMANDS = Registry(
    (*conversation.COMMANDS, *compare.COMMANDS, *_SETTINGS, *_OTHERS),
    {word: name for name, words in _SYNONYMS.items() for word in words.split()}
    | {word.replace("_", "-"): setting.spelling for setting in SETTINGS.values() for word in setting.synonyms},
)
"""All commands by name, in the order in which `/help` shows them."""
