"""The SVG that all figures share: it can be read by all, and has the same bytes each time."""

import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib import pyplot

from tests.rooms.figures.conftest import texts
from workflow_scripts.figures.drawing import (
    figure_style,
    lay_out,
    name_runs,
    panels_svg,
    to_svg,
    with_names,
)
from workflow_scripts.provenance.artefacts import check_model_folder

FIGURES = ["learning_curves", "cosine_density", "alignment_uniformity"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_checksum_a_title_and_substitutions(finished, name):
    """A figure has a checksum, a title, all substitutions and unique ids."""
    labels = [*map(str, check_model_folder(finished / "figures/lab").labels)]
    svg = (finished / f"figures/lab/{name}.svg").read_text()
    assert len(labels) == 2
    assert f"Substitutions: {'; '.join(labels)}." in " ".join(" ".join(texts(svg)).split())
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    spoken = {node.get("id"): node.text for node in root if node.tag.endswith(("title", "desc"))}
    assert all(spoken[name] for name in root.get("aria-labelledby").split())
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) > 10
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= set(ids)


def test_hostile_text_stays_text():
    said = '</svg><script>alert("x")</script> $\\frac{1$ & <b>'
    with figure_style():
        svg = to_svg(None, "figure", said, "What it shows.", [said])
    root = ET.fromstring(svg)
    assert not [node for node in root.iter() if node.tag.endswith(("script", "}b"))]
    assert texts(svg).count(said) == 2
    assert said in [node.text for node in root]


def test_texts_of_a_picture_have_the_names_that_readers_see():
    """One identifier may begin as another does."""
    picture, axes = pyplot.subplots()
    axes.set(title="1 simcse.bert", xlabel="simcse.bert.tag", ylabel="loss")
    name_runs(picture, {"simcse.bert": "SimCSE", "simcse.bert.tag": "SimCSE, tagged"})
    assert [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()] == ["1 SimCSE", "SimCSE, tagged", "loss"]


def test_only_whole_identifiers_become_names_and_only_once():
    names = {"simcse.bert": "SimCSE", "s2sent.bert": "S2Sent over simcse.bert"}
    assert with_names("s2sent.bert: 0.5; 1\N{NO-BREAK SPACE}simcse.bert.", names) == (
        "S2Sent over simcse.bert: 0.5; 1\N{NO-BREAK SPACE}SimCSE."
    )
    others = "simcse.bert_mlm, simcse.bert.tag, my-simcse.bert"
    assert with_names(others, names) == others


def test_a_wide_title_is_broken_after_dots():
    """A title wider than its panel is broken after dots of a run's name."""
    with figure_style():
        picture, panels = pyplot.subplots(1, 2)
        for axes in panels:
            axes.set_title("simcse_layerattpooler.minilm_mlm.wiki_extract of 4.2 points")
        lay_out(picture)
        picture.draw_without_rendering()
        left, right = (axes.title.get_window_extent() for axes in panels)
        assert "".join(panels[0].get_title().split("\n")).startswith("simcse_layerattpooler.minilm_mlm.")
        assert left.x1 + 5 < right.x0


def test_legends_stand_once_below_all_panels():
    with figure_style():
        picture, panels = pyplot.subplots(2, 1)
        for axes in panels:
            axes.plot([1, 2], label="a")
            axes.legend(loc="upper center")
        lay_out(picture)
        picture.draw_without_rendering()
        (legend,) = picture.legends
        assert [text.get_text() for text in legend.get_texts()] == ["a"]
        assert all(axes.get_legend() is None for axes in panels)
        assert legend.get_window_extent().y1 < panels[1].get_tightbbox().y0


def test_panels_have_short_coordinates_and_own_numbers():
    """Panels of a page have short coordinates and their own numbers."""
    with figure_style():
        picture, axes = pyplot.subplots()
        axes.plot([0.123456, 1])
        axes.set_title("0.12345 of 1.98765")
        svg = panels_svg(picture, "figure", "A title", "What it shows.")
    assert "0.12345 of 1.98765" in texts(svg)
    assert not re.search(r'\bd="[^"]*\.\d{3}', svg)
    assert re.search(r'\bd="[^"]*\.\d\d\b', svg)
