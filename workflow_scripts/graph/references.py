"""Whether every name that the configuration uses is defined, and of the form that its user reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.findings import unknown
from workflow_scripts.graph.grid_columns import numbered_columns
from workflow_scripts.graph.names import ambiguity_findings, name_findings
from workflow_scripts.graph.readers import reader_findings
from workflow_scripts.graph.runs import baselines_of, runs_of
from workflow_scripts.graph.slices import at
from workflow_scripts.graph.suites import column_findings, kinds, suite_class
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.study import Study


def form_of(config: Mapping[str, Any], corpus: str) -> str:
    """What a corpus holds: sentences, or triples."""
    block = config["corpora"][corpus]
    if "round_trip" in block:
        return "triples" if block["round_trip"]["form"] == "pairs" else "sentences"
    return str(config["datasets"][block["dataset"]]["form"])


def base_of(config: Mapping[str, Any], corpus: str) -> str:
    """The corpus that is cut from a dataset, behind one that is made from it."""
    block = config["corpora"][corpus]
    return block["round_trip"]["corpus"] if "round_trip" in block else corpus


def datasets_of_corpora(config: Mapping[str, Any], corpora: Iterable[str]) -> list[str]:
    """Datasets that corpora are cut from, and those whose sentences are added to them."""
    blocks = [config["corpora"][base_of(config, corpus)] for corpus in corpora]
    return sorted({name for block in blocks for name in (block["dataset"], block.get("also")) if name})


def columns_of(config: Mapping[str, Any], corpus: str) -> tuple[str, ...]:
    """Columns that a method can read of a corpus; round trips have no negatives."""
    if form_of(config, corpus) == "sentences":
        return ("anchor",)
    negatives = () if "round_trip" in config["corpora"][corpus] else ("negative",)
    return ("anchor", "positive", *negatives)


def datasets_in(suite: Mapping[str, Any]) -> list[str]:
    """Names of the datasets that a suite of any kind reads, each once."""
    measures = [*suite.get("positives", {}).values(), *suite.get("samples", {}).values()]
    measures += [suite["energy"]] if "energy" in suite else []
    return list(dict.fromkeys([*suite.get("datasets", []), *(measure["dataset"] for measure in measures)]))


def reference_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """What the blocks of the configuration name that is not there, grids left out."""
    yield from reader_findings(config)
    yield from name_findings(config)
    for place, name, refers in _references(Study.strictly(config), Study, ""):
        yield from _of_reference(config, name, refers, place)
    for name, block in config["corpora"].items():
        corpus = block.get("round_trip", {}).get("corpus")
        if "round_trip" in config["corpora"].get(corpus, {}):
            yield f"corpora.{name}.round_trip.corpus: {corpus} is a round trip itself. Name its corpus."
    for name, encoder in config["encoders"].items():
        yield from _of_encoder(config, name, encoder)
    for name, method in config["methods"].items():
        if "base" in config["methods"].get(method.get("base"), {}):
            yield f"methods.{name}.base: {method['base']} has a base itself. Name that one."
    for kind in config["evaluation"]["on_gpu"]:
        if kind in kinds() and not suite_class(kind).on_gpu:
            yield f"evaluation.on_gpu: no job of {kind} computes on a GPU. Leave it out."
        else:
            yield from unknown(kind, on_gpu(), "evaluation.on_gpu")
    yield from _of_suites(config)
    yield from _of_report(config)


def _references(
    value: Any, kind: Any, path: str, marks: Sequence[Any] = ()
) -> Iterator[tuple[str, str, Refers]]:
    """Every name in a part of the configuration that its class marks: where it is, and what it refers to."""
    while get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        marks = [*marks, *more]
    refers = next((mark for mark in marks if isinstance(mark, Refers)), None)
    if refers and isinstance(value, str):
        yield path, value, refers
    elif isinstance(value, Settings):
        for name, field in type(value).model_fields.items():
            place = f"{path}.{name}" if path else name
            yield from _references(getattr(value, name), field.annotation, place, field.metadata)
    elif get_origin(kind) in (Union, UnionType):
        for form in get_args(kind):
            yield from _references(value, form, path)
    elif isinstance(value, dict) and get_origin(kind) is dict:
        for key, one in value.items():
            yield from _references(one, get_args(kind)[1], f"{path}.{key}")
    elif isinstance(value, list | tuple) and get_origin(kind) in (list, tuple):
        for number, one in enumerate(value):
            place = path if isinstance(one, str) else f"{path}.{number}"
            yield from _references(one, get_args(kind)[0], place)


def _of_reference(config: Mapping[str, Any], name: str, refers: Refers, place: str) -> Iterator[str]:
    match refers.section:
        case "datasets":
            yield from dataset_of(config, name, place, *refers.forms)
        case "corpora":
            yield from _sentences(config, name, place)
        case "encoders":
            yield from unknown(name, config["encoders"], place)
            if "runs" in config["encoders"].get(name, {}):
                yield f"{place}: {name} consists of runs. Name an encoder that is fetched or adapted."
        case section:
            yield from unknown(name, at(dict(config), section), place)


def on_gpu() -> list[str]:
    """Kinds of suites whose jobs may have a GPU, and the study without training."""
    return [*(kind for kind, found in kinds().items() if found.on_gpu), "extraction"]


def _of_encoder(config: Mapping[str, Any], name: str, encoder: Mapping[str, Any]) -> Iterator[str]:
    for number, block in enumerate(encoder.get("runs", [])):
        yield from axis_findings(config, block, f"encoders.{name}.runs.{number}")
    if name in encoders_behind(config["encoders"], name):
        yield f"encoders.{name}: it starts from itself, by way of its runs or base. Name another."


def encoders_behind(encoders: Mapping[str, Any], name: str) -> set[str]:
    """Encoders that an encoder starts from, directly or through others; itself where it does so in a circle."""
    found: set[str] = set()
    pending = [name]
    while pending:
        block = encoders.get(pending.pop(), {})
        runs = block.get("runs", [])
        named = [run.get(axis) or [] for run in runs for axis in ("encoder", "teacher")]
        starts = [block["adapt"]["base"]] if "adapt" in block else []
        for value in named:
            starts += value if isinstance(value, list) else [value]
        pending += set(starts) - found
        found.update(starts)
    return found


def encoders_reached(encoders: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """Encoders, and all behind them."""
    names = set(names)
    return names.union(*(encoders_behind(encoders, name) for name in names))


def _sentences(config: Mapping[str, Any], corpus: str, place: str) -> Iterator[str]:
    if found := [*unknown(corpus, config["corpora"], place)]:
        yield from found
    elif (
        _is_whole(config, corpus) and form_of(config, corpus) == "triples"
    ):  # other forms are no corpus at all
        yield f"{place}: {corpus} holds triples, not sentences. Name another."


def _is_whole(config: Mapping[str, Any], corpus: str) -> bool:
    """Whether what a corpus is made from is defined, so that its form is known."""
    block = config["corpora"][corpus]
    return "round_trip" in block or block["dataset"] in config["datasets"]


def dataset_of(config: Mapping[str, Any], name: str, place: str, *forms: str) -> Iterator[str]:
    """A finding where a dataset is not defined, or has none of ``forms``, if any are given."""
    yield from unknown(name, config["datasets"], place)
    form = config["datasets"].get(name, {}).get("form")
    if form and forms and form not in forms:
        yield f"{place}: {name} has the form {form}; {' or '.join(forms)} are read there. Name another."


def _of_suites(config: Mapping[str, Any]) -> Iterator[str]:
    kinds: dict[str, str] = {}
    for kind, suites in config["suites"].items():
        for name, suite in suites.items():
            place = f"suites.{kind}.{name}"
            if name in kinds:
                found = f"suites.{kinds[name]} has that name too"
                yield f"{place}: {found}. Rename one: tables tell suites apart by name."
            kinds[name] = kind
            forms = filter(None, [suite_class(kind).form])
            for dataset in suite.get("datasets", []):
                yield from dataset_of(config, dataset, f"{place}.datasets", *forms)
            for task in suite.get("graded", []):
                yield from unknown(task, suite["datasets"], f"{place}.graded")
            for task, one in suite.get("positives", {}).items():
                yield from _of_threshold(config, one, f"{place}.positives.{task}.threshold")


def _of_threshold(config: Mapping[str, Any], measure: Mapping[str, Any], place: str) -> Iterator[str]:
    """A threshold outside the range of scores, which no pair or every pair passes."""
    judged = config["datasets"].get(measure["dataset"], {}).get("contract", {}).get("score_range")
    threshold, above = measure["threshold"], measure["comparison"] == "above"
    if judged and not (judged[0] <= threshold < judged[1] or (threshold == judged[1] and not above)):
        found = (
            f"{measure['comparison']} {threshold:g}; scores of {measure['dataset']} reach from {judged[0]:g}"
        )
        yield f"{place}: {found} to {judged[1]:g}. Choose one of them."


def _of_report(config: Mapping[str, Any]) -> Iterator[str]:
    report = config.get("report", {})
    if plane := report.get("alignment_uniformity"):
        place, suites = "report.alignment_uniformity", config["suites"]["geometry"]
        if plane["suite"] in suites:
            yield from unknown(plane["task"], suites[plane["suite"]]["positives"], f"{place}.task")
    if density := report.get("cosine_density"):
        task, place = density["task"], "report.cosine_density.task"
        evaluated = [one for suite in config["suites"]["sts"].values() for one in datasets_in(suite)]
        if task in config["datasets"] and task not in evaluated:
            yield f"{place}: no suite of suites.sts has {task}, so nothing would be drawn. Name one that they have."
        contract = config["datasets"].get(task, {}).get("contract", {})
        yield from _of_edges(density["edges"], contract.get("score_range"), task)


def _of_edges(edges: Sequence[float], judged: Sequence[float] | None, task: str) -> Iterator[str]:
    place = f"report.cosine_density.edges: {', '.join(f'{edge:g}' for edge in edges)}"
    if judged and (edges[0] > judged[0] or edges[-1] < judged[1]):
        yield f"{place}; judgements of {task} reach from {judged[0]:g} to {judged[1]:g}. Widen them."


def grid_findings(config: Mapping[str, Any], grid: Mapping[str, Any], place: str) -> Iterator[str]:
    """What a grid names that is not there, once its runs are known to expand."""
    for kind, suites in grid["suites"].items():
        if found := [*unknown(kind, config["suites"], f"{place}: suites")]:
            yield from found
            continue
        for suite in suites:
            yield from unknown(suite, config["suites"][kind], f"{place}: suites.{kind}")
    runs = runs_of(grid)
    for name, block in grid.items():  # of a figure
        for run in block.get("runs", []) if isinstance(block, Mapping) else []:
            yield from unknown(run, runs, f"{place}: {name}.runs")
    yield from _of_words(config, grid, runs, place)
    yield from ambiguity_findings(config.get("names", {}), runs, place)
    yield from _of_baselines(grid, runs, place)
    yield from _of_columns(config, grid, place)


def _of_words(
    config: Mapping[str, Any], grid: Mapping[str, Any], runs: Mapping[str, Any], place: str
) -> Iterator[str]:
    named = {run.corpus for run in runs.values()} & config["corpora"].keys()
    corpora = sorted({base_of(config, corpus) for corpus in named})
    if "word_frequencies" in grid and len(corpora) > 1:
        found = f"it shows the words of one corpus, and the runs train on {', '.join(corpora)}"
        yield f"{place}: word_frequencies: {found}. Leave it out, or give each corpus an experiment of its own."


def _of_baselines(grid: Mapping[str, Any], runs: Mapping[str, Any], place: str) -> Iterator[str]:
    try:
        baselines = baselines_of(grid).values()
    except ConfigError as error:
        yield f"{place}: {error}"
        return
    for baseline in dict.fromkeys(filter(None, baselines)):
        yield from unknown(baseline, runs, f"{place}: baseline")


def _of_columns(config: Mapping[str, Any], grid: Mapping[str, Any], place: str) -> Iterator[str]:
    """Columns against what their suites write."""
    lists = config["mteb"]["lists"]
    asked = {
        suite: suite_class(kind).parse(config["suites"][kind][suite], f"suites.{kind}.{suite}")
        for kind, suites in grid["suites"].items()
        for suite in suites
        if suite in config["suites"].get(kind, {})
    }
    columns = list(numbered_columns(grid))
    repeatable = [column["heading"] for _, column in columns if not column.get("measured")]
    for number, column in columns:
        where = f"{place}: columns.{number} ({column['heading']})"
        if "suite" not in column:  # computed from other columns, or recorded by a method that is trained
            continue
        if column["suite"] in asked:
            suite = asked[column["suite"]]
            yield from column_findings(column, suite.written(lists), suite.timed(), where)
        elif len(asked) == sum(
            map(len, grid["suites"].values())
        ):  # else it may be of the suite that is misspelt
            yield from unknown(column["suite"], asked, f"{where}.suite")
    yield from _of_headings(grid, repeatable, place)


def _of_headings(grid: Mapping[str, Any], headings: list[str], place: str) -> Iterator[str]:
    """Columns that figures name, which are never measured ones, and settings that plots show."""
    named = {f"scatter.{axis}": heading for axis, heading in (grid.get("scatter") or {}).items()}
    plots = (grid.get("sweep") or {}).get("plots", [])
    named |= {f"sweep.plots.{number}.heading": plot.get("heading") for number, plot in enumerate(plots)}
    for key, heading in named.items():
        if heading is not None:
            yield from unknown(heading, headings, f"{place}: {key}")
    swept = {setting for block in grid["runs"] for key in ("sweep", "at") for setting in block.get(key, {})}
    for number, plot in enumerate(plots):
        yield from unknown(plot["setting"], swept, f"{place}: sweep.plots.{number}.setting")


def axis_findings(config: Mapping[str, Any], block: Mapping[str, Any], place: str) -> Iterator[str]:
    """What a block of runs names, and whether runs made of runs say that they have their seeds."""
    tables = {"method": "methods", "encoder": "encoders", "corpus": "corpora", "teacher": "encoders"}
    for axis, table in tables.items():
        values = block.get(axis) or []
        for value in values if isinstance(values, list) else [values]:
            if found := [*unknown(value, config[table], f"{place}.{axis}")]:
                yield from found
                continue
            runs = config["encoders"].get(value, {}).get("runs")
            if axis == "teacher" and len(runs or []) != 1:
                yield f"{place}.teacher: {value} is not one run. Name an encoder with one in `runs`."
            of_seeds = block.get("of_seeds", False)
            if axis == "encoder" and of_seeds != (runs is not None and not block.get("corpus")):
                yield (
                    f"{place}.of_seeds: true for a frozen run of an encoder that consists of runs, left out "
                    f"for others; {value} has of_seeds {of_seeds}."
                )
