"""Where the sentences of a prompt end, and that nothing of it is lost."""

import pytest

from tinychat.generate.prompts import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Hello. How are you?  Fine!", ["Hello.", "How are you?", "Fine!"]),
        ("i am tired. where is tom", ["i am tired.", "where is tom"]),
        ("Mr. Brown and J. Smith paid 3.50 euros, e.g. by card.", None),
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
