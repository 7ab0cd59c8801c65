"""Lines over optimiser steps, and words by frequency."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, shadow_of, shown
from workflow_scripts.columns import HISTORY, METRICS, WORD_COUNTS
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.curves import draw_curves
from workflow_scripts.provenance.closure import ROOT


def metrics(steps):
    """A threshold that falls from 1 to 0.273, and 20 dimensions below it."""
    path = 0.273 + 0.727 * np.exp(-np.arange(steps) / 50)
    rows = [
        {"step": step + 1, "metric": name, "value": value}
        for step in range(steps)
        for name, value in (("threshold", path[step]), ("reduced_dimensions", 20.0))
    ]
    return pa.Table.from_pylist(rows, schema=METRICS)


@pytest.fixture
def drawn(stored):
    """Draws a history with this many blocks of losses, or the metrics of a run with a threshold."""

    def draw(table, blocks=10):
        files = [stored(table, run="simcse.mini.wiki", seed=1)]
        if table.schema.names == METRICS.names:
            return shown("threshold_path", {}, {"metrics": files})
        return shown("learning_curves", {"loss_blocks": blocks}, {"histories": files})

    return draw


def test_losses_are_means_of_blocks(drawn):
    """By hand: blocks of three steps and of two."""
    history = dict(
        zip(HISTORY.names, [range(1, 6), *[[3, 2, 1, 1, 4]] * 3, [None, 0.5, None, 0.7, None]], strict=True)
    )
    points = drawn(pa.table(history).cast(HISTORY), blocks=2).data
    shown = [tuple(row) for row in points[["metric", "step", "value"]].to_numpy()]
    assert shown == [("loss", 2, 2), ("loss", 4.5, 2.5), ("dev_score", 2, 0.5), ("dev_score", 4, 0.7)]


def test_a_shadow_reaches_from_the_lowest_to_the_highest_seed():
    values = {1: (0.1, 0.4), 2: (0.5, 0.6), 3: (0.2, 0.9)}
    points = [
        ("a.b", seed, metric, step, value)
        for metric in ("loss", "dev_score")
        for seed, both in values.items()
        for step, value in zip((10, 20), both, strict=True)
    ]
    drawn = draw_curves(pd.DataFrame(points, columns=["run", "seed", "metric", "step", "value"]))
    assert len(drawn.axes) == 2
    for axes in drawn.axes:
        assert shadow_of(axes) == {10: (0.1, 0.5), 20: (0.4, 0.9)}


def test_a_long_path_is_thinned_out_between_its_ends(drawn):
    points = drawn(metrics(5000)).data
    path = points[points["metric"] == "threshold"]
    assert len(path) == 200
    assert path["value"].iloc[0] == pytest.approx(1)
    assert path["step"].iloc[[0, -1]].tolist() == [1, 5000]
    assert len(drawn(metrics(7)).data) == 14


def test_panels_name_what_they_measure_in_words(drawn):
    """No panel is named after a column or a metric of the files."""
    history = pa.Table.from_pylist([dict.fromkeys(HISTORY.names, 1)], schema=HISTORY)
    curves, path = drawn(history), drawn(metrics(5))
    titles = [(axes.get_title(), axes.get_ylabel()) for axes in curves.picture.axes]
    assert titles == [("Training loss", "loss"), ("Development score", "Spearman correlation")]
    run = "simcse.mini.wiki"
    assert [(axes.get_title(), axes.get_ylabel()) for axes in path.picture.axes] == [
        (run, "threshold c"),
        (run, "dimensions below c"),
    ]
    assert [text for text in (*curves.texts, *path.texts) if "_" in text] == []


# Words by frequency

PRINTED = ROOT / "resources/published/three_r_table5.csv"
WORDS = pa.Table.from_pylist(
    [
        dict.fromkeys(WORD_COUNTS.names)
        | {"rank": rank, "word": f"w{rank}", "count": 2000 - rank, "change_rate": rank / 1000, "peak": False}
        for rank in range(1, 401)
    ],
    schema=WORD_COUNTS,
)


def test_words_of_the_paper_and_the_corpus_are_joined_by_rank(stored):
    points, picture, found = shown(
        "word_frequencies", {"words": 400}, {"words": [stored(WORDS)], "printed": [PRINTED]}
    )
    assert len(points) == 400
    rows = {
        row.pop("rank"): [*row.values()]
        for row in points.astype(object).where(points.notna(), None).to_dict("records")
    }
    assert rows[103] == ["w103", 1897, 0.103, "second", 13874, 0.0105]
    assert rows[197] == ["w197", 1803, 0.197, "word not legible", 8143, None]
    assert rows[99] == ["w99", 1901, 0.099, None, None, None]
    for axes, name in zip(picture.axes, ("count", "change_rate"), strict=True):
        ours, theirs = (line.get_xydata() for line in axes.lines)
        np.testing.assert_array_equal(ours, points[["rank", name]])
        np.testing.assert_array_equal(theirs, points[["rank", f"printed_{name}"]].astype(float))
    assert {"3R, Table 5", "10000", FOOTNOTE} <= {*found}


def test_a_grid_of_several_corpora_is_refused(tmp_path):
    files = [tmp_path / f"corpora/{corpus}/words.parquet" for corpus in ("wiki", "nli")]
    with pytest.raises(
        ConfigError, match=r"word_frequencies: .* train on wiki and nli, .* Remove word_frequencies"
    ):
        shown("word_frequencies", {"words": 200}, {"words": files, "printed": [PRINTED]})
