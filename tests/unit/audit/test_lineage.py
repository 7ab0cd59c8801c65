"""Everything a file was made from, and everything made from it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.audit.conftest import HUB, PACKAGE, RUNS, STUDY
from workflow_scripts.audit.lineage import lineage
from workflow_scripts.errors import DataError


def paths(found):
    return {one.path for one in found}


def test_upstream_goes_down_to_the_sources_and_downstream_up_to_the_report(root):
    found = lineage(f"{STUDY}/scores/sts/suite/plain/seed1.parquet", root)
    assert paths(found.upstream) == {
        f"{STUDY}/runs/plain/seed1/model",
        f"{STUDY}/encoders/minilm",
        f"{STUDY}/corpora/wiki/train.parquet",
        f"{STUDY}/datasets/stsb.parquet",
        "resources/prompt.txt",
        HUB.path,
        PACKAGE.path,
    }
    ends = {f"{STUDY}/{name}" for name in ("tables/main.parquet", "figures/main.svg", "report.html")}
    assert paths(found.downstream) == ends
    assert not found.broken
    assert json.dumps(found.as_data())


def test_a_source_leads_to_everything_made_from_it(root):
    found = lineage(HUB.path, root)
    assert f"{STUDY}/datasets/stsb.parquet" in paths(found.downstream)
    assert len(found.downstream) == 1 + len(RUNS) + 3
    edited = lineage("resources/prompt.txt", root)
    assert f"{STUDY}/corpora/wiki/train.parquet" in paths(edited.downstream)
    assert edited.upstream == []


def test_a_file_of_a_model_folder_stands_for_the_folder(root):
    assert (
        lineage(f"{STUDY}/runs/plain/seed1/model/model.safetensors", root).path
        == f"{STUDY}/runs/plain/seed1/model"
    )


def test_a_missing_or_renewed_ancestor_breaks_the_chain(root, study):
    study.write_dataset(score=4.5)
    found = lineage(f"{STUDY}/tables/main.parquet", root)
    assert {one.path: one.state for one in found.upstream}[
        f"{STUDY}/datasets/stsb.parquet"
    ] == "rebuilt since"
    assert found.broken
    shutil.rmtree(Path(STUDY, "encoders/minilm"))
    assert lineage(f"{STUDY}/runs/plain/seed1/history.parquet", root).broken


@pytest.mark.parametrize("name", [f"{STUDY}/typo.parquet", "hub:owner/other@1", "README.md"])
def test_a_name_that_nothing_knows_is_an_error(root, name):
    with pytest.raises(DataError, match=r"not an artefact|no record"):
        lineage(name, root)
