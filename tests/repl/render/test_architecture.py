"""Architectures of models as drawn on a screen."""

import pytest
from screens import Screen

from tinychat.commands.models import describe_recipe
from tinychat.commands.results import Architecture
from tinychat.model.config import ModelConfig, make_diagram
from tinychat.repl.render.architecture import draw_architecture

SMALL = ModelConfig(65, context_length=32, n_layer=3, n_head=2, d_model=16, norm_affine=True, position="learned")


def drawn(columns: int, config: ModelConfig = SMALL, **about: bool) -> list[str]:
    screen = Screen(columns, 60)
    draw_architecture(screen.terminal(), Architecture("small", make_diagram(config), ("a note",), **about))
    return [line.rstrip() for line in screen.lines]


def test_layers_branch_off_from_the_residual_stream_and_are_added_to_it() -> None:
    assert drawn(80) == [
        "small",
        "      tokens                                    32",
        "  │   embedding     65 × 16                     32 × 16      1,040",
        "  │   positions     Learned 32 × 16             32 × 16        512",
        "╭─┴─ block ───────────────────────────────────────────── 3 × 3,104",
        "│ ├─╮ norm          LayerNorm eps 1e-05         32 × 16         16",
        "│ │ │ attention     2 heads of 8, causal        32 × 16      1,024",
        "│ ⊕─╯ add",
        "│ ├─╮ norm          LayerNorm eps 1e-05         32 × 16         16",
        "│ │ │ feed-forward  16 → 64 → 16, squared ReLU  32 × 16      2,048",
        "│ ⊕─╯ add",
        "╰─┬───────────────────────────────────────────────────────────────",
        "  │   norm          LayerNorm eps 1e-05         32 × 16         16",
        "  │   head          Linear 16 → 65              32 × 65      1,040",
        "  ▼   logits",
        "      in all                                                11,920",
        "data flows down · ⊕ adds a layer's result · right: its shape and parameters",
        "a note",
    ]


def test_counts_and_matches_are_mixed_in_behind_the_head() -> None:
    lines = drawn(80, ModelConfig(65, context_length=32, n_layer=1, d_model=16, n_head=1, ngram_order=8))
    head = next(index for index, line in enumerate(lines) if line.startswith("  │   head"))
    assert lines[head + 1].startswith("╭─┴─ mixture ──")
    drawing = [" ".join(line.split()) for line in lines[head + 2 : head + 6]]
    assert drawing[0] == "│ ├─╮ counts n-grams of the text, up to 8 32 × 65"
    assert drawing[1] == "│ │ │ matches of the last 2 to 16 tokens 32 × 65"
    assert drawing[2].startswith("│ ⊕─╯ mix NGrams in shares at each token")
    assert set(drawing[3]) == set("╰─┬")


def test_an_encoder_is_drawn_before_the_decoder_that_attends_to_it() -> None:
    lines = drawn(80, ModelConfig(65, n_encoder_layer=1, n_layer=1, d_model=16, n_head=2))
    assert lines[1].split()[:2] == ["encoder:", "tokens"]
    assert "  ▼   to the decoder" in lines
    assert any("cross-attention  2 heads of 8, to the encoder" in line for line in lines)


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 200])
@pytest.mark.parametrize("name", ["shakespeare", "nanogpt-cpu", "default"])
def test_an_architecture_keeps_within_its_screen(columns: int, name: str) -> None:
    screen = Screen(columns, 60)
    draw_architecture(screen.terminal(), Architecture("", describe_recipe(name).diagram))
    assert all(len(line) < columns for line in screen.lines)
    assert any("attention" in line for line in screen.lines)


def test_a_model_without_sizes_is_drawn_without_numbers() -> None:
    lines = drawn(80, is_sized=False)
    assert lines[1] == "      tokens"
    assert lines[4].startswith("╭─┴─ block × n ──")
    assert not any(char.isdigit() for char in "".join(lines))
