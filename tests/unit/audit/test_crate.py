"""A study as an RO-Crate, and a crate held against its files."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.unit.audit.conftest import RUNS, STUDY
from tests.unit.audit.test_cost import leave, measured  # noqa: F401  (a fixture)
from workflow_scripts.audit import export as export_module
from workflow_scripts.audit.__main__ import main
from workflow_scripts.audit.crate import check
from workflow_scripts.audit.export import METADATA, export
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.record import sha256_of

CRATE = Path("crate")


@pytest.fixture
def crate(measured, monkeypatch):  # noqa: F811
    """A crate of a study of which one training failed."""
    leave("train_encoder", "plain/seed3", log="TrainingError: step 3: loss is nan\n")
    export(measured, Path(STUDY), CRATE, whole=True)
    return CRATE


@pytest.fixture
def light(crate, root):
    """The same study without its weights."""
    export(root, Path(STUDY), Path("light"))
    return Path("light")


def entities(crate):
    return {entity["@id"]: entity for entity in json.loads((crate / METADATA).read_text())["@graph"]}


def problems(crate):
    return {problem.entity: problem.found for problem in check(crate)[1]}


def test_a_whole_crate_holds_every_file_of_the_study_and_nothing_is_wrong_with_it(crate):
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


WEIGHTS = "model.safetensors"


def test_a_light_crate_names_weights_by_their_hash_and_place_and_lacks_nothing_else(light, crate):
    assert problems(light) == {}
    here, there = (
        {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        for folder in (light, crate)
    )
    absent = {f"{STUDY}/runs/{run}/seed{seed}/model/{WEIGHTS}" for run, seed in RUNS} | {
        f"{STUDY}/encoders/minilm/{WEIGHTS}"
    }
    assert there - here == absent and here < there
    named = [entity for name, entity in entities(light).items() if name.startswith("ni:///sha-256;")]
    assert {entity["alternateName"]: entity["sha256"] for entity in named} == {
        name: sha256_of(Path(name)) for name in absent
    }
    (model,) = (one for name, one in entities(light).items() if name == f"{STUDY}/runs/plain/seed1/model/")
    parts = {entities(light)[part["@id"]]["name"].split()[0].rpartition("/")[2] for part in model["hasPart"]}
    assert parts == {WEIGHTS, "config.json", "record.json"}


def test_equal_weights_in_two_places_are_one_file_with_two_names(light, root, study):
    with writing_model_folder(
        Path(STUDY, "encoders/again"), study.made_by("fetch_encoder", ["encoders/again/record.json"])
    ) as folder:
        shutil.copy(Path(STUDY, f"encoders/minilm/{WEIGHTS}"), folder)
    export(root, Path(STUDY), Path("twice"))
    name = export_module.named_by_hash(sha256_of(Path(STUDY, f"encoders/minilm/{WEIGHTS}")))
    assert entities(Path("twice"))[name]["alternateName"] == [
        f"{STUDY}/encoders/again/{WEIGHTS}", f"{STUDY}/encoders/minilm/{WEIGHTS}"
    ]  # fmt: skip


def test_a_large_table_is_named_by_its_hash_too(light, root, monkeypatch):
    name = f"{STUDY}/tables/main.parquet"
    monkeypatch.setattr(export_module, "_LARGE_BYTES", Path(name).stat().st_size - 1)
    export(root, Path(STUDY), Path("lighter"))
    assert problems(Path("lighter")) == {} and not Path("lighter", name).exists()
    digest = sha256_of(Path(name))
    found = entities(Path("lighter"))
    assert found[export_module.named_by_hash(digest)]["alternateName"] == name
    assert found["#job/make_table/main"]["result"] == {"@id": export_module.named_by_hash(digest)}


def test_a_name_that_is_not_that_of_its_hash_is_found(light):
    (name, *_) = [name for name in entities(light) if name.startswith("ni:///sha-256;")]
    assert (
        "its name is not that of sha256 000000000000"
        in edited(light, lambda e, _: e[name].update(sha256="0" * 64))[name]
    )
    assert "its name is not" in edited(light, lambda e, _: e[name].pop("sha256"))[name]


def test_results_take_no_space_a_second_time(crate):
    name = f"{STUDY}/tables/main.parquet"
    assert Path(name).samefile(crate / name)
    for name, root in (
        ("Snakefile", export_module.ROOT),
        ("resources/prompt.txt", Path()),
    ):  # people edit them
        assert not (root / name).samefile(crate / name)


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
    export(root, Path(STUDY), Path("again"), whole=True)
    assert (crate / METADATA).read_bytes() == Path("again", METADATA).read_bytes()


def test_nothing_damaged_is_exported_and_nothing_is_overwritten(crate, root):
    Path("file").write_text("")
    with pytest.raises(DataError, match="file is a file, not a folder"):
        export(root, Path(STUDY), Path("file/crate"))
    with pytest.raises(DataError, match="exists already"):
        export(root, Path(STUDY), CRATE)
    content = Path(STUDY, "tables/main.parquet").read_bytes()
    Path(STUDY, "tables/main.parquet").unlink()  # the crate has the same file
    Path(STUDY, "tables/main.parquet").write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"main.parquet: damaged"):
        export(root, Path(STUDY), Path("again"))
    assert not Path("again").exists()


@pytest.mark.parametrize("change", [Path.unlink, lambda file: file.write_text("{}")])
def test_a_model_that_lacks_a_file_or_has_another_is_not_exported(root, change):
    change(Path(STUDY, "runs/plain/seed1/model/1_Pooling/config.json"))
    with pytest.raises(DataError, match=r"model/1_Pooling/config.json: damaged"):
        export(root, Path(STUDY), CRATE)
    assert not CRATE.exists()


def test_a_model_without_the_weights_that_were_dropped_is_exported(root, study):
    weights = Path(STUDY, f"runs/plain/seed1/model/{WEIGHTS}")
    study.write_dropped("plain", weights)
    weights.unlink()
    export(root, Path(STUDY), CRATE)
    assert problems(CRATE) == {}


def edited(crate, change):
    metadata = json.loads((crate / METADATA).read_text())
    change({entity["@id"]: entity for entity in metadata["@graph"]}, metadata["@graph"])
    (crate / METADATA).write_text(json.dumps(metadata))
    return problems(crate)


RUN = "#run"
EDITS = {
    "a wrong sha256": (lambda e, _: e["LICENSE"].update(sha256="0" * 64), "LICENSE", "sha256"),
    "no sha256": (lambda e, _: e["LICENSE"].pop("sha256"), "LICENSE", "no sha256"),
    "a date that is none": (lambda e, _: e[RUN].update(endTime="not a date"), RUN, "is not a date"),
    "an end before the start": (lambda e, _: e[RUN].update(startTime="2999-01-01T00:00:00+00:00"), RUN, "ends before"),
    "a reference to nothing": (lambda e, _: e[RUN].update(result=[{"@id": "#gone"}]), RUN, "#gone, which does not exist"),
    "an entity that is gone": (lambda e, g: g.remove(e["Snakefile"]), "./", "Snakefile, which does not exist"),
    "a file outside": (
        lambda e, g: g.append({"@id": "../secret", "@type": "File", "sha256": "0"}), "../secret", "leads out",
    ),
    "a file at a fixed place": (
        lambda e, g: g.append({"@id": "/etc/hostname", "@type": "File"}), "/etc/hostname", "leads out",
    ),
    "an identifier twice": (lambda e, g: g.append(e["LICENSE"]), METADATA, "occur more than once"),
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
    with pytest.raises(DataError, match="not the metadata of an RO-Crate"):
        check(tmp_path)
    (tmp_path / METADATA).unlink()
    with pytest.raises(DataError, match="no such file"):
        check(tmp_path)


def test_a_file_is_no_crate(tmp_path):
    (tmp_path / "crate.json").write_text("{}")
    with pytest.raises(DataError, match=r"crate\.json: a file"):
        check(tmp_path / "crate.json")


def test_a_crate_is_of_one_study(root, monkeypatch):
    Path("results/other").mkdir()
    monkeypatch.setattr(sys, "argv", ["audit", "export", "results"])
    with pytest.raises(DataError, match=r"results: 2 studies\. Name one, such as results/other"):
        main()
