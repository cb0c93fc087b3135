"""Conversations with completion models: one text that is encoded as it grows, with the ids of the whole."""

from collections.abc import Sequence

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from tinychat.generate import prompts
from tinychat.generate.engine import window_start
from tinychat.generate.prompts import PromptEncoder, RunningText
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary

TEXT = "the fox's den, isn't it? a bird ate 12 naïve cafés… 你好 \n said: no!\n\tyes " * 9
CONTEXT = 16


def byte_level() -> Tokenizer:
    """Return a tokenizer like GPT-2's."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.normalizer = normalizers.NFC()
    pattern = Regex(r"'s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    inner.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    inner.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=330, initial_alphabet=letters))
    return Tokenizer(inner)


def sentence_piece() -> Tokenizer:
    """Return a tokenizer like that of Llama 2, which encodes the beginning of a text differently."""
    inner = tokenizers.Tokenizer(models.BPE())
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    inner.train_from_iterator([TEXT], trainers.BpeTrainer(vocab_size=200))
    return Tokenizer(inner)


KINDS = ("char", "word", "whitespace", "wordpiece")
TOKENIZERS = {kind: Tokenizer(train_vocabulary(kind, [TEXT], 300, ["<|end|>"])) for kind in KINDS}
TOKENIZERS |= {"byte level": byte_level(), "sentence piece": sentence_piece()}

TEXTS = st.text(st.sampled_from("abthe fox's12.,!?-\n\t  é\u0301你…")) | st.sampled_from(TEXT.split(" ")) | st.text()


@pytest.mark.parametrize("kind", TOKENIZERS)
@settings(max_examples=40)
@given(turns=st.lists(st.tuples(TEXTS, TEXTS), max_size=6), prompt=TEXTS)
def test_the_ids_are_those_of_the_whole_text(kind: str, turns: Sequence[tuple[str, str]], prompt: str) -> None:
    encoder = PromptEncoder(TOKENIZERS[kind], CONTEXT)
    text, whole = RunningText(encoder), ""
    for asked, answered in turns:
        assert text.encode(asked) == encoder.encode(whole + asked)
        text.add(asked, answered)
        whole += f"{asked}{answered}\n"
    assert text.encode(prompt) == encoder.encode(whole + prompt)


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS if kind != "sentence piece"])
def test_of_a_long_text_the_model_sees_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "LONGEST_WHOLE", 60)
    encoder = PromptEncoder(TOKENIZERS[kind], CONTEXT)
    text, whole = RunningText(encoder), ""
    for turn in range(60):
        prompt, answer = TEXT[turn : turn + turn % 7], TEXT[3 * turn : 3 * turn + 12]
        ids, expected = text.encode(prompt), encoder.beginning() + encoder.tokenizer.encode(whole + prompt) or [0]
        assert ids[window_start(len(ids), CONTEXT) :] == expected[window_start(len(expected), CONTEXT) :]
        assert len(ids) > CONTEXT or len(ids) == len(expected)
        text.add(prompt, answer)
        whole += f"{prompt}{answer}\n"
    assert len(ids) < 60 < len(expected)
