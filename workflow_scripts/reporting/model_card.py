"""The card of a model: what it is, what made it, what it scores, under which licences it may be used."""

import inspect
import json
from typing import Any

import pandas as pd
import yaml
from huggingface_hub import EvalResult, ModelCardData
from jinja2 import StrictUndefined, Template

from workflow_scripts.columns import HISTORY, SCORES
from workflow_scripts.methods import load_method
from workflow_scripts.provenance.artefacts import check_model_folder, read_table, write_page
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.records import kept, steps

_KNOWN_LICENCES = {"apache-2.0", "mit", "llama2"}
_SCORE = ["suite", "task", "aggregation", "metric"]


def write_model_card(job: Job) -> None:
    """Write the card of one model, with the metadata that the Hub reads, next to its folder (rule write_model_card)."""
    told, folder = job.settings, job.input("model").parent
    record, histories = check_model_folder(folder), job.inputs("history")
    run, seed = record.wildcards["run"], int(record.wildcards["seed"])
    tables = [read_table(path, SCORES).to_pandas() for path in job.inputs("scores")]
    scores = over_seeds(pd.concat(tables), seed) if tables else []
    trained = read_table(histories[0], HISTORY) if histories else None
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    licences = {source["licence"].lower() for source in told["encoders"]}
    data = ModelCardData(
        library_name="sentence-transformers",
        pipeline_tag="sentence-similarity",
        model_name=run,
        base_model=[source["hub"] for source in told["encoders"] if source["hub"]] or None,
        license=licences.pop() if len(licences) == 1 and licences <= _KNOWN_LICENCES else "other",
        eval_results=[
            EvalResult(
                task_type="sentence-similarity",
                dataset_type=row["task"],
                dataset_name=row["task"],
                metric_type=f"{row['metric']}_{row['aggregation']}".strip("_"),
                metric_value=round(row["value"], 4),
            )
            for row in scores
        ]
        or None,
    )
    template = Template(job.input("template").read_text("utf-8"), undefined=StrictUndefined, trim_blocks=True)
    card = template.render(
        told,
        metadata=data.to_yaml(),
        run=run,
        seed=seed,
        about=(inspect.getdoc(load_method(told["method"]["module"])) or "").partition("\n\n")[0],
        scores=scores,
        steps=steps(trained) if trained else 0,
        kept=kept(trained) if trained else None,
        settings=yaml.safe_dump({name: told[name] for name in ("method", "training") if told[name]}),
        labels=record.labels,
        remote_code=not all(one["type"].startswith("sentence_transformers.") for one in modules),
    )
    write_page(job.outputs["card"], card, job.record())


def over_seeds(scores: pd.DataFrame, seed: int) -> list[dict[str, Any]]:
    """The scores of whole tasks of one seed, a row each, with mean, sd and number of all seeds."""
    whole = scores[scores["value"].notna() & ~scores["aggregation"].str.contains(":")]
    spread = whole.groupby(_SCORE)["value"].agg(["mean", "std", "count"])
    own = whole[whole["seed"] == seed].set_index(_SCORE)["value"]
    rows: list[dict[str, Any]] = (
        spread.assign(value=own).dropna(subset="value").reset_index().to_dict("records")
    )
    return rows
