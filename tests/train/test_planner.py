"""What is chosen where a recipe leaves it open."""

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinychat.errors import SourceError, UsageError
from tinychat.model.config import ModelConfig
from tinychat.train.planner import (
    MAX_FINAL_FRACTION,
    Machine,
    Plan,
    choose_dropout,
    choose_tokenizer,
    count_limit,
    default_seconds,
    describe_cut,
    estimate_memory,
    make_plan,
    summarize_plan,
)
from tinychat.train.recipe import Recipe, load_recipe
from tinychat.train.sizes import SIZES, TextFacts, step_work

CPU = Machine("cpu", "bf16", 2)
WORDS = "the quick brown fox jumps over the lazy dog " * 20
COUNT_BYTES = 1.31
"""What counts take on disk for each character of a text: at most, as measured on texts in letters and in Chinese."""
CHINESE = "\u5929\u5730\u7384\u9ec4\u5b87\u5b99\u6d2a\u8352" * 100


def facts(characters: int, tokens: int | None = None, vocab_size: int = 65) -> TextFacts:
    return TextFacts("novel", characters, 1, characters if tokens is None else tokens, vocab_size, "char")


def machine_of(rate: float):
    """A machine that does so many operations a second."""
    return lambda config, batch_size: 0.002 + step_work(config, batch_size) / rate


def plan(recipe: Recipe | None = None, characters: int = 1_000_000, seconds: float | None = 120, rate: float = 1.5e11,
         **about: int) -> Plan:  # fmt: skip
    return make_plan(recipe or load_recipe(), facts(characters, **about), CPU, machine_of(rate), seconds, elapsed=4.0)


def test_characters_for_most_texts_and_pieces_for_conversations_and_long_ones_in_words() -> None:
    default = load_recipe()
    assert choose_tokenizer(default, 1_000_000, WORDS, "completion")[0] == "char"
    assert choose_tokenizer(default, 100_000_000, WORDS, "completion") == ("wordpiece", 8192)
    assert choose_tokenizer(default, 100_000_000, CHINESE, "completion")[0] == "char"
    assert choose_tokenizer(default, 200_000, WORDS, "chat") == ("wordpiece", 1024)
    assert choose_tokenizer(default, 200_000, CHINESE, "chat")[0] == "char"


def test_what_the_recipe_says_of_the_tokenizer_is_done() -> None:
    recipe = Recipe(tokenizer="wordpiece", vocab_size=777)
    assert choose_tokenizer(recipe, 100, CHINESE, "completion") == ("wordpiece", 777)
    assert choose_tokenizer(Recipe(tokenizer="some/tokenizer.json"), 100, "", "chat") == ("some/tokenizer.json", None)


def test_more_text_is_worth_more_time_and_never_more_than_three_minutes() -> None:
    times = [default_seconds(characters) for characters in (0, 2_000, 20_000, 200_000, 1_000_000, 100_000_000)]
    assert times == sorted(times)
    assert times[0] >= 5
    assert times[-1] == 180


def test_nothing_is_left_open_in_what_is_written_down() -> None:
    made = plan()
    left = {name for name, value in vars(made.recipe).items() if value is None}
    architecture = {field.name for field in dataclasses.fields(ModelConfig)}
    may_stay_open = {
        "column",
        "field",
        "from_model",
        "mode",
        "description",
        "steps",
        "epochs",
        "stride",
        "learning_rate",
    }
    assert not left - architecture - may_stay_open - {
        "embedding_learning_rate", "evaluate_every", "sample_prompt", "sample_temperature"
    }  # fmt: skip
    again = make_plan(made.recipe, facts(1_000_000), CPU, machine_of(1e9), 120, elapsed=4.0)
    assert (again.config, again.batch_size) == (made.config, made.batch_size)


@pytest.mark.parametrize("characters", [2_000, 20_000, 1_000_000, 100_000_000])
def test_a_longer_time_never_gives_a_smaller_model(characters: int) -> None:
    times = (15, 30, 60, 120, 300, 900, 3600)
    plans = [plan(characters=characters, seconds=seconds) for seconds in times]
    works = [step_work(made.config, made.batch_size) for made in plans]
    assert works == sorted(works)
    assert characters < 100_000 or works[-1] > works[0]


def test_a_quicker_machine_gets_a_larger_model() -> None:
    slow, quick = (plan(rate=rate) for rate in (1e10, 1e12))
    assert step_work(quick.config, 1) > step_work(slow.config, 1)


def test_a_short_text_gets_a_small_model_and_dropout() -> None:
    small, large = plan(characters=20_000), plan(characters=1_000_000)
    assert small.config.d_model < large.config.d_model
    assert small.config.dropout > large.config.dropout
    assert any("by heart" in notice for notice in small.notices)


@pytest.mark.parametrize(
    ("characters", "vocab_size"),
    [
        *(
            (size, 65)
            for size in (20_000, 35_000, 60_000, 105_000, 150_000, 250_000, 460_000, 800_000, 1_200_000, 5_000_000)
        ),
        (957_000, 4387),
    ],
)
def test_layers_beside_ngrams_leave_a_model_four_bytes_a_character(characters: int, vocab_size: int) -> None:
    for seconds in (15, 60, 900, 36_000):
        config = plan(characters=characters, seconds=seconds, rate=1e12, vocab_size=vocab_size).config
        parameters = 12 * config.n_layer * config.d_model**2 + 2 * config.vocab_size * config.d_model
        others = 20_000 + 4 * config.d_model * 17  # reports; the network that mixes
        assert (2 * parameters + others) / characters + COUNT_BYTES <= 4


def test_layers_are_compiled_where_that_pays() -> None:
    assert [plan(seconds=60 * minutes).recipe.compile for minutes in (1, 5, 15, 60)] == [False, False, True, True]
    assert plan(Recipe(steps=100_000), seconds=None).recipe.compile is False
    assert plan(Recipe(compile=True), seconds=60).recipe.compile is True
    assert plan(Recipe(compile=False), seconds=3600).recipe.compile is False


def test_what_is_measured_is_bounded_to_the_sizes_in_question() -> None:
    measured: list[ModelConfig] = []

    def measure(config: ModelConfig, batch_size: int) -> float:
        measured.append(config)
        return 0.002 + step_work(config, batch_size) / 1.5e11

    make_plan(load_recipe(), facts(1_000_000), CPU, measure, 900, elapsed=4.0)
    assert len(measured) <= 4


@given(
    st.integers(2, 5_000_000),
    st.one_of(st.floats(1, 10_000), st.integers(1, 5_000)),
    st.integers(2, 20_000),
    st.floats(1e8, 1e14),
)
@pytest.mark.slow
def test_every_text_and_time_gets_a_plan_that_holds_together(
    tokens: int, length: float | int, vocab_size: int, rate: float
) -> None:
    by_steps = isinstance(length, int)
    recipe = Recipe(steps=length) if by_steps else Recipe()
    made = plan(recipe, tokens, None if by_steps else length, rate, vocab_size=vocab_size)
    assert made.val_fraction < 1 or made.train_tokens + made.val_tokens == tokens
    assert made.config.context_length < made.train_tokens
    assert made.val_fraction < 1 or not made.val_tokens or made.config.context_length < made.val_tokens
    assert made.steps >= 1
    assert made.warmup_steps <= made.steps
    assert (made.available is None) == by_steps
    assert made.training_seconds(made.make_ending()) >= made.step_seconds
    assert made.final_windows >= made.eval_windows >= 1
    assert len(summarize_plan(made, facts(tokens), CPU, 1000).lines) == 3


def test_the_whole_split_measures_the_model_and_less_is_held_out_only_where_no_size_has_time_for_it() -> None:
    usual = plan(seconds=60)
    assert usual.val_fraction == 1
    assert usual.make_ending().final_tokens == usual.val_tokens == 100_000
    huge = plan(characters=40_000_000, seconds=20)
    assert huge.available is not None
    assert 0 < huge.val_fraction < 1
    assert huge.val_tokens * huge.token_seconds == pytest.approx(MAX_FINAL_FRACTION * huge.available, rel=0.01)
    assert "held out" in describe_cut(huge)
    assert not describe_cut(usual)
    assert huge.train_tokens == 36_000_000


def test_a_moment_of_load_while_steps_are_timed_chooses_no_smaller_model() -> None:
    def measure(config: ModelConfig, batch_size: int) -> float:
        return machine_of(1.5e11)(config, batch_size) * (5 if next(calls) == busy else 1)

    busy, calls = -1, itertools.count()
    undisturbed = make_plan(load_recipe(), facts(1_000_000), CPU, measure, 60, elapsed=4.0)
    for busy in (0, 1):  # noqa: B007 - read by `measure`
        calls = itertools.count()
        assert make_plan(load_recipe(), facts(1_000_000), CPU, measure, 60, elapsed=4.0).config == undisturbed.config


def test_the_same_number_of_steps_gives_the_same_model_on_any_machine() -> None:
    slow, quick = (plan(Recipe(steps=500), seconds=None, rate=rate) for rate in (1e9, 1e13))
    assert slow.config == quick.config
    assert (slow.eval_windows, slow.final_windows) == (quick.eval_windows, quick.final_windows)


def test_epochs_become_steps_and_their_ends_are_known() -> None:
    recipe = Recipe(epochs=3, context_length=100, stride=25, batch_size=64, n_layer=2, d_model=128)
    made = plan(recipe, 1_115_394, None)
    windows = (1_003_854 - 1 - 100) // 25
    assert made.epoch_rows == windows
    assert made.steps == -(-3 * windows // 64)
    ends = {step: epoch for step in range(1, made.steps + 1) if (epoch := made.epoch_after(step))}
    assert ends == {-(-windows * epoch // 64): epoch for epoch in (1, 2, 3)}
    assert made.recipe.evaluate_every is None
    assert "3 epochs, 1,883 steps" in summarize_plan(made, facts(1_115_394), CPU, 1000).lines[2]
    assert plan(Recipe(epochs=1e-9, d_model=64), seconds=None).steps == 1


def test_a_run_by_epochs_gets_the_largest_size_that_has_enough_steps() -> None:
    short, long = (plan(Recipe(epochs=epochs), seconds=None) for epochs in (0.1, 5))
    assert step_work(short.config, 1) < step_work(long.config, 1)


def test_the_recipe_comes_before_the_planner() -> None:
    recipe = Recipe(
        n_layer=1,
        d_model=48,
        context_length=32,
        batch_size=5,
        dropout=0.4,
        previous_token_embeddings=0,
        bigram_embedding=False,
    )
    made = plan(recipe)
    assert (made.config.n_layer, made.config.d_model, made.config.context_length) == (1, 48, 32)
    assert (made.batch_size, made.config.dropout, made.config.previous_token_embeddings) == (5, 0.4, 0)
    assert not made.config.bigram_embedding


def test_the_context_shrinks_to_the_text_and_it_is_said() -> None:
    made = plan(Recipe(context_length=512), characters=300)
    assert made.config.context_length < 30
    assert any("context" in notice for notice in made.notices)


def test_a_text_too_short_to_keep_a_part_is_trained_on_whole() -> None:
    made = plan(characters=60)
    assert (made.train_tokens, made.val_tokens) == (60, 0)
    assert any("validation" in notice for notice in made.notices)


def test_a_fraction_that_is_too_little_to_validate_with_is_told() -> None:
    short, small = plan(characters=60), plan(Recipe(steps=9, validation_fraction=1e-5), characters=10_000, seconds=None)
    told = "of the text is too little for validation: losses are of the text trained on"
    assert (short.notices[-1], small.notices[-1]) == (f"10 % {told}", f"0.001 % {told}")


def test_a_base_model_keeps_its_context_and_shorter_windows_are_planned_with() -> None:
    recipe = Recipe(epochs=2, context_length=512, from_model="novel", n_layer=1, d_model=32, ngram_order=0)
    timed = []

    def measure(config: ModelConfig, batch_size: int) -> float:
        timed.append((config.context_length, batch_size))
        return 0.1

    made = make_plan(recipe, facts(1000), CPU, measure, None, elapsed=0.0)
    assert timed == [(99, made.batch_size)]
    whole = dataclasses.replace(made, longest_row=10_000)  # as if each row filled the context
    memories = [summarize_plan(one, facts(1000), CPU, 1234).memory for one in (made, whole)]
    assert memories[0] < memories[1]
    assert (made.config.context_length, made.row_length, made.row_tokens) == (512, 99, 99)
    assert made.epoch_rows == 8
    assert made.epochs == pytest.approx(made.steps * made.batch_size * 99 / 900)
    assert "the text is short: windows of 99 tokens, not 512" in made.notices


def test_each_side_of_translations_keeps_what_was_asked_for_its_vocabulary() -> None:
    pairs = TextFacts("pairs", 700, 100, 1000, 11, "char", rows=100, longest_row=16, source_vocab_size=18)
    for fields, kept in (
        ({}, (None, None)),
        ({"tokenizer": "char", "vocab_size": 30}, ("char", 30)),
        ({"shared_vocab": True}, ("char", 11)),
    ):
        made = make_plan(Recipe(steps=1, n_layer=1, **fields), pairs, CPU, machine_of(1e11), None, elapsed=0)
        assert (made.recipe.tokenizer, made.recipe.vocab_size) == kept


def test_a_context_may_be_longer_than_what_is_held_out() -> None:
    made = plan(Recipe(steps=100, context_length=256, validation_fraction=1e-4), seconds=None)
    assert (made.val_tokens, made.config.context_length) == (100, 256)
    assert not any("context" in notice for notice in made.notices)


def test_a_text_of_one_token_is_refused() -> None:
    with pytest.raises(SourceError, match="1 token"):
        plan(characters=1)


def test_dropout_grows_with_the_number_of_epochs() -> None:
    rates = [choose_dropout(epochs) for epochs in (0.5, 1, 4, 16, 64, 1e6)]
    assert rates == sorted(rates)
    assert (rates[0], rates[-1]) == (0, 0.3)


def test_windows_of_a_text_may_be_short_but_documents_are_read_as_a_whole() -> None:
    recipe = Recipe(steps=100, ngram_order=0)
    running, pieces = facts(1_000_000), facts(1_000_000, vocab_size=1000)
    documents = TextFacts("talk", 1_000_000, 4_000, 400_000, 65, "wordpiece", rows=4_000, longest_row=400)
    text, words, talk = (
        make_plan(recipe, one, CPU, machine_of(1e11), None, 0.0).config for one in (running, pieces, documents)
    )
    assert (text.context_length, text.bigram_embedding) == (128, True)
    assert (words.context_length, words.bigram_embedding) == (128, False)
    assert (talk.context_length, talk.bigram_embedding) == (256, False)


def test_turns_are_attended_to_only_if_asked_for_and_only_where_tokens_begin_them() -> None:
    talk = TextFacts(
        "talk", 1_000_000, 4_000, 400_000, 65, "wordpiece", rows=4_000, longest_row=400, turn_tokens=(7, 8)
    )
    default, asked = (
        make_plan(Recipe(steps=100, **fields), talk, CPU, machine_of(1e11), None, 0.0).config
        for fields in ({}, {"turn_attention": True})
    )
    assert not default.turn_attention
    assert (asked.turn_attention, asked.turn_token, asked.reply_token) == (True, 7, 8)
    with pytest.raises(UsageError, match="--turn-attention needs tokens that begin turns"):
        plan(Recipe(steps=100, turn_attention=True))


def test_layers_alone_that_learn_for_long_learn_more_slowly_and_decay() -> None:
    def optimization(steps: int, **fields: object) -> tuple[float | None, float | None]:
        recipe = plan(
            Recipe(steps=steps).merged({"ngram_order": 0, **fields}), characters=10_000_000, seconds=None
        ).recipe
        return recipe.weight_decay, recipe.learning_rate

    assert optimization(999) == (0, pytest.approx(0.03))
    assert optimization(1000) == (0.1, pytest.approx(0.02))
    assert optimization(1000, learning_rate=0.01, weight_decay=0.0) == (0, 0.01)
    assert optimization(1000, ngram_order=5) == (0, pytest.approx(0.018))
    assert optimization(1000, optimizer="adamw") == (0, pytest.approx(0.001))


def test_a_tenth_of_the_time_at_most_goes_into_counting() -> None:
    limits = [count_limit(seconds) for seconds in (15, 60, 300, 900)]
    assert limits == [4_000_000, 6_000_000, 20_000_000, 20_000_000]
    assert count_limit(None) == limits[-1]  # runs by steps do not depend on the machine's speed
    plan = make_plan(Recipe(minutes=1), facts(10_000_000), Machine("cpu", "f32", 2), machine_of(1e11), 60.0, 0.0)
    assert plan.counted_tokens == 6_000_000


def test_larger_models_take_more_memory() -> None:
    sizes = [
        estimate_memory(ModelConfig(65, n_layer=size.n_layer, d_model=size.d_model, context_length=size.context_length),
                        size.parameters, size.batch_size, 1_000_000)
        for size in SIZES
    ]  # fmt: skip
    assert sizes == sorted(sizes)


def test_a_sharded_model_takes_less_memory_of_each_process() -> None:
    config = ModelConfig(65, n_layer=12, d_model=768, context_length=512)
    sizes = [estimate_memory(config, 100_000_000, 1, 1_000_000, shards) for shards in (1, 2, 8)]
    assert [before - after for before, after in itertools.pairwise(sizes)] == [400_000_000, 600_000_000]


def test_one_process_shards_nothing_and_says_so() -> None:
    recipe = Recipe(steps=100, strategy="fsdp")
    one, two = (
        make_plan(recipe, facts(1_000_000), Machine("cpu", "f32", 2, processes), machine_of(1e11), None, 0.0)
        for processes in (1, 2)
    )
    assert one.notices == ("nothing is sharded: this process trains alone; --devices 2 makes two share the model",)
    assert two.notices == ()


def test_of_documents_an_epoch_is_each_once() -> None:
    rows = TextFacts("names", 700, 100, 1000, 27, "char", rows=100, longest_row=16)
    recipe = Recipe(epochs=3, batch_size=10, n_layer=1, d_model=32)
    made = make_plan(recipe, rows, CPU, machine_of(1e11), None, elapsed=0)
    assert (made.epoch_rows, made.steps, made.epochs) == (90, 27, pytest.approx(3))  # ten are kept
    assert [step for step in range(1, 28) if made.epoch_after(step)] == [9, 18, 27]
    assert (made.config.context_length, made.row_tokens, made.eval_windows) == (16, 10, 10)
    assert made.recipe.packing is False
    assert made.config.ngram_order == 0
    text, _, time = summarize_plan(made, rows, CPU, 1234).lines
    assert text.endswith("10 of 100 documents measure the model")
    assert "27 steps of 100 tokens, 3.0 times through the text" in time


def test_a_context_that_is_asked_for_need_not_be_filled_by_documents() -> None:
    rows = TextFacts("pairs", 700, 100, 1000, 27, "char", rows=100, longest_row=16, source_vocab_size=9)
    made = make_plan(Recipe(steps=10, context_length=40, n_layer=2), rows, CPU, machine_of(1e11), None, elapsed=0)
    assert (made.config.context_length, made.config.source_vocab_size, made.config.n_encoder_layer) == (40, 9, 2)
    assert not made.recipe.compile


def test_of_long_documents_a_step_and_an_evaluation_have_what_the_context_holds() -> None:
    """3,000 tokens each, of which the context holds 256: as a text of 1,000 documents of 256 tokens."""
    long, short = (
        TextFacts("papers", 9_000_000, 1_000, 1_000 * tokens, 1_000, "wordpiece", rows=1_000, longest_row=9_000)
        for tokens in (3_000, 256)
    )
    of_long, of_short = (
        make_plan(Recipe(minutes=1, context_length=256), one, CPU, machine_of(1e11), 60, elapsed=4)
        for one in (long, short)
    )
    assert of_long.batch_size == of_short.batch_size > 1
    assert of_long.val_tokens == of_short.val_tokens == 100 * 256
    assert of_long.make_ending().part_tokens == of_short.make_ending().part_tokens
    assert of_long.config == of_short.config
    assert of_long.steps == pytest.approx(of_short.steps, rel=0.01)
