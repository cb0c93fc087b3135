"""An open model: its description, its tokenizers, and its engine, which loads in a thread."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from tinychat.config.option import Origin
from tinychat.config.settings import Settings, SettingStore
from tinychat.errors import ModelError, UsageError
from tinychat.events import Notice
from tinychat.formats.registry import open_model
from tinychat.generate.answer import Answer
from tinychat.generate.engine import Engine, fresh_seed
from tinychat.generate.loading import EngineLoader, load_engine
from tinychat.generate.prompts import PromptEncoder, RunningText, Source
from tinychat.generate.vocabulary import Vocabulary
from tinychat.session.conversation import Turn
from tinychat.store.models import model_reference, read_tokenizers
from tinychat.tokenizer.tokenizer import Tokenizer

ShouldStop = Callable[[], bool]
"""Returns whether to stop; called repeatedly."""


class OpenModel:
    """A model, by its name or path, to generate with the given settings, in which its own defaults are set.

    Its weights load when they are first needed, or from `preload` on.

    Raises:
        ModelError: If there is no such model, or it is damaged.
    """

    def __init__(self, name: str, settings: SettingStore) -> None:
        from tinychat.model.config import ModelConfig

        self.info = open_model(name)
        self.reference = model_reference(self.info)
        """A reference that resolves to this model: its name, or its path if the name finds another model."""
        self.config = ModelConfig.from_dict(self.info.architecture)  # reports a faulty one before the weights load
        settings.replace(self.info.settings, Origin.MODEL)
        self._settings = settings
        self._loading: EngineLoader | None = None
        self._has_told_steering = self._has_told_system = False

    @property
    def name(self) -> str:
        return self.info.name

    def preload(self) -> EngineLoader:
        """Start to load the weights in a thread; return its loader."""
        if self._loading is None:
            if self.info.template is not None:
                self.info.template.prepare()
            self._loading = load_engine(self.info, self._settings.current)
        return self._loading

    @property
    def engine(self) -> Engine:
        """The engine; waits until its weights have loaded.

        Raises:
            TinychatError: If loading failed.
        """
        return self.preload().engine

    @property
    def is_ready(self) -> bool:
        """Whether the weights have loaded, so that an answer can begin at once."""
        return self._loading is not None and self._loading.wait(0)

    def wait(self, should_stop: ShouldStop) -> bool:
        """Wait for the weights to load; return whether they did before `should_stop` returned true."""
        return self.preload().wait_until(should_stop)

    def close(self) -> None:
        """Free the weights; they load again when they are next needed."""
        self._loading = None

    @cached_property
    def _tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return read_tokenizers(self.info)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the generated text."""
        return self._tokenizers[0]

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of prompts: that of the encoder, or else `tokenizer`."""
        return self._tokenizers[1]

    @cached_property
    def prompt_encoder(self) -> PromptEncoder:
        """The encoder of prompts for the model's mode.

        Raises:
            ModelError: If a chat model has no template.
        """
        info = self.info
        template = info.template if info.mode == "chat" else None
        if info.mode == "chat" and template is None:
            raise ModelError(f"{info.name} is a chat model without a template", "train or import it again")
        source_tokenizer = self.source_tokenizer if info.mode == "translation" else None
        ends = frozenset(id for id in info.end_ids if id < self.config.vocab_size)
        return PromptEncoder(self.tokenizer, self.config.context_length, template, source_tokenizer, ends)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The texts of the model's tokens, for controls."""
        encoder = self.prompt_encoder
        return Vocabulary(self.tokenizer, self.config.vocab_size, encoder.end_ids, encoder.encode_text)

    def history(self, turns: Sequence[Turn]) -> Sequence[Turn]:
        """Return the earlier turns that the model sees: all of them in a chat, none in other modes."""
        return turns if self.info.mode == "chat" else ()

    def make_answer(
        self,
        prompt: str,
        *,
        turns: Sequence[Turn] = (),
        text: RunningText | None = None,
        settings: Callable[[], Settings] | None = None,
        seed: int | None = None,
        index: int | None = None,
        top_logprobs: int = 0,
        logit_bias: Mapping[int, float] | None = None,
    ) -> Answer:
        """Return an answer that an engine can begin.

        `turns` are those before it that the model sees in a chat, `text` the text before it that a completion model
        sees, if there is any; `settings` is called before each call of the engine, default:
        the current ones. The seed, by default the one that is set or a fresh one, and the index of the prompt in the
        input, by default the number of turns, determine the random numbers. Of each position, the `top_logprobs`
        likeliest tokens are recorded. `logit_bias` is added to the logits of its ids.

        Raises:
            ModelError: If a chat model has no template.
            TokenizerError: If the template cannot be rendered.
        """
        settings = settings or (lambda: self._settings.current)
        encoder = self.prompt_encoder
        history = ((turn.prompt, turn.answer) for turn in reversed(turns))
        if text is None:
            ids = encoder.encode(prompt, history, settings().max_tokens, settings().system)
        else:
            ids = text.encode(prompt)
        seed = settings().seed if seed is None else seed
        return Answer(
            self.tokenizer, ids, settings,
            seed=fresh_seed() if seed is None else seed, prompt_index=len(turns) if index is None else index,
            end_ids=encoder.end_ids, top_logprobs=top_logprobs, sources=self._sources(prompt, settings()),
            vocabulary=self.vocabulary, logit_bias=logit_bias, begins_text=encoder.begins_text(ids),
        )  # fmt: skip

    def settings_at(self, turn: Turn, index: int) -> Settings:
        """Return the settings that drew the token at an index of an answer; the current ones if they are unknown."""
        return turn.settings_at(index) or self._settings.current

    def _sources(self, prompt: str, settings: Settings) -> tuple[Source, ...]:
        """Return what an encoder reads for an answer: sentence by sentence, unless settings ask for a whole text."""
        encoder = self.prompt_encoder
        is_whole = settings.num_beams > 1 or settings.best_of > 1 or settings.choices or settings.regex
        is_whole = is_whole or settings.begin or settings.ban
        return encoder.encode_whole(prompt) if is_whole else encoder.encode_sentences(prompt)

    def sentence_before(self, turn: Turn, position: int) -> tuple[int, int]:
        """Return which sentence an index of an answer translates, and the index of the first token of that."""
        if self.prompt_encoder.source_tokenizer is None:
            return 0, 0
        end_ids = self.prompt_encoder.end_ids
        ends = [index for index, token in enumerate(turn.tokens[:position]) if token.id in end_ids]
        return len(ends), ends[-1] + 1 if ends else 0

    def source_before(self, turn: Turn, position: int) -> tuple[int, ...] | None:
        """Return the ids that an encoder read for the token at an index of an answer; None if there is no encoder."""
        sources = self._sources(turn.prompt, turn.settings or self._settings.current)
        return sources[min(self.sentence_before(turn, position)[0], len(sources) - 1)].ids if sources else None

    def resume(self, answer: Answer, turn: Turn, position: int, num_generated: int) -> None:
        """Let a new answer to the prompt of a turn go on from index `position` of that turn's answer."""
        sentence, first = self.sentence_before(turn, position)
        ids = [token.id for token in turn.tokens[first:position]]
        answer.resume(self.ids_before(turn, position), ids, num_generated, source_index=sentence)

    def ids_before(self, turn: Turn, position: int) -> list[int]:
        """Return the ids of all tokens before index `position` of an answer, those of its prompt included.

        Of a translation of several sentences, those of the sentence at that index.
        """
        prompt = turn.prompt_ids
        if not prompt:
            settings, turns = turn.settings or self._settings.current, self.history(turn.path()[:-1])
            prompt = self.make_answer(turn.prompt, turns=turns, settings=lambda: settings).ids
        saved = self.tokenizer.encode(turn.saved_text) if turn.saved_text else []
        _, first = self.sentence_before(turn, position)
        return [*prompt, *([] if first else saved), *(token.id for token in turn.tokens[first:position])]

    def notices(self, settings: Settings) -> Iterator[Notice]:
        """Yield notices of what the settings mean for this model; each comes once."""
        if settings.steer is not None and not self._has_told_steering and self.engine.about.startswith("native"):
            self._has_told_steering = True
            yield Notice("the torch engine answers while /steer is set; `/steer off` goes back to the native one")
        if settings.system and not self._has_told_system:
            self._has_told_system = True
            try:
                self.check_system()
            except UsageError as error:
                yield Notice(f"{error.problem}: the system message is left out")

    def check_system(self) -> None:
        """Check that the model reads system messages.

        Raises:
            UsageError: If it does not.
            TokenizerError: If its template cannot be rendered.
        """
        if not self.prompt_encoder.reads_system:
            why = "its chat template has no such role" if self.info.mode == "chat" else "it is no chat model"
            raise UsageError(f"{self.name} reads no system message: {why}", "say it in your first message")

    def unknown_notice(self, text: str) -> Notice | None:
        """Return a notice that names the characters of a text that the vocabulary lacks; None if it has them all."""
        unknown = self.source_tokenizer.unknown(text)
        shown = " ".join(map(repr, unknown[:8])) + (" …" if len(unknown) > 8 else "")
        return Notice(f"unknown to this model, left out: {shown}") if unknown else None
