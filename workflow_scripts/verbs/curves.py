"""Figure of the learning curves of trainings, of one study or several."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from workflow_scripts.columns import HISTORY
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.figures.curves import HOW_DRAWN, curves, draw_curves, learning_curves
from workflow_scripts.figures.drawing import figure_style, to_svg
from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.reporting.records import RunTable, run_tables
from workflow_scripts.verbs.printing import Answer, PrintedTable
from workflow_scripts.verbs.records import missing_file, record_at, relative_name

_HISTORY = "history.parquet"
_FORMATS = (".svg", ".pdf", ".png")
_LOSS_BLOCKS = 50


def training_folder(path: Path) -> Path | None:
    """Return the folder of the run, or of one of its seeds, that a path belongs to; None if it belongs to none.

    These folders are results/<study>/runs/<run> and its seed<seed>; neither they nor the path need exist.
    """
    names = path.absolute().parts
    for position, name in enumerate(names[:-1]):
        if name == "runs" and names[:position][-2:-1] == ("results",):
            run, *below = names[position + 1 :]
            seed = [below[0]] if below and below[0].startswith("seed") else []
            return Path(relative_name(Path(*names[: position + 1], run, *seed)))
    return None


def histories_of(folder: Path) -> list[Path]:
    """Return the histories of a run, or of one of its seeds; none of a run that is not trained.

    Raises:
        DataError: if neither a history nor a model exists.
    """
    if histories := sorted({*folder.glob(_HISTORY), *folder.glob(f"seed*/{_HISTORY}")}):
        return histories
    if [*folder.glob("model"), *folder.glob("seed*/model")]:
        return []
    target = folder / _HISTORY if folder.name.startswith("seed") else folder / "seed1" / _HISTORY
    raise missing_file(folder, "no history of a training", target)


def draw(folders: Iterable[Path], to: Path, labels: Mapping[Path, str]) -> Answer:
    """Draw the learning curves of trainings into a file, and return the points that it shows.

    Args:
        folders: Folders of runs, or of their seeds.
        to: The figure; its suffix is the format.
        labels: A distinct name for the folder of each study.

    Raises:
        ConfigError: if the format is unknown.
        DataError: if no folder is of a trained run, or a history is missing or damaged.
    """
    if to.suffix not in _FORMATS:
        raise ConfigError(
            f"--to {to}: unknown format '{to.suffix}'. Name a file that ends in {' or '.join(_FORMATS)}."
        )
    by_folder = {folder: histories_of(folder) for folder in folders}
    histories = [*dict.fromkeys(history for of_folder in by_folder.values() for history in of_folder)]
    untrained = ", ".join(str(folder) for folder, of_folder in by_folder.items() if not of_folder)
    if not histories:
        raise DataError(f"{untrained}: not trained, so without a learning curve. Name a run that is trained.")
    for history in histories:
        record_at(history)
    points = curves(_named(histories, labels), _LOSS_BLOCKS)
    with figure_style():
        picture = draw_curves(points)
        svg = to_svg(
            picture, "learning-curves", learning_curves.short_title, learning_curves.description, [HOW_DRAWN]
        )
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
        f"{to}: {len(histories)} training{'s' if len(histories) > 1 else ''} of {runs}",
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
    records = filter(None, map(record_at, sorted(study.glob("tables/*.parquet"))))
    rows = (row for record in records for row in record.settings.get("experiment", {}).get("rows", ()))
    return {row["run"]: row["name"] for row in rows}
