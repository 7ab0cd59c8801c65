"""What a study is doing, on one screen: python -m workflow_scripts.tools.watch STUDY [--every 10].

Jobs by rule: done, running, queued, failed, cancelled, and still to come, counted from what Snakemake would run now,
the jobs' logs and, where there is one, SLURM's queue. Trainings that run show their step, loss, development score,
sentences a second and the time that is left, as they note them beside their checkpoints; other jobs the last line of
their log. The configuration is that of the last run of the study in this folder, or what --configfile names. With
--tensorboard, the histories of all trainings are written as event files for TensorBoard (pip install tensorboard), new
steps in each round.
"""

import argparse
import re
import shutil
import socket
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Group
from rich.live import Live as Screen
from rich.table import Table
from rich.text import Text

from workflow_scripts.audit.printing import console
from workflow_scripts.errors import ConfigError, one_line_errors
from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.findings import advice
from workflow_scripts.graph.joint import joint_suites
from workflow_scripts.graph.notes import STUDIES, Asked, asked_last
from workflow_scripts.graph.queue import Queued, Target, queued_here, target_of
from workflow_scripts.graph.retries import LOGS, folder_of
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
_TAIL_BYTES = 65536
"""Behind the line of SLURM that says why, its log has the whole command of a job, twice."""
_ERROR = re.compile(r"[\w.]*(?:Error|Exception|Interrupt)\b.*|Killed$")
"""A line of a job's log that says why it ended."""
_SLURM_ERROR = re.compile(r"slurmstepd\S*: error: .*")
"""That of SLURM's log, in which the processes around the job complain as well."""
_CANCELLED = re.compile(
    r"^(?:Interrupted: |Preempted: |.* CANCELLED AT (?!.*(?:TIME LIMIT|NODE FAILURE)))", re.MULTILINE
)
"""What a job or SLURM says where somebody ended it."""


class State(NamedTuple):
    """What a look at the files and the queue has found."""

    done: Counter[str]
    """By rule, as the others."""
    running: list[Job]
    queued: list[Job]
    """In SLURM's queue, or in a job of it that has not come to them."""
    failed: list[Job]
    cancelled: list[Job]
    """Ended from outside, and not started again."""
    left: Counter[str]
    """Never started."""
    slurm: Mapping[str, Queued] = {}
    """Log to what is in SLURM's queue for it."""


def look(
    study: str, jobs: Sequence[Job], begun: float, named: Mapping[Path, str], queue: Sequence[Queued] | None
) -> State:
    """Sort jobs by what their files say.

    Args:
        study: Its name.
        jobs: What was left to do when watching began.
        begun: When that was, in seconds since the epoch.
        named: Rules of jobs whose files have another rule's folder, by the file of their time.
        queue: What is in SLURM's queue; None where there is no SLURM.
    """
    queued: dict[Target, Queued] = {target: one for one in queue or () for target in one.targets}
    times = Path("benchmarks", study).rglob("*.tsv")
    ended = {path: changed for path in times if (changed := _changed(path))}
    waiting = {_times_of(job): job.apart() for job in jobs}
    slurm = {
        part.log: queued[target]
        for job in jobs
        if (target := target_of(job.rule, job.wildcards)) in queued
        for part in job.apart()
    }
    state = State(Counter(), [], [], [], [], Counter(), slurm)
    alone = {path.with_stem(name) for path in ended.keys() - waiting.keys() for name in apart(path.stem)}
    for path in alone - {_alone(part) for parts in waiting.values() for part in parts}:
        state.done[named.get(path, path.relative_to(Path("benchmarks", study)).parts[0])] += 1
    for path, parts in waiting.items():
        running = [
            part for part in parts if is_running(part, unqueued=queue is not None and part.log not in slurm)
        ]
        for job in parts:
            if ended.get(path, 0) > begun:  # Snakemake writes it when a job has ended well
                state.done[job.rule] += 1
            elif job in running:
                state.running.append(job)
            elif running and _has_made_all(job):  # before its neighbours
                state.done[job.rule] += 1
            elif job.log in slurm:
                state.queued.append(job)
            elif (said_last := _changed(Path(job.log))) and not ended.get(path, 0) > said_last:
                (state.cancelled if _CANCELLED.search(said(job)) else state.failed).append(job)
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


def is_running(job: Job, *, unqueued: bool = False) -> bool:
    """Whether the process that holds a job's lock lives; of another machine's, whether it has said something lately.

    Args:
        job: The job.
        unqueued: Whether SLURM's queue has nothing of it, so that one that SLURM ran has ended.
    """
    lock = Path(f"{job.log}.lock")
    try:
        held = re.fullmatch(r"process (\d+) on (\S+)", lock.read_text(errors="replace"))
    except OSError:
        return False
    if not held:
        return False
    if held[2] == socket.gethostname():
        try:
            return b"workflow_scripts.jobs" in Path("/proc", held[1], "cmdline").read_bytes()
        except OSError:
            return False
    if unqueued and slurm_log(job):
        return False
    ends = [file for file in job.outputs if Path(file).exists() and _changed(Path(file)) >= _changed(lock)]
    written = [_changed(Path(job.log)), _changed(lock), _changed(checkpoints_of(job) / FILE)]
    return not ends and time.time() - max(written) < SILENT_SECONDS


def _changed(path: Path) -> float:
    """The date of a file; 0 where there is none, or none any more."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def checkpoints_of(job: Job) -> Path:
    """Where a training keeps what it goes on from."""
    folder = next((Path(file).parent for file in job.outputs if file.endswith("/record.json")), Path(job.log))
    return folder.with_name(f"{folder.name}.checkpoints")


def tail(log: Path) -> str:
    """The end of a log; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace").replace("\r", "\n")
    except OSError:
        return ""


def last_line(log: Path) -> str:
    """The last line of a log that says something."""
    lines = [line.strip() for line in tail(log).splitlines() if line.strip()]
    return lines[-1] if lines else "nothing written"


def said(job: Job) -> str:
    """The end of a job's log, and of SLURM's log of its last try where there is one."""
    log = slurm_log(job)
    return f"{tail(Path(job.log))}\n{tail(log) if log else ''}"


def slurm_log(job: Job) -> Path | None:
    """SLURM's log of a job's last try, or of the group that it was a part of."""
    own = [*(LOGS / f"rule_{job.rule}" / folder_of(job.wildcards.values())).glob("*.log")]
    found = own or [
        log for log in LOGS.glob("group_*/**/*.log") if job.log in log.read_text(errors="replace")
    ]
    return max(found, key=_changed, default=None)


def why(job: Job) -> str:
    """The line that says why a job ended, and where it stands."""
    log = slurm_log(job)
    for file, pattern in ((Path(job.log), _ERROR), (Path(job.log), _CANCELLED), (log, _SLURM_ERROR)):
        lines = [line.strip() for line in tail(file).splitlines()] if file else []
        if found := [line for line in lines if pattern.match(line)]:
            return f"{found[-1]} ({file})"
    return f"{last_line(Path(job.log))} ({job.log}{f', {log}' if log else ''})"


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
    ended = {"failed": state.failed, "cancelled": state.cancelled}
    listed = {"running": state.running, "queued": state.queued} | ended
    by_rule = {what: Counter(job.rule for job in jobs) for what, jobs in listed.items()}
    columns = {"done": state.done} | by_rule | {"to come": state.left}
    shown = {
        what: counts
        for what, counts in columns.items()
        if counts or what in ("done", "running", "failed", "to come")
    }
    table = Table()
    for heading in ("rule", *shown):
        table.add_column(heading, justify="left" if heading == "rule" else "right")
    for rule in sorted(set().union(*shown.values())):
        table.add_row(rule, *(str(counts[rule] or "") for counts in shown.values()))
    counted = ", ".join(f"{counts.total():,} {what}" for what, counts in shown.items())
    title = f"{study.config['name']}: {counted.replace(' ', ' jobs ', 1)}"
    lines = [*_listed("running", state.running, lambda job: f"{_again(state, job)}{doing(study, job)}")]
    lines += _listed("queued", state.queued, lambda job: _place(state, job))
    for what, jobs in ended.items():
        lines += _listed(what, jobs, why)
    return Group(Text(title, "bold"), table, *lines)


_STYLES = {"running": "green", "queued": "blue", "failed": "red", "cancelled": "yellow"}


def _listed(what: str, jobs: Sequence[Job], say: Any) -> Iterator[Text]:
    for job in jobs[:SHOWN]:
        name = " ".join([job.rule, *job.wildcards.values()])
        yield Text.assemble((f"{what} ", _STYLES[what]), f"{name}: {say(job)}")
    if len(jobs) > SHOWN:
        yield Text(f"{what}: and {len(jobs) - SHOWN} more")


def _again(state: State, job: Job) -> str:
    """How often a job was started anew, if it was."""
    restarts = state.slurm[job.log].attempt - 1 if job.log in state.slurm else 0
    return f"restarted {'once' if restarts == 1 else f'{restarts} times'}, " if restarts else ""


def _place(state: State, job: Job) -> str:
    """Where a job is in the queue; one that runs there and says nothing is starting, or waits in its group."""
    found = state.slurm[job.log]
    return f"{_again(state, job)}SLURM job {found.number} is {found.state.lower()}"


def doing(study: Study, job: Job) -> str:
    """What a running job says of itself."""
    live = read_live(checkpoints_of(job))
    return last_line(Path(job.log)) if live is None else progress(live, _batch_size(study, job))


def _batch_size(study: Study, job: Job) -> int | None:
    if job.rule == "train_encoder":
        return int(study.settings(job.wildcards["run"])["training"]["batch_size"])
    return int(study.adapting(job.wildcards["encoder"])["batch_size"]) if job.rule == "continue_mlm" else None


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


def names_of(study: Study) -> dict[Path, str]:
    """Rules that do several things in one process, by the files of their times, which name the rule that does one."""
    folder, figures = Path("benchmarks", study.config["name"]), Figures(study)
    scores, pictures = folder / "evaluate_sts", folder / "draw_figure"
    evaluated = {
        scores / pair.sts / run / f"seed{seed}.tsv": f"evaluate_{pair.sts}_with_{pair.geometry}"
        for pair, runs in joint_suites(study).items()
        for run, seeds in runs.items()
        for seed in seeds
    }
    drawn = {
        pictures / experiment / "figures.tsv": figures.rule_drawing(experiments)
        for experiments in figures.together.values()
        for experiment in experiments
    }
    return evaluated | drawn


def asked_of(study: str, configfiles: Sequence[str]) -> Asked:
    """The configuration of a study: as given, as its last run in this folder had it, or the file of its name.

    Raises:
        ConfigError: if nothing tells, or it is another study's.
    """
    noted = asked_last(study)
    asked = Asked(list(configfiles), {}) if configfiles else noted
    if asked is None:
        overlay = ROOT / f"config/{study}.yaml"
        asked = Asked([str(overlay)] if overlay.exists() else [], {})
    name = study_in(ROOT, asked.configfiles, asked.config).config["name"]
    if name != study:
        read = ", ".join(asked.configfiles) or "the base configuration"
        found = f"{study}: {read} is the configuration of {name}. Give this study's by --configfile."
        raise ConfigError(f"{found} {advice(study, sorted(note.stem for note in STUDIES.glob('*.json')))}")
    return asked


def in_queue() -> tuple[list[Queued] | None, str]:
    """What SLURM has of this folder, and why that is not known; neither where there is no SLURM."""
    if not shutil.which("squeue"):
        return None, ""
    try:
        return queued_here(), ""
    except ConfigError as error:
        return None, f"What waits in a queue is not shown. {error}"


def _seconds(text: str) -> float:
    """A time between two looks."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: no time. Say seconds, more than 0.")
    return seconds


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
        "--configfile", nargs="+", default=[], metavar="FILE", help="default: those of its last run here"
    )
    parser.add_argument(
        "--every", type=_seconds, metavar="SECONDS", help="look again after so long; default: once"
    )
    parser.add_argument("--tensorboard", type=Path, metavar="FOLDER", help="write event files below it")
    given = parser.parse_args()
    asked = asked_of(given.study, given.configfile)
    events = Events(given.tensorboard) if given.tensorboard else None
    study, begun = study_in(ROOT, asked.configfiles, asked.config), time.time()
    graph = planned(given.targets, asked.configfiles, config=asked.config, from_nothing=False)
    jobs, named = [job for job in graph.jobs if job.log], names_of(study)
    terminal = console()

    def seen_now() -> Group:
        queue, unknown = in_queue()
        seen = screen(study, look(given.study, jobs, begun, named, queue))
        return Group(seen, Text(unknown, "yellow")) if unknown else seen

    if not given.every:
        terminal.print(seen_now(), soft_wrap=not terminal.is_terminal)
        if events:
            events.write(histories(given.study))
        return
    with suppress(KeyboardInterrupt), Screen(console=terminal, auto_refresh=False) as shown:
        for _round in count():
            shown.update(seen_now(), refresh=True)
            if events:
                events.write(histories(given.study))
            time.sleep(given.every)


if __name__ == "__main__":
    with one_line_errors():
        main()
