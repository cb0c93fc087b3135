"""Slash commands: functions that take the session and return data. They know nothing of the terminal."""

from tinychat.commands import compare, conversation, game, inspect, models, settings, training
from tinychat.commands.registry import Registry

_SETTINGS = [training.with_finish_hint(command) if command.name == "stop" else command for command in settings.COMMANDS]
_OTHERS = (*models.COMMANDS, *training.COMMANDS, *inspect.COMMANDS, *game.COMMANDS)

COMMANDS = Registry((*conversation.COMMANDS, *compare.COMMANDS, *_SETTINGS, *_OTHERS))
"""All commands by name, in the order in which `/help` shows them."""
