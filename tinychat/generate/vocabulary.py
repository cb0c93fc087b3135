"""The texts of a model's tokens, as controls need them."""

from collections.abc import Callable, Hashable
from functools import cached_property
from threading import Lock
from typing import TypeVar

from tinychat.config.settings import Settings, SteeringSpec
from tinychat.generate.bans import has_banned
from tinychat.generate.engine import Steering
from tinychat.tokenizer.tokenizer import Tokenizer

T = TypeVar("T")

MAX_REMEMBERED = 64
"""Number of things that a vocabulary remembers for controls, each of which may take hundreds of kilobytes."""


class Vocabulary:
    """The texts of a model's tokens, for controls. They are computed once, when a control first asks for them."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        size: int,
        end_ids: frozenset[int],
        encode_text: Callable[[str], list[int]] | None = None,
    ) -> None:
        self.tokenizer, self.end_ids = tokenizer, end_ids
        self._encode_text = encode_text or tokenizer.encode
        self.size = size
        """Number of the model's logits, V; ids beyond those of the tokenizer have no text."""
        self._remembered: dict[object, object] = {}
        self._lock = Lock()  # answers are made in any thread

    @cached_property
    def pieces(self) -> list[bytes]:
        """The bytes that each token adds to a text; none for special tokens. A piece may end inside a character."""
        return [self.tokenizer.token_bytes(id) for id in range(self.size)]

    @cached_property
    def first_pieces(self) -> list[bytes]:
        """The same for a token that begins a text, such as a word that no space precedes there."""
        if self.tokenizer.has_fixed_bytes:
            return self.pieces
        return [self.tokenizer.token_bytes(id, begins_text=True) for id in range(self.size)]

    @cached_property
    def silent_ids(self) -> frozenset[int]:
        """The ids of the tokens that add nothing to a text."""
        return frozenset(id for id, piece in enumerate(self.pieces) if not piece)

    def ids_with(self, texts: tuple[str, ...]) -> frozenset[int]:
        """Return the ids of the tokens that hold one of the texts wherever they stand, in either case of letters."""
        # Without the spaces around it: those before the first token of an answer may have no text.
        tokens = (piece.decode("utf-8", "ignore").strip() for piece in self.pieces)
        return frozenset(id for id, token in enumerate(tokens) if has_banned(token, texts))

    def steering(self, settings: Settings) -> Steering | None:
        """Return the direction that the settings steer in; None if they do not."""
        if settings.steer is None:
            return None
        spec = SteeringSpec.parse(settings.steer)
        toward, away = (tuple(self._encode_text(text)) for text in (spec.toward, spec.away))
        return Steering(toward, away, spec.strength, spec.layer)

    def remember(self, make: Callable[..., T], *key: Hashable) -> T:
        """Return what `make` returns for this vocabulary and a key; it is made once for the next answers."""
        with self._lock:
            found = self._remembered.pop((make, key)) if (make, key) in self._remembered else make(self, *key)
            self._remembered[make, key] = found  # as the newest
            if len(self._remembered) > MAX_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
        return found  # type: ignore[return-value]
