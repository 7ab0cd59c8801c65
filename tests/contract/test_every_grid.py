"""Every grid of the repository makes its table, and the figures that are drawn from it, of made-up scores."""

import functools
from fnmatch import fnmatchcase
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import shown, stored
from tests.support.snakemake_plans import DEMO, ROOT, grids_in, merged_config, settings_with
from workflow_scripts.columns import METRICS
from workflow_scripts.data.printed import cell_numbers
from workflow_scripts.evaluation.base import Score, score_table
from workflow_scripts.reporting.records import RunTable
from workflow_scripts.reporting.tables import build
from workflow_scripts.settings.grids import Column, GainColumn, PathColumn, is_measured

__all__ = ["stored"]
STUDIES = (
    "config/config.yaml",
    "config/extraction_simcse.yaml",
    "config/headline.yaml",
    "config/minilm.yaml",
    "config/mpnet.yaml",
    DEMO,
)


@functools.cache
def study(overlay):
    return settings_with(overlay), grids_in(merged_config(overlay))


GRIDS = {name: overlay for overlay in STUDIES for name in study(overlay)[1]}


def test_no_grid_is_left_out():
    assert sorted(GRIDS) == sorted(path.stem for path in (ROOT / "config/experiments").glob("*.yaml"))


def cells_of(settings, grid):
    """Suite to the tasks, aggregations and metrics of its score files; where there are many, those of columns."""
    asked = {column.aggregation for column in grid.experiment.columns if isinstance(column, Column)}
    for kind, suites in grid.suites.items():
        for suite in suites:
            block = settings.suites.by_kind[kind][suite]
            files = [block.written(settings.mteb.lists), block.timed()]
            yield (
                suite,
                [
                    (task, aggregation, metric)
                    for tasks in files
                    for task, cells in tasks.items()
                    for pattern, metric in sorted(cells)
                    for aggregation in ([pattern] if "*" not in pattern else sorted(asked))
                    if fnmatchcase(aggregation, pattern)
                ],
            )


def made_up_scores(settings, grid):
    draw = np.random.default_rng(0)
    for suite, cells in cells_of(settings, grid):
        for name, seed in trainings(grid):
            values = draw.uniform(0.4, 0.6, size=len(cells))
            scores = [Score(*cell, float(value), 100) for cell, value in zip(cells, values, strict=True)]
            yield score_table(scores, run=name, seed=str(seed), suite=suite), []


def made_up_histories(grid):
    """Metrics of every run at the steps that columns show."""
    paths = [column for column in grid.experiment.columns if isinstance(column, PathColumn)]
    rows = [{"step": path.step, "metric": path.path_of, "value": 0.5} for path in paths]
    table = pa.Table.from_pylist(rows, schema=METRICS)
    return [RunTable(name, seed, table) for name, seed in trainings(grid)]


def trainings(grid):
    return [(name, seed) for name, row in grid.expanded.items() for seed in row.run.seeds[:2]]


@functools.cache
def made(name):
    """The configuration, the grid, its repeatable cells and its times as tables, and the made-up scores."""
    settings, grids = study(GRIDS[name])
    grid = grids[name]
    experiment = grid.experiment
    files, histories = [*made_up_scores(settings, grid)], made_up_histories(grid)
    contents = {
        table: (ROOT / f"resources/published/{table}.csv").read_bytes() for table in experiment.published
    }
    published = cell_numbers(contents, experiment.cells(), name, grid.printed_in)
    tables = [
        build(experiment.part(measured=measured), files, published, settings.significance, name, histories)
        for measured in (False, True)
    ]
    return settings, grid, tables, [scores for scores, _ in files]


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_makes_its_table(name):
    _, grid, (repeatable, times), _ = made(name)
    rows, columns = [*repeatable.to_pylist(), *times.to_pylist()], grid.experiment.columns
    assert len(rows) == len(grid.expanded) * len(columns)
    assert {row["heading"] for row in times.to_pylist()} == {
        one.heading for one in columns if is_measured(one)
    }
    gains = {column.heading for column in columns if isinstance(column, GainColumn)}
    baselines = {run for run, row in grid.expanded.items() if row.baseline is None}
    assert {(row["run"], row["heading"]) for row in rows if row["mean"] is None} == {
        *product(baselines, gains)
    }


DRAWN = [
    pytest.param(grid, figure, marks=[] if overlay == DEMO else [pytest.mark.slow])
    for grid, overlay in GRIDS.items()
    for figure in ("alignment_uniformity", "scatter", "sweep")
    if getattr(study(overlay)[1][grid], figure)
]


@pytest.mark.parametrize(("name", "figure"), DRAWN)
def test_figures_of_a_grid_are_drawn(stored, name, figure):
    _, grid, (table, _), scores = made(name)
    runs = grid.expanded
    asked = {"experiment": grid.experiment.model_dump(mode="json")}
    read = scores if figure == "alignment_uniformity" else []
    files = {"table": [stored(table, asked)], "scores": [stored(one) for one in read]}
    points = shown(figure, getattr(grid, figure).model_dump(), files).data
    if figure != "sweep":  # which has swept runs only
        assert set(points["run"]) == set(runs)
        return
    assert len(points)
    assert not points["mean"].isna().any()
