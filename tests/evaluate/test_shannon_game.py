"""The Shannon game: the cost of guesses, and that the rules favour neither side."""

import math
from functools import cache

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from tinychat.evaluate.shannon_game import CHOICES, OTHER, Game, Outcome
from tinychat.generate.engine import TokenProbability
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

SPECIALS = ["<|end|>"]
CHARACTERS = Tokenizer(train_vocabulary("char", ["abcdefgh"], 300, SPECIALS))
PIECES = Tokenizer(train_vocabulary("wordpiece", ["the cat sat on the mat and that was that " * 9], 300, SPECIALS))


@cache
def falling(tokenizer: Tokenizer) -> list[TokenProbability]:
    """Return probabilities that halve from id to id; the end token is the likeliest."""
    weights = [2.0**-index for index in range(tokenizer.vocab_size)]
    total = sum(weights)
    return [TokenProbability(id, math.log(weight / total), 0.0) for id, weight in enumerate(weights)]


def game(tokenizer: Tokenizer, text: str, start: int = 1) -> Game:
    ids = tokenizer.encode(text)
    return Game(tokenizer, ids, start, lambda known: falling(tokenizer), tokenizer.decode(ids[:start]))


def verdicts(outcomes: list[Outcome]) -> str:
    return " ".join(f"{one.verdict}:{one.text}" for one in outcomes)


def test_the_cost_of_a_right_guess_depends_on_earlier_guesses() -> None:
    one = game(CHARACTERS, "abcde")
    assert one.text == "a"
    assert not one.has_choices
    assert verdicts(one.guess("b")) == "right:b"
    assert one.score.person == pytest.approx(-math.log2(1 / 2))
    one.guess("c")
    assert one.score.person == pytest.approx(-math.log2(1 / 2) - math.log2(2 / 3))
    assert (one.text, one.score.characters, one.rest) == ("abc", 2, "de")


def test_several_characters_are_guessed_one_by_one_up_to_the_first_wrong_one() -> None:
    one = game(CHARACTERS, "abcde")
    assert verdicts(one.guess("bcxy")) == "right:b right:c wrong:x"
    assert one.text == "abc"
    assert one.score.person == pytest.approx(-math.log2(4.5 / 5) - math.log2(5.5 / 6))
    assert verdicts(one.guess("f")) == "wrong:f"
    spent = -math.log2(0.5 / 7)  # x is not in the vocabulary and costs nothing
    assert one.bits == pytest.approx(one.score.person - math.log2(1 / 2))
    assert one.bits - one.score.person < spent


def test_a_wrong_guess_is_added_to_the_score_once_the_text_is_known() -> None:
    one = game(CHARACTERS, "ab")
    one.guess("c")
    assert verdicts(one.guess("c")) == "wrong:c"  # known to be wrong: free of charge
    assert (one.score.person, one.bits) == (0, pytest.approx(1))
    one.guess("b")
    assert one.score.person == pytest.approx(1 - math.log2(1 / 4))
    assert one.is_over


def test_giving_up_costs_as_much_as_each_remaining_character() -> None:
    one = game(CHARACTERS, "ab")
    one.guess("c")
    assert verdicts(one.give_up()) == "revealed:b"
    assert one.score.person == pytest.approx(1 + math.log2(7))


def test_the_model_pays_by_its_probabilities_without_the_end_token() -> None:
    one = game(CHARACTERS, "ab")
    (outcome,) = one.guess("b")
    id, end = CHARACTERS.encode("b")[0], CHARACTERS.special("end")
    weights = {index: 2.0**-index for index in range(CHARACTERS.vocab_size) if index != end}
    assert outcome.probability == pytest.approx(weights[id] / sum(weights.values()))
    assert one.score.model == pytest.approx(-math.log2(outcome.probability))


def test_the_choices_are_the_likeliest_tokens_in_alphabetical_order() -> None:
    one = game(PIECES, "the cat")
    likeliest = [token.id for token in falling(PIECES) if token.id != PIECES.special("end")][:CHOICES]
    assert one.has_choices
    assert one.choices == tuple(sorted(map(PIECES.token_text, likeliest)))
    assert one.remaining == {*one.choices, OTHER}


@pytest.mark.parametrize("guesses", [[], ["b"], ["b", "c"], ["h", "g", "f"]])
@pytest.mark.parametrize("tokenizer", [CHARACTERS, PIECES])
def test_the_bits_of_both_sides_are_a_complete_code(tokenizer: Tokenizer, guesses: list[str]) -> None:
    """The sum of 2^−bits is 1, as for every complete code (Kraft's inequality), for the person and for the model."""
    sums = {"person": 0.0, "model": 0.0}
    for id in range(tokenizer.vocab_size):
        if not tokenizer.decode([id]) or "\\x" in tokenizer.token_text(id):
            continue
        one = Game(tokenizer, [0, id], 1, lambda known: falling(tokenizer))
        indices = [one.choices[ord(guess) % len(one.choices)] for guess in guesses] if one.has_choices else guesses
        for guess in indices:
            if not one.is_over:
                one.guess(guess)
        if not one.is_over:
            one.give_up()
        sums["person"] += 2**-one.score.person
        sums["model"] += 2**-one.score.model
    assert sums["model"] == pytest.approx(1, abs=1e-3)
    assert sums["person"] == pytest.approx(1, abs=1e-3)


def test_a_guess_of_none_of_the_choices_may_be_right() -> None:
    tokens = [one for one in falling(PIECES) if one.id != PIECES.special("end")]
    far = tokens[CHOICES + 2].id
    one = Game(PIECES, [0, far], 1, lambda known: falling(PIECES))
    assert verdicts(one.guess(OTHER, sure=True)) == f"revealed:{PIECES.token_text(far)}"
    own, others = tokens[CHOICES + 2].logprob, [math.exp(other.logprob) for other in tokens[CHOICES:]]
    assert one.score.person == pytest.approx(-math.log2(0.9) - math.log2(math.exp(own) / sum(others)))


def test_a_token_may_be_only_a_space() -> None:
    inner = tokenizers.Tokenizer(models.BPE({"▁": 0, "a": 1, "b": 2}, []))
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    one = game(Tokenizer(inner), "a b")
    while not one.is_over:
        one.give_up()
    assert one.text == "a b"


def test_the_last_remaining_choice_needs_no_guess() -> None:
    one = game(PIECES, "the cat")
    wrong = [choice for choice in (*one.choices, OTHER) if choice != one._truth]
    for choice in wrong[:-1]:
        assert verdicts(one.guess(choice)) == f"wrong:{choice}"
    assert verdicts(one.guess(wrong[-1])).startswith(f"wrong:{wrong[-1]} revealed:")


@pytest.mark.parametrize(("text", "winner"), [("bcde", "person"), ("", "model")])
def test_the_side_that_pays_less_wins(text: str, winner: str) -> None:
    one = game(CHARACTERS, "abcdefgh")
    assert one.score.winner == "nobody"
    one.guess(text) if text else one.give_up()
    assert one.score.winner == winner
