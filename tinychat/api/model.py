"""Models: load one, and let it answer, chat and score."""

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, Unpack, overload

from tinychat.api.answers import Answer, AnswerBuilder, Stream
from tinychat.api.arguments import check_name, check_text, check_turns, check_whole, to_plain
from tinychat.api.keywords import SettingValues
from tinychat.config.option import Origin
from tinychat.config.settings import DEFAULT_MODEL, Settings, SettingStore, describe_sampling, parse_changes
from tinychat.corpus.types import Mode
from tinychat.errors import UsageError
from tinychat.events import Record
from tinychat.generate import answer as generate_answer
from tinychat.generate import stream as generate_stream
from tinychat.generate.engine import derive_seed, fresh_seed
from tinychat.generate.stream import answer_all
from tinychat.interrupts import deferred
from tinychat.session.conversation import Turn
from tinychat.session.dialogue import Dialogue
from tinychat.session.open_model import OpenModel
from tinychat.store.models import list_models
from tinychat.textutil import compact, count, escape_controls, one_line

if TYPE_CHECKING:
    from tinychat.api.inside import Attention, Lens, Score, Why

T = TypeVar("T")

DEFAULT_LOGPROBS = 5
"""Number of likeliest tokens that are recorded at each position of an answer."""
LENS_TOKENS = 5
"""Number of likeliest tokens of each layer that a lens has."""
MAX_ALONE_SECONDS = 0.01
"""Seconds for which a thread keeps the engine, or a call of it longer: then others and Ctrl-C have their turn."""
AT_LOADING = "`tinychat.load(…, {name}=…)` takes it"


class ModelSummary(NamedTuple):
    """A model that can be loaded by its name."""

    name: str
    folder: Path
    mode: Mode
    parameters: int
    """Number of parameters."""
    description: str


class Models(list[ModelSummary]):
    """Models; a notebook shows them as a table."""

    def __repr__(self) -> str:
        lines = (f"{one.name} ({compact(one.parameters)}, {one.mode}) {one.description}" for one in self)
        return "\n".join(map(one_line, lines))

    def _repr_html_(self) -> str:
        from tinychat.api import html
        from tinychat.commands.results import Table

        rows = ((one.name, one.mode, compact(one.parameters), one.description) for one in self)
        return html.table(Table(("model", "mode", "parameters", "about"), tuple(rows), right=(2,)))


def models() -> Models:
    """Return the models that can be loaded by their names: those in `./models`, your own and the bundled ones."""
    sound = list_models().sound
    return Models(ModelSummary(one.name, one.folder, one.mode, one.parameters, one.description) for one in sound)


def load(model: str | os.PathLike[str] = DEFAULT_MODEL, **settings: Unpack[SettingValues]) -> "Model":
    """Load a model.

    Args:
        model: its name (see `tinychat.models()`), or the path of a folder or a file. Default: the bundled `smalltalk`.
        **settings: what holds for all answers, by the names in docs/settings.md. Default: what suits the model, or
            else the defaults there; neither the config file nor environment variables count. `device`, `precision`,
            `engine` and `threads` can be given here alone.

    Returns:
        The model, with its weights in memory.

    Raises:
        ModelError: If there is no such model, or it is damaged.
        UsageError: If `model` is neither a name nor a path, there is no such setting, or the device does not exist.
        SettingError: If a setting has a wrong value.
        GenerationError: If the settings ask for an engine that is not available.
    """
    store = SettingStore()
    store.update(parse_changes(to_plain(settings), store.current, at_loading=None), Origin.FLAG, is_typed=False)
    opened = OpenModel(check_name(model), store)
    if settings.get("greedy") is False:
        store.sample(Origin.FLAG)  # also where the model's own settings are greedy
    _ = opened.engine  # wait for it: what is wrong with the weights is told here
    return Model(opened, store)


class Model:
    """A loaded model; `tinychat.load` makes one.

    Any thread may use it: calls of the engine wait for each other, and several streams may be open at once. Several
    models may be loaded at once; the setting `threads` of the torch engine holds for the whole process.
    """

    def __init__(self, opened: OpenModel, settings: SettingStore) -> None:
        self._opened, self._store = opened, settings
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._opened.name

    @property
    def folder(self) -> Path:
        """Folder or file that holds it."""
        return self._opened.info.folder

    @property
    def mode(self) -> Mode:
        """`chat`, `completion` or `translation`."""
        return self._opened.info.mode

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return self._opened.info.parameters

    @property
    def context_length(self) -> int:
        """Number of tokens that it sees at once."""
        return self._opened.config.context_length

    @property
    def settings(self) -> Settings:
        """The settings of its answers, unless a call has others."""
        return self._store.current

    def __repr__(self) -> str:
        return one_line(f"<Model {self._opened.info.summary} · {self._about}>")

    @property
    def _about(self) -> str:
        """How the engine runs, if it is loaded."""
        return self._opened.engine.about if self._opened.is_ready else "closed"

    def _repr_html_(self) -> str:
        from tinychat.api import html

        info = self._opened.info
        facts = {
            "mode": self.mode, "parameters": f"{self.parameters:,}", "tokenizer": info.tokenizer_kind,
            "context": f"{self.context_length:,} tokens", "engine": self._about,
            "settings": " · ".join(describe_sampling(self.settings)), "folder": str(self.folder),
        }  # fmt: skip
        return html.facts(self.name, info.description, facts)

    def stream(self, prompt: str, *, logprobs: int = DEFAULT_LOGPROBS, **settings: Unpack[SettingValues]) -> Stream:
        """Answer a prompt, token by token.

        Args:
            prompt: what a chat model answers, a completion model continues, or a translation model translates.
            logprobs: number of likeliest tokens to record at each position, as `token.top`; at least 0.
            **settings: by the names in docs/settings.md, for this answer alone.

        Returns:
            The tokens, to iterate over. `stream.answer` is the answer so far; `close()` ends it.

        Raises:
            UsageError: If there is no such setting, or it can only be given to `tinychat.load`.
            SettingError: If a setting has a wrong value.
            TokenizerError: If the model's chat template cannot be rendered.
            GenerationError: While iterating, if the model gave NaN or infinite logits.
        """
        prompt, own = check_text(prompt), self._settings(settings)
        answer = self._opened.make_answer(
            prompt, settings=lambda: own, seed=own.seed, top_logprobs=check_whole("logprobs", logprobs, 0)
        )
        return self._stream(prompt, answer)

    @overload
    def generate(  # type: ignore[overload-overlap]  # a str is a sequence of them
        self, prompts: str, *, logprobs: int = DEFAULT_LOGPROBS, **settings: Unpack[SettingValues]
    ) -> Answer: ...
    @overload
    def generate(
        self, prompts: Sequence[str], *, logprobs: int = DEFAULT_LOGPROBS, **settings: Unpack[SettingValues]
    ) -> list[Answer]: ...
    def generate(
        self, prompts: str | Sequence[str], *, logprobs: int = DEFAULT_LOGPROBS, **settings: Unpack[SettingValues]
    ) -> Answer | list[Answer]:
        """Answer a prompt, or several in batches, which takes less time than one after the other.

        With a `seed`, the texts are those of `tinychat --jsonl --seed SEED`: each prompt has a seed of its own, which
        depends on that seed and on its index alone. It is the `seed` of its answer.

        Args:
            prompts: one, or a sequence of them.
            logprobs: number of likeliest tokens to record at each position, as `token.top`; at least 0.
            **settings: by the names in docs/settings.md, for these answers alone.

        Returns:
            The answer, or the list of answers in the order of the prompts.

        Raises:
            UsageError: If a prompt is no text, there is no such setting, or it can only be given to `tinychat.load`.
            SettingError: If a setting has a wrong value.
            TokenizerError: If the model's chat template cannot be rendered.
            GenerationError: If the model gave NaN or infinite logits.
        """
        own = self._settings(settings)
        is_one = isinstance(prompts, str) or not isinstance(prompts, Iterable)
        texts = [check_text(prompt) for prompt in ([prompts] if is_one else prompts)]
        seed = fresh_seed() if own.seed is None else own.seed
        top_logprobs = check_whole("logprobs", logprobs, 0)
        builders: dict[generate_answer.Answer, AnswerBuilder] = {}

        def begin() -> Iterator[generate_answer.Answer]:
            for index, prompt in enumerate(texts):
                answer = self._opened.make_answer(
                    prompt, settings=lambda: own, seed=derive_seed(seed, index), top_logprobs=top_logprobs
                )
                builders[answer] = self._builder(prompt, answer)
                yield answer

        records = answer_all(self._opened.engine, begin())
        try:
            while self._advance(records, lambda found: builders[found[0]].add(found[1])):
                pass
        finally:
            records.close()
        answers = [builder.build() for builder in builders.values()]
        return answers[0] if isinstance(prompts, str) else answers

    def chat(self, *, turns: Iterable[tuple[str, str]] = (), **settings: Unpack[SettingValues]) -> "Chat":
        """Begin a conversation.

        Args:
            turns: prompts and answers to go on from. Default: none.
            **settings: by the names in docs/settings.md, for all answers of this conversation; `system` are
                instructions before it, for models whose template has a place for them.

        Returns:
            The conversation, to say something in.

        Raises:
            UsageError: If a turn is no prompt and answer, the model takes no instructions, there is no such setting, or
                it can only be given to `tinychat.load`.
            SettingError: If a setting has a wrong value.
        """
        own = self._settings(settings)
        if settings.get("system"):
            self._opened.check_system()
        return Chat(self, own, turns)

    def score(self, text: str) -> "Score":
        """Score a text that begins a document or, for a chat model, is a user's message: how likely is each token?

        Args:
            text: of at least two tokens; the first one has no context, so it is not scored.

        Raises:
            UsageError: If nothing can be predicted in the text, or the model translates.
            GenerationError: If the model gave NaN or infinite logits.
        """
        from tinychat.api import inside

        with self._alone():
            return inside.score(self._opened, check_text(text))

    def why(self, prompt: str | Answer, index: int | None = None, **settings: Unpack[SettingValues]) -> "Why":
        """Show what a token of an answer could have been, and how likely that was, before and after the filters.

        Args:
            prompt: a prompt, which is answered first, or an answer of this model.
            index: of the token in the answer, from 0; −1 is the last one. Default: the most surprising token.
            **settings: of the answer, if a prompt is given.

        Raises:
            UsageError: If the answer has no such token, another model gave it, or a setting is wrong.
            GenerationError: If the model gave NaN or infinite logits.
        """
        from tinychat.api import inside

        answer = self._answer(prompt, settings)
        with self._alone():
            return inside.why(self._opened, answer, index)

    def lens(
        self,
        prompt: str | Answer,
        index: int | None = None,
        *,
        likeliest: int = LENS_TOKENS,
        **settings: Unpack[SettingValues],
    ) -> "Lens":
        """Show how the prediction of a token forms from layer to layer (logit lens, nostalgebraist 2020).

        Args:
            prompt: a prompt, which is answered first, or an answer of this model.
            index: of the token in the answer, from 0; −1 is the last one. Default: the most surprising token.
            likeliest: number of likeliest tokens of each layer, at least 1. Default: 5.
            **settings: of the answer, if a prompt is given.

        Raises:
            UsageError: If the answer has no such token, another model gave it, or a setting is wrong.
        """
        from tinychat.api import inside

        likeliest = check_whole("likeliest", likeliest, 1)
        answer = self._answer(prompt, settings)
        with self._alone():
            return inside.lens(self._opened, answer, index, likeliest)

    def attention(
        self,
        prompt: str | Answer,
        layer: int | None = None,
        head: int | None = None,
        *,
        cross: bool = False,
        **settings: Unpack[SettingValues],
    ) -> "Attention":
        """Show which tokens each token of a prompt and its answer attends to.

        Args:
            prompt: a prompt, which is answered first, or an answer of this model.
            layer: number of the only layer, from 1. Default: all layers.
            head: number of the only head, from 1. Default: all heads.
            cross: whether to return the attention to the prompt that the encoder of a translation model has read.
            **settings: of the answer, if a prompt is given.

        Raises:
            UsageError: If there is no such layer or head, or no encoder; if another model gave the answer, a setting is
                wrong, or there are more than 16 million weights.
        """
        from tinychat.api import inside

        answer = self._answer(prompt, settings)
        with self._alone():
            return inside.attention(self._opened, answer, layer, head, cross)

    def to_html(self, chat: "Chat | Iterable[tuple[str, str]]" = ()) -> str:
        """Return one HTML page in which the model answers, without a server: what `tinychat export --to html` writes.

        Args:
            chat: a conversation that the page begins with, or prompts and answers. Default: none.

        Raises:
            UsageError: If a turn is no prompt and answer, or one of them is no text.
            ModelError: If the page knows no such model.
            TokenizerError: If the page does not know its tokenizer.
        """
        from tinychat.formats.page import render_page

        return render_page(self._opened.info, chat=check_turns(chat.turns if isinstance(chat, Chat) else chat))

    def close(self) -> None:
        """Free the weights; the next call loads them again."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, prompt: str | Answer, settings: SettingValues) -> Answer:
        """Return the answer to a prompt, or one that is given, if it is of this model."""
        if not isinstance(prompt, Answer):
            return self.generate(check_text(prompt), **settings)
        if settings:
            raise UsageError(f"the answer has settings of its own: {', '.join(settings)}", "give a prompt")
        if prompt.model != self._opened.reference:
            raise UsageError(f"{prompt.model} gave this answer, not {self.name}", "ask the model that gave it")
        return prompt

    def _settings(self, values: Mapping[str, object], base: Settings | None = None) -> Settings:
        """Return the settings of a call."""
        base = base or self._store.current
        last_temperature = self._store.last_temperature
        changes = parse_changes(to_plain(values), base, at_loading=AT_LOADING, last_temperature=last_temperature)
        return replace(base, **changes)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads and Ctrl-C away from the engine."""
        with self._lock, deferred():
            yield

    def _advance(self, records: Iterator[T], take: Callable[[T], object]) -> bool:
        """Take records for `MAX_ALONE_SECONDS` at least; return whether there may be more."""
        with self._alone():
            until = time.monotonic() + MAX_ALONE_SECONDS
            for record in records:
                take(record)
                if time.monotonic() >= until:
                    return True
        return False

    def _builder(self, prompt: str, answer: generate_answer.Answer) -> AnswerBuilder:
        unknown, others = self._opened.unknown_notice(prompt), self._opened.notices(answer.request.settings)
        notices = [notice.text for notice in (unknown, *others) if notice]
        return AnswerBuilder(prompt, answer, self._opened.reference, notices)

    def _stream(self, prompt: str, answer: generate_answer.Answer, **options: Any) -> Stream:
        def records() -> Generator[Record]:
            yield from generate_stream.stream(self._opened.engine, answer)

        return Stream(records(), self._builder(prompt, answer), self._advance, **options)


class Chat:
    """A conversation with a model, which sees the earlier turns before the next prompt; `Model.chat` begins one.

    A completion model sees prompts and answers as one running text, a translation model each prompt alone.
    With a `seed`, the same prompts get the same answers.
    """

    def __init__(self, model: Model, settings: Settings, turns: Iterable[tuple[str, str]] = ()) -> None:
        self.model = model
        self.answers: list[Answer] = []
        """The answers so far, each with its `prompt`, without those that the conversation began with."""
        self._settings = settings
        earlier = (Turn(prompt, saved_text=answer) for prompt, answer in check_turns(turns))
        self._dialogue = Dialogue(model._opened, settings.seed, earlier)
        self._open: weakref.ref[Stream] | None = None  # weak, so that the caller's last reference ends the answer

    def say(self, prompt: str, *, logprobs: int = DEFAULT_LOGPROBS, **settings: Unpack[SettingValues]) -> Answer:
        """Say something, and return the answer.

        Args:
            prompt: the next message.
            logprobs: number of likeliest tokens to record at each position, as `token.top`; at least 0.
            **settings: by the names in docs/settings.md, for this answer alone.

        Raises:
            UsageError: If there is no such setting, or it can only be given to `tinychat.load`.
            SettingError: If a setting has a wrong value.
            TokenizerError: If the model's chat template cannot be rendered.
            GenerationError: If the model gave NaN or infinite logits.
        """
        with self.stream(prompt, logprobs=logprobs, **settings) as tokens:
            for _ in tokens:
                pass
        return self.answers[-1]

    def stream(self, prompt: str, *, logprobs: int = DEFAULT_LOGPROBS, **settings: Unpack[SettingValues]) -> Stream:
        """Say something, and return the answer token by token; what there is of it when it ends becomes a turn.

        Arguments and errors are those of `say`. An answer that is still open is ended first. An error before the first
        token leaves no turn.
        """
        prompt, own = check_text(prompt), self.model._settings(settings, self._settings)
        top_logprobs = check_whole("logprobs", logprobs, 0)
        if self._open is not None and (stream := self._open()):
            stream.close()
        answer = self._dialogue.make_answer(
            prompt, lambda: own, seed=own.seed if "seed" in settings else None, top_logprobs=top_logprobs
        )
        stream = self.model._stream(prompt, answer, on_end=self._add)
        self._open = weakref.ref(stream)
        return stream

    @property
    def turns(self) -> list[tuple[str, str]]:
        """All prompts and answers so far, with those that the conversation began with."""
        return [(turn.prompt, turn.answer) for turn in self._dialogue.turns]

    def _add(self, answer: Answer) -> None:
        self._open = None
        self.answers.append(answer)
        self._dialogue.add(answer.turn)

    def __repr__(self) -> str:
        from tinychat.commands.results import MARKS  # slow to import

        lines, mark = [f"<Chat with {self.model.name}, {count(len(self.answers), 'turn')}>"], MARKS[self.model.mode]
        return escape_controls("\n".join([*lines, *(f"{mark} {one.prompt}\n{one.text}" for one in self.answers)]))

    def _repr_html_(self) -> str:
        from tinychat.api import html

        turns = (html.turn(one.prompt, one.tokens) for one in self.answers)
        return html.box(*turns, html.shade_legend(), html.line(self.model.name))
