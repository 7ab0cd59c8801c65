"""Reservation of GPUs on a machine without a scheduler: each card has one job at a time.

A lock file per card, in the folder for temporary files, serves all clones and users of the machine. The kernel releases
the lock however its process ends. A job on several cards locks all of them at once or none, so jobs never wait for each
other in a circle. Jobs that see the same cards queue for them, so jobs with one card do not overtake one with several
for ever.

Cards are identified by nvidia-smi's UUIDs; a job finds its own in CUDA_VISIBLE_DEVICES. A scheduler grants cards before
the job starts, so jobs under a scheduler take no locks.
"""

import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance.closure import installed

VISIBLE = "CUDA_VISIBLE_DEVICES"
GRANTED = "SEMBLANCE_CARDS_GRANTED"
"""Environment variable of jobs that Snakemake has submitted to a scheduler (``rules/common.smk``)."""
_SCHEDULED_BY = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", GRANTED)
"""Environment variables of jobs whose cards a scheduler has granted."""
_LISTED = re.compile(r"^GPU \d+: .*\(UUID: (\S+)\)|^ +MIG .*\(UUID: +(\S+)\)", re.MULTILINE)
_LONGEST_SECONDS = 120
"""Timeout of nvidia-smi, in seconds; without persistence mode, it starts each card first."""
_POLL_SECONDS = 0.5


def is_scheduled() -> bool:
    """Return whether a scheduler has granted the cards of this process."""
    return any(name in os.environ for name in _SCHEDULED_BY)


def visible() -> list[str]:
    """Return the UUIDs of this machine's cards in CUDA_VISIBLE_DEVICES, in its order, or of all if it is not set.

    The list is empty if a scheduler grants cards, or if PyTorch is the build without CUDA. A divided card (MIG) counts
    as its parts. Numbers are those of nvidia-smi.
    """
    if is_scheduled() or _is_without_cuda():
        return []
    cards = on_machine()
    chosen = os.environ.get(VISIBLE)
    return cards if chosen is None else [*dict.fromkeys(_chosen(chosen, cards))]


def lack_cuda() -> bool:
    """Return whether this machine has cards that PyTorch cannot use, because it is the build without CUDA."""
    return _is_without_cuda() and not is_scheduled() and bool(on_machine())


def _is_without_cuda() -> bool:
    return installed("torch").endswith("+cpu")


def on_machine() -> list[str]:
    """Return the UUIDs of this machine's cards, in the order of nvidia-smi; empty if it is missing or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        listed = subprocess.run(
            [program, "-L"], capture_output=True, text=True, check=True, timeout=_LONGEST_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return []
    groups: list[list[str]] = []
    for whole, part in _LISTED.findall(listed.stdout):
        if whole:
            groups.append([whole])
        elif groups:
            groups[-1].append(part)
    return [card for whole, *parts in groups for card in (parts or [whole])]


def _chosen(chosen: str, cards: Sequence[str]) -> Iterator[str]:
    """Yield the cards in a value of CUDA_VISIBLE_DEVICES; like CUDA, ignore everything after an unknown name."""
    for name in map(str.strip, chosen.split(",")):
        if name.isdecimal():
            named = cards[int(name) : int(name) + 1]
        else:
            named = [card for card in cards if name and card.startswith(name)]
        if len(named) != 1:
            return
        yield named[0]


def take(number: int) -> None:
    """Wait for free cards, and hold them until this process ends, which then sees no others.

    Without cards on this machine, or under a scheduler, nothing happens.

    Args:
        number: Number of cards; a job with 0 sees none.

    Raises:
        ConfigError: if fewer cards are visible.
    """
    if is_scheduled():
        return
    cards = visible() if number else []
    if number and not cards:
        return
    if number > len(cards):
        raise ConfigError(
            f"training.gpus: {number}, but jobs see {len(cards)} here. Set it to {len(cards)} or less."
        )
    os.environ[VISIBLE] = ",".join(_waited_for(number, cards) if number else [])


def _waited_for(number: int, cards: Sequence[str]) -> list[str]:
    """Return locked cards, after the processes that have waited longer for the same ones."""
    queue = _opened(hashlib.sha256(",".join(sorted(cards)).encode()).hexdigest()[:12])
    taken = _locked_of(cards, number) if _locked(queue) else []
    if not taken:
        print(f"waiting for {number} of {len(cards)} GPUs, which other jobs use", file=sys.stderr)  # noqa: T201
        fcntl.flock(queue, fcntl.LOCK_EX)
        while not (taken := _locked_of(cards, number)):
            time.sleep(_POLL_SECONDS)
    os.close(queue)
    return taken


def _locked_of(cards: Sequence[str], number: int) -> list[str]:
    """Return this many newly locked cards, or none if fewer are free."""
    taken: dict[str, int] = {}
    for card in cards:
        lock = _opened(card)
        if len(taken) < number and _locked(lock):
            taken[card] = lock
        else:
            os.close(lock)
    enough = len(taken) == number
    for lock in taken.values():
        if enough:
            # Stays open until the process ends, even if it becomes torchrun.
            os.set_inheritable(lock, True)
            # Systems delete old files, of a week or more, from folders for temporary files.
            os.utime(lock)
        else:
            os.close(lock)
    return [*taken] if enough else []


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _opened(name: str) -> int:
    """Return the open lock file of a card, or of a queue; all users may lock a file that one of them has made."""
    path = Path(tempfile.gettempdir(), f"semblance-{name}.lock")
    # Systems refuse O_CREAT for an existing file of another user (fs.protected_regular).
    with suppress(FileExistsError):
        lock = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL)
        # All users may renew the date, whatever the umask.
        os.fchmod(lock, 0o666)
        os.close(lock)
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)


_SIGNAL_OF_PARENTS_DEATH = 1
"""Linux's PR_SET_PDEATHSIG."""


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent, torchrun, which holds the cards, ends."""
    ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_DEATH, signal.SIGKILL)
