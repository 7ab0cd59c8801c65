"""Whatever is done to a file of a study, verify names that file."""

import json
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.unit.audit.conftest import TIMES, flip_a_byte
from tests.verbs import data, printed
from workflow_scripts.audit import sources, verify
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import artefacts, closure
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.training.checkpoints import Checkpoint, save_checkpoint

STUDY = "results/study"


def audit(*studies):
    return verify.verify([Path(study) for study in studies or (STUDY,)])


def found():
    return [(finding.path.removeprefix(f"{STUDY}/"), finding.kind) for finding in audit().findings]


def files():
    return sorted(
        path for path in Path(STUDY).rglob("*") if path.is_file() and ".checkpoints" not in str(path)
    )


def named(path):
    return path.relative_to(STUDY).as_posix()


def test_a_study_as_it_was_made_is_green_and_counted(root):
    outcome = audit()
    assert outcome.findings == [] and "other code" not in "".join(outcome.notes)
    assert outcome.artefacts == 2 + 1 + 3 * 3 + 3
    assert outcome.bytes == sum(path.stat().st_size for path in files())
    assert outcome.outside == 2


def test_a_flipped_byte_is_found_in_every_file_and_in_no_other(root):
    generator = random.Random(0)
    every = files()
    assert len(every) == 5 + 3 + 3 * 5  # tables and pages, an encoder, and what three runs left
    for path in every:
        content = path.read_bytes()
        for position in {0, len(content) - 1, *(generator.randrange(len(content)) for _ in range(8))}:
            damaged = bytearray(content)
            damaged[position] ^= 1 << generator.randrange(8)
            path.write_bytes(damaged)
            assert found() == [(named(path), "changed")], position
        path.write_bytes(content)
    assert found() == []


@pytest.mark.parametrize("share", [0, 0.5, 0.9])
def test_a_truncated_file_is_found(root, share):
    for path in files():
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        assert found() == [(named(path), "changed")]
        path.write_bytes(content)


def test_a_deleted_file_is_missing(root):
    for path in files():
        content = path.read_bytes()
        path.unlink()
        assert found() == [(named(path), "missing")]
        path.write_bytes(content)


def test_what_to_do_is_commands_that_mend_it_with_what_the_study_was_last_asked_with(root):
    """A deleted intermediate alone is not made again: Snakemake asks only for what the last file lacks."""
    Path(STUDY, "tables/main.parquet").write_bytes(b"")
    Path(STUDY, "runs/simcse/seed1/model/model.safetensors").write_bytes(b"")
    Path(STUDY, "my notes.txt").write_text("")
    Path("resources/prompt.txt").unlink()
    again = f"--forcerun {STUDY}/runs/simcse/seed1/model/record.json {STUDY}/tables/main.parquet"
    mend = [f"rm -r '{STUDY}/my notes.txt'", "# restore resources/prompt.txt"]
    assert verify.commands(audit().findings) == [*mend, f"snakemake --cores all {again}"]
    note = Path(".snakemake", "studies", f"{Path(STUDY).name}.json")
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"configfiles": ["config/mine.yaml", "more.yaml"], "config": {}}))
    asked = "--configfile config/mine.yaml more.yaml"
    assert verify.commands(audit().findings) == [*mend, f"snakemake --cores all {asked} {again}"]


@pytest.mark.parametrize("change", [Path.unlink, flip_a_byte])
def test_a_table_of_times_is_made_again_by_its_rule(root, study, change):
    study.write_times()
    assert found() == []
    change(TIMES)
    assert verify.commands(audit().findings) == [f"snakemake --cores all --forcerun {TIMES}"]


def test_a_part_of_a_study_needs_no_page(root):
    assert audit(f"{STUDY}/tables").findings == []
    Path(STUDY, "report.html").unlink()
    assert found() == [("report.html", "missing")]


def test_a_deleted_model_folder_is_one_finding_that_says_what_it_affects(root):
    shutil.rmtree(Path(STUDY, "runs/simcse/seed1/model"))
    (finding,) = audit().findings
    record = f"{STUDY}/runs/simcse/seed1/model/record.json"
    assert finding[:2] == (record, "missing") and finding[3:] == ("rerun", record, 4)
    assert "history.parquet" in finding.found


@pytest.mark.parametrize("folder", ["", "runs/simcse/seed1/model/1_Pooling", "tables"])
@pytest.mark.parametrize("name", ["page.html", "README.md", "table.parquet", "model.bin", ".DS_Store"])
def test_a_file_that_no_record_lists_is_foreign(root, folder, name):
    path = Path(STUDY, folder, name)
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"a": [1]}), path)
    else:
        path.write_text("<html></html>")
    assert found() == [(named(path), "foreign")]


def test_what_a_killed_job_left_behind_is_foreign_and_the_date_of_a_folder_is_not(root):
    left = [Path(STUDY, "tables/.main.parquet.x1y2.tmp"), Path(STUDY, "runs/.model.ab.tmp/config.json")]
    for path in left:
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    Path(STUDY, "tables/link").symlink_to("nowhere")
    Path(STUDY, "runs/simcse/seed1/model/.snakemake_timestamp").touch()
    names = ["runs/.model.ab.tmp", "tables/.main.parquet.x1y2.tmp", "tables/link"]
    assert found() == [(name, "foreign") for name in names]


def test_a_table_rewritten_by_another_program_is_changed(root):
    path = Path(STUDY, "scores/sts/suite/plain/seed1.parquet")
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    assert found() == [(named(path), "changed")]


def test_artefacts_that_changed_places_are_foreign_where_they_are(root):
    one, two = (Path(STUDY, f"scores/sts/suite/simcse/seed{seed}.parquet") for seed in (1, 2))
    one.rename("aside")
    two.rename(one)
    Path("aside").rename(two)
    assert {(named(one), "foreign"), (named(two), "foreign")} <= set(found())


def test_an_upstream_artefact_made_anew_makes_its_readers_stale(root, study):
    study.write_dataset(score=4.5)
    findings = audit().findings
    assert found() == [(file, "stale") for file in sorted(study.score_files())]
    assert "datasets/stsb.parquet" in findings[0].found
    assert {finding.affects for finding in findings} == {3}  # table, figure, report


def test_a_file_from_outside_the_results_that_was_edited_makes_its_reader_stale(root):
    Path("resources/prompt.txt").write_text("This sentence means")
    assert found() == [("corpora/wiki/train.parquet", "stale")]
    Path("resources/prompt.txt").unlink()
    assert audit().findings[0][:2] == ("resources/prompt.txt", "missing")


def test_outputs_of_one_job_from_two_runs_of_it_are_stale(root, study):
    history = Path(STUDY, "runs/plain/seed1/history.parquet")
    content = history.read_bytes()
    study.write_run("plain", 1, temperature=0.1)
    study.write_scores("plain", 1)
    study.write_table_of_scores()
    study.write_pages()
    assert found() == []
    history.write_bytes(content)
    assert found() == [("runs/plain/seed1/history.parquet", "stale")]


def test_a_label_that_an_artefact_hides_is_found(root):
    path = Path(STUDY, "figures/main.svg")
    record = artefacts.read_record(path)
    assert record.labels == ["stand-in encoder"]
    artefacts.write_page(path, "<svg/>", record.model_copy(update={"labels": []}))
    assert ("figures/main.svg", "unlabelled") in found()


@pytest.mark.parametrize(
    "change", [{"settings": {"method": {"temperature": 0.07}}}, {"wildcards": {"run": "simcse", "seed": "1"}}]
)
def test_a_record_that_was_altered_and_sealed_anew_is_found_by_its_key(root, change):
    path = Path(STUDY, "runs/plain/seed1/history.parquet")
    record = artefacts.read_record(path)
    artefacts.write_table(path, pq.read_table(path), record.model_copy(update=change))
    assert artefacts.verify_checksum(path)
    assert found() == [("runs/plain/seed1/history.parquet", "changed")]


def test_a_whole_file_with_a_record_that_leads_out_of_the_folder_is_foreign(root, study):
    record = study.made_by("make_table", ["tables/b.parquet"]).model_copy(update={"files": {"../x": "1"}})
    artefacts.write_table(Path(STUDY, "tables/b.parquet"), pa.table({"a": [1]}), record)
    assert found() == [("tables/b.parquet", "foreign")]


# Sources from outside


@pytest.fixture
def from_outside(root, study, monkeypatch, tmp_path):
    """A table that was read from one file of each kind of source, and one that nobody has."""
    places = {
        "local:STS/a.tsv": tmp_path / "data/STS/a.tsv",
        "package:given==1.0/lee.cor": tmp_path / "packages/given/lee.cor",
        f"hub:owner/set@{'a' * 40}/b.csv": tmp_path / f"hub/datasets--owner--set/snapshots/{'a' * 40}/b.csv",
    }
    for place in places.values():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(place.name)
    (tmp_path / "packages/given/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    given = {name: Input(path=name, sha256=sha256_of(place)) for name, place in places.items()}
    given["gone"] = Input(path="local:gone.tsv", sha256="1" * 64)
    record = study.made_by("read_dataset", ["tables/read.parquet"], foreign=given)
    artefacts.write_table(Path(STUDY, "tables/read.parquet"), pa.table({"a": [1]}), record)
    return places


def with_data(tmp_path):
    return verify.verify([Path(STUDY)], data_root=tmp_path / "data")


def test_sources_that_are_here_are_hashed_again(from_outside, tmp_path):
    outcome = with_data(tmp_path)
    assert (outcome.findings, outcome.outside) == ([], 2 + 4)
    assert outcome.not_at_hand == [
        "hub:owner/stsb@0123456789", "local:gone.tsv", "package:minilm==1.0/model.safetensors"
    ]  # fmt: skip
    for name, place in from_outside.items():
        flip_a_byte(place, 0)
        (finding,) = with_data(tmp_path).findings
        assert (finding.path, finding.kind, finding.todo, finding.affects) == (name, "changed", "restore", 1)
        assert f"read by {STUDY}/tables/read.parquet" in finding.found
        flip_a_byte(place, 0)


@pytest.mark.parametrize(
    "name", ["local:../secret", "local:/etc/hostname", "package:os.path/x", "package:__main__/x"]
)
def test_a_source_of_a_strangers_record_leads_nowhere(tmp_path, name):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "data").mkdir()
    assert sources.place_of(name, tmp_path / "data") is None


# Checkpoints and finished tasks


def test_checkpoints_are_held_against_their_manifests(root):
    folder = Path(STUDY, "runs/plain/seed3/model.checkpoints")
    save_checkpoint(folder, "f" * 64, Checkpoint(4, {"model": {"weight": torch.arange(10.0)}}))
    checkpoint = folder / "step00000004"
    assert found() == [] and "unfinished training: 1 complete checkpoints" in audit().notes
    for file in ("model.safetensors", "COMPLETE.json"):
        position = (checkpoint / file).stat().st_size - 9
        flip_a_byte(checkpoint / file, position)
        (finding,) = audit().findings
        assert (finding.path, finding.kind) == ((checkpoint / file).as_posix(), "changed")
        assert verify.commands([finding]) == [f"rm -r {checkpoint}"]
        flip_a_byte(checkpoint / file, position)
    (checkpoint / "model.safetensors").unlink()
    assert found() == [(named(checkpoint / "model.safetensors"), "missing")]


def test_finished_tasks_of_evaluations_are_held_against_their_checksums(root):
    scores = min(Path(STUDY).glob("scores/sts/suite/*/*.parquet"))
    task = scores.with_suffix(".checkpoints") / "stsb.scores.parquet"
    task.parent.mkdir()
    before = audit()
    shutil.copy(scores, task)
    outcome = audit()
    assert (outcome.findings, outcome.artefacts, outcome.bytes) == ([], before.artefacts, before.bytes)
    assert "finished tasks, for evaluations to go on from: 1 tables" in outcome.notes
    content = task.read_bytes()
    for damaged in (content[:40] + b"?" + content[41:], content[:90]):
        task.write_bytes(damaged)
        assert found() == [(named(task), "changed")]


CODE = "workflow_scripts/data/words.py"


def test_other_code_is_listed_and_is_no_failure(root, monkeypatch):
    monkeypatch.setattr(closure, "ROOT", Path("other"))
    shutil.copytree(ROOT / "workflow_scripts", "other/workflow_scripts")
    Path("other", CODE).write_text("changed")
    outcome = audit()
    assert outcome.findings == []
    assert outcome.notes[0] == f"made by other code: {outcome.artefacts} artefacts; changed since: {CODE}"


# Other studies


def write_reader(inputs, **changes):
    """A table of the study that was made from files of another one."""
    file = Path(STUDY, "tables/b.parquet")
    record = artefacts.job_record("count_words", settings={}, inputs=inputs, outputs=[file])
    artefacts.write_table(file, pa.table({"a": [1]}), record.model_copy(update=changes))


def test_damage_in_another_study_that_this_one_reads_is_found(root, study):
    model = Path("results/shared/encoder")
    made = study.made_by("fetch_encoder", []).model_copy(update={"outputs": [f"{model}/record.json"]})
    with artefacts.writing_model_folder(model, made) as folder:
        (folder / "model.safetensors").write_bytes(b"weights")
    write_reader({"encoder": model / "record.json"})
    assert found() == []
    (model / "model.safetensors").write_bytes(b"damaged")
    (finding,) = audit().findings
    assert (finding.path, finding.kind, finding.affects) == (f"{model}/record.json", "changed", 1)
    (model / "record.json").unlink()
    assert audit().findings[0][:2] == (f"{model}/record.json", "missing")


def test_a_label_of_an_input_from_another_study_may_not_be_hidden(root, study):
    shared = Path("results/shared/table.parquet")
    made = study.made_by("read_dataset", [], labels=["stand-in text"])
    made = made.model_copy(update={"outputs": [shared.as_posix()]})
    artefacts.write_table(shared, pa.table({"a": [1]}), made)
    write_reader({"table": shared})
    assert found() == []
    write_reader({"table": shared}, labels=[])
    assert found() == [("tables/b.parquet", "unlabelled")]


def test_a_linked_folder_is_part_of_the_study(root):
    shutil.move(f"{STUDY}/runs", "elsewhere")
    Path(STUDY, "runs").symlink_to(Path("elsewhere").resolve())
    assert found() == []
    Path("elsewhere/simcse/seed1/model/model.safetensors").write_bytes(b"damaged")
    assert found() == [("runs/simcse/seed1/model/model.safetensors", "changed")]


def test_studies_are_those_named_or_all(root):
    shutil.copytree(STUDY, "results/other")
    assert verify.studies_of([]) == [Path("results/other"), Path(STUDY)]
    assert verify.studies_of([Path(STUDY)]) == [Path(STUDY)]
    with pytest.raises(DataError, match="results/typo: no such study"):
        printed("verify", "results/typo")
    shutil.rmtree("results")
    with pytest.raises(DataError, match="results: no such study"):
        verify.studies_of([])


def test_the_verb_prints_counts_and_fails_only_on_red(root):
    code, said = printed("verify")
    assert code == 0 and "15 artefacts" in said and "all as recorded" in said
    damaged = Path(STUDY, "runs/simcse/seed1/model/model.safetensors")
    damaged.write_bytes(b"damaged")
    code, said = printed("verify", STUDY)
    assert code == 1 and damaged.as_posix() in said and "1 changed" in said
    code, found = data("verify")
    assert (code, found["green"], found["findings"][0]["path"]) == (1, False, damaged.as_posix())
