"""An open model: its description, its tokenizers, and its engine, which loads in a thread."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tinychat.config.option import Origin
from tinychat.config.settings import Settings, SettingStore
from tinychat.errors import ModelError, UsageError
from tinychat.events import Notice
from tinychat.formats.registry import open_model
from tinychat.generate.answer import Answer
from tinychat.generate.engine import Engine, fresh_seed
from tinychat.generate.healing import HealedStart, Healing
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
        self._told: set[Notice] = set()

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

    def move(self, folder: Path) -> None:
        """Follow the model to another folder, in which it may have another name; weights that are in use load again.

        Raises:
            ModelError: If it is not there, or it is damaged.
        """
        self.info = open_model(str(folder))
        self.reference = model_reference(self.info)
        if self._loading is not None:
            self._loading = None
            self.preload()

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
            heals=self._heals(settings()),
            is_cut=encoder.cuts(prompt, settings().max_tokens, settings().system),
        )  # fmt: skip

    def _heals(self, settings: Settings) -> bool:
        """Return whether an answer with these settings heals its prompt; by default, if its model was trained here."""
        is_wanted = settings.token_healing == "on" or (
            settings.token_healing == "auto" and self.info.foreign is None and self.tokenizer.is_cut_by_words
        )
        return is_wanted and self._can_heal and not (settings.begin or settings.regex or settings.choices)

    @property
    def _can_heal(self) -> bool:
        """Whether a prompt of this model may end within a word whose tokens would be others if it were whole."""
        tokenizer = self.tokenizer
        return self.info.mode == "completion" and tokenizer.knows_bytes and tokenizer.kind != "char"

    def settings_at(self, turn: Turn, index: int) -> Settings:
        """Return the settings that drew the token at an index of an answer; the current ones if they are unknown."""
        return turn.settings_at(index) or self._settings.current

    def _sources(self, prompt: str, settings: Settings) -> tuple[Source, ...]:
        """Return what an encoder reads for an answer: sentence by sentence, unless settings describe a whole text."""
        encoder = self.prompt_encoder
        is_whole = settings.choices or settings.regex or settings.begin
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
        sources = self._sources_of(turn)
        return sources[min(self.sentence_before(turn, position)[0], len(sources) - 1)].ids if sources else None

    def _sources_of(self, turn: Turn) -> tuple[Source, ...]:
        """Return what an encoder read for the answer of a turn."""
        return self._sources(turn.prompt, turn.settings or self._settings.current)

    def resume(
        self, answer: Answer, turn: Turn, position: int, num_generated: int, forced_ids: Sequence[int] = ()
    ) -> None:
        """Let a new answer to the prompt of a turn go on from index `position` of that turn's answer.

        `forced_ids` are to come next.
        """
        sentence, first = self.sentence_before(turn, position)
        ids = [token.id for token in turn.tokens[first:position]]
        before, healed = self.ids_before(turn, position), None
        if position == 0 and forced_ids:
            healed = self.healed_start(turn, forced_ids[0])
            if healed is None:  # a token that follows the prompt as it was typed
                before = self._prompt_ids(turn)
        elif position:
            healed = self.healed_start(turn, turn.tokens[0].id)
        sources = self._sources_of(turn) if position else ()  # the settings may ask for others by now
        earlier = "".join(token.text for token in turn.tokens[:first])
        sentence = min(sentence, max(0, len(sources) - 1))
        answer.resume(
            before, ids, num_generated, sources=sources, source_index=sentence, earlier=earlier, healed=healed
        )

    def healed_start(self, turn: Turn, id: int) -> HealedStart | None:
        """Return how the answer of a turn healed its prompt, with the id of its first token; None if it did not so."""
        if not turn.tokens or turn.tokens[0].replaced is None:
            return None
        return Healing(self.vocabulary, self._prompt_ids(turn)).find(turn.num_replaced, id)

    def ids_before(self, turn: Turn, position: int) -> list[int]:
        """Return the ids of all tokens before index `position` of an answer, those of its prompt included.

        Of a translation of several sentences, those of the sentence at that index.

        Raises:
            UsageError: If another model answered.
        """
        if turn.is_foreign:
            raise UsageError(
                f"{turn.model} gave this answer, and {self.reference} is open", "/pick opens the model of an answer"
            )
        prompt = self._prompt_ids(turn)
        prompt = prompt[: len(prompt) - turn.num_replaced]
        is_one_text = self.info.mode == "completion"
        saved = self.tokenizer.encode(turn.saved_text) if turn.saved_text and not is_one_text else []
        _, first = self.sentence_before(turn, position)
        return [*prompt, *([] if first else saved), *(token.id for token in turn.tokens[first:position])]

    def _prompt_ids(self, turn: Turn) -> list[int]:
        """Return the ids of all tokens before an answer; in one text with it, also those of its saved part."""
        saved = turn.saved_text if self.info.mode == "completion" else None
        if turn.prompt_ids and not saved:
            return turn.prompt_ids
        settings, turns = turn.settings or self._settings.current, self.history(turn.path()[:-1])
        return self.make_answer(turn.prompt + (saved or ""), turns=turns, settings=lambda: settings).ids

    def notices(self, settings: Settings) -> Iterator[Notice]:
        """Yield notices of what the settings mean for this model; each comes once."""
        found = list(self.ignored(settings))
        if settings.steer is not None and not self.engine.can_steer:
            found.append(Notice("the torch engine answers while steer is set: the native one does not steer"))
        for notice in found:
            if notice not in self._told:
                self._told.add(notice)
                yield notice

    def ignored(self, settings: Settings) -> Iterator[Notice]:
        """Yield notices of the settings that this model ignores.

        Raises:
            TokenizerError: If its chat template cannot be rendered.
        """
        if settings.token_healing == "on" and not self._can_heal:
            is_char = self.tokenizer.kind == "char"
            why = "its tokens are characters" if is_char else "the text of its tokens depends on those around them"
            why = why if self.info.mode == "completion" else "it continues no text"
            yield Notice(f"{self.name} heals no prompts: {why}")
        if settings.system:
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
