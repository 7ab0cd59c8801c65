"""Time and memory of reading, cleaning and writing a million sentences: python -m benchmarks.preparing.

The file is made up: sentences of the Wikipedia extract with their words in another order, some of them blank or
repeated. The rule's own command reads it; the peer writes the same lines with pandas, cleaning nothing.
Prints: bench read_dataset RATIO times-the-time read_dataset-against-pandas-without-cleaning
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.material import wikipedia_sentences
from tests.jobs import planned_code
from workflow_scripts.provenance.closure import ROOT

PEER = """
import sys
import pandas as pd
lines = pd.Series(open(sys.argv[1], encoding="utf-8").read().split("\\n"), dtype="string")
lines.to_frame("sentence").to_parquet(sys.argv[2], compression="zstd")
"""


def main() -> None:
    """Make the file, run both commands, print times, the largest memory and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    count = parser.parse_args().sentences
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder / "text.txt", count)
        ours = seconds(
            [sys.executable, "-m", "workflow_scripts.jobs.read_dataset", *arguments(folder)], folder
        )
        memory_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        peer = seconds(
            [sys.executable, "-c", PEER, str(folder / "text.txt"), str(folder / "peer.parquet")], folder
        )
    print(f"{count:,} lines: {ours:.1f} s and {memory_mb:,.0f} MB; pandas {peer:.1f} s", file=sys.stderr)
    print(f"bench read_dataset {ours / peer:.2f} times-the-time read_dataset-against-pandas-without-cleaning")


def write_lines(path: Path, count: int) -> None:
    """Lines as long as Wikipedia's; one in a hundred is blank, one in fifty repeats the one before."""
    sentences = [sentence.split() for sentence in wikipedia_sentences(10_000)]
    draw = random.Random(0)
    line = ""
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            if number % 100 == 0:
                file.write("\n")
                continue
            if number % 50:
                words = sentences[number % len(sentences)]
                line = " ".join(draw.sample(words, len(words)))
            file.write(f"{line}\n")


def arguments(folder: Path) -> list[str]:
    """The command line of rule read_dataset."""
    source = {
        "kind": "local",
        "files": {"text": {"path": "text.txt", "sha256": None}},
        "reader": "lines",
        "options": {"min_words": 1, "max_words": 1000},
    }
    block = {
        "form": "sentences", "sources": [source], "contract": {"min_rows": 1},
    }  # fmt: skip
    files = ["--table", str(folder / "table.parquet"), "--dropped", str(folder / "dropped.parquet")]
    return [
        *planned_code("read_dataset", "data.readers.lines"),
        "--config",
        json.dumps({"dataset": block, "source": "none"}),
        "--dataset",
        "million",
        *files,
    ]


def seconds(command: list[str], folder: Path) -> float:
    """Time of one whole command, started anew."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "SEMBLANCE_DATA": str(folder)}
    started = time.perf_counter()
    subprocess.run(command, check=True, env=environment)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
