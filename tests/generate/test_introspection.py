"""What is seen inside a model is what it computes with, for every architecture; and looking leaves nothing behind."""

import itertools
import math

import pytest
import torch
from test_transformer import FOREIGN
from torch import Tensor, nn

from tinychat.generate.introspection import describe_heads, logit_lens, shrink, watch_attention
from tinychat.model.attention import TurnAttention
from tinychat.model.config import FEED_FORWARDS, NORM_POSITIONS, NORMS, POSITIONS, ModelConfig
from tinychat.model.transformer import Block, EncoderOutput, Transformer

VOCABULARY, TIME, SOURCE = 11, 9, 7

IDS = torch.tensor([5, 1, 2, 3, 1, 2, 7, 3])
LENGTH = len(IDS)

VARIANTS = [
    {},
    {"n_head": 4, "n_kv_head": 2, "bias": True},
    {"n_head": 1, "output_projection": False, "tie_embeddings": True},
    {"previous_token_embeddings": 3, "bigram_embedding": True, "norm_affine": True},
    {"ngram_order": 4},
    {"turn_attention": True, "turn_token": 3, "reply_token": 5},
    {"qk_norm": False, "final_norm": False},
    {"n_encoder_layer": 2, "n_kv_head": 1},
]

GRID = [
    {"norm": norm, "norm_position": norm_position, "feed_forward": feed_forward, "position": position, **variant}
    for (norm, norm_position, position, variant), feed_forward in zip(
        itertools.product(NORMS, NORM_POSITIONS, POSITIONS, VARIANTS), itertools.cycle(FEED_FORWARDS), strict=False
    )
]


def make(**options: object) -> Transformer:
    """A small model with weights that are nowhere zero."""
    torch.manual_seed(0)
    if options.get("norm") == "none":
        options["qk_norm"] = False
    values = {"context_length": 12, "n_layer": 3, "n_head": 2, "d_model": 16, "initialization": "gpt2"} | options
    model = Transformer(ModelConfig(VOCABULARY, **values)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.3)
    if model.ngrams is not None:
        model.ngrams.count([some_ids(200)[0].numpy()])
    return model


def some_ids(time: int = TIME) -> Tensor:
    return torch.randint(VOCABULARY, (1, time), generator=torch.Generator().manual_seed(1))


def encode_source(model: Transformer) -> EncoderOutput | None:
    return None if model.encoder is None else model.encode(some_ids(SOURCE))


def hooks_of(model: Transformer) -> int:
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def watched(model: Transformer, **what: object) -> list[Tensor]:
    taken: list[Tensor] = []
    with watch_attention(model, taken.append, **what):  # type: ignore[arg-type]
        model(some_ids(), encoder_output=encode_source(model))
    return taken


@torch.inference_mode()
def test_the_weights_times_the_values_are_what_attention_gives() -> None:
    for variant in GRID[::9] + FOREIGN:
        model = make(**variant)
        for cross in (False, True) if model.encoder else (False,):
            outputs: list[tuple[Tensor, Tensor]] = []  # what the weights should give, and what came out
            weights: list[Tensor] = []

            def compare(attention, given, options, output, weights=weights, outputs=outputs):  # type: ignore[no-untyped-def]
                _, _, value = attention.project(given[0], options.get("rotary"), options.get("encoded"))
                value = value.repeat_interleave(attention.n_head // attention.kv_heads, dim=1)
                shares = weights[-1]
                if isinstance(attention, TurnAttention):  # what goes to no turn is shown at the query, and has no value
                    shares = shares * (1 - torch.eye(TIME))
                out = (shares @ value).transpose(1, 2).flatten(2)
                outputs.append((out if attention.output is None else attention.output(out), output))

            blocks = [block for block in model.decoder.blocks if isinstance(block, Block)]
            looks = [block.cross_attention if cross else block.attention for block in blocks]
            for look in looks:
                assert look is not None
                look.sublayer.register_forward_hook(compare, with_kwargs=True)
            with watch_attention(model, weights.append, cross=cross):
                model(some_ids(), encoder_output=encode_source(model))
            assert len(weights) == len(outputs) == 3
            for one, (mine, theirs) in zip(weights, outputs, strict=True):
                assert one.shape == (1, model.config.n_head, TIME, SOURCE if cross else TIME)
                torch.testing.assert_close(one.sum(-1), torch.ones(one.shape[:3]))
                torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=0, msg=lambda text, o=variant: f"{o}\n{text}")


@torch.inference_mode()
def test_the_weights_are_those_of_torch_multihead_attention() -> None:
    model = make(n_head=4, bias=True, qk_norm=False, position="none", norm_position="post", n_layer=1)
    attention = model.decoder.blocks[0].attention.sublayer  # type: ignore[union-attr]
    theirs = nn.MultiheadAttention(16, 4, batch_first=True)
    theirs.in_proj_weight.copy_(torch.cat([attention.query.weight, attention.key.weight, attention.value.weight]))  # type: ignore[union-attr]
    theirs.in_proj_bias.copy_(torch.cat([attention.query.bias, attention.key.bias, attention.value.bias]))  # type: ignore[union-attr]
    x, causal = model.decoder.embedding(some_ids()), torch.ones(TIME, TIME).tril().bool()
    _, expected = theirs(x, x, x, attn_mask=~causal, average_attn_weights=False)
    (weights,) = watched(model)
    torch.testing.assert_close(weights, expected, atol=1e-6, rtol=0)


@torch.inference_mode()
def test_one_layer_alone_may_be_watched() -> None:
    model = make()
    every = watched(model)
    assert len(every) == 3
    (second,) = watched(model, layer=1)
    assert torch.equal(second, every[1])


@torch.inference_mode()
def test_the_lens_after_a_layer_is_a_model_of_so_many_layers() -> None:
    for options in GRID[::13]:
        model, ids = make(**options), some_ids()
        encoder_output = encode_source(model)
        said, shares = logit_lens(model, ids, encoder_output)
        assert len(said) == (4 if shares is None else 7)
        totals = torch.ones(len(said))
        if shares is not None and shares[2] == 0:  # nothing matches
            totals[5] = 0
        torch.testing.assert_close(said.sum(-1), totals, atol=1e-3, rtol=0)
        expected = model(ids, encoder_output=encoder_output)[0, -1].softmax(-1)
        torch.testing.assert_close(said[-1], expected, atol=1e-6, rtol=0)
        if shares is not None:
            torch.testing.assert_close(shares @ said[3:6], expected, atol=1e-5, rtol=0)
        blocks, ngrams = model.decoder.blocks, model.ngrams
        model.ngrams = None
        keep_scale(model)
        for layers in range(4):
            model.decoder.blocks = blocks[:layers]
            expected = model(ids, encoder_output=encoder_output)[0, -1].softmax(-1)
            torch.testing.assert_close(said[layers], expected, atol=1e-6, rtol=0, msg=f"layer {layers}: {options}")
        model.ngrams = ngrams


def keep_scale(model: Transformer) -> None:
    """Fix the scale of the final norm, here without weights, at that of the final state of `some_ids`."""
    if isinstance(norm := model.decoder.norm, nn.LayerNorm | nn.RMSNorm):
        states: list[Tensor] = []
        with norm.register_forward_pre_hook(lambda _, inputs: states.append(inputs[0])):
            model(some_ids(), encoder_output=encode_source(model))
        has_mean = isinstance(norm, nn.LayerNorm)
        scale = states[0][0, -1].std(correction=0) if has_mean else states[0][0, -1].square().mean().sqrt()
        weight = torch.ones(()) if norm.weight is None else norm.weight
        bias = getattr(norm, "bias", None)
        shift = torch.zeros(()) if bias is None else bias

        class FixedNorm(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                centred = x - x.mean(-1, keepdim=True) if has_mean else x
                return centred / scale * weight + shift

        model.decoder.norm = FixedNorm()


@torch.inference_mode()
def test_embeddings_that_are_small_beside_the_final_state_say_next_to_nothing() -> None:
    model = make(norm_position="pre", final_norm=True)
    model.decoder.embedding.weight.mul_(1e-3)
    said, _ = logit_lens(model, some_ids())
    assert said[0].max() < 1.1 / VOCABULARY
    assert said[-1].max() > 2 / VOCABULARY


@torch.inference_mode()
def test_where_nothing_matches_the_matches_have_no_share() -> None:
    model = make(ngram_order=3)
    said, shares = logit_lens(model, torch.tensor([[1, 2, 3, 4]]))
    assert shares is not None
    assert shares[2] == 0
    assert said[5].sum() == 0
    torch.testing.assert_close(shares.sum(), torch.tensor(1.0))


@pytest.mark.slow
@torch.inference_mode()
def test_looking_leaves_nothing_behind() -> None:
    model = make(ngram_order=4)
    before = model(some_ids())
    watched(model)
    logit_lens(model, some_ids())
    with pytest.raises(IndexError):
        logit_lens(model, torch.tensor([[VOCABULARY]]))

    def fall(weights: Tensor) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), watch_attention(model, fall):
        model(some_ids())
    assert hooks_of(model) == 0
    assert torch.equal(model(some_ids()), before)


def one_hot(keys: list[int]) -> Tensor:
    """A head each of whose queries looks at one key."""
    return torch.eye(LENGTH)[keys].unsqueeze(0)


def uniform() -> Tensor:
    lower = torch.ones(LENGTH, LENGTH).tril()
    return (lower / lower.sum(-1, keepdim=True)).unsqueeze(0)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ([0, 0, 1, 2, 3, 4, 5, 6], "previous"),
        ([0] * LENGTH, "first"),
        (list(range(LENGTH)), "itself"),
        ([0, 0, 0, 0, 1, 2, 0, 3], "same"),
        ([0, 0, 0, 0, 2, 3, 0, 4], "followed"),
    ],
)
def test_a_head_that_looks_at_one_thing_is_told_by_it(keys: list[int], what: str) -> None:
    (head,) = describe_heads(one_hot(keys), IDS, 4)
    assert getattr(head, what) == 1
    assert head.entropy == 0
    assert head.distance == pytest.approx(
        sum(position - keys[position] for position in range(2, LENGTH)) / (LENGTH - 2)
    )


def test_a_head_that_looks_everywhere() -> None:
    (head,) = describe_heads(uniform(), IDS, 4)
    shares = [1 / (position + 1) for position in range(2, LENGTH)]
    assert head.first == head.previous == head.itself == pytest.approx(sum(shares) / len(shares))
    assert head.entropy == pytest.approx(sum(-math.log2(share) for share in shares) / len(shares))
    assert head.same == pytest.approx((1 / 5 + 1 / 6 + 1 / 8) / 3)
    assert head.distance == pytest.approx(sum(position / 2 for position in range(2, LENGTH)) / len(shares))


def test_what_comes_again_hardly_ever_says_nothing_of_a_head() -> None:
    ids = torch.arange(20)
    ids[19] = 3
    (head,) = describe_heads(torch.eye(20)[[*[0] * 19, 3]].unsqueeze(0), ids, 4)
    assert head.same == 0


@pytest.mark.parametrize("length", [1, 2])
def test_the_shortest_sequences(length: int) -> None:
    (head,) = describe_heads(torch.eye(length).unsqueeze(0), torch.arange(length), 4)
    assert head.itself == 1
    assert head.cells == tuple(map(tuple, torch.eye(length).tolist()))


def test_attention_to_an_encoder_has_no_places_of_its_own() -> None:
    (head,) = describe_heads(torch.full((1, 4, 2), 0.5), None, 3)
    assert (head.first, head.entropy, head.previous, head.distance) == (0.5, 1, 0, 0)
    assert head.cells == ((0.5, 0.5),) * 3


@pytest.mark.parametrize("cells", [1, 3, 7, 8, 20])
def test_a_smaller_map_keeps_the_whole_of_each_row(cells: int) -> None:
    small = shrink(uniform(), cells)
    assert small.shape == (1, min(cells, LENGTH), min(cells, LENGTH))
    torch.testing.assert_close(small.sum(-1), torch.ones(small.shape[:2]))
    assert small.triu(1).sum() == 0
