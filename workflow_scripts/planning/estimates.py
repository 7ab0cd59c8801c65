"""Jobs times rates: GPU hours, storage, requests and dollars. What nobody knows is None, and is not guessed."""

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.planning.evaluations import tokens_of
from workflow_scripts.planning.graph import Graph, Job
from workflow_scripts.planning.rates import EncoderSize, Rates, rows_of

TRAINED_PASS = 3
"""The cost of a forward and a backward pass, in forward passes."""
VIEWS = 2
"""Texts that SimCSE, the unit of ``step_cost``, encodes per sentence of a batch."""
_SECONDS_PER_HOUR = 3600
_ROW_BYTES = 500  # of a row of the ledger beside its texts: 100,000 rows of 60 bytes forth and back are 65 MB
_SENTENCE_BYTES = 130  # of a sentence of Wikipedia
_PROMPT_TOKENS = 40  # of resources/prompts/translate.txt
_DAY_SECONDS = 86400


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
        self._hours: dict[int, tuple[Job, float | None]] = {}  # with the job, so that no other gets its id

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
            least = {"min_rows": job.min_rows} if job.min_rows > 1 else {}
            found = rows_of(
                job.wildcards["dataset"], job.settings["dataset"]["contract"] | least, self._rates
            )
            return found.value if found else None
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
        """GPU hours of a job, estimated once; 0 for one that requests no GPU."""
        if not job.gpus:
            return 0.0
        if id(job) not in self._hours:
            speed = self._rates.gpu_tflops
            if job.rule.startswith("evaluate_"):
                flops, speed = self._evaluation_flops(job), self._rates.gpu_encoding_tflops
            else:
                kinds = {"train_encoder": self._training_flops, "encode_teacher": self._teacher_flops}
                flops = kinds[job.rule](job) if job.rule in kinds else None
            hours = None if flops is None else flops / (speed.value * 1e12) / _SECONDS_PER_HOUR
            self._hours[id(job)] = (job, hours)
        return self._hours[id(job)][1]

    def _evaluation_flops(self, job: Job) -> float | None:
        """Encoding alone: a GPU that waits while vectors are compared is lent for no other reason."""
        makers = filter(None, map(self._graph.maker, job.inputs))
        blocks = {
            one.wildcards["dataset"]: one.settings["dataset"] for one in makers if one.rule == "read_dataset"
        }
        kind = job.wildcards.get("kind", job.rule.removeprefix("evaluate_"))
        tokens = tokens_of(kind, job.settings["suite"], blocks, self._rates)
        sizes = self._sizes(self.encoders(job))
        return tokens * sum(size.forward_flops(1) for size in sizes) if tokens and sizes else None

    def _training_flops(self, job: Job) -> float | None:
        training, sizes = job.settings["training"], self._sizes(self.encoders(job)[:1])
        cost, rows = self.step_cost(job.settings["method"]), self._input_rows(job, "corpora")
        if not sizes or cost is None or rows is None:
            return None
        steps = training["max_steps"] or training["epochs"] * (rows // training["batch_size"])
        sentence = sizes[0].forward_flops(training["max_tokens"] * self._rates.filled.value)
        pairs = self._input_rows(job, "datasets") or 0.0  # of the development set, encoded again and again
        looks: float = 2 * pairs * (steps // job.settings["development"]["every"])
        trained = float(steps * training["batch_size"] * VIEWS * TRAINED_PASS * cost)
        return (trained + looks) * sentence

    def _teacher_flops(self, job: Job) -> float | None:
        sizes, rows = self._sizes(self.encoders(job)), self._input_rows(job, "corpora")
        tokens = job.settings["teacher"]["max_tokens"] * self._rates.filled.value
        return rows * sum(size.forward_flops(tokens) for size in sizes) if sizes and rows else None

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
        """Size of a job's outputs on disk."""
        if any(file.endswith(("/model.safetensors", "/modules.json")) for file in job.outputs):
            makes_encoder = job.rule in ("fetch_encoder", "continue_mlm")
            sizes = self._sizes([job.wildcards["encoder"]] if makes_encoder else self.models(job))
            return sum(size.parameters_millions for size in sizes) * 4e-3 if sizes else None
        if rate := self._rates.kilobytes.get(job.rule):
            return rate.value / 1e6
        if job.rule == "encode_teacher":
            rows, sizes = self._input_rows(job, "corpora"), self._sizes(self.encoders(job))
            return rows * sum(size.width for size in sizes) * 4 / 1e9 if rows and sizes else None
        rate = self._rates.bytes_per_row.get(job.rule)
        rows = self.rows(job.outputs[0]) if rate else None
        return None if rate is None or rows is None else rate.value * rows / 1e9

    # Requests

    def calls(self, job: Job) -> Calls | None:
        """A job's requests to a service; None for a job without any."""
        kinds = {"write_exemplars": self._pool_calls, "translate_shard": self._translation_calls}
        return kinds[job.rule](job) if job.rule in kinds else None

    def _pool_calls(self, job: Job) -> Calls:
        pool, llm, service = job.settings["pool"], job.settings["llm"], job.service["llm"]
        least, most = math.ceil(pool["sentences"] / pool["sentences_per_call"]), pool["max_calls"]
        prompt = (self._root / f"resources/prompts/{pool['prompt']}.txt").read_text("utf-8")
        words = 7 * pool["words_per_call"]  # characters: frequent words are short; a comma and a space each
        asked = (len(prompt) + words) / self._rates.characters_per_token.value
        least_usd = _usd(service["price"], least, asked, pool["sentences_per_call"] * 10)
        most_usd = _usd(service["price"], most, asked, llm["max_completion_tokens"])
        text = self._rates.characters_per_token.value * (asked + llm["max_completion_tokens"])
        days, gigabytes = _days(most, service["calls"]), most * (_ROW_BYTES + text) / 1e9
        return Calls(f"llms.{pool['llm']}", least, most, least_usd, most_usd, days, gigabytes)

    def _translation_calls(self, job: Job) -> Calls:
        rows, translation = self._input_rows(job, "corpora"), job.settings["translation"]
        name = f"translators.{translation['translator']}"
        if rows is None:
            return Calls(name, None, None, None, None, None, None)
        texts = min(rows, translation["max_sentences"] or rows) / job.settings["limits"]["shards"]
        translated = 2 * texts  # forth and back
        service, llm = job.service["translator"], job.service.get("llm")
        requests = translated / service.get("batch_sentences", 1) if "calls" in service else translated
        tokens = _SENTENCE_BYTES / self._rates.characters_per_token.value
        usd = _usd(llm["price"], requests, _PROMPT_TOKENS + tokens, tokens) if llm else None
        days = _days(requests, (llm or service).get("calls"))
        gigabytes = translated * (_ROW_BYTES + 2 * _SENTENCE_BYTES) / 1e9
        return Calls(name, requests, requests, usd, usd, days, gigabytes)


def _usd(price: Mapping[str, Any] | None, calls: float, asked: float, answered: float) -> float | None:
    if price is None:
        return None
    each: float = asked * price["input_usd_per_million"] + answered * price["output_usd_per_million"]
    return calls * each / 1e6


def _days(requests: float, calls: Mapping[str, Any] | None) -> float | None:
    limits = calls or {}
    per_day = [
        limits[name] * times
        for name, times in (("per_second", _DAY_SECONDS), ("per_day", 1))
        if limits.get(name)
    ]
    return requests / min(per_day) if per_day else None
