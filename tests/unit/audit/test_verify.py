"""Whatever is done to a file of a study, verify names that file."""

import json
import os
import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tests.unit.audit.conftest import TIMES, flip_a_byte
from tests.verbs import data, printed
from workflow_scripts.audit import disk, sources, verify
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import artefacts, closure
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.training.checkpoints import Checkpoint, save_checkpoint

STUDY = "results/study"


def audit(root, *studies):
    return verify.verify([root / study for study in studies or (STUDY,)])


def found(root):
    return [(finding.path.removeprefix(f"{STUDY}/"), finding.kind) for finding in audit(root).findings]


def files():
    return sorted(
        path for path in Path(STUDY).rglob("*") if path.is_file() and ".checkpoints" not in str(path)
    )


def named(path):
    return path.relative_to(STUDY).as_posix()


def test_a_study_as_it_was_made_is_green_and_counted(root):
    outcome = audit(root)
    assert outcome.findings == []
    assert outcome.other_code == []
    assert outcome.artefacts == 2 + 1 + 3 * 3 + 3
    assert outcome.bytes == sum(path.stat().st_size for path in files())
    assert outcome.outside == 2
    assert (outcome.checkpoints, outcome.checkpoint_files, outcome.checkpoint_bytes) == (0, 1, 40)


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
            ((name, kind),) = found(root)
            assert name == named(path), position
            assert kind == "changed" or position >= len(content) - 5, position
        path.write_bytes(content)
    assert found(root) == []


def test_every_byte_of_the_checksum_itself_counts(root):
    path = Path(STUDY, "tables/main.parquet")
    content = path.read_bytes()
    start = content.rindex(b"semblance-checksum:")
    for position in range(start - 20, start + 80, 3):
        damaged = bytearray(content)
        damaged[position] ^= 1
        path.write_bytes(damaged)
        assert found(root) == [("tables/main.parquet", "changed")], position


@pytest.mark.parametrize("share", [0, 0.5, 0.9])
def test_a_truncated_file_is_found_and_said_to_be_truncated_where_it_shows(root, share):
    for path in files():
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * share)])
        part_of_model = "model/" in str(path) or "minilm/" in str(path)
        a_checksummed_file = path.name == "record.json" or not part_of_model
        assert found(root) == [(named(path), "truncated" if a_checksummed_file or not share else "changed")]
        path.write_bytes(content)


def test_a_deleted_file_is_missing(root):
    for path in files():
        content = path.read_bytes()
        path.unlink()
        assert found(root) == [(named(path), "missing")]
        path.write_bytes(content)


def test_what_to_do_is_commands_that_mend_it(root):
    """A deleted intermediate alone is not made again: Snakemake asks only for what the last file lacks."""
    Path(STUDY, "tables/main.parquet").write_bytes(b"")
    Path(STUDY, "runs/simcse/seed1/model/model.safetensors").write_bytes(b"")
    Path(STUDY, "my notes.txt").write_text("")
    Path("resources/prompt.txt").unlink()
    assert verify.commands(audit(root).findings) == [
        f"rm -r '{STUDY}/my notes.txt'",
        "# restore resources/prompt.txt",
        f"snakemake --cores all --forcerun {STUDY}/runs/simcse/seed1/model/record.json {STUDY}/tables/main.parquet",
    ]


@pytest.mark.parametrize("change", [Path.unlink, flip_a_byte])
def test_a_table_of_times_is_made_again_by_its_rule(root, study, change):
    study.write_times()
    assert found(root) == []
    change(TIMES)
    assert verify.commands(audit(root).findings) == [f"snakemake --cores all --forcerun {TIMES}"]


def test_a_part_of_a_study_needs_no_page(root):
    assert audit(root, f"{STUDY}/tables").findings == []
    Path(STUDY, "report.html").unlink()
    assert found(root) == [("report.html", "missing")]


def test_a_study_is_made_again_with_what_it_was_last_asked_with(root):
    Path(STUDY, "tables/main.parquet").write_bytes(b"")
    note = Path(".snakemake", "studies", f"{Path(STUDY).name}.json")
    note.parent.mkdir(parents=True)
    note.write_text(json.dumps({"configfiles": ["config/mine.yaml", "more.yaml"], "config": {}}))
    (line,) = verify.commands(audit(root).findings)
    files = "--configfile config/mine.yaml more.yaml"
    assert line == f"snakemake --cores all {files} --forcerun {STUDY}/tables/main.parquet"


def test_a_deleted_model_folder_is_one_finding_that_says_what_it_affects(root):
    shutil.rmtree(Path(STUDY, "runs/simcse/seed1/model"))
    (finding,) = audit(root).findings
    assert (finding.path, finding.kind) == (f"{STUDY}/runs/simcse/seed1/model", "missing")
    assert finding.affects == 4  # scores, table, figure, report
    assert (finding.todo, finding.target) == ("rerun", f"{finding.path}/record.json")
    assert "history.parquet" in finding.found


@pytest.mark.parametrize(
    "folder", ["", "runs", "runs/simcse/seed1", "runs/simcse/seed1/model/1_Pooling", "tables"]
)
@pytest.mark.parametrize("name", ["notes.txt", "page.html", "table.parquet", "model.bin", ".DS_Store"])
def test_a_file_that_no_record_lists_is_foreign(root, folder, name):
    path = Path(STUDY, folder, name)
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"a": [1]}), path)
    else:
        path.write_text("<html></html>")
    assert found(root) == [(named(path), "foreign")]


def test_what_a_killed_job_left_behind_is_foreign(root):
    with_temporary_names = [
        Path(STUDY, "tables/.main.parquet.x1y2.tmp"),
        Path(STUDY, "runs/.model.ab.tmp/config.json"),
    ]
    for path in with_temporary_names:
        path.parent.mkdir(exist_ok=True)
        path.write_text("{}")
    Path(STUDY, "tables/link").symlink_to("nowhere")
    assert sorted(found(root)) == [
        ("runs/.model.ab.tmp", "foreign"),
        ("tables/.main.parquet.x1y2.tmp", "foreign"),
        ("tables/link", "foreign"),
    ]


def test_the_date_that_snakemake_keeps_in_a_folder_is_not_foreign(root):
    Path(STUDY, "runs/simcse/seed1/model/.snakemake_timestamp").touch()
    assert found(root) == []


def test_a_table_rewritten_by_another_program_is_changed(root):
    path = Path(STUDY, "scores/sts/suite/plain/seed1.parquet")
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    assert found(root) == [(named(path), "changed")]


def test_artefacts_that_changed_places_are_foreign_where_they_are(root):
    one, two = (Path(STUDY, f"scores/sts/suite/simcse/seed{seed}.parquet") for seed in (1, 2))
    one.rename("aside")
    two.rename(one)
    Path("aside").rename(two)
    assert {(named(one), "foreign"), (named(two), "foreign")} <= set(found(root))


def test_an_upstream_artefact_made_anew_makes_its_readers_stale(root, study):
    study.write_dataset(score=4.5)
    outcome = audit(root)
    scores = [f"{STUDY}/{file}" for file in sorted(study.score_files())]
    assert [(finding.path, finding.kind) for finding in outcome.findings] == [
        (path, "stale") for path in scores
    ]
    assert "datasets/stsb.parquet" in outcome.findings[0].found
    assert {finding.affects for finding in outcome.findings} == {3}  # table, figure, report


def test_a_file_from_outside_the_results_that_was_edited_makes_its_reader_stale(root):
    Path("resources/prompt.txt").write_text("This sentence means")
    assert found(root) == [("corpora/wiki/train.parquet", "stale")]
    Path("resources/prompt.txt").unlink()
    assert audit(root).findings[0][:2] == ("resources/prompt.txt", "missing")


def test_outputs_of_one_job_from_two_runs_of_it_are_stale(root, study):
    history = Path(STUDY, "runs/plain/seed1/history.parquet")
    content = history.read_bytes()
    study.write_run("plain", 1, temperature=0.1)
    study.write_scores("plain", 1)
    study.write_table_of_scores()
    study.write_pages()
    assert found(root) == []
    history.write_bytes(content)
    assert found(root) == [("runs/plain/seed1/history.parquet", "stale")]


def test_a_label_that_an_artefact_hides_is_found(root):
    path = Path(STUDY, "figures/main.svg")
    record = artefacts.read_record(path)
    assert record.labels == ["stand-in encoder"]
    artefacts.write_page(path, "<svg/>", record.model_copy(update={"labels": []}))
    assert ("figures/main.svg", "unlabelled") in found(root)


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


def with_data(root, tmp_path):
    return verify.verify([root / STUDY], data_root=tmp_path / "data")


def test_sources_that_are_here_are_hashed_again(root, from_outside, tmp_path):
    outcome = with_data(root, tmp_path)
    assert outcome.findings == []
    assert outcome.outside == 2 + 4
    assert outcome.not_at_hand == [
        "hub:owner/stsb@0123456789", "local:gone.tsv", "package:minilm==1.0/model.safetensors"
    ]  # fmt: skip


def test_a_source_with_other_bytes_is_found_and_says_what_read_it(root, from_outside, tmp_path):
    assert len(from_outside) == 3
    for name, place in from_outside.items():
        content = place.read_bytes()
        place.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        (finding,) = with_data(root, tmp_path).findings
        assert (finding.path, finding.kind, finding.todo, finding.affects) == (name, "changed", "restore", 1)
        assert f"read by {STUDY}/tables/read.parquet" in finding.found
        place.write_bytes(content)


@pytest.mark.parametrize(("pin", "todo"), [(None, "rerun"), ("1" * 64, "restore")])
def test_an_edited_file_is_restored_if_it_is_pinned_and_else_read_anew(root, study, tmp_path, pin, todo):
    file = tmp_path / "data/toy.tsv"
    file.parent.mkdir()
    file.write_text("edited")
    table = Path(STUDY, "tables/read.parquet")
    settings = {
        "dataset": {"sources": [{"path": "toy.tsv", "sha256": pin}]},
        "source": f"local:toy.tsv sha256:{'1' * 64}",
    }
    given = {"pairs": Input(path="local:toy.tsv", sha256="1" * 64)}
    record = study.made_by("read_dataset", ["tables/read.parquet"], settings=settings, foreign=given)
    artefacts.write_table(table, pa.table({"a": [1]}), record)
    (finding,) = with_data(root, tmp_path).findings
    target = {"rerun": table.as_posix(), "restore": "local:toy.tsv"}[todo]
    assert (finding.path, finding.todo, finding.target) == ("local:toy.tsv", todo, target)


@pytest.mark.parametrize(
    "name", ["local:../secret", "local:/etc/hostname", "package:os.path/x", "package:__main__/x"]
)
def test_a_source_of_a_strangers_record_leads_nowhere(tmp_path, name):
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "data").mkdir()
    assert sources.place_of(name, tmp_path / "data") is None


# Checkpoints


@pytest.fixture
def checkpoint(root):
    folder = Path(STUDY, "runs/plain/seed3/model.checkpoints")
    save_checkpoint(folder, "f" * 64, Checkpoint(4, {"model": {"weight": torch.arange(10.0)}}))
    return folder / "step00000004"


def test_checkpoints_are_held_against_their_manifests(root, checkpoint):
    outcome = audit(root)
    assert outcome.findings == [] and outcome.checkpoints == 1
    for file in ("model.safetensors", "COMPLETE.json"):
        content = (checkpoint / file).read_bytes()
        (checkpoint / file).write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        (finding,) = audit(root).findings
        assert (finding.path, finding.kind) == ((checkpoint / file).as_posix(), "changed")
        assert verify.commands([finding]) == [f"rm -r {checkpoint}"]
        (checkpoint / file).write_bytes(content)
    (checkpoint / "model.safetensors").unlink()
    assert found(root) == [(named(checkpoint / "model.safetensors"), "missing")]


def test_finished_tasks_of_evaluations_are_held_against_their_checksums(root):
    scores = min(Path(STUDY).glob("scores/sts/suite/*/*.parquet"))
    task = scores.with_suffix(".checkpoints") / "stsb.scores.parquet"
    task.parent.mkdir()
    before = audit(root)
    shutil.copy(scores, task)
    outcome = audit(root)
    assert (outcome.findings, outcome.tasks) == ([], 1)
    assert (outcome.artefacts, outcome.bytes) == (before.artefacts, before.bytes)
    content = task.read_bytes()
    for damaged, kind in ((content[:40] + b"?" + content[41:], "changed"), (content[:90], "truncated")):
        task.write_bytes(damaged)
        assert found(root) == [(named(task), kind)]


CODE = "workflow_scripts/data/words.py"


def test_other_code_is_listed_and_is_no_failure(root, monkeypatch):
    monkeypatch.setattr(closure, "ROOT", Path("other"))
    shutil.copytree(ROOT / "workflow_scripts", "other/workflow_scripts")
    Path("other", CODE).write_text("changed")
    outcome = audit(root)
    assert outcome.findings == []
    assert len(outcome.other_code) == outcome.artefacts
    assert {other.files for other in outcome.other_code} == {(CODE,)}


def test_damage_in_another_study_that_this_one_reads_is_found(root, study):
    Path("results/shared").mkdir()
    model = Path("results/shared/encoder")
    record = study.made_by("fetch_encoder", []).model_copy(update={"outputs": [model.as_posix()]})
    with artefacts.writing_model_folder(model, record) as folder:
        (folder / "model.safetensors").write_bytes(b"weights")
    record = artefacts.job_record(
        "count_words", settings={}, inputs={"encoder": model}, outputs=[Path(STUDY, "tables/b.parquet")]
    )
    artefacts.write_table(Path(STUDY, "tables/b.parquet"), pa.table({"a": [1]}), record)
    assert found(root) == []
    (model / "model.safetensors").write_bytes(b"damaged")
    (finding,) = audit(root).findings
    assert (finding.path, finding.kind, finding.affects) == (model.as_posix(), "changed", 1)
    (model / "record.json").unlink()
    assert audit(root).findings[0][:2] == (f"{model}/record.json", "missing")


def test_a_label_of_an_input_from_another_study_may_not_be_hidden(root, study):
    shared = Path("results/shared/table.parquet")
    made = study.made_by("read_dataset", [], labels=["stand-in text"])
    artefacts.write_table(
        shared, pa.table({"a": [1]}), made.model_copy(update={"outputs": [shared.as_posix()]})
    )
    reader = artefacts.job_record(
        "count_words", settings={}, inputs={"table": shared}, outputs=[Path(STUDY, "tables/b.parquet")]
    )
    for labels in (["stand-in text"], []):
        record = reader.model_copy(update={"labels": labels})
        artefacts.write_table(Path(STUDY, "tables/b.parquet"), pa.table({"a": [1]}), record)
        assert found(root) == ([] if labels else [("tables/b.parquet", "unlabelled")])


def test_a_whole_file_with_a_record_that_cannot_be_read_is_foreign(root, monkeypatch, study):
    record = study.made_by("make_table", ["tables/b.parquet"])
    monkeypatch.setattr(type(record), "to_json", lambda _: '{"version": 2}')
    artefacts.write_table(Path(STUDY, "tables/b.parquet"), pa.table({"a": [1]}), record)
    (finding,) = audit(root).findings
    assert (finding.path, finding.kind) == (f"{STUDY}/tables/b.parquet", "foreign")
    assert "record" in finding.found


def test_every_file_is_hashed_once(root, monkeypatch):
    hashed = Counter()

    def counted(function):
        def wrapper(path, *others):
            hashed[os.fspath(path)] += 1
            return function(path, *others)

        return wrapper

    monkeypatch.setattr(disk, "sha256_of", counted(disk.sha256_of))
    monkeypatch.setattr(artefacts, "sha256_of", counted(artefacts.sha256_of))
    monkeypatch.setattr(artefacts, "_digest", counted(artefacts._digest))
    assert audit(root).findings == []
    assert hashed == {path.as_posix(): 1 for path in (*files(), Path("resources/prompt.txt"))}


def test_a_linked_folder_is_part_of_the_study(root):
    shutil.move(f"{STUDY}/runs", "elsewhere")
    Path(STUDY, "runs").symlink_to(Path("elsewhere").resolve())
    assert found(root) == []
    Path("elsewhere/simcse/seed1/model/model.safetensors").write_bytes(b"damaged")
    assert found(root) == [("runs/simcse/seed1/model/model.safetensors", "changed")]


def test_studies_are_those_named_or_all(root):
    shutil.copytree(STUDY, "results/other")
    both = [Path("results/other"), Path(STUDY)]
    assert verify.studies_of([]) == verify.studies_of([Path("results")]) == both
    assert verify.studies_of([Path(STUDY)]) == [Path(STUDY)]
    with pytest.raises(DataError, match="no such folder"):
        verify.studies_of([Path("results/typo")])
    with pytest.raises(DataError, match="no study"):
        shutil.rmtree("results")
        Path("results").mkdir()
        verify.studies_of([])


def test_the_verb_prints_counts_and_fails_only_on_red(root):
    code, said = printed("verify")
    assert code == 0 and "15 artefacts" in said and "all as recorded" in said
    assert "unfinished training: 0 complete checkpoints, 40 bytes in" in said
    damaged = Path(STUDY, "runs/simcse/seed1/model/model.safetensors")
    damaged.write_bytes(b"damaged")
    code, said = printed("verify", STUDY)
    assert code == 1 and damaged.as_posix() in said and "1 changed" in said
    code, found = data("verify")
    assert (code, found["green"], found["findings"][0]["path"]) == (1, False, damaged.as_posix())
    with pytest.raises(DataError, match="results/typo: no such folder"):
        printed("verify", "results/typo")


@pytest.mark.parametrize(
    "change", [{"settings": {"method": {"temperature": 0.07}}}, {"wildcards": {"run": "simcse", "seed": "1"}}]
)
def test_a_record_that_was_altered_and_sealed_anew_is_found_by_its_key(root, change):
    path = Path(STUDY, "runs/plain/seed1/history.parquet")
    record = artefacts.read_record(path)
    artefacts.write_table(path, pq.read_table(path), record.model_copy(update=change))
    assert artefacts.verify_checksum(path)
    ((name, kind),) = found(root)
    assert (name, kind) == ("runs/plain/seed1/history.parquet", "changed")
