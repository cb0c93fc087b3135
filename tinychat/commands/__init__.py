"""What slash commands do: functions that take the session and return data, and know no terminal."""

from tinychat.commands import compare, conversation, game, inspect, models, plot, settings, training
from tinychat.commands.registry import Registry

COMMANDS = Registry(
    (
        *conversation.COMMANDS,
        *compare.COMMANDS,
        *(training.or_finish(one) if one.name == "stop" else one for one in settings.COMMANDS),
        *models.COMMANDS,
        *training.COMMANDS,
        models.recipes,
        *plot.COMMANDS,
        *inspect.COMMANDS,
        *game.COMMANDS,
    )
)
"""Every command by its name, in the order in which they are shown."""
