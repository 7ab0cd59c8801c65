"""Estimates for the remaining jobs of a study: disk, and requests to services (times: ``verbs.timing``).

Numbers of rows come from the contracts of datasets. An unknown number is NaN here, and printed as an empty cell.
"""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from workflow_scripts.data.hub import answers, find
from workflow_scripts.data.sources import SourcePlan
from workflow_scripts.errors import DataError, ErrorDetails
from workflow_scripts.graph.development import rows_at_most
from workflow_scripts.graph.encoders import folders_of
from workflow_scripts.graph.gaps import by_reason, unpinned
from workflow_scripts.graph.lengths import corpus_rows, encoder_of, translated
from workflow_scripts.graph.needs import added_to
from workflow_scripts.graph.slices import get_path
from workflow_scripts.graph.study import Study
from workflow_scripts.provenance.artefacts import RECORD_FILE
from workflow_scripts.settings.apis import ApertiumBlock, LlmBlock
from workflow_scripts.settings.corpora import RoundTripCorpus
from workflow_scripts.settings.sources import FileSource, HubEncoder
from workflow_scripts.settings.study import Configuration
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.printing import Row

GIGABYTES = {"base": 0.44, "large": 1.4, "huge": 27.0}
"""Float32 weights of encoders that are not on this machine: 110 million parameters, 350 million, 6.7 billion."""
_JOB_GIGABYTES = {"average_tokens": 1.0, "fit_wikitext": 0.14}
_TEACHER_BYTES = 9480  # of a sentence: two to six vectors of 768 floats
_TOKENS, _CHARACTERS = 32, 4  # tokens of a sentence in a prompt, and characters of a token
_DAY = 86_400


def most_rows(settings: Configuration, corpus: str, data_root: Path | None = None) -> float:
    """Return the largest number of rows that a corpus can have, by contracts, limits and files; infinite if unknown."""

    def rows_of(dataset: str) -> float:
        named = settings.datasets[dataset]
        return named.contract.rows or rows_at_most(named, data_root) or math.inf

    block = settings.corpora[corpus]
    if isinstance(block, RoundTripCorpus):
        trip = block.round_trip
        sources = min(most_rows(settings, trip.corpus, data_root), trip.max_sentences or math.inf)
        return sources * (2 if trip.training_text == "expanded" else 1)
    rows = rows_of(block.dataset) - block.dev_sentences
    pairs = rows_of(block.add_sentences_of) if block.add_sentences_of else 0
    return min(rows, block.max_sentences or math.inf) + 2 * pairs


# Disk


def gigabytes(study: Study, job: PlannedJob) -> float:
    """Return the disk space of a job's outputs, without texts and scores, in gigabytes."""
    if any(Path(output).name == RECORD_FILE for output in job.outputs) and encoder_of(study, job.wildcards):
        return sum(_weights(study, part) for part in study.encoders[encoder_of(study, job.wildcards)].parts)
    if "teacher" in job.settings:
        rows = corpus_rows(study.settings, job.wildcards["corpus"])
        return 0 if math.isnan(rows) else rows * _TEACHER_BYTES / 1e9
    return _JOB_GIGABYTES.get(job.rule, 0)


def _weights(study: Study, encoder: str) -> float:
    """Return the gigabytes of an encoder's weights: of its files on this machine or, without them, by its size."""
    block = study.settings.fetched(encoder)
    folders = folders_of(block, study.data_root)
    files = next(filter(None, ([*folder.glob("*.safetensors")] for folder in folders)), [])
    return sum(file.stat().st_size for file in files) / 1e9 or GIGABYTES[block.size]


# Requests


def requests(settings: Configuration, jobs: Iterable[PlannedJob]) -> list[Row]:
    """Return a row for each service: requests, days at its daily limit and rate, and dollars at its prices."""
    asked: dict[str, list[tuple[float, float, int]]] = defaultdict(list)
    for job in jobs:
        if job.outside.startswith("llms."):
            pool = settings.written_pool(job.wildcards["pool"])
            least = math.ceil(pool.sentences / pool.sentences_per_call)
            prompts = [Path(file) for file in job.inputs if Path(file).suffix == ".txt"]
            tokens = _TOKENS + sum(file.stat().st_size for file in prompts) // _CHARACTERS
            asked[f"llms.{pool.llm}"].append((least, pool.max_calls, tokens))
        elif job.outside.startswith("translators."):
            trip = settings.round_trip_behind(job.wildcards["corpus"])
            block = settings.translators[trip.translator]
            rows = translated(settings, trip) / settings.round_trip.shards
            at_once = block.batch_sentences if isinstance(block, ApertiumBlock) else 1
            sent = 2 * rows / at_once  # there and back
            asked[f"translators.{trip.translator}"].append((sent, sent, 0))
    return [_service(settings, service, each) for service, each in sorted(asked.items())]


def _service(settings: Configuration, service: str, asked: Sequence[tuple[float, float, int]]) -> Row:
    block = get_path(settings, service)
    least, most = (sum(counts[end] for counts in asked) for end in (0, 1))
    limits = getattr(block, "calls", None)
    a_day = min(limits.per_day or math.inf, (limits.per_second or math.inf) * _DAY) if limits else math.inf
    dollars = math.nan if isinstance(block, LlmBlock) else 0.0
    if isinstance(block, LlmBlock) and block.price:
        prompts = sum(counts[1] * counts[2] for counts in asked) * block.price.input_usd_per_million
        completions = most * block.max_completion_tokens * block.price.output_usd_per_million
        dollars = (prompts + completions) / 1e6
    return {
        "service": service,
        "jobs": len(asked),
        "least": _known(least),
        "most": _known(most),
        "days at its limits": _known(most / a_day) if a_day < math.inf else None,
        "USD at most": _known(dollars),
    }


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


# Jobs and sources


def by_rule(study: Study, jobs: Iterable[PlannedJob]) -> list[Row]:
    """Return a row for each rule, the most frequent first: jobs, and the maximum that one of them requests."""
    groups: dict[str, list[PlannedJob]] = defaultdict(list)
    for job in jobs:
        groups[job.rule].append(job)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [
        {
            "rule": rule,
            "jobs": len(group),
            "GPUs each": max(job.queued.get("gpu", 0) for job in group) or None,
            "memory, GB": max(float(job.queued.get("mem_mb", 0)) for job in group) / 1000,
            "h at most": max(job.queued.get("runtime", 0) for job in group) / 60,
            "disk, GB": sum(gigabytes(study, job) for job in group) or None,
        }
        for rule, group in ordered
    ]


def read_from(settings: Configuration, jobs: Iterable[PlannedJob], data_root: Path | None) -> list[Row]:
    """Return the files, or repositories at commits, from which each dataset and encoder would be read now."""
    jobs = [*jobs]
    corpora = (job.outside.removeprefix("corpora.") for job in jobs if job.outside.startswith("corpora."))
    added = {added_to(settings, corpus) for corpus in corpora}
    rows = [
        {"of": name, "read from": _places(settings, job, data_root, gap=may_lack(job) and name not in added)}
        for job in jobs
        if "source" in job.settings
        for name in [" ".join(job.wildcards.values())]
    ]
    return sorted(rows, key=lambda row: row["of"])


def _where(settings: Configuration, path: str) -> str:
    """Return the expected paths of a dataset's files, and the page that offers them."""
    section, _, name = path.partition(".")
    if section != "datasets" or name not in settings.datasets:
        return ""
    block = settings.datasets[name]
    files = [
        f"{source.prefix}{file.path}"
        for source in block.sources
        if isinstance(source, FileSource)
        for file in source.files.values()
    ]
    return f": {' or '.join(files)} (see {block.about.url})"


def may_lack(job: PlannedJob) -> bool:
    """Return whether a job leaves a gap if its source is missing."""
    return job.outside.startswith("extraction.") or bool(job.settings.get("dataset", {}).get("optional"))


def _places(settings: Configuration, job: PlannedJob, data_root: Path | None, *, gap: bool) -> str:
    """Return the files of a job's source without their hashes; for an encoder, their folder.

    With ``gap``, a missing source is a gap.
    """
    plan = SourcePlan.model_validate(job.settings["source"])
    lacking = ": a gap" if gap and plan.kind in ("none", "unreachable", "absent") else ""
    if plan.kind == "none":
        return f"no source found{_where(settings, job.outside)}{lacking}"
    if plan.kind != "files":
        return f"{plan}{lacking}"
    files = sorted(plan.files)
    if len(files) > 1 and job.outside.startswith("encoders."):
        files = [os.path.commonpath(files)]
    listed = ", ".join(files)
    return listed.replace("local:", f"{data_root}/") if data_root else listed


def gaps(study: Study) -> list[Row]:
    """Return a row for each optional source that is missing, with the runs whose cells are gaps for lack of it."""
    return [
        {
            "gap": reason,
            "runs": len(runs),
            "tables": ", ".join(name for name, grid in study.grids.items() if {*runs} & grid.gaps.keys()),
        }
        for reason, runs in by_reason(study).items()
    ]


def to_pin(study: Study) -> dict[str, str]:
    """Return the encoders' sources without a revision, each with the YAML that pins the newest one."""
    return {f"encoders.{name}.fetch.sources": _pinning(source) for name, source in unpinned(study)}


def _pinning(source: HubEncoder) -> str:
    if not answers():
        return f"{source.pinned_at('COMMIT')} (the Hub, which has the commit, does not answer)"
    try:
        return source.pinned_at(str(find(source.repository, None, "model")))
    except DataError as error:
        return str(error)


def without_revision(jobs: Iterable[PlannedJob]) -> Iterator[ErrorDetails]:
    """Yield an error for each job that would fetch a repository of the Hub without a commit."""
    for job in jobs:
        repositories = SourcePlan.model_validate(job.settings.get("source", {"kind": "none"})).repositories
        if not all(repository.revision for repository in repositories) and not may_lack(job):
            named = " or ".join(map(str, repositories))
            problem = f"no revision is set for {named}; its job would stop and print the newest commit"
            yield ErrorDetails(job.outside, problem, "Add `revision:` to the block, with a commit.")
