"""Against torch's own modules and the papers' formulas."""

import math

import pytest
import torch
from torch import nn

from tinychat.model.attention import Attention, additive, attend
from tinychat.model.config import ModelConfig
from tinychat.model.layers import FeedForward, Position, Rotary, Sinusoidal, relu2


def test_attention_equals_torch_multihead_attention() -> None:
    torch.manual_seed(0)
    config = ModelConfig(9, d_model=12, n_head=3, bias=True, qk_norm=False, initialization="torch")
    ours, theirs = Attention(config), nn.MultiheadAttention(12, 3, batch_first=True)
    assert ours.output is not None
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    x, causal = torch.randn(2, 7, 12), torch.ones(7, 7).tril().bool()
    expected, _ = theirs(x, x, x, attn_mask=~causal)
    mask = additive(causal[None, None], x.dtype)
    torch.testing.assert_close(ours(x, mask, Position(config), torch.arange(7), None), expected)


@pytest.mark.parametrize("masks", [1, 2])
def test_grouped_attention_equals_torch_scaled_dot_product_attention(masks: int) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, 5, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)
    mask = (torch.rand(masks, 1, 5, 5) < 0.7) | torch.eye(5).bool()  # one for all rows, and one for each
    expected = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
    torch.testing.assert_close(attend(query, key, value, additive(mask, query.dtype)), expected)
    free = nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(attend(query, key, value, None), free)


def test_squared_relu_has_its_gradient() -> None:
    x = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(relu2(x), nn.functional.relu(x).square())
    assert torch.autograd.gradcheck(relu2, x)


def test_sinusoidal_positions_follow_the_paper() -> None:
    """Vaswani et al. 2017, §3.5: PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(the same)."""
    width = 6
    got = Sinusoidal(ModelConfig(9, d_model=width, context=20, position="sinusoidal")).embed(
        torch.zeros(1, 20, width), torch.arange(20)
    )[0]
    for place in range(20):
        for i in range(width // 2):
            angle = place / 10_000 ** (2 * i / width)
            assert math.isclose(got[place, 2 * i].item(), math.sin(angle), abs_tol=1e-5)
            assert math.isclose(got[place, 2 * i + 1].item(), math.cos(angle), abs_tol=1e-5)


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    """Su et al. 2021, eq. 11: ⟨R(m)q, R(n)k⟩ is a function of q, k and m − n."""
    rotary = Rotary(ModelConfig(9, d_model=8, n_head=1, context=64))
    query, key = torch.randn(2, 1, 1, 1, 8)

    def score(m: int, n: int) -> float:
        turned = (rotary.rotate(x, rotary.turns(torch.tensor([place]))) for x, place in ((query, m), (key, n)))
        return math.prod(turned).sum().item()

    assert math.isclose(score(3, 1), score(40, 38), abs_tol=1e-4)
    assert not math.isclose(score(3, 1), score(40, 30), abs_tol=1e-3)


def test_feed_forwards_follow_their_formulas() -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    for kind, activation in {
        "relu": lambda y: y.clamp(min=0),
        "relu2": lambda y: y.clamp(min=0) ** 2,
        "gelu": lambda y: 0.5 * y * (1 + torch.erf(y / math.sqrt(2))),
        "gelu_tanh": lambda y: 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3))),
    }.items():
        layer = FeedForward(ModelConfig(9, d_model=8, feed_forward=kind, bias=True, initialization="torch"))
        torch.testing.assert_close(layer(x), layer.output(activation(layer.up(x))))
    layer = FeedForward(ModelConfig(9, d_model=8, feed_forward="swiglu"))
    assert layer.gate is not None
    gate = layer.gate(x)
    torch.testing.assert_close(layer(x), layer.output(gate * torch.sigmoid(gate) * layer.up(x)))
