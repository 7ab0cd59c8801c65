"""Estimates of time: of each remaining job, by rule, and of all of them on this machine or in a queue.

Sources, best first: times of finished jobs of the same rule here, by Snakemake's benchmark files and the jobs' logs;
steps timed by ``verbs.measuring``; for trainings that get a GPU, steps on a named card. Otherwise the time is unknown,
which is NaN here.
"""

import heapq
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from workflow_scripts.graph.lengths import (
    CARD,
    corpus_rows,
    in_words,
    is_training,
    length,
    promised_rows,
    training_of,
)
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.corpora import Corpus
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.printing import Row

FINISHED, MEASURED, ON_CARD, UNKNOWN = "finished jobs", "measured steps", CARD, "unknown"
"""Sources of an estimate, best first."""
_RESTORED = re.compile(r"^\w+: restored from ", re.MULTILINE)
"""Line in the log of a job whose outputs came from the cache, which makes its time meaningless."""
_WITHOUT_GPU = "requested a GPU, but the machine has none"
_STEPS = re.compile(r"^train: ([\d,]+) of ([\d,]+) steps, (\d+) s", re.MULTILINE)
"""Line about finished steps in the log of a training (``progress``)."""
_GRADIENTS = 6
"""Cost of a sentence in a training step, in forward passes: two views, each with a forward pass and a backward pass
that takes twice as long."""


class Steps(NamedTuple):
    """Steps of a training that one job did, by its log."""

    done: int
    seconds: float


class Finished(NamedTuple):
    """Finished job, by its benchmark file ``benchmarks/STUDY/RULE/...``."""

    study: str
    rule: str
    parts: tuple[str, ...]
    """Parts of the file's path below the rule, which are the wildcards in the order of the rule."""
    seconds: float
    steps: Steps | None
    """Steps of a training; None for other jobs."""
    on_cpu: bool
    """Whether the job requested a GPU and did not get it."""


class Estimate(NamedTuple):
    """Estimated time of one job, and its source."""

    seconds: float
    source: str


class Capacity(NamedTuple):
    """Cores and GPUs of this machine, or a queue, for the remaining jobs."""

    slots: int
    """Number of cores, or of jobs that are queued at once."""
    gpus: float
    """Number of GPUs of this machine; infinite in a queue; 0 if jobs get none."""
    queued: bool = False

    @property
    def name(self) -> str:
        """Return the name of the capacity, to print."""
        return f"{self.slots} jobs in the queue at once" if self.queued else f"--cores {self.slots}"


# Finished jobs


def read_finished(here: Path = Path()) -> list[Finished]:
    """Return the finished jobs of all studies in a working directory, except those restored from the cache."""
    finished = []
    for file in sorted(here.glob("benchmarks/*/*/**/*.tsv")):
        study, rule, *parts = file.relative_to(here / "benchmarks").with_suffix("").parts
        log, text = here.joinpath("logs", study, rule, *parts), ""
        with suppress(OSError):
            text = log.with_name(f"{log.name}.log").read_text("utf-8", "replace")
        seconds = _seconds_in(file)
        if parts and not math.isnan(seconds) and not _RESTORED.search(text):
            finished.append(
                Finished(study, rule, tuple(parts), seconds, steps_in(text), _WITHOUT_GPU in text)
            )
    return finished


def _seconds_in(file: Path) -> float:
    """Return the wall time in one of Snakemake's benchmark files; NaN if it has none."""
    with suppress(OSError, ValueError, IndexError):
        head, *rows = (line.split("\t") for line in file.read_text("utf-8").splitlines())
        return float(rows[-1][head.index("s")])
    return math.nan


def steps_in(log: str) -> Steps | None:
    """Return the steps of a training in a log, without those before its checkpoint; None if it has none."""
    lines = [tuple(int(number.replace(",", "")) for number in line) for line in _STEPS.findall(log)]
    if not lines or lines[-1][0] == lines[0][0]:
        return None
    (before, *_, began), (after, *_, ended) = lines[0], lines[-1]
    return Steps(after - before, ended - began)


class Work(NamedTuple):
    """Quantities that determine the time of a training's steps."""

    encoder: str
    module: str
    """Module of the method."""
    tokens_a_step: float
    every: float
    """Steps between evaluations on the development set; infinite without one."""
    tokens_a_look: float

    def of_steps(self, steps: float) -> float:
        """Return the work of some steps, in tokens of a step; NaN if their number is unknown."""
        looks = math.ceil(steps / self.every) if math.isfinite(steps / self.every) else 0
        return steps * self.tokens_a_step + looks * self.tokens_a_look / _GRADIENTS


def work_of(study: Study, wildcards: Mapping[str, str], settings: Mapping[str, Any]) -> Work | None:
    """Return the work of a training by its slice or, if the slice is empty, by the configuration; None if unknown.

    Args:
        study: The study.
        wildcards: Wildcards of the training's job.
        settings: Its slice, or that of an earlier job.
    """
    run, adapted = study.runs.get(wildcards.get("run", "")), wildcards.get("encoder", "")
    if not run and adapted not in study.encoders:
        return None
    corpus, now = training_of(study, wildcards)
    given: Mapping[str, Any] = settings.get("continue_mlm", settings).get("training", {})
    asked = {name: given.get(name, getattr(now, name)) for name in ("batch_size", "max_tokens")}
    a_step = asked["batch_size"] * asked["max_tokens"]
    if not run:
        return Work("".join(map(str, study.encoders[adapted].starts)), "", a_step, math.inf, 0)
    a_look = _looked_at(study, corpus) * run.development.max_tokens
    every = settings.get("development", {}).get("every", run.development.every)
    return Work(run.encoder, run.method.module, a_step, every, a_look)


def looks_of(study: Study, wildcards: Mapping[str, str], steps: float) -> float:
    """Return the number of sentences that a training encodes in all evaluations on the development set."""
    if "run" not in wildcards:
        return 0
    run = study.runs[wildcards["run"]]
    return math.ceil(steps / run.development.every) * _looked_at(study, str(run.corpus))


def _looked_at(study: Study, corpus: str) -> float:
    """Return the number of sentences of the development set, pairs or held-out text; 0 if unknown."""
    if named := study.settings.development.dataset:
        pairs = promised_rows(study.settings, named)
        return 0 if math.isnan(pairs) else 2 * pairs
    block = study.settings.corpora[study.settings.source_corpus(corpus)]
    assert isinstance(block, Corpus)
    return block.dev_sentences


class History:
    """Finished jobs as a source of estimates."""

    def __init__(self, study: Study, jobs: Sequence[PlannedJob], finished: Iterable[Finished]) -> None:
        self._study = study
        self._by_rule: dict[str, list[Finished]] = defaultdict(list)
        for job in finished:
            self._by_rule[job.rule].append(job)
        loads = {job.rule for job in jobs if "torch" in job.packages}
        times = [job.seconds for rule in loads for job in self._by_rule[rule]]
        self._start = {True: min(times, default=0.0), False: 0.0}
        """Start-up time of a job by whether it loads PyTorch: the shortest such job, in seconds."""

    def seconds(self, job: PlannedJob, *, gets_gpu: bool) -> float:
        """Return the seconds of a job, by finished jobs of its rule; NaN if none has run."""
        if not job.benchmark:
            return math.nan
        parts = Path(job.benchmark).with_suffix("").parts[1:]
        asks = bool(job.queued.get("gpu"))
        alike = [
            finished for finished in self._by_rule[job.rule] if not (asks and gets_gpu and finished.on_cpu)
        ]
        if is_training(job.settings):
            return self._training(job, parts[2:], alike)
        shared = [
            sum(map(str.__eq__, parts, (finished.study, finished.rule, *finished.parts)))
            for finished in alike
        ]
        nearest = [finished for finished, number in zip(alike, shared, strict=True) if number == max(shared)]
        start = self._start["torch" in job.packages]
        times = []
        for finished in nearest:
            at = dict(zip(parts[2:], finished.parts, strict=False))
            was = {name: at.get(value, "") for name, value in job.wildcards.items()}
            ratio = sentences(self._study, job.wildcards) / sentences(self._study, was)
            fixed = min(start, finished.seconds)
            times.append(
                finished.seconds if math.isnan(ratio) else fixed + (finished.seconds - fixed) * ratio
            )
        return median(times) if times else math.nan

    def _training(self, job: PlannedJob, parts: Sequence[str], alike: Iterable[Finished]) -> float:
        """Return the seconds of a training, by finished ones of its run, method or encoder, scaled by their work."""
        steps, work = (
            length(self._study, job.wildcards).steps,
            work_of(self._study, job.wildcards, job.settings),
        )
        assert work
        by_nearness: dict[int, list[float]] = defaultdict(list)
        for finished in alike:
            named = {"run" if "run" in job.wildcards else "encoder": finished.parts[0]}
            was = work_of(self._study, named, _recorded(finished))
            if was and finished.steps and was.encoder == work.encoder:
                nearness = 2 * (finished.parts[0] == parts[0]) + (was.module == work.module)
                rest = max(finished.seconds - finished.steps.seconds, 0)
                share = work.of_steps(steps) / was.of_steps(finished.steps.done)
                by_nearness[nearness].append(rest + finished.steps.seconds * share)
        return median(by_nearness[max(by_nearness)]) if by_nearness else math.nan


def _recorded(job: Finished) -> Mapping[str, Any]:
    """Return the slice of a finished training; empty if its record is missing."""
    results = Path("results", job.study)
    files = {
        "train_encoder": results.joinpath("runs", *job.parts, "model/record.json"),
        "continue_mlm": results.joinpath("encoders", *job.parts, "record.json"),
    }
    with suppress(OSError, ValueError, KeyError):
        settings: Mapping[str, Any] = json.loads(files[job.rule].read_text("utf-8"))["record"]["settings"]
        return settings
    return {}


def sentences(study: Study, wildcards: Mapping[str, str]) -> float:
    """Return the number of rows of a job's suite, corpus or dataset, by contracts; NaN if they promise none."""
    settings, rows = study.settings, math.nan
    if suite := study.suites.get(wildcards.get("suite", "")):
        rows = sum(promised_rows(settings, name) for name in {*suite.block.tasks.values()})
    elif (corpus := wildcards.get("corpus", "")) in settings.corpora:
        rows = corpus_rows(settings, corpus)
    elif (dataset := wildcards.get("dataset", "")) in settings.datasets:
        rows = promised_rows(settings, dataset)
    return rows if rows > 0 else math.nan


# Estimates


def estimates(
    study: Study,
    jobs: Sequence[PlannedJob],
    finished: Iterable[Finished],
    capacity: Capacity,
    measured: Mapping[str, float] | None = None,
) -> list[Estimate]:
    """Return the estimate of each job.

    Args:
        study: The study.
        jobs: The remaining jobs.
        finished: Jobs that have run here.
        capacity: Machine or queue for the remaining jobs.
        measured: Seconds of measured trainings, by benchmark file.
    """
    history = History(study, jobs, finished)

    def of(job: PlannedJob) -> Estimate:
        seconds = history.seconds(job, gets_gpu=capacity.gpus > 0)
        if not math.isnan(seconds):
            return Estimate(seconds, FINISHED)
        if job.benchmark in (measured or {}):
            return Estimate((measured or {})[job.benchmark], MEASURED)
        if is_training(job.settings) and capacity.gpus > 0:
            seconds = length(study, job.wildcards).card_seconds
            return Estimate(seconds, UNKNOWN if math.isnan(seconds) else ON_CARD)
        return Estimate(math.nan, UNKNOWN)

    return [*map(of, jobs)]


def by_rule(jobs: Sequence[PlannedJob], estimated: Sequence[Estimate]) -> list[Row]:
    """Return a row for each rule, the longest first: number of jobs, their time, and the sources of the numbers."""
    rules: dict[str, list[Estimate]] = defaultdict(list)
    for job, estimate in zip(jobs, estimated, strict=True):
        rules[job.rule].append(estimate)
    rows = [
        {"rule": rule, "jobs": len(each), "seconds": _sum(each), "source": _sources(each)}
        for rule, each in rules.items()
    ]
    return sorted(rows, key=lambda row: (-row["seconds"] if row["seconds"] > 0 else 0, row["rule"]))


def _sum(estimated: Iterable[Estimate]) -> float:
    """Return the seconds of all jobs of known time; NaN if no time is known."""
    known = [estimate.seconds for estimate in estimated if not math.isnan(estimate.seconds)]
    return sum(known) if known else math.nan


def _sources(estimated: Sequence[Estimate]) -> str:
    numbers = Counter(estimate.source for estimate in estimated)
    if len(numbers) == 1:
        return estimated[0].source
    order = (FINISHED, MEASURED, ON_CARD, UNKNOWN)
    return ", ".join(f"{source} ({numbers[source]})" for source in order if source in numbers)


def in_all(
    jobs: Sequence[PlannedJob], estimated: Sequence[Estimate], capacity: Capacity, planning: float
) -> list[Row]:
    """Return a row with the time of all jobs together.

    Args:
        jobs: The remaining jobs.
        estimated: The estimate of each.
        capacity: Machine or queue for them.
        planning: Seconds until Snakemake starts the first one.
    """
    times = [0.0 if math.isnan(estimate.seconds) else estimate.seconds for estimate in estimated]
    if not any(times):
        return []
    gpus = [min(job.queued.get("gpu", 0), capacity.gpus) for job in jobs]
    on_cpu = sum(
        t * (1 if capacity.queued else min(job.threads, capacity.slots))
        for job, t, gpu in zip(jobs, times, gpus, strict=True)
        if not gpu
    )
    on_gpu = sum(t * gpu for t, gpu in zip(times, gpus, strict=True))
    return [
        {
            "jobs": len(jobs),
            "CPU seconds": on_cpu,
            "GPU seconds": on_gpu,
            "wall seconds": planning + wall_seconds(jobs, times, capacity),
            "at": capacity.name,
            "jobs of unknown time": sum(math.isnan(estimate.seconds) for estimate in estimated),
        }
    ]


def shown(rows: Iterable[Row]) -> list[Row]:
    """Return rows to print: seconds in words, without GPU times of zero."""
    return [
        {
            key.replace("seconds", "time"): in_words(value) if key.endswith("seconds") else value
            for key, value in row.items()
            if value or key != "GPU seconds"
        }
        for row in rows
    ]


def wall_seconds(jobs: Sequence[PlannedJob], times: Sequence[float], capacity: Capacity) -> float:
    """Return the wall time of jobs that start once inputs, cores and GPUs are available, longest chains first."""
    made_by = {file: number for number, job in enumerate(jobs) for file in job.outputs}
    before = [{made_by[file] for file in job.inputs if file in made_by} - {n} for n, job in enumerate(jobs)]
    after: list[list[int]] = [[] for _ in jobs]
    for number, needed in enumerate(before):
        for earlier in needed:
            after[earlier].append(number)
    left = [*map(len, before)]
    order = [number for number, count in enumerate(left) if not count]
    waits = left.copy()
    for number in order:  # grows while it is read
        for later in after[number]:
            waits[later] -= 1
            if not waits[later]:
                order.append(later)
    chain = [0.0] * len(jobs)
    for number in reversed(order):
        chain[number] = times[number] + max((chain[later] for later in after[number]), default=0.0)
    return _simulated(jobs, times, capacity, after, left, chain)


def _simulated(
    jobs: Sequence[PlannedJob],
    times: Sequence[float],
    capacity: Capacity,
    after: Sequence[Sequence[int]],
    left: list[int],
    chain: Sequence[float],
) -> float:
    """Return when the last job ends, if the job with the longest chain behind it always starts first."""
    cores = [1 if capacity.queued else min(job.threads, capacity.slots) for job in jobs]
    gpus = [min(job.queued.get("gpu", 0), capacity.gpus) for job in jobs]
    ready = sorted((-chain[number], number) for number, count in enumerate(left) if not count)
    free, cards, now = float(capacity.slots), capacity.gpus, 0.0
    running: list[tuple[float, int]] = []
    while ready or running:
        waiting = []
        for item in ready:
            _, number = item
            if cores[number] <= free and gpus[number] <= cards:
                free, cards = free - cores[number], cards - gpus[number]
                heapq.heappush(running, (now + times[number], number))
            else:
                waiting.append(item)
        ready = waiting
        now, ended = heapq.heappop(running)
        free, cards = free + cores[ended], cards + gpus[ended]
        for number in after[ended]:
            left[number] -= 1
            if not left[number]:
                ready.append((-chain[number], number))
        ready.sort()
    return now
