"""The one object that a face holds: settings, the model, the conversation, the runs.

What needs torch is imported inside methods and in a thread, so that a face can draw its prompt first.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tinychat.background import Background
from tinychat.conversation import Conversation, Turn
from tinychat.errors import ModelError, UsageError
from tinychat.events import Ended, Finished, Notice, Record
from tinychat.face import FaceStore
from tinychat.generate.engine import Drawn, Engine
from tinychat.generate.opening import Loading, device_of
from tinychat.generate.prompts import Prompting
from tinychat.generate.random import fresh_seed
from tinychat.generate.stream import Answer, stream
from tinychat.layers import Layer
from tinychat.settings import Settings, SettingStore
from tinychat.store.models import ModelInfo, call_of, find_model, read_info, read_source_tokenizer, read_tokenizer
from tinychat.text.tokenizers import Tokenizer
from tinychat.transcript import read_transcript, write_transcript

if TYPE_CHECKING:
    from tinychat.comparing import Comparison


class Session:
    """Settings, the model, the conversation."""

    def __init__(self, settings: SettingStore | None = None, face: FaceStore | None = None) -> None:
        self.settings = settings or SettingStore()
        self.face = face or FaceStore()
        self.conversation = Conversation()
        self.comparison: Comparison | None = None
        """the newest answers to choose from, of which none is a turn before it is chosen"""
        self.info: ModelInfo | None = None
        self.background: list[Background] = []
        """the runs that train in the background, as far as this session knows of them"""
        self.following: Background | None = None
        """the one whose newest weights answer"""
        self.weights_step: int | None = None
        """after how many steps of it the weights are that answer now"""
        self._tokenizer: Tokenizer | None = None
        self._reader: Tokenizer | None = None
        self._loading: Loading | None = None

    # --- the model -----------------------------------------------------------------------------------------------

    def open_model(self, name: str) -> ModelInfo:
        """Takes another model: a name or a path. Its weights load when they are needed, or at `preload`.

        Raises:
            ModelError: there is none, or it is damaged; the model at hand stays.
        """
        from tinychat.model.config import ModelConfig

        info = read_info(find_model(name))
        ModelConfig.from_dict(info.architecture)  # says at once what is wrong with it
        self.settings.replace(info.settings, Layer.MODEL)
        self.info, self._tokenizer, self._reader, self._loading = info, None, None, None
        self.conversation = Conversation()
        return info

    def reopen_model(self, folder: Path) -> None:
        """Takes what a model has become, or the same one with other settings; the conversation goes on.

        Raises:
            ModelError: there is none, or it is damaged; the model at hand stays.
        """
        conversation = self.conversation
        self.open_model(str(folder))
        self.conversation = conversation
        self.preload()

    def choose_model(self, name: str) -> ModelInfo:
        """As `open_model`; but where a run of that name trains in the background, its newest weights answer.

        Raises:
            ModelError: there is none, or it is damaged; the model at hand stays.
        """
        found = next((one for one in self.background if one.run.name == name and one.last is None), None)
        if found is not None and found.has_weights:
            self.following = found
            self.keep_up(anew=True)
            return self.model
        info = self.open_model(name)
        self.following = found  # not yet
        return info

    def keep_up(self, *, anew: bool = False) -> None:
        """Opens the model of the run that is followed, as soon as there is one; and once it has ended, what it made.

        Args:
            anew: even if it is open.
        """
        following = self.following
        if following is None:
            return
        following.look()
        here = self.info.folder if self.info else None
        if following.last is None:
            if following.has_weights and (anew or here != following.run.model):
                self.open_model(str(following.run.model))
                self.weights_step = following.weights_step
                self.preload()
        else:
            self.following = self.weights_step = None
            if isinstance(following.last, Ended) and here == following.run.model:
                self.reopen_model(Path(following.last.folder))

    def catch_up(self, should_stop: Callable[[], bool]) -> None:
        """Takes the newest weights of the run that is followed, which come with the conversation as it is."""
        self.keep_up()
        if self.following is None or self.info is None or self.info.folder != self.following.run.model:
            return
        self.following.ask_for_weights(should_stop)
        step = self.following.weights_step
        if step != self.weights_step:
            self.engine.reload(self.info)
            self.weights_step = step

    @property
    def speaker(self) -> str:
        """Who answers: `shakespeare (training, step 1,480)`; empty where it is simply the model at hand."""
        if self.following is None or self.weights_step is None or self.info is None:
            return ""
        return f"{self.info.name} (training, step {self.weights_step:,})"

    def preload(self) -> None:
        """Begins to import torch and to load the weights, in a thread."""
        if self._loading is None:
            self._loading = Loading(self.model, self.settings.current)

    @property
    def model(self) -> ModelInfo:
        """The model at hand.

        Raises:
            ModelError: there is none.
        """
        if self.info is None:
            raise ModelError("no model is open", "`/model NAME` opens one, `/train TEXT` makes one")
        return self.info

    @property
    def engine(self) -> Engine:
        """The engine with the model loaded; waits for it."""
        self.preload()
        assert self._loading is not None
        return self._loading.engine

    @property
    def is_ready(self) -> bool:
        """Whether an answer can begin at once."""
        return self._loading is not None and self._loading.wait(0)

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's."""
        if self._tokenizer is None:
            self._tokenizer = read_tokenizer(self.model.folder)
        return self._tokenizer

    @property
    def reader(self) -> Tokenizer:
        """The tokenizer of prompts: where an encoder reads them, it may have one of its own."""
        if self._reader is None:
            self._reader = read_source_tokenizer(self.model.folder) or self.tokenizer
        return self._reader

    @property
    def prompting(self) -> Prompting:
        """How prompts reach the model.

        Raises:
            ModelError: it is a chat model without a template.
        """
        model = self.model
        if model.mode == "chat" and model.template is None:
            raise ModelError(f"{model.name} is a chat model without a template", "train or import it again")
        return Prompting(
            self.tokenizer,
            int(model.architecture["context"]),
            model.template if model.mode == "chat" else None,
            self.reader if model.mode == "translation" else None,
        )

    @property
    def device_name(self) -> str:
        """Where the model runs, or will, as far as can be told without torch."""
        return device_of(self.settings.current)

    def close(self) -> None:
        """Lets go of the model."""
        self._loading = None

    @property
    def turns(self) -> list[Turn]:
        """What has been said in the conversation at hand, on the way to where it stands."""
        return self.conversation.turns

    # --- prompts and answers -------------------------------------------------------------------------------------

    def make_answer(
        self,
        prompt: str,
        *,
        turns: Sequence[Turn] = (),
        settings: Callable[[], Settings] | None = None,
        seed: int | None = None,
        place: int = 0,
        alternatives: int = 0,
    ) -> Answer:
        """An answer that an engine can begin.

        Args:
            prompt: as it reaches the model.
            turns: the conversation before it.
            settings: asked anew before each call of the engine; default: those of the session.
            seed: None takes the one that is set, or a fresh one.
            place: of the prompt in the input.
            alternatives: how many of the likeliest tokens to record at each place.
        """
        settings = settings or (lambda: self.settings.current)
        prompting = self.prompting
        seed = settings().seed if seed is None else seed
        return Answer(
            self.tokenizer,
            prompting.ids(prompt, [(turn.prompt, turn.answer) for turn in turns], settings().max_tokens),
            settings,
            seed=fresh_seed() if seed is None else seed,
            place=place,
            end_ids=prompting.end_ids,
            alternatives=alternatives,
            source=prompting.source(prompt),
        )

    def answer(
        self, prompt: str, *, should_stop: Callable[[], bool] = lambda: False, alternatives: int = 0
    ) -> Iterator[Record]:
        """Answers a prompt, which becomes the newest turn; the last record is `Finished`."""
        self.catch_up(should_stop)
        before = self._before(len(self.turns))
        # Its place is the one that `--conversation` gives it: the same seed says the same there.
        answer = self.make_answer(prompt, turns=before, place=len(before), alternatives=alternatives)
        unknown = self.unknown(prompt)
        turn = Turn(prompt, list(answer.ids), model=call_of(self.model), settings=answer.request.settings)
        turn.obstacle = "the model was still in training" if self.speaker else ""
        self.conversation.add(turn)
        if unknown:
            yield unknown_notice(unknown)
        yield from self._run(turn, answer, should_stop)

    def retry(self, *, should_stop: Callable[[], bool] = lambda: False, alternatives: int = 0) -> Iterator[Record]:
        """Answers the last prompt again.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        self.conversation.back()
        return self.answer(turn.prompt, should_stop=should_stop, alternatives=alternatives)

    def continue_answer(
        self, *, should_stop: Callable[[], bool] = lambda: False, alternatives: int = 0
    ) -> Iterator[Record]:
        """Goes on where the last answer stopped.

        Raises:
            UsageError: there is none.
        """
        turn = self._last()
        answer = self.make_answer(turn.prompt, alternatives=alternatives)
        answer.go_on(self.ids_before(turn, len(turn.tokens)), [token.id for token in turn.tokens], made=0)
        turn.obstacle = "it was continued"
        return self._run(turn, answer, should_stop)

    def branch(
        self, place: int, instead: Sequence[int], *, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Record]:
        """Says the last answer anew as far as some token, then others, and goes on from there: another turn.

        Args:
            place: of the first token (from 0) that is not said again.
            instead: the ids of what is said there, the first records.
            should_stop: whether to end before its time.

        Raises:
            UsageError: there is no answer.
        """
        old = self._last()
        kept = old.tokens[:place]
        before = self._before(len(self.turns) - 1)
        answer = self.make_answer(old.prompt, turns=before, place=len(before))
        answer.go_on(self.ids_before(old, place), [token.id for token in kept], made=place)
        turn = replace(
            old, tokens=kept, finished=None, changes=[change for change in old.changes if change[0] < place],
            model=call_of(self.model), settings=answer.request.settings, obstacle="it goes on from another token",
        )  # fmt: skip
        self.conversation.back()
        self.conversation.add(turn)
        return self._run(turn, answer, should_stop, instead)

    def ids_before(self, turn: Turn, place: int) -> list[int]:
        """The ids of all that the model saw when it chose the token at a place (from 0) of an answer."""
        path = turn.path()[:-1] if self.model.mode == "chat" else []
        prompt = turn.prompt_ids or self.make_answer(turn.prompt, turns=path).ids
        given = self.tokenizer.encode(turn.given) if turn.given else []
        return [*prompt, *given, *(token.id for token in turn.tokens[:place])]

    def clear(self) -> None:
        """Begins a new conversation."""
        self.conversation = Conversation()

    def unknown(self, text: str) -> list[str]:
        """The characters of a text that the model's vocabulary lacks."""
        return self.reader.unknown(text)

    def tokens(self, text: str) -> list[tuple[str, int]]:
        """The pieces into which the model's tokenizer cuts a text, with their ids."""
        return self.reader.pieces(text)

    def _before(self, place: int) -> list[Turn]:
        """The turns that a prompt at that place follows: in chat mode those before it; else each stands alone."""
        return self.turns[:place] if self.model.mode == "chat" else []

    def _run(
        self, turn: Turn, answer: Answer, should_stop: Callable[[], bool], first: Sequence[int] = ()
    ) -> Iterator[Record]:
        """Streams an answer, of which the first tokens may be given, and notes it in its turn."""
        if not self.wait(should_stop):
            never = Finished("interrupted", 0, 0.0, answer.request.seed)
            turn.note(never, answer.request.settings)
            yield never
            return
        for record in self._records(answer, should_stop, first):
            turn.note(record, answer.request.settings)
            yield record

    def _records(self, answer: Answer, should_stop: Callable[[], bool], first: Sequence[int]) -> Iterator[Record]:
        for id in first:
            if answer.finished is None:
                logprob = next(one.logprob for one in self.engine.odds(answer.request) if one.id == id)
                yield from answer.take([Drawn(id, logprob)], self.engine.context)
        if answer.finished is None:
            yield from stream(self.engine, answer, should_stop)

    def wait(self, should_stop: Callable[[], bool]) -> bool:
        """Waits for the model to load; whether it did before somebody lost patience."""
        self.preload()
        assert self._loading is not None
        while not self._loading.wait(0.05):
            if should_stop():
                return False
        return True

    def _last(self) -> Turn:
        if not self.turns:
            raise UsageError("there is no answer yet", "type a prompt first")
        return self.turns[-1]

    # --- transcripts ---------------------------------------------------------------------------------------------

    def save(self, path: Path) -> None:
        """Writes the conversation as JSON.

        Raises:
            TinychatError: it cannot be written there.
        """
        write_transcript(path, self.model.name, self.settings.current, self.conversation)

    def open_transcript(self, path: Path) -> int:
        """Goes on with a conversation that was saved; returns the number of its turns.

        Raises:
            TinychatError: it is no transcript; the conversation at hand stays.
        """
        self.conversation = read_transcript(path)
        return len(self.turns)


def unknown_notice(characters: Sequence[str]) -> Notice:
    """Names the characters that a model does not know and so never sees."""
    shown = " ".join(repr(character) for character in characters[:8]) + (" …" if len(characters) > 8 else "")
    return Notice(f"unknown to this model, left out: {shown}")
