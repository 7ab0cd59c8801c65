"""Scores of an extraction study that are known, and its names."""

from itertools import product

from workflow_scripts.settings.extraction import Names

MEASURE = {
    "kind": "sts",
    "tasks": None,
    "aggregation": "all",
    "metrics": ["spearman"],
    "scale": 100,
    "paper_tasks": 2,
}
NAMES = Names.model_validate(
    {
        "models": {
            "BERT": {"representation": "plain", "mixing_weight": 0, "layers": "1+last"},
            "RE": {"representation": "random", "mixing_weight": 0, "layers": "static"},
            "B2S": {"representation": "b2s", "mixing_weight": 0, "layers": "static"},
        },
        "measures": {
            "STS": MEASURE,
            "STS12": MEASURE | {"tasks": ["sts12"], "paper_tasks": 1},
            "IsoScore": MEASURE
            | {"kind": "isotropy", "aggregation": "", "metrics": ["isoscore"], "scale": 1},
        },
        "weightings": {"avg": "avg.", "idf_task": "idf^T"},
        "postprocessings": {"none": "", "zscore": "zscore"},
        "encoder": "MiniLM",
        "representations": {"plain": "MiniLM", "random": "random embeddings"},
    }
)
TASKS = {"sts12": 0.5, "sts13": 0.7}
VARIANTS = [{"weightings": ["avg", "idf_task"], "postprocessings": ["none", "zscore"]}]


def row(
    representation,
    task,
    value,
    *,
    draw=0,
    mixing_weight=0.0,
    layers="1+last",
    weighting="avg",
    postprocess="none",
    **more,
):
    """A score of a cell."""
    return {
        "representation": representation, "mixing_weight": mixing_weight, "draw": draw, "layers": layers, "weighting": weighting,
        "postprocess": postprocess, "kind": "sts", "task": task, "aggregation": "all", "metric": "spearman",
        "value": value, "n": 10, "note": None,
    } | more  # fmt: skip


def rows():
    """Scores of two tasks: of an encoder by layers and mixing weights, of random vectors, and of a missing source."""
    for task, weighting, variant in product(TASKS, ("avg", "idf_task"), ("none", "zscore")):
        bonus = 0.1 * (weighting == "idf_task") + 0.05 * (variant == "zscore")
        cell = {"weighting": weighting, "postprocess": variant}
        yield row("plain", task, TASKS[task] + bonus, **cell)
        for draw in (0, 1):
            yield row("random", task, TASKS[task] - 0.3 + 0.02 * draw, draw=draw, layers="static", **cell)
        isoscore = {"kind": "isotropy", "aggregation": "", "metric": "isoscore"}
        yield row("plain", "wikitext", 0.1 + bonus, **isoscore, **cell)
    for task, layer, weight in product(TASKS, ("0", "1", "2", "10"), (0.0, 0.5)):
        yield row("plain", task, TASKS[task] + 0.01 * int(layer) - weight, layers=layer, mixing_weight=weight)
    nothing = dict.fromkeys(("layers", "weighting", "postprocess", "metric", "aggregation"), "")
    yield from (row("b2s", task, None, **nothing, note="no source") for task in TASKS)
