"""What tests of figures share: drawing, reading an SVG, and the small study of reporting, which has figures too."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure

from tests.rooms.reporting.conftest import finished
from workflow_scripts.figures.base import Request, load_figure
from workflow_scripts.figures.style import figure_style, to_svg
from workflow_scripts.settings.figures import FIGURES

__all__ = ["finished"]

FOOTNOTE = "Substitution: a stand-in."


def request_of(kind: str, block: dict[str, Any], **named: Any) -> Request[Any]:
    """What a job would hand to a figure."""
    shared = {"title": "A title", "footnotes": [FOOTNOTE]}
    return Request(FIGURES[kind].parse(block, kind), **shared | named)


def drawn(
    points: pa.Table, request: Request[Any], draw: Callable[..., Figure] | str, *rest: Any
) -> tuple[Figure, list[str]]:
    """A figure, laid out, and its texts as the SVG has them."""
    draw = load_figure(draw).draw if isinstance(draw, str) else draw
    with figure_style():
        figure = draw(points, request, *rest)
        figure.draw_without_rendering()
        return figure, texts(to_svg(figure, "figure", "A title", "What it shows."))


def texts(svg: str) -> list[str]:
    """The texts of an SVG, in their order."""
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
