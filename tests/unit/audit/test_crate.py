"""A study as an RO-Crate, and a model as a folder to share."""

import json
from pathlib import Path

import pytest

from tests.unit.audit.conftest import STUDY
from tests.unit.audit.test_cost import measured  # noqa: F401  (a fixture)
from tests.verbs import printed
from workflow_scripts.audit import export
from workflow_scripts.audit.export import METADATA, write_crate
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.record import sha256_of

CRATE = Path("crate")


@pytest.fixture
def crate(measured):  # noqa: F811
    """A crate of a finished study."""
    write_crate(Path(STUDY), CRATE)
    return CRATE


def entities(crate):
    return {entity["@id"]: entity for entity in json.loads((crate / METADATA).read_text())["@graph"]}


def inside(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def test_a_crate_holds_every_artefact_and_describes_every_file_that_it_holds(crate):
    """Of a model it holds the record, which lists the hashes of the others."""
    held, described = inside(crate), entities(crate)
    names = {f"{STUDY}/{name}" for name in inside(Path(STUDY)) if "checkpoints" not in name}
    parts = {name for name in names if "/model/" in name or "/minilm/" in name}
    records = {name for name in parts if name.endswith("record.json")}
    assert len(names) > 20 and len(records) == 4
    assert {name for name in held if name.startswith("results/")} == names - parts | records
    assert {"Snakefile", "LICENSE", "workflow_scripts/errors.py", "resources/prompt.txt"} <= held.keys()
    files = {name: one["sha256"] for name, one in described.items() if "File" in one["@type"]}
    assert files == {name: sha256_of(path) for name, path in held.items() if name != METADATA}


def test_everything_that_is_referred_to_is_described(crate):
    described = entities(crate)
    values = [value for entity in described.values() for value in entity.values()]
    listed = [one for value in values for one in (value if isinstance(value, list) else [value])]
    targets = {one["@id"] for one in listed if isinstance(one, dict)}
    assert {name for name in targets - described.keys() if not name.startswith("http")} == set()


def test_results_take_no_space_a_second_time(crate):
    name = f"{STUDY}/tables/main.parquet"
    assert Path(name).samefile(crate / name)
    for name, root in (("Snakefile", ROOT), ("resources/prompt.txt", Path())):  # people edit them
        assert not (root / name).samefile(crate / name)


def test_each_job_is_an_action_with_what_it_read_and_wrote(crate):
    found = entities(crate)
    action = found["#job/evaluate_sts/plain/1/suite"]
    assert action["result"] == [{"@id": f"{STUDY}/scores/sts/suite/plain/seed1.parquet"}]
    assert {one["@id"] for one in action["object"]} == {
        "#settings/evaluate_sts/plain/1/suite",
        f"{STUDY}/runs/plain/seed1/model/record.json",
        f"{STUDY}/datasets/stsb.parquet",
    }
    settings = json.loads(found["#settings/train_encoder/plain/1"]["value"])
    assert settings["method"]["temperature"] == 0.05
    sources = {one["@id"] for one in found["#run"]["object"]}
    assert "#source/hub:owner/stsb@0123456789" in sources
    assert found["#control/evaluate_sts/plain/1/suite"]["instrument"] == {"@id": "#step/evaluate_sts"}


def test_a_model_without_the_weights_that_were_dropped_is_exported_and_nothing_damaged(root, study):
    study.drop_weights("plain")
    write_crate(Path(STUDY), CRATE)
    Path(STUDY, "runs/plain/seed1/model/1_Pooling/config.json").unlink()
    with pytest.raises(DataError, match=r"model/1_Pooling/config.json: damaged"):
        write_crate(Path(STUDY), Path("again"))


def test_a_crate_is_of_one_study_and_overwrites_nothing(root):
    with pytest.raises(DataError, match=r"results: no study\. Name one, such as results/demo"):
        printed("export", "results")
    code, said = printed("export", STUDY)
    assert code == 0 and said.startswith("crates/study: ") and Path("crates/study", METADATA).is_file()
    with pytest.raises(DataError, match="crates/study: exists already"):
        printed("export", STUDY)


# Models


RUN = Path(STUDY, "runs/plain/seed1")


def test_a_copy_of_a_model_has_model_record_and_card(root, monkeypatch):
    monkeypatch.setattr(export, "readme", lambda _folder: "card")
    code, said = printed("export", RUN, "--to", "a b/shared")
    assert code == 0 and "hf upload <name> 'a b/shared'" in said
    expected = {"model.safetensors", "1_Pooling/config.json", "record.json", "README.md"}
    assert inside(Path("a b/shared")).keys() == expected
    assert [path.name for path in Path("a b").iterdir()] == ["shared"]


@pytest.mark.parametrize(
    ("to", "complaint"),
    [([], "--to FOLDER"), (["--to", "results"], "exists")],
)
def test_a_place_where_no_model_can_be_is_one_line(root, to, complaint):
    with pytest.raises(DataError, match=complaint):
        printed("export", RUN, *to)
