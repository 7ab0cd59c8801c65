"""Trainings that are found again in the store: by another study, under another key, damaged, and where it is full."""

import os
import shutil
from pathlib import Path

import pytest

from tests import jobs
from workflow_scripts.provenance import store
from workflow_scripts.provenance.artefacts import check_model_folder, identity, read_record

RULES = ("continue_mlm", "train_encoder")
OUTPUTS = [jobs.MODEL, Path("run/history.parquet"), Path("speed.parquet")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Go to a folder of a study, whose store is that of all; returns the store."""
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "store"))
    monkeypatch.setenv(store.GIGABYTES, "1")
    monkeypatch.setattr("workflow_scripts.provenance.record.git_state", lambda: (None, False))
    monkeypatch.chdir(jobs.make_inputs(tmp_path / "one"))
    return tmp_path / "store"


def entries(folder):
    return [path for path in folder.glob("??/*") if path.is_dir()]


def another_study(monkeypatch, folder):
    """The same inputs below another name, read and written there."""
    shutil.copytree("encoder", folder / "results/two/encoder")
    shutil.copytree("corpus", folder / "results/two/corpus")
    monkeypatch.chdir(folder)
    made = jobs.call_of

    def call_of(rule, settings, modules=(), **named):
        moved = {
            name: f"results/two/{value}" if "/" in str(value) or str(value).endswith(".parquet") else value
            for name, value in named.items()
        }
        return made(rule, settings, modules, **moved)

    monkeypatch.setattr(jobs, "call_of", call_of)
    return Path("results/two")


def trains(monkeypatch, capsys, rule, **changes):
    """Whether a job trains, or finds what it would make."""
    capsys.readouterr()
    jobs.run_here(rule, jobs.config(rule, **{"max_steps": 3} | changes))
    return "done before" not in capsys.readouterr().out


@pytest.mark.parametrize("rule", RULES)
def test_another_study_finds_the_same_contents_with_a_record_of_its_own(
    place, tmp_path, monkeypatch, capsys, rule
):
    assert trains(monkeypatch, capsys, rule)
    first = [identity(path) for path in OUTPUTS[:2]]
    labels, files = read_record(jobs.MODEL).labels, jobs.files_of(jobs.MODEL)
    speed = OUTPUTS[2].read_bytes()
    two = another_study(monkeypatch, tmp_path / "elsewhere")
    assert not trains(monkeypatch, capsys, rule)
    assert [identity(two / path) for path in OUTPUTS[:2]] == first
    assert (two / OUTPUTS[2]).read_bytes() == speed
    record = check_model_folder(two / jobs.MODEL)
    assert all(path.startswith("results/two/") for path in record.outputs)
    assert all(given.path.startswith("results/two/") for given in record.inputs.values())
    assert record.labels == labels == read_record(two / OUTPUTS[1]).labels
    again = jobs.files_of(two / jobs.MODEL)
    assert {**again, "record.json": ""} == {**files, "record.json": ""}
    assert len(entries(place)) == 1


def test_another_input_setting_or_seed_is_another_training(place, monkeypatch, capsys):
    assert trains(monkeypatch, capsys, "train_encoder")
    assert trains(monkeypatch, capsys, "train_encoder", max_steps=6)
    monkeypatch.setattr(jobs, "SEED", "2")
    assert trains(monkeypatch, capsys, "train_encoder")
    jobs.make_inputs(Path(), texts=41)
    assert trains(monkeypatch, capsys, "train_encoder")
    assert len(entries(place)) == 4


@pytest.mark.parametrize("file", ["model/model.safetensors", "history.parquet", "model/record.json"])
def test_a_flipped_byte_is_made_again_and_said(place, monkeypatch, capsys, file):
    trains(monkeypatch, capsys, "train_encoder")
    before = jobs.files_of(Path("run"))
    (entry,) = entries(place)
    content = bytearray((entry / file).read_bytes())
    content[len(content) // 2] ^= 1
    (entry / file).unlink()  # a link to what the study has
    (entry / file).write_bytes(content)
    ((damaged, fault),) = store.faults(place)
    assert damaged == entry and Path(file).name in fault
    shutil.rmtree("run")
    jobs.run_here("train_encoder", jobs.config("train_encoder", max_steps=3))
    assert "The store's entry is deleted, and made again." in capsys.readouterr().out
    assert jobs.files_of(Path("run")) == before
    assert not [*store.faults(place)]
    shutil.rmtree("run")
    assert not trains(monkeypatch, capsys, "train_encoder")


def test_an_entry_under_the_key_of_another_is_not_served(place, monkeypatch, capsys):
    trains(monkeypatch, capsys, "train_encoder")
    (first,) = entries(place)
    trains(monkeypatch, capsys, "train_encoder", max_steps=6)
    (second,) = [entry for entry in entries(place) if entry != first]
    shutil.rmtree(first)
    shutil.copytree(second, first)
    assert [entry for entry, _ in store.faults(place)] == [first]
    assert trains(monkeypatch, capsys, "train_encoder")


def test_what_was_not_used_for_longest_makes_room(place, monkeypatch, capsys):
    settings = [{"max_steps": steps} for steps in (6, 7, 8)]
    for number, changes in enumerate(settings):
        trains(monkeypatch, capsys, "train_encoder", **changes)
        if number == 1:
            shutil.rmtree("run")
            for entry in entries(place):
                os.utime(entry, (0, 0))
            assert not trains(monkeypatch, capsys, "train_encoder", **settings[0])  # which is used, then
            size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
            monkeypatch.setenv(store.GIGABYTES, str(1.2 * size / 10**9))
    assert len(entries(place)) == 2
    shutil.rmtree("run")
    assert not trains(monkeypatch, capsys, "train_encoder", **settings[0])
    assert trains(monkeypatch, capsys, "train_encoder", **settings[1])


def test_two_equal_jobs_that_finish_at_once_leave_one_entry(place, monkeypatch, capsys):
    trains(monkeypatch, capsys, "train_encoder")
    record = read_record(jobs.MODEL)
    before = jobs.files_of(place)
    store.put(record, OUTPUTS)
    assert jobs.files_of(place) == before
    store.forget(record)
    assert not entries(place)


def test_without_a_store_nothing_is_stored(place, monkeypatch, capsys):
    monkeypatch.setenv(store.FOLDER, "")
    trains(monkeypatch, capsys, "train_encoder")
    assert not place.exists()
