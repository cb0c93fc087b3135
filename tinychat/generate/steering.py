"""Activation steering: add the direction from one text to another to the residual stream, after one layer.

The direction is that of the difference of the mean states of two texts there, and is added at every position (Turner et
al. 2023, "Activation addition"; Rimsky et al. 2024, §3). Its length is given as a strength.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor

from tinychat.errors import GenerationError
from tinychat.generate.engine import Steering
from tinychat.model.transformer import Block, Transformer

UNIT = 0.1
"""Length of a direction of strength 1, as a fraction of the mean length of the states of the two texts: it then means
about the same in any model; sentences fall apart somewhere from 3 on."""
MAX_DIRECTIONS = 64
"""Number of directions that are kept: the newest."""


class Steerer:
    """Steers a model while a context lasts; directions are computed when they are first needed."""

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._directions: dict[tuple[object, ...], Tensor] = {}  # by the two texts and the index of the block

    def forget(self) -> None:
        """Forget the directions: the weights are others now."""
        self._directions.clear()

    @contextmanager
    def steer(self, steerings: Sequence[Steering | None]) -> Iterator[None]:
        """Add the direction of each row's steering, if it has one, to the output of its layer, [B, T, D]."""
        with ExitStack() as hooks:
            for index in sorted({self._layer(one) for one in steerings if one is not None}):
                vectors = torch.stack([self._vector(one, index) for one in steerings]).unsqueeze(1)  # [B, 1, D]
                hooks.enter_context(
                    self._blocks[index].register_forward_hook(lambda _, __, output, added=vectors: output + added)
                )
            yield

    def shift(self, steering: Steering) -> tuple[int, Tensor]:
        """Return the index of the block after which something is added, and what is, [D]."""
        index = self._layer(steering)
        return index, self._vector(steering, index)

    @property
    def _blocks(self) -> list[Block]:
        return [block for block in self._model.decoder.blocks if isinstance(block, Block)]

    def _layer(self, steering: Steering) -> int:
        """Return the index of the block after which a direction is added."""
        layers = self._model.config.n_layer
        if not layers:
            raise GenerationError("this model has no layers to steer", "`--steer none`")
        if steering.layer is not None and steering.layer > layers:
            problem = f"there is no layer {steering.layer} to steer"
            raise GenerationError(problem, f"the layers of this model are 1 to {layers}")
        return (steering.layer or (layers + 1) // 2) - 1

    def _vector(self, steering: Steering | None, index: int) -> Tensor:
        """Return what is added after the block of an index, [D]: zeros if the steering is of another one."""
        if steering is None or self._layer(steering) != index:
            nothing: Tensor = torch.zeros_like(self._model.decoder.embedding.weight[0])
            return nothing
        key = (steering.toward, steering.away, index)
        direction = self._directions.pop(key) if key in self._directions else self._direction(steering, index)
        self._directions[key] = direction  # as the newest
        if len(self._directions) > MAX_DIRECTIONS:
            del self._directions[next(iter(self._directions))]
        return direction * steering.strength

    def _direction(self, steering: Steering, index: int) -> Tensor:
        if self._model.config.encoder_decoder:
            raise GenerationError("a translation model cannot be steered", "`--steer none`")
        if not (steering.toward and steering.away):
            raise GenerationError("this model cannot read one of the texts to steer by", "it lacks its characters")
        texts = (steering.toward, steering.away)
        common = next(
            (at for at, ids in enumerate(zip(*texts, strict=False)) if ids[0] != ids[1]), min(map(len, texts))
        )
        states = [self._states(ids, index)[min(common, len(ids) - 1) :] for ids in texts]  # [T, D] each
        direction = states[0].mean(dim=0) - states[1].mean(dim=0)
        if not direction.any():
            raise GenerationError("there is no direction between these texts", "steer needs two that differ")
        length = torch.cat(states).norm(dim=1).mean()
        scaled: Tensor = direction / direction.norm() * length * UNIT
        return scaled

    def _states(self, ids: Sequence[int], index: int) -> Tensor:
        """Return the residual stream after the block of an index, [T, D], at the newest tokens that the model sees."""
        found: list[Tensor] = []
        with self._blocks[index].register_forward_hook(lambda _, __, output: found.append(output)):
            self._model(
                torch.tensor([ids[-self._model.config.context_length :]], device=self._model.head.weight.device)
            )
        return found[0][0]
