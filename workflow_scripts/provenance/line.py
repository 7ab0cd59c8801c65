"""Command lines of several jobs in one process: one after the other, or side by side.

One after the other, ``--then`` stands between them. Side by side they differ in the values of some arguments alone:

    --beside seed record -m workflow_scripts.jobs.train_encoder --run a --seed 1 2 --record one two

are two jobs, ``--run a --seed 1 --record one`` and ``--run a --seed 2 --record two``. One command for all, so that the
rule of a job that runs alone has the very same text: Snakemake compares it, and takes nothing that was made alone for
outdated when it would be made together, nor the other way round.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from pathlib import Path

from workflow_scripts.errors import ConfigError

THEN = "--then"
BESIDE = "--beside"
MODULE = "-m"


def jobs_of(line: Iterable[str]) -> Iterator[list[str]]:
    """Name and arguments of each job that runs after another."""
    return (list(words) for separates, words in groupby(line, THEN.__eq__) if not separates)


def values_of(words: Iterable[str]) -> dict[str, list[str]]:
    """The values of each argument of a job, by its name without dashes."""
    values: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("--"):
            values[word.removeprefix("--")] = several = []
        else:
            several.append(word)
    return values


def names_beside(words: Sequence[str]) -> list[str]:
    """The arguments in which jobs side by side differ, as they stand behind ``--beside``; none of a job alone."""
    behind = words[words.index(BESIDE) + 1 :] if BESIDE in words else ()
    return list(takewhile(MODULE.__ne__, behind))


def jobs_beside(names: Sequence[str], words: Iterable[str]) -> list[list[str]]:
    """The arguments of each job, from those of all.

    Args:
        names: Arguments, without dashes, that have a value for each job; every other one is for all of them.
        words: All arguments.

    Raises:
        ConfigError: if one of ``names`` is not there, or has another number of values than the first.
    """
    values = values_of(words)
    counts = {name: len(values.get(name, ())) for name in names}
    jobs = max(counts.values(), default=0)
    if wrong := [name for name, count in counts.items() if count != jobs or not count]:
        raise ConfigError(
            f"{BESIDE}: --{wrong[0]} has {counts[wrong[0]]} values for {jobs} jobs. Give one for each job."
        )
    return [
        [
            word
            for name, several in values.items()
            for word in (f"--{name}", *([several[job]] if name in names else several))
        ]
        for job in range(jobs)
    ]


def log_beside(log: Path, name: str, first: str, value: str) -> Path:
    """The log of a job beside the first, whose own is ``log``: seed2.log beside seed1.log."""
    return log.with_name(log.name.replace(f"{name}{first}", f"{name}{value}"))


def together(seeds: Iterable[int]) -> str:
    """What names something that seeds side by side have in common, as seed1 names what is seed 1's: seeds1_2."""
    return f"seeds{'_'.join(map(str, seeds))}"


def apart(name: str) -> list[str]:
    """The seeds that it is named after, seed1 and seed2 of seeds1_2; any other name itself."""
    found = re.fullmatch(r"seeds(\d+(?:_\d+)+)", name)
    return [f"seed{seed}" for seed in found[1].split("_")] if found else [name]
