"""Jobs times rates: GPU hours, storage and requests. What nobody knows is None, and is not guessed."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.planning.graph import Graph, Job
from workflow_scripts.planning.rates import EncoderSize, Rate, Rates

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


def by(jobs: Iterable[Job], amount: Callable[[Job], float | None]) -> Amount:
    """The total of an amount over jobs."""
    found = [amount(job) for job in jobs]
    known = [one for one in found if one is not None]
    return Amount(sum(known) if known or not found else None, len(found) - len(known))


class Requests(NamedTuple):
    """Requests of one job to a translator or language model; a pool is complete somewhere between the two bounds."""

    service: str
    least: float | None
    """None if unknown."""
    most: float | None


class Estimator:
    """Estimates of the jobs of one graph."""

    def __init__(self, graph: Graph, rates: Rates) -> None:
        self._graph = graph
        self._rates = rates

    # What a job works on

    def encoders(self, job: Job) -> list[str]:
        """Names of the fetched or adapted encoders that a job reads, directly or as parts of a model."""
        found = []
        for file in job.inputs:
            parts = Path(file).parts
            if "encoders" in parts[:-1]:
                found.append(parts[parts.index("encoders") + 1])
            elif parts[-2:] == ("model", "record.json") and (maker := self._graph.maker(file)):
                found += self.models(maker)
        return found

    def models(self, job: Job) -> list[str]:
        """Encoders that a run saves: those that it starts from, or a single one for a student."""
        if job.rule == "train_encoder" and job.settings["method"]["module"] not in ("jtcse", "ensemble"):
            return self.encoders(job)[:1]
        return self.encoders(job)

    def rows(self, file: str) -> float | None:
        """Number of sentences in a corpus or dataset."""
        job = self._graph.maker(file)
        if job is None:
            return None
        if job.rule == "read_dataset":
            known, contract = (
                self._rates.rows.get(job.wildcards["dataset"]),
                job.settings["dataset"]["contract"],
            )
            return known.value if known else contract.get("rows", contract.get("min_rows"))
        texts = [
            one for one in job.inputs if one.endswith(".parquet") and "round_trip" not in Path(one).parts
        ]
        parts = [self.rows(one) for one in texts]
        if None in parts or not parts:
            return None
        most = job.settings.get("corpus", job.settings).get("max_sentences") or math.inf
        first, *added = [part or 0.0 for part in parts]  # a corpus is cut before it is added to
        copies = 2 if job.settings.get("shape", {}).get("form") == "expanded" else 1
        return copies * (min(most, first) + sum(added))

    def _input_rows(self, job: Job, folder: str) -> float | None:
        files = [
            file for file in job.inputs if folder in Path(file).parts and not file.endswith("words.parquet")
        ]
        return self.rows(files[0]) if files else None

    def _sizes(self, names: Iterable[str]) -> list[EncoderSize]:
        """Sizes of some encoders; an empty list if one of them is unknown."""
        sizes = [self._rates.encoders.get(name) for name in names]
        return [] if None in sizes else [size for size in sizes if size]

    # GPU hours

    def gpu_hours(self, job: Job) -> float | None:
        """GPU hours of a job; 0 for one that requests no GPU."""
        if not job.queued.get("gpu"):
            return 0.0
        if job.rule == "train_encoder":
            return _hours(self._training_flops(job), self._rates.gpu_tflops)
        if job.rule == "evaluate_mteb":
            return _hours(self._mteb_flops(job), self._rates.gpu_encoding_tflops)
        rate = self._rates.hours.get(job.rule)
        return rate.value if rate else None

    def _mteb_flops(self, job: Job) -> float | None:
        """Encoding alone: a GPU that waits while vectors are compared is lent for no other reason."""
        lists, sizes = (
            map(self._rates.list_tokens.get, job.settings["suite"]["lists"]),
            self._sizes(self.encoders(job)),
        )
        tokens = sum(rate.value for rate in lists if rate)
        return tokens * sum(size.forward_flops(1) for size in sizes) if tokens and sizes else None

    def _training_flops(self, job: Job) -> float | None:
        training, sizes = job.settings["training"], self._sizes(self.encoders(job)[:1])
        cost, rows = self.step_cost(job.settings["method"]), self._input_rows(job, "corpora")
        if not sizes or cost is None or rows is None:
            return None
        steps = training["max_steps"] or training["epochs"] * (rows // training["batch_size"])
        sentence = sizes[0].forward_flops(training["max_tokens"])  # every batch holds one that is cut
        pairs = self._input_rows(job, "datasets") or 0.0  # of the development set, encoded again and again
        looks: float = 2 * pairs * (steps // job.settings["development"]["every"])
        trained = float(steps * training["batch_size"] * VIEWS * TRAINED_PASS * cost)
        return (trained + looks) * sentence

    def step_cost(self, method: Mapping[str, Any]) -> float | None:
        """Cost of a method's step in SimCSE steps; for a method that wraps another, the factors are multiplied."""
        base = method.get("base")
        readout = (base or method).get("readout", {}).get("kind", "pooling")
        modules = [block["module"] for block in (method, base) if block]
        factors = [self._rates.readout_cost.get(readout), *map(self._rates.step_cost.get, modules)]
        known = [factor.value for factor in factors if factor]
        return math.prod(known) if len(known) == len(factors) else None

    # Storage

    def gigabytes(self, job: Job) -> float | None:
        """Size of a job's outputs on disk, and of what it adds to the ledger of answers."""
        if any(file.endswith(("/model.safetensors", "/modules.json")) for file in job.outputs):
            makes_encoder = job.rule in ("fetch_encoder", "continue_mlm")
            sizes = self._sizes([job.wildcards["encoder"]] if makes_encoder else self.models(job))
            return sum(size.parameters_millions for size in sizes) * 4e-3 if sizes else None
        if rate := self._rates.kilobytes.get(job.rule):
            return rate.value / 1e6
        rate = self._rates.bytes_per_row.get(job.rule)
        rows = self.rows(job.outputs[0]) if rate else None
        return None if rate is None or rows is None else rate.value * rows / 1e9

    # Requests

    def requests(self, job: Job) -> Requests | None:
        """A job's requests to a service; None for a job without any."""
        if job.rule == "write_exemplars":
            pool = job.settings["pool"]
            least = math.ceil(pool["sentences"] / pool["sentences_per_call"])
            return Requests(f"llms.{pool['llm']}", least, pool["max_calls"])
        if job.rule != "translate_shard":
            return None
        translation, rows = job.settings["translation"], self._input_rows(job, "corpora")
        service = job.operational["service"]["translator"]
        at_once = service.get("batch_sentences", 1) if "calls" in service else 1
        most = translation["max_sentences"] or math.inf
        sent = None if rows is None else 2 * min(rows, most) / job.settings["limits"]["shards"] / at_once
        return Requests(f"translators.{translation['translator']}", sent, sent)  # there and back


def _hours(flops: float | None, speed: Rate) -> float | None:
    return None if flops is None else flops / (speed.value * 1e12) / _SECONDS_PER_HOUR
