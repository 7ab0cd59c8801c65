"""The cache restores an entry under its key only, whole, for many jobs at once, and deletes old entries to make room."""

import os
import shutil
import signal
from pathlib import Path

import pyarrow as pa
import pytest

from tests import jobs
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import (
    identity,
    job_record,
    read_record,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.job import Job

KEY, OTHER = "a" * 64, "b" * 64
FILES = {"model": Path("model"), "history": Path("out/history")}
TABLE = pa.table({"step": [1, 2]})
MADE = {"model/weights": b"weights", "model/below/config": b"{}", "out/history": b"history"}


@pytest.fixture
def place(cached, tmp_path, monkeypatch):
    """Go to a folder of work; returns the cache."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return cached


def work(contents=MADE):
    """Make a model folder and a file, in the place of what is there."""
    shutil.rmtree("model", ignore_errors=True)
    for name, content in contents.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).unlink(missing_ok=True)
        Path(name).write_bytes(content)


def made():
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def entries(folder):
    return [path for path in folder.glob("??/*") if path.is_dir()]


def test_an_entry_is_restored_under_its_key_and_replaces_present_files(place):
    assert not cache.restore(KEY, FILES)
    work()
    cache.put(KEY, FILES)
    assert Path("model/weights").samefile(place / "aa" / KEY / "model/weights")
    work({"model/of another": b"x", "out/history": b"y"})
    assert not cache.restore(OTHER, FILES)
    assert cache.restore(KEY, FILES) and made() == MADE
    shutil.rmtree(cache.entry_folder(KEY))
    assert not cache.restore(KEY, FILES) and entries(place) == []


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # a link to what was made
    path.write_bytes(content)


def of_another_key(entry):
    work(MADE | {"out/history": b"another"})
    cache.put(OTHER, FILES)
    shutil.rmtree(entry)
    shutil.copytree(cache.entry_folder(OTHER), entry)


DAMAGE = {
    "a flipped byte": lambda entry: flip(entry / "model/weights"),
    "a list with a flipped byte": lambda entry: flip(entry / "entry.json"),
    "a file that is gone": lambda entry: (entry / "history").unlink(),
    "a list that is gone": lambda entry: (entry / "entry.json").unlink(),
    "a file too many": lambda entry: (entry / "model/more").touch(),
    "another's": lambda entry: of_another_key(entry),
    "an output edited in place": lambda _: Path("model/weights").write_bytes(b"edited!"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_reported_and_made_again(place, damage, capsys):
    work()
    cache.put(KEY, FILES)
    entry = place / "aa" / KEY
    damage(entry)
    work({"out/history": b"before"})
    before = made()
    assert not cache.restore(KEY, FILES) and made() == before
    assert f"{entry}: damaged; the entry is deleted" in capsys.readouterr().out
    work()
    cache.put(KEY, FILES)
    assert cache.restore(KEY, FILES) and made() == MADE


def without_links(*_):
    raise OSError


def test_an_edit_in_place_does_not_reach_copies(place, monkeypatch):
    monkeypatch.setattr(Path, "hardlink_to", without_links)
    work()
    cache.put(KEY, FILES)
    Path("model/weights").write_bytes(b"edited!")
    assert cache.restore(KEY, FILES) and made() == MADE


def test_the_least_recently_used_entries_are_deleted(place, monkeypatch):
    keys = [digit * 64 for digit in "abcd"]
    work({"model/weights": bytes(300_000), "out/history": b""})
    for age, key in enumerate(keys[:3]):
        cache.put(key, FILES)
        os.utime(place / key[:2] / key, (age, age))
    assert cache.restore(keys[0], FILES)  # which is used, then
    monkeypatch.setenv(cache.GIGABYTES, "0.001")
    cache.put(keys[3], FILES)
    assert sorted(entry.name for entry in entries(place)) == [keys[0], keys[2], keys[3]]


def test_a_full_disk_loses_only_the_entry(place, monkeypatch, capsys):
    """On a file system without links."""
    work({"model/weights": bytes(200_000), "out/history": b""})
    monkeypatch.setattr(Path, "hardlink_to", without_links)
    with jobs.full_disk():
        cache.put(KEY, FILES)
    assert "not cached: File too large" in capsys.readouterr().out
    assert [*place.rglob("*")] == [place / "aa"]


KILLED = {
    "put": (cache, "_entry_list", cache.put),
    "restore": (cache, "put_in_place", cache.restore),
    "make room": (shutil, "rmtree", lambda key, _: cache._remove(cache.entry_folder(key))),
}
"""What a job does, and the function in which it is killed."""


@pytest.mark.parametrize("doing", KILLED)
def test_a_killed_job_leaves_a_usable_cache(place, tmp_path, doing):
    module, name, do = KILLED[doing]
    work()
    if doing != "put":
        cache.put(KEY, FILES)

    def act():
        setattr(module, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        do(KEY, FILES)

    assert jobs.in_child(act, tmp_path / "log") == -signal.SIGKILL
    if doing != "restore":
        assert not cache.restore(KEY, FILES)
    cache._make_room(place, 0)
    assert [path.name for path in place.rglob(".*")] == []
    work()
    cache.put(KEY, FILES)
    assert cache.restore(KEY, FILES) and made() == MADE


def hammer(number, keys):
    """Put, restore and make room for hardly any entry; what is restored must be what its key says."""
    folder = Path(f"job{number}")
    files = {"table": folder / "table", "model": folder / "model"}
    restored = 0
    for _ in range(10):
        for key in keys:
            expected = key.encode() * 100
            if cache.restore(key, files):
                restored += 1
                assert files["table"].read_bytes() == (files["model"] / "weights").read_bytes() == expected
            else:
                shutil.rmtree(folder, ignore_errors=True)
                files["model"].mkdir(parents=True)
                files["table"].write_bytes(expected)
                (files["model"] / "weights").write_bytes(expected)
                cache.put(key, files)
    assert restored


def test_many_jobs_share_a_cache_that_is_always_full(place, monkeypatch, tmp_path):
    keys = [f"{number}0{KEY}"[:64] for number in range(6)]
    monkeypatch.setenv(cache.GIGABYTES, str(50_000 / 10**9))
    children = [jobs._FORK.Process(target=hammer, args=(number, keys)) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    whole = [
        cache.restore(entry.name, {name: Path(name) for name in ("table", "model")})
        for entry in entries(place)
    ]
    assert whole and all(whole) and not [*place.rglob(".*.tmp")]


# Trainings


def training(study):
    """A training that has not begun: its input, settings and code are those of every study, its paths are its own."""
    corpus, model = Path(study, "train.parquet"), Path(study, "run/model/record.json")
    outputs = {"record": model, "history": Path(study, "run/history.parquet"), "times": Path(study, "times")}
    write_table(corpus, TABLE, described("split_corpus", [corpus], labels=["a stand-in"]))
    start = described("train_encoder", [model, outputs["history"]], inputs={"corpus": corpus})
    return Job(start, {"corpus": corpus}, outputs, {}, {})


def described(rule, outputs, **more):
    """A record without code."""
    return job_record(
        rule, outputs=outputs, **{"settings": {}, "inputs": {}, "meaning": {}, "versions": {}} | more
    )


def test_another_study_finds_the_same_contents_with_a_record_of_its_own(place):
    one, two = training("results/one"), training("results/two")
    assert not one.restore()
    with writing_model_folder(one.artefacts[0], one.record(labels=["short"])) as folder:
        (folder / "weights").write_bytes(b"weights")
    one.write({"history": TABLE}, labels=["short"])
    one.outputs["times"].write_text("3 s")
    one.keep()
    assert two.restore() and two.outputs["times"].read_text() == "3 s"
    for before, after in zip(one.artefacts, two.artefacts, strict=True):
        assert identity(after) == identity(before)
        record = read_record(after)
        assert record.outputs == two.start.outputs and record.inputs == two.start.inputs
        assert record.labels == ["a stand-in", "short"]
    assert len(entries(place)) == 1
