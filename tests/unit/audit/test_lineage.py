"""Everything a file was made from, and everything made from it."""

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.audit.conftest import HUB, PACKAGE, RUNS, STUDY, flip_a_byte
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


SCORE = f"{STUDY}/scores/sts/suite/plain/seed1.parquet"
MODEL = f"{STUDY}/runs/plain/seed1/model"


@pytest.mark.parametrize(("file", "artefact"), [(SCORE, SCORE), (f"{MODEL}/model.safetensors", MODEL)])
def test_a_changed_byte_breaks_the_chain_and_every_chain_above_it(root, file, artefact):
    assert not lineage(f"{STUDY}/tables/main.parquet", root).broken
    flip_a_byte(file)
    above = lineage(f"{STUDY}/tables/main.parquet", root)
    assert [one.path for one in above.upstream if one.state == "damaged"] == [artefact]
    itself = lineage(file, root)
    assert above.broken and itself.broken and itself.state == "damaged"


def test_a_file_cut_short_is_damaged_though_its_record_is_gone(root):
    Path(SCORE).write_bytes(Path(SCORE).read_bytes()[:100])
    assert lineage(SCORE, root).state == "damaged"


def test_a_model_without_the_weights_that_were_dropped_is_whole(root, study):
    weights = Path(MODEL, "model.safetensors")
    study.write_dropped("plain", weights)
    weights.unlink()
    assert lineage(SCORE, root).broken is lineage(MODEL, root).broken is False
    flip_a_byte(f"{MODEL}/1_Pooling/config.json")
    assert lineage(SCORE, root).broken and lineage(MODEL, root).broken


@pytest.mark.parametrize("name", [f"{STUDY}/typo.parquet", "hub:owner/other@1", "README.md"])
def test_a_name_that_nothing_knows_is_an_error(root, name):
    with pytest.raises(DataError, match=r"not an artefact|no record"):
        lineage(name, root)
