"""Card of a model: its kind, origin, scores and licences."""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import yaml
from huggingface_hub import EvalResult, ModelCardData
from jinja2 import StrictUndefined, Template

from workflow_scripts.columns import HISTORY, SCORES
from workflow_scripts.methods import load_method
from workflow_scripts.provenance.artefacts import check_model_folder, read_table, writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.citations import bibtex, papers_of
from workflow_scripts.reporting.records import kept, steps
from workflow_scripts.settings.suites import SUITES

CARD = "README.md"
_TASK = "sentence-similarity"
_KNOWN_LICENCES = {"apache-2.0", "mit", "llama2"}
_SCORE = ["kind", "suite", "task", "aggregation", "metric"]


def write_model_card(job: Job) -> None:
    """Write the card of a model, with the metadata that the Hub reads, in a folder of its own (rule write_model_card).

    The folder also has the record of the card. The Hub shows only the card.
    """
    settings, folder = job.settings, job.input("model").parent
    record, histories = check_model_folder(folder), job.inputs("history")
    run, seed = record.wildcards["run"], int(record.wildcards["seed"])
    # files are scores/<kind>/<suite>/<run>/...
    tables = [
        read_table(path, SCORES).to_pandas().assign(kind=path.parents[2].name)
        for path in job.inputs("scores")
    ]
    scores = over_seeds(pd.concat(tables), seed) if tables else []
    trained = read_table(histories[0], HISTORY) if histories else None
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    citation = yaml.safe_load(job.input("citations").read_text("utf-8"))
    template = Template(job.input("template").read_text("utf-8"), undefined=StrictUndefined, trim_blocks=True)
    card = template.render(
        settings,
        metadata=metadata(settings, run, scores).to_yaml(),
        run=run,
        seed=seed,
        about=(inspect.getdoc(load_method(settings["method"]["module"])) or "").partition("\n\n")[0],
        scores=scores,
        steps=steps(trained) if trained else 0,
        kept=kept(trained) if trained else None,
        settings=yaml.safe_dump({name: settings[name] for name in ("method", "training") if settings[name]}),
        labels=record.labels,
        remote_code=not all(module["type"].startswith("sentence_transformers.") for module in modules),
        citations=bibtex(citation, papers_of(settings["method"])),
    )
    with writing_model_folder(job.outputs["record"].parent, job.record()) as card_folder:
        (card_folder / CARD).write_text(f"{card.rstrip()}\n", "utf-8")


def metadata(settings: Mapping[str, Any], run: str, scores: Sequence[Mapping[str, Any]]) -> ModelCardData:
    """Return the front matter of a card, in the Hub's words.

    The Hub has identifiers for licences; any other licence is ``other`` with its name. The score of a task that is in
    two suites occurs once.
    """
    licences = sorted({source["licence"] for source in settings["encoders"]})
    known = [licence.lower() for licence in licences if licence.lower() in _KNOWN_LICENCES]
    is_known = len(licences) == len(known) == 1
    other = re.sub(r"[^a-z0-9.]+", "-", "-and-".join(licences).lower())
    results = {
        (row["task"], row["metric"], row["aggregation"]): EvalResult(
            task_type=SUITES[row["kind"]].hub_task,
            task_name=SUITES[row["kind"]].hub_task.replace("-", " ").capitalize(),
            dataset_type=row["task"],
            dataset_name=row["task"],
            metric_type=f"{row['metric']}_{row['aggregation']}".strip("_"),
            metric_name=f"{row['metric']} ({row['aggregation']})" if row["aggregation"] else row["metric"],
            metric_value=round(row["value"], 4),
        )
        for row in scores
    }
    return ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag=_TASK,
        tags=["sentence-transformers", "sentence-similarity", "feature-extraction", "semblance"],
        language=sorted({source["language"] for source in settings["data"]}) or None,
        model_name=run,
        base_model=[source["hub"] for source in settings["encoders"] if source["hub"]] or None,
        datasets=[source["hub"] for source in settings["data"] if source["hub"]] or None,
        license=known[0] if is_known else "other",
        license_name=None if is_known else other,
        eval_results=[*results.values()] or None,
    )


def over_seeds(scores: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """Return a row for each score of a whole task of one seed, with mean, sd and number of all seeds."""
    whole = scores[scores["value"].notna() & ~scores["aggregation"].str.contains(":")]
    spread = whole.groupby(_SCORE)["value"].agg(["mean", "std", "count"])
    of_seed = whole[whole["seed"] == seed].set_index(_SCORE)["value"]
    rows: list[dict[str, Any]] = (
        spread.assign(value=of_seed).dropna(subset="value").reset_index().to_dict("records")
    )
    return rows
