"""Look into texts and answers: what `/score`, `/color`, `/why`, `/attention` and `/lens` show, as numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinychat.errors import UsageError
from tinychat.generate.bans import NOTHING, BanWatch
from tinychat.generate.choices import Choices
from tinychat.generate.controls import Controls
from tinychat.generate.engine import LensRow, Request, TokenProbability
from tinychat.session.conversation import Turn
from tinychat.session.open_model import OpenModel


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """A token of a text, with how unlikely it was and how unsure the model was there."""

    id: int
    text: str
    """Text that it adds; empty while a character is incomplete."""
    logprob: float | None
    """Log-probability in nats, before temperature and filters; None if it is not scored, as it has no context."""
    entropy: float | None = None
    """Entropy in nats of the prediction; None if it is unknown."""


@dataclass(frozen=True)
class ScoredText:
    """A text, token by token, of which at least one is scored."""

    tokens: tuple[ScoredToken, ...]
    notices: tuple[str, ...] = ()

    @property
    def scored(self) -> tuple[ScoredToken, ...]:
        """The tokens with a log-probability."""
        return tuple(token for token in self.tokens if token.logprob is not None)

    @property
    def loss(self) -> float:
        """Mean surprisal in nats per scored token: the cross-entropy."""
        logprobs = [token.logprob or 0.0 for token in self.scored]
        return -sum(logprobs) / len(logprobs)

    @property
    def perplexity(self) -> float:
        """Number of equally likely tokens that would surprise as much; infinite if it is too large to compute."""
        return math.exp(loss) if (loss := self.loss) < 700 else math.inf

    @property
    def bits_per_character(self) -> float | None:
        """Surprisal in bits, summed over the scored tokens, per character of them; None if they have none."""
        characters = sum(len(token.text) for token in self.scored)
        return self.loss / math.log(2) * len(self.scored) / characters if characters else None


def score_text(model: OpenModel, text: str) -> ScoredText:
    """Score a text that begins a document, or a chat; its first token has no context, so it is not scored.

    Raises:
        UsageError: If nothing can be predicted in the text, or the model translates.
        GenerationError: If the model gave NaN or infinite logits.
    """
    if model.prompt_encoder.source_tokenizer is not None:
        raise UsageError(
            "a translation model scores no text alone", "`/why` in the REPL shows the probabilities of its answers"
        )
    ids = model.prompt_encoder.encode_text(text)
    if len(ids) < 2:
        raise UsageError(f"nothing can be predicted in {text!r}: it is one token or none", "give a longer text")
    decoder = model.tokenizer.stream()
    texts = [decoder.push(id) for id in ids]
    texts[-1] += decoder.flush()
    logprobs, entropies = [None, *model.engine.score(ids)], [None, *model.engine.entropies(ids)]
    tokens = tuple(map(ScoredToken, ids, texts, logprobs, entropies))
    notice = model.unknown_notice(text)
    return ScoredText(tokens, (notice.text,) if notice else ())


def score_answer(model: OpenModel, turn: Turn) -> ScoredText:
    """Return an answer with the entropy of each of its tokens; what was read from a transcript is not scored.

    The entropies of a translation are unknown.
    """
    saved = [ScoredToken(-1, turn.saved_text, None)] if turn.saved_text else []
    entropies: Sequence[float | None] = [None] * len(turn.tokens)
    if model.prompt_encoder.source_tokenizer is None and turn.tokens:
        count = len(turn.tokens)
        entropies = model.engine.entropies(model.ids_before(turn, count))[-count:]
    tokens = [
        ScoredToken(token.id, token.text, token.logprob, entropy)
        for token, entropy in zip(turn.tokens, entropies, strict=True)
    ]
    return ScoredText((*saved, *tokens))


def most_surprising(turn: Turn) -> int:
    """Return the index of the least likely token of an answer that has some."""
    return min(range(len(turn.tokens)), key=lambda index: turn.tokens[index].logprob)


def ids_before(model: OpenModel, turn: Turn, index: int | None = None) -> tuple[list[int], tuple[int, ...] | None]:
    """Return the ids before an index of an answer, default: all of them, and those that an encoder has read."""
    position = len(turn.tokens) if index is None else index
    return model.ids_before(turn, position), model.source_before(turn, position)


def request_at(model: OpenModel, turn: Turn, index: int) -> Request:
    """Return the request for the token at an index of an answer, with the settings and biases that drew it."""
    (ids, source), settings = ids_before(model, turn, index), model.settings_at(turn, index)
    request = Request(0, ids, index, settings, seed=0, end_ids=model.prompt_encoder.end_ids, source=source)
    request.steering = model.vocabulary.steering(settings)
    healed = model.healed_start(turn, turn.tokens[0].id) if index == 0 else None
    # How many tokens were left at one that `/continue` drew is not known: all, if there were none otherwise.
    is_continued = index >= settings.max_tokens
    drawn_by = replace(settings, max_tokens=settings.max_tokens + index) if is_continued else settings
    if controls := Controls.of(drawn_by, model.vocabulary, first_ids=healed.allowed if healed else None):
        request.biases = controls.biases(ids, len(ids) - (index - model.sentence_before(turn, index)[1]))
    return request


def probabilities_at(model: OpenModel, turn: Turn, index: int) -> list[TokenProbability]:
    """Compute what the token at an index of an answer could have been, the likeliest under the model first.

    They are computed again, for the whole vocabulary, so that generating answers costs no more.

    Raises:
        GenerationError: If the model gave NaN or infinite logits.
    """
    request = request_at(model, turn, index)
    if request.settings.choices:
        choices = Choices(request, len(request.ids) - index, model.tokenizer)
        choices.weigh(model.engine)
        return choices.next_tokens(model.engine)
    probabilities, bans = model.engine.probabilities(request), request.settings.ban
    if not bans:
        return probabilities
    watch, pieces = BanWatch(bans, turn.text_before(index)), model.vocabulary.pieces
    left = {one.id: one.probability for one in probabilities}
    for avoided in turn.tokens[index].avoided:
        left[avoided.id] = max(0.0, left[avoided.id] - avoided.probability)
    left |= {id: 0.0 for id, piece in enumerate(pieces) if watch.completes(piece.decode("utf-8", "ignore"))}
    if (total := sum(left.values())) < NOTHING:  # the likeliest other way was taken
        left[turn.tokens[index].id] = total = 1.0
    return [replace(one, probability=left[one.id] / total) for one in probabilities]


def lens_at(model: OpenModel, turn: Turn, index: int, likeliest: int) -> list[LensRow]:
    """Return how the prediction of the token at an index of an answer forms from layer to layer; see `Engine.lens`."""
    ids, source = ids_before(model, turn, index)
    return model.engine.lens(ids, turn.tokens[index].id, source=source, likeliest=likeliest)


def entropy_of(probabilities: Sequence[TokenProbability]) -> float:
    """Return the entropy of a prediction in nats, before temperature and filters."""
    return -sum(math.exp(one.logprob) * one.logprob for one in probabilities)


def rank_of(probabilities: Sequence[TokenProbability], id: int) -> int:
    """Return the rank of a token, from 1, which is the likeliest."""
    return next(rank for rank, one in enumerate(probabilities, 1) if one.id == id)
