"""config/datasets.yaml: every block parses, and every local one is what it says (O-01, O-03)."""

import os
from pathlib import Path

import pyarrow.compute as pc
import pytest
import yaml

from workflow_scripts.data.datasets import load
from workflow_scripts.errors import MissingError
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.sources import DatasetBlock, FileSource, HubSource

DATA = os.environ.get("SEMBLANCE_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="SEMBLANCE_DATA is not set: no dataset to read")

BLOCKS = yaml.safe_load((ROOT / "config/datasets.yaml").read_text("utf-8"))["datasets"]
DATASETS = {name: DatasetBlock.parse(block, f"datasets.{name}") for name, block in BLOCKS.items()}
LOCAL = {
    name: source
    for name, dataset in DATASETS.items()
    for source in dataset.sources
    if isinstance(source, FileSource) and source.kind == "local"
}
NOT_HERE = {  # parts that the folder of local data lacks
    "sts16",
    "sick_r_test",
    "sick_r_all",
    "sick_e",
    "sick_graded",
    "trec",
    "str",
    "stackoverflow",
    "tweet",
}


def test_hub_revisions_are_those_that_mteb_pins():
    import mteb

    tasks = ["STS12", "STS13", "STS14", "STS15", "STS16", "STS17", "STS22.v2", "STSBenchmark", "SICK-R"]
    pinned = {
        task["path"]: task["revision"] for task in (mteb.get_task(name).metadata.dataset for name in tasks)
    }
    ours = {
        (s.repository, s.revision) for d in DATASETS.values() for s in d.sources if isinstance(s, HubSource)
    }
    assert {pair for pair in ours if pair[0].startswith("mteb/")} == set(pinned.items())


@needs_data
@pytest.mark.parametrize("name", LOCAL)
def test_every_local_dataset_keeps_its_contract_or_is_a_gap(name):
    """O-01, O-02 and O-03 on the real files: `load` refuses rows, groups, classes or scores that differ."""
    offline = DATASETS[name].model_copy(update={"sources": [LOCAL[name]]})
    if name in NOT_HERE:
        with pytest.raises(MissingError):
            load(name, offline, Path(DATA))
        return
    parsed, origin = load(name, offline, Path(DATA))
    assert set(origin) == set(LOCAL[name].files)
    text = "sentence1" if DATASETS[name].form == "pairs" else "text1"
    blank = pc.sum(pc.equal(pc.utf8_trim_whitespace(parsed.table[text]), "")).as_py()
    assert blank == parsed.dropped["kept: blank line"]


@pytest.mark.parametrize(
    ("name", "order"),
    [("mr", ["rt-polarity.neg", "rt-polarity.pos"]), ("cr", ["custrev.neg", "custrev.pos"]),
     ("mpqa", ["mpqa.neg", "mpqa.pos"]), ("subj", ["subj.subjective", "subj.objective"])],
)  # fmt: skip
def test_classes_of_two_sort_as_senteval_numbers_them(name, order):
    """Rows are sorted by length and label before they are dealt to folds, so that the numbers decide the folds."""
    (files,) = [source["files"] for source in BLOCKS[name]["sources"] if source["reader"] == "class_files"]
    assert [files[label]["path"].rsplit("/", 1)[-1] for label in sorted(files)] == order
