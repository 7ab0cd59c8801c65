"""Rows of datasets and corpora, as far as they are known before anything is read."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from workflow_scripts.data.planned import ON_HUB
from workflow_scripts.errors import SemblanceError
from workflow_scripts.settings.datasets import Dataset

Config = Mapping[str, Any]

_SMALL = 200_000
"""Bytes of local files that are read to count their rows; larger ones fill a batch."""


class Rows:
    """Numbers of rows; each is looked up once."""

    def __init__(self, config: Config, data_root: Path | None) -> None:
        self._config = config
        self._data_root = data_root
        self.of = cache(self._of_dataset)
        self.most = cache(self._of_corpus)

    def _of_dataset(self, dataset: str) -> int | None:
        """Rows that a dataset has by its contract, or in its small local files; None where nobody can say."""
        block = self._config["datasets"][dataset]
        promised: int | None = block["contract"].get("rows")
        source = min(block["sources"], key=lambda source: source["kind"] in ON_HUB)
        if promised is not None or source["kind"] != "local" or self._data_root is None:
            return promised
        files = [self._data_root / file["path"] for file in source["files"].values()]
        if not all(file.is_file() for file in files) or sum(file.stat().st_size for file in files) > _SMALL:
            return None
        from workflow_scripts.data.sources import load  # slow to import, and mostly not needed

        with suppress(SemblanceError):  # which the job that reads it will say
            read = {key: value for key, value in block.items() if key != "about"} | {"sources": [source]}
            return len(load(dataset, Dataset.parse(read, dataset), self._data_root)[0].table)
        return None

    def _of_corpus(self, corpus: str) -> int | None:
        """Rows that a corpus has at most; None where nobody can say, or none are left."""
        block = self._config["corpora"][corpus]
        if block.get("also"):
            return None
        trip = block.get("round_trip")
        if trip:
            rows, limit = self.most(trip["corpus"]), trip["max_sentences"]
        else:
            rows, limit = self.of(block["dataset"]), block["max_sentences"]
            rows = rows and max(0, rows - block["dev_sentences"])
        most = min(filter(None, (rows, limit)), default=None)
        return 2 * most if most and trip and trip["form"] == "expanded" else most

    def findings(self) -> Iterator[str]:
        """Corpora that would hold out all that they have."""
        for name, block in self._config["corpora"].items():
            held_out = block.get("dev_sentences", 0)
            rows = self.of(block["dataset"]) if held_out else None
            if rows is not None and held_out >= rows:
                found = f"{held_out}; {block['dataset']} has {rows} sentences"
                yield f"corpora.{name}.dev_sentences: {found}. Lower it, or take more text."
