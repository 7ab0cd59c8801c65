"""Which representations a study looks at: blocks of sources, layers, weightings and post-processings.

Rules call this while Snakemake builds the job graph, so that imports stay light.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from workflow_scripts.config import Slice

Kind = Literal["sts", "clustering", "transfer", "geometry", "isotropy"]


class Block(Slice):
    """Every combination of its lists, for some kinds of evaluation."""

    kinds: list[Kind] = Field(min_length=1, description="isotropy is IsoScore of Wikitext's sentences.")
    sources: list[str] = Field(min_length=1)
    shares: list[float] = Field(
        min_length=1, description="w of Equation 10: 0 the source alone, 1 its averages."
    )
    layers: list[str] = Field(
        min_length=1, description="static, 0, 1, ..., last, sums such as 1+last; each: all."
    )
    weightings: list[str] = Field(min_length=1)
    postprocessings: list[str] = Field(min_length=1)


def blocks_of(extraction: Mapping[str, Any], kind: str | None, source: str) -> list[dict[str, Any]]:
    """The blocks of one source and kind, ``None`` for all kinds, without what others need."""
    return [
        {axis: block[axis] for axis in ("shares", "layers", "weightings", "postprocessings")}
        for block in extraction["blocks"]
        if source in block["sources"] and (kind is None or kind in block["kinds"])
    ]


def used(blocks: Iterable[Mapping[str, Any]], axis: str, known: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions in ``known`` that ``blocks`` name on ``axis``."""
    return {name: known[name] for block in blocks for name in block[axis]}


def job_settings(extraction: Mapping[str, Any], kind: str, source: str) -> dict[str, Any]:
    """What one job of a source reads: definitions of what its blocks name, and nothing else."""
    return _settings(extraction, source, blocks_of(extraction, kind, source))


def wikitext_settings(extraction: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What the job that passes Wikitext through a source reads: what is learnt there, and what is measured."""
    learnt = [
        block | {"postprocessings": shapes}
        for block in blocks_of(extraction, None, source)
        if (shapes := [name for name in block["postprocessings"] if _learnt(extraction, name)])
    ]
    measured = blocks_of(extraction, "isotropy", source)
    return {
        "learnt": _settings(extraction, source, learnt + measured),
        "isotropy": _settings(extraction, source, measured),
    }


def _learnt(extraction: Mapping[str, Any], name: str) -> bool:
    shape: str = extraction["postprocessings"][name]["fit"]
    return shape == "wikitext"


def _settings(extraction: Mapping[str, Any], source: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    read = extraction["sources"][source]
    template = read.get("template")
    return {
        "source": read,
        "template": extraction["templates"][template] if template else None,
        "blocks": blocks,
        "weightings": used(blocks, "weightings", extraction["weightings"]),
        "postprocessings": used(blocks, "postprocessings", extraction["postprocessings"]),
    }


def needs_averages(settings: Mapping[str, Any]) -> bool:
    """Whether a job mixes in static averages."""
    return any(share != 0 for block in settings["blocks"] for share in block["shares"])


def needs_documents(settings: Mapping[str, Any]) -> bool:
    """Whether a job weighs by document frequencies of Wikitext."""
    return any(weighting.get("documents") == "wikitext" for weighting in settings["weightings"].values())


def needs_shaping(settings: Mapping[str, Any]) -> bool:
    """Whether a job shapes by what was learnt from Wikitext."""
    return any(shape["fit"] == "wikitext" for shape in settings["postprocessings"].values())


def sources_of(extraction: Mapping[str, Any], kind: str) -> list[str]:
    """Sources that some block evaluates by ``kind``, in the order of their definition."""
    return [source for source in extraction["sources"] if blocks_of(extraction, kind, source)]


def suite_of(config: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The suite that a kind is scored on; empty where the study leaves the kind out."""
    name = config["extraction"]["suites"][kind]
    suite: dict[str, Any] = config["suites"][kind][name] if name else {}
    return suite


def tasks_of(suite: Mapping[str, Any]) -> dict[str, str]:
    """Every task of a suite and its dataset: measurements of pairs, or the datasets themselves."""
    measures = {name: measure["dataset"] for name, measure in suite.get("positives", {}).items()}
    return measures | {name: name for name in suite.get("datasets", [])}


def only_task(suite: Mapping[str, Any], task: str) -> dict[str, Any]:
    """A suite's settings as far as one of its tasks reads them."""
    kept = {"datasets": [task], "graded": [name for name in suite.get("graded", []) if name == task]}
    measures = {"positives": {name: one for name, one in suite.get("positives", {}).items() if name == task}}
    own = kept | measures | {"clouds": {}}
    return {key: own.get(key, value) for key, value in suite.items()}


def score_files(
    config: Mapping[str, Any], tasks: Mapping[str, Collection[str] | None], sources: Iterable[str]
) -> list[str]:
    """Score files below the study's folder of results.

    Args:
        config: The whole configuration.
        tasks: Kind to the tasks that are wanted of it; None for all that the study scores.
        sources: Sources that are wanted; those without a block for a kind have no file.
    """
    wanted = set(sources)
    return [
        f"extraction/scores/{kind}/{source}/{task}.parquet"
        for kind, chosen in tasks.items()
        for source in sources_of(config["extraction"], kind)
        if source in wanted
        for task in (["wikitext"] if kind == "isotropy" else tasks_of(suite_of(config, kind)))
        if chosen is None or task in chosen
    ]


def files_of_table(config: Mapping[str, Any], table: str) -> list[str]:
    """Score files that a table reads."""
    extraction = config["extraction"]
    asked = extraction["tables"][table]
    sources = [extraction["models"][model]["source"] for model in asked["models"]]
    return score_files(config, _tasks(extraction, asked["measures"]), sources)


def files_of_figure(config: Mapping[str, Any], figure: str) -> list[str]:
    """Score files that a figure reads."""
    extraction = config["extraction"]
    asked = extraction["figures"][figure]
    sources = [extraction["models"][model]["source"] for model in asked.get("models", [])]
    sources += [line["source"] for line in asked.get("series", [])] + [asked.get("source")]
    measures = asked.get("measures") or [asked["x"], asked["y"]]
    return score_files(config, _tasks(extraction, measures), sources)


def _tasks(extraction: Mapping[str, Any], measures: Iterable[str]) -> dict[str, set[str] | None]:
    """Kind to the tasks of some measures; None where one of them averages all."""
    tasks: dict[str, set[str] | None] = {}
    for measure in (extraction["measures"][name] for name in measures):
        seen = tasks.get(measure["kind"], set())
        tasks[measure["kind"]] = (
            None if measure["tasks"] is None or seen is None else seen | {*measure["tasks"]}
        )
    return tasks


def names(extraction: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a table or figure calls its models, measures and shapes: definitions of what it names alone."""
    measures = asked.get("measures") or [asked["x"], asked["y"]]
    shapes = asked.get("shapes", [])
    weightings = {name for shape in shapes for name in shape["weightings"]}
    weightings |= {line["weighting"] for line in asked.get("series", [])}
    weightings |= {asked["weighting"]} if "weighting" in asked else set()
    posts = {name for shape in shapes for name in shape["postprocessings"]} | {"none"}
    return {
        "models": {name: extraction["models"][name] for name in asked.get("models", [])},
        "measures": {name: extraction["measures"][name] for name in measures},
        "weightings": {name: extraction["weightings"][name]["label"] for name in weightings},
        "postprocessings": {name: extraction["postprocessings"][name]["label"] for name in posts},
    }


def single_tables(config: Mapping[str, Any], table: str) -> dict[str, str]:
    """Each task of a table's measures, and the table that shows it alone."""
    extraction = config["extraction"]
    kinds = _tasks(extraction, extraction["tables"][table]["measures"])
    alone = {}
    for name, block in extraction["tables"].items():
        measures = [extraction["measures"][measure] for measure in block["measures"]]
        if len(measures) == 1 and measures[0]["kind"] in kinds and len(measures[0]["tasks"] or []) == 1:
            alone[measures[0]["tasks"][0]] = name
    return alone


def datasets_of(config: Mapping[str, Any]) -> list[str]:
    """Datasets that a study's extraction reads."""
    extraction = config["extraction"]
    asked = [file for table in extraction["show"]["tables"] for file in files_of_table(config, table)]
    asked += [file for figure in extraction["show"]["figures"] for file in files_of_figure(config, figure)]
    tables = extraction["show"]["statistics"]
    described = {row["dataset"] for table in tables for row in extraction["statistics"][table]["rows"]}
    if not asked:
        return sorted(described)
    kinds = {file.split("/")[2] for file in asked} - {"isotropy"}
    found = {dataset for kind in kinds for dataset in tasks_of(suite_of(config, kind)).values()}
    return sorted(found | described | {extraction[part]["dataset"] for part in ("wikitext", "averages")})
