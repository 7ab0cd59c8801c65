"""The cache restores an entry under its key only, whole, for many jobs at once, and deletes old entries to make room."""

import os
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support import training_jobs
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import (
    identity,
    job_record,
    read_record,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.cache import Cache
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.workplace import Workplace

CACHE = Cache(Path("../cache"), 1)
KEY, OTHER = "a" * 64, "b" * 64
FILES = {"model": Path("model"), "history": Path("out/history")}
TABLE = pa.table({"step": [1, 2]})
MADE = {"model/weights": b"weights", "model/below/config": b"{}", "out/history": b"history"}


@pytest.fixture
def place(cached, tmp_path, monkeypatch):
    """Go to a folder of work; returns the cache's folder."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return cached.folder


def work(contents=MADE):
    """Make a model folder and a file, in the place of what is there."""
    shutil.rmtree("model", ignore_errors=True)
    for name, content in contents.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).unlink(missing_ok=True)
        Path(name).write_bytes(content)


def made():
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def made_outputs():
    return {name: Path(name).read_bytes() for name in MADE}


def entries(folder):
    return [path for path in folder.glob("??/*") if path.is_dir()]


def test_an_entry_is_restored_and_replaces_present_files(place):
    """An entry is restored under its key and replaces present files."""
    assert not CACHE.restore(KEY, FILES)
    work()
    CACHE.put(KEY, FILES)
    assert Path("model/weights").samefile(place / "aa" / KEY / "model/weights")
    work({"model/of another": b"x", "out/history": b"y"})
    assert not CACHE.restore(OTHER, FILES)
    assert CACHE.restore(KEY, FILES)
    assert made() == MADE
    shutil.rmtree(CACHE.entry_folder(KEY))
    assert not CACHE.restore(KEY, FILES)
    assert entries(place) == []


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # a link to what was made
    path.write_bytes(content)


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def pipe(path):
    remove(path)
    os.mkfifo(path)


def link(path):
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def folder_at(path):
    remove(path)
    path.mkdir()


def file_at(path):
    remove(path)
    path.touch()


def of_another_key(entry):
    work(MADE | {"out/history": b"another"})
    CACHE.put(OTHER, FILES)
    shutil.rmtree(entry)
    shutil.copytree(CACHE.entry_folder(OTHER), entry)


DAMAGE = {
    "a flipped byte": lambda entry: flip(entry / "model/weights"),
    "a flipped byte in an inner folder": lambda entry: flip(entry / "model/below/config"),
    "a list with a flipped byte": lambda entry: flip(entry / "entry.json"),
    "a file that is gone": lambda entry: (entry / "history").unlink(),
    "a list that is gone": lambda entry: (entry / "entry.json").unlink(),
    "a file too many": lambda entry: (entry / "model/more").touch(),
    "an empty folder too many": lambda entry: (entry / "model/more").mkdir(),
    "a pipe in place of a file": lambda entry: pipe(entry / "history"),
    "a pipe among files": lambda entry: os.mkfifo(entry / "model/pipe"),
    "a pipe in place of the list": lambda entry: pipe(entry / "entry.json"),
    "a link in place of a file": lambda entry: link(entry / "model/weights"),
    "a folder in place of a file": lambda entry: folder_at(entry / "history"),
    "a folder in place of the list": lambda entry: folder_at(entry / "entry.json"),
    "a file in place of a folder": lambda entry: file_at(entry / "model"),
    "a file in its own place": lambda entry: file_at(entry),
    "a pipe in its own place": lambda entry: pipe(entry),
    "another's": lambda entry: of_another_key(entry),
    "an output edited in place": lambda _: Path("model/weights").write_bytes(b"edited!"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_entry_is_reported_and_made_again(place, damage, capsys):
    work()
    CACHE.put(KEY, FILES)
    entry = place / "aa" / KEY
    damage(entry)
    work({"out/history": b"before"})
    before = made()
    assert not CACHE.restore(KEY, FILES)
    assert made() == before
    assert f"{KEY}: damaged. The entry is deleted" in capsys.readouterr().out
    work()
    CACHE.put(KEY, FILES)
    assert CACHE.restore(KEY, FILES)
    assert made() == MADE


def without_links(*_):
    raise OSError


def test_an_edit_in_place_does_not_reach_copies(place, monkeypatch):
    monkeypatch.setattr(Path, "hardlink_to", without_links)
    work()
    CACHE.put(KEY, FILES)
    Path("model/weights").write_bytes(b"edited!")
    assert CACHE.restore(KEY, FILES)
    assert made() == MADE


def test_the_least_recently_used_entries_are_deleted(place):
    keys = [digit * 64 for digit in "abcd"]
    work({"model/weights": bytes(300_000), "out/history": b""})
    for age, key in enumerate(keys[:3]):
        CACHE.put(key, FILES)
        os.utime(place / key[:2] / key, (age, age))
    assert CACHE.restore(keys[0], FILES)  # which is used, then
    CACHE._replace(gigabytes=0.001).put(keys[3], FILES)
    assert sorted(entry.name for entry in entries(place)) == [keys[0], keys[2], keys[3]]


def test_a_full_disk_loses_only_the_entry(place, monkeypatch, capsys):
    """On a file system without links."""
    work({"model/weights": bytes(200_000), "out/history": b""})
    monkeypatch.setattr(Path, "hardlink_to", without_links)
    with training_jobs.full_disk():
        CACHE.put(KEY, FILES)
    assert "not cached: File too large" in capsys.readouterr().out
    assert [*place.rglob("*")] == [place / "aa"]


OUTPUTS = {
    "a pipe": lambda: os.mkfifo("model/pipe"),
    "a link": lambda: Path("model/link").symlink_to("weights"),
}


@pytest.mark.parametrize("add", OUTPUTS.values(), ids=OUTPUTS)
def test_an_output_with_a_pipe_or_a_link_is_not_cached(place, capsys, add):
    work()
    add()
    CACHE.put(KEY, FILES)
    assert "not cached: model/" in capsys.readouterr().out
    assert [*place.rglob("*")] == [place / "aa"]


def test_an_empty_folder_is_restored(place):
    work()
    Path("model/empty").mkdir()
    CACHE.put(KEY, FILES)
    work()
    assert CACHE.restore(KEY, FILES)
    assert Path("model/empty").is_dir()


# Other people's files, and other people


def test_making_room_deletes_nothing_but_entries(place, monkeypatch):
    work()
    CACHE.put(KEY, FILES)
    others = [
        place / "aa/notes.txt",
        place / "aa" / KEY[2:] / "object",  # as in a store of Git
        place / "aa" / OTHER / "entry.json",  # the key of another folder
        place / "cc" / ("c" * 64) / "photo.jpg",  # named as an entry, without a list
        place / "at/home.txt",
        place / "thesis.tex",
    ]
    for file in others:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    (place / "dd").symlink_to(place / "at")
    cache._make_room(place, 0)
    assert not (place / "aa" / KEY).exists()
    assert all(file.read_text() == "mine" for file in others)
    assert (place / "dd").is_symlink()


def test_a_linked_entry_is_deleted_without_its_target(place, tmp_path):
    """An entry that is a link is deleted without what it leads to."""
    work()
    CACHE.put(KEY, FILES)
    entry = (place / "aa" / KEY).rename(tmp_path / "elsewhere")
    (place / "aa" / KEY).symlink_to(entry)
    cache._make_room(place, 0)
    assert not (place / "aa" / KEY).is_symlink()
    assert (entry / "entry.json").exists()


@contextmanager
def another_user():
    """Act as a user whom permissions bind; the paths have to be relative, since pytest's folder is its owner's."""
    root = os.geteuid() == 0
    os.seteuid(65534) if root else None
    try:
        yield
    finally:
        os.seteuid(0) if root else None


UNREADABLE = {
    "the cache": "",
    "the folder of its first digits": "aa",
    "the entry": f"aa/{KEY}",
    "its list": f"aa/{KEY}/entry.json",
    "a folder in it": f"aa/{KEY}/model",
    "a file in it": f"aa/{KEY}/model/weights",
}


@pytest.mark.parametrize("unreadable", UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_cache_is_a_warning_and_ends_no_job(place, monkeypatch, capsys, unreadable):
    cache_here = Cache(Path("cache"), 1)
    monkeypatch.setattr(Path, "hardlink_to", without_links)  # the output keeps its own permissions
    work()
    cache_here.put(KEY, FILES)
    for path in [Path("model"), *Path("model").rglob("*"), Path("out"), Path("out/history"), Path()]:
        path.chmod(0o777)
    forbidden = Path("cache", unreadable)
    mode = forbidden.stat().st_mode
    forbidden.chmod(0)
    before = made_outputs()
    with another_user():
        assert not cache_here.restore(KEY, FILES)
        cache_here.put(KEY, FILES)
        cache_here.put(OTHER, FILES)
        cache._make_room(Path("cache"), 1)
    assert f"{KEY}: cannot be read, so its work is repeated: Permission denied." in capsys.readouterr().out
    forbidden.chmod(mode)
    assert cache_here.restore(KEY, FILES)
    assert made_outputs() == before


def test_a_file_of_another_user_is_copied(place, monkeypatch):
    """Snakemake sets the times of outputs, which only their owner may."""
    work()
    CACHE.put(KEY, FILES)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert CACHE.restore(KEY, FILES)
    assert made() == MADE
    assert Path("model/weights").stat().st_nlink == 1


KILLED = {
    "put": (cache, "_entry_list", CACHE.put),
    "restore": (cache, "put_in_place", CACHE.restore),
    "make room": (shutil, "rmtree", lambda key, _: cache._remove(CACHE.entry_folder(key))),
}
"""What a job does, and the function in which it is killed."""


@pytest.mark.parametrize("doing", KILLED)
def test_a_killed_job_leaves_a_usable_cache(place, tmp_path, doing):
    module, name, do = KILLED[doing]
    work()
    if doing != "put":
        CACHE.put(KEY, FILES)

    def act():
        setattr(module, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        do(KEY, FILES)

    assert training_jobs.in_child(act, tmp_path / "log") == -signal.SIGKILL
    if doing != "restore":
        assert not CACHE.restore(KEY, FILES)
    cache._make_room(place, 0)
    assert [path.name for path in place.rglob(".*")] == []
    work()
    CACHE.put(KEY, FILES)
    assert CACHE.restore(KEY, FILES)
    assert made() == MADE


SMALL = CACHE._replace(gigabytes=50_000 / 10**9)


def hammer(number, keys):
    """Put, restore and make room for hardly any entry; what is restored must be what its key says."""
    folder = Path(f"job{number}")
    files = {"table": folder / "table", "model": folder / "model"}
    restored = 0
    for _ in range(10):
        for key in keys:
            expected = key.encode() * 100
            if SMALL.restore(key, files):
                restored += 1
                assert files["table"].read_bytes() == (files["model"] / "weights").read_bytes() == expected
            else:
                shutil.rmtree(folder, ignore_errors=True)
                files["model"].mkdir(parents=True)
                files["table"].write_bytes(expected)
                (files["model"] / "weights").write_bytes(expected)
                SMALL.put(key, files)
    assert restored


def test_many_jobs_share_a_cache_that_is_always_full(place, tmp_path):
    keys = [f"{number}0{KEY}"[:64] for number in range(6)]
    children = [training_jobs._FORK.Process(target=hammer, args=(number, keys)) for number in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 4
    whole = [
        CACHE.restore(entry.name, {name: Path(name) for name in ("table", "model")})
        for entry in entries(place)
    ]
    assert whole
    assert all(whole)
    assert not [*place.rglob(".*.tmp")]


# Trainings


def training(study):
    """A training that has not begun: its input, settings and code are those of every study, its paths are its own."""
    corpus, model = Path(study, "train.parquet"), Path(study, "run/model/record.json")
    outputs = {"record": model, "history": Path(study, "run/history.parquet"), "times": Path(study, "times")}
    write_table(corpus, TABLE, described("split_corpus", [corpus], labels=["a stand-in"]))
    start = described("train_encoder", [model, outputs["history"]], inputs={"corpus": corpus})
    workplace = Workplace.parse(training_jobs.NOWHERE | {"cache": "../cache"}, "workplace")
    return Job(start, {"corpus": [corpus]}, outputs, {}, workplace, {}, portable=True)


def described(rule, outputs, **more):
    """A record without code."""
    return job_record(
        rule, outputs=outputs, **{"settings": {}, "inputs": {}, "code_hashes": {}, "versions": {}} | more
    )


def test_another_study_finds_the_contents_with_its_own_record(place):
    """Another study finds the same contents with a record of its own."""
    one, two = training("results/one"), training("results/two")
    assert not one.restore()
    with writing_model_folder(one.artefacts[0], one.record(labels=["short"])) as folder:
        (folder / "weights").write_bytes(b"weights")
    one.write({"history": TABLE}, labels=["short"])
    one.outputs["times"].write_text("3 s")
    one.keep()
    assert two.restore()
    assert two.outputs["times"].read_text() == "3 s"
    for before, after in zip(one.artefacts, two.artefacts, strict=True):
        assert identity(after) == identity(before)
        record = read_record(after)
        assert record.outputs == two.start.outputs
        assert record.inputs == two.start.inputs
        assert [*map(str, record.labels)] == ["a stand-in", "short"]
    assert len(entries(place)) == 1


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """A machine with a driver of NVIDIA; returns the values of the compilers' variables after a job began."""
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/dev/nvidiactl" or exists(path))

    def begun(folder=tmp_path / "results/.cache"):
        for name in cache.COMPILERS:
            monkeypatch.setenv(name, "")  # as it was before, after the test
            monkeypatch.delenv(name)
        cache.share_compiled(folder)
        return [os.environ.get(name) for name in cache.COMPILERS]

    return begun


def test_compiled_code_lies_in_a_folder_of_the_user_only(gpu, tmp_path, monkeypatch):
    """What is compiled lies next to the cache in a folder of the user only."""
    own = tmp_path / f"results/.cache.compiled-{os.getuid()}"
    assert gpu() == [str(own / "inductor"), str(own / "triton")]
    assert own.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    cache.share_compiled(tmp_path / "results/.cache")
    assert os.environ["TRITON_CACHE_DIR"] == "/elsewhere"


@pytest.mark.parametrize("place", ["others may write", "a link", "no cache", "a file"])
def test_nothing_is_compiled_into_a_folder_of_others(gpu, tmp_path, place):
    """Nothing is compiled into a folder that others may have filled."""
    own = tmp_path / f"results/.cache.compiled-{os.getuid()}"
    own.parent.mkdir()
    match place:
        case "others may write":
            own.mkdir()
            own.chmod(0o777)
        case "a link":
            own.symlink_to(tmp_path)
        case "a file":
            own.touch()
    assert (gpu(None) if place == "no cache" else gpu()) == [None, None]
