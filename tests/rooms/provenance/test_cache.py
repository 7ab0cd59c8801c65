"""What is found again in the cache: under its key alone, whole, by many jobs at once, and as long as there is room."""

import os
import resource
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests import jobs
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import check_model_folder, identity, read_record

KEY, OTHER = "a" * 64, "b" * 64
FILES = {"model": Path("model"), "history": Path("out/history")}
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


def test_what_is_cached_comes_back_under_its_key_in_the_place_of_what_is_there(place):
    assert not cache.restore(KEY, FILES)
    work()
    cache.put(KEY, FILES)
    assert Path("model/weights").samefile(place / "aa" / KEY / "model/weights")
    work({"model/of another": b"x", "out/history": b"y"})
    assert not cache.restore(OTHER, FILES)
    assert cache.restore(KEY, FILES) and made() == MADE
    cache.forget(KEY)
    assert not cache.restore(KEY, FILES) and entries(place) == []


def test_without_a_folder_nothing_is_cached(place, monkeypatch):
    monkeypatch.setenv(cache.FOLDER, "")
    work()
    cache.put(KEY, FILES)
    assert not cache.restore(KEY, FILES) and not place.exists()


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # a link to what was made
    path.write_bytes(content)


def of_another_key(entry):
    work(MADE | {"out/history": b"another"})
    cache.put(OTHER, FILES)
    shutil.rmtree(entry)
    shutil.copytree(cache.entry_of(OTHER), entry)


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
def test_an_entry_that_is_not_as_it_was_put_is_said_and_made_again(place, damage, capsys):
    work()
    cache.put(KEY, FILES)
    entry = place / "aa" / KEY
    damage(entry)
    assert [where for where, _ in cache.faults(place)] == [entry]
    work({"out/history": b"before"})
    before = made()
    assert not cache.restore(KEY, FILES) and made() == before
    assert f"{entry}: damaged; the entry is deleted" in capsys.readouterr().out
    work()
    cache.put(KEY, FILES)
    assert cache.restore(KEY, FILES) and made() == MADE and not [*cache.faults(place)]


@pytest.mark.parametrize("kind", ["reflinks", "copies"])
def test_reflinks_and_copies_are_no_links(place, monkeypatch, kind):
    def ioctl(target, _request, source):
        if kind == "copies":
            raise OSError
        target.write(os.pread(source, 100, 0))

    monkeypatch.setattr(cache.fcntl, "ioctl", ioctl)
    monkeypatch.setattr(Path, "hardlink_to", lambda *_: (_ for _ in ()).throw(OSError))
    work()
    cache.put(KEY, FILES)
    Path("model/weights").write_bytes(b"edited!")
    assert cache.restore(KEY, FILES) and made() == MADE


def test_what_was_not_used_for_longest_makes_room(place, monkeypatch):
    keys = [digit * 64 for digit in "abcd"]
    work({"model/weights": bytes(300_000), "out/history": b""})
    for age, key in enumerate(keys[:3]):
        cache.put(key, FILES)
        os.utime(place / key[:2] / key, (age, age))
    assert cache.restore(keys[0], FILES)  # which is used, then
    monkeypatch.setenv(cache.GIGABYTES, "0.001")
    cache.put(keys[3], FILES)
    assert sorted(entry.name for entry in entries(place)) == [keys[0], keys[2], keys[3]]


def full_disk():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))


def test_a_full_disk_costs_the_entry_alone(place, tmp_path):
    """In a process of its own, of which no file may grow beyond 100 kB, on a file system without links."""
    work({"model/weights": bytes(200_000), "out/history": b""})

    def act():
        full_disk()
        cache._FICLONE = 0
        Path.hardlink_to = lambda *_: (_ for _ in ()).throw(OSError)
        cache.put(KEY, FILES)

    assert jobs.in_child(act, tmp_path / "log") == 0
    assert "not cached: File too large" in (tmp_path / "log").read_text()
    assert [*place.rglob("*")] == [place / "aa"]


KILLED = {
    "put": (cache, "_list_of", cache.put),
    "restore": (cache, "put_in_place", cache.restore),
    "make room": (shutil, "rmtree", lambda key, _: cache.forget(key)),
}
"""What a job does, and the function in which it is killed."""


@pytest.mark.parametrize("doing", KILLED)
def test_a_job_that_is_killed_leaves_a_cache_that_serves_and_is_swept(place, tmp_path, doing):
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
    cache._make_room(place, 10**9)
    assert [path.name for path in place.rglob(".*")] == []
    work()
    cache.put(KEY, FILES)
    assert cache.restore(KEY, FILES)
    assert made() == MADE and not [*cache.faults(place)]


def hammer(number, keys, until):
    """Put, restore and make room for hardly any entry; what is restored must be what its key says."""
    folder = Path(f"job{number}")
    files = {"table": folder / "table", "model": folder / "model"}
    restored = 0
    while time.monotonic() < until:
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
    assert restored > 10


def test_many_jobs_share_a_cache_that_is_always_full(place, monkeypatch, tmp_path):
    keys = [f"{number}0{KEY}"[:64] for number in range(6)]
    monkeypatch.setenv(cache.GIGABYTES, str(50_000 / 10**9))
    until = time.monotonic() + 3
    children = [jobs._FORK.Process(target=hammer, args=(number, keys, until)) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    assert not [*cache.faults(place)] and not [*place.rglob(".*.tmp")]


# Trainings

RULES = ("continue_mlm", "train_encoder")
OUTPUTS = [jobs.MODEL, Path("run/history.parquet"), Path("speed.parquet")]


@pytest.fixture
def study(place, tmp_path, monkeypatch):
    """Go to a folder of a study; returns the cache."""
    monkeypatch.setattr("workflow_scripts.provenance.record.git_state", lambda: (None, False))
    monkeypatch.chdir(jobs.make_inputs(tmp_path / "one"))
    return place


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


def trains(capsys, rule, **changes):
    """Whether a job trains, or finds what it would make."""
    capsys.readouterr()
    jobs.run_here(rule, jobs.config(rule, **{"max_steps": 3} | changes))
    return "restored from" not in capsys.readouterr().out


@pytest.mark.parametrize("rule", RULES)
def test_another_study_finds_the_same_contents_with_a_record_of_its_own(
    study, tmp_path, monkeypatch, capsys, rule
):
    assert trains(capsys, rule)
    first = [identity(path) for path in OUTPUTS[:2]]
    labels, files = read_record(jobs.MODEL).labels, jobs.files_of(jobs.MODEL)
    speed = OUTPUTS[2].read_bytes()
    two = another_study(monkeypatch, tmp_path / "elsewhere")
    assert not trains(capsys, rule)
    assert [identity(two / path) for path in OUTPUTS[:2]] == first
    assert (two / OUTPUTS[2]).read_bytes() == speed
    record = check_model_folder(two / jobs.MODEL)
    assert all(path.startswith("results/two/") for path in record.outputs)
    assert all(given.path.startswith("results/two/") for given in record.inputs.values())
    assert record.labels == labels == read_record(two / OUTPUTS[1]).labels
    again = jobs.files_of(two / jobs.MODEL)
    assert {**again, "record.json": ""} == {**files, "record.json": ""}
    assert len(entries(study)) == 1 and not [*cache.faults(study)]


def test_another_input_setting_or_seed_is_another_training(study, monkeypatch, capsys):
    assert trains(capsys, "train_encoder")
    assert trains(capsys, "train_encoder", max_steps=6)
    monkeypatch.setattr(jobs, "SEED", "2")
    assert trains(capsys, "train_encoder")
    jobs.make_inputs(Path(), texts=41)
    assert trains(capsys, "train_encoder")
    assert len(entries(study)) == 4
