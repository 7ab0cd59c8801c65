"""The grid of the extraction study: settings of its jobs, score files, names in words, and mistakes."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from workflow_scripts.errors import unknown
from workflow_scripts.extraction.layers import layer_findings
from workflow_scripts.settings.suites import SUITES, Cells

ISOTROPY: Cells = frozenset({("", "isoscore")})
"""The score of Wikitext's sentences, which are in no suite."""

Config = Mapping[str, Any]
"""The configuration, its section ``extraction``, or a block of that section."""

# Settings of jobs


def blocks_of(extraction: Config, kind: str | None, representation: str) -> list[dict[str, Any]]:
    """The axes of the blocks that score a representation by ``kind`` (``None``: by any kind)."""
    return [
        {axis: block[axis] for axis in ("mixing_weights", "layers", "weightings", "postprocessings")}
        for block in extraction["blocks"]
        if representation in block["representations"] and (kind is None or kind in block["kinds"])
    ]


def job_settings(extraction: Config, kind: str, representation: str) -> dict[str, Any]:
    """Settings of the job of one representation and kind: its blocks and the definitions that they name."""
    return settings_of(extraction, representation, blocks_of(extraction, kind, representation))


def wikitext_settings(extraction: Config, representation: str) -> dict[str, Any]:
    """Settings of the job that encodes Wikitext with a representation: post-processings to fit, cells to measure."""
    fits = {name: block["fit"] for name, block in extraction["postprocessings"].items()}
    learnt = [
        block | {"postprocessings": names}
        for block in blocks_of(extraction, None, representation)
        if (names := [name for name in block["postprocessings"] if fits[name] == "wikitext"])
    ]
    measured = blocks_of(extraction, "isotropy", representation)
    return {
        "learnt": settings_of(extraction, representation, learnt + measured),
        "isotropy": settings_of(extraction, representation, measured),
    }


def settings_of(extraction: Config, representation: str, blocks: list[dict[str, Any]]) -> dict[str, Any]:
    """Settings of a job that scores some blocks of a representation."""
    definition = extraction["representations"][representation]
    template = definition.get("template")
    used = {
        axis: {name: extraction[axis][name] for block in blocks for name in block[axis]}
        for axis in ("weightings", "postprocessings")
    }
    return {
        "representation": definition,
        "template": extraction["templates"][template] if template else None,
        "blocks": blocks,
        **used,
    }


# Tasks and their score files


def evaluator_of(kind: str) -> str:
    """The kind of suite that gives a kind of score: suites of scored pairs also measure geometry."""
    return "sts" if kind == "geometry" else kind


def suite_of(config: Config, kind: str) -> dict[str, Any]:
    """The suite of one kind of score; empty if the study leaves the kind out."""
    name = config["extraction"]["suites"].get(evaluator_of(kind))
    suite: dict[str, Any] = config["suites"][evaluator_of(kind)][name] if name else {}
    return suite


def tasks_in(suite: Config, kind: str) -> dict[str, str]:
    """Tasks of a suite for one kind of score, with their datasets."""
    if kind == "geometry":
        return {name: measure["dataset"] for name, measure in suite.get("positives", {}).items()}
    return {name: name for name in suite.get("datasets", [])}


def tasks_of(config: Config, kind: str) -> dict[str, str]:
    """Tasks of one kind in the study, with their datasets."""
    return tasks_in(suite_of(config, kind), kind)


def score_files(
    config: Config, tasks: Mapping[str, Collection[str] | None], representations: Iterable[str]
) -> list[str]:
    """Score files below the study's folder of results.

    Args:
        config: The whole configuration.
        tasks: Kind to the wanted tasks; None for all tasks of the study.
        representations: Wanted representations; one without a block for a kind has no file of that kind.
    """
    extraction, wanted = config["extraction"], set(representations)
    return [
        f"extraction/scores/{kind}/{name}/{task}.parquet"
        for kind, chosen in tasks.items()
        for name in extraction["representations"]
        if name in wanted and blocks_of(extraction, kind, name)
        for task in (["wikitext"] if kind == "isotropy" else tasks_of(config, kind))
        if chosen is None or task in chosen
    ]


def files_of(config: Config, block: Config) -> list[str]:
    """Score files that a table or figure of the study reads."""
    extraction = config["extraction"]
    models = [extraction["models"][model]["representation"] for model in block.get("models", [])]
    lines = [line["representation"] for line in _lines(block)]
    return score_files(config, _tasks(extraction, _measures(block)), [*models, *lines])


def _measures(block: Config) -> list[str]:
    """The measures of a table or figure, or those on the axes of a figure."""
    measures: list[str] = block.get("measures") or [block["x"], block["y"]]
    return measures


def _lines(block: Config) -> list[Config]:
    """Settings with a representation and weighting for each line of a figure: its series, or the figure's own."""
    return [*block.get("series", []), *([block] if "representation" in block else [])]


def _tasks(extraction: Config, measures: Iterable[str]) -> dict[str, set[str] | None]:
    """Kind to the tasks of some measures; None if one of them averages over all tasks."""
    tasks: dict[str, set[str] | None] = {}
    for measure in (extraction["measures"][name] for name in measures):
        seen, own = tasks.get(measure["kind"], set()), measure["tasks"]
        tasks[measure["kind"]] = None if own is None or seen is None else seen | {*own}
    return tasks


def single_tables(config: Config, table: str) -> dict[str, str]:
    """For each task of a table's measures, the table with this task only."""
    extraction = config["extraction"]
    kinds = _tasks(extraction, extraction["tables"][table]["measures"])
    alone = {}
    for name, block in extraction["tables"].items():
        measures = [extraction["measures"][measure] for measure in block["measures"]]
        if len(measures) == 1 and measures[0]["kind"] in kinds and len(measures[0]["tasks"] or []) == 1:
            alone[measures[0]["tasks"][0]] = name
    return alone


def datasets_of(config: Config) -> list[str]:
    """Datasets that the extraction study reads."""
    extraction, show = config["extraction"], config["extraction"]["show"]
    blocks = [extraction[part][name] for part in ("tables", "figures") for name in show[part]]
    kinds = {file.split("/")[2] for block in blocks for file in files_of(config, block)}
    rows = [row for table in show["statistics"] for row in extraction["statistics"][table]["rows"]]
    datasets = {row["dataset"] for row in rows}
    if kinds:
        datasets |= {dataset for kind in kinds - {"isotropy"} for dataset in tasks_of(config, kind).values()}
        datasets |= {extraction[part]["dataset"] for part in ("wikitext", "averages")}
    return sorted(datasets)


# Names


def names(config: Config, block: Config) -> dict[str, Any]:
    """Definitions and labels of the models, measures and variants in one table or figure."""
    extraction, variants = config["extraction"], block.get("variants", [])
    lines, measures = _lines(block), _measures(block)
    weightings = {name for variant in variants for name in variant["weightings"]}
    weightings |= {line["weighting"] for line in lines}
    posts = {name for variant in variants for name in variant["postprocessings"]} | {"none"}
    return {
        "models": {name: extraction["models"][name] for name in block.get("models", [])},
        "measures": {name: extraction["measures"][name] for name in measures},
        "weightings": {name: extraction["weightings"][name]["label"] for name in weightings},
        "postprocessings": {name: extraction["postprocessings"][name]["label"] for name in posts},
        "encoder": _encoder(config),
        "representations": {
            name: _representation(config, name) for name in sorted(line["representation"] for line in lines)
        },
        "datasets": _dataset_names(config, [extraction["measures"][name] for name in measures]),
    }


def _encoder(config: Config) -> str:
    encoder: str = config["extraction"]["encoder"]
    name: str = config["names"].get("encoders", {}).get(encoder, encoder)
    return name


def _representation(config: Config, name: str) -> str:
    """A representation in words; one that reads an encoder is named after the encoder."""
    block = config["extraction"]["representations"][name]
    if block["kind"] != "encoder":
        return "random embeddings" if block["kind"] == "random" else name
    return _encoder(config) if block["template"] is None else f"{_encoder(config)} in template {name}"


def _dataset_names(config: Config, measures: Iterable[Config]) -> dict[str, str]:
    """Tasks of some measures, and the names of their datasets in words; Wikitext's isotropy has no task."""
    words = config["names"].get("datasets", {})
    result: dict[str, str] = {}
    for measure in measures:
        datasets = tasks_of(config, measure["kind"])
        tasks = measure["tasks"] or list(datasets)
        result |= {task: words[datasets[task]] for task in tasks if datasets.get(task) in words}
    return result


# Checks


def extraction_findings(config: Config) -> Iterator[str]:
    """Messages about unknown names in measures and figures, including those that no study shows."""
    extraction = config["extraction"]
    for name, measure in extraction["measures"].items():
        yield from _measure_findings(config, measure, f"extraction.measures.{name}")
    tables = [*extraction["tables"], *extraction["statistics"]]
    for name, figure in extraction["figures"].items():
        yield from unknown(figure["below"], tables, f"extraction.figures.{name}.below")


def block_findings(extraction: Config, depth: int | None) -> Iterator[str]:
    """Messages about layers and masks in the study's blocks that their representations lack.

    Args:
        extraction: The section; all its names are defined.
        depth: Number of layers of the study's encoder; None before it is fetched.
    """
    for number, block in enumerate(extraction["blocks"]):
        for name in block["representations"]:
            for problem in layer_findings(settings_of(extraction, name, [block]), depth):
                yield f"extraction.blocks.{number}: {name}: {problem}"


def _measure_findings(config: Config, measure: Config, place: str) -> Iterator[str]:
    """Mistakes of one measure, which may name any task of its kind, also tasks that the study leaves out."""
    kind, aggregation, metrics = (measure[key] for key in ("kind", "aggregation", "metrics"))
    cells = ISOTROPY
    if kind != "isotropy":
        suites, scored = config["suites"][evaluator_of(kind)].values(), SUITES[evaluator_of(kind)]
        tasks = {task for suite in suites for task in tasks_in(suite, kind)}
        each = (scored.parse(suite, "suites").written(config["mteb"]["lists"]) for suite in suites)
        cells = frozenset(cell for suite in each for task in tasks & suite.keys() for cell in suite[task])
        if kind != "geometry":
            tasks |= {name for name, block in config["datasets"].items() if block["form"] == scored.form}
        yield from _each(measure["tasks"] or [], tasks, f"{place}.tasks")
    yield from _each(metrics, {name for _, name in cells}, f"{place}.metrics")
    patterns = sorted({pattern for pattern, metric in cells if metric in metrics})
    if patterns and not any(fnmatchcase(aggregation, pattern) for pattern in patterns):
        known = ", ".join(f'"{pattern}"' for pattern in patterns)
        yield f'{place}.aggregation: {kind} has no "{aggregation}" of {", ".join(metrics)}. Known: {known}.'


def _each(names: Iterable[str], known: Iterable[str], place: str) -> Iterator[str]:
    for name in names:
        yield from unknown(name, known, place)
