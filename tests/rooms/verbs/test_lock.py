"""A lock lists the artefacts of a study, and explains each that differs from it."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.rooms.verbs.conftest import STUDY, flip_a_byte, reseal
from tests.support.verb_answers import data, printed
from workflow_scripts.columns import TABLE as TABLE_COLUMNS
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_record, writing_model_folder
from workflow_scripts.verbs.lock import LOCK, UNEXPLAINED, commit_of, machine

TABLE = "tables/main.parquet"


def test_a_lock_names_every_artefact_and_every_source(root):
    """A lock names every artefact and every source and lies below results."""
    assert printed("lock")[0] == 0
    text = LOCK.read_text()
    found = json.loads(text)
    assert text == json.dumps(found, indent=1, sort_keys=True) + "\n"
    tables = {path.as_posix() for path in Path(STUDY).rglob("*.parquet")}
    assert tables
    assert tables < set(found["contents"]) == set(found["settings"])
    assert "hub:owner/stsb@0123456789" in found["sources"]
    assert "resources/prompt.txt" in found["sources"]
    assert printed("lock", "--to", "again.json")[0] == 0
    assert Path("again.json").read_text() == text


@pytest.mark.parametrize(
    ("commit", "dirty", "said"),
    [("a" * 40, False, "a" * 40), ("a" * 40, True, f"{'a' * 40} (dirty)"), (None, False, "unknown")],
)
def test_the_commit_of_a_study_is_named_or_unknown(root, commit, dirty, said):
    origin = read_record(Path(STUDY, TABLE)).origin
    found = commit_of(origin.model_copy(update={"commit": commit, "dirty": dirty}))
    assert found == said


@pytest.mark.parametrize("change", [flip_a_byte, Path.unlink])
def test_nothing_damaged_or_missing_is_locked(root, change):
    change(Path(STUDY, TABLE))
    with pytest.raises(DataError, match=f"{TABLE}: damaged or missing"):
        printed("lock")


def test_a_table_made_again_is_as_in_the_lock(root, locked):
    """A table made again at another commit is as in the lock and an edited one is not."""
    origin = read_record(Path(STUDY, TABLE)).origin
    reseal(Path(STUDY, TABLE), origin=origin.model_copy(update={"commit": "0" * 40}))
    assert checked(locked) == []
    reseal(Path(STUDY, TABLE), rows=lambda table: table.set_column(5, "value", pc.add(table["value"], 0.01)))
    assert checked(locked) == [(TABLE, "changed", UNEXPLAINED)]


# Checking a tree against a lock


@pytest.fixture
def locked(root):
    """The lock of a finished study."""
    printed("lock", STUDY, "--to", "lock.json")
    return Path("lock.json")


def checked(locked):
    _code, said = data("lock", STUDY, "--check", locked)
    assert said["good"] == (not said["differences"])
    return [(one["path"].removeprefix(f"{STUDY}/"), one["kind"], one["why"]) for one in said["differences"]]


def edit(lock_file, **changes):
    content = json.loads(lock_file.read_text())
    for table, entries in changes.items():
        content[table] |= entries
    lock_file.write_text(json.dumps(content))


def test_added_removed_and_damaged_artefacts_are_found(root, locked, study):
    study.write_run("plain", 2)
    Path(STUDY, TABLE).unlink()
    flip_a_byte(f"{STUDY}/encoders/minilm/model.safetensors")
    assert checked(locked) == [
        ("encoders/minilm/model.safetensors", "damaged", "its checksum does not match; see verify"),
        ("runs/plain/seed2/history.parquet", "added", "not in the lock"),
        ("runs/plain/seed2/model/record.json", "added", "not in the lock"),
        (TABLE, "removed", "only in the lock"),
    ]


def write_card(study, run, seed):
    """Write the card of a model, as its rule does."""
    folder = f"runs/{run}/seed{seed}/card"
    outputs = [f"{folder}/README.md", f"{folder}/record.json"]
    made = study.made_by(
        "write_model_card", outputs, inputs={"model": f"runs/{run}/seed{seed}/model/record.json"}
    )
    with writing_model_folder(study.place(folder), made) as card:
        (card / "README.md").write_text(f"# {run}")


def test_model_cards_made_after_the_lock_are_no_difference(root, locked, study):
    """They are made on request; a card of the lock is compared as any other artefact."""
    for seed in (1, 2):
        write_card(study, "simcse", seed)
    code, said = data("lock", STUDY, "--check", locked)
    assert (code, said["differences"], said["model_cards"]) == (0, [], 2)
    assert said["verdict"] == "15 artefacts as in lock.json, 0 not; model cards made since: 2"
    assert printed("lock", STUDY, "--check", locked, "--short")[1].startswith("As published: 15 artefacts")
    study.write_run("plain", 2)
    assert [kind for _, kind, _ in checked(locked)] == ["added", "added"]
    edit(locked, contents={f"{STUDY}/runs/simcse/seed1/card/record.json": "0" * 64})
    assert ("runs/simcse/seed1/card/record.json", "changed") in [row[:2] for row in checked(locked)]
    assert data("lock", STUDY, "--check", locked)[1]["model_cards"] == 1


def test_a_changed_artefact_names_the_cause(root, locked, study):
    """A changed artefact names the cause and its readers name it."""
    study.write_run("plain", 1, temperature=0.1)
    study.write_scores("plain", 1, value=0.6)
    history, model = (f"runs/plain/seed1/{name}" for name in ("history.parquet", "model/record.json"))
    scores = "scores/sts/suite/plain/seed1.parquet"
    assert checked(locked) == [
        (history, "changed", "settings"),
        (model, "changed", "settings"),
        (scores, "changed", f"made from {STUDY}/{model}"),
    ]


def test_another_rate_in_a_resealed_record_is_found(root, locked):
    """Its contents are those of the lock, and verify finds nothing amiss."""
    history = "runs/plain/seed1/history.parquet"
    record = read_record(Path(STUDY, history))
    forged = record.model_copy(update={"settings": record.settings | {"training": {"learning_rate": 1.0}}})
    reseal(Path(STUDY, history), settings=forged.settings, key=forged.recomputed_key())
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
    here = machine(read_record(Path(STUDY, TABLE)).origin)
    edit(locked, contents={f"{STUDY}/{artefact}": "0" * 64}, **change)
    assert checked(locked) == [(artefact, "changed", why.format(here=here))]


def test_by_default_the_studies_of_the_lock_are_compared(root, locked, study, monkeypatch):
    monkeypatch.setattr(study, "STUDY", "results/other")
    study.write_study()
    code, text = printed("lock", "--check", locked, "--short")
    assert (code, text) == (0, "As published: 15 artefacts have the contents of the lock.\n")
    code, text = printed("lock", STUDY, "results/other", "--check", locked, "--short")
    added = "As published: all 0 numbers; 15 artefacts differ or are not in the lock: `python"
    assert code == 1
    assert text.startswith(added)
    edit(locked, contents={"results/third/a.parquet": "0" * 64})
    with pytest.raises(DataError, match="results/third: no such study"):
        printed("lock", "--check", locked)


def test_a_file_that_is_not_a_lock_is_one_line(root):
    Path("lock.json").write_text('{"contents": {}}')
    for place, found in (("lock.json", "not a lock"), ("absent.json", ".* Write a lock")):
        with pytest.raises(DataError, match=f"{place}: {found}"):
            printed("lock", "--check", place)
    Path("demo.lock.json").touch()
    with pytest.raises(DataError, match=r"demo\.lok\.json: no such lock\. Did you mean demo\.lock\.json\?"):
        printed("lock", "--check", "demo.lok.json")


# Whether the numbers are those that were published


NUMBERS = {"a, STS": "71.20", "b, STS": "70.00"}
OTHER = f"{STUDY}/tables/other.parquet"


@pytest.fixture
def numbered(root, study):
    """The lock of a study with a table of numbers, in which one run is a gap; and that table."""
    path = Path(STUDY, "tables/numbers.parquet")
    means = {"a": 71.199, "b": 70.0, "c": None}
    rows = [{"run": run, "heading": "STS", "mean": mean, "digits": 2} for run, mean in means.items()]
    table = pa.Table.from_pylist(rows, schema=TABLE_COLUMNS)
    study.write("make_table", "tables/numbers.parquet", table)
    study.write("make_table", "tables/other.parquet", table.slice(0, 1))
    printed("lock", STUDY, "--to", "lock.json")
    assert json.loads(Path("lock.json").read_text())["printed"] == {
        path.as_posix(): NUMBERS, OTHER: {"a, STS": "71.20"}
    }  # fmt: skip
    return Path("lock.json"), path


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (NUMBERS, "As published: all 3 numbers; 1 artefact differs or is not in the lock: `"),
        (NUMBERS | {"b, STS": "70.01"}, "Not as published: 1 of 3 numbers differ, such as {table}: b, STS: 70.01 -> 70.00; `"),
        (NUMBERS | {"d, STS": "1.00"}, "Not as published: 1 of 4 numbers differ, such as {table}: d, STS: 1.00 -> None; `"),
    ],
)  # fmt: skip
def test_one_line_says_whether_numbers_or_bytes_differ(numbered, numbers, said):
    """A cell is compared with that of its own table, though others have the same run and heading."""
    locked, table = numbered
    edit(locked, printed={table.as_posix(): numbers})
    reseal(table, rows=lambda rows: rows.set_column(0, "run", pa.array(["a", "b", "e"])))
    code, text = printed("lock", STUDY, "--check", locked, "--short")
    assert code == 1
    assert text.startswith(said.format(table=table))
    assert len(text.splitlines()) == 1
    assert text.endswith(f"`python -m workflow_scripts lock {STUDY} --check lock.json` for details.\n")
