"""The card of a model: what it is, what made it, what it scores, how to load it."""

import inspect
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from huggingface_hub import EvalResult, ModelCardData
from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.evaluation.significance import summarise
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.records import RunTable, kept, steps

README_FILE = "README.md"
_KNOWN_LICENCES = {"apache-2.0", "mit", "llama2"}
_OWN_MODULES = {
    "encoder_sum": "adds up the vectors of several encoders",
    "prompted_transformer": "puts each sentence into a prompt",
}

Scores = Mapping[tuple[str, str, str, str], Mapping[int, float]]
"""Suite, task, aggregation and metric of what stands for a whole task, to the value of each seed."""


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
    scores: Iterable[RunTable],
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
    found = {key: values for key, values in _summaries(scores).items() if seed in values}
    settings = {"method": config.method} | ({"training": config.training} if config.training else {})
    block = yaml.safe_dump(settings, sort_keys=True, allow_unicode=True)
    quoted = "\n".join(f"> {line}".rstrip() for line in (inspect.getdoc(method) or "").splitlines())
    parts = [
        f"---\n{_metadata(run, seed, config, found)}\n---\n\n# {run}, seed {seed}\n",
        f"A sentence encoder by Semblance. The method, as its code describes it:\n\n{quoted}\n",
        f"## Sources\n\n{_sources(config)}\n",
        f"## Scores\n\n{_scores(found, seed)}\n",
        f"## Training\n\n{_trained(history)}\n\n```yaml\n{block}```\n\n",
    ]
    if record.labels:
        parts.append("## Substitutions\n\n" + "".join(f"- {label}\n" for label in record.labels))
    parts.append(usage(folder))
    parts.append(f"## Record\n\n`record.json`, identity `{identity}`, commit `{record.origin.commit}`.\n")
    return "\n".join(parts)


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


def _sources(config: Config) -> str:
    named = [("encoder", source) for source in config.encoders] + [("data", source) for source in config.data]
    rows = [(kind, one.name, one.origin, one.licence, one.citation) for kind, one in named]
    return _table({"what": "---", "name": "---", "from": "---", "licence": "---", "cite": "---"}, rows)


def _scores(scores: Scores, seed: int) -> str:
    """This seed's value of every summary, and mean and deviation over seeds."""
    if not scores:
        return "None yet.\n"
    rows = [(*key, f"{values[seed]:.4f}", _over_seeds(values)) for key, values in sorted(scores.items())]
    heads = dict.fromkeys(("suite", "task", "over", "metric"), "---")
    return _table(heads | dict.fromkeys((f"seed {seed}", "all seeds"), "---:"), rows)


def _over_seeds(values: Mapping[int, float]) -> str:
    found = summarise([*values.values()])
    return "one seed" if found.sd is None else f"{found.mean:.4f} ± {found.sd:.4f} ({found.n})"


def _table(heads: Mapping[str, str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown, of headings with their rules; no text ends a cell or a row of it."""
    lines = [
        heads,
        heads.values(),
        *([" ".join(text.split()).replace("|", r"\|") for text in row] for row in rows),
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _trained(history: pa.Table | None) -> str:
    """How long it was trained, and which checkpoint was kept."""
    if history is None or not len(history):
        return "Not trained here."
    best, score = kept(history)
    which = (
        "the last checkpoint is kept."
        if score is None
        else f"the checkpoint of step {best} is kept, the best on the development set ({score:.4f})."
    )
    return f"{steps(history)} steps; {which}"


def usage(folder: Path) -> str:
    """The section of a card that says how to load the model of ``folder``, in Markdown."""
    types = [module["type"] for module in json.loads((folder / "modules.json").read_text("utf-8"))]
    own = [name.split(".")[0] for name in types if not name.startswith("sentence_transformers.")]
    trust = ", trust_remote_code=True" if own else ""
    text = f"""## Use

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder"{trust})
vectors = model.encode(["A sentence.", "Another one."])
print(model.similarity(vectors, vectors))
```

"""
    if own:
        reasons = (_OWN_MODULES.get(name, "reads the hidden states of several layers") for name in own)
        text += (
            f"This model {' and '.join(reasons)}, for which sentence-transformers has no module of its own. The `.py` "
            "files in this folder do it, and run only with `trust_remote_code=True`. They are copies of files of "
            "Semblance, and `record.json` lists their hashes.\n\n"
        )
    if "architectures" in json.loads((folder / "config.json").read_text("utf-8")):
        then = " and ".join(f"`{name}`" for name in types[1:])
        alone = f"loads the encoder alone; {then} in `modules.json` say how it is pooled."
    else:
        alone = "refuses this folder: the encoder in it is only a part of the model."
    return f"{text}`transformers.AutoModel` {alone}\n"
