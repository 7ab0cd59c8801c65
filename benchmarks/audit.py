"""Time of ``audit verify`` against that of ``sha256sum`` on the same files: python -m benchmarks.audit.

Both are whole commands, started anew, with the files in the page cache; the best of three counts.
Prints: bench audit_verify RATIO x audit-verify-against-sha256sum
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from workflow_scripts.artefacts import job_record, write_page, write_table, writing_model_folder
from workflow_scripts.closure import ROOT
from workflow_scripts.provenance import Record

STUDY = Path("results/bench")


def main() -> None:
    """Make a study, time both commands, print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300, help="size of the study")
    megabytes = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        make_study(megabytes)
        files = sorted(str(path) for path in STUDY.rglob("*") if path.is_file())
        verify = best_of_three([sys.executable, "-m", "workflow_scripts.audit", "verify"])
        sha256sum = best_of_three(["sha256sum", *files])
        size = sum(Path(file).stat().st_size for file in files) / 1e6
    print(
        f"{len(files)} files, {size:.0f} MB: verify {verify:.2f} s, sha256sum {sha256sum:.2f} s",
        file=sys.stderr,
    )
    print(f"bench audit_verify {verify / sha256sum:.2f} x audit-verify-against-sha256sum")


def make_study(megabytes: int) -> None:
    """A third of the bytes in one table, the rest in four models; a hundred small tables read them."""
    generator = np.random.default_rng(0)
    corpus = STUDY / "corpora/text/train.parquet"
    first = job_record("errors", settings={}, inputs={}, outputs=[corpus])
    write_table(corpus, pa.table({"number": generator.random(megabytes * 1_000_000 // 24)}), first)
    later = job_record("errors", settings={}, inputs={"corpus": corpus}, outputs=[])
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
    made = job_record("errors", settings={}, inputs=scores, outputs=[report])
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
