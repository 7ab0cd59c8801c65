"""The panels of a figure, without the texts above and below them, which a page prints in its own way."""

import xml.etree.ElementTree as ET
from typing import NamedTuple

_SVG = "http://www.w3.org/2000/svg"
ET.register_namespace("", _SVG)
ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
_TEXTS = ("head", "notes", "labels")


class Panels(NamedTuple):
    """A figure's panels as SVG, its title, and how it says that it is drawn."""

    svg: str
    title: str
    notes: str


def panels_of(svg: str) -> Panels:
    """Take a figure apart (``figures.style.to_svg``).

    Args:
        svg: From ``<svg`` to ``</svg>``, checked by ``svg_check``.
    """
    root = ET.fromstring(svg)
    title = next((node for node in root if node.tag == f"{{{_SVG}}}title"), None)
    name = (title.get("id") or "").removesuffix("-title") if title is not None else ""
    parts = {f"{name}-{part}": part for part in _TEXTS}
    found = dict.fromkeys(_TEXTS, "")
    for parent in list(root.iter()):
        for node in [node for node in parent if node.get("id") in parts]:
            lines = ["".join(line.itertext()) for line in node.iter(f"{{{_SVG}}}text")]
            found[parts[node.get("id", "")]] = " ".join(lines)
            parent.remove(node)
    if box := root.attrib.pop("data-panels", None):
        root.set("viewBox", box)
        root.attrib.pop("width", None)
        root.attrib.pop("height", None)
    spoken = (title.text or "") if title is not None else ""
    return Panels(ET.tostring(root, encoding="unicode"), spoken, found["notes"])
