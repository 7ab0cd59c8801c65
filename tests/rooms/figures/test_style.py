"""The SVG that all figures share: it can be read by all, and has the same bytes each time."""

import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib import pyplot

from tests.rooms.figures.conftest import texts
from workflow_scripts.figures.drawing import figure_style, name_runs, to_svg
from workflow_scripts.provenance.artefacts import check_model_folder

FIGURES = ["learning_curves", "cosine_density", "alignment_uniformity"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_checksum_a_title_all_substitutions_and_unique_ids(finished, name):
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
    assert texts(svg).count(said) == 2 and said in [node.text for node in root]


def test_texts_of_a_picture_have_the_names_that_readers_see():
    """One identifier may begin as another does."""
    picture, axes = pyplot.subplots()
    axes.set(title="1 simcse.bert", xlabel="simcse.bert.tag", ylabel="loss")
    name_runs(picture, {"simcse.bert": "SimCSE", "simcse.bert.tag": "SimCSE, tagged"})
    assert [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()] == ["1 SimCSE", "SimCSE, tagged", "loss"]
