"""Where the sentences of a prompt end, that nothing of it is lost, and that an answer has something to continue."""

import time

import pytest

from tinychat.generate.prompts import PromptEncoder, split_sentences
from tinychat.tokenizer.chat_template import ChatTemplate, ConversationTemplate
from tinychat.tokenizer.jinja_template import JinjaTemplate
from tinychat.tokenizer.tokenizer import Tokenizer
from tinychat.tokenizer.training import train_vocabulary


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello. How are you?  Fine!", ["Hello.", "How are you?", "Fine!"]),
        ("i am tired. where is tom", ["i am tired.", "where is tom"]),
        ("Mr. Brown and J. Smith paid 3.50 euros, e.g. by card.", None),
        ("La Sra. Ruiz y Ud. viven en la Avda. Norte, núm. 3; dña. Eva, p. ej. en otra calle.", None),
        ("I said no. He left.", ["I said no.", "He left."]),
        ("It is I. Come in.", ["It is I.", "Come in."]),
        ("one\ntwo\n\n three", ["one", "two", "three"]),
        ("“Come here.” He (my boss.) Left.", ["“Come here.”", "He (my boss.)", "Left."]),
        ("Wait… what?! Yes.", ["Wait…", "what?!", "Yes."]),
        ("¿Qué? Sí.", ["¿Qué?", "Sí."]),
        ("write to ann@mail.org", None),
        ("  one line \n", None),
        ("? ! .", ["?", "!", "."]),
        ("", None),
    ],
)
def test_sentences_end_at_marks_and_lines(text: str, sentences: list[str] | None) -> None:
    split = split_sentences(text)
    assert [sentence.text for sentence in split] == (sentences or [text])
    assert "".join(space + sentence for space, sentence in split) == text


def test_a_long_text_is_split_in_no_time() -> None:
    before = time.process_time()
    assert len(split_sentences("Where is Mr. X? " * 20_000)) == 20_000
    assert time.process_time() - before < 1


@pytest.mark.parametrize("template", [None, ChatTemplate(user="", assistant="", end="")])
def test_a_prompt_of_which_nothing_is_known_has_an_id(template: ChatTemplate | None) -> None:
    encoder = PromptEncoder(Tokenizer(train_vocabulary("char", ["abc"])), 16, template)
    assert [encoder.encode(prompt) for prompt in ("", "xyz", "ab")] == [[0], [0], [0, 1]]


@pytest.mark.parametrize("template", [ChatTemplate(), JinjaTemplate(ChatTemplate().to_jinja())])
def test_a_chat_tells_a_prompt_that_is_cut_from_one_that_fills_its_room(template: ConversationTemplate) -> None:
    names = ("<|user|>", "<|assistant|>", "<|end|>")
    encoder = PromptEncoder(Tokenizer(train_vocabulary("char", ["abc"], None, names)), 24, template)
    first = encoder.tokenizer.encode("b")[0]
    turns = [("cc", "cc")] * 9
    cut = [length for length in (*range(40), 400) if encoder.cuts("b" + "a" * length, max_tokens=8)]
    assert cut == [
        length for length in (*range(40), 400) if first not in encoder.encode("b" + "a" * length, turns, max_tokens=8)
    ]
    assert cut[0] == 24 - 8 - len(names)
