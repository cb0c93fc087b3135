"""Corpora: all kinds implement `Corpus`; only some have passages and sides."""

import pytest

from tinychat.corpus.corpus import Corpus, Digest, Mix, TextCorpus
from tinychat.corpus.readers import InlineTexts
from tinychat.corpus.types import Chunk, Conversation


def translations(*pairs: str) -> TextCorpus:
    return TextCorpus("pairs", "translation", [InlineTexts(pairs, "pairs")])


PAIRS = translations("one\tuno", "two\tdos")
MIX = Mix([PAIRS, translations("three\ttres")], [1.0, 1.0])


@pytest.mark.parametrize("corpus", [PAIRS, MIX, PAIRS.source_side, MIX.target_side], ids=lambda one: type(one).__name__)
def test_every_corpus_counts_what_it_yields(corpus: Corpus) -> None:
    items = list(corpus.items())
    assert items == list(corpus.items())
    assert len(items) == corpus.documents_count == len(list(corpus.documents()))
    assert not corpus.single
    texts = [text for item in items for text in ([item.text] if isinstance(item, Chunk) else said(item))]
    assert sum(map(len, texts)) == corpus.characters
    assert list(corpus.conversations()) == [item for item in items if isinstance(item, Conversation)]


def said(conversation: Conversation) -> list[str]:
    return [message.text for message in conversation.messages]


def test_the_sides_of_translations_are_documents() -> None:
    assert list(PAIRS.source_side.documents()) == ["one", "two"]
    assert list(MIX.target_side.documents()) == ["uno", "dos", "tres"]
    assert PAIRS.source_side.mode == "completion"
    assert PAIRS.source_side is PAIRS.source_side
    assert PAIRS.source_side.fingerprint != PAIRS.target_side.fingerprint


def test_only_text_corpora_have_passages() -> None:
    assert [passage.text for passage in PAIRS.passages()] == ["one", "uno", "two", "dos"]
    assert not hasattr(MIX, "passages")
    assert not isinstance(MIX, TextCorpus)
    assert not hasattr(PAIRS.source_side, "passages")
    assert not hasattr(PAIRS.source_side, "sources")
    assert all(isinstance(source.corpus, TextCorpus) for source in MIX.sources)


def test_documents_are_separated_by_their_ends() -> None:
    def fingerprint(*chunks: Chunk) -> str:
        digest = Digest()
        for chunk in chunks:
            digest.add(chunk)
        return digest.fingerprint

    assert fingerprint(Chunk("ab", True)) == fingerprint(Chunk("a", False), Chunk("b", True))
    assert fingerprint(Chunk("ab", True)) != fingerprint(Chunk("a", True), Chunk("b", True))
