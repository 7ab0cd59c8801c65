"""Artefacts are whole or absent, say what made them, and notice a single changed byte."""

import errno
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from tests.support.training_jobs import files_of, full_disk
from workflow_scripts.columns import SENTENCES, WORD_COUNTS
from workflow_scripts.errors import DataError, one_line_errors
from workflow_scripts.provenance.artefacts import (
    RECORD_FILE,
    atomic,
    check_model_folder,
    content_identity,
    identity,
    job_record,
    read_record,
    read_table,
    verify_checksum,
    write_page,
    write_table,
    writing_model_folder,
    writing_table,
)
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.record import merged_labels

SVG = '<svg xmlns="http://www.w3.org/2000/svg"><text>Spearman</text></svg>'
HTML = "<!doctype html><html><body><p>Report</p></body></html>"


def record(*outputs, **changes):
    described = {"settings": {"temperature": 0.05, "seed": 1}, "inputs": {}, **changes}
    return job_record("count_words", outputs=[Path(output) for output in outputs], **described)


def sentences(count=3, seed=0):
    words = np.random.default_rng(seed).integers(0, 10**9, (count, 8))
    rows = [" ".join(map(str, row)) for row in words.tolist()]
    return pa.table([rows, [0] * count, list(range(count))], schema=SENTENCES)


def write_folder(folder, made, weights=b"weights" * 100):
    with writing_model_folder(folder, made) as inside:
        (inside / "model.safetensors").write_bytes(weights)
        (inside / "1_Pooling").mkdir()
        (inside / "1_Pooling" / "config.json").write_text("{}")


def write_all(folder, made=None, mark=""):
    made = made or record("results/study/table.parquet")
    write_table(folder / "table.parquet", sentences(seed=len(mark)), made)
    write_page(folder / "figure.svg", SVG.replace("</svg>", f"{mark}</svg>"), made)
    write_page(folder / "report.html", HTML + mark, made)
    write_folder(folder / "model", made, weights=f"weights {mark}".encode() * 100)


# Checksums


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("written")
    write_all(folder)
    return folder


CHANGES = ("made otherwise", "other labels", "other contents")
SEALED = ["table.parquet", "figure.svg", "report.html", "model/record.json"]


@pytest.mark.parametrize("name", SEALED)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_changed_byte_breaks_the_checksum(written, tmp_path, name, data):
    content = bytearray((written / name).read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    with pytest.raises(DataError, match=str(damaged)):
        verify_checksum(damaged)


def test_a_long_record_is_read_back(tmp_path):
    made = record("report.html", settings={"prompts": ["x" * 1000] * 300})
    write_page(tmp_path / "report.html", HTML, made)
    write_table(tmp_path / "table.parquet", sentences(), made)
    for name in ("report.html", "table.parquet"):
        verify_checksum(tmp_path / name)
        assert read_record(tmp_path / name) == made


# Identity


@pytest.mark.parametrize("name", SEALED)
def test_contents_and_labels_are_the_identity(written, tmp_path, name):
    """A reader of the same contents makes the same, so an edit that changes no number stops there."""
    here = record("results/study/table.parquet")
    there = {"commit": "f" * 40, "dirty": not here.origin.dirty, "processor": "another", "threads": 64}
    changes = {"meaning": {}, "key": "e" * 64, "packages": {"torch": "9"}}
    other = here.model_copy(update=changes | {"origin": here.origin.model_copy(update=there)})
    labelled = other.model_copy(update={"labels": merged_labels(["a stand-in"])})
    write_all(tmp_path / "made otherwise", other)
    write_all(tmp_path / "other labels", labelled)
    write_all(tmp_path / "other contents", other, mark="another")
    was, same, labels, contents = (
        identity(folder / name) for folder in (written, *(tmp_path / change for change in CHANGES))
    )
    assert same == was
    assert len({was, labels, contents}) == 3
    assert read_record(tmp_path / "made otherwise" / name).origin == other.origin
    assert content_identity(written / name, here.labels) == was


# Failures while writing


WRITERS = {
    "table.parquet": lambda path: writing_table(path, SENTENCES, record()),
    "model": lambda path: writing_model_folder(path, record()),
    "figure.svg": atomic,
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_failure_leaves_the_old_artefact_and_nothing_else(tmp_path, name):
    write_all(tmp_path)
    before = files_of(tmp_path)

    def stop_halfway():
        with WRITERS[name](tmp_path / name):
            assert len(list(tmp_path.glob(f".{name}.tmp"))) == 1
            raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        stop_halfway()
    assert files_of(tmp_path) == before
    assert not list(tmp_path.glob(".*"))


LARGE = 300_000


def fill_with_tensors(path):
    with writing_model_folder(path, record()) as inside:
        save_file({"weight": np.zeros(LARGE, dtype=np.float32)}, inside / "model.safetensors")


FILLED = [
    ("table.parquet", lambda path: write_table(path, sentences(LARGE // 40, seed=1), record())),
    ("figure.svg", lambda path: write_page(path, SVG + " " * LARGE + "<!-- -->", record())),
    ("model", lambda path: write_folder(path, record(), weights=b"w" * LARGE)),
    ("model", fill_with_tensors),
]


@pytest.mark.parametrize(("name", "fill"), FILLED)
def test_a_full_disk_is_one_line_that_names_the_artefact(tmp_path, name, fill):
    write_all(tmp_path)
    before = files_of(tmp_path)
    with pytest.raises(SystemExit) as stopped, one_line_errors(), full_disk(LARGE // 4):
        fill(tmp_path / name)
    line = str(stopped.value)
    assert str(tmp_path / name) in line
    assert os.strerror(errno.EFBIG) in line
    assert "\n" not in line
    assert files_of(tmp_path) == before
    fill(tmp_path / name)  # the limit was the only thing in the way
    assert files_of(tmp_path) != before


@pytest.mark.parametrize(("name", "fill"), FILLED)
def test_a_folder_that_may_not_be_written_is_one_line(name, fill):
    """Not even by root, as /sys."""
    said = rf"^OSError: /sys/\.{name}.*: .*\. Give this user permission to use it and run again; nothing half-written stays\.$"
    with pytest.raises(SystemExit, match=said), one_line_errors():
        fill(Path("/sys", name))


# Reading


def test_a_table_of_another_kind_is_refused(tmp_path):
    """A table of another kind is refused with both lists of columns."""
    write_table(tmp_path / "table.parquet", sentences(), record("table.parquet"))
    with pytest.raises(DataError, match=r"table\.parquet: columns sentence string.*expected rank int32"):
        read_table(tmp_path / "table.parquet", WORD_COUNTS)


# Pages


@pytest.mark.parametrize("text", ["--", "-->", "<!--", "---", "----->", "-", "--!>", "é --> 語", '"--"\n--'])
def test_hyphens_in_a_record_do_not_end_the_comment_of_a_page(tmp_path, text):
    made = record("report.html", settings={text: [text, text + text]}, labels=[f"engine {text}"])
    write_page(tmp_path / "report.html", HTML, made)
    write_page(tmp_path / "figure.svg", SVG, made)
    comment = (
        (tmp_path / "report.html").read_text("utf-8").removeprefix(f"{HTML}\n<!-- ").removesuffix(" -->\n")
    )
    assert "--" not in comment
    ET.parse(tmp_path / "figure.svg")
    assert read_record(tmp_path / "report.html") == read_record(tmp_path / "figure.svg") == made


# Model folders


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"other"), "model.safetensors: changed"),
        (lambda folder: (folder / "1_Pooling/config.json").unlink(), "config.json: missing"),
        (lambda folder: (folder / "1_Pooling/extra.json").write_text("{}"), "extra.json: not listed"),
        (lambda folder: (folder / RECORD_FILE).unlink(), "no record.json"),
    ],
)
def test_a_damaged_model_folder_is_refused_with_the_file(tmp_path, damage, complaint):
    write_folder(tmp_path / "model", record("model"))
    assert set(check_model_folder(tmp_path / "model").files) == {"model.safetensors", "1_Pooling/config.json"}
    damage(tmp_path / "model")
    for check in (check_model_folder, identity):
        with pytest.raises(DataError, match=complaint):
            check(tmp_path / "model")


# Records


def test_labels_of_inputs_are_inherited(tmp_path, monkeypatch):
    """Labels of inputs are inherited through every kind of artefact."""
    monkeypatch.chdir(tmp_path)
    table, model, figure, prompt = Path("a.parquet"), Path("model"), Path("figure.svg"), Path("prompt.txt")
    prompt.write_text("A sentence means")
    write_table(table, sentences(), record(table, labels=["other engine"]))
    write_folder(model, record(model, inputs={"sentences": table}, labels=["stand-in encoder"]))
    write_page(figure, SVG, record(figure, inputs={"model": model, "prompt": prompt}))
    last = record("b.parquet", inputs={"figure": figure}, labels=["extractive exemplars"])
    assert [*map(str, last.labels)] == ["extractive exemplars", "other engine", "stand-in encoder"]


# Places


def test_an_artefact_that_was_moved_is_refused(tmp_path, monkeypatch):
    """As the models of two seeds that trade places are, and one without a place is not."""
    monkeypatch.chdir(tmp_path)
    models = [Path(f"runs/seed{seed}/model") for seed in (1, 2)]
    for model in models:
        write_folder(model, record(model / RECORD_FILE))
    for source, target in (("seed1", "away"), ("seed2", "seed1"), ("away", "seed2")):
        Path("runs", source).rename(Path("runs", target))
    for first in (models[0], models[0] / RECORD_FILE):
        with pytest.raises(
            DataError, match=r"^runs/seed1/model.*: copied or moved here.*runs/seed2/model/record"
        ):
            record("scores.parquet", inputs={"model": first})
    write_table(Path("c.parquet"), sentences(), record())
    record(inputs={"sentences": Path("c.parquet")})


# What killed writers leave

KILLED = """
import os, signal
from pathlib import Path
from workflow_scripts.provenance.artefacts import atomic, job_record, writing_model_folder
writing = {"model": lambda path: writing_model_folder(path, job_record("count_words", settings={}, inputs={}, outputs=[])),
           "table.parquet": atomic}
for name in ("model", "table.parquet"):
    if os.fork() == 0:
        with writing[name](Path(name)) as place:
            (place / "weights" if place.is_dir() else place).write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.wait()
"""


def left_behind(folder):
    return sorted(path.name.removesuffix(".tmp") for path in folder.iterdir() if path.name.startswith("."))


def test_the_next_write_removes_leftovers_of_killed_writers(tmp_path):
    """The next write of a target removes leftovers of killed writers."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, env=environment, check=True)
    assert left_behind(tmp_path) == [".model", ".table.parquet"]
    write_table(tmp_path / "other.parquet", sentences(), record())
    assert left_behind(tmp_path) == [".model", ".table.parquet"]
    write_table(tmp_path / "table.parquet", sentences(), record())
    write_folder(tmp_path / "model", record())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "other.parquet", "table.parquet"]


@pytest.mark.parametrize("mask", [0o002, 0o022, 0o077])
def test_permissions_follow_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_table(tmp_path / "table.parquet", sentences(), record())
        with writing_model_folder(tmp_path / "model", record()) as place:
            (place / "below").mkdir()
            save_file({"w": np.zeros(2)}, place / "below/model.safetensors")
    finally:
        os.umask(before)
    found = {path: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert len(found) == 5
    for path, mode in found.items():
        assert mode == (0o777 if path.is_dir() else 0o666) & ~mask, path


def test_a_file_is_synced_before_it_is_renamed(tmp_path, monkeypatch):
    """Else a machine that loses power leaves an empty file of that name."""
    done, rename = [], Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: done.append(str(Path(f"/proc/self/fd/{file}").readlink())))
    monkeypatch.setattr(Path, "replace", lambda *given: done.append("named") or rename(*given))
    with atomic(tmp_path / "file") as temporary:
        temporary.write_text("whole")
    assert done == [str(temporary), "named", str(tmp_path)]
