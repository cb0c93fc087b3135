"""Text from a model, a file or a pipe, made harmless for a terminal."""

_PICTURES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
_OTHERS = {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
_TABLE = _PICTURES | _OTHERS | {0x7F: "␡"}


def harmless(text: str) -> str:
    """The text with its control characters shown (ESC as ␛), so that none of them acts; new lines and tabs stay."""
    return text.translate(_TABLE)


_VISIBLE = {ord("\n"): "⏎", ord("\t"): "⇥", ord(" "): "␣"}


def visible(text: str) -> str:
    """The text on one line, each of its characters to be seen: spaces, tabs and ends of lines too."""
    return harmless(text).translate(_VISIBLE)
