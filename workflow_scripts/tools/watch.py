"""What a study is doing, on one screen: python -m workflow_scripts.tools.watch STUDY [--every 10].

Jobs by rule: done, running, failed, and still to come, counted from what Snakemake would run now and the jobs' logs.
Trainings that run show their step, loss, development score, sentences a second and the time that is left, as they note
them beside their checkpoints; other jobs the last line of their log. With --tensorboard, the histories of all trainings
are written as event files for TensorBoard (pip install tensorboard), new steps in each round.
"""

import argparse
import re
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console, Group
from rich.live import Live as Screen
from rich.table import Table
from rich.text import Text

from workflow_scripts.errors import ConfigError, one_line_errors
from workflow_scripts.graph.study import Study
from workflow_scripts.planning.graph import Job, planned, study_in
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.line import apart
from workflow_scripts.training.live import FILE, Live, read_live

SILENT_SECONDS = 15 * 60
"""A job on another machine that has written nothing for so long counts as ended."""
SHOWN = 12
"""Running or failed jobs that are listed; of more, their number."""
_SCALARS = ("loss", "learning_rate", "gradient_norm", "dev_score")
_TAIL_BYTES = 4096


class State(NamedTuple):
    """What a look at the files has found."""

    done: Counter[str]
    """By rule, as the others."""
    running: list[Job]
    failed: list[Job]
    left: Counter[str]
    """Never started."""


def look(study: str, jobs: Sequence[Job], begun: float) -> State:
    """Sort jobs by what their files say.

    Args:
        study: Its name.
        jobs: What was left to do when watching began.
        begun: When that was, in seconds since the epoch.
    """
    times = Path("benchmarks", study).rglob("*.tsv")
    ended = {path: path.stat().st_mtime for path in times}
    waiting = {_times_of(job): job.apart() for job in jobs}
    state = State(Counter(), [], [], Counter())
    alone = {path.with_stem(name) for path in ended.keys() - waiting.keys() for name in apart(path.stem)}
    for path in alone - {_alone(part) for parts in waiting.values() for part in parts}:
        state.done[path.relative_to(Path("benchmarks", study)).parts[0]] += 1
    for path, parts in waiting.items():
        running = [part for part in parts if is_running(part)]
        for job in parts:
            if ended.get(path, 0) > begun:  # Snakemake writes it when a job has ended well
                state.done[job.rule] += 1
            elif job in running:
                state.running.append(job)
            elif running and _has_made_all(job):  # before its neighbours
                state.done[job.rule] += 1
            elif Path(job.log).exists() and not ended.get(path, 0) > Path(job.log).stat().st_mtime:
                state.failed.append(job)
            else:
                state.left[job.rule] += 1
    return state


def _times_of(job: Job) -> Path:
    """The file of a job's time and memory."""
    return Path(job.times) if job.times else _alone(job)


def _alone(job: Job) -> Path:
    """That of a job that runs alone, named as its log."""
    return Path("benchmarks", *Path(job.log).parts[1:]).with_suffix(".tsv")


def _has_made_all(job: Job) -> bool:
    """Whether all files of a job are there, and younger than its beginning."""
    begun = _changed(Path(f"{job.log}.lock"))
    return all(_changed(Path(file)) >= begun > 0 for file in job.outputs)


def is_running(job: Job) -> bool:
    """Whether the process that holds a job's lock lives; of another machine's, whether it has said something lately."""
    lock = Path(f"{job.log}.lock")
    try:
        held = re.fullmatch(r"process (\d+) on (\S+)", lock.read_text(errors="replace"))
    except OSError:
        return False
    if not held:
        return False
    if held[2] == socket.gethostname():
        command = Path("/proc", held[1], "cmdline")
        return command.exists() and b"workflow_scripts.jobs." in command.read_bytes()
    ends = [file for file in job.outputs if Path(file).exists() and _changed(Path(file)) >= _changed(lock)]
    written = [_changed(Path(job.log)), _changed(lock), _changed(checkpoints_of(job) / FILE)]
    return not ends and time.time() - max(written) < SILENT_SECONDS


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def checkpoints_of(job: Job) -> Path:
    """Where a training keeps what it goes on from."""
    folder = next((Path(file).parent for file in job.outputs if file.endswith("/record.json")), Path(job.log))
    return folder.with_name(f"{folder.name}.checkpoints")


def last_line(log: Path) -> str:
    """The last line of a log that says something."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").replace("\r", "\n").splitlines()
    except OSError:
        return "no log"
    return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")


def progress(live: Live, batch_size: int | None) -> str:
    """How far a training is, in one line."""
    rows = live.history
    step, scores = len(rows), [score for score in rows["dev_score"].to_pylist() if score is not None]
    parts = [f"step {step:,} of {live.steps:,}"]
    if step:
        parts.append(f"loss {rows['loss'][-1].as_py():.4f}")
    if scores:
        parts.append(f"dev {scores[-1]:.4f} (best {max(scores):.4f})")
    if batch_size and live.seconds_per_step > 0:
        parts.append(f"{batch_size / live.seconds_per_step:,.0f} sentences/s")
    return ", ".join([*parts, f"{duration((live.steps - step) * live.seconds_per_step)} left"])


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    minutes = seconds / 60
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def screen(study: Study, state: State) -> Group:
    """Everything, as it is printed."""
    running = Counter(job.rule for job in state.running)
    failed = Counter(job.rule for job in state.failed)
    table = Table()
    for heading in ("rule", "done", "running", "failed", "to come"):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for rule in sorted({*state.done, *running, *failed, *state.left}):
        table.add_row(
            rule, *(str(number[rule] or "") for number in (state.done, running, failed, state.left))
        )
    counts = (state.done.total(), len(state.running), len(state.failed), state.left.total())
    title = "{}: {:,} jobs done, {:,} running, {:,} failed, {:,} to come".format(
        study.config["name"], *counts
    )
    lines = [*_listed("running", state.running, lambda job: doing(study, job))]
    lines += _listed("failed", state.failed, lambda job: f"{last_line(Path(job.log))} ({job.log})")
    return Group(Text(title, "bold"), table, *lines)


def _listed(what: str, jobs: Sequence[Job], say: Any) -> Iterator[Text]:
    style = "red" if what == "failed" else "green"
    for job in jobs[:SHOWN]:
        name = " ".join([job.rule, *job.wildcards.values()])
        yield Text.assemble((f"{what} ", style), f"{name}: {say(job)}")
    if len(jobs) > SHOWN:
        yield Text(f"{what}: and {len(jobs) - SHOWN} more")


def doing(study: Study, job: Job) -> str:
    """What a running job says of itself."""
    live = read_live(checkpoints_of(job))
    return last_line(Path(job.log)) if live is None else progress(live, _batch_size(study, job))


def _batch_size(study: Study, job: Job) -> int | None:
    if job.rule == "train_encoder":
        return int(study.settings(job.wildcards["run"])["training"]["batch_size"])
    return int(study.config["continue_mlm"]["training"]["batch_size"]) if job.rule == "continue_mlm" else None


def histories(study: str) -> Iterator[tuple[str, pa.Table]]:
    """Run and seed, and the history so far, of every training that has one."""
    folder = Path("results", study, "runs")
    for file in sorted(folder.glob(f"*/seed*/{FILE}")):
        yield file.parent.relative_to(folder).as_posix(), pq.read_table(file)
    for file in sorted(folder.glob(f"*/seed*/*.checkpoints/{FILE}")):
        live = read_live(file.parent)
        if live is not None:
            yield file.parent.parent.relative_to(folder).as_posix(), live.history


class Events:
    """Event files of TensorBoard, one folder a training; each step is written once."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # slow to import, and tensorboard is optional
        except ImportError as error:
            raise ConfigError(
                f"--tensorboard: {error}. Run pip install tensorboard, or leave it out."
            ) from error
        self._folder = folder
        self._open: Any = SummaryWriter
        self._writers: dict[str, Any] = {}
        self._written: Counter[str] = Counter()

    def write(self, trainings: Iterable[tuple[str, pa.Table]]) -> None:
        """Write the steps that are new."""
        for name, history in trainings:
            if len(history) <= self._written[name]:
                continue
            if name not in self._writers:
                self._writers[name] = self._open(str(self._folder / name))
            for row in history.slice(self._written[name]).to_pylist():
                self._row(self._writers[name], row)
            self._written[name] = len(history)
            self._writers[name].flush()

    @staticmethod
    def _row(writer: Any, row: Mapping[str, Any]) -> None:
        for column in _SCALARS:
            if row[column] is not None:
                writer.add_scalar(f"training/{column}", row[column], row["step"])


def configfiles(study: str, given: Sequence[str]) -> list[str]:
    """The overlays of a study by its name: none of the base configuration's, config/NAME.yaml of another.

    Raises:
        ConfigError: if nothing tells.
    """
    if given:
        return list(given)
    base = study_in(ROOT, []).config["name"]
    overlay = ROOT / f"config/{study}.yaml"
    if study != base and not overlay.exists():
        raise ConfigError(f"{study}: neither {base} nor a file {overlay}. Give its file by --configfile.")
    return [] if study == base else [str(overlay)]


def main() -> None:
    """Look once, or again and again."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.watch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("study", metavar="STUDY", help="its name: a folder of results")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="of this study; default: all of it")
    parser.add_argument(
        "--configfile", nargs="+", default=[], metavar="FILE", help="default: config/STUDY.yaml"
    )
    parser.add_argument(
        "--every", type=float, metavar="SECONDS", help="look again after so long; default: once"
    )
    parser.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="write event files below it")
    given = parser.parse_args()
    files = configfiles(given.study, given.configfile)
    events = Events(given.tensorboard) if given.tensorboard else None
    study, begun = study_in(ROOT, files), time.time()
    jobs = [job for job in planned(given.targets, files, from_nothing=False).jobs if job.log]
    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    with Screen(console=console, auto_refresh=False) as shown:
        for _round in count() if given.every else range(1):
            shown.update(screen(study, look(given.study, jobs, begun)), refresh=True)
            if events:
                events.write(histories(given.study))
            time.sleep(given.every or 0)


if __name__ == "__main__":
    with one_line_errors():
        main()
