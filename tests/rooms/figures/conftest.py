"""Fixtures of figures: files as jobs write them, a figure drawn from them, and the small study of reporting."""

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from tests.rooms.reporting.conftest import finished
from workflow_scripts.figures.base import FigureRequest, all_figures
from workflow_scripts.figures.drawing import figure_style, to_svg
from workflow_scripts.provenance.artefacts import job_record, write_table

__all__ = ["finished"]

FOOTNOTE = "Substitution: a stand-in."
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Shown(NamedTuple):
    """A drawn figure, and its texts in order."""

    data: pd.DataFrame
    picture: Figure
    texts: list[str]

    @property
    def said(self) -> str:
        """All texts as one."""
        return " ".join(self.texts)


def shown(
    name: str, block: dict[str, Any], inputs: Mapping[str, Sequence[Path]] = NOTHING, **more: Any
) -> Shown:
    """Draw a figure as its job does, and lay it out."""
    declared = all_figures()[name]
    request = FigureRequest(declared.settings.parse(block, name), inputs, **more)
    with figure_style():
        points, picture, notes = declared.draw(request)
        svg = to_svg(picture, "figure", "A title", "What it shows.", [*notes, FOOTNOTE])
        return Shown(points, picture, texts(svg))


def texts(svg: str) -> list[str]:
    """The texts of an SVG, in their order."""
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def shadow_of(axes: Axes) -> dict[float, tuple[float, float]]:
    """Return the lower and the upper end of the only shadow of a panel, by place on the horizontal axis."""
    (shadow,) = [one for one in axes.collections if isinstance(one, PolyCollection)]
    ((corners,),) = [path.to_polygons(closed_only=False) for path in shadow.get_paths()]
    heights: dict[float, list[float]] = {}
    for x, y in corners:
        heights.setdefault(float(x), []).append(round(float(y), 9))
    return {x: (min(ys), max(ys)) for x, ys in heights.items()}


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., Path]:
    """Writes a table with a record, as a job does."""
    numbers = itertools.count()

    def write(
        table: pa.Table, settings: Mapping[str, Any] = NOTHING, name: str = "", **wildcards: Any
    ) -> Path:
        file = tmp_path / (name or f"{next(numbers)}.parquet")
        named = {key: str(value) for key, value in wildcards.items()}
        record = job_record("count_words", settings=settings, inputs={}, outputs=[file], wildcards=named)
        write_table(file, table, record)
        return file

    return write
