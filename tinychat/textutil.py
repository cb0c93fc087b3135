"""Numbers and texts as people read them."""


def count(number: float, noun: str) -> str:
    """`1 step`, `1,200 steps`, `0.5 epochs`."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,g}"
    return f"{shown} {noun}{'s' * (number != 1)}"


def compact(number: int) -> str:
    """37 → `37`, 812_345 → `812k`, 3_400_000 → `3.4M`."""
    for unit, letter in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")):
        if number >= unit:
            return f"{number / unit:.{1 if number < 100 * unit else 0}f}{letter}"
    return str(number)


def duration(seconds: float) -> str:
    """75 → `1:15`; 4,000 → `1:06:40`; less than nothing is nothing."""
    minutes, rest = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def percent(share: float, decimals: int = 1) -> str:
    """0.0512 → `5.1 %`."""
    return f"{100 * share:.{decimals}f} %"


def shorten(text: str, most: int) -> str:
    """The text, of which so many characters are kept, with … where more would follow."""
    return text if len(text) <= most else text[: most - 1] + "…"
