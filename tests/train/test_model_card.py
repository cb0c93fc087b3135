"""The model card: what it says of a model whose run goes on, and that any description leaves its table whole."""

from dataclasses import replace
from pathlib import Path

import pytest
from training import TINY

from tinychat.events import Ended
from tinychat.train.data import read_text
from tinychat.train.evaluation import Evaluation
from tinychat.train.launch import prepare_run
from tinychat.train.model_card import Figures, ModelFacts, model_card
from tinychat.train.planner import Machine, make_plan
from tinychat.train.recipe import load_recipe


def card(text: str, tokens: int = 1, ended: Ended | None = None, **fields: object) -> str:
    """Return the card of a model at step 1, whose run goes on unless it has `ended`."""
    Path("text.txt").write_text(text, encoding="utf-8")
    run = prepare_run(load_recipe().merged({**TINY, "sources": ["text.txt"], "steps": 2, **fields}))
    recipe, machine = load_recipe(run.recipe_file), Machine("cpu", "f32", 1)
    read = read_text(recipe, run)
    plan = make_plan(recipe, read.facts, machine, lambda config, batch_size: 0.1, None, elapsed=0.0)
    facts = ModelFacts("text", plan, read, machine, 1234)
    return model_card(facts, Figures(1, 1.0, Evaluation(0.6878, tokens), {}, ended))


@pytest.mark.parametrize(
    ("text", "tokens", "measured"),
    [
        ("ab", 1, "1 token of the text it was trained on"),
        ("the fox sees a bird. " * 200, 415, "415 tokens of its last part, which it was not trained on"),
    ],
)
def test_the_best_loss_so_far_is_over_tokens_held_out_only_if_there_are_any(
    text: str, tokens: int, measured: str
) -> None:
    assert f"| best loss so far | 0.6878 nats per token, over {measured} |\n" in card(text, tokens)


def test_all_steps_count_though_the_best_weights_came_before_the_last() -> None:
    ended = Ended("done", 5, 0.6878, 2.0, 1.0, 1.0, "model", best_step=1)
    assert "| training | 5 steps of 8 × " in card("ab", ended=ended)
    assert ", 0:01 on cpu, 1 thread, f32; the weights are those of step 1, the best |\n" in card("ab", ended=ended)
    assert "the best |" not in card("ab", ended=replace(ended, step=1))


def test_a_description_stays_in_its_cell() -> None:
    assert "\n| for | completion: a \\| b <c> |\n" in card("ab", description="a | b\n<c>")
