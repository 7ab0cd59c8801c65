"""A lock names what a study holds, and what is not as a lock says is put down to what made it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.rooms.verbs.conftest import STUDY, flip_a_byte
from tests.verbs import data, printed
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_record, read_seal, write_page, write_table
from workflow_scripts.verbs import lock as module
from workflow_scripts.verbs.lock import LOCK, UNEXPLAINED, made_on
from workflow_scripts.verbs.records import key_of

TABLE = "tables/main.parquet"


def rewrite(path, *, rows=None, **changes):
    """Seal a table anew, with other rows or another record."""
    record, table = read_record(path), pq.read_table(path)
    write_table(path, table if rows is None else rows(table), record.model_copy(update=changes))


def test_a_lock_names_every_artefact_and_every_source_and_lies_below_results(root):
    assert printed("lock")[0] == 0
    text = LOCK.read_text()
    found = json.loads(text)
    assert text == json.dumps(found, indent=1, sort_keys=True) + "\n"
    tables = {path.as_posix() for path in Path(STUDY).rglob("*.parquet")}
    assert tables and tables < set(found["artefacts"])
    assert all(found["artefacts"][name] == read_seal(Path(name)).checksum for name in tables)
    assert "hub:owner/stsb@0123456789" in found["sources"] and "resources/prompt.txt" in found["sources"]
    assert printed("lock", "--to", "again.json")[0] == 0 and Path("again.json").read_text() == text


def seal_away(path):
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        (TABLE, flip_a_byte),
        (TABLE, seal_away),
        (TABLE, Path.unlink),
        ("runs/plain/seed1/history.parquet", Path.unlink),
    ],
)
def test_nothing_damaged_or_missing_is_locked(root, name, change):
    change(Path(STUDY, name))
    with pytest.raises(DataError, match=f"{name}: damaged or missing"):
        printed("lock")


def test_a_file_made_again_at_another_commit_is_as_in_the_lock(root, locked):
    origin = read_record(Path(STUDY, TABLE)).origin
    rewrite(Path(STUDY, TABLE), origin=origin.model_copy(update={"commit": "0" * 40}))
    assert checked(locked) == []


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('<td class="varies">31 to 40</td><p>on <span class="varies">Abacus</span></p>', True),
        ('<td class="varies gap">not measured</td><p>on <span class="varies">Abacus</span></p>', True),
        ('<td class="varies">30</td><p>on <span class="varies">Zuse</span></p><td>30</td>', False),
        ('<td>30</td><p>on <span class="varies">Zuse</span></p>', False),
    ],
)
def test_a_page_that_shows_other_times_is_as_in_the_lock(root, text, same):
    path = Path(STUDY, "report.html")
    record = read_record(path)
    write_page(
        path, '<html><td class="varies">30</td><p>on <span class="varies">Zuse</span></p></html>', record
    )
    printed("lock", STUDY, "--to", "lock.json")
    write_page(path, f"<html>{text}</html>", record)
    assert (checked(Path("lock.json")) == []) == same


# Checking a tree against a lock


@pytest.fixture
def locked(root):
    """The lock of a finished study."""
    printed("lock", STUDY, "--to", "lock.json")
    return Path("lock.json")


def checked(locked):
    _code, said = data("lock", STUDY, "--check", locked)
    assert said["green"] == (not said["differences"])
    return [(one["path"].removeprefix(f"{STUDY}/"), one["kind"], one["why"]) for one in said["differences"]]


def edit(lock_file, **changes):
    content = json.loads(lock_file.read_text())
    for table, entries in changes.items():
        content[table] |= entries
    lock_file.write_text(json.dumps(content))


def test_a_table_edited_and_sealed_again_is_found(root, locked):
    assert checked(locked) == []
    rewrite(Path(STUDY, TABLE), rows=lambda table: table.set_column(5, "value", pc.add(table["value"], 0.01)))
    assert checked(locked) == [(TABLE, "changed", UNEXPLAINED)]


def test_what_was_added_removed_or_damaged_is_found(root, locked, study):
    study.write_run("plain", 2)
    Path(STUDY, TABLE).unlink()
    flip_a_byte(f"{STUDY}/encoders/minilm/model.safetensors")
    assert checked(locked) == [
        ("encoders/minilm/model.safetensors", "damaged", "its checksum is broken; see verify"),
        ("runs/plain/seed2/history.parquet", "added", "not in the lock"),
        ("runs/plain/seed2/model/record.json", "added", "not in the lock"),
        (TABLE, "removed", "in the lock alone"),
    ]


def test_a_change_names_what_made_it_and_a_reader_its_input(root, locked, study):
    study.write_run("plain", 1, temperature=0.1)
    study.write_scores("plain", 1, value=0.6)
    history, model = (f"runs/plain/seed1/{name}" for name in ("history.parquet", "model/record.json"))
    scores = "scores/sts/suite/plain/seed1.parquet"
    assert checked(locked) == [
        (history, "changed", "settings"),
        (model, "changed", "settings"),
        (scores, "changed", f"made from {STUDY}/{model}"),
    ]


def test_another_rate_in_a_record_whose_key_and_seal_are_made_again_is_found(root, locked):
    """Its contents are those of the lock, and verify finds nothing amiss."""
    history = "runs/plain/seed1/history.parquet"
    record = read_record(Path(STUDY, history))
    forged = record.model_copy(update={"settings": record.settings | {"training": {"learning_rate": 1.0}}})
    rewrite(Path(STUDY, history), settings=forged.settings, key=key_of(forged))
    assert checked(locked) == [(history, "changed", "settings")]


CODE = "workflow_scripts/data/words.py"


@pytest.mark.parametrize(
    ("change", "artefact", "why"),
    [
        ({"code": {CODE: "0" * 64}}, TABLE, f"code {CODE}"),
        ({"packages": {"pyarrow": "1.0"}}, TABLE, f"package pyarrow 1.0 -> {pa.__version__}"),
        ({"sources": {"hub:owner/stsb@0123456789": "1" * 40}}, "datasets/stsb.parquet", "source hub:owner/stsb@0123456789"),
        ({"sources": {"resources/prompt.txt": "1" * 64}}, "corpora/wiki/train.parquet", "source resources/prompt.txt"),
        ({"made_on": {f"{STUDY}/{TABLE}": "Abacus, 1 threads"}}, TABLE, "another machine: Abacus, 1 threads -> {here}"),
        ({}, TABLE, UNEXPLAINED),
    ],
)  # fmt: skip
def test_a_difference_is_put_down_to_what_made_it(root, locked, change, artefact, why):
    here = made_on(read_record(Path(STUDY, TABLE)).origin)
    edit(locked, contents={f"{STUDY}/{artefact}": "0" * 64}, **change)
    assert checked(locked) == [(artefact, "changed", why.format(here=here))]


def test_studies_that_are_not_named_are_left_out_and_by_default_those_that_the_lock_lacks(
    root, locked, study, monkeypatch
):
    monkeypatch.setattr(study, "STUDY", "results/other")
    study.write_study()
    code, text = printed("lock", "--check", locked, "--short")
    assert (code, text) == (0, "As published: 15 artefacts have the contents of the lock.\n")
    code, text = printed("lock", STUDY, "results/other", "--check", locked, "--short")
    assert code == 1 and text.startswith(
        "As published, with 15 artefacts that the lock does not have: `python"
    )
    other = {"results/third/a.parquet": "0" * 64}
    edit(locked, contents=other, artefacts=other)
    assert checked(locked) == []
    with pytest.raises(DataError, match="results/third: no such study"):
        printed("lock", "--check", locked)


def test_a_file_that_is_no_lock_is_one_line(root):
    Path("lock.json").write_text('{"artefacts": {}, "contents": {}}')
    for place, found in (("lock.json", "not a lock"), ("absent.json", ".* Write a lock")):
        with pytest.raises(DataError, match=f"{place}: {found}"):
            printed("lock", "--check", place)


# Whether the numbers are those that were published


@pytest.fixture
def published(locked, monkeypatch):
    """A function that writes the printed numbers of a lock; those of the tree are 71.20 and 70.00."""
    monkeypatch.setattr(module, "_is_table", lambda name: name.endswith(TABLE))
    monkeypatch.setattr(module, "printed", lambda _table: {"a, STS": "71.20", "b, STS": "70.00"})
    return lambda numbers: edit(locked, printed={f"{STUDY}/{TABLE}": numbers})


HERE, ABACUS = "bytes differ: `", "bytes differ, as on another machine: `"


@pytest.mark.parametrize(
    ("numbers", "made_on", "said"),
    [
        ({"a, STS": "71.20"}, {f"{STUDY}/{TABLE}": "Abacus"}, f"Same numbers as published; {ABACUS}"),
        ({"a, STS": "71.20"}, {}, f"Same numbers as published; {HERE}"),
        ({"a, STS": "71.20", "b, STS": "70.01"}, {}, f"Not as published: 1 of 2 numbers differ, such as {STUDY}/{TABLE}: b, STS: 70.01 -> 70.00; `"),
        ({"c, STS": "1.00"}, {}, f"Not as published: 1 of 1 numbers differ, such as {STUDY}/{TABLE}: c, STS: 1.00 -> None; `"),
        ({}, {}, "Not as published: artefacts differ; `python"),
    ],
)  # fmt: skip
def test_one_line_says_whether_numbers_or_bytes_differ(root, locked, published, numbers, made_on, said):
    code, text = printed("lock", STUDY, "--check", locked, "--short")
    assert (code, text) == (0, "As published: 15 artefacts have the contents of the lock.\n")
    edit(locked, made_on=made_on)
    published(numbers)
    rewrite(Path(STUDY, TABLE), rows=lambda table: table.slice(1))
    code, text = printed("lock", STUDY, "--check", locked, "--short")
    assert code == 1 and text.startswith(said) and len(text.splitlines()) == 1
    assert text.endswith(f"`python -m workflow_scripts lock {STUDY} --check lock.json` for details.\n")


def test_cells_of_several_tables_with_one_run_and_heading_are_compared_each_with_its_own(locked, monkeypatch):
    """Though both tables say "a, STS"."""
    other = f"{STUDY}/tables/other.parquet"
    Path(other).write_bytes(Path(STUDY, TABLE).read_bytes())
    here = {f"{STUDY}/{TABLE}": {"a, STS": "71.20"}, other: {"a, STS": "50.00"}}
    monkeypatch.setattr(module, "_is_table", lambda name: name in here)
    monkeypatch.setattr(module, "printed", lambda table: here[table.as_posix()])
    edit(locked, contents={other: "0" * 64}, printed=here)
    assert data("lock", STUDY, "--check", locked, "--short")[1]["numbers"] == {}
    edit(locked, printed={other: {"a, STS": "71.20"}})
    numbers = data("lock", STUDY, "--check", locked, "--short")[1]["numbers"]
    assert numbers == {f"{other}: a, STS": ["71.20", "50.00"]}
