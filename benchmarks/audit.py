"""``verify`` against ``sha256sum`` on the same files, both as whole commands with the files in the page cache.

Two studies: one of few large files, and one of 10,000 artefacts, 400 of them encoders a quarter the size of MiniLM (in
the demo, one artefact in six is an encoder). Wall-clock time is measured, because several files may be read at a time.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks.harness import Measured, Timing, ratios
from workflow_scripts.provenance import artefacts
from workflow_scripts.provenance.artefacts import (
    identity,
    job_record,
    write_page,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.record import Input, Record

CODE = ("workflow_scripts/verbs", "workflow_scripts/provenance")
STUDY = Path("results/bench")


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratios of both commands on each study, made in its own folder."""
    studies = {
        "audit_verify": lambda: make_study(3 if timing.small else 300),
        "audit_verify_10000_artefacts": lambda: make_large_study(
            *((40, 4) if timing.small else (10_000, 400))
        ),
    }
    for name, make in studies.items():
        slower = compared(make, timing)
        yield Measured(name, slower, "times-the-time", "audit-verify-against-sha256sum", "wall")


def compared(make: Callable[[], None], timing: Timing) -> list[float]:
    """Return the time of ``verify`` divided by that of ``sha256sum``."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with patch.object(artefacts, "_sync"):  # a temporary study need not survive a loss of power
            make()
        files = sorted(str(path) for path in STUDY.rglob("*") if path.is_file())
        ways = {
            "audit verify": lambda: command(sys.executable, "-m", "workflow_scripts", "verify"),
            "sha256sum": lambda: command("sha256sum", *files),
        }
        return ratios(timing.interleaved(ways, clock="wall"), "audit verify", "sha256sum")


def make_large_study(count: int, models: int) -> None:
    """Write a study of encoders and score files; all encoders share one file of weights by hard links."""
    generator = np.random.default_rng(0)
    weights = Path("weights")
    weights.write_bytes(generator.bytes(22 << 20))
    first = job_record("count_words", settings={}, inputs={}, outputs=[])
    tables = (count - 1) // models - 1
    for number in range(models):
        model = STUDY / f"runs/run{number}/model"
        with writing_model_folder(model, made_with(first, model / "record.json")) as inside:
            os.link(weights, inside / "model.safetensors")
        record = model / "record.json"
        given = Input(path=record.as_posix(), sha256=identity(record))
        later = first.model_copy(update={"inputs": {"model": given}})
        later = later.model_copy(update={"key": later.recomputed_key()})
        for suite in range(tables):
            file = STUDY / f"scores/suite{suite}/run{number}.parquet"
            write_table(file, pa.table({"value": generator.random(12)}), made_with(later, file))
    report = STUDY / "report.html"
    write_page(report, "<html></html>", made_with(first, report))


def make_study(megabytes: int) -> None:
    """Write a study: a third of its bytes in a table, the rest in four models, read by a hundred small tables."""
    generator = np.random.default_rng(0)
    corpus = STUDY / "corpora/text/train.parquet"
    first = job_record("count_words", settings={}, inputs={}, outputs=[corpus])
    write_table(corpus, pa.table({"number": generator.random(megabytes * 1_000_000 // 24)}), first)
    later = job_record("count_words", settings={}, inputs={"corpus": corpus}, outputs=[])
    scores = list[Path]()
    for number in range(4):
        model = STUDY / f"runs/run{number}/model"
        with writing_model_folder(model, made_with(later, model / "record.json")) as inside:
            (inside / "model.safetensors").write_bytes(generator.bytes(megabytes * 1_000_000 // 6))
        for suite in range(25):
            file = STUDY / f"scores/suite{suite}/run{number}.parquet"
            write_table(file, pa.table({"value": generator.random(12)}), made_with(later, file))
            scores.append(file)
    report = STUDY / "report.html"
    record = job_record("count_words", settings={}, inputs={"scores": scores}, outputs=[report])
    write_page(report, "<html></html>", record)


def made_with(record: Record, output: Path) -> Record:
    """Return the record of another job with the same inputs, without hashing them again."""
    return record.model_copy(update={"outputs": [output.as_posix()]})


def command(*words: str) -> None:
    """Run a command in a new process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(words, check=True, env=environment, stdout=subprocess.DEVNULL)
