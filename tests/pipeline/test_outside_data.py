"""A file that appears, changes or has a better source brings back what depends on it; one that vanishes nothing."""

import hashlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from tests.support.local_datasets import PAIR_COLUMNS, block_of, source_of
from tests.support.snakemake_plans import copy_tree, holding, outputs, planned_jobs, snakemake
from workflow_scripts.columns import PAIRS
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.provenance.record import Input, sha256_of

STUDY = "config/toy.yaml"
TOYS = ("absent", "read", "online")
"""A gap, a set that was read from the second of its files, and one that was not reached on the Hub."""
READ_ANEW = {"read_dataset": 1, "evaluate_sts": 1, "make_table": 1, "write_report": 1}
"""Of any of them; each is a suite of its own."""

local = partial(source_of, columns=PAIR_COLUMNS)
block = partial(block_of, "pairs", optional=True)
HUB = {
    "kind": "hub", "repository": "team/toy", "revision": "0" * 40, "splits": ["test"],
    "columns": {"sentence1": "a", "sentence2": "b", "score": "c"},
}  # fmt: skip
DATASETS = {
    "absent": block(local("absent.tsv")),
    "read": block(local("better.tsv"), local("read.tsv")),
    "online": block(local("online.tsv"), HUB),
}


def study(data: Path) -> dict:
    """One encoder as it is, on three small sets of its own."""
    nothing = {"sts": None, "clustering": None, "transfer": None}
    return {
        "name": "toy",
        "experiments": ["toy"],
        "data_root": str(data),
        "contamination": None,
        "datasets": DATASETS,
        "suites": {"sts": {name: {"datasets": [name], "max_tokens": 64} for name in TOYS}},
        "extraction": {"suites": nothing, "show": {"statistics": [], "tables": [], "figures": []}},
    }


def grid() -> dict:
    column = {"aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
    return {
        "title": "Toys",
        "source": "test",
        "seeds": [0],
        "baseline": None,
        "suites": {"sts": list(TOYS)},
        "runs": [{"method": "frozen_avg", "encoder": "minilm"}],
        "columns": [{"heading": name, "suite": name, "task": name} | column for name in TOYS],
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The study as if it had run without a network, with real records of what was read."""
    folder = copy_tree(tmp_path_factory.mktemp("outside"))
    (folder / "data").mkdir()
    (folder / "data/read.tsv").write_text("read")
    (folder / STUDY).write_text(yaml.safe_dump(study(folder / "data")))
    (folder / "config/experiments/toy.yaml").write_text(yaml.safe_dump(grid()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        for path in outputs(folder, STUDY):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(path)
        given = Input(path="local:read.tsv", sha256=sha256_of(folder / "data/read.tsv"))
        for name, foreign in (("absent", {}), ("read", {"pairs": given}), ("online", {})):
            table = folder / f"results/toy/datasets/{name}.parquet"
            record = job_record("read_dataset", settings={}, inputs={}, outputs=[table], external=foreign)
            write_table(table, pa.Table.from_pylist([], schema=PAIRS), record)
        touched = snakemake(folder, "--touch", "--forceall", "--cores", "1", "--configfile", STUDY)
        assert touched[0] == 0, touched[1]
        yield folder


def pinned(sha256: str) -> dict:
    """The set that was read, with a hash."""
    read = local("read.tsv")
    read["files"]["all"]["sha256"] = sha256
    return {"datasets": {"read": block(local("better.tsv"), read)}}


MORE = {"datasets": {"read": block(local("more.tsv"), *DATASETS["read"]["sources"])}}
CHANGES = {
    "a file of a gap appears": ("absent.tsv", "new", {}, READ_ANEW),
    "a file of a set that was not reached appears": ("online.tsv", "new", {}, READ_ANEW),
    "a file changes": ("read.tsv", "edited", {}, READ_ANEW),
    "a file is written again as it was": ("read.tsv", "read", {}, {}),
    "a better source appears": ("better.tsv", "better", {}, READ_ANEW),
    "a file vanishes": ("read.tsv", None, {}, {}),
    "a source more that is not there": ("more.tsv", None, MORE, {}),
    "its hash is pinned": ("more.tsv", None, pinned(hashlib.sha256(b"read").hexdigest()), {}),
    "another hash is pinned": ("more.tsv", None, pinned("0" * 64), READ_ANEW),
    "its contract asks for more": (
        "more.tsv",
        None,
        {"datasets": {"read": {"contract": {"min_rows": 2}}}},
        {},
    ),
    "a source more of the same bytes": ("more.tsv", "read", MORE, {}),
    "a source more of other bytes": ("more.tsv", "other", MORE, READ_ANEW),
}


@pytest.mark.parametrize(("file", "text", "overlay", "reruns"), CHANGES.values(), ids=CHANGES)
def test_a_change_outside_reruns_what_depends_on_it(finished, tmp_path, file, text, overlay, reruns):
    (tmp_path / "overlay.yaml").write_text(yaml.safe_dump({"name": "toy"} | overlay))
    with holding(finished / "data" / file, text):
        assert planned_jobs(finished, str(tmp_path / "overlay.yaml"), configfile=STUDY) == reruns


def test_a_disk_that_is_not_mounted_reruns_nothing(finished):
    (finished / "data").rename(finished / "away")
    (finished / "data").mkdir()
    try:
        assert planned_jobs(finished, configfile=STUDY) == {}
    finally:
        (finished / "data").rmdir()
        (finished / "away").rename(finished / "data")
