import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.unit.audit.conftest import STUDY
from tests.verbs import printed
from workflow_scripts.audit import lock as module
from workflow_scripts.audit.lock import UNEXPLAINED, check, lock
from workflow_scripts.audit.lookup import made_on
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_checksum, read_record, write_page, write_table


def test_a_lock_names_every_artefact_and_every_source(study):
    found = lock([Path(STUDY)])
    tables = {path.as_posix() for path in Path(STUDY).rglob("*.parquet")}
    assert tables
    assert tables < set(found["artefacts"])
    assert all(found["artefacts"][name] == read_checksum(Path(name)) for name in tables)
    assert any(path.startswith("hub:") for path in found["sources"])


def test_a_damaged_artefact_is_not_locked(study):
    path = next(Path(STUDY).rglob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=path.name):
        lock([Path(STUDY)])


def test_a_table_that_another_tool_wrote_anew_is_not_left_out_of_a_lock(root):
    path = Path(STUDY, "tables/main.parquet")
    pq.write_table(pq.read_table(path).replace_schema_metadata(None), path)
    with pytest.raises(DataError, match=r"tables/main\.parquet: damaged"):
        lock([Path(STUDY)])


def test_a_study_that_lacks_one_of_a_jobs_files_is_not_locked(root):
    Path(STUDY, "runs/plain/seed1/history.parquet").unlink()
    with pytest.raises(DataError, match=r"plain/seed1/history\.parquet: missing"):
        lock([Path(STUDY)])


def test_a_study_without_the_weights_that_were_dropped_is_locked(root, study):
    weights = Path(STUDY, "runs/plain/seed1/model/model.safetensors")
    study.write_dropped("plain", weights)
    weights.unlink()
    assert f"{STUDY}/runs/plain/seed1/model/record.json" in lock([Path(STUDY)])["artefacts"]


@pytest.mark.parametrize(
    ("to", "complaint"), [(STUDY, "a folder"), ("README/lock.json", "a file, not a folder")]
)
def test_a_place_where_no_lock_can_be_is_one_line(study, to, complaint):
    Path("README").write_text("")
    with pytest.raises(DataError, match=complaint):
        printed("lock", STUDY, "--to", to)


def test_equal_studies_give_equal_locks(study, tmp_path):
    assert printed("lock", STUDY, "--to", str(tmp_path / "a.json"))[0] == 0
    assert printed("lock", STUDY, "--to", str(tmp_path / "b.json"))[0] == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert json.loads((tmp_path / "a.json").read_text())["artefacts"]


def test_a_file_made_again_at_another_commit_is_locked_as_before(root):
    before = lock([Path(STUDY)])
    path = Path(STUDY, "tables/main.parquet")
    record = read_record(path)
    elsewhere = record.origin.model_copy(update={"commit": "0" * 40})
    write_table(path, pq.read_table(path), record.model_copy(update={"origin": elsewhere}))
    after = lock([Path(STUDY)])
    assert before["contents"] == after["contents"]
    assert before["artefacts"] == after["artefacts"]
    assert before["commits"] != after["commits"]
    assert after["contents"].keys() == after["artefacts"].keys()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ('<td class="varies">31 to 40</td><p>on <span class="varies">Abacus</span></p>', True),
        ('<td class="varies gap">not measured</td><p>on <span class="varies">Abacus</span></p>', True),
        ('<td class="varies">30</td><p>on <span class="varies">Zuse</span></p><td>30</td>', False),
        ('<td>30</td><p>on <span class="varies">Zuse</span></p>', False),
    ],
)
def test_a_page_that_shows_other_times_is_locked_as_before(root, text, same):
    path = Path(STUDY, "report.html")
    record = read_record(path)
    write_page(
        path, '<html><td class="varies">30</td><p>on <span class="varies">Zuse</span></p></html>', record
    )
    before = lock([Path(STUDY)])
    write_page(path, f"<html>{text}</html>", record)
    after = lock([Path(STUDY)])
    assert before["artefacts"] != after["artefacts"]
    assert (before["contents"] == after["contents"]) == same


def test_the_lock_lies_below_results_unless_asked_otherwise(root):
    assert printed("lock")[0] == 0
    text = Path("results/provenance.lock.json").read_text()
    assert json.loads(text)["artefacts"]
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"


# Checking a tree against a lock


@pytest.fixture
def locked(root):
    """The lock of a finished study."""
    Path("lock.json").write_text(json.dumps(lock([Path(STUDY)])))
    return Path("lock.json")


def checked(root, locked):
    return [(one.path.removeprefix(f"{STUDY}/"), one.kind, one.why) for one in held(root, locked).differences]


def held(root, locked):
    return check([Path(STUDY)], locked)


def edit(lock_file, **changes):
    content = json.loads(lock_file.read_text())
    for table, entries in changes.items():
        content[table] |= entries
    lock_file.write_text(json.dumps(content))


def test_a_tree_is_as_its_own_lock_says(root, locked):
    found = held(root, locked)
    assert (found.equal, found.differences, found.other_records, found.elsewhere) == (15, [], 0, "")


def test_a_table_edited_and_sealed_again_is_found(root, locked):
    path = Path(STUDY, "tables/main.parquet")
    rows = pq.read_table(path)
    at = rows.schema.get_field_index("value")
    forged = rows.set_column(at, "value", pc.add(rows["value"], 0.01))
    write_table(path, forged, read_record(path))
    assert checked(root, locked) == [("tables/main.parquet", "changed", UNEXPLAINED)]


def test_what_was_added_removed_or_damaged_is_found(root, locked, study):
    study.write_run("plain", 2)
    Path(STUDY, "tables/main.parquet").unlink()
    weights = Path(STUDY, "encoders/minilm/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    broken = "its checksum is broken; see verify"
    assert checked(root, locked) == [
        ("encoders/minilm/model.safetensors", "damaged", broken),
        ("runs/plain/seed2/history.parquet", "added", "not in the lock"),
        ("runs/plain/seed2/model/record.json", "added", "not in the lock"),
        ("tables/main.parquet", "removed", "in the lock alone"),
    ]


def test_a_change_names_what_made_it_and_a_reader_its_input(root, locked, study):
    study.write_run("plain", 1, temperature=0.1)
    study.write_scores("plain", 1, value=0.6)
    assert checked(root, locked) == [
        ("runs/plain/seed1/model/record.json", "changed", "settings"),
        (
            "scores/sts/suite/plain/seed1.parquet",
            "changed",
            f"made from {STUDY}/runs/plain/seed1/model/record.json",
        ),
    ]


TABLE = "tables/main.parquet"
CODE = "workflow_scripts/data/words.py"


@pytest.mark.parametrize(
    ("change", "artefact", "why"),
    [
        ({"code": {CODE: "0" * 64}}, TABLE, f"code {CODE}"),
        ({"packages": {"pyarrow": "1.0"}}, TABLE, f"package pyarrow 1.0 -> {pa.__version__}"),
        ({"sources": {"hub:owner/stsb@0123456789": "1" * 40}}, "datasets/stsb.parquet", "source hub:owner/stsb@0123456789"),
        ({"sources": {"resources/prompt.txt": "1" * 64}}, "corpora/wiki/train.parquet", "source resources/prompt.txt"),
        ({"made_on": {f"{STUDY}/{TABLE}": "Abacus, 1 threads"}}, TABLE, "another machine: Abacus, 1 threads -> {here}"),
        ({"machine": {"processor": "Abacus"}}, TABLE, UNEXPLAINED),
    ],
)  # fmt: skip
def test_a_difference_is_put_down_to_what_made_it(root, locked, change, artefact, why):
    here = made_on(read_record(Path(STUDY, TABLE)).origin)
    edit(locked, contents={f"{STUDY}/{artefact}": "0" * 64}, **change)
    assert checked(root, locked) == [(artefact, "changed", why.format(here=here))]


def test_the_gpu_that_made_an_artefact_is_a_reason(root, locked):
    path = Path(STUDY, TABLE)
    record = read_record(path)
    here = made_on(record.origin)
    origin = record.origin.model_copy(update={"gpu": "NVIDIA H100"})
    write_table(path, pq.read_table(path).slice(1), record.model_copy(update={"origin": origin}))
    ((_, _, why),) = checked(root, locked)
    assert why == f"another machine: {here} -> {made_on(origin)}" and "NVIDIA H100" in why


def test_another_record_is_no_difference_and_is_counted(root, locked):
    path = Path(STUDY, TABLE)
    write_table(
        path, pq.read_table(path), read_record(path).model_copy(update={"labels": ["worded otherwise"]})
    )
    found = held(root, locked)
    assert (found.differences, found.equal, found.other_records) == ([], 15, 1)


def test_another_study_of_the_tree_or_of_the_lock_is_left_out(root, locked, study, monkeypatch):
    monkeypatch.setattr(study, "STUDY", "results/other")
    study.write_study()
    assert checked(root, locked) == []
    edit(
        locked,
        contents={"results/third/a.parquet": "0" * 64},
        artefacts={"results/third/a.parquet": "0" * 64},
    )
    assert checked(root, locked) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"artefacts": {}, "contents": {}}'])
def test_a_file_that_is_no_lock_is_one_line(root, text):
    Path("lock.json").write_text(text)
    with pytest.raises(DataError, match=r"lock\.json: not a lock"):
        held(root, Path("lock.json"))
    with pytest.raises(DataError, match="no such file"):
        held(root, Path("absent.json"))
    with pytest.raises(DataError, match="results: a folder"):
        held(root, Path("results"))


def test_the_command_counts_and_ends_with_what_it_found(root, locked):
    assert printed("lock", "--check", "lock.json")[0] == 0
    assert "15 artefacts as in lock.json, 0 not" in printed("lock", "--check", "lock.json")[1]
    Path(STUDY, TABLE).unlink()
    code, said = printed("lock", "--check", "lock.json")
    assert code == 1 and "14 artefacts as in lock.json, 1 not" in said
    assert not Path("results/provenance.lock.json").exists()


# Whether the numbers are those that were published


@pytest.mark.parametrize(
    ("numbers", "compared", "elsewhere", "said"),
    [
        (
            {},
            60,
            "another machine: x",
            "Same numbers as published; bytes differ, as on another processor: `python",
        ),
        ({}, 60, "", "Same numbers as published; bytes differ: `python"),
        (
            {"a, b": ("1.00", "1.01")},
            60,
            "",
            "Not as published: 1 of 60 numbers differ, such as a, b: 1.00 -> 1.01; `",
        ),
        ({}, 0, "", "Not as published: artefacts differ; `python"),
    ],
)
def test_one_line_says_whether_numbers_or_bytes_differ(
    root, locked, monkeypatch, numbers, compared, elsewhere, said
):
    path = Path(STUDY, TABLE)
    write_table(path, pq.read_table(path).slice(1), read_record(path))
    found = held(root, locked)
    found.numbers, found.compared, found.elsewhere = numbers, compared, elsewhere
    monkeypatch.setattr(module, "check", lambda *_: found)
    code, text = printed("lock", STUDY, "--check", "lock.json", "--short")
    assert code == 1 and text.startswith(said) and len(text.splitlines()) == 1
    assert text.endswith(f"`python -m workflow_scripts lock {STUDY} --check lock.json` for details.\n")


def test_a_study_as_its_lock_says_is_as_published(root, locked):
    assert printed("lock", STUDY, "--check", "lock.json", "--short") == (
        0,
        "As published: 15 artefacts have the contents of the lock.\n",
    )


def test_printed_numbers_of_a_lock_are_compared_with_those_of_the_tree(root, locked, monkeypatch):
    monkeypatch.setattr(module, "_is_table", lambda name: name.endswith(TABLE))
    monkeypatch.setattr(module, "printed", lambda _table: {"a, STS": "71.20", "b, STS": "70.00"})
    edit(locked, printed={f"{STUDY}/{TABLE}": {"a, STS": "71.20", "b, STS": "70.01", "c, STS": "1.00"}})
    found = held(root, locked)
    assert found.compared == 3
    assert found.numbers == {"b, STS": ("70.01", "70.00"), "c, STS": ("1.00", None)}
