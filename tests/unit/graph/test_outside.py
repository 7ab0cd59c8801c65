import hashlib
import os
import shutil
import sys
from collections import Counter
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tests.planning import ROOT
from workflow_scripts.columns.corpora import SENTENCES
from workflow_scripts.data import hub
from workflow_scripts.data.planned import NOT_REACHED, check_planned, unversioned
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.sources import load_planned
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.graph import hashes, outside
from workflow_scripts.graph.outside import planned_source, recorded_files, source_now, sources_of
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.provenance.record import Input
from workflow_scripts.settings.datasets import Dataset

COMMIT = "0" * 40
HUB = {"kind": "hub", "repository": "team/toy", "revision": COMMIT}
ON_HUB = f"hub:team/toy@{COMMIT}"
PIN = "1" * 64


def local(*paths, pin=None):
    return {"kind": "local", "files": {path: {"path": path, "sha256": pin} for path in paths}}


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def named(**texts):
    return "; ".join(f"local:{name} sha256:{sha256(text)}" for name, text in texts.items())


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data root with files a and b; the working directory is beside it, and the Hub does not answer."""
    (tmp_path / "data").mkdir()
    (tmp_path / "study").mkdir()
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.setattr(outside, "answers", lambda: False)
    monkeypatch.setattr(outside, "snapshot", lambda *_: tmp_path / "no_snapshot")
    for name in "ab":
        (tmp_path / "data" / name).write_text(name)
    return tmp_path / "data"


def now(sources, root, recorded=None, gap=False, broken=False):
    return planned_source(sources, recorded or {}, root, gap_if_unreachable=gap, gap_if_broken=broken)


def test_a_file_in_the_place_of_a_pinned_one_is_named_as_it_is_where_it_makes_a_gap(root):
    """So that the right file in its place is noticed; what was read well stays as it was read."""
    assert now([local("a", pin=PIN)], root) == f"local:a sha256:{PIN}"
    assert now([local("a", pin=PIN)], root, broken=True) == named(a="a")
    assert now([local("a", pin=PIN)], root, {"local:a": PIN}, broken=True) == f"local:a sha256:{PIN}"
    assert now([local("a", pin=[PIN, sha256("a")])], root) == named(a="a")


def test_what_was_never_read_is_planned_with_the_first_source_that_is_there(root):
    assert now([local("c"), local("a"), local("b")], root) == named(a="a")
    assert now([local("a", "c"), local("b")], root) == named(b="b")
    assert now([HUB, local("a")], root) == named(a="a")
    assert now([local("c"), HUB, HUB | {"repository": "other"}], root) == f"{ON_HUB} or hub:other@{COMMIT}"
    assert now([local("c")], root) == now([local("a")], None) == "none"


def test_a_pinned_file_is_not_read(root):
    assert now([local("a", pin=PIN)], root) == f"local:a sha256:{PIN}"


def test_a_file_that_changes_changes_the_name(root):
    before = {"local:a": sha256("a"), "local:b": sha256("b")}
    assert now([local("a", "b")], root, before) == named(a="a", b="b")
    (root / "a").write_text("edited")
    assert now([local("a", "b")], root, before) == named(a="edited", b="b")


def test_a_disk_that_is_not_mounted_changes_nothing(root):
    sources, recorded = [local("c"), local("a", "b"), local("b"), HUB], {"local:a": PIN, "local:b": PIN}
    before = f"local:a sha256:{PIN}; local:b sha256:{PIN}"
    (root / "a").unlink()
    assert now(sources, root, recorded) == before
    assert now(sources, None, recorded, gap=True) == before


def test_a_better_source_changes_the_name_and_a_worse_one_does_not(root):
    sources = [local("c"), local("a"), local("b"), HUB]
    recorded = {"local:a": sha256("a")}
    assert now(sources, root, recorded) == named(a="a")
    (root / "c").write_text("c")
    assert now(sources, root, recorded) == named(c="c")
    assert now(sources, root, {ON_HUB: PIN}) == named(c="c")


def test_what_was_read_from_the_hub_stays_where_the_hub_is_gone(root):
    assert now([local("c"), HUB], root, {ON_HUB: PIN}, gap=True) == ON_HUB
    assert now([local("c"), HUB | {"kind": "hub_files"}], root, {f"{ON_HUB}/x.tsv": PIN}, gap=True) == ON_HUB


def test_a_hub_that_does_not_answer_makes_a_gap_only_where_that_is_wanted(root, monkeypatch, tmp_path):
    assert now([HUB], root) == ON_HUB
    assert now([HUB], root, gap=True) == NOT_REACHED + ON_HUB
    monkeypatch.setattr(outside, "snapshot", lambda *_: tmp_path)  # a copy that can be read
    assert now([HUB], root, gap=True) == ON_HUB
    monkeypatch.undo()
    monkeypatch.setattr(outside, "answers", lambda: True)
    assert now([HUB], root, gap=True) == ON_HUB
    monkeypatch.setattr(outside, "answers", hub.answers)
    assert now([local("a")], root, gap=True) == now([local("a")], root)  # nobody asks


READ = {
    "the first file": [local("a"), local("b"), HUB],
    "the second of two sources": [local("c"), local("a", "b")],
    "a file that is listed after the Hub": [HUB, local("b")],
    "a file of a package": [
        local("c"),
        {"kind": "package", "package": "tests", "files": {"x": {"path": "__init__.py", "sha256": None}}},
    ],
    "the Hub": [local("c"), HUB],
    "nothing, since no file is there": [local("c"), local("a", "d")],
    "nothing, since the Hub has no such repository": [HUB | {"repository": "team/none"}],
}


def read_rows():
    return Rows(pa.Table.from_pylist([{"sentence": "a"}], schema=SENTENCES), Counter())


@pytest.mark.parametrize("sources", READ.values(), ids=READ)
def test_the_name_is_the_same_before_and_after_the_job(root, monkeypatch, tmp_path, sources):
    """Else a finished study would run again; the job is the real one but for its reader and its network."""
    monkeypatch.setattr("workflow_scripts.data.readers.lines.read", lambda *_, **__: read_rows())

    def ask(source, _form):
        if source.repository == "team/none":
            raise MissingError("no such repository")
        return read_rows(), {"hub": Input(path=f"hub:{source.repository}@{COMMIT}", sha256=PIN)}

    monkeypatch.setattr("workflow_scripts.data.sources._from_hub", ask)
    monkeypatch.setattr("workflow_scripts.data.sources.package_root", lambda _: ROOT / "tests")
    monkeypatch.setattr("workflow_scripts.data.sources.version", lambda _: "1")
    on_hub = {"splits": ["test"], "columns": {}}
    whole = [source | ({"reader": "lines"} if "files" in source else on_hub) for source in sources]
    block = {"form": "sentences", "sources": whole, "contract": {}, "optional": True}
    for gap in (False, True):
        before = now(sources, root, gap=gap)
        loaded = load_planned("toy", Dataset.parse(block, "toy"), root, before)
        recorded = {unversioned(given.path): given.sha256 for given in loaded.origin.values()}
        assert now(sources, root, recorded, gap=gap) == before


def test_a_source_that_has_the_same_bytes_for_the_same_reader_changes_nothing(root):
    here = {"kind": "local", "files": {"text": {"path": "a", "sha256": None}}, "reader": "lines"}
    other = here | {"files": {"text": {"path": "c", "sha256": None}}}
    (root / "c").write_text("a")
    recorded = {"local:a": sha256("a")}
    assert now([other, here], root, recorded) == named(a="a")
    assert now([other, here], root) == named(c="a")  # nothing was read yet
    for change in ({"reader": "words"}, {"options": {"min_words": 2}}):
        assert now([other | change, here], root, recorded) == named(c="a")
    twice = {"files": other["files"] | {"more": {"path": "b", "sha256": None}}}
    assert now([other | twice, here], root, recorded) == named(b="b", c="a")
    (root / "c").write_text("edited")
    assert now([other, here], root, recorded) == named(c="edited")


def test_settings_name_the_sources_that_are_read_and_no_other(root):
    first, second, away = local("a"), local("b"), local("c", "a")
    sources = [away, first, HUB, second, HUB | {"kind": "hub_files"}]
    for recorded, chosen in (({}, [first]), ({"local:b": PIN}, [first]), ({ON_HUB: PIN}, [first])):
        assert sources_of(now(sources, root, recorded), sources) == chosen
    assert sources_of(now(sources, None), sources) == [HUB, HUB | {"kind": "hub_files"}]
    gap = now([away, HUB], None, gap=True)
    assert gap.startswith(NOT_REACHED) and sources_of(gap, [away, HUB]) == [away, HUB]
    assert sources_of(now([away], root), [away]) == [away]
    mine, other = encoder("mine"), encoder("other")
    assert sources_of(
        "local:other/config.json sha256:1; local:other/model.safetensors sha256:2", [mine, other]
    ) == [other]
    assert sources_of(named(d="d"), [first, second]) == [first, second]  # that nobody knows any more


def encoder(path, **more):
    return {"kind": "local", "path": path} | more


def test_an_encoder_is_named_by_the_files_that_are_taken(root, tiny_bert):
    assert now([encoder("toy"), HUB], root) == ON_HUB
    shutil.copytree(tiny_bert, root / "toy")
    (root / "toy/README.md").write_text("x")
    found = now([encoder("toy"), HUB], root)
    files = [part.split(" ")[0] for part in found.split("; ")]
    assert files == sorted(
        f"local:toy/{name}"
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    )
    recorded = dict(part.split(" sha256:") for part in found.split("; "))
    (root / "toy/vocab.txt").write_text("x")
    assert "local:toy/vocab.txt" in now([encoder("toy"), HUB], root, recorded)
    shutil.rmtree(root / "toy")
    assert now([encoder("toy"), HUB], root, recorded) == found
    pinned = encoder("toy", sha256={"model.safetensors": PIN})
    assert (
        now([pinned], root, {"local:toy/model.safetensors": PIN})
        == f"local:toy/model.safetensors sha256:{PIN}"
    )


def test_the_release_of_a_package_is_no_part_of_the_name(root):
    source = {"kind": "package", "package": "gensim", "files": {"x": {"path": "__init__.py", "sha256": PIN}}}
    assert now([source], None) == f"package:gensim/__init__.py sha256:{PIN}"
    check_planned("datasets.toy", now([source], None), {"package:gensim==4.4.0/__init__.py": PIN})
    with pytest.raises(DataError, match=r"datasets\.toy: read from .*, but planned with .*Run it again"):
        check_planned("datasets.toy", now([source], None), {"package:gensim==4.4.0/__init__.py": "2" * 64})
    assert now([source | {"package": "no_such_package"}], None) == "none"


def write(path, **foreign):
    record = job_record("read_dataset", settings={}, inputs={}, outputs=[path], meaning={}, versions={},
                        foreign={name: Input(path=name, sha256=PIN) for name in foreign.values()})  # fmt: skip
    write_table(path, pa.table({"a": [1]}), record)


def test_what_was_read_is_in_the_record_or_in_that_of_what_is_kept(tmp_path):
    path = tmp_path / "toy.parquet"
    assert recorded_files(path) == {}
    write(tmp_path / ".kept/toy.parquet/toy.parquet", x="local:old")
    assert recorded_files(path) == {"local:old": PIN}
    write(path, x="package:gensim==4.4.0/a", y="hub:b@c")
    assert recorded_files(path) == {"package:gensim/a": PIN, "hub:b@c": PIN}
    path.write_text("no table")
    assert recorded_files(path) == {"local:old": PIN}


def test_a_job_that_runs_elsewhere_is_told_what_was_planned(root, monkeypatch):
    monkeypatch.setattr(outside, "_planned", {})
    config = {"data_root": str(root), "unreachable": "stop", "broken": "stop"}
    study = SimpleNamespace(config=config, folder="results/toy")
    asked = ("datasets/toy.parquet", [local("a")])
    assert source_now(study, *asked) == named(a="a")
    assert not outside.NOTES.exists()  # a dry run
    outside.note_planned()
    (root / "a").rename(root.parent / "a")  # out of a compute node's sight
    monkeypatch.setattr(sys, "argv", ["snakemake", "--mode", "remote"])
    assert source_now(study, *asked) == named(a="a")
    assert source_now(study, "datasets/other.parquet", [local("a")]) == "none"
    monkeypatch.setattr(sys, "argv", ["snakemake"])
    assert source_now(study, *asked) == "none"


# Hashes


def settle(path, seconds=100):
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns - seconds * 10**9))


def test_a_large_file_is_read_once(root, monkeypatch):
    settle(root / "a")
    assert hashes.sha256_now(root / "a") == sha256("a")
    monkeypatch.setattr("hashlib.file_digest", lambda *_: pytest.fail("read again"))
    assert hashes.sha256_now(root / "a") == sha256("a")


def test_a_file_written_just_now_is_read_again_since_its_date_may_not_move(root, monkeypatch):
    stat = (root / "a").stat()
    monkeypatch.setattr(hashes, "time", SimpleNamespace(time=lambda: stat.st_mtime + 1))
    assert hashes.sha256_now(root / "a") == sha256("a")
    (root / "a").write_text("x")
    os.utime(root / "a", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert hashes.sha256_now(root / "a") == sha256("x")


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"x": 1}'])
def test_damaged_notes_are_made_anew(root, damage):
    settle(root / "a")
    hashes.NOTES.parent.mkdir()
    hashes.NOTES.write_text(damage)
    assert hashes.sha256_now(root / "a") == hashes.sha256_now(root / "a") == sha256("a")


def test_a_file_that_cannot_be_read_has_a_word_for_a_hash(root):
    assert hashes.sha256_now(root / "nothing") == hashes.sha256_now(root) == hashes.UNREADABLE
