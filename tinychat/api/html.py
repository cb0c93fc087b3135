"""Records as HTML, for notebooks: shaded texts, bars, tables, heat maps, loss curves.

All text is escaped, since a model's words are anybody's. There is neither script nor style sheet: colours are those of
the page, or translucent over its background, so that they suit dark and light.
"""

import base64
import html
import io
import math
from collections.abc import Iterable, Mapping, Sequence

from tinychat.commands.results import BarChart, HeatMap, HeatMaps, LossCurve, Plot, ShadedText, Table
from tinychat.events import Event, Token
from tinychat.repl.render.palette import ACCENT, ERROR, THEMES, WARNING, rgb
from tinychat.repl.render.plot import inline_svg, legend, make_figure
from tinychat.repl.render.results import SHADES
from tinychat.textutil import escape_controls, percent, shorten, visible
from tinychat.train.event_log import Progress

_DARK = THEMES["dark"]
COLOURS = {ACCENT: rgb(_DARK.cyan), WARNING: rgb(_DARK.yellow), ERROR: rgb(_DARK.red)}
OPACITY = 0.45
"""Opacity of the shade of a token."""
HEAT = (90, 130, 246)
"""Colour of an attention weight of 1; smaller ones are more transparent."""
MAX_CELLS = 64
"""Number of rows and columns up to which a map of one head shows its tokens; larger ones are a picture."""
NEW_LINE = "\n"
MAX_SAMPLE = 400
"""Maximum number of characters of a sample."""
SMALL_MAP_WIDTH = 132
"""Width of a small map in pixels."""
TEXT = "white-space:pre-wrap;overflow-wrap:anywhere;line-height:1.7"
DIM = "opacity:.65;font-size:90%"
NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
TABLE = "border-collapse:collapse;font-size:90%;color:inherit"
ROW = "background:none"
CELL = "border:0;padding:1px 8px;vertical-align:top;text-align:left;background:none"


def escape(text: str) -> str:
    """Return a text that is no markup anywhere, with control characters made visible."""
    return html.escape(escape_controls(text))


def element(name: str, content: str, style: str = "", title: str = "") -> str:
    """Return an element around HTML; the title, which a pointer over it shows, is escaped."""
    attributes = f' style="{style}"' if style else ""
    attributes += f' title="{escape(title)}"' if title else ""
    return f"<{name}{attributes}>{content}</{name}>"


def box(*parts: str) -> str:
    """Return parts below each other."""
    return element("div", "".join(parts))


def line(text: str, style: str = DIM) -> str:
    """Return a line of text, dim by default."""
    return element("div", escape(text), style)


def _rgba(colour: tuple[int, int, int], opacity: float) -> str:
    return f"rgba({','.join(map(str, colour))},{opacity:.3g})"


# --- texts ---


def shade(text: str, bits: float | None, title: str = "") -> str:
    """Return a piece of a text, shaded by its surprisal in bits, as `/color` does."""
    style = "" if bits is None else next(style for most, style, _ in SHADES if bits <= most)
    background = f"background:{_rgba(COLOURS[style], OPACITY)};border-radius:3px" if style else ""
    return element("span", escape(text), background, title)


def shade_legend() -> str:
    """Return what the shades mean."""
    shades = " · ".join(shade(text, min(most, 100.0)) for most, _, text in SHADES)
    return element("div", f"surprisal: {shades}", DIM)


def shaded_text(shaded: ShadedText) -> str:
    """Return a text with its surprising tokens shaded; a pointer over one shows its surprisal and entropy."""
    entropies = iter(shaded.entropies)
    parts = []
    for text, bits in shaded.pieces:
        title = ""
        if bits is not None:
            odds = f"{2**bits:,.0f}" if bits < 1_000 else "∞"  # 2^1,024 is beyond a float
            title = f"surprisal {bits:.1f} bits (1 in {odds})"
            title += f"\nentropy {sum(entropy):.1f} bits" if (entropy := next(entropies, None)) is not None else ""
        parts.append(shade(text, bits, title))
    return box(element("div", "".join(parts), TEXT), shade_legend(), *map(line, shaded.notes))


def answer(prompt: str, tokens: Sequence[Token], notes: Iterable[str]) -> str:
    """Return an answer with notes; see `turn`."""
    return box(turn(prompt, tokens), shade_legend(), *map(line, notes))


def turn(prompt: str, tokens: Sequence[Token]) -> str:
    """Return a prompt and its answer, shaded by surprisal; a pointer over a token shows what else could have come."""
    parts, surprisal = [], 0.0
    for token in tokens:
        surprisal -= token.logprob / math.log(2)
        if token.text:  # one that holds only a part of a character counts with the one that completes it
            parts.append(shade(token.text, surprisal, _alternatives(token)))
            surprisal = 0.0
    return element("div", escape(prompt), f"{TEXT};opacity:.65") + element("div", "".join(parts), TEXT)


def _alternatives(token: Token) -> str:
    """Return the likeliest tokens in lines, and the one that was drawn if it is not among them."""
    rows = [(one.text, one.logprob, one.id == token.id) for one in token.top]
    if not any(is_drawn for _, _, is_drawn in rows):
        rows.append((token.text, token.logprob, True))
    return "\n".join(
        f"{'›' if is_drawn else ' '} {percent(math.exp(logprob))}  {visible(text)}" for text, logprob, is_drawn in rows
    )


# --- charts, tables, maps ---


def bars(chart: BarChart) -> str:
    """Return bars beside each other: before sampling, and after temperature and filters."""
    before, at, after = chart.context
    context = element("div", f"{escape(before)}<b>{escape(at)}</b>{element('span', escape(after), DIM)}", TEXT)
    headings = [element("th", escape(text), CELL) for text in ("", "", *chart.headings)]
    rows = [element("tr", "".join(headings))]
    for bar in chart.bars:
        cells = [element("td", "›" if bar.marked else "", CELL), element("td", escape(bar.label), CELL)]
        cells.append(element("td", _bar(bar.fraction), CELL))
        if bar.after is not None:
            cells.append(element("td", _bar(bar.after) if bar.after else element("span", "cut", DIM), CELL))
        rows.append(element("tr", "".join(cells), ROW + ";font-weight:bold" * bar.marked))
    table = element("table", "".join(rows), TABLE)
    return box(context, line(chart.title), table, *map(line, chart.notes))


def _bar(fraction: float) -> str:
    width = f"display:inline-block;height:.7em;width:{120 * fraction:.0f}px;margin-right:6px;border-radius:2px"
    return element("span", "", f"{width};background:{_rgba(COLOURS[ACCENT], 0.8)}") + percent(fraction)


def table(table: Table) -> str:
    """Return a table with its title and notes."""

    def row(name: str, texts: Iterable[str]) -> str:
        styles = (f"{CELL};{NUMBER}" if column in table.right else CELL for column in range(len(table.columns)))
        cells = (element(name, escape(text), style) for text, style in zip(texts, styles, strict=True))
        return element("tr", "".join(cells), ROW)

    rows = [row("th", table.columns), *(row("td", texts) for texts in table.rows)]
    whole = element("table", "".join(rows), TABLE)
    notes = (note for note in table.notes if "/" not in note)  # those of commands are no help here
    return box(line(table.title, "font-weight:bold") if table.title else "", whole, *map(line, notes))


def facts(name: str, about: str, facts: Mapping[str, str]) -> str:
    """Return a name, what it is about, and facts."""
    rows = (
        element("tr", element("td", element("span", escape(key), DIM), CELL) + element("td", escape(text), CELL), ROW)
        for key, text in facts.items()
    )
    return box(element("div", f"<b>{escape(name)}</b> {escape(about)}"), element("table", "".join(rows), TABLE))


def heat_map(found: HeatMap) -> str:
    """Return the map of one head with its tokens; a pointer over a cell shows its weight."""
    title = line(found.title, "font-weight:bold")
    if max(len(found.rows), len(found.columns)) > MAX_CELLS:
        return box(title, _picture(found.cells, len(found.columns), 4 * SMALL_MAP_WIDTH, found.title))
    label = f"{CELL};padding:0 4px;white-space:pre"
    rotated = f"{label};writing-mode:vertical-rl;text-align:right;max-height:6em;vertical-align:bottom"
    rows = [element("tr", element("td", "") + "".join(element("td", escape(one), rotated) for one in found.columns))]
    for query, cells in zip(found.rows, found.cells, strict=True):
        parts = [element("td", escape(query), f"{label};text-align:right")]
        for key, weight in zip(found.columns, cells, strict=False):
            style = f"border:0;padding:0;min-width:14px;height:14px;background:{_rgba(HEAT, weight)}"
            parts.append(element("td", "", style, f"{query} → {key}\n{percent(weight)}"))
        rows.append(element("tr", "".join(parts), ROW))
    return box(title, element("table", "".join(rows), TABLE))


def heat_maps(maps: HeatMaps) -> str:
    """Return small maps in a grid, a row for each layer, each with its number, its head's and its pattern."""
    rows = []
    for row in maps.rows:
        figures = []
        for one in row:
            width = max((len(cells) for cells in one.cells), default=0)
            picture = _picture(one.cells, width, SMALL_MAP_WIDTH, one.caption)
            style = f"display:inline-block;margin:4px 8px 4px 0;max-width:{SMALL_MAP_WIDTH}px;vertical-align:top"
            figures.append(element("div", picture + line(one.caption, "font-size:80%"), style))
        rows.append(element("div", "".join(figures)))
    return box(line(maps.title, "font-weight:bold"), *rows)


def _picture(cells: Sequence[Sequence[float]], columns: int, width: int, name: str) -> str:
    """Return a heat map as a picture of a pixel for each cell, which the page magnifies."""
    from PIL import Image

    pixels = bytearray()
    for row in cells:
        for weight in (*row, *[0.0] * (columns - len(row))):
            pixels += bytes((*HEAT, round(255 * min(1.0, max(0.0, weight)))))
    file = io.BytesIO()
    Image.frombytes("RGBA", (columns, len(cells)), bytes(pixels)).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    height = round(width * len(cells) / max(1, columns))
    style = (
        f"width:{width}px;height:{height}px;image-rendering:pixelated;outline:1px solid {_rgba((128, 128, 128), 0.5)}"
    )
    return f'<img src="data:image/png;base64,{data}" alt="{escape(name)}" title="{escape(name)}" style="{style}">'


def run(name: str, state: str, events: Iterable[Event]) -> str:
    """Return a training run: its state, its loss curve, and its newest samples."""
    progress = Progress()
    for event in events:
        progress.update(event)
    split = progress.evaluated.split if progress.evaluated else "val"
    found = LossCurve(name, tuple(progress.curves.training), tuple(progress.curves.validation), split)
    curve = inline_svg(make_figure(Plot((found,)), [legend(found)])) if len(found.training) > 1 else ""
    samples = [
        element("div", f"<b>{escape(one.prompt.lstrip(NEW_LINE))}</b>{escape(shorten(one.text, MAX_SAMPLE))}", TEXT)
        for one in progress.samples
    ]
    heading = line(f"samples at step {progress.samples[-1].step:,}") if samples else ""
    return box(element("div", f"<b>{escape(name)}</b> · {escape(state)}"), curve, heading, *samples)
