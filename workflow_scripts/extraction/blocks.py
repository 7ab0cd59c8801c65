"""What the extraction study scores: settings of its jobs, its score files and names, and mistakes in them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from workflow_scripts.errors import unknown
from workflow_scripts.extraction.layers import impossible
from workflow_scripts.settings.suites import SUITES, Cells

ISOTROPY: Cells = frozenset({("", "isoscore")})
"""The score of Wikitext's sentences, which belong to no suite."""

Config = Mapping[str, Any]
"""The whole configuration, or its section ``extraction``, or a part of that."""

# Settings of jobs


def blocks_of(extraction: Config, kind: str | None, representation: str) -> list[dict[str, Any]]:
    """The blocks that score a representation by ``kind`` (``None``: by any kind), without their other keys."""
    return [
        {axis: block[axis] for axis in ("mixing_weights", "layers", "weightings", "postprocessings")}
        for block in extraction["blocks"]
        if representation in block["representations"] and (kind is None or kind in block["kinds"])
    ]


def job_settings(extraction: Config, kind: str, representation: str) -> dict[str, Any]:
    """What the job of one representation and kind reads: its blocks and the definitions that they name."""
    return settings_of(extraction, representation, blocks_of(extraction, kind, representation))


def wikitext_settings(extraction: Config, representation: str) -> dict[str, Any]:
    """What the job that encodes Wikitext with a representation reads: what to fit there, and what to measure."""
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
    """What a job reads that scores some blocks of a representation."""
    block = extraction["representations"][representation]
    template = block.get("template")
    used = {
        axis: {name: extraction[axis][name] for one in blocks for name in one[axis]}
        for axis in ("weightings", "postprocessings")
    }
    return {
        "representation": block,
        "template": extraction["templates"][template] if template else None,
        "blocks": blocks,
        **used,
    }


# Tasks and their score files


def evaluator_of(kind: str) -> str:
    """The kind of suite that a kind of score is of: geometry is measured by suites of scored pairs."""
    return "sts" if kind == "geometry" else kind


def suite_of(config: Config, kind: str) -> dict[str, Any]:
    """The suite of one kind of score; empty where the study leaves the kind out."""
    name = config["extraction"]["suites"].get(evaluator_of(kind))
    suite: dict[str, Any] = config["suites"][evaluator_of(kind)][name] if name else {}
    return suite


def tasks_in(suite: Config, kind: str) -> dict[str, str]:
    """Tasks of a suite that give one kind of score, with their datasets."""
    if kind == "geometry":
        return {name: measure["dataset"] for name, measure in suite.get("positives", {}).items()}
    return {name: name for name in suite.get("datasets", [])}


def tasks_of(config: Config, kind: str) -> dict[str, str]:
    """Tasks that the study scores of one kind, with their datasets."""
    return tasks_in(suite_of(config, kind), kind)


def score_files(
    config: Config, tasks: Mapping[str, Collection[str] | None], representations: Iterable[str]
) -> list[str]:
    """Score files below the study's folder of results.

    Args:
        config: The whole configuration.
        tasks: Kind to the wanted tasks; None for all tasks that the study scores.
        representations: Wanted ones; one without a block for a kind has no file of that kind.
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


def files_of(config: Config, shown: Config) -> list[str]:
    """Score files that a table or figure of the study reads."""
    extraction = config["extraction"]
    models = [extraction["models"][model]["representation"] for model in shown.get("models", [])]
    lines = [line["representation"] for line in _lines(shown)]
    return score_files(config, _tasks(extraction, _measures(shown)), [*models, *lines])


def _measures(shown: Config) -> list[str]:
    """The measures of a table or figure, or the two that a figure sets against each other."""
    measures: list[str] = shown.get("measures") or [shown["x"], shown["y"]]
    return measures


def _lines(shown: Config) -> list[Config]:
    """What a figure draws by representation and weighting: its series, or itself."""
    return [*shown.get("series", []), *([shown] if "representation" in shown else [])]


def _tasks(extraction: Config, measures: Iterable[str]) -> dict[str, set[str] | None]:
    """Kind to the tasks of some measures; None where one of them averages over all tasks."""
    tasks: dict[str, set[str] | None] = {}
    for measure in (extraction["measures"][name] for name in measures):
        seen, asked = tasks.get(measure["kind"], set()), measure["tasks"]
        tasks[measure["kind"]] = None if asked is None or seen is None else seen | {*asked}
    return tasks


def single_tables(config: Config, table: str) -> dict[str, str]:
    """Each task of a table's measures, and the table that is about this task alone."""
    extraction = config["extraction"]
    kinds = _tasks(extraction, extraction["tables"][table]["measures"])
    alone = {}
    for name, block in extraction["tables"].items():
        measures = [extraction["measures"][measure] for measure in block["measures"]]
        if len(measures) == 1 and measures[0]["kind"] in kinds and len(measures[0]["tasks"] or []) == 1:
            alone[measures[0]["tasks"][0]] = name
    return alone


def datasets_of(config: Config) -> list[str]:
    """Datasets that the extraction part of a study reads."""
    extraction, show = config["extraction"], config["extraction"]["show"]
    blocks = [extraction[part][name] for part in ("tables", "figures") for name in show[part]]
    kinds = {file.split("/")[2] for block in blocks for file in files_of(config, block)}
    rows = [row for table in show["statistics"] for row in extraction["statistics"][table]["rows"]]
    found = {row["dataset"] for row in rows}
    if kinds:
        found |= {dataset for kind in kinds - {"isotropy"} for dataset in tasks_of(config, kind).values()}
        found |= {extraction[part]["dataset"] for part in ("wikitext", "averages")}
    return sorted(found)


# Names


def names(config: Config, shown: Config) -> dict[str, Any]:
    """Definitions and labels of the models, measures and variants that one table or figure names."""
    extraction, variants = config["extraction"], shown.get("variants", [])
    lines, measures = _lines(shown), _measures(shown)
    weightings = {name for block in variants for name in block["weightings"]}
    weightings |= {line["weighting"] for line in lines}
    posts = {name for block in variants for name in block["postprocessings"]} | {"none"}
    return {
        "models": {name: extraction["models"][name] for name in shown.get("models", [])},
        "measures": {name: extraction["measures"][name] for name in measures},
        "weightings": {name: extraction["weightings"][name]["label"] for name in weightings},
        "postprocessings": {name: extraction["postprocessings"][name]["label"] for name in posts},
        "encoder": _encoder(config),
        "representations": {
            name: _representation(config, name) for name in sorted(line["representation"] for line in lines)
        },
        "datasets": _called(config, [extraction["measures"][name] for name in measures]),
    }


def _encoder(config: Config) -> str:
    encoder: str = config["extraction"]["encoder"]
    called: str = config["names"].get("encoders", {}).get(encoder, encoder)
    return called


def _representation(config: Config, name: str) -> str:
    """A representation in words: the encoder, where its states are read."""
    block = config["extraction"]["representations"][name]
    if block["kind"] != "encoder":
        return "random embeddings" if block["kind"] == "random" else name
    return _encoder(config) if block["template"] is None else f"{_encoder(config)} in template {name}"


def _called(config: Config, measures: Iterable[Config]) -> dict[str, str]:
    """Names in words of the data of some measures; the isotropy of Wikitext's sentences has no task."""
    words = config["names"].get("datasets", {})
    found: dict[str, str] = {}
    for measure in measures:
        of_kind = tasks_of(config, measure["kind"])
        asked = measure["tasks"] or list(of_kind)
        found |= {task: words[of_kind[task]] for task in asked if task in of_kind and of_kind[task] in words}
    return found


# Checks


def extraction_findings(config: Config) -> Iterator[str]:
    """What measures and figures, shown or not, ask for that is not there."""
    extraction = config["extraction"]
    for name, measure in extraction["measures"].items():
        yield from _of_measure(config, measure, f"extraction.measures.{name}")
    tables = [*extraction["tables"], *extraction["statistics"]]
    for name, figure in extraction["figures"].items():
        yield from unknown(figure["below"], tables, f"extraction.figures.{name}.below")


def block_findings(extraction: Config, depth: int | None) -> Iterator[str]:
    """What the study's blocks ask of representations that these do not have.

    Args:
        extraction: The section, every name of which is defined.
        depth: Layers of the study's encoder; None where they are unknown before it is fetched.
    """
    for number, block in enumerate(extraction["blocks"]):
        for name in block["representations"]:
            for found in impossible(settings_of(extraction, name, [block]), depth):
                yield f"extraction.blocks.{number}: {name}: {found}"


def _of_measure(config: Config, measure: Config, place: str) -> Iterator[str]:
    """Mistakes of one measure, which may name any task of its kind: the study's own suite may leave some out."""
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
