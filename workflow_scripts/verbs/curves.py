"""Figure of the learning curves of trainings, of one study or several."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workflow_scripts.columns import HISTORY
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.figures.curves import HOW_DRAWN, curves, draw_curves
from workflow_scripts.figures.drawing import figure_style, to_svg
from workflow_scripts.provenance.artefacts import RECORD_FILE, atomic
from workflow_scripts.reporting.records import RunTable, record_of, run_tables
from workflow_scripts.verbs.printing import Answer, PrintedTable
from workflow_scripts.verbs.records import missing_file, record_at

_HISTORY = "history.parquet"
_FORMATS = (".svg", ".pdf", ".png")
_LOSS_BLOCKS = 50
_TITLE = "Training loss and development score"
_DESCRIPTION = (
    "Lines over optimiser steps, one per run: the training loss above, the development score below."
)


def is_training(path: Path) -> bool:
    """Return whether a path, existing or missing, is that of a run, one of its seeds, its model or its history.

    These lie below results/<study>/runs.
    """
    names = path.absolute().parts
    positions = (position for position, name in enumerate(names[:-1]) if name == "runs")
    return any(names[position - 2 : position - 1] == ("results",) for position in positions)


def histories_of(path: Path) -> list[Path]:
    """Return the histories of a run, of one of its seeds, or of a model; none of a run that is not trained.

    Raises:
        DataError: if neither a history nor a model exists.
    """
    folder = path.parent if path.name in (_HISTORY, RECORD_FILE) else path
    folder = folder.parent if folder.name == "model" else folder
    if histories := sorted({*folder.glob(_HISTORY), *folder.glob(f"seed*/{_HISTORY}")}):
        return histories
    if [*folder.glob("model"), *folder.glob("seed*/model")]:
        return []
    target = folder / _HISTORY if folder.name.startswith("seed") else folder / "seed1" / _HISTORY
    raise missing_file(path, "no history of a training", target)


def draw(paths: Iterable[Path], to: Path, labels: Mapping[Path, str]) -> Answer:
    """Draw the learning curves of trainings into a file, and return the points that it shows.

    Args:
        paths: Paths of runs, seeds, models or histories.
        to: The figure; its suffix is the format.
        labels: A distinct name for the folder of each study.

    Raises:
        ConfigError: if the format is unknown.
        DataError: if no path is of a trained run, or a history is missing or damaged.
    """
    if to.suffix not in _FORMATS:
        raise ConfigError(
            f"--to {to}: unknown format '{to.suffix}'. Name a file that ends in {' or '.join(_FORMATS)}."
        )
    by_path = {path: histories_of(path) for path in paths}
    histories = [*dict.fromkeys(history for of_path in by_path.values() for history in of_path)]
    untrained = ", ".join(str(path) for path, of_path in by_path.items() if not of_path)
    if not histories:
        raise DataError(f"{untrained}: not trained, so without a learning curve. Name a run that is trained.")
    for history in histories:
        record_at(history)
    points = curves(_named(histories, labels), _LOSS_BLOCKS)
    with figure_style():
        picture = draw_curves(points)
        svg = to_svg(picture, "learning-curves", _TITLE, _DESCRIPTION, [HOW_DRAWN])
        with atomic(to) as temporary:
            if to.suffix == ".svg":
                # figures of the page have no background of their own
                white = 'role="img" style="background: white"'
                temporary.write_text(svg.replace('role="img"', white, 1), "utf-8")
            else:  # with the title and notes that to_svg has added
                picture.savefig(
                    temporary, format=to.suffix[1:], bbox_inches="tight", dpi=200, facecolor="white"
                )
    runs = ", ".join(points["run"].unique())
    lines = [f"not trained, so without a learning curve: {untrained}"] if untrained else []
    return Answer(
        f"{to}: {len(histories)} trainings of {runs}",
        parts=[PrintedTable("points", points.to_dict("records"), shown=()), *lines],
    )


def _named(histories: Sequence[Path], labels: Mapping[Path, str]) -> list[RunTable]:
    """Read histories, each with the name of its run, and of its study if several have such a run."""
    tables = [*run_tables(histories, HISTORY)]
    studies = [study_of(history) for history in histories]
    names = [names_in(study).get(table.run, table.run) for study, table in zip(studies, tables, strict=True)]
    of_name = {
        name: {study for study, other in zip(studies, names, strict=True) if other == name} for name in names
    }
    return [
        table._replace(run=f"{name} ({labels[study]})" if len(of_name[name]) > 1 else name)
        for table, name, study in zip(tables, names, studies, strict=True)
    ]


def study_of(history: Path) -> Path:
    """Return the folder of the study of a history, results/<study>/runs/<run>/seed<seed>/history.parquet."""
    return history.absolute().parents[3]


def names_in(study: Path) -> dict[str, str]:
    """Return the display names of a study's runs, as in its tables."""
    tables = (record_of(table).settings for table in sorted(study.glob("tables/*.parquet")))
    rows = (row for settings in tables for row in settings.get("experiment", {}).get("rows", ()))
    return {row["run"]: row["name"] for row in rows}
