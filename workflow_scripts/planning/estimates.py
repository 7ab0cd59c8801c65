"""Jobs times rates: GPU hours, storage, requests and dollars of any set of jobs. Unknown numbers are not guessed.

Every amount says how many jobs it covers, how many it cannot cover, and what kinds of numbers it is based on.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.planning.evaluations import work_of
from workflow_scripts.planning.graph import Graph, Job
from workflow_scripts.planning.rates import BASES, EncoderSize, Rate, Rates, rows_of
from workflow_scripts.settings.training import batches

TRAINED_PASS = 3
"""The cost of a forward and a backward pass, in forward passes."""
VIEWS = 2
"""Texts that SimCSE, the unit of ``step_cost``, encodes per sentence of a batch."""


class Amount(NamedTuple):
    """A sum over jobs, and what it covers."""

    value: float = 0.0
    jobs: int = 0
    """Number of jobs that are included in ``value``."""
    unknown: int = 0
    """Number of jobs whose contribution is unknown."""
    bases: frozenset[str] = frozenset()

    def __add__(self, other: "Amount") -> "Amount":  # type: ignore[override]
        """The sum of two amounts."""
        return Amount(
            self.value + other.value,
            self.jobs + other.jobs,
            self.unknown + other.unknown,
            self.bases | other.bases,
        )


UNKNOWN = Amount(unknown=1)


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum."""
    return sum(amounts, Amount())


class Calls(NamedTuple):
    """Requests of one job to a translator or language model."""

    service: str
    least: float | None
    most: float | None
    """Bounds on the number of requests: a pool is complete somewhere between them. None if unknown."""
    least_usd: float | None
    most_usd: float | None
    """None if no price is known."""
    days: float | None
    """Time for ``most`` requests at the rate and the daily budget of the service; None where it has neither."""
    gigabytes: float | None
    """What ``most`` rows add to the ledger of answers."""


class Estimator:
    """Estimates of the jobs of one graph."""

    def __init__(self, graph: Graph, rates: Rates, root: Path) -> None:
        """``root`` is the folder that has the prompts in resources/prompts."""
        self._graph = graph
        self._rates = rates
        self._root = root
        self._known_hours: dict[int, tuple[Job, Amount]] = {}  # with the job, so that no other gets its id

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

    def rows(self, file: str) -> Rate | None:
        """Number of sentences in a corpus or dataset; None if unknown."""
        job = self._graph.maker(file)
        if job is None:
            return None
        if job.rule == "read_dataset":
            least = {"min_rows": job.min_rows} if job.min_rows > 1 else {}
            contract = job.settings["dataset"]["contract"] | least
            return rows_of(job.wildcards["dataset"], contract, self._rates)
        texts = [
            one for one in job.inputs if one.endswith(".parquet") and "round_trip" not in Path(one).parts
        ]
        parts = [self.rows(one) for one in texts]
        known = [part for part in parts if part]
        if len(known) != len(parts) or not known:
            return None
        most = job.settings.get("corpus", job.settings).get("max_sentences") or math.inf
        first, *added = [part.value for part in known]  # a corpus is cut before it is added to
        copies = 2 if job.settings.get("shape", {}).get("form") == "expanded" else 1
        return _combined(copies * (min(most, first) + sum(added)), known)

    # GPU hours

    def gpu_hours(self, job: Job) -> Amount:
        """GPU hours of a job, estimated once; 0 for one that requests no GPU."""
        if not job.gpus:
            return Amount()
        if id(job) not in self._known_hours:
            self._known_hours[id(job)] = (job, self._estimated_hours(job))
        return self._known_hours[id(job)][1]

    def _estimated_hours(self, job: Job) -> Amount:
        if job.rule.startswith("evaluate_"):
            return self._evaluation_hours(job)
        flops = {"train_encoder": self._training_flops, "encode_teacher": self._teacher_flops}.get(job.rule)
        found = flops(job) if flops else None
        if found is None:
            return UNKNOWN
        hours = found.value / (self._rates.gpu_tflops.value * 1e12) / 3600
        bases = {found.basis, self._rates.gpu_tflops.basis, self._rates.filled.basis}
        return Amount(hours, 1, 0, frozenset(bases))

    def _evaluation_hours(self, job: Job) -> Amount:
        """Encoding alone: a GPU that waits while vectors are compared is lent for no other reason."""
        makers = filter(None, map(self._graph.maker, job.inputs))
        blocks = {
            one.wildcards["dataset"]: one.settings["dataset"] for one in makers if one.rule == "read_dataset"
        }
        kind = job.wildcards.get("kind", job.rule.removeprefix("evaluate_"))
        tokens = work_of(kind, job.settings["suite"], blocks, self._rates).tokens
        sizes = self._sizes(self.encoders(job))
        if not tokens or not sizes:
            return UNKNOWN
        speed = self._rates.gpu_encoding_tflops
        flops = tokens * sum(size.forward_flops(1) for size in sizes)
        return Amount(flops / (speed.value * 1e12) / 3600, 1, 0, frozenset({speed.basis}))

    def gpu_limit(self, job: Job) -> float:
        """GPU hours after which the queue ends a job, as declared by its rule."""
        return job.gpus * job.minutes / 60

    def _training_flops(self, job: Job) -> Rate | None:
        training = job.settings["training"]
        size, cost = self._size(job), self.step_cost(job.settings["method"])
        rows = self._input_rows(job, "corpora")
        if size is None or cost is None or rows is None:
            return None
        steps = training["max_steps"] or training["epochs"] * batches(
            int(rows.value), training["batch_size"], training["last_batch"]
        )
        sentence = size.forward_flops(training["max_tokens"] * self._rates.filled.value)
        trained = steps * training["batch_size"] * VIEWS * TRAINED_PASS * sentence * cost.value
        return _combined(trained + self._development_flops(job, size, steps), [cost, rows])

    def _development_flops(self, job: Job, size: EncoderSize, steps: float) -> float:
        """Operations for encoding the development pairs repeatedly; 0 if their number is unknown."""
        pairs = self._input_rows(job, "datasets")
        development = job.settings["development"]
        passes = steps // development["every"]
        tokens = job.settings["training"]["max_tokens"] * self._rates.filled.value
        return passes * 2 * pairs.value * size.forward_flops(tokens) if pairs else 0.0

    def _teacher_flops(self, job: Job) -> Rate | None:
        sizes = self._sizes(self.encoders(job))
        rows = self._input_rows(job, "corpora")
        if rows is None or not sizes:
            return None
        tokens = job.settings["teacher"]["max_tokens"] * self._rates.filled.value
        return _combined(rows.value * sum(size.forward_flops(tokens) for size in sizes), [rows])

    def _input_rows(self, job: Job, folder: str) -> Rate | None:
        files = [
            file for file in job.inputs if folder in Path(file).parts and not file.endswith("words.parquet")
        ]
        return self.rows(files[0]) if files else None

    def _size(self, job: Job) -> EncoderSize | None:
        names = self.encoders(job)
        return self._rates.encoders.get(names[0]) if names else None

    def _sizes(self, names: Iterable[str]) -> list[EncoderSize]:
        """Sizes of some encoders; an empty list if one of them is unknown."""
        sizes = [self._rates.encoders.get(name) for name in names]
        return [] if None in sizes else [size for size in sizes if size]

    def step_cost(self, method: Mapping[str, Any]) -> Rate | None:
        """Cost of a method's step in SimCSE steps; for a method that wraps another, the factors are multiplied."""
        base = method.get("base")
        readout = (base or method).get("readout", {}).get("kind", "pooling")
        factors = [self._rates.step_cost.get(method["module"]), self._rates.readout_cost.get(readout)]
        if base:
            factors.append(self._rates.step_cost.get(base["module"]))
        known = [factor for factor in factors if factor]
        return _combined(math.prod(f.value for f in known), known) if len(known) == len(factors) else None

    # Storage

    def gigabytes(self, job: Job) -> Amount:
        """Size of a job's outputs on disk."""
        if any(file.endswith(("/model.safetensors", "/modules.json")) for file in job.outputs):
            names = (
                [job.wildcards["encoder"]]
                if job.rule in ("fetch_encoder", "continue_mlm")
                else self.models(job)
            )
            sizes = self._sizes(names)
            if not sizes:
                return UNKNOWN
            saved = sum(size.parameters_millions for size in sizes) * 4e-3
            return Amount(saved, 1, 0, frozenset({"published"}))
        if rate := self._rates.kilobytes.get(job.rule):
            return Amount(rate.value / 1e6, 1, 0, frozenset({rate.basis}))
        return self._growing(job)

    def _growing(self, job: Job) -> Amount:
        if job.rule == "encode_teacher":
            rows = self._input_rows(job, "corpora")
            sizes = self._sizes(self.encoders(job))
            if rows is None or not sizes:
                return UNKNOWN
            width = sum(size.width for size in sizes)
            return Amount(rows.value * width * 4 / 1e9, 1, 0, frozenset({"arithmetic", rows.basis}))
        rate = self._rates.bytes_per_row.get(job.rule)
        rows = self.rows(job.outputs[0]) if rate else None
        if rate is None or rows is None:
            return UNKNOWN
        return Amount(rate.value * rows.value / 1e9, 1, 0, frozenset({rate.basis, rows.basis}))

    # Requests

    def calls(self, job: Job) -> Calls | None:
        """A job's requests to a service; None for a job without any."""
        if job.rule == "write_exemplars":
            return self._pool_calls(job)
        if job.rule == "translate_shard":
            return self._translation_calls(job)
        return None

    def _pool_calls(self, job: Job) -> Calls:
        pool, llm = job.settings["pool"], job.settings["llm"]
        least = math.ceil(pool["sentences"] / pool["sentences_per_call"])
        prompt = (self._root / f"resources/prompts/{pool['prompt']}.txt").read_text("utf-8")
        words = 7 * pool["words_per_call"]  # characters: frequent words are short; a comma and a space each
        asked = (len(prompt) + words) / self._rates.characters_per_token.value
        service, most = job.service["llm"], pool["max_calls"]
        least_usd = _usd(service["price"], least, asked, pool["sentences_per_call"] * 10)
        most_usd = _usd(service["price"], most, asked, llm["max_completion_tokens"])
        text = self._rates.characters_per_token.value * (asked + llm["max_completion_tokens"])
        gigabytes = most * (_ROW_BYTES + text) / 1e9
        return Calls(
            f"llms.{pool['llm']}", least, most, least_usd, most_usd, _days(most, service["calls"]), gigabytes
        )

    def _translation_calls(self, job: Job) -> Calls | None:
        rows = self._input_rows(job, "corpora")
        translation = job.settings["translation"]
        name = f"translators.{translation['translator']}"
        if rows is None:
            return Calls(name, None, None, None, None, None, None)
        shards = job.settings["limits"]["shards"]
        texts = min(rows.value, translation["max_sentences"] or rows.value) / shards
        translated = 2 * texts  # forth and back
        gigabytes = translated * (_ROW_BYTES + 2 * _SENTENCE_BYTES) / 1e9
        service, llm = job.service["translator"], job.service.get("llm")
        requests = translated / service.get("batch_sentences", 1) if "calls" in service else translated
        usd = None
        if llm:
            tokens = _SENTENCE_BYTES / self._rates.characters_per_token.value
            usd = _usd(llm["price"], requests, _PROMPT_TOKENS + tokens, tokens)
        days = _days(requests, (llm or service).get("calls"))
        return Calls(name, requests, requests, usd, usd, days, gigabytes)


def _usd(price: Mapping[str, Any] | None, calls: float, asked: float, answered: float) -> float | None:
    if price is None:
        return None
    each = asked * price["input_usd_per_million"] + answered * price["output_usd_per_million"]
    return float(calls * each / 1e6)


_ROW_BYTES = 500  # of a row of the ledger beside its texts: 100,000 rows of 60 bytes forth and back are 65 MB
_SENTENCE_BYTES = 130  # of a sentence of Wikipedia
_PROMPT_TOKENS = 40  # of resources/prompts/translate.txt


def _days(requests: float, calls: Mapping[str, Any] | None) -> float | None:
    limits = calls or {}
    times = [
        requests / limits["per_second"] / 86400 if limits.get("per_second") else None,
        requests / limits["per_day"] if limits.get("per_day") else None,
    ]
    return max((time for time in times if time is not None), default=None)


def _combined(value: float, parts: Iterable[Rate]) -> Rate:
    """A number computed from others, with the least trustworthy of their bases."""
    worst = min((part.basis for part in parts), key=BASES.index)
    return Rate(value=value, basis=worst, source="; ".join(part.source for part in parts))


def by(jobs: Iterable[Job], amount: Callable[[Job], Amount]) -> Amount:
    """The total of an amount over jobs."""
    return total(amount(job) for job in jobs)
