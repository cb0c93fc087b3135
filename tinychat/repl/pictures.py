"""Figures as files: SVG, written here, and PNG, by Pillow. Nothing is fetched, fonts are the viewer's or built in."""

import io
from collections.abc import Callable, Mapping
from xml.sax.saxutils import escape

from tinychat.repl.figure import INK, Dot, Figure, Shape, Stroke, Words
from tinychat.textutil import escape_controls

SCALE = 2
"""dots of a PNG to a unit of the figure"""
FINER = 2
"""times as fine is it drawn, so that its edges become smooth"""
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
"""as Pillow calls them, on the base line"""
UNFIT_FOR_XML = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}
"""characters that no XML may hold, and that `escape_controls` leaves"""


def svg(figure: Figure) -> bytes:
    """As an SVG that stands for itself."""
    size = f'width="{figure.width}" height="{figure.height}" viewBox="0 0 {figure.width} {figure.height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" fill="{INK}">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *map(_element, figure.shapes),
        "</svg>",
    ]
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")


def fit_for_xml(text: str) -> str:
    """The text without what XML may not hold; it is not escaped."""
    return escape_controls(text).translate(UNFIT_FOR_XML)


def _element(shape: Shape) -> str:
    match shape:
        case Stroke(points, colour, width):
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            form = 'fill="none" stroke-linejoin="round"'
            return f'<polyline points="{path}" {form} stroke="{colour}" stroke-width="{width:g}"/>'
        case Dot((x, y), radius, colour):
            return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}"/>'
        case Words((x, y), text, anchor, size):
            text = escape(fit_for_xml(text))
            return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{text}</text>'


def png(figure: Figure) -> bytes:
    """As a PNG, `SCALE` times as large."""
    from PIL import Image, ImageDraw, ImageFont

    scale = SCALE * FINER
    image = Image.new("RGB", (scale * figure.width, scale * figure.height), "#ffffff")
    draw = ImageDraw.Draw(image)
    for shape in figure.shapes:
        match shape:
            case Stroke(points, colour, width):
                scaled = [(scale * x, scale * y) for x, y in points]
                draw.line(scaled, colour, round(scale * width), joint="curve")
            case Dot((x, y), radius, colour):
                draw.circle((scale * x, scale * y), scale * radius, colour)
            case Words((x, y), text, anchor, size):
                font = ImageFont.load_default(scale * size)
                draw.text((scale * x, scale * y), escape_controls(text), INK, font, ANCHORS[anchor])
    file = io.BytesIO()
    image.resize((SCALE * figure.width, SCALE * figure.height), Image.Resampling.LANCZOS).save(file, "PNG")
    return file.getvalue()


PICTURES: Mapping[str, Callable[[Figure], bytes]] = {".svg": svg, ".png": png}
"""By the file's ending."""
