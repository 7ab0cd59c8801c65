"""Which sentence vectors a study scores: representations, layers, weightings and post-processings.

Rules call these functions while Snakemake builds the job graph, so imports stay light.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any


def blocks_of(extraction: Mapping[str, Any], kind: str | None, representation: str) -> list[dict[str, Any]]:
    """The blocks that score a representation by ``kind`` (``None``: by any kind), without their other keys."""
    return [
        {axis: block[axis] for axis in ("mixing_weights", "layers", "weightings", "postprocessings")}
        for block in extraction["blocks"]
        if representation in block["representations"] and (kind is None or kind in block["kinds"])
    ]


def used(blocks: Iterable[Mapping[str, Any]], axis: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of ``known`` that ``blocks`` name on ``axis``."""
    return {name: known[name] for block in blocks for name in block[axis]}


def job_settings(extraction: Mapping[str, Any], kind: str, representation: str) -> dict[str, Any]:
    """What the job of one representation and kind reads: its blocks and the definitions that they name."""
    return settings_of(extraction, representation, blocks_of(extraction, kind, representation))


def wikitext_settings(extraction: Mapping[str, Any], representation: str) -> dict[str, Any]:
    """What the job that encodes Wikitext with a representation reads: what it fits there, and what it measures."""
    learnt = [
        block | {"postprocessings": names}
        for block in blocks_of(extraction, None, representation)
        if (names := [name for name in block["postprocessings"] if _learnt(extraction, name)])
    ]
    measured = blocks_of(extraction, "isotropy", representation)
    return {
        "learnt": settings_of(extraction, representation, learnt + measured),
        "isotropy": settings_of(extraction, representation, measured),
    }


def _learnt(extraction: Mapping[str, Any], name: str) -> bool:
    fitted_on: str = extraction["postprocessings"][name]["fit"]
    return fitted_on == "wikitext"


def settings_of(
    extraction: Mapping[str, Any], representation: str, blocks: list[dict[str, Any]]
) -> dict[str, Any]:
    """What a job reads that scores some blocks of a representation."""
    block = extraction["representations"][representation]
    template = block.get("template")
    return {
        "representation": block,
        "template": extraction["templates"][template] if template else None,
        "blocks": blocks,
        "weightings": used(blocks, "weightings", extraction["weightings"]),
        "postprocessings": used(blocks, "postprocessings", extraction["postprocessings"]),
    }


def needs_averages(settings: Mapping[str, Any]) -> bool:
    """Whether a job mixes in static averages."""
    return any(weight != 0 for block in settings["blocks"] for weight in block["mixing_weights"])


def needs_documents(settings: Mapping[str, Any]) -> bool:
    """Whether a job weights tokens by document frequencies of Wikitext."""
    return any(weighting.get("documents") == "wikitext" for weighting in settings["weightings"].values())


def needs_fitted(settings: Mapping[str, Any]) -> bool:
    """Whether a job applies a post-processing that was fitted on Wikitext."""
    return any(block["fit"] == "wikitext" for block in settings["postprocessings"].values())


def representations_of(extraction: Mapping[str, Any], kind: str) -> list[str]:
    """Representations that some block evaluates by ``kind``, in the order of their definition."""
    return [name for name in extraction["representations"] if blocks_of(extraction, kind, name)]


def evaluator_of(kind: str) -> str:
    """The kind of suite that a kind of score is of: geometry is measured by suites of scored pairs."""
    return "sts" if kind == "geometry" else kind


def suite_of(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The suite of one kind of score; empty where the study leaves the kind out."""
    name = config["extraction"]["suites"].get(evaluator_of(kind))
    suite: dict[str, Any] = config["suites"][evaluator_of(kind)][name] if name else {}
    return suite


def tasks_in(suite: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Tasks of a suite that give one kind of score, with their datasets."""
    if kind == "geometry":
        return {name: measure["dataset"] for name, measure in suite.get("positives", {}).items()}
    return {name: name for name in suite.get("datasets", [])}


def tasks_of(config: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Tasks that the study scores of one kind, with their datasets."""
    return tasks_in(suite_of(config, kind), kind)


def score_files(
    config: Mapping[str, Any], tasks: Mapping[str, Collection[str] | None], representations: Iterable[str]
) -> list[str]:
    """Score files below the study's folder of results.

    Args:
        config: The whole configuration.
        tasks: Kind to the wanted tasks; None for all tasks that the study scores.
        representations: Wanted ones; one without a block for a kind has no file of that kind.
    """
    wanted = set(representations)
    return [
        f"extraction/scores/{kind}/{name}/{task}.parquet"
        for kind, chosen in tasks.items()
        for name in representations_of(config["extraction"], kind)
        if name in wanted
        for task in (["wikitext"] if kind == "isotropy" else tasks_of(config, kind))
        if chosen is None or task in chosen
    ]


def files_of_table(config: Mapping[str, Any], table: str) -> list[str]:
    """Score files that a table reads."""
    extraction = config["extraction"]
    asked = extraction["tables"][table]
    representations = [extraction["models"][model]["representation"] for model in asked["models"]]
    return score_files(config, _tasks(extraction, asked["measures"]), representations)


def files_of_figure(config: Mapping[str, Any], figure: str) -> list[str]:
    """Score files that a figure reads."""
    extraction = config["extraction"]
    asked = extraction["figures"][figure]
    representations = [extraction["models"][model]["representation"] for model in asked.get("models", [])]
    representations += [line["representation"] for line in asked.get("series", [])] + [
        asked.get("representation")
    ]
    measures = asked.get("measures") or [asked["x"], asked["y"]]
    return score_files(config, _tasks(extraction, measures), representations)


def _tasks(extraction: Mapping[str, Any], measures: Iterable[str]) -> dict[str, set[str] | None]:
    """Kind to the tasks of some measures; None where one of them averages over all tasks."""
    tasks: dict[str, set[str] | None] = {}
    for measure in (extraction["measures"][name] for name in measures):
        seen = tasks.get(measure["kind"], set())
        tasks[measure["kind"]] = (
            None if measure["tasks"] is None or seen is None else seen | {*measure["tasks"]}
        )
    return tasks


def names(config: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Definitions and labels of the models, measures and variants that one table or figure names."""
    extraction, words = config["extraction"], config["names"]
    measures = asked.get("measures") or [asked["x"], asked["y"]]
    variants = asked.get("variants", [])
    weightings = {name for block in variants for name in block["weightings"]}
    weightings |= {line["weighting"] for line in asked.get("series", [])}
    weightings |= {asked["weighting"]} if "weighting" in asked else set()
    representations = {line["representation"] for line in asked.get("series", [])}
    representations |= {asked["representation"]} if "representation" in asked else set()
    posts = {name for block in variants for name in block["postprocessings"]} | {"none"}
    return {
        "models": {name: extraction["models"][name] for name in asked.get("models", [])},
        "measures": {name: extraction["measures"][name] for name in measures},
        "weightings": {name: extraction["weightings"][name]["label"] for name in weightings},
        "postprocessings": {name: extraction["postprocessings"][name]["label"] for name in posts},
        "encoder": words.get("encoders", {}).get(extraction["encoder"], extraction["encoder"]),
        "representations": {name: _representation(config, name) for name in sorted(representations)},
        "datasets": _called(config, [extraction["measures"][name] for name in measures]),
    }


def _representation(config: Mapping[str, Any], name: str) -> str:
    """A representation in words: the encoder, where its states are read."""
    extraction = config["extraction"]
    block = extraction["representations"][name]
    if block["kind"] == "random":
        return "random embeddings"
    if block["kind"] != "encoder":
        return name
    encoder = config["names"].get("encoders", {}).get(extraction["encoder"], extraction["encoder"])
    return encoder if block["template"] is None else f"{encoder} in template {name}"


def _called(config: Mapping[str, Any], measures: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Names in words of the data of some measures; the isotropy of Wikitext's sentences has no task."""
    words = config["names"].get("datasets", {})
    found: dict[str, str] = {}
    for measure in measures:
        of_kind = tasks_of(config, measure["kind"])
        asked = measure["tasks"] or list(of_kind)
        found |= {task: words[of_kind[task]] for task in asked if task in of_kind and of_kind[task] in words}
    return found


def single_tables(config: Mapping[str, Any], table: str) -> dict[str, str]:
    """Each task of a table's measures, and the table that is about this task alone."""
    extraction = config["extraction"]
    kinds = _tasks(extraction, extraction["tables"][table]["measures"])
    alone = {}
    for name, block in extraction["tables"].items():
        measures = [extraction["measures"][measure] for measure in block["measures"]]
        if len(measures) == 1 and measures[0]["kind"] in kinds and len(measures[0]["tasks"] or []) == 1:
            alone[measures[0]["tasks"][0]] = name
    return alone


def datasets_of(config: Mapping[str, Any]) -> list[str]:
    """Datasets that the extraction part of a study reads."""
    extraction = config["extraction"]
    asked = [file for table in extraction["show"]["tables"] for file in files_of_table(config, table)]
    asked += [file for figure in extraction["show"]["figures"] for file in files_of_figure(config, figure)]
    tables = extraction["show"]["statistics"]
    described = {row["dataset"] for table in tables for row in extraction["statistics"][table]["rows"]}
    if not asked:
        return sorted(described)
    kinds = {file.split("/")[2] for file in asked} - {"isotropy"}
    found = {dataset for kind in kinds for dataset in tasks_of(config, kind).values()}
    return sorted(found | described | {extraction[part]["dataset"] for part in ("wikitext", "averages")})
