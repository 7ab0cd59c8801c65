"""Caveats about the development set, which selects checkpoints, before a job reads it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from workflow_scripts.graph.study import Study
from workflow_scripts.settings.sources import Dataset, HubFiles, HubSource
from workflow_scripts.settings.training import FEWEST_PAIRS

_LONGEST_BYTES = 1_000_000
"""Maximum size of files whose lines are counted, in bytes; larger files certainly have enough."""
_PLAIN = (".txt", ".tsv", ".csv", ".jsonl")
"""Suffixes of files with at most one row per line."""
_BY_LINE = ("lines", "delimited")
"""Readers that return at most one row per line."""


def development_caveats(study: Study) -> Iterator[str]:
    """Yield a line if the development set is also a test set, and one if it is small; only jobs count exactly."""
    name = study.settings.development.dataset
    if not name or not study.trainings:
        return
    subject = f"development.dataset: {name} selects checkpoints"
    if scored := [grid.name for grid in study.grids.values() if name in grid.tasks.values()]:
        yield (
            f"{subject} and is scored by {', '.join(scored)}; these scores carry a note. "
            "Choose pairs that no table scores."
        )
    pairs = _pairs_at_most(study, name)
    if pairs is not None and pairs < FEWEST_PAIRS:
        yield (
            f"{subject}, but has at most {pairs} pairs, so chance decides. "
            f"Choose a dataset with {FEWEST_PAIRS} or more."
        )


def _pairs_at_most(study: Study, dataset: str) -> int | None:
    """Return a dataset's maximum number of pairs: the rows of its file, its contract's, or the lines of its files."""
    import pyarrow as pa  # slow to import, and few studies need it
    import pyarrow.parquet as pq

    file, block = Path(study.folder, "datasets", f"{dataset}.parquet"), study.settings.datasets[dataset]
    # The file may be missing or damaged; the jobs that read it report damage.
    with suppress(OSError, pa.ArrowInvalid):
        return int(pq.read_metadata(file).num_rows)
    return block.contract.rows or rows_at_most(block, study.data_root)


def has_neighbours(dataset: Dataset) -> bool:
    """Return whether a document of a dataset may have two sentences, which give a pair of a development set.

    Triples have no documents, each line of reader ``lines`` is one, and rows of the Hub have those of a column.
    """
    of_hub = {"document", "position"}
    return dataset.form == "sentences" and any(
        of_hub <= source.columns.keys() if isinstance(source, HubSource) else source.reader != "lines"
        for source in dataset.sources
    )


def rows_at_most(block: Dataset, data_root: Path | None) -> int | None:
    """Return the number of lines in a dataset's small files, if its reader returns a row for each; else None."""
    for source in block.sources:
        if isinstance(source, HubFiles | HubSource):
            continue
        root = source.root(data_root)
        files = [root / file.path for file in source.files.values()] if root else []
        if files and all(file.is_file() for file in files):
            plain = source.reader in _BY_LINE and all(file.suffix in _PLAIN for file in files)
            small = all(file.stat().st_size < _LONGEST_BYTES for file in files)
            return sum(len(file.read_bytes().splitlines()) for file in files) if plain and small else None
    return None
