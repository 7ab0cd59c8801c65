"""Files without a record, tables without a schema, records of Snakemake's own that cannot be read."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.audit.conftest import STUDY
from workflow_scripts.audit.export import export
from workflow_scripts.audit.lookup import record_at
from workflow_scripts.audit.records import records
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import artefacts
from workflow_scripts.provenance.artefacts import read_record, write_table
from workflow_scripts.provenance.origin import origin_of
from workflow_scripts.provenance.record import Input


def faults(root):
    return {
        (fault.path.removeprefix(f"{STUDY}/"), fault.kind) for fault in records(root, [Path(STUDY)]).faults
    }


HISTORIES = {
    (f"runs/{run}/history.parquet", "wrong columns")
    for run in ("simcse/seed1", "simcse/seed2", "plain/seed1")
}
"""The study's histories are no real ones."""


def test_every_table_is_held_to_the_schemas(root):
    assert faults(root) == HISTORIES
    path = Path(STUDY, "tables/main.parquet")
    write_table(path, pa.table({"a": [1]}), read_record(path))
    assert faults(root) == {*HISTORIES, ("tables/main.parquet", "wrong columns")}


def test_files_without_a_record_are_named(root):
    Path(STUDY, "notes.txt").write_text("mine")
    Path(STUDY, ".report.html.x1.tmp").write_text("half")
    Path(STUDY, "page.html").write_text("<html></html>")
    expected = {("notes.txt", "no record"), (".report.html.x1.tmp", "no record"), ("page.html", "no record")}
    assert faults(root) == {*HISTORIES, *expected}


def test_a_record_of_a_model_that_cannot_be_read_is_named(root):
    Path(STUDY, "encoders/minilm/record.json").write_text("{}")
    assert ("encoders/minilm/record.json", "no record") in faults(root)


def test_uncommitted_code_is_counted(root):
    path = Path(STUDY, "tables/main.parquet")
    table, record = pa.table({"a": [1]}), read_record(path)
    origin = record.origin.model_copy(update={"commit": None, "dirty": True})
    write_table(path, table, record.model_copy(update={"origin": origin}))
    found = records(root, [Path(STUDY)])
    assert path.as_posix() in found.dirty and path.as_posix() in found.without_commit


def test_garbled_records_of_snakemake_are_named(root):
    assert records(root, [Path(STUDY)]).snakemakes == 0
    folder = Path(".snakemake/metadata/sub")
    folder.mkdir(parents=True)
    (folder / "good").write_text("{}")
    (folder / "bad").write_bytes(b'{"rule": \xff')
    found = records(root, [Path(STUDY)])
    assert found.snakemakes == 2
    assert (".snakemake/metadata/sub/bad", "damaged") in {(fault.path, fault.kind) for fault in found.faults}


HOSTILE = {
    "an output outside": {"outputs": ["../../escaped.parquet"]},
    "an output at a fixed place": {"outputs": ["/tmp/escaped.parquet"]},
    "an input outside": {"inputs": {"x": Input(path="resources/../../secret", sha256="0" * 64)}},
    "code outside": {"meaning": {"../../../etc/passwd": "0" * 64}},
    "a file outside": {"files": {"../model.bin": "0" * 64}},
    "a rule that is a path": {"rule": "../../evil"},
    "an escape sequence": {"labels": ["\x1b]0;owned\x07"]},
    "a bell in a setting": {"settings": {"a": "\x07"}},
    "an escape sequence in the origin": {"origin": origin_of([]).model_copy(update={"blas": "\x1b]0;owned"})},
    "a control character of Latin-1": {"wildcards": {"run": "a\x9bm"}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_checksummed_file_with_a_strangers_record_is_refused(root, name, monkeypatch):
    """Everybody can compute a checksum; a record decides what is read, printed and copied into a crate."""
    monkeypatch.setattr(
        artefacts, "_check_unchanged", lambda record: None
    )  # a stranger's program checks nothing
    path = Path(STUDY, "tables/main.parquet")
    record = read_record(path)
    write_table(path, pa.table({"a": [1]}), record.model_copy(update=HOSTILE[name]))
    with pytest.raises(DataError, match="no record of this pipeline"):
        record_at(path)
    assert ("tables/main.parquet", "no record") in faults(root)
    before = sorted(Path("..").resolve().rglob("*"))
    export(root, Path(STUDY), Path("crate"))
    outside = set(Path("..").resolve().rglob("*")) - set(before)
    assert outside and all(place.is_relative_to(Path("crate").resolve()) for place in outside)


def test_words_of_any_script_and_line_feeds_are_no_control_characters(root):
    path = Path(STUDY, "tables/main.parquet")
    record = read_record(path).model_copy(
        update={"labels": ["naïve 北京 ©"], "settings": {"prompt": "a\nb\tc"}}
    )
    write_table(path, pa.table({"a": [1]}), record)
    assert record_at(path) == record
