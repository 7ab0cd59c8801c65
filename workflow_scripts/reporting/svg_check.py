"""Check that an SVG may be inserted into a page: only shapes and text, no scripts, animation or external content.

A figure's checksum proves that the file is intact, but not that this pipeline drew it, so its content is checked.
"""

import re
import xml.etree.ElementTree as ET

from workflow_scripts.errors import DataError

_SVG = "{http://www.w3.org/2000/svg}"
_SHAPES = {
    "svg",
    "g",
    "path",
    "use",
    "defs",
    "text",
    "tspan",
    "clipPath",
    "rect",
    "line",
    "circle",
    "ellipse",
    "polyline",
    "polygon",
    "title",
    "desc",
    "style",
    "linearGradient",
    "radialGradient",
    "stop",
    "image",
}
_FETCHES = re.compile(r"url\(\s*(?!['\"]?#)|@import|expression\(|javascript:", re.IGNORECASE)


def checked_svg(svg: str, place: str) -> str:
    """Return ``svg`` if it contains only shapes and text.

    Args:
        svg: From ``<svg`` to ``</svg>``.
        place: Name of the file, for errors.

    Raises:
        DataError: naming the first element or attribute that this pipeline does not draw.
    """
    advice = "Not drawn by this pipeline. Delete it and rerun."
    if "<!" in svg or "<?" in svg:  # browsers and XML parsers disagree on where comments and CDATA end
        raise DataError(f"{place}: holds a comment or an instruction. {advice}")
    try:
        root = ET.fromstring(svg)
    except ET.ParseError as error:
        raise DataError(f"{place}: no SVG ({error}). {advice}") from error
    for element in root.iter():
        if element.tag.removeprefix(_SVG) not in _SHAPES or not element.tag.startswith(_SVG):
            raise DataError(f"{place}: holds an element {element.tag!r}. {advice}")
        if fault := next((name for name, value in element.items() if _acts(name, value)), None):
            raise DataError(
                f"{place}: {element.tag.removeprefix(_SVG)} has an attribute {fault!r} that acts. {advice}"
            )
        if element.tag == f"{_SVG}style" and _FETCHES.search(element.text or ""):
            raise DataError(f"{place}: its style fetches something. {advice}")
    return svg


def _acts(name: str, value: str) -> bool:
    """Whether an attribute runs a script or refers to something outside the figure."""
    bare = name.rpartition("}")[2].lower()
    leads_out = bare in ("href", "src") and not value.startswith(("#", "data:image/png;base64,"))
    return bare.startswith("on") or leads_out or _FETCHES.search(value) is not None
