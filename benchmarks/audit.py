"""Time of ``audit verify`` against that of ``sha256sum`` on the same files: python -m benchmarks.audit.

Both are whole commands, started anew, with the files in the page cache; the best of three counts. Two studies: one
of few large files, and one of 10,000 artefacts, 400 of them encoders a quarter the size of MiniLM (in the demo, one
artefact in six is an encoder).

Prints: bench audit_verify RATIO x audit-verify-against-sha256sum
        bench audit_verify_10000_artefacts RATIO x audit-verify-against-sha256sum
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from workflow_scripts.provenance import artefacts
from workflow_scripts.provenance.artefacts import (
    job_record,
    read_checksum,
    write_page,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.record import Input, Record

STUDY = Path("results/bench")


def main() -> None:
    """Make the studies, time both commands on each, print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300, help="size of the study of few files")
    megabytes = parser.parse_args().megabytes
    compare("audit_verify", lambda: make_study(megabytes))
    compare("audit_verify_10000_artefacts", lambda: make_large_study(10_000, 400))


def compare(name: str, make: Callable[[], None]) -> None:
    """Make a study in a folder of its own, time both commands, print the ratio."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with patch.object(artefacts, "_sync"):  # a study to throw away need not outlive a loss of power
            make()
        files = sorted(str(path) for path in STUDY.rglob("*") if path.is_file())
        verify = best_of_three([sys.executable, "-m", "workflow_scripts.audit", "verify"])
        sha256sum = best_of_three(["sha256sum", *files])
        size = sum(Path(file).stat().st_size for file in files) / 1e6
    print(
        f"{len(files)} files, {size:.0f} MB: verify {verify:.2f} s, sha256sum {sha256sum:.2f} s",
        file=sys.stderr,
    )
    print(f"bench {name} {verify / sha256sum:.2f} x audit-verify-against-sha256sum", flush=True)


def make_large_study(count: int, models: int) -> None:
    """Encoders and a score file for each of the other artefacts; weights are one file under many names."""
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
        given = Input(path=record.as_posix(), sha256=str(read_checksum(record)))
        later = first.model_copy(update={"inputs": {"model": given}})
        for suite in range(tables):
            file = STUDY / f"scores/suite{suite}/run{number}.parquet"
            write_table(file, pa.table({"value": generator.random(12)}), made_with(later, file))
    report = STUDY / "report.html"
    write_page(report, "<html></html>", made_with(first, report))


def make_study(megabytes: int) -> None:
    """A third of the bytes in one table, the rest in four models; a hundred small tables read them."""
    generator = np.random.default_rng(0)
    corpus = STUDY / "corpora/text/train.parquet"
    first = job_record("count_words", settings={}, inputs={}, outputs=[corpus])
    write_table(corpus, pa.table({"number": generator.random(megabytes * 1_000_000 // 24)}), first)
    later = job_record("count_words", settings={}, inputs={"corpus": corpus}, outputs=[])
    scores = {}
    for run in range(4):
        model = STUDY / f"runs/run{run}/model"
        with writing_model_folder(model, made_with(later, model / "record.json")) as inside:
            (inside / "model.safetensors").write_bytes(generator.bytes(megabytes * 1_000_000 // 6))
        for suite in range(25):
            file = STUDY / f"scores/suite{suite}/run{run}.parquet"
            write_table(file, pa.table({"value": generator.random(12)}), made_with(later, file))
            scores[f"scores/{file}"] = file
    report = STUDY / "report.html"
    made = job_record("count_words", settings={}, inputs=scores, outputs=[report])
    write_page(report, "<html></html>", made)


def made_with(record: Record, output: Path) -> Record:
    """The record of another job of the same kind; hashing its inputs once is enough here."""
    return record.model_copy(update={"outputs": [output.as_posix()]})


def best_of_three(command: list[str]) -> float:
    """Seconds that ``command`` takes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    main()
