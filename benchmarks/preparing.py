"""Time and memory of reading, cleaning and writing 200,000 sentences, against pandas without cleaning.

The file is synthetic: sentences of the Wikipedia extract with their words in another order, some of them blank or
repeated. The command of rule read_dataset reads it.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.harness import Measured, Timing, ratios
from benchmarks.material import wikipedia_sentences
from tests.support.training_jobs import NOWHERE, call_of
from workflow_scripts.provenance.closure import ROOT

CODE = (
    "workflow_scripts/data",
    "workflow_scripts/provenance/artefacts.py",
)
PEER = """
import sys
import pandas as pd
lines = pd.Series(open(sys.argv[1], encoding="utf-8").read().split("\\n"), dtype="string")
lines.to_frame("sentence").to_parquet(sys.argv[2], compression="zstd")
"""
STARTER = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A small process starts the command, because Linux adds the memory of the starting process to the command's."""


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratios of both commands on the file."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder / "text.txt", 1000 if timing.small else 200_000)
        ways = {
            "read_dataset": [sys.executable, *arguments(folder)],
            "pandas": [sys.executable, "-c", PEER, str(folder / "text.txt"), str(folder / "peer.parquet")],
        }
        memory: dict[str, list[int]] = {way: [] for way in ways}

        def work(way: str) -> Callable[[], None]:
            return lambda: memory[way].append(largest_memory(ways[way]))

        seconds = timing.interleaved({way: work(way) for way in ways})
    against = "read_dataset-against-pandas-without-cleaning"
    yield Measured("read_dataset", ratios(seconds, *ways), "times-the-time", against)
    yield Measured(
        "read_dataset_memory", ratios(memory, *ways)[-timing.rounds :], "times-the-memory", against
    )


def write_lines(path: Path, count: int) -> None:
    """Write lines as long as Wikipedia's; one in a hundred is blank, one in fifty repeats the previous one."""
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
    """Return the command line of rule read_dataset."""
    source = {
        "kind": "local",
        "files": {"text": {"path": "text.txt", "sha256": None}},
        "reader": "lines",
        "options": {"min_words": 1, "max_words": 1000},
    }
    block = {
        "form": "sentences", "sources": [source], "contract": {"min_rows": 1},
    }  # fmt: skip
    files = {name: folder / f"{name}.parquet" for name in ("table", "dropped")}
    call = call_of(
        "read_dataset",
        {"source": {"kind": "none"}},
        ["data.readers.sentences"],
        workplace=NOWHERE | {"data_root": str(folder)},
        dataset="lines",
        contract=block,
        **files,
    )
    return ["-m", "workflow_scripts.jobs", "read_dataset", json.dumps(call)]


def largest_memory(words: list[str]) -> int:
    """Return the maximum resident memory of a command in a new process."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", STARTER, *words]
    printed = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True).stdout
    return int(printed.split()[-1])
