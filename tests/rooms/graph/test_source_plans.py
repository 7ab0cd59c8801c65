import errno
import hashlib
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pydantic import TypeAdapter

from workflow_scripts.data.sources import SourcePlan
from workflow_scripts.graph import notes, source_plans
from workflow_scripts.graph.source_plans import planned_source, source_now, sources_read
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.provenance.record import Input
from workflow_scripts.settings.sources import FileSource, HubFiles, HubSource, LocalEncoder

COMMIT = "0" * 40
HUB = {"kind": "hub", "repository": "team/toy", "revision": COMMIT}
IN_RECORDS = f"hub:team/toy@{COMMIT}"
PIN = "1" * 64


def files(hashes):
    return SourcePlan(kind="files", files=hashes)


def on_hub(kind, *names):
    repositories = [{"name": name, "revision": COMMIT} for name in names]
    return SourcePlan.model_validate({"kind": kind, "repositories": repositories})


ON_HUB, NONE = on_hub("hub", "team/toy"), SourcePlan(kind="none")


def local(*paths, pin=None):
    return {"kind": "local", "files": {path: {"path": path, "sha256": pin} for path in paths}}


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def named(**texts):
    return files({f"local:{name}": sha256(text) for name, text in texts.items()})


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A data root with files a and b; the working directory is beside it, and the Hub does not answer."""
    (tmp_path / "data").mkdir()
    (tmp_path / "study").mkdir()
    monkeypatch.chdir(tmp_path / "study")
    monkeypatch.setattr(source_plans, "answers", lambda: False)
    monkeypatch.setattr(source_plans, "snapshot", lambda *_: tmp_path / "no_snapshot")
    for name in "ab":
        (tmp_path / "data" / name).write_text(name)
    return tmp_path / "data"


def typed(source):
    """A source as a configuration that was checked has it."""
    if source["kind"].startswith("hub"):
        kind = HubSource if source["kind"] == "hub" else HubFiles
        return kind.model_construct(**source)
    if "path" in source:
        return LocalEncoder(**source)
    return TypeAdapter(FileSource).validate_python({"reader": "lines", "files": {}} | source)


def now(sources, root, recorded=None, gap=False):
    sources = [typed(source) for source in sources]
    return planned_source(sources, recorded or {}, root, optional=gap)


KEPT = {"local:a": PIN, "local:b": PIN}
AS_KEPT = files(KEPT)
FIRST, SECOND, AWAY = local("a"), local("b"), local("c")
HERE = {"kind": "local", "files": {"text": {"path": "a", "sha256": None}}, "reader": "lines"}
OTHER = HERE | {"files": {"text": {"path": "c", "sha256": None}}}
TWICE = {"files": OTHER["files"] | {"more": {"path": "b", "sha256": None}}}
READ_A = {"local:a": sha256("a")}
PACKAGE = {"kind": "package", "package": "gensim", "files": {"x": {"path": "__init__.py", "sha256": PIN}}}
IN_PACKAGE = "package:gensim/__init__.py"
PLANNED = {
    "the first source that is there": ([AWAY, FIRST, SECOND], {}, {}, named(a="a")),
    "one whose files are all there": ([local("a", "c"), SECOND], {}, {}, named(b="b")),
    "one on this machine before the Hub": ([HUB, FIRST], {}, {}, named(a="a")),
    "all repositories": ([AWAY, HUB, HUB | {"repository": "other"}], {}, {}, on_hub("hub", "team/toy", "other")),
    "nothing": ([AWAY], {}, {}, NONE),
    "a file of a package of any release": ([PACKAGE], {}, {"root": None}, files({IN_PACKAGE: PIN})),
    "a package that is not there": ([PACKAGE | {"package": "no_such_package"}], {}, {}, NONE),
    "nothing without a data root": ([FIRST], {}, {"root": None}, NONE),
    "a pinned file, unread": ([local("a", pin=PIN)], {}, {}, files({"local:a": PIN})),
    "one of two pins": ([local("a", pin=[PIN, sha256("a")])], {}, {}, named(a="a")),
    "a file that changed": ([local("a", "b")], KEPT, {"a": "edited"}, named(a="edited", b="b")),
    "a disk that is not mounted": ([AWAY, local("a", "b"), SECOND, HUB], KEPT, {"root": None, "gap": True}, AS_KEPT),
    "a file that is gone": ([AWAY, local("a", "b"), SECOND, HUB], KEPT, {"a": None}, AS_KEPT),
    "no better source": ([AWAY, FIRST, SECOND, HUB], READ_A, {}, named(a="a")),
    "a better source": ([AWAY, FIRST, SECOND, HUB], READ_A, {"c": "c"}, named(c="c")),
    "a better source than the Hub": ([AWAY, FIRST, HUB], {IN_RECORDS: PIN}, {"c": "c"}, named(c="c")),
    "what was read of a Hub that is gone": ([AWAY, HUB], {IN_RECORDS: PIN}, {"gap": True}, ON_HUB),
    "files of a Hub that is gone": ([AWAY, HUB | {"kind": "hub_files"}], {f"{IN_RECORDS}/x": PIN}, {"gap": True}, ON_HUB),
    "a Hub that does not answer": ([HUB], {}, {}, ON_HUB),
    "a gap where the Hub does not answer": ([HUB], {}, {"gap": True}, on_hub("unreachable", "team/toy")),
    "a Hub that answers": ([HUB], {}, {"gap": True, "answers": lambda: True}, ON_HUB),
    "a copy of the Hub's": ([HUB], {}, {"gap": True, "snapshot": lambda *_: Path.cwd()}, ON_HUB),
    "a file, whatever the Hub": ([FIRST], {}, {"gap": True}, named(a="a")),
    "the same bytes elsewhere": ([OTHER, HERE], READ_A, {"c": "a"}, named(a="a")),
    "the first of the same bytes": ([OTHER, HERE], {}, {"c": "a"}, named(c="a")),
    "the same bytes for another reader": ([OTHER | {"reader": "x"}, HERE], READ_A, {"c": "a"}, named(c="a")),
    "the same bytes read otherwise": ([OTHER | {"options": {"x": 2}}, HERE], READ_A, {"c": "a"}, named(c="a")),
    "the same bytes and more": ([OTHER | TWICE, HERE], READ_A, {"c": "a"}, named(b="b", c="a")),
    "other bytes in a better place": ([OTHER, HERE], READ_A, {"c": "edited"}, named(c="edited")),
}  # fmt: skip


@pytest.mark.parametrize(("sources", "recorded", "change", "name"), PLANNED.values(), ids=PLANNED)
def test_what_would_be_read_now_is_named(root, monkeypatch, sources, recorded, change, name):
    for known in change.keys() & {"answers", "snapshot"}:
        monkeypatch.setattr(source_plans, known, change[known])
    for file in "abc":
        if text := change.get(file):
            (root / file).write_text(text)
        elif file in change:
            (root / file).unlink()
    assert now(sources, change.get("root", root), recorded, change.get("gap", False)) == name


def encoder(path, **more):
    return {"kind": "local", "path": path} | more


MANY = [local("c", "a"), FIRST, HUB, SECOND, HUB | {"kind": "hub_files"}]
ENCODERS = [encoder("mine"), encoder("other")]


@pytest.mark.parametrize(
    ("planned", "sources", "chosen"),
    [
        (named(a="a"), MANY, [FIRST]),
        (ON_HUB, MANY, [HUB, HUB | {"kind": "hub_files"}]),
        (on_hub("unreachable", "team/toy"), [AWAY, HUB], [AWAY, HUB]),
        (NONE, [AWAY], [AWAY]),
        (
            files({"local:other/config.json": "1", "local:other/model.safetensors": "2"}),
            ENCODERS,
            ENCODERS[1:],
        ),
        (named(d="d"), [FIRST, SECOND], [FIRST, SECOND]),  # that nobody knows any more
    ],
)
def test_settings_name_the_sources_that_are_read_and_no_other(planned, sources, chosen):
    found = sources_read(planned, [typed(source) for source in sources])
    assert found == [typed(source) for source in chosen]


def test_an_encoder_is_named_by_the_files_that_are_taken(root, tiny_bert):
    sources = [encoder("toy"), HUB]
    assert now(sources, root) == ON_HUB
    shutil.copytree(tiny_bert, root / "toy")
    (root / "toy/README.md").write_text("x")
    found = now(sources, root)
    recorded = found.files
    taken = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    assert [*recorded] == [f"local:toy/{name}" for name in taken]
    (root / "toy/vocab.txt").write_text("x")
    assert "local:toy/vocab.txt" in now(sources, root, recorded).files
    shutil.rmtree(root / "toy")
    assert now(sources, root, recorded) == found
    pinned, weights = encoder("toy", sha256={"model.safetensors": PIN}), "local:toy/model.safetensors"
    assert now([pinned], root, {weights: PIN}) == files({weights: PIN})


def write(path, **foreign):
    record = job_record("read_dataset", settings={}, inputs={}, outputs=[path], code_hashes={}, versions={},
                        external={name: Input(path=name, sha256=PIN) for name in foreign.values()})  # fmt: skip
    write_table(path, pa.table({"a": [1]}), record)


def test_no_gap_replaces_data_that_a_failed_job_took_away(root, monkeypatch):
    """The last plan stays as long as no source is there; a gap that a job has written may be another's."""
    monkeypatch.setattr(source_plans, "_planned", {})
    study = SimpleNamespace(data_root=root, folder="results/toy")

    def asked(*sources):
        return source_now(study, "datasets/toy.parquet", [typed(source) for source in sources])

    assert asked(local("a"), local("c")) == named(a="a")
    source_plans.note_planned()
    (root / "a").unlink()
    assert asked(local("a"), local("c"), HUB) == named(a="a")
    assert asked(local("a"), local("b")) == named(b="b")
    write(Path("results/toy/datasets/toy.parquet"))
    assert asked(local("a"), local("c")) == NONE


def test_a_job_that_runs_elsewhere_is_told_what_was_planned(root, monkeypatch):
    monkeypatch.setattr(source_plans, "_planned", {})
    study = SimpleNamespace(data_root=root, folder="results/toy")
    asked = ("datasets/toy.parquet", [typed(local("a"))])
    assert source_now(study, *asked) == named(a="a")
    assert not source_plans.NOTES.exists()  # a dry run
    source_plans.note_planned()
    (root / "a").rename(root.parent / "a")  # out of a compute node's sight
    monkeypatch.setattr(sys, "argv", ["snakemake", "--mode", "remote"])
    assert source_now(study, *asked) == named(a="a")
    assert source_now(study, "datasets/other.parquet", [typed(local("a"))]) == NONE


@pytest.mark.parametrize("text", ["local:a sha256:0", '{"kind": "another"}', "[]", ""])
def test_a_note_that_cannot_be_read_is_planned_anew(root, monkeypatch, text):
    """Such as one of another version."""
    monkeypatch.setattr(source_plans, "_planned", {})
    study = SimpleNamespace(data_root=root, folder="results/toy")
    note = source_plans.NOTES / "results/toy/datasets/toy.parquet.json"
    note.parent.mkdir(parents=True)
    note.write_text(text)
    assert source_now(study, "datasets/toy.parquet", [typed(local("a"))]) == named(a="a")
    monkeypatch.setattr(sys, "argv", ["snakemake", "--mode", "remote"])
    assert source_now(study, "datasets/toy.parquet", [typed(local("a"))]) == named(a="a")


# Hashes


def test_a_file_written_just_now_is_read_again(root, monkeypatch):
    """A file written just now is read again since its date may not move."""
    stat = (root / "a").stat()
    monkeypatch.setattr(notes, "time", SimpleNamespace(time=lambda: stat.st_mtime + 1))
    assert notes.sha256_now(root / "a") == sha256("a")
    (root / "a").write_text("x")
    os.utime(root / "a", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert notes.sha256_now(root / "a") == sha256("x")


def test_a_hash_needs_no_note_where_none_can_be_written(root, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(notes, "time", SimpleNamespace(time=lambda: 1e12))
    monkeypatch.setattr(notes, "write_note", refuse)
    (root / "a").write_text("x")
    assert notes.sha256_now(root / "a") == sha256("x")
