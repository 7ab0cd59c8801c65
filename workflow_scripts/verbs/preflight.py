"""Check whether a study can run here to its end, and estimate what its remaining jobs would take. Runs none of them.

Checks packages, the configuration with every run and column, keys, engines and data of the remaining jobs, disk space,
and whether a training requests more GPUs than this machine has, or a larger batch than its corpus. With --profile
slurm, sbatch tests each distinct request. Every translator and language model gets one question, except with --offline.
A failed check is a red line that ends with a remedy. Encoders without a revision of the Hub have to be pinned before
they are fetched; a line PIN has the YAML for this.

The tables have the time of the jobs of each rule and of all, with the sources of the numbers, best first: finished jobs
of the same kind here (Snakemake's benchmark files); steps timed by --measure; for trainings that get a GPU, steps on
the GPU of docs/cluster.md. Work that the cache spares counts as work, and waiting in a queue does not count. Further
tables have memory, limits of time and disk by rule; requests with days at a service's limits and dollars at its prices;
the place from which each dataset and encoder would be read; and gaps: optional sources that are missing, with the runs
whose rows stay empty without them. An empty cell is an unknown number.

Exit code 1 if a check fails.

  python -m workflow_scripts preflight jtcse --offline
"""

import contextlib
import io
import math
import os
import re
import shlex
import shutil
import subprocess
import time
from argparse import ArgumentTypeError
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from rich.text import Text

from workflow_scripts.apis.asking import Engine
from workflow_scripts.apis.ledger import Ledger
from workflow_scripts.apis.llm import Llm
from workflow_scripts.apis.translators import Direction, make_translator
from workflow_scripts.errors import ConfigError, ErrorDetails, SemblanceError
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.configuration import placed, read_yaml
from workflow_scripts.graph.lengths import is_training, on_the_card, training_of
from workflow_scripts.graph.needs import made_by, need_errors
from workflow_scripts.graph.study import Study
from workflow_scripts.provenance import cards
from workflow_scripts.provenance.closure import ROOT, installed
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.encoders import AdaptedEncoder
from workflow_scripts.settings.study import Configuration, layers_of
from workflow_scripts.verbs import estimate, timing
from workflow_scripts.verbs.plan import CONFIGURATION, TARGETS, PlannedJob, given_call, planned, whole_config
from workflow_scripts.verbs.printing import Answer, PrintedTable, argument

Check = tuple[bool, str]
"""Whether a check passed, and its line."""
SENTENCE = "The river rose after the rain."
UNLIMITED = 10_000
"""Number of queued jobs if a profile sets no limit."""


def _cores(text: str) -> int:
    """Return the number of --cores."""
    if text == "all":
        return cores_here()
    if text.isdecimal() and int(text):
        return int(text)
    raise ArgumentTypeError(f"'{text}'. Write a number, 1 or more, or all.")


def cores_here() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0))


ARGUMENTS = (
    TARGETS,
    *CONFIGURATION,
    argument("--profile", metavar="NAME", help="as for snakemake; also test requests to its cluster"),
    argument("--offline", action="store_true", help="send no request to translators and language models"),
    argument(
        "--cores",
        type=_cores,
        metavar="N",
        help="as for snakemake, for the estimated wall time; default: all cores of this machine",
    ),
    argument(
        "--measure",
        action="store_true",
        help="time some steps of each distinct training on this machine, for a few seconds each",
    ),
)


def answer(
    targets: list[str],
    configfile: list[str],
    config: list[str],
    profile: str | None,
    offline: bool,
    cores: int | None,
    measure: bool,
) -> Answer:
    """Return a line for each check, and tables of the remaining jobs; exit code 1 if a check fails."""
    results = [*_checked(package_errors(ROOT / "requirements.lock"), "packages: as pinned")]
    tables, to_pin, notes = list[PrintedTable](), dict[str, str](), list[str]()
    try:
        call, began = given_call(configfile, config), time.monotonic()
        jobs = planned(targets, call, from_nothing=False, profile=profile)
        planning = time.monotonic() - began
        study = open_study(whole_config(call), ROOT)
        results += checks(study, jobs, profile, ask=not (offline or study.workplace.offline))
        unfit = training_errors(study, jobs, gpus_for(profile))
        results += [(False, str(error)) for error in placed(unfit, ROOT, call.configfiles, call.config)]
        capacity = capacity_of(profile, cores)
        times, notes = _times(study, jobs, capacity, planning, measure=measure)
        tables = [
            *times,
            PrintedTable("jobs by rule", estimate.by_rule(study, jobs)),
            PrintedTable("requests", estimate.requests(study.settings, jobs)),
            PrintedTable(
                "read from",
                estimate.read_from(study.settings, jobs or planned(targets, call), study.data_root),
            ),
            PrintedTable("gaps", estimate.gaps(study)),
        ]
        to_pin = estimate.to_pin(study)
    except ConfigError as error:
        results += _checked(str(error).splitlines(), "")
    failed = sum(not good for good, _ in results)
    marks = {True: ("ok   ", "green"), False: ("FAIL ", "bold red")}
    lines = [Text.assemble(marks[good], line) for good, line in results]
    lines += [Text.assemble(("PIN  ", "yellow"), f"{where}: {line}") for where, line in to_pin.items()]
    lines += [Text.assemble(("TIME ", "yellow"), line) for line in notes]
    said = f"{failed} in the way" if failed else "It can run here to its end."
    if not failed and any(table.rows for table in tables if table.name == "gaps"):
        said += " Some rows of its tables stay empty: gaps."
    tables += [
        PrintedTable("checks", [{"good": good, "line": line} for good, line in results], shown=()),
        PrintedTable(
            "to pin", [{"setting": where, "line": line} for where, line in to_pin.items()], shown=()
        ),
        PrintedTable("notes on times", [{"line": line} for line in notes], shown=()),
    ]
    return Answer(said, not failed, [*tables, *lines])


def capacity_of(profile: str | None, cores: int | None) -> timing.Capacity:
    """Return the capacity for the jobs: the queue of a profile, or this machine with its GPUs."""
    if profile and executor_of(profile) != "local":
        queued = _options_of(profile).jobs
        return timing.Capacity(queued if isinstance(queued, int) else UNLIMITED, math.inf, queued=True)
    return timing.Capacity(cores or cores_here(), math.inf if cards.is_scheduled() else len(cards.visible()))


def _times(
    study: Study, jobs: Sequence[PlannedJob], capacity: timing.Capacity, planning: float, *, measure: bool
) -> tuple[list[PrintedTable], list[str]]:
    """Return the tables of times, and notes on missing times."""
    measured, notes = dict[str, float](), list[str]()
    if measure:
        # Spinning threads next to other programs would count as work; on an idle machine, spinning changes no time.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        began = time.process_time()
        # The import is slow, and a part of each training's time.
        from workflow_scripts.verbs import measuring

        measured, notes = measuring.measure(study, jobs, time.process_time() - began)
    estimates = timing.estimates(study, jobs, timing.read_finished(), capacity, measured)
    if not capacity.gpus and any(of_job.source == timing.UNKNOWN for of_job in estimates):
        notes += filter(
            None, [on_the_card(study, [job.wildcards for job in jobs if is_training(job.settings)])]
        )
    tables = {
        "time by rule": timing.by_rule(jobs, estimates),
        "time in all": timing.in_all(jobs, estimates, capacity, planning),
    }
    return [PrintedTable(name, rows, shown=timing.shown(rows)) for name, rows in tables.items()], notes


def checks(study: Study, jobs: Sequence[PlannedJob], profile: str | None, *, ask: bool) -> Iterator[Check]:
    """Yield the checks of a study with a valid configuration; engines with keys get a question if ``ask`` is set."""
    yield True, f"configuration of {study.settings.name}: valid; {len(jobs):,} jobs remain"
    needed = [(job.outside, made_by(job.wildcards)) for job in jobs if job.outside]
    needs = [*need_errors(study.settings, needed, study.workplace)]
    failed = {error.path for error in needs}
    needs += [error for error in estimate.without_revision(jobs) if error.path not in failed]
    yield from _checked(
        needs, f"keys, engines, data: found for all {len(set(needed))} remaining sources and requests"
    )
    if ask:
        yield from engine_answers(study.settings, jobs, without=failed)
    wanted = sum(estimate.gigabytes(study, job) for job in jobs)
    yield from _checked(
        disk_errors(wanted, shutil.disk_usage(".").free / 1e9), "disk: enough for the known sizes"
    )
    if profile and (site := site_of(profile)):
        yield from slurm_answers(requests_of(jobs, site))


def _checked(errors: Iterable[ErrorDetails | str], otherwise: str) -> Iterator[Check]:
    """Yield a failed check for each error or, without errors, a passed one."""
    lines = list(dict.fromkeys(map(str, errors)))
    yield from ((False, line) for line in lines) if lines else [(True, otherwise)]


def package_errors(lock: Path) -> Iterator[ErrorDetails]:
    """Yield an error if the version of a package is not that of the lock."""
    pins = re.findall(r"^([\w.-]+)==([^\s;+]+)", lock.read_text("utf-8"), flags=re.MULTILINE)
    # torch's version ends with its build, such as +cpu
    here = {name: installed(name).partition("+")[0] for name, _ in pins}
    others = [f"{name} {here[name]}, pinned {pin}" for name, pin in pins if here[name] != pin]
    if others:
        yield ErrorDetails("packages", f"{'; '.join(others)}", f"Run pip install -r {lock.name} in .venv.")


def gpus_for(profile: str | None) -> float:
    """Return the number of GPUs for a training: those of this machine, or infinite if a scheduler grants them."""
    if cards.is_scheduled() or (profile and executor_of(profile) != "local"):
        return math.inf
    return len(cards.visible())


def training_errors(study: Study, jobs: Sequence[PlannedJob], gpus: float) -> Iterator[ErrorDetails]:
    """Yield an error for each setting of trainings that requests more GPUs or sentences than available.

    Args:
        study: The study.
        jobs: The remaining jobs.
        gpus: Number of GPUs for one job.
    """
    outputs = {output for job in jobs for output in job.outputs}
    by_error: dict[ErrorDetails, list[str]] = defaultdict(list)
    for job in (job for job in jobs if is_training(job.settings)):
        corpus, training = training_of(study, job.wildcards)
        name = job.wildcards.get("run", job.wildcards.get("encoder", ""))
        if training.gpus > max(gpus, 1):
            problem = f"{training.gpus}, but jobs see {gpus:.0f} GPUs here"
            remedy = f"Set it to {max(gpus, 1):.0f}, or add the --profile of a cluster."
            by_error[ErrorDetails(set_at(study, job, "gpus"), problem, remedy)].append(name)
        rows = _rows_at_most(study, corpus, outputs)
        if training.batch_size > rows:
            problem = f"{training.batch_size}, but {corpus} has at most {rows:.0f} rows"
            remedy = f"Set it to {rows:.0f} or less." if rows > 1 else "Use a larger corpus."
            by_error[ErrorDetails(set_at(study, job, "batch_size"), problem, remedy)].append(name)
    for error, names in by_error.items():
        first, *others = dict.fromkeys(names)
        more = f" and {len(others)} more" if others else ""
        yield error._replace(about=f"{first}{more}")


def _rows_at_most(study: Study, corpus: str, outputs: Container[str]) -> float:
    """Return the number of rows of a corpus that exists and stays, else its maximum."""
    file = Path(study.folder, "corpora", corpus, "train.parquet")
    if file.is_file() and str(file) not in outputs:
        return int(pq.read_metadata(file).num_rows)
    return estimate.most_rows(study.settings, corpus, study.data_root)


def set_at(study: Study, job: PlannedJob, key: str) -> str:
    """Return the configuration path of a training's key, in the last layer that sets it."""
    if "adapt" in job.settings:
        encoder = job.wildcards["encoder"]
        block = study.settings.encoders[encoder]
        in_block = isinstance(block, AdaptedEncoder) and key in block.adapt.training
        return f"encoders.{encoder}.adapt.training.{key}" if in_block else f"continue_mlm.training.{key}"
    run = study.runs[job.wildcards["run"]]
    for layer in reversed(layers_of(study.settings, run.asked)):
        if key in layer.override.training:
            of_run = f"{run.name}: " if layer.override is run.asked.overrides else ""
            return f"{of_run}{layer.path}.training.{key}"
    return f"training.{key}"


def disk_errors(wanted: float, free: float) -> Iterator[ErrorDetails]:
    """Yield an error if fewer gigabytes are free than estimated."""
    if wanted > free:
        yield ErrorDetails(
            "disk",
            f"{free:,.0f} GB free, about {wanted:,.0f} GB planned",
            f"Free {wanted - free:,.0f} GB, or plan fewer runs.",
        )


def engine_answers(
    settings: Configuration, jobs: Iterable[PlannedJob], without: Container[str] = ()
) -> Iterator[Check]:
    """Yield a check for each engine that jobs need: whether it answers one question, or why it cannot.

    Args:
        settings: The configuration.
        jobs: The jobs.
        without: Paths of engines to skip, because their keys or programs are missing.
    """
    asked = {
        (job.outside.partition(".")[0], job.wildcards.get("corpus") or job.wildcards["pool"])
        for job in jobs
        if "api_calls" in job.queued
    }
    done: set[str] = set()
    with TemporaryDirectory() as folder, Ledger(Path(folder, "probe.sqlite")) as ledger:
        for section, name in sorted(asked):
            of_trip = section == "translators"
            asks = settings.round_trip_behind(name).translator if of_trip else settings.written_pool(name).llm
            if f"{section}.{asks}" in without:
                continue
            try:
                engine = (_translator if of_trip else _llm)(settings, name, ledger)
                if engine.path not in done:
                    done.add(engine.path)
                    yield _answer_check(engine)
            except SemblanceError as error:
                yield False, str(error)


def _answer_check(engine: Engine) -> Check:
    if engine.client:
        engine.client.attempts = 1
    (row,) = engine.ask([engine.request(SENTENCE)])
    said = repr(" ".join((row.answer or "").split())[:60])
    if row.status == "usable":
        return True, f"{engine.path}: answers, {said}"
    problem = f"{engine.path}: {row.status}, {row.reason}: {said}"
    return False, f"{problem}. Start the service, or correct its block in config/apis.yaml."


def _translator(settings: Configuration, corpus: str, ledger: Ledger) -> Engine:
    trip = settings.round_trip_behind(corpus)
    direction = Direction(
        path=f"translators.{trip.translator}", source=trip.source, target=trip.pivot_language
    )
    return make_translator(settings.translators[trip.translator], direction, ledger)


def _llm(settings: Configuration, pool: str, ledger: Ledger) -> Engine:
    name = settings.written_pool(pool).llm
    return Llm(settings.llms[name], f"llms.{name}", ledger)


# SLURM: nothing is submitted. The limits of such a test are in docs/cluster_details.md.

SECONDS = 10
"""Timeout for an answer of SLURM's controller."""
_LOCAL = {"downloads", "api_calls"}
"""Resources of jobs that need a network, which run next to Snakemake and not in the queue."""
_SUMMED = ("_cores", "mem_mb", "gpu")
_OPTIONS = {
    "slurm_account": "--account",
    "slurm_partition": "--partition",
    "runtime": "--time",
    "mem_mb": "--mem",
    "_cores": "--cpus-per-task",
    "gpu": "--gpus",
    "gres": "--gres",
    "nodes": "--nodes",
    "constraint": "--constraint",
    "qos": "--qos",
}
_REMEDY = (
    "Change its resources in set-resources of slurm/config.yaml, or its partition in slurm/partitions.yaml."
)


class _Partitions(Settings):
    """The file in which a site names its partitions."""

    partitions: dict[str, dict[str, Any]]


class Site(NamedTuple):
    """Settings of a profile that determine the requests to a queue."""

    groups: Mapping[str, str]
    """Group of jobs by rule."""
    components: Mapping[str, int]
    """Number of jobs that are queued as one, by group."""
    partitions: list[str]


def _options_of(profile: str) -> Any:
    """Return Snakemake's options with those of a profile."""
    from snakemake.cli import parse_args  # slow to import

    with contextlib.redirect_stderr(io.StringIO()):  # it prints the profiles' names
        return parse_args(["--profile", profile])[1]


def executor_of(profile: str) -> str:
    """Return the executor of a profile; local if it sets none."""
    return _options_of(profile).executor or "local"


def site_of(profile: str) -> Site | None:
    """Return the settings of a profile, read as by Snakemake; None if its executor is not SLURM.

    Raises:
        ConfigError: if the file of partitions cannot be read.
    """
    given = _options_of(profile)
    if given.executor != "slurm":
        return None
    file = given.slurm_partition_config
    partitions = _Partitions.parse(read_yaml(Path(file)), str(file)).partitions if file else {}
    return Site(given.groups or {}, given.group_components or {}, [*partitions])


def requests_of(jobs: Iterable[PlannedJob], site: Site) -> dict[tuple[str, ...], set[str]]:
    """Return the rules and groups that need each distinct list of sbatch's options.

    A group requests the sum of its largest jobs, which may run at the same time.
    """
    needed_by: dict[tuple[str, ...], set[str]] = defaultdict(set)
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for job in jobs:
        if group := site.groups.get(job.rule):
            grouped[group].append(job.queued)
        elif not _LOCAL & job.queued.keys():
            needed_by[_options(job.queued, site)].add(f"rule {job.rule}")
    for group, members in grouped.items():
        largest = {
            name: sum(nlargest(site.components.get(group, 1), (member.get(name, 0) for member in members)))
            for name in _SUMMED
        }
        longest = max(member.get("runtime", 0) for member in members)
        needed_by[_options({**members[0], **largest, "runtime": longest}, site)].add(f"group {group}")
    return dict(needed_by)


def _options(asked: Mapping[str, Any], site: Site) -> tuple[str, ...]:
    """Return sbatch's options for one request; a job without a partition may use any of the site's."""
    named = {"slurm_partition": ",".join(site.partitions), **asked}
    if model := asked.get("gpu_model"):
        named["gpu"] = f"{model}:{asked.get('gpu', 1)}"
    words = [f"{option}={named[name]}" for name, option in _OPTIONS.items() if named.get(name)]
    return (*words, *shlex.split(asked.get("slurm_extra", "")))


def slurm_answers(requests: Mapping[tuple[str, ...], Iterable[str]]) -> Iterator[tuple[bool, str]]:
    """Yield for each request whether sbatch accepts it, with its message; end when SLURM fails to answer."""
    for options, names in requests.items():
        command = ["sbatch", "--test-only", *options, "--wrap=true"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except FileNotFoundError:
            yield False, "SLURM: no sbatch on the PATH. Run this on a login node, or without --profile slurm."
            return
        except subprocess.TimeoutExpired:
            yield False, f"SLURM: sbatch did not answer within {SECONDS} s. Wait until slurmctld is up."
            return
        said = " ".join((done.stderr or done.stdout).split()).removeprefix("sbatch: ").rstrip(".")
        line = f"{', '.join(sorted(names))}: sbatch {shlex.join(options)}: {said}"
        yield (False, f"{line}. {_REMEDY}") if done.returncode else (True, line)
