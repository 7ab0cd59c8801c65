"""Names, colours and the SVG that all figures share: it can be read by all, and has the same bytes each time."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tests.rooms.figures.conftest import texts
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.style import COLOURS, INK, figure_style, line_look, short_names, to_svg
from workflow_scripts.provenance.artefacts import check_model_folder
from workflow_scripts.reporting.called import Called

FIGURES = ["learning_curves", "cosine_density", "alignment_uniformity"]
ALIKE = {"simcse.one": ["SimCSE", "MiniLM"], "simcse.two": ["SimCSE", "MiniLM"]}
IN_WORDS = {f"simcse.mini.k{k}": ["SimCSE", "MiniLM", f"k{k}"] for k in (1, 2)}


@pytest.mark.parametrize(
    ("runs", "called", "short", "left_out"),
    [
        (["simcse.mini.wiki", "s2sent.mini.wiki"], {}, ["simcse", "s2sent"], "mini, wiki"),
        (["simcse.mini"], {}, ["simcse.mini"], None),
        (["simcse.mini", "simcse.mini.paper"], {}, ["simcse.mini", "simcse.mini.paper"], None),
        ([*IN_WORDS], IN_WORDS, ["k1", "k2"], "SimCSE, MiniLM"),
        ([*ALIKE], ALIKE, [*ALIKE], None),  # called by their identifiers, as their words are the same
    ],
)
def test_names_leave_out_what_all_runs_share_unless_that_leaves_nothing(runs, called, short, left_out):
    names = short_names(runs, Called(runs=called))
    assert names.short == dict(zip(runs, short, strict=True))
    assert names.footnotes == ([f"Names leave out what all runs share: {left_out}."] if left_out else [])


def test_twenty_four_lines_look_different():
    looks = {(look["color"], str(look["linestyle"])) for look in map(line_look, range(24))}
    assert len(looks) == 24


def luminance(colour):
    channels = np.array([int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_stand_out_from_light_and_from_dark_paper(colour):
    """WCAG asks for a contrast of 3 for graphics."""
    light, dark = luminance("#ffffff"), luminance("#16181c")
    assert (light + 0.05) / (luminance(colour) + 0.05) > 3.8
    assert (luminance(colour) + 0.05) / (dark + 0.05) > 3.6


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_checksummed_named_and_prints_every_substitution_and_its_references_lead_to_one_element(
    finished, name
):
    path = finished / f"figures/lab/{name}.svg"
    record = check_model_folder(path.parent)
    assert {path.name, f"{name}.parquet"} <= {*record.files}
    assert len(record.labels) == 2
    svg = path.read_text()
    shown = " ".join(" ".join(texts(svg)).split())
    assert f"Substitutions: {'; '.join(record.labels)}." in shown
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    spoken = {node.get("id"): node.text for node in root if node.tag.endswith(("title", "desc"))}
    assert all(spoken[name] for name in root.get("aria-labelledby").split())
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) > 10
    assert all(identifier.startswith(name.replace("_", "-") + "-lab-") for identifier in ids)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= set(ids)
    assert svg.count("currentColor") > 10 and INK not in svg[: svg.rindex("</svg>")]


@pytest.mark.parametrize(
    "said", ['</svg><script>alert("x")</script> $\\frac{1$ & <b>', f'"#tag", id="one", d="1.23456", {INK}']
)
def test_hostile_text_and_text_like_an_attribute_stay_text(said):
    with figure_style():
        figure = Request(None, title=said, footnotes=[said]).empty("Nothing.")
        svg = to_svg(figure, "figure", said, "What it shows.")
    root = ET.fromstring(svg)
    assert not [node for node in root.iter() if node.tag.endswith(("script", "}b"))]
    assert texts(svg).count(said) == 2 and said in [node.text for node in root]
