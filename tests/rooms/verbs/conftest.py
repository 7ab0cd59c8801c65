"""A small study of checksummed artefacts, made by the project's own writers."""

import contextlib
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workflow_scripts.columns import PAIRS, SENTENCES
from workflow_scripts.evaluation.base import Score, score_table
from workflow_scripts.provenance.artefacts import (
    identity,
    job_record,
    read_record,
    write_page,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.closure import code_hashes, packages
from workflow_scripts.provenance.record import Input

STUDY = "results/study"
RUNS = [("simcse", 1), ("simcse", 2), ("plain", 1)]
HUB = Input(path="hub:owner/stsb@0123456789", sha256="0" * 40)
PACKAGE = Input(path="package:minilm==1.0/model.safetensors", sha256="5" * 64)


def place(path):
    """A path of the study, unless it is one of the working directory."""
    return Path(path) if path.startswith(("resources/", "results/", "benchmarks/")) else Path(STUDY, path)


def made_by(rule, outputs, *, settings=None, inputs=None, **others):
    """A record as a job of ``rule`` writes it; the code is that of a module which is there."""
    return job_record(
        rule,
        code_hashes=code_hashes("data.words"),
        versions=packages("data.words"),
        settings=settings or {},
        inputs={
            role: [place(path) for path in given] if isinstance(given, list) else place(given)
            for role, given in (inputs or {}).items()
        },
        outputs=[place(path) for path in outputs],
        **others,
    )


def write(rule, path, table, **described):
    """Write a table of the study as a job of ``rule`` does; returns its path."""
    write_table(place(path), table, made_by(rule, [path], **described))
    return place(path)


def reseal(path, *, rows=None, **changes):
    """Write a table again under its checksum, with other rows or another record."""
    record, table = read_record(path), pq.read_table(path)
    write_table(path, table if rows is None else rows(table), record.model_copy(update=changes))


def write_dataset(score=2.5):
    rows = [["test"] * 40, [f"a {i}" for i in range(40)], [f"b {i}" for i in range(40)], [score] * 40]
    table = pa.table(rows, schema=PAIRS)
    write(
        "read_dataset", "datasets/stsb.parquet", table, external={"hub": HUB}, wildcards={"dataset": "stsb"}
    )


def write_corpus(max_words=50):
    rows = [[f"sentence {i}" for i in range(max_words)], [0] * max_words, list(range(max_words))]
    write(
        "split_corpus",
        "corpora/wiki/train.parquet",
        pa.table(rows, schema=SENTENCES),
        settings={"corpus": {"max_words": max_words}},
        inputs={"prompt": "resources/prompt.txt"},
        wildcards={"corpus": "wiki"},
    )


def write_encoder(labels=("stand-in encoder",)):
    record = made_by(
        "fetch_encoder", ["encoders/minilm/record.json"], external={"weights": PACKAGE}, labels=labels
    )
    with writing_model_folder(Path(STUDY, "encoders/minilm"), record) as folder:
        (folder / "model.safetensors").write_bytes(bytes(range(256)) * 4)
        (folder / "config.json").write_text('{"layers": 6}')


def write_run(run, seed, temperature=0.05):
    place = f"runs/{run}/seed{seed}"
    record = made_by(
        "train_encoder",
        [f"{place}/model/record.json", f"{place}/history.parquet"],
        settings={"method": {"module": run, "temperature": temperature}, "training": {"steps": 3}},
        inputs={"encoder": "encoders/minilm/record.json", "corpus": "corpora/wiki/train.parquet"},
        wildcards={"run": run, "seed": str(seed)},
    )
    with writing_model_folder(Path(STUDY, place, "model"), record) as folder:
        corpus = identity(Path(STUDY, "corpora/wiki/train.parquet"))
        (folder / "model.safetensors").write_bytes(f"{run} {seed} {temperature} {corpus}".encode() * 50)
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    write_table(Path(STUDY, place, "history.parquet"), pa.table({"loss": [1.0, float("nan"), 0.5]}), record)


def write_scores(run, seed, value=0.7):
    scores = [Score("STSB", "all", metric, value, 40) for metric in ("pearson", "spearman")]
    write(
        "evaluate_sts",
        f"scores/sts/suite/{run}/seed{seed}.parquet",
        score_table(scores, run=run, seed=seed, suite="suite"),
        inputs={
            "model": f"runs/{run}/seed{seed}/model/record.json",
            "datasets": ["datasets/stsb.parquet"],
        },
        wildcards={"suite": "suite", "run": run, "seed": str(seed)},
    )


def score_files():
    return [f"scores/sts/suite/{run}/seed{seed}.parquet" for run, seed in RUNS]


def write_table_of_scores(value=0.7):
    scores = [Score("STSB", "all", "spearman", value, 40), Score("STSB", "all", "pearson", 0.6, 40)]
    rows = [score_table(scores, run=run, seed=seed, suite="suite") for run, seed in RUNS]
    inputs = {"scores": score_files()}
    table = pa.concat_tables(rows)
    write("make_table", "tables/main.parquet", table, inputs=inputs, wildcards={"experiment": "main"})


TIMES = Path("benchmarks/study/tabulate_times/main.parquet")


def write_times():
    """A table of times, and the page that shows it."""
    times = TIMES.as_posix()
    write("tabulate_times", times, pa.table({"mean": [0.5]}), wildcards={"experiment": "main"})
    page = made_by("write_report", ["report.html"], inputs={"times": [times]})
    write_page(Path(STUDY, "report.html"), "<html><body>0.5</body></html>", page)


def flip_a_byte(path, position=10):
    content = bytearray(Path(path).read_bytes())
    content[position] ^= 1
    Path(path).write_bytes(content)


def write_pages(title=""):
    figure = made_by("draw_figures", ["figures/main.svg"], inputs={"table": "tables/main.parquet"})
    svg = f'<svg xmlns="http://www.w3.org/2000/svg"><title>{title}</title></svg>'
    write_page(Path(STUDY, "figures/main.svg"), svg, figure)
    report = made_by(
        "write_report", ["report.html"], inputs={"figure": "figures/main.svg", "table": "tables/main.parquet"}
    )
    drawn = Path(STUDY, "figures/main.svg").read_text()
    write_page(Path(STUDY, "report.html"), f"<html><body>-- {drawn}</body></html>", report)


def write_study(max_words=50, value=0.7):
    """The same study; with another ``value``, a difference reaches its last page."""
    Path("resources").mkdir(exist_ok=True)
    Path("resources/prompt.txt").write_text("A sentence means")
    write_dataset()
    write_corpus(max_words)
    write_encoder()
    for run, seed in RUNS:
        write_run(run, seed)
        write_scores(run, seed, value)
    write_table_of_scores(value)
    write_pages(str(value))
    unfinished = Path(STUDY, "runs/plain/seed2/model.checkpoints/step00000100")
    unfinished.mkdir(parents=True)
    (unfinished / "encoder.safetensors").write_bytes(b"half" * 10)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("finished")
    with contextlib.chdir(root):
        write_study()
    return root


@pytest.fixture
def root(finished, tmp_path, monkeypatch):
    """A finished study of one's own, in the working directory."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path()


@pytest.fixture
def study(root):
    """The functions of this file, which make single artefacts of the study again."""
    return sys.modules[__name__]
