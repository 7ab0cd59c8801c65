"""Whether every name that the extraction study uses is defined, and its measures are what suites write."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from workflow_scripts.errors import unknown
from workflow_scripts.extraction.blocks import evaluator_of, settings_of, tasks_in
from workflow_scripts.extraction.possible import impossible
from workflow_scripts.graph.suites import suite_class
from workflow_scripts.settings.suites import Cells

ISOTROPY: Cells = frozenset({("", "isoscore")})
"""Of Wikitext's sentences, which are no suite's."""

Extraction = Mapping[str, Any]


def extraction_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """What measures and figures of the extraction study ask for that is not there, shown or not."""
    extraction = config["extraction"]
    for name, measure in extraction["measures"].items():
        yield from _of_measure(config, measure, f"extraction.measures.{name}")
    tables = [*extraction["tables"], *extraction["statistics"]]
    for name, figure in extraction["figures"].items():
        yield from unknown(figure["below"], tables, f"extraction.figures.{name}.below")


def block_findings(extraction: Extraction, depth: int | None) -> Iterator[str]:
    """What the study's blocks ask of representations that these do not have.

    Args:
        extraction: The section, every name of which is defined.
        depth: Layers of the study's encoder; None where nobody can say before it is fetched.
    """
    for number, block in enumerate(extraction["blocks"]):
        for name in block["representations"]:
            for found in impossible(settings_of(extraction, name, [block]), depth):
                yield f"extraction.blocks.{number}: {name}: {found}"


def _of_measure(config: Mapping[str, Any], measure: Mapping[str, Any], place: str) -> Iterator[str]:
    """Tasks of any suite of its kind, or any data of the form: the study's own suite may leave some out."""
    kind, aggregation, metrics = (measure[key] for key in ("kind", "aggregation", "metrics"))
    cells = ISOTROPY
    if kind != "isotropy":
        suites, scored = config["suites"][evaluator_of(kind)].values(), suite_class(evaluator_of(kind))
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
