"""The card of a model: what it is, what made it, what it scores, under which licences it may be used."""

import inspect
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from huggingface_hub import EvalResult, ModelCardData
from jinja2 import StrictUndefined, Template
from pydantic import Field

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.config import Settings
from workflow_scripts.evaluation.significance import summarise
from workflow_scripts.methods import load_method
from workflow_scripts.provenance.artefacts import check_model_folder, identity, read_table, write_page
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.records import RunTable, kept, run_tables, steps

_KNOWN_LICENCES = {"apache-2.0", "mit", "llama2"}

Scores = Mapping[tuple[str, str, str, str], Mapping[int, float]]
"""Suite, task, aggregation and metric of a whole task, to the value of each seed."""


class Source(Settings):
    """An encoder or a dataset that a model was made from."""

    name: str
    licence: str
    origin: str = Field(description="Where it comes from.")
    citation: str = Field(default="", description="What users of it cite, where it is known.")
    hub: str | None = Field(default=None, description="Its repository on the Hub, if it has one.")


class Config(Settings):
    """Statements of a card that no record holds."""

    encoders: list[Source]
    data: list[Source]
    method: dict[str, Any]
    training: dict[str, Any] | None = Field(description="Null for a model that was not trained.")


def model_card(
    template: str,
    folder: Path,
    config: Config,
    record: Record,
    identity: str,
    *,
    method: Any,
    scores: Iterable[RunTable],
    history: pa.Table | None,
) -> str:
    """Fill the template of a card, with the metadata that the Hub reads.

    Args:
        template: Of Jinja, for Markdown.
        folder: The model folder, of one run and seed.
        config: Sources and settings.
        record: The folder's.
        identity: The folder's, by which jobs that read it name it (``artefacts.identity``).
        method: The method's module, whose docstring says what it is.
        scores: Score tables of the run, of this and of other seeds.
        history: Of the training, if there was one.
    """
    run, seed = record.wildcards["run"], int(record.wildcards["seed"])
    found = {key: values for key, values in _summaries(scores).items() if seed in values}
    settings = {"method": config.method} | ({"training": config.training} if config.training else {})
    best, score = kept(history) if history else (0, None)
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    own = [module["type"] for module in modules if not module["type"].startswith("sentence_transformers.")]
    card: str = Template(template, undefined=StrictUndefined, trim_blocks=True).render(
        metadata=_metadata(run, seed, config, found),
        run=run,
        seed=seed,
        method=(inspect.getdoc(method) or "").partition("\n\n")[0],
        sources=[*config.encoders, *config.data],
        scores=[(*key, f"{found[key][seed]:.4f}", _over_seeds(found[key])) for key in sorted(found)],
        steps=steps(history) if history else 0,
        best=best,
        score=score,
        settings=yaml.safe_dump(settings, sort_keys=True, allow_unicode=True),
        labels=record.labels,
        own_modules=[f"`{name.partition('.')[0]}`" for name in own],
        has_encoder="architectures" in json.loads((folder / "config.json").read_text("utf-8")),
        identity=identity,
        commit=record.origin.commit,
    )
    return card


def _summaries(scores: Iterable[RunTable]) -> Scores:
    found: dict[tuple[str, str, str, str], dict[int, float]] = defaultdict(dict)
    for table in scores:
        for row in table.table.to_pylist():
            if row["value"] is not None and ":" not in row["aggregation"]:
                key = (row["suite"], row["task"], row["aggregation"], row["metric"])
                found[key][table.seed] = row["value"]
    return found


def _metadata(run: str, seed: int, config: Config, scores: Scores) -> str:
    licences = {source.licence.lower() for source in config.encoders}
    results = [
        EvalResult(
            task_type="sentence-similarity",
            dataset_type=task,
            dataset_name=task,
            metric_type=f"{metric}_{aggregation}".strip("_"),
            metric_value=round(values[seed], 4),
        )
        for (_, task, aggregation, metric), values in scores.items()
    ]
    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        model_name=run,
        base_model=[source.hub for source in config.encoders if source.hub] or None,
        license=licences.pop() if len(licences) == 1 and licences <= _KNOWN_LICENCES else "other",
        tags=["sentence-transformers", "semblance"],
        eval_results=results or None,
    )
    return str(data.to_yaml())


def _over_seeds(values: Mapping[int, float]) -> str:
    found = summarise([*values.values()])
    return "one seed" if found.sd is None else f"{found.mean:.4f} ± {found.sd:.4f} ({found.n})"


def write_model_card(job: Job) -> None:
    """Write the card of one model, with its scores, next to its folder (rule write_model_card)."""
    config = Config.parse(job.settings, "model card")
    method = load_method(config.method["module"])
    folder = job.inputs["model"].parent
    histories = [read_table(path, HISTORY) for path in job.many("history")]
    card = model_card(
        job.inputs["template"].read_text("utf-8"),
        folder,
        config,
        check_model_folder(folder),
        identity(job.inputs["model"]),
        method=method,
        scores=run_tables(job.many("scores"), SCORES),
        history=histories[0] if histories else None,
    )
    write_page(job.outputs["card"], card, job.record())
