"""A cache is a folder of its own: nothing but entries may be deleted from it."""

import os

import pytest

from workflow_scripts.graph.folders import cache_errors, cache_warning

KEY = "ab" + 62 * "0"
GOOD = {
    "a missing folder": (lambda here: None, "new/cache"),
    "an empty folder": (lambda here: (here / "cache").mkdir(), "cache"),
    "entries": (lambda here: (here / "cache/ab" / KEY).mkdir(parents=True), "cache"),
    "a hidden file beside entries": (lambda here: write(here / "cache/ab/.nfs0001"), "cache"),
    "a link to a folder": (lambda here: link(here), "link"),
    "a hidden folder of results": (lambda here: None, "results/.cache"),
    "a link to nothing": (lambda here: (here / "link").symlink_to("unmounted"), "link"),
}
BAD = {
    "the working directory": (lambda here: write(here / "Snakefile"), ".", "contains Snakefile, which is"),
    "the working directory behind a missing one": (
        lambda here: write(here / "Snakefile"),
        "new/..",
        "contains Snakefile, which is",
    ),
    "another user's home": (
        lambda here: None,
        "~nobody_at_all/x",
        "no home folder of ~nobody_at_all is known",
    ),
    "the home folder": (lambda here: write(here / "home/.bashrc"), "~", "contains .bashrc"),
    "the root": (lambda here: None, "/", "which is no entry of a cache"),
    "a store of Git": (lambda here: write(here / "objects/ab/cdef0123"), "objects", "contains ab/cdef0123"),
    "entries of other digits": (lambda here: write(here / "cache/cd" / KEY), "cache", f"contains cd/{KEY}"),
    "a file among folders": (lambda here: write(here / "cache/ab"), "cache", "contains ab,"),
    "a hidden file": (lambda here: write(here / "cache/.git"), "cache", "contains .git"),
    "a file": (lambda here: write(here / "cache"), "cache", "cache is not a folder"),
    "results": (lambda here: None, "results", "is a folder of studies"),
    "results by another name": (lambda here: None, "results/../results/demo", "is a folder of studies"),
    "a study": (lambda here: None, "results/demo/.cache", "is a folder of studies"),
    "logs": (lambda here: None, "logs/cache", "is a folder of studies"),
}


def write(file):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("mine")


def link(here):
    (here / "elsewhere").mkdir()
    (here / "link").symlink_to(here / "elsewhere")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize(("make", "named"), GOOD.values(), ids=GOOD)
def test_a_folder_of_its_own_can_be_the_cache(here, make, named):
    make(here)
    assert [*cache_errors(named)] == []


@pytest.mark.parametrize(("make", "named", "message"), BAD.values(), ids=BAD)
def test_a_folder_with_other_things_is_refused(here, make, named, message):
    make(here)
    (found,) = map(str, cache_errors(named))
    assert found.startswith("cache: ")
    assert message in found


def test_a_cache_that_cannot_be_used_is_a_warning(here, monkeypatch):
    (here / "unmounted").symlink_to("nowhere")
    assert cache_warning("new/cache") == cache_warning("~/cache") == ""
    assert "unmounted cannot be read and written by this user" in cache_warning("unmounted")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "new/cache cannot be read and written by this user" in cache_warning("new/cache")
