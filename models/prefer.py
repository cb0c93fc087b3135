"""Teach smalltalk which of its replies people prefer: `python models/prefer.py FOLDER`.

Readers judged replies of the model in conversations that people would have, `data/smalltalk/judged`. From those that
they call wrong and others to the same message it learns by direct preference optimization (Rafailov et al. 2023, §4):
what it prefers, it prefers against what it preferred before. Each step goes on with its corpus, too, so that it forgets
nothing. FOLDER is a model that `models/bundle.py smalltalk --trained FOLDER` makes a package of.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tinychat.corpus.sources import read_sources
from tinychat.corpus.types import Message
from tinychat.model.loading import load_model
from tinychat.model.transformer import IGNORED, Transformer
from tinychat.store import paths
from tinychat.store.models import ModelInfo, read_card, read_info, read_tokenizers, read_training, save_model
from tinychat.tokenizer.chat_template import ChatTemplate
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.train.batches import Batches, encode_rows, make_chat_loss_mask
from tinychat.train.optim import make_optimizers, set_learning_rate
from tinychat.train.recipe import Recipe, load_recipe

HERE = Path(__file__).resolve().parent
JUDGED = HERE.parent / "data" / "smalltalk" / "judged"
KEPT = HERE.parent / "data" / "smalltalk" / "judged-kept.txt"
"""Conversations that are not learned from, to tell whether what is learned holds for others."""
VERDICTS = GOOD, PASSABLE, WRONG = tuple("gpw")
LINE = re.compile(rf"([* +] [{''.join(VERDICTS)}] )(.*)")
PAIRS_OF_A_MESSAGE = 2
"""Maximum number of wrong replies to one message that are learned from."""
PASSABLE_FRACTION = 0.3
"""How often a reply that was said and is passable is compared with a good one. Compared always, it teaches the model to
take sides where it should not; never, to take none where it could."""
BETA = 0.1
"""Strength of the pull back to what the model preferred before: Rafailov et al. 2023, §4, eq. 7."""
LIKED_WEIGHT = 0.2
"""Weight of the likelihood of preferred replies themselves in the loss, in nats per token: without it, both replies
of a pair may become less likely (Pang et al. 2024, "Iterative reasoning preference optimization", §2)."""
PAIRS, CONVERSATIONS = 24, 12
"""Pairs and conversations of the corpus in a batch."""
LEARNING_RATE, EMBEDDING_LEARNING_RATE = 0.002, 0.0003
WARMUP, DECAY = 20, 0.7
"""Steps of warm-up, and the part of the training in which the learning rate falls to zero."""
LENGTH_MULTIPLE = 16
"""Batches are padded to a multiple of this length, as kernels are prepared for each length."""
MAX_REPLY = 60
"""Tokens of a reply that are read."""
REPORT_INTERVAL = 50
"""Steps."""
NAMES = ("pairs that rose", "loss", "preferred, nats per token", "corpus, nats per token")


@dataclass(frozen=True)
class Judged:
    """A message, what was said before it, and the verdicts on replies to it: `g`, `p` or `w`; good, passable, wrong."""

    messages: tuple[Message, ...]
    """The conversation, oldest message first; the last one is answered."""
    replies: tuple[tuple[str, str], ...]
    """Each with its verdict; first the one after which the conversation went on."""


class Reply(NamedTuple):
    """A reply behind its conversation, encoded."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    """The reply and the token that ends it."""


class Pair(NamedTuple):
    """Two replies to one message."""

    preferred: Reply
    worse: Reply


def read_judged(text: str) -> Iterator[Judged]:
    """Read conversations: `> ` begins a message, `* g ` the reply after which it goes on, `  p ` another one.

    `+ g ` begins one of the kind that the reader asked for, in words that the corpus has. An empty line ends a
    conversation.

    Raises:
        ValueError: A line is none of these, or a message has not exactly one reply of the first kind.
    """
    for conversation in text.strip().split("\n\n"):
        messages: list[Message] = []
        before, *blocks = f"\n{conversation}".split("\n> ")
        if before:
            raise ValueError(f"not a message and its replies: {before!r}")
        for block in blocks:
            said, *lines = block.split("\n")
            found = [LINE.fullmatch(line) for line in lines]
            replies = [(match[1], match[2]) for match in found if match]
            said_next = [reply for kind, reply in replies if kind.startswith("*")]
            if len(replies) < len(lines) or len(said_next) != 1:
                raise ValueError(f"not a message and its replies: {block!r}")
            messages.append(Message("user", said))
            ordered = sorted(replies, key=lambda reply: not reply[0].startswith("*"))
            yield Judged(tuple(messages), tuple((reply, kind[2]) for kind, reply in ordered))
            messages.append(Message("assistant", said_next[0]))


def choose_pairs(judged: Iterable[Judged], seed: int) -> Iterator[tuple[Judged, str, str]]:
    """Return messages, each with one of the best replies to it and a worse one, mostly a wrong one."""
    chance = random.Random(seed)
    for place in judged:
        best = min((verdict for _, verdict in place.replies), key=VERDICTS.index)
        preferred = [reply for reply, verdict in place.replies if verdict == best]
        compared = [reply for reply in place.replies if reply[1] == WRONG][:PAIRS_OF_A_MESSAGE]
        said = place.replies[0]
        if said[1] == PASSABLE and chance.random() < PASSABLE_FRACTION:
            compared.append(said)
        for reply, verdict in compared:
            if verdict != best:
                yield place, chance.choice(preferred), reply


def encode_reply(place: Judged, reply: str, template: ChatTemplate, tokenizer: Tokenizer, context_length: int) -> Reply:
    """Encode a reply behind its conversation, of which the oldest turns are left out if it is too long."""
    before = template.encode(place.messages, tokenizer, for_answer=True, max_length=context_length - MAX_REPLY)
    whole = template.encode([*place.messages, Message("assistant", reply)], tokenizer)
    alone = template.encode([*place.messages], tokenizer, for_answer=True)
    return Reply(tuple(before), tuple(whole[len(alone) :][:MAX_REPLY]))


def collate(replies: Sequence[Reply]) -> tuple[Tensor, Tensor]:
    """Return ids [B, T] and the targets behind them [B, T], `IGNORED` outside of the replies."""
    rows = [reply.before + reply.ids for reply in replies]
    length = math.ceil((max(map(len, rows)) - 1) / LENGTH_MULTIPLE) * LENGTH_MULTIPLE
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    targets = torch.full_like(ids, IGNORED)
    for index, (row, reply) in enumerate(zip(rows, replies, strict=True)):
        ids[index, : len(row) - 1] = torch.tensor(row[:-1])
        targets[index, len(reply.before) - 1 : len(row) - 1] = torch.tensor(reply.ids)
    return ids, targets


def reply_scores(model: Transformer, ids: Tensor, targets: Tensor) -> Tensor:
    """Return the log-probability of each row's targets, [B], in nats."""
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(ids)  # with n-grams, log-probabilities of their mixture
    of_tokens = F.cross_entropy(logits.float().transpose(1, 2), targets, ignore_index=IGNORED, reduction="none")
    return -of_tokens.sum(dim=1)


def preference_loss(scores: Tensor, before: Tensor) -> Tensor:
    """Return the loss of pairs from the log-probabilities [2B] of preferred replies and worse ones, a scalar.

    −log σ(β · (how much likelier than `before` [2B] the preferred reply is, less that of the worse one)): Rafailov et
    al. 2023, eq. 7.
    """
    preferred, worse = (scores - before).chunk(2)
    return -F.logsigmoid(BETA * (preferred - worse)).mean()


def rising(scores: Tensor, before: Tensor) -> Tensor:
    """Return the fraction of pairs whose preferred reply has gained on the worse one; see `preference_loss`."""
    preferred, worse = (scores - before).chunk(2)
    return (preferred > worse).float().mean()


class Preferences:
    """Batches of pairs, and how likely the model found their replies before."""

    def __init__(self, model: Transformer, pairs: Sequence[Pair]) -> None:
        self.pairs = sorted(pairs, key=lambda pair: len(pair.preferred.before))
        replies = list(dict.fromkeys(reply for pair in self.pairs for reply in pair))
        self._before: dict[Reply, float] = {}
        with torch.no_grad():
            for start in range(0, len(replies), 2 * PAIRS):
                part = replies[start : start + 2 * PAIRS]
                self._before.update(zip(part, reply_scores(model, *collate(part)).tolist(), strict=True))

    def batches(self, steps: int, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Return ids and targets [2B, T], preferred replies first, and log-probabilities before [2B], of each step.

        The pairs of a batch are of about equal length.
        """
        chance, starts = random.Random(seed), list[int]()
        for _ in range(steps):
            if not starts:
                starts = list(range(0, len(self.pairs), PAIRS))
                chance.shuffle(starts)
            start = starts.pop()
            pairs = self.pairs[start : start + PAIRS]
            replies = [pair.preferred for pair in pairs] + [pair.worse for pair in pairs]
            yield *collate(replies), torch.tensor([self._before[reply] for reply in replies])


def corpus_batches(recipe: Recipe, template: ChatTemplate, tokenizer: Tokenizer, context_length: int) -> Batches:
    """Return batches of conversations of all of the recipe's corpus, with the same tokens in the loss."""
    corpus = read_sources(recipe.sources, cache=paths.datasets_folder(), mirror=paths.mirror())
    parts = [encode_rows(part.corpus, tokenizer, paths.ids_folder(), template=template) for part in corpus.sources]
    fractions = (recipe.user_loss_fraction, recipe.reply_loss_fraction)
    loss_mask = make_chat_loss_mask(*fractions, template, tokenizer, recipe.seed)
    return Batches(parts, context_length, CONVERSATIONS, recipe.seed, loss_mask=loss_mask)


def encode_pairs(judged: Sequence[Judged], info: ModelInfo, seed: int) -> list[Pair]:
    """Encode the pairs of judged replies for a model of conversations."""
    tokenizer, context_length = read_tokenizers(info)[0], info.architecture["context_length"]
    assert isinstance(info.template, ChatTemplate)
    return [
        Pair(*(encode_reply(place, reply, info.template, tokenizer, context_length) for reply in replies))
        for place, *replies in choose_pairs(judged, seed)
    ]


def learn(
    model: Transformer, preferences: Preferences, conversations: Batches, recipe: Recipe, steps: int
) -> Iterator[Tensor]:
    """Take steps; yield of each the fraction of pairs that rise, and three losses: see `NAMES`, [4]."""
    optimizers = make_optimizers(model, recipe)
    model.train()
    for step, (ids, targets, before) in enumerate(preferences.batches(steps, recipe.seed), 1):
        set_learning_rate(optimizers, min(1.0, step / WARMUP, (steps - step + 1) / (DECAY * steps)))
        scores = reply_scores(model, ids, targets)
        loss, half = preference_loss(scores, before), len(ids) // 2
        liked = -scores[:half].sum() / (targets[:half] != IGNORED).sum()
        torch.autograd.backward(loss + LIKED_WEIGHT * liked)
        batch = conversations.batch(step - 1)
        with torch.autocast("cpu", torch.bfloat16):
            of_corpus = model.loss(batch.ids, batch.targets)
        torch.autograd.backward(of_corpus)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        yield torch.stack([rising(scores, before), loss, liked, of_corpus]).detach()
    model.eval()


@torch.no_grad()
def measure(model: Transformer, preferences: Preferences) -> float:
    """Return the fraction of all pairs that have risen."""
    steps = math.ceil(len(preferences.pairs) / PAIRS)
    return sum(
        float(rising(reply_scores(model, ids, targets), before)) * len(ids) / (2 * len(preferences.pairs))
        for ids, targets, before in preferences.batches(steps, seed=0)
    )


def prefer(info: ModelInfo, folder: Path, epochs: float, seed: int) -> None:
    """Train a model on all judged replies, and write the result."""
    model, tokenizer, template = load_model(info), read_tokenizers(info)[0], info.template
    assert isinstance(template, ChatTemplate)
    judged, kept = (
        [place for file in files for place in read_judged(file.read_text(encoding="utf-8"))]
        for files in (sorted(JUDGED.glob("*.txt")), [KEPT])
    )
    pairs = encode_pairs(judged, info, seed)
    began = time.monotonic()
    preferences, of_kept = (Preferences(model, some) for some in (pairs, encode_pairs(kept, info, seed)))
    steps = max(1, round(epochs * len(pairs) / PAIRS))
    tell(f"{len(judged):,} messages, {len(pairs):,} pairs, {steps:,} steps; read in {time.monotonic() - began:.0f} s")
    rates = {"learning_rate": LEARNING_RATE, "embedding_learning_rate": EMBEDDING_LEARNING_RATE, "precision": "bf16"}
    recipe = load_recipe("smalltalk").merged({**rates, "seed": seed})
    conversations = corpus_batches(recipe, template, tokenizer, model.config.context_length)
    began, figures = time.monotonic(), list[Tensor]()
    for step, of_step in enumerate(learn(model, preferences, conversations, recipe, steps), 1):
        figures.append(of_step)
        if step % REPORT_INTERVAL == 0 or step == steps:
            means = zip(NAMES, torch.stack(figures).mean(dim=0).tolist(), strict=True)
            figures.clear()
            told = " · ".join(f"{name} {value:.3f}" for name, value in means)
            tell(f"step {step:,} of {steps:,} · {time.monotonic() - began:,.0f} s · {told}")
    kept_risen = measure(model, of_kept)
    tell(f"of {len(of_kept.pairs):,} pairs that were kept apart {100 * kept_risen:.1f} % moved the right way")
    facts = {
        "messages": len(judged), "pairs": len(pairs), "kept_risen": kept_risen, "steps": steps, "batch_size": PAIRS,
        "passable_fraction": PASSABLE_FRACTION,
        "beta": BETA, "liked_weight": LIKED_WEIGHT, "conversations": CONVERSATIONS, "seed": seed, **rates,
    }  # fmt: skip
    training = read_training(info.folder) | {"preferences": facts}
    made = replace(info, folder=folder)
    save_model(made, model.state_dict(), tokenizer, training=training, card=read_card(info.folder))


def tell(line: str) -> None:
    """Write a line to standard error, at once."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main() -> None:
    """Parse the command line, then train."""
    parser = argparse.ArgumentParser(description="Teach smalltalk which of its replies people prefer.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder for the model")
    parser.add_argument("--start", type=Path, default=HERE / "smalltalk", metavar="MODEL", help="model to begin with")
    parser.add_argument("--epochs", type=float, default=1.0, metavar="N", help="passes over the pairs (default: 1)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of all that is random (default: 1)")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    prefer(read_info(args.start), args.folder.resolve(), args.epochs, args.seed)


if __name__ == "__main__":
    main()
