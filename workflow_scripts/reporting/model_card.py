"""The card of an evaluated model: what it is, what made it, what it scores, how to load it."""

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pyarrow as pa
import yaml
from huggingface_hub import EvalResult, ModelCardData
from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.records import RunTable
from workflow_scripts.reporting.trainings import kept
from workflow_scripts.reporting.usage import usage

_KNOWN_LICENCES = {"apache-2.0", "mit", "llama2"}


class Source(Settings):
    """An encoder or a dataset that a model was made from."""

    name: str
    licence: str
    origin: str = Field(description="Where it comes from.")
    citation: str = Field(default="", description="What users of it cite, where it is known.")
    hub: str | None = Field(default=None, description="Its repository on the Hub, if it has one.")


class Config(Settings):
    """What a card says that no record holds."""

    encoders: list[Source]
    data: list[Source]
    method: dict[str, Any]
    training: dict[str, Any] | None = Field(description="Null for a model that was not trained.")


def model_card(
    folder: Path,
    config: Config,
    record: Record,
    identity: str,
    *,
    method: Any,
    scores: Sequence[RunTable],
    history: pa.Table | None,
) -> str:
    """Lay out the card in Markdown, with the metadata that the Hub reads.

    Args:
        folder: The model folder, of one run and seed.
        config: Sources and settings.
        record: The folder's.
        identity: The folder's, by which jobs that read it name it (``artefacts.identity``).
        method: The method's module, whose docstring names the paper.
        scores: Score tables of the run, of this and of other seeds.
        history: Of the training, if there was one.
    """
    run, seed = record.wildcards["run"], int(record.wildcards["seed"])
    parts = [
        f"---\n{_metadata(run, seed, config, scores)}\n---\n\n# {run}, seed {seed}\n",
        f"A sentence encoder by Semblance. The method, as its code describes it:\n\n{_quoted(method)}\n",
        f"## Sources\n\n{_sources(config)}\n",
        f"## Scores\n\n{_scores(scores, seed)}\n",
        f"## Training\n\n{_training(config, history)}\n",
    ]
    if record.labels:
        parts.append("## Substitutions\n\n" + "".join(f"- {label}\n" for label in record.labels))
    parts.append(usage(folder))
    parts.append(f"## Record\n\n`record.json`, identity `{identity}`, commit `{record.origin.commit}`.\n")
    return "\n".join(parts)


def _metadata(run: str, seed: int, config: Config, scores: Sequence[RunTable]) -> str:
    licences = {source.licence.lower() for source in config.encoders}
    known = licences.pop() if len(licences) == 1 else "other"
    results = [
        EvalResult(
            task_type="sentence-similarity",
            dataset_type=row["task"],
            dataset_name=row["task"],
            metric_type=f"{row['metric']}_{row['aggregation']}".strip("_"),
            metric_value=round(row["value"], 4),
        )
        for table in scores
        if table.seed == seed
        for row in _summaries(table.table)
    ]
    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        model_name=run,
        base_model=[source.hub for source in config.encoders if source.hub] or None,
        license=known if known in _KNOWN_LICENCES else "other",
        tags=["sentence-transformers", "semblance"],
        eval_results=results or None,
    )
    text: str = data.to_yaml()
    return text


def _quoted(method: Any) -> str:
    text = inspect.getdoc(method) or ""
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _sources(config: Config) -> str:
    rows = [("encoder", source) for source in config.encoders] + [("data", source) for source in config.data]
    lines = [
        f"| {' | '.join(map(_in_cell, (kind, s.name, s.origin, s.licence, s.citation)))} |"
        for kind, s in rows
    ]
    head = ["| what | name | from | licence | cite |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *lines]) + "\n"


def _in_cell(text: str) -> str:
    """Text that neither ends a cell nor a row of a Markdown table."""
    return " ".join(text.split()).replace("|", r"\|")


def _summaries(table: pa.Table) -> Iterable[dict[str, Any]]:
    """Rows that stand for a whole task."""
    for row in table.to_pylist():
        if row["value"] is not None and ":" not in row["aggregation"]:
            yield row


def _scores(scores: Sequence[RunTable], seed: int) -> str:
    """This seed's value of every summary, and mean and deviation over seeds."""
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for table in scores:
        for row in _summaries(table.table):
            key = (row["suite"], row["task"], row["aggregation"], row["metric"])
            found.setdefault(key, {})[table.seed] = row["value"]
    if not found:
        return "None yet.\n"
    lines = [
        f"| {' | '.join(key)} | {values[seed]:.4f} | {_over_seeds(values)} |"
        for key, values in sorted(found.items())
        if seed in values
    ]
    head = [
        f"| suite | task | over | metric | seed {seed} | all seeds |",
        "| --- | --- | --- | --- | ---: | ---: |",
    ]
    return "\n".join([*head, *lines]) + "\n"


def _over_seeds(values: dict[int, float]) -> str:
    if len(values) == 1:
        return "one seed"
    return f"{mean(values.values()):.4f} ± {stdev(values.values()):.4f} ({len(values)})"


def _training(config: Config, history: pa.Table | None) -> str:
    settings = {"method": config.method} | ({"training": config.training} if config.training else {})
    block = yaml.safe_dump(settings, sort_keys=True, allow_unicode=True)
    return f"{_chosen(history)}\n\n```yaml\n{block}```\n"


def _chosen(history: pa.Table | None) -> str:
    """How long it was trained, and which checkpoint was kept."""
    if history is None or not len(history):
        return "Not trained here."
    steps, best = history["step"].to_pylist()[-1], kept(history)
    if best.score is None:
        return f"{steps} steps; the last checkpoint is kept."
    return (
        f"{steps} steps; the checkpoint of step {best.step} is kept, "
        f"the best on the development set ({best.score:.4f})."
    )
