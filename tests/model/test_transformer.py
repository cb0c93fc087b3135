"""Every combination of options, with and without a cache; and against torch's own modules and the papers' formulas."""

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tinychat.errors import ModelError
from tinychat.model.attention import (
    Attention,
    Dropout,
    Rotary,
    Sinusoidal,
    TurnAttention,
    TurnMasks,
    additive_mask,
    attend,
    dropout,
    rotate,
)
from tinychat.model.config import FEED_FORWARDS, NORM_POSITIONS, NORMS, POSITIONS, ModelConfig
from tinychat.model.loading import list_parts
from tinychat.model.transformer import (
    IGNORED,
    NO_TOKEN,
    FeedForward,
    Transformer,
    relu2,
)

VOCABULARY, TIME = 11, 9

VARIANTS = [
    {},
    {"n_kv_head": 1, "bias": True},
    {"n_head": 1, "output_projection": False, "scale_embedding": True, "tie_embeddings": True},
    {"previous_token_embeddings": 3, "bigram_embedding": True, "norm_affine": True},
    {"ngram_order": 4, "previous_token_embeddings": 1},
    {"turn_attention": True, "turn_token": 3, "reply_token": 5, "n_head": 4, "n_kv_head": 2, "qkv_bias": True},
    {"qk_norm": False, "final_norm": False, "d_ff": 12},
]

GRID = [
    {"norm": norm, "norm_position": norm_position, "feed_forward": feed_forward, "position": position, **variant}
    for norm, norm_position, feed_forward, position, variant in itertools.product(
        NORMS, NORM_POSITIONS, FEED_FORWARDS, POSITIONS, VARIANTS
    )
]

FOREIGN: list[dict[str, object]] = [  # what models of other tools have
    {"norm": "rmsnorm", "norm_affine": True, "qk_norm_affine": True, "d_head": 6, "qkv_bias": True, "n_kv_head": 1,
     "feed_forward": "swiglu", "attention_window": 3, "window_pattern": "GL"},
    {"norm": "layernorm", "norm_affine": True, "bias": True, "qkv_bias": False, "qk_norm_affine": True, "d_head": 8,
     "rotary_fraction": 0.5, "parallel": True, "attention_window": 4, "scale_scores": False},
    {"norm": "none", "parallel": True, "position": "learned", "feed_forward": "gelu", "attention_window": 1},
    {"qk_norm": False, "n_head": 4, "d_head": 8, "rotary_fraction": 0.25, "parallel": True, "ngram_order": 3},
    {"rotary_factor": 4.0, "rotary_short_wavelength": 5.0, "rotary_long_wavelength": 300.0, "rotary_base": 100.0},
]  # fmt: skip


def make(**options: object) -> Transformer:
    """A small model with weights that are nowhere zero."""
    torch.manual_seed(0)
    if options.get("norm") == "none":
        options["qk_norm"] = False
    values = {"context_length": 12, "n_layer": 2, "n_head": 2, "d_model": 8, "initialization": "gpt2"} | options
    model = Transformer(ModelConfig(VOCABULARY, **values)).eval()  # type: ignore[arg-type]
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.2)
    if model.ngrams is not None:
        model.ngrams.count([some_ids(1, 200)[0].numpy()])
    return model


def some_ids(rows: int = 2, time: int = TIME) -> torch.Tensor:
    return torch.randint(VOCABULARY, (rows, time), generator=torch.Generator().manual_seed(1))


@torch.inference_mode()
@pytest.mark.parametrize(
    "grid", [GRID[::19] + FOREIGN, pytest.param(GRID, marks=(pytest.mark.slow, pytest.mark.long))], ids=["some", "all"]
)
def test_the_grid_is_causal_and_the_same_with_a_cache(grid: list[dict[str, object]]) -> None:
    ids = some_ids()
    later = ids.clone()
    later[:, 5:] = (later[:, 5:] + 1) % VOCABULARY
    for options in grid:
        model = make(**options)
        full = model(ids)
        torch.testing.assert_close(model(later)[:, :5], full[:, :5], msg=f"not causal: {options}")
        cache = model.new_cache(2)
        steps = [model(ids[:, :4], cache=cache)]
        steps += [model(ids[:, i : i + 1], cache=cache, start=i) for i in range(4, TIME)]
        torch.testing.assert_close(
            torch.cat(steps, 1), full, atol=1e-5, rtol=1e-4, msg=lambda text, o=options: f"cache differs: {o}\n{text}"
        )


@torch.inference_mode()
@pytest.mark.parametrize("options", GRID[:: len(GRID) // 24] + FOREIGN)
def test_rows_of_a_cache_may_stand_at_different_places(options: dict[str, object]) -> None:
    model, ids = make(**options), some_ids()
    full = model(ids)
    cache = model.new_cache(2)
    model(ids[:, :6], cache=cache)
    new = torch.stack((ids[0, 6:8], ids[1, 3:5]))
    out = model(new, cache=cache, start=torch.tensor([6, 3]))
    torch.testing.assert_close(out, torch.stack((full[0, 6:8], full[1, 3:5])), atol=1e-5, rtol=1e-4)


@torch.inference_mode()
@pytest.mark.parametrize("options", GRID[:: len(GRID) // 6])
def test_a_cache_of_a_long_context_grows_as_it_is_used(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinychat.model.kv_cache.FIRST_SLOTS", 2)
    model, ids = make(**options), some_ids()
    full, cache = model(ids), model.new_cache(2)
    assert cache.keys.shape[3] == cache.length == 2
    model(ids[:, :3], cache=cache)
    assert cache.length == 4
    other = cache.select([1])
    logits = model(ids[1:, 3:6], cache=other, start=3)
    cache.write_rows([1], other)
    torch.testing.assert_close(logits[0], full[1, 3:6], atol=1e-5, rtol=1e-4)
    out = model(ids[:, 3:7], cache=cache, start=3)
    torch.testing.assert_close(out, full[:, 3:7], atol=1e-5, rtol=1e-4)
    assert cache.keys.shape[3] == cache.length == 8


@torch.inference_mode()
@pytest.mark.parametrize("options", GRID[:: len(GRID) // 24])
def test_an_encoder_looks_both_ways_and_not_at_padding(options: dict[str, object]) -> None:
    model = make(**options, n_encoder_layer=2)
    ids, source = some_ids(), some_ids(time=7).flip(0)
    encoder_output = model.encode(source)
    changed = source.clone()
    changed[:, -1] = (changed[:, -1] + 1) % VOCABULARY
    if options["position"] != "none" or options["feed_forward"] != "none":
        assert not torch.allclose(model.encode(changed).states[:, 0], encoder_output.states[:, 0])
    with_padding = model(ids, encoder_output=model.encode(torch.nn.functional.pad(source, (0, 3), value=NO_TOKEN)))
    full = model(ids, encoder_output=encoder_output)
    torch.testing.assert_close(with_padding, full, atol=1e-5, rtol=1e-4)
    cache = model.new_cache(2)
    steps = [model(ids[:, i : i + 1], cache=cache, start=i, encoder_output=encoder_output) for i in range(TIME)]
    torch.testing.assert_close(torch.cat(steps, 1), full, atol=1e-5, rtol=1e-4)


def test_the_loss_is_the_mean_over_real_targets() -> None:
    model, ids = make(), some_ids()
    targets = ids.roll(-1, 1)
    targets[:, 4:] = IGNORED
    logits = model(ids)[:, :4].log_softmax(-1)
    by_hand = -logits.gather(2, targets[:, :4].unsqueeze(2)).mean()
    torch.testing.assert_close(model.loss(ids, targets), by_hand)


@pytest.mark.parametrize("options", [*GRID[::37], *FOREIGN, {"n_encoder_layer": 1}, {"n_layer": 0}])
def test_tokens_without_a_target_change_neither_loss_nor_gradients(options: dict[str, object]) -> None:
    model, ids = make(**options), some_ids()
    source = some_ids(time=5) if model.encoder is not None else None
    targets = ids.roll(-1, 1)
    targets[0, 2:5], targets[1, :3], targets[:, -1] = IGNORED, IGNORED, IGNORED
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    encoded = None if source is None else model.encode(source)
    logits = model.eval()(ids, encoder_output=encoded)
    plain = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    loss = model.loss(ids, targets, source=source)
    torch.testing.assert_close(loss, plain)
    expected, found = (torch.autograd.grad(one, weights, allow_unused=True) for one in (plain, loss))
    torch.testing.assert_close(found, expected)


def test_the_loss_of_translations_knows_the_source_and_not_its_padding() -> None:
    model, ids, source = make(n_encoder_layer=1), some_ids(), some_ids(time=5).flip(0)
    logits = model(ids, encoder_output=model.encode(source)).log_softmax(-1)
    by_hand = -logits.gather(2, ids.roll(-1, 1).unsqueeze(2)).mean()
    torch.testing.assert_close(model.loss(ids, ids.roll(-1, 1), source=source), by_hand)
    padded = torch.nn.functional.pad(source, (0, 3), value=NO_TOKEN)
    torch.testing.assert_close(model.loss(ids, ids.roll(-1, 1), source=padded), by_hand)


def test_a_new_model_knows_nothing() -> None:
    model = Transformer(ModelConfig(VOCABULARY, context_length=12))
    assert model.loss(some_ids(), some_ids()).item() == pytest.approx(torch.tensor(VOCABULARY).log().item())


def test_parts_count_every_parameter_once() -> None:
    for options in GRID[::97]:
        model = make(**options)
        assert sum(part.parameters for part in list_parts(model.config.to_dict())) == model.parameter_count
        both = [*model.matrices(), *model.others()]
        assert sorted(map(id, both)) == sorted(map(id, model.parameters()))


def test_the_statquest_toy_has_37_parameters_and_the_translator_78() -> None:
    toy = {
        "context_length": 6, "d_model": 2, "n_head": 1, "n_layer": 1, "norm": "none", "qk_norm": False,
        "feed_forward": "none",
        "position": "sinusoidal", "output_projection": False, "bias": False, "head_bias": True,
    }  # fmt: skip
    assert Transformer(ModelConfig(5, **toy)).parameter_count == 10 + 12 + 15  # type: ignore[arg-type]
    translator = Transformer(ModelConfig(6, **toy, n_encoder_layer=1, source_vocab_size=6))  # type: ignore[arg-type]
    assert translator.parameter_count == 24 + 36 + 18


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"n_head": 3}, "n_head is 3"),
        ({"norm": "batch"}, "norm is 'batch'"),
        ({"n_head": 2, "n_kv_head": 3}, "n_kv_head is 3"),
        ({"d_model": 6, "n_head": 2}, "rotary positions need an even"),
        ({"norm": "none"}, "qk_norm is True"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"vocab_size": 5000, "bigram_embedding": True}, "bigram_embedding is True"),
        ({"turn_attention": True, "turn_token": 9}, "turn_token is 9"),
        ({"turn_attention": True, "turn_token": 3, "reply_token": 3}, "reply_token is 3"),
        ({"turn_attention": True, "reply_token": 3, "n_encoder_layer": 1}, "turn_attention is True"),
    ],
)
def test_an_impossible_architecture_is_refused_in_words(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ModelError) as caught:
        ModelConfig(**({"vocab_size": 9, "d_model": 8} | wrong))  # type: ignore[arg-type]
    assert said in str(caught.value)


def test_a_config_survives_json() -> None:
    config = ModelConfig(9, n_kv_head=1, feed_forward="swiglu")
    assert ModelConfig.from_dict(config.to_dict()) == config
    with pytest.raises(ModelError, match="unknown part of an architecture: n_layers"):
        ModelConfig.from_dict({"vocab_size": 9, "n_layers": 2})


@pytest.mark.parametrize("options", [{}, {"n_kv_head": 1, "bias": True}, {"qk_norm": False, "scale_scores": False}])
def test_turns_are_attended_to_as_written_down_turn_by_turn(options: dict[str, Any]) -> None:
    config = make(turn_attention=True, turn_token=3, reply_token=5, n_head=2, **options).config
    attention, x = TurnAttention(config), torch.randn(1, 12, config.d_model)
    ids = torch.tensor([[1, 2, 3, 4, 1, 5, 2, 3, 3, 6, 5, 1]])
    turns = TurnMasks.find(ids, torch.arange(12), 3, 5, attention.kv_heads)
    messages = ((0, [0, 1]), (2, [3, 4]), (7, []), (8, [9]))  # where each turn begins, and its message
    query = attention.query(x).view(12, 2, -1)
    group = 2 // attention.kv_heads
    key, value = (
        part(x).view(12, attention.kv_heads, -1).repeat_interleave(group, 1)
        for part in (attention.key, attention.value)
    )
    gate = torch.sigmoid(attention.turn_gate(x)).view(12, attention.kv_heads, 1).repeat_interleave(group, 1)
    rows = []
    for t in range(12):
        own = max(begin for begin, _ in messages if begin <= t)
        found = [attention.no_turn(x)[0, t]], [torch.zeros(2, key.shape[-1])]
        said = query[t]
        for begin, tokens in messages:
            pooled = torch.stack([torch.zeros_like(key[0]), *(gate[s] * key[s] for s in tokens if s <= t)]).sum(0)
            if begin == own:
                said = said + pooled
        for begin, tokens in messages:
            if begin < own:
                pooled = torch.stack([torch.zeros_like(key[0]), *(gate[s] * key[s] for s in tokens)]).sum(0)
                a, b = said, pooled
                if attention.query_norm is not None and attention.key_norm is not None:
                    a, b = attention.query_norm(a), attention.key_norm(b)
                found[0].append((a * b).sum().view(1) * attention.scale)
                kept = [tokens[min(head // group, len(tokens) - 1)] if tokens else -1 for head in range(2)]
                found[1].append(torch.stack([value[s, head] * (s >= 0) for head, s in enumerate(kept)]))
        weights = torch.cat(found[0]).softmax(-1)  # [1 + turns]
        rows.append((weights.unsqueeze(-1) * torch.stack(found[1], 1)).sum(1).flatten())
    assert attention.output is not None
    torch.testing.assert_close(attention(x, turns=turns)[0], attention.output(torch.stack(rows)))


@torch.inference_mode()
def test_attention_to_turns_finds_none_in_a_text_without_them() -> None:
    model = make(turn_attention=True, turn_token=3, reply_token=5)
    plain = torch.tensor([[1, 2, 4, 5, 6, 1]])
    layer = model.decoder.blocks[model.config.turn_layer or 0].attention.sublayer
    gathered: list[Tensor] = []
    layer.output.register_forward_pre_hook(lambda _, inputs: gathered.append(inputs[0]))
    assert model(plain).isfinite().all()
    assert not gathered[0].any()


def test_attention_may_have_a_dropout_of_its_own() -> None:
    query, key, value = torch.randn(3, 2, 1, 5, 4)
    plain, other = (ModelConfig(11, dropout=0.5, attention_dropout=share) for share in (None, 0.0))
    first, second = (Attention(config) for config in (plain, other))
    assert (first.dropout, second.dropout) == (0.5, 0.0)
    assert torch.equal(attend(query, key, value, None, second.dropout), attend(query, key, value, None))
    assert not torch.equal(attend(query, key, value, None, first.dropout), attend(query, key, value, None))


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
    mask = additive_mask(causal[None, None], x.dtype)
    torch.testing.assert_close(ours(x, mask), expected)


@pytest.mark.parametrize("masks", [1, 2])
def test_grouped_attention_equals_torch_scaled_dot_product_attention(masks: int) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, 5, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)
    mask = (torch.rand(masks, 1, 5, 5) < 0.7) | torch.eye(5).bool()  # one for all rows, and one for each
    expected = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
    torch.testing.assert_close(attend(query, key, value, additive_mask(mask, query.dtype)), expected)
    free = nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)
    torch.testing.assert_close(attend(query, key, value, None), free)


def test_squared_relu_has_its_gradient() -> None:
    x = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(relu2(x), nn.functional.relu(x).square())
    assert torch.autograd.gradcheck(relu2, x)


def test_sinusoidal_positions_follow_the_paper() -> None:
    """Vaswani et al. 2017, §3.5: PE(p, 2i) = sin(p / 10000^(2i/d)), PE(p, 2i+1) = cos(the same)."""
    width = 6
    got = Sinusoidal(ModelConfig(9, d_model=width, context_length=20, position="sinusoidal")).embed(
        torch.zeros(1, 20, width), torch.arange(20)
    )[0]
    for position in range(20):
        for i in range(width // 2):
            angle = position / 10_000 ** (2 * i / width)
            assert math.isclose(got[position, 2 * i].item(), math.sin(angle), abs_tol=1e-5)
            assert math.isclose(got[position, 2 * i + 1].item(), math.cos(angle), abs_tol=1e-5)


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    """Su et al. 2021, eq. 11: ⟨R(m)q, R(n)k⟩ is a function of q, k and m − n."""
    rotary = Rotary(ModelConfig(9, d_model=8, n_head=1, context_length=64))
    query, key = torch.randn(2, 1, 1, 1, 8)

    def score(m: int, n: int) -> float:
        turned = (rotate(x, rotary.rotary_tables(torch.tensor([position]))) for x, position in ((query, m), (key, n)))
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


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [(7, 11, 1301), (100_001,)])
def test_dropout_drops_its_share_and_keeps_the_mean(share: float, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    x = torch.ones(shape, requires_grad=True)
    y = dropout(x, share)
    kept = y != 0
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / (1 - share)), rtol=1e-3, atol=0)
    deviation = (share * (1 - share) / x.numel()) ** 0.5
    assert abs((~kept).float().mean().item() - share) < 4 * deviation
    neighbours = (kept.flatten()[1:] & kept.flatten()[:-1]).float().mean().item()  # they are cut out of one number
    assert abs(neighbours - (1 - share) ** 2) < 8 * deviation
    y.sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert torch.equal(x.grad, y)


def test_dropout_follows_from_the_seed_and_is_for_training_alone() -> None:
    x, layer = torch.randn(3, 50), Dropout(0.3)

    def dropped(seed: int) -> Tensor:
        torch.manual_seed(seed)
        return layer(x)  # type: ignore[no-any-return]

    assert torch.equal(dropped(1), dropped(1))
    assert not torch.equal(dropped(1), dropped(2))
    assert torch.equal(Dropout(0.0)(x), x)
    assert torch.equal(layer.eval()(x), x)
