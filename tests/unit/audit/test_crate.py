"""A study as an RO-Crate, and a model as a folder to share."""

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.audit.conftest import RUNS, STUDY
from tests.unit.audit.test_cost import leave, measured  # noqa: F401  (a fixture)
from tests.verbs import printed
from workflow_scripts.audit import crate as crate_module
from workflow_scripts.audit import export
from workflow_scripts.audit.crate import METADATA, write_crate
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.record import sha256_of

CRATE = Path("crate")


@pytest.fixture
def crate(measured, monkeypatch):  # noqa: F811
    """A crate of a study of which one training failed."""
    leave("train_encoder", "plain/seed3", log="TrainingError: step 3: loss is nan\n")
    write_crate(Path(STUDY), CRATE, whole=True)
    return CRATE


@pytest.fixture
def light(crate, root):
    """The same study without its weights."""
    write_crate(Path(STUDY), Path("light"))
    return Path("light")


def entities(crate):
    return {entity["@id"]: entity for entity in json.loads((crate / METADATA).read_text())["@graph"]}


def problems(crate):
    """References to nothing, files that are not as described, and files that nobody describes."""
    described = entities(crate)
    given = [value for entity in described.values() for value in entity.values()]
    listed = [one for value in given for one in (value if isinstance(value, list) else [value])]
    targets = {one["@id"] for one in listed if isinstance(one, dict)}
    lost = {target for target in targets if target not in described and not target.startswith("http")}
    files = {path.relative_to(crate).as_posix(): path for path in crate.rglob("*") if path.is_file()}
    hashed = {name: entity["sha256"] for name, entity in described.items() if entity["@type"] == "File"}
    other = {name for name, known in hashed.items() if name in files and sha256_of(files[name]) != known}
    absent = {name for name in hashed if "://" not in name and name not in files}
    return lost | other | absent | (files.keys() - described.keys() - {METADATA})


def test_a_whole_crate_holds_every_file_of_the_study_and_nothing_is_wrong_with_it(crate):
    assert problems(crate) == set()
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
    assert problems(light) == set()
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
    write_crate(Path(STUDY), Path("twice"))
    name = crate_module.named_by_hash(sha256_of(Path(STUDY, f"encoders/minilm/{WEIGHTS}")))
    assert entities(Path("twice"))[name]["alternateName"] == [
        f"{STUDY}/encoders/again/{WEIGHTS}", f"{STUDY}/encoders/minilm/{WEIGHTS}"
    ]  # fmt: skip


def test_a_large_table_is_named_by_its_hash_too(light, root, monkeypatch):
    name = f"{STUDY}/tables/main.parquet"
    monkeypatch.setattr(crate_module, "_LARGE_BYTES", Path(name).stat().st_size - 1)
    write_crate(Path(STUDY), Path("lighter"))
    assert problems(Path("lighter")) == set() and not Path("lighter", name).exists()
    digest = sha256_of(Path(name))
    found = entities(Path("lighter"))
    assert found[crate_module.named_by_hash(digest)]["alternateName"] == name
    assert found["#job/make_table/main"]["result"] == {"@id": crate_module.named_by_hash(digest)}


def test_results_take_no_space_a_second_time(crate):
    name = f"{STUDY}/tables/main.parquet"
    assert Path(name).samefile(crate / name)
    for name, root in (
        ("Snakefile", crate_module.ROOT),
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


def test_nothing_damaged_is_exported_and_nothing_is_overwritten(crate, root):
    Path("file").write_text("")
    with pytest.raises(DataError, match="file is a file, not a folder"):
        write_crate(Path(STUDY), Path("file/crate"))
    with pytest.raises(DataError, match="exists already"):
        write_crate(Path(STUDY), CRATE)
    content = Path(STUDY, "tables/main.parquet").read_bytes()
    Path(STUDY, "tables/main.parquet").unlink()  # the crate has the same file
    Path(STUDY, "tables/main.parquet").write_bytes(content[:-1])
    with pytest.raises(DataError, match=r"main.parquet: damaged"):
        write_crate(Path(STUDY), Path("again"))
    assert not Path("again").exists()


@pytest.mark.parametrize("change", [Path.unlink, lambda file: file.write_text("{}")])
def test_a_model_that_lacks_a_file_or_has_another_is_not_exported(root, change):
    change(Path(STUDY, "runs/plain/seed1/model/1_Pooling/config.json"))
    with pytest.raises(DataError, match=r"model/1_Pooling/config.json: damaged"):
        write_crate(Path(STUDY), CRATE)
    assert not CRATE.exists()


def test_a_model_without_the_weights_that_were_dropped_is_exported(root, study):
    weights = Path(STUDY, f"runs/plain/seed1/model/{WEIGHTS}")
    study.write_dropped("plain", weights)
    weights.unlink()
    write_crate(Path(STUDY), CRATE)
    assert problems(CRATE) == set()


def test_a_crate_is_of_one_study(root):
    Path("results/other").mkdir()
    with pytest.raises(DataError, match=r"results: 2 studies\. Name one, such as results/other"):
        printed("export", "results")
    code, said = printed("export", STUDY)
    assert code == 0 and said.startswith("crates/study: ") and Path("crates/study", METADATA).is_file()


# Models


RUN = Path(STUDY, "runs/plain/seed1")


def test_a_copy_of_a_model_has_model_record_and_card(root, monkeypatch):
    monkeypatch.setattr(export, "readme", lambda _folder: "card")
    code, said = printed("export", RUN, "--to", "a b/shared")
    assert code == 0 and "hf upload <name> 'a b/shared'" in said
    files = {
        path.relative_to("a b/shared").as_posix() for path in Path("a b/shared").rglob("*") if path.is_file()
    }
    assert files == {WEIGHTS, "1_Pooling/config.json", "record.json", "README.md"}
    assert [path.name for path in Path("a b").iterdir()] == ["shared"]


def test_a_copy_that_is_cut_off_leaves_nothing(root, monkeypatch):
    copied = []

    def cut_off(source, target):
        if copied:
            raise KeyboardInterrupt
        copied.append(target.write_bytes(source.read_bytes()))

    monkeypatch.setattr(export.shutil, "copyfile", cut_off)
    before = {*Path().iterdir()}
    with pytest.raises(KeyboardInterrupt):
        export.export_model(RUN, Path("shared"))
    assert copied and {*Path().iterdir()} == before


@pytest.mark.parametrize(
    ("to", "complaint"),
    [([], "--to FOLDER"), (["--to", "results"], "exists"), (["--to", "file/x"], "is a file")],
)
def test_a_place_where_no_model_can_be_is_one_line(root, to, complaint):
    Path("file").touch()
    with pytest.raises(DataError, match=complaint):
        printed("export", RUN, *to)
