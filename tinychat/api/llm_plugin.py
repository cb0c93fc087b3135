"""A plugin of `llm` (https://llm.datasette.io), which imports it when it starts: `llm -m tinychat/smalltalk "hello"`.

Each model that can be loaded by its name is one of `llm`'s, and each setting one of its options.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import llm
from llm.parts import Message, TextPart
from pydantic import Field, create_model

from tinychat.config.option import Option
from tinychat.config.settings import LOADING, SETTINGS
from tinychat.store.models import list_models

if TYPE_CHECKING:
    from tinychat.api.model import Model

PREFIX = "tinychat/"


@llm.hookimpl
def register_models(register: Callable[[llm.Model], None]) -> None:
    """Register all models."""
    for one in list_models().sound:
        register(TinychatModel(one.name))


def _type_of(option: Option) -> Any:
    return str | list[str] | None if option.kind is tuple else option.kind | None


_fields: dict[str, Any] = {
    name: (_type_of(option), Field(description=option.help, default=None)) for name, option in SETTINGS.items()
}
_Options = create_model("Options", __base__=llm.Options, **_fields)


def _text_of(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


class TinychatModel(llm.Model):
    """A model of tinychat, which is loaded when it is first prompted."""

    can_stream = True
    Options = _Options  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.model_id = PREFIX + name
        self._name = name
        self._loaded: tuple[dict[str, Any], Model] | None = None

    def execute(
        self, prompt: llm.Prompt, stream: bool, response: llm.Response, conversation: llm.Conversation | None
    ) -> Iterator[str]:
        """Yield the texts of the tokens of the answer, after the turns of the conversation, if there is one."""
        from tinychat.session.messages import parse_messages

        given = {name: value for name, value in prompt.options.model_dump().items() if value is not None}
        settings = {name: value for name, value in given.items() if name not in LOADING}
        model = self._load({name: value for name, value in given.items() if name in LOADING})
        read = (message for message in prompt.messages if message.role != "system")
        messages = [{"role": message.role, "content": _text_of(message)} for message in read]
        asked = parse_messages(messages, model._opened)
        turns = [(turn.prompt, turn.answer) for turn in asked.turns]
        chat = model.chat(turns=turns, **settings | ({"system": prompt.system} if prompt.system else {}))
        with chat.stream(asked.prompt, logprobs=0) as tokens:
            yield from (token.text for token in tokens if token.text)
            answer = tokens.answer
        response.set_usage(input=len(answer.prompt_ids), output=len(answer.tokens))
        response.response_json = {"finish_reason": answer.finish_reason, "seed": answer.seed}

    def _load(self, settings: dict[str, Any]) -> "Model":
        from tinychat.api.model import load

        if self._loaded is None or self._loaded[0] != settings:
            self._loaded = settings, load(self._name, **settings)
        return self._loaded[1]
