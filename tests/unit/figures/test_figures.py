"""Figures: what is drawn is what the data says, and the SVG can be read by all."""

import re
import xml.etree.ElementTree as ET
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.columns.scores import SCORES, SIMILARITIES
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures import alignment_uniformity, cosine_density, learning_curves
from workflow_scripts.figures.alignment_uniformity import Headline, draw_plane, plane
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.cosine_density import densities, kernel_density
from workflow_scripts.figures.learning_curves import curves
from workflow_scripts.figures.style import COLOURS, INK, figure_style, line_look, short_names, to_svg
from workflow_scripts.provenance.artefacts import check_model_folder
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.records import RunTable

FIGURES = ["learning_curves", "cosine_density", "alignment_uniformity"]
CURVES = Request(learning_curves.Config(loss_blocks=10))
DENSITY = cosine_density.Config(task="lee", edges=[0, 1, 2], bandwidth=0.05)
PLANE = alignment_uniformity.Config(task="lee")
HOSTILE = '</svg><script>alert("x")</script> $\\frac{1$ & <b>'


def history(losses, dev=None, run="simcse.mini.wiki", seed=1):
    steps = range(1, len(losses) + 1)
    columns = [steps, losses, losses, losses, dev or [None] * len(losses)]
    return RunTable(run, seed, pa.table(columns, names=HISTORY.names).cast(HISTORY))


def similarities(gold, cosine, run="simcse.mini.wiki", seed=1, task="lee"):
    table = pa.table([[task] * len(gold), [""] * len(gold), gold, cosine], names=SIMILARITIES.names)
    return RunTable(run, seed, table.cast(SIMILARITIES))


def geometry(run, seed, alignment, uniformity):
    measured = {"alignment": alignment, "uniformity": uniformity}
    rows = [
        {
            "run": run, "seed": seed, "suite": "geometry", "task": "lee", "aggregation": "",
            "metric": metric, "value": value, "n": 9, "note": "lee, score > 4",
        }
        for metric, value in measured.items()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=SCORES)


def svg_of(draw, points, request, title="Title", footnotes=()):
    with figure_style():
        figure = draw(points, request._replace(title=title, footnotes=footnotes))
        return to_svg(figure, "figure", title, "What it shows.")


def texts(svg):
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


# Learning curves


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=200), st.integers(2, 50))
def test_blocks_cover_every_step_once(losses, blocks):
    found = curves([history(losses)], learning_curves.Config(loss_blocks=blocks))
    assert len(found) == min(blocks, len(losses))
    sizes = [len(block) for block in np.array_split(losses, len(found))]
    assert np.average(found["value"].to_numpy(), weights=sizes) == pytest.approx(np.mean(losses))
    assert np.average(found["step"].to_numpy(), weights=sizes) == pytest.approx((len(losses) + 1) / 2)


@pytest.mark.parametrize(
    ("steps", "said"), [(10, "every step."), (12, "means of blocks of 1 to 2 steps."), (40, "of 4 steps.")]
)
def test_the_figure_says_how_the_loss_was_averaged(steps, said):
    data = curves([history([1.0] * steps)], learning_curves.Config(loss_blocks=10))
    svg = svg_of(learning_curves.draw, data, CURVES)
    assert any(text.startswith("One seed. Loss: ") and said in text for text in texts(svg))


def test_runs_of_different_lengths_are_all_in_what_is_said_of_the_blocks():
    cases = [((10, 40), "1 to 4 steps."), ((1, 40), "1 to 4 steps."), ((40, 30), "3 to 4 steps.")]
    for lengths, said in cases:
        histories = [history([1.0] * steps, run=f"a{steps}.mini") for steps in lengths]
        data = curves(histories, learning_curves.Config(loss_blocks=10))
        svg = svg_of(learning_curves.draw, data, CURVES)
        assert any(f"Loss: means of blocks of {said}" in text for text in texts(svg)), lengths


def test_development_scores_are_drawn_where_they_were_measured():
    found = curves([history([3, 2, 1, 1], [None, 0.5, None, 0.7])], learning_curves.Config(loss_blocks=2))
    dev = found.filter(pc.equal(found["metric"], "dev_score"))
    assert (dev["step"].to_pylist(), dev["value"].to_pylist()) == ([2, 4], [0.5, 0.7])


def test_a_score_that_was_measured_once_is_a_diamond_and_said_to_be_one():
    for scores, said in (([None, 0.5], True), ([0.4, 0.5], False)):
        found = curves([history([3, 2], scores)], learning_curves.Config(loss_blocks=2))
        svg = svg_of(learning_curves.draw, found, CURVES)
        assert any("Diamonds: measured at one step only." in text for text in texts(svg)) == said


def test_many_runs_each_keep_a_name_that_covers_no_other():
    histories = [
        history(np.linspace(3, 1, 20), [0.7] * 20, f"method{n}.mini.wiki", seed)
        for n in range(20)
        for seed in (1, 2)
    ]
    data = curves(histories, learning_curves.Config(loss_blocks=10))
    svg = svg_of(learning_curves.draw, data, CURVES)
    assert all(texts(svg).count(f"method{n}") == 2 for n in range(20))
    heights = {}
    for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        if node.text.startswith("method"):
            x, y = re.search(r"translate\(([\d.]+) ([\d.]+)\)|^", node.get("transform", "")).groups() or (
                0,
                0,
            )
            heights.setdefault(x or node.get("x"), []).append(float(y or node.get("y")))
    assert sum(map(len, heights.values())) == 40
    gaps = [np.diff(sorted(ys)) for ys in heights.values() if len(ys) > 1]
    assert gaps and min(map(np.min, gaps)) > 7  # points of the names' size


# Densities


def test_a_density_integrates_to_one_even_at_the_end_of_the_scale():
    grid = np.linspace(-1, 1, 2001)
    for values in ([0.99, 1.0, 0.98], [-1.0, -0.97], [0.1, 0.4]):
        assert np.trapezoid(kernel_density(np.array(values), grid, 0.05), grid) == pytest.approx(1, abs=2e-3)


def test_a_density_is_the_kernel_written_out():
    expected = np.mean([np.exp(-((0.3 - v) ** 2) / 0.005) for v in (0.2, 0.5)]) / (0.05 * np.sqrt(2 * np.pi))
    assert kernel_density(np.array([0.2, 0.5]), np.array([0.3]), 0.05)[0] == pytest.approx(expected)


def test_every_pair_falls_into_one_group_edges_included():
    gold = [0.0, 0.5, 1.0, 1.0001, 2.0]
    found = densities([similarities(gold, [0.1, 0.2, 0.3, 0.4, 0.5])], DENSITY)
    assert found.schema.equals(cosine_density.COLUMNS)
    groups = {row["lower"]: row["pairs"] for row in found.to_pylist()}
    assert groups == {0: 3, 1: 2}


def test_seeds_are_pooled_and_pairs_counted_once():
    both = densities([similarities([0.5, 1.5], [0.1, 0.9], seed=s) for s in (1, 2)], DENSITY)
    one = densities([similarities([0.5, 1.5], [0.1, 0.9])], DENSITY)
    assert set(both["pairs"].to_pylist()) == {1}
    assert set(both["seeds"].to_pylist()) == {2}
    np.testing.assert_allclose(both["density"].to_numpy(), one["density"].to_numpy())


def test_a_judgement_outside_the_edges_is_an_error():
    with pytest.raises(ConfigError, match=r"edges: \[0.0, 1.0, 2.0\]; judgements of lee reach from 0 to 2.5"):
        densities([similarities([0, 2.5], [0.1, 0.2])], DENSITY)


def test_an_empty_group_is_shown_as_empty():
    data = densities([similarities([0.5, 0.7], [0.1, 0.2])], DENSITY)
    assert data.filter(pc.is_null(data["density"])).to_pylist()[0]["pairs"] == 0
    svg = svg_of(cosine_density.draw, data, Request(DENSITY))
    assert "1 to 2" in " ".join(texts(svg))


def test_a_task_that_nobody_was_scored_on_says_so():
    data = densities([similarities([0.5], [0.1], task="other")], DENSITY)
    svg = svg_of(cosine_density.draw, data, Request(DENSITY))
    assert "No run of this experiment was scored on this task." in texts(svg)


# Plane


def test_points_are_means_and_sds_over_seeds():
    scores = [geometry("a.mini", s, 0.1 * s, -s) for s in (1, 2, 3)]
    found = plane(scores, Headline("A", {"a.mini": 71.0}), PLANE)
    assert found.schema.equals(alignment_uniformity.COLUMNS)
    point = found.to_pylist()[0]
    assert (point["seeds"], point["score"], point["note"]) == (3, 71.0, "lee, score > 4")
    assert (point["alignment"], point["uniformity"]) == (pytest.approx(0.2), pytest.approx(-2))
    assert (point["alignment_sd"], point["uniformity_sd"]) == (pytest.approx(0.1), pytest.approx(1))


def test_a_run_without_alignment_is_named_below_the_plane():
    scores = [geometry("a.mini", 1, 0.1, -1), geometry("b.mini", 1, None, None)]
    data = plane(scores, Headline("A", {"a.mini": 71.0, "b.mini": 1.0}), PLANE)
    svg = svg_of(partial(draw_plane, heading="A"), data, Request(PLANE))
    assert "Without a point, for want of scores: b.mini." in texts(svg)


def test_gaps_everywhere_give_a_figure_that_says_so():
    data = plane([geometry("a.mini", 1, None, None)], Headline("A", {"a.mini": 1.0}), PLANE)
    svg = svg_of(partial(draw_plane, heading="A"), data, Request(PLANE))
    assert "Alignment and uniformity are gaps for every run." in texts(svg)


def test_a_measurement_that_is_not_there_is_an_error():
    with pytest.raises(ConfigError, match="no scores of stsb"):
        plane([geometry("a.mini", 1, 0.1, -1)], Headline("A", {}), PLANE.model_copy(update={"task": "stsb"}))


# Style


def test_names_leave_out_what_all_runs_share_unless_that_leaves_nothing():
    runs = ["simcse.mini.wiki", "s2sent.mini.wiki"]
    assert list(short_names(runs, Called()).short.values()) == ["simcse", "s2sent"]
    assert short_names(runs, Called()).footnotes == ["Names leave out what all runs share: mini, wiki."]
    for alone in (["simcse.mini"], ["simcse.mini", "simcse.mini.paper"]):
        assert list(short_names(alone, Called()).short.values()) == alone
        assert short_names(alone, Called()).footnotes == []


def test_runs_are_named_in_words_and_a_series_by_what_its_runs_share():
    named = Called(runs={f"simcse.mini.k{k}": ["SimCSE", "MiniLM", f"k{k}"] for k in (1, 2)})
    names = short_names(["simcse.mini.k1", "simcse.mini.k2"], named)
    assert names.short == {"simcse.mini.k1": "k1", "simcse.mini.k2": "k2"}
    assert names.footnotes == ["Names leave out what all runs share: SimCSE, MiniLM."]
    assert named.run("simcse.mini") == "SimCSE, MiniLM" and named.run("simcse.min") == "simcse.min"


def test_runs_that_would_have_one_name_in_words_are_called_by_their_identifiers():
    alike = Called(runs={run: ["SimCSE", "MiniLM"] for run in ("simcse.one", "simcse.two")})
    assert list(short_names([*alike.runs], alike).short.values()) == ["simcse.one", "simcse.two"]


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


# The files


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_checksummed_named_and_prints_every_substitution(finished, name):
    path = finished / f"figures/lab/{name}.svg"
    record = check_model_folder(path.parent)
    assert {path.name, f"{name}.parquet"} <= {*record.files}
    assert len(record.labels) == 2
    shown = " ".join(" ".join(texts(path.read_text())).split())
    assert all(f"Substitution: {label}." in shown for label in record.labels)
    root = ET.fromstring(path.read_text())
    assert root.get("role") == "img"
    spoken = {node.get("id"): node.text for node in root if node.tag.endswith(("title", "desc"))}
    assert all(spoken[name] for name in root.get("aria-labelledby").split())


@pytest.mark.parametrize("name", FIGURES)
def test_every_reference_in_a_figure_leads_to_one_element(finished, name):
    svg = (finished / f"figures/lab/{name}.svg").read_text()
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids)) > 10
    assert all(identifier.startswith(name.replace("_", "-") + "-lab-") for identifier in ids)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= set(ids)
    assert svg.count("currentColor") > 10 and INK not in svg[: svg.rindex("</svg>")]


def test_a_figure_drawn_again_and_again_has_the_same_bytes():
    """Layout by a solver that orders by memory address differs in its last digits, now and then."""
    files = [similarities([0.5, 1.5], [0.1, 0.9], run=f"method{n}.mini") for n in range(4)]
    data = densities(files, DENSITY)
    kept, drawn = [], set()
    for turn in range(12):
        kept.append([bytearray(977) for _ in range(1000 * (turn % 3))])  # other addresses every time
        drawn.add(svg_of(cosine_density.draw, data, Request(DENSITY)))
    assert len(drawn) == 1


def test_hostile_text_stays_text():
    data = curves([history([3, 2, 1], [0.1, 0.2, 0.3])], learning_curves.Config(loss_blocks=10))
    svg = svg_of(learning_curves.draw, data, CURVES, HOSTILE, [HOSTILE])
    root = ET.fromstring(svg)
    assert not [node for node in root.iter() if node.tag.endswith(("script", "}b"))]
    assert " ".join(texts(svg)).count("$\\frac{1$ & <b>") == 2


def test_text_that_looks_like_an_attribute_stays_as_it_is():
    said = f'He said "#tag", id="one", d="1.23456", {INK}'
    data = curves([history([3, 2, 1])], learning_curves.Config(loss_blocks=10))
    svg = svg_of(learning_curves.draw, data, CURVES, said)
    assert said in texts(svg) and said in [node.text for node in ET.fromstring(svg)]
