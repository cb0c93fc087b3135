"""Lines of text in many scripts, made by a program, to compare tokenizers on."""

import random

ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz", "ABCXYZ", "àéîõüßøłŒǅ", "абвгджиюяЁ", "αβγδω", "你好世界的是在一", "こんにちはカタ",
    "한국어말", "مرحبابالعالم", "שלום", "हिन्दीक्षि", "ไทยภาษา", "0123456789٣४", ".,;:!?'\"()[]{}<>|/\\-_=+*&^%$#@~`…—«»",
    "😀🎉👩‍👩‍👧🇩🇪❤️", "\u0301\u0308\u0327\u200d\u200b\ufeff", "   \t\u00a0\u3000\u2028", "\x00\x01\x07\x1b\x7f\x85\r",
    "ﬁ①Å½㎏", "\U0001d400\U00020000\ufffd\ue000",
)  # fmt: skip
"""Characters of Latin, Cyrillic, CJK and other scripts, digits, signs, emoji, combining marks, spaces and controls."""
WORDS = ("the", "cat", "don't", "it's", "Hello", "привет", "  ", "世界", "12345", "3.14", "foo_bar", "\n\n", "»", "été")


def make_lines(count: int, seed: int = 0) -> list[str]:
    """Return lines of words and of characters of several scripts."""
    rng = random.Random(seed)

    def word() -> str:
        if rng.random() < 0.4:
            return rng.choice(WORDS)
        alphabet = rng.choice(ALPHABETS)
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 6)))

    return [rng.choice(("", " ")).join(word() for _ in range(rng.randint(0, 12))) for _ in range(count)]
