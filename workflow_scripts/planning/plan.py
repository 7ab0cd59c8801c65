"""Estimate what a study would take, without running it: jobs, GPU hours, disk and requests; and what it would read.

Jobs come from Snakemake's own plan, as if no file existed yet. GPU hours and storage are the product of these jobs and
the numbers in config/rates.yaml, which says whether each was measured, published or assumed; jobs without a number
are counted as unknown. Memory and hours are the most that a job of the row asks a queue for. Without a target,
everything that the configuration asks for is planned; targets are those of snakemake: a paper (jtcse), a table
(results/paper/tables/jtcse_table1.parquet), the scores behind a cell. What requests cost follows from the prices and
rates of config/apis.yaml.

  python -m workflow_scripts plan jtcse
"""

import math
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.audit.printing import Answer, Row, Rows
from workflow_scripts.graph.sizes import read_rates
from workflow_scripts.planning.graph import CONFIGFILE, TARGETS, Graph, PlannedJob, planned
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.rates import EncoderSize, Rate, Rates

TRAINED_PASS = 3
"""The cost of a forward and a backward pass, in forward passes."""
VIEWS = 2
"""Texts that SimCSE, the unit of ``step_cost``, encodes per sentence of a batch."""
_SECONDS_PER_HOUR = 3600


class Amount(NamedTuple):
    """A sum over jobs, and what it leaves out."""

    value: float | None
    """None if nothing is known of any of them."""
    unknown: int
    """Number of jobs whose contribution is unknown."""


def by(jobs: Iterable[PlannedJob], amount: Callable[[PlannedJob], float]) -> Amount:
    """The total of an amount over jobs."""
    found = [amount(job) for job in jobs]
    known = [one for one in found if not math.isnan(one)]
    return Amount(sum(known) if known or not found else None, len(found) - len(known))


class Requests(NamedTuple):
    """Requests of one job to a translator or language model; a pool is complete somewhere between the two bounds."""

    service: str
    least: float
    most: float


class Estimator:
    """Jobs of one graph times rates. What is unknown is NaN, and so is what is computed from it."""

    def __init__(self, graph: Graph, rates: Rates) -> None:
        self._graph = graph
        self._rates = rates

    # What a job works on

    def encoders(self, job: PlannedJob) -> list[str]:
        """Names of the fetched or adapted encoders that a job reads, directly or as parts of a model."""
        found = []
        for file in job.inputs:
            parts = Path(file).parts
            if "encoders" in parts[:-1]:
                found.append(parts[parts.index("encoders") + 1])
            elif parts[-2:] == ("model", "record.json") and (maker := self._graph.maker(file)):
                found += self.models(maker)
        return found

    def models(self, job: PlannedJob) -> list[str]:
        """Encoders that a run saves: those that it starts from, or a single one for a student."""
        if job.rule == "train_encoder" and job.settings["method"]["module"] not in ("jtcse", "ensemble"):
            return self.encoders(job)[:1]
        return self.encoders(job)

    def rows(self, file: str) -> float:
        """Number of sentences in a corpus or dataset."""
        job = self._graph.maker(file)
        if job is None:
            return math.nan
        if job.rule == "read_dataset":
            contract = job.operational["contract"]["contract"]
            promised = contract.get("rows", contract.get("min_rows", math.nan))
            return _value(self._rates.rows, job.wildcards["dataset"], promised)
        texts = [
            one for one in job.inputs if one.endswith(".parquet") and "round_trip" not in Path(one).parts
        ]
        first, *added = map(self.rows, texts)  # a corpus is cut before it is added to
        most = job.settings.get("corpus", job.settings).get("max_sentences") or math.inf
        copies = 2 if job.settings.get("shape", {}).get("form") == "expanded" else 1
        return copies * (min(first, most) + sum(added))

    def _input_rows(self, job: PlannedJob, folder: str) -> float:
        files = (
            file for file in job.inputs if folder in Path(file).parts and not file.endswith("words.parquet")
        )
        return next(map(self.rows, files), math.nan)

    def _sum(self, names: Iterable[str], amount: Callable[[EncoderSize], float]) -> float:
        """An amount of some encoders together; unknown if it is of one of them."""
        sizes = [self._rates.encoders.get(name) for name in names]
        return sum(amount(size) if size else math.nan for size in sizes) or math.nan

    # GPU hours

    def gpu_hours(self, job: PlannedJob) -> float:
        """GPU hours of a job; 0 for one that requests no GPU."""
        if not job.queued.get("gpu"):
            return 0.0
        if job.rule == "train_encoder":
            flops, speed = self._training_flops(job), self._rates.gpu_tflops
        elif job.rule == "evaluate_mteb":
            flops, speed = self._mteb_flops(job), self._rates.gpu_encoding_tflops
        else:
            return _value(self._rates.hours, job.rule)
        return flops / (speed.value * 1e12) / _SECONDS_PER_HOUR

    def _mteb_flops(self, job: PlannedJob) -> float:
        """Operations of encoding: while vectors are compared, the GPU waits."""
        tokens = sum(_value(self._rates.list_tokens, name, 0) for name in job.settings["mteb"]["lists"])
        return (tokens or math.nan) * self._sum(self.encoders(job), lambda size: size.forward_flops(1))

    def _training_flops(self, job: PlannedJob) -> float:
        training, rows = job.settings["training"], self._input_rows(job, "corpora")
        steps = training["max_steps"] or training["epochs"] * (rows // training["batch_size"])
        pairs = self._input_rows(job, "datasets")  # of the development set, encoded again and again
        looks: float = 0 if math.isnan(pairs) else 2 * pairs * (steps // job.settings["development"]["every"])
        trained: float = (
            steps * training["batch_size"] * VIEWS * TRAINED_PASS * self.step_cost(job.settings["method"])
        )
        tokens = training["max_tokens"]  # every batch holds a sentence that is cut
        return (trained + looks) * self._sum(self.encoders(job)[:1], lambda size: size.forward_flops(tokens))

    def step_cost(self, method: Mapping[str, Any]) -> float:
        """Cost of a method's step in SimCSE steps; for a method that wraps another, the factors are multiplied."""
        base = method.get("base") or {}
        readout = (base or method).get("readout", {}).get("kind", "pooling")
        modules = [block["module"] for block in (method, base) if block]
        costs = [_value(self._rates.step_cost, module) for module in modules]
        return math.prod([_value(self._rates.readout_cost, readout), *costs])

    # Storage

    def gigabytes(self, job: PlannedJob) -> float:
        """Size of a job's outputs on disk, and of what it adds to the ledger of answers."""
        makes_encoder = job.rule in ("fetch_encoder", "continue_mlm")
        if makes_encoder or any(file.endswith("/modules.json") for file in job.outputs):
            encoders = [job.wildcards["encoder"]] if makes_encoder else self.models(job)
            return self._sum(encoders, lambda size: size.parameters_millions * 4e-3)
        if job.rule in self._rates.kilobytes:
            return self._rates.kilobytes[job.rule].value / 1e6
        per_row = _value(self._rates.bytes_per_row, job.rule)
        return math.nan if math.isnan(per_row) else per_row * self.rows(job.outputs[0]) / 1e9

    # Requests

    def requests(self, job: PlannedJob) -> Requests | None:
        """A job's requests to a service; None for a job without any."""
        if job.rule == "write_exemplars":
            pool = job.settings["pool"]
            least = math.ceil(pool["sentences"] / pool["sentences_per_call"])
            return Requests(f"llms.{pool['llm']}", least, pool["max_calls"])
        if job.rule != "translate_shard":
            return None
        translation, rows = job.settings["translation"], self._input_rows(job, "corpora")
        sentences = min(rows, translation["max_sentences"] or math.inf)
        sent = 2 * sentences / job.settings["limits"]["shards"]  # there and back
        return Requests(f"translators.{translation['translator']}", sent, sent)


def _value(rates: Mapping[str, Rate], key: str, otherwise: float = math.nan) -> float:
    return rates[key].value if key in rates else otherwise


ARGUMENTS = (TARGETS, CONFIGFILE)


def answer(targets: list[str], configfile: list[str]) -> Answer:
    """Estimates by rule and by service."""
    graph = planned(targets, configfile)
    estimator = Estimator(graph, read_rates(ROOT / "config/rates.yaml"))
    total = row_of(graph.jobs, estimator)
    said = f"{total['jobs']} jobs, {total['trainings']} of them trainings; numbers rest on config/rates.yaml"
    parts: list[Rows] = [
        Rows("by rule", [*by_rule(graph.jobs, estimator), {"rule": "all", **total}]),
        Rows("requests", requests(graph.jobs, estimator)),
        Rows("read from", read_from(graph.jobs)),
    ]
    return Answer(said, parts=parts)


def row_of(jobs: list[PlannedJob], estimator: Estimator) -> Row:
    """What some jobs would take together; an unknown number is None."""
    hours, gigabytes = (by(jobs, amount) for amount in (estimator.gpu_hours, estimator.gigabytes))
    return {
        "jobs": len(jobs),
        "trainings": sum(job.rule == "train_encoder" for job in jobs),
        "GPU h": hours.value,
        "unknown": hours.unknown,
        "disk, GB": gigabytes.value,
        "unknown GB": gigabytes.unknown,
        "memory, GB": max((float(job.queued.get("mem_mb", 0)) for job in jobs), default=0) / 1000,
        "h at most": max((job.queued.get("runtime", 0) for job in jobs), default=0) / 60,
    }


def by_rule(jobs: Iterable[PlannedJob], estimator: Estimator) -> list[Row]:
    """A row for each rule, the most frequent first."""
    groups: dict[str, list[PlannedJob]] = defaultdict(list)
    for job in jobs:
        groups[job.rule].append(job)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"rule": rule, **row_of(found, estimator)} for rule, found in ordered]


def requests(jobs: Iterable[PlannedJob], estimator: Estimator) -> list[Row]:
    """Requests by service, whose rate and daily budget all jobs share; None where a job's are unknown."""
    found: dict[str, list[Requests]] = defaultdict(list)
    for one in filter(None, map(estimator.requests, jobs)):
        found[one.service].append(one)
    return [
        {
            "service": service,
            "jobs": len(each),
            "least": _known(sum(one.least for one in each)),
            "most": _known(sum(one.most for one in each)),
        }
        for service, each in sorted(found.items())
    ]


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def read_from(jobs: Iterable[PlannedJob]) -> list[Row]:
    """What every dataset and encoder would be read from now: files, or repositories at commits."""
    read = [job for job in jobs if job.rule in ("fetch_encoder", "read_dataset", "read_word_vectors")]
    rows = [{"of": " ".join(job.wildcards.values()), "read from": _places(job)} for job in read]
    return sorted(rows, key=lambda row: row["of"])


def _places(job: PlannedJob) -> str:
    """Names of a job's source, without hashes; of an encoder's files, their folder."""
    files = re.sub(r" sha256:\w+", "", job.settings["source"]).split("; ")
    if len(files) > 1 and job.rule == "fetch_encoder":
        files = [os.path.commonpath(files)]
    return ", ".join(files).replace("local:", f"{os.environ.get('SEMBLANCE_DATA')}/")
