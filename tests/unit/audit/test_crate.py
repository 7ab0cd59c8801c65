"""A study as an RO-Crate, and a crate held against its files."""

import json
from pathlib import Path

import pytest

from tests.unit.audit.conftest import STUDY
from tests.unit.audit.test_cost import leave, measured  # noqa: F401  (a fixture)
from workflow_scripts.audit import export as module
from workflow_scripts.audit.crate import check
from workflow_scripts.audit.export import METADATA, export
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import sha256_of

CRATE = Path("crate")


@pytest.fixture
def crate(measured, monkeypatch):  # noqa: F811
    """A crate of a study of which one training failed."""
    leave("train_encoder", "plain/seed3", log="TrainingError: step 3: loss is nan\n")
    export(measured, Path(STUDY), CRATE)
    return CRATE


def entities(crate):
    return {entity["@id"]: entity for entity in json.loads((crate / METADATA).read_text())["@graph"]}


def problems(crate):
    return {problem.entity: problem.found for problem in check(crate)[1]}


def test_a_crate_holds_every_file_of_the_study_and_nothing_is_wrong_with_it(crate):
    assert problems(crate) == {}
    inside = {path.relative_to(crate).as_posix() for path in crate.rglob("*") if path.is_file()}
    study = {
        path.as_posix()
        for path in Path(STUDY).rglob("*")
        if path.is_file() and "checkpoints" not in str(path)
    }
    assert len(study) > 20 and study <= inside
    assert {"Snakefile", "LICENSE", "workflow_scripts/errors.py", "resources/prompt.txt"} <= inside
    described = entities(crate)
    for name in study:
        assert described[name]["sha256"] == sha256_of(Path(name))


def test_results_take_no_space_a_second_time(crate):
    name = f"{STUDY}/tables/main.parquet"
    assert Path(name).samefile(crate / name)
    assert not (module.ROOT / "Snakefile").samefile(crate / "Snakefile")


def test_each_job_is_an_action_with_what_it_read_and_wrote(crate):
    found = entities(crate)
    action = found["#job/evaluate_sts/suite/plain/seed1"]
    assert action["result"] == {"@id": f"{STUDY}/scores/sts/suite/plain/seed1.parquet"}
    assert {one["@id"] for one in action["object"]} == {
        "#settings/evaluate_sts/suite/plain/seed1",
        f"{STUDY}/runs/plain/seed1/model/",
        f"{STUDY}/datasets/stsb.parquet",
    }
    settings = json.loads(found["#settings/train_encoder/plain/seed1"]["value"])
    assert settings["method"]["temperature"] == 0.05
    sources = {one["@id"] for one in found["#run"]["object"]}
    assert "#source/hub:owner/stsb@0123456789" in sources


def test_a_failed_job_is_a_failed_action_with_its_error_and_log(crate):
    found = entities(crate)
    action = found["#job/train_encoder/plain/seed3"]
    assert action["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert action["error"] == "TrainingError: step 3: loss is nan"
    assert (crate / action["subjectOf"]["@id"]).read_text() == "TrainingError: step 3: loss is nan\n"
    assert found["#run"]["actionStatus"] == "http://schema.org/FailedActionStatus"
    assert "train_encoder/plain/seed3" in found["#run"]["error"]
    others = [name for name in found if name.startswith("#job/") and name != "#job/train_encoder/plain/seed3"]
    assert {found[name]["actionStatus"] for name in others} == {"http://schema.org/CompletedActionStatus"}


def test_the_same_study_gives_the_same_metadata(crate, root):
    export(root, Path(STUDY), Path("again"))
    assert (crate / METADATA).read_bytes() == Path("again", METADATA).read_bytes()


def test_nothing_damaged_is_exported_and_nothing_is_overwritten(crate, root):
    with pytest.raises(DataError, match="there already"):
        export(root, Path(STUDY), CRATE)
    content = Path(STUDY, "tables/main.parquet").read_bytes()
    Path(STUDY, "tables/main.parquet").unlink()  # the crate has the same file
    Path(STUDY, "tables/main.parquet").write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"main.parquet: damaged"):
        export(root, Path(STUDY), Path("again"))
    assert not Path("again").exists()


def edited(crate, change):
    metadata = json.loads((crate / METADATA).read_text())
    change({entity["@id"]: entity for entity in metadata["@graph"]}, metadata["@graph"])
    (crate / METADATA).write_text(json.dumps(metadata))
    return problems(crate)


RUN = "#run"
EDITS = {
    "a wrong sha256": (lambda e, _: e["LICENSE"].update(sha256="0" * 64), "LICENSE", "sha256"),
    "no sha256": (lambda e, _: e["LICENSE"].pop("sha256"), "LICENSE", "no sha256"),
    "a date that is none": (lambda e, _: e[RUN].update(endTime="not a date"), RUN, "is no date"),
    "an end before the start": (lambda e, _: e[RUN].update(startTime="2999-01-01T00:00:00+00:00"), RUN, "ends before"),
    "a reference to nothing": (lambda e, _: e[RUN].update(result=[{"@id": "#gone"}]), RUN, "#gone, which is not there"),
    "an entity that is gone": (lambda e, g: g.remove(e["Snakefile"]), "./", "Snakefile, which is not there"),
    "a file outside": (
        lambda e, g: g.append({"@id": "../secret", "@type": "File", "sha256": "0"}), "../secret", "leads out",
    ),
    "a file at a fixed place": (
        lambda e, g: g.append({"@id": "/etc/hostname", "@type": "File"}), "/etc/hostname", "leads out",
    ),
    "an identifier twice": (lambda e, g: g.append(e["LICENSE"]), METADATA, "stand twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", EDITS)
def test_metadata_that_say_something_else_are_found(crate, name):
    change, entity, message = EDITS[name]
    assert message in edited(crate, change)[entity]


def test_files_changed_missing_and_not_described_are_found(crate):
    (crate / "LICENSE").write_text("changed")
    (crate / "Snakefile").unlink()
    (crate / "notes.txt").write_text("mine")
    (crate / "README.md").unlink(missing_ok=True)
    (crate / "README.md").symlink_to("/etc/hostname")
    found = problems(crate)
    assert "sha256" in found["LICENSE"] and found["Snakefile"] == "missing"
    assert "not in the metadata" in found["notes.txt"] and found["README.md"] == "leads out of the crate"


@pytest.mark.parametrize("text", ["", "[]", '{"@graph": [{}]}', '{"@graph": 3}'])
def test_a_folder_without_metadata_is_no_crate(tmp_path, text):
    (tmp_path / METADATA).write_text(text)
    with pytest.raises(DataError, match="no metadata of an RO-Crate"):
        check(tmp_path)
    (tmp_path / METADATA).unlink()
    with pytest.raises(DataError, match="no such file"):
        check(tmp_path)
