"""Whether every name that the configuration uses is defined, and of the form that its user reads."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain
from math import inf
from typing import Annotated, Any, get_args

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError, advice, unknown
from workflow_scripts.graph.benchmarks import lists_of, selection
from workflow_scripts.graph.mistakes import forms_of, read
from workflow_scripts.graph.schema import Grid, MethodBlock, Study
from workflow_scripts.graph.slices import Config, at
from workflow_scripts.settings.grids import Run, baselines_of, listed, numbered_columns, runs_of
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.readers import READERS
from workflow_scripts.settings.suites import SUITES, Cells


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
    if form_of(config, "corpora", corpus) != "triples":
        return ("anchor",)
    negatives = () if "round_trip" in config["corpora"][corpus] else ("negative",)
    return ("anchor", "positive", *negatives)


def tasks_in(suite: Mapping[str, Any]) -> dict[str, str]:
    """Tasks of a suite of any kind, each with the dataset that it reads."""
    tasks = {name: name for name in suite.get("datasets", [])}
    for measures in ("positives", "samples"):
        tasks |= {name: measure["dataset"] for name, measure in suite.get(measures, {}).items()}
    return tasks | ({suite["energy"]["dataset"]: suite["energy"]["dataset"]} if "energy" in suite else {})


def encoders_behind(encoders: Mapping[str, Any], name: str) -> set[str]:
    """All ancestors of an encoder; includes the encoder itself if its definition is circular."""
    found: set[str] = set()
    pending = [name]
    while pending:
        block = encoders.get(pending.pop(), {})
        named = [listed(run.get(axis)) for run in block.get("runs", []) for axis in ("encoder", "teacher")]
        starts = {one for several in named for one in several if one}
        starts |= {block["adapt"]["base"]} if "adapt" in block else set()
        pending += starts - found
        found |= starts
    return found


def encoders_reached(encoders: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """Encoders, and all behind them."""
    names = set(names)
    return names.union(*(encoders_behind(encoders, name) for name in names))


def form_of(config: Mapping[str, Any], section: str, name: str) -> str | None:
    """The form of a section's block; None if all blocks are alike, or the block itself is wrong."""
    block = config[section][name] if section in config else {}
    match section:
        case "datasets":
            return str(block["form"])
        case "corpora" if "round_trip" in block:
            return "triples" if block["round_trip"]["form"] == "pairs" else "round trips"
        case "corpora":
            form = config["datasets"].get(block["dataset"], {}).get("form")
            return form if form in ("sentences", "triples") else None  # others are no corpus
        case "encoders" if "runs" in block:
            return "single runs" if len(block["runs"]) == 1 else "several runs"
        case "encoders":
            return "single encoders"
        case "methods":
            return "methods with a base" if "base" in block else "methods without a base"
    return None


def references(value: Any, kind: Any, path: str = "") -> Iterator[tuple[str, str, Refers]]:
    """Every name in a part of the configuration that its class marks: where it is, and what it refers to."""
    for form in forms_of(kind):
        refers = next((mark for mark in form.marks if isinstance(mark, Refers)), None)
        inside = get_args(form.kind)
        if isinstance(value, str) and refers and form.plain is str:
            yield path, value, refers
        elif isinstance(value, Settings) and isinstance(form.kind, type) and isinstance(value, form.kind):
            for name, field in type(value).model_fields.items():
                beside = (
                    isinstance(value, MethodBlock) and name == "method"
                )  # its keys are those of the block
                place = path if beside else f"{path}.{name}" if path else name
                yield from references(
                    getattr(value, name), Annotated[field.annotation, *field.metadata, None], place
                )
        elif isinstance(value, dict) and form.plain is dict:
            for key, one in value.items():
                yield from references(key, inside[0], f"{path}.{key}")
                yield from references(one, inside[1], f"{path}.{key}")
        elif isinstance(value, list | tuple) and form.plain in (list, tuple):
            for number, one in enumerate(value):
                place = path if isinstance(one, str) else f"{path}.{number}"
                yield from references(one, Annotated[inside[0], *form.marks, None], place)


def misnamed(
    config: Mapping[str, Any], named: Iterable[tuple[str, str, Refers]], place: str = ""
) -> Iterator[str]:
    """Names that are not defined in their sections, and those of blocks of another form than is read there."""
    for path, name, refers in named:
        if found := [*unknown(name, at(dict(config), refers.section), f"{place}{path}")]:
            yield from found
        elif refers.forms and (form := form_of(config, refers.section, name)) not in (None, *refers.forms):
            wanted = " or ".join(refers.forms)
            yield f"{place}{path}: {name} has the form {form}; this key needs {wanted}. Name another."


def reference_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Names in the configuration, without grids, that refer to nothing."""
    yield from reader_findings(config)
    yield from misnamed(config, references(Study.strictly(config), Study))
    for name, encoder in config["encoders"].items():
        for number, block in enumerate(encoder.get("runs", [])):
            yield from _seed_findings(config, block, f"encoders.{name}.runs.{number}")
        if name in encoders_behind(config["encoders"], name):
            yield f"encoders.{name}: it starts from itself, by way of its runs or base. Name another."
    yield from _suite_findings(config)
    yield from _density_findings(config)


def _suite_findings(config: Mapping[str, Any]) -> Iterator[str]:
    kinds: dict[str, str] = {}
    for kind, suites in config["suites"].items():
        for name, suite in suites.items():
            place = f"suites.{kind}.{name}"
            if name in kinds:
                found = f"suites.{kinds[name]} has that name too"
                yield f"{place}: {found}. Rename one: tables tell suites apart by name."
            kinds[name] = kind
            read = Refers("datasets", tuple(filter(None, [SUITES[kind].form])))
            named = ((f"{place}.datasets", dataset, read) for dataset in suite.get("datasets", []))
            yield from misnamed(config, named)
            for task in suite.get("graded", []):
                yield from unknown(task, suite["datasets"], f"{place}.graded")
            for task, one in suite.get("positives", {}).items():
                yield from _threshold_findings(config, one, f"{place}.positives.{task}.threshold")


def _threshold_findings(config: Mapping[str, Any], measure: Mapping[str, Any], place: str) -> Iterator[str]:
    """A threshold outside the range of scores, which no pair or every pair passes."""
    low, high = _score_range(config, measure["dataset"])
    threshold, comparison = measure["threshold"], measure["comparison"]
    if not low <= threshold <= high or (threshold == high and comparison == "above"):
        found = f"{comparison} {threshold:g}; scores of {measure['dataset']} reach from {low:g} to {high:g}"
        yield f"{place}: {found}. Choose one of them."


def _score_range(config: Mapping[str, Any], dataset: str) -> tuple[float, float]:
    """Lowest and highest score that a dataset may have, infinite where it says none."""
    low, high = config["datasets"].get(dataset, {}).get("contract", {}).get("score_range") or (-inf, inf)
    return low, high


def _density_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Figures of cosines by judgement that would be empty, or leave out some judgements."""
    task, edges = (config["report"]["cosine_density"][key] for key in ("task", "edges"))
    place = "report.cosine_density"
    evaluated = [one for suite in config["suites"]["sts"].values() for one in suite.get("datasets", [])]
    if task in config["datasets"] and task not in evaluated:
        found = f"no suite of suites.sts has {task}, so nothing would be drawn"
        yield f"{place}.task: {found}. Name one that they have."
    low, high = _score_range(config, task)
    if inf not in (-low, high) and (edges[0] > low or edges[-1] < high):
        found = (
            f"{', '.join(f'{edge:g}' for edge in edges)}; judgements of {task} reach from {low:g} to {high:g}"
        )
        yield f"{place}.edges: {found}. Widen them."


def grid_findings(config: Mapping[str, Any], grid: Mapping[str, Any], place: str) -> Iterator[str]:
    """Names in a grid that refer to nothing."""
    named = [*references(Grid.strictly(grid), Grid)]
    yield from misnamed(
        config, (one for one in named if not one[2].section.startswith("grid.")), f"{place}: "
    )
    for number, block in enumerate(grid["runs"]):
        yield from _seed_findings(config, block, f"{place}: runs.{number}")
    try:
        runs, baselines = runs_of(grid), baselines_of(grid).values()
    except ConfigError as error:
        yield f"{place}: {error}"
        return
    there = {"grid": _names_in(config, grid, runs)}
    yield from misnamed(there, (one for one in named if one[2].section.startswith("grid.")), f"{place}: ")
    for baseline in dict.fromkeys(filter(None, baselines)):
        yield from unknown(baseline, runs, f"{place}: baseline")
    yield from _word_findings(config, grid, runs, place)
    yield from ambiguity_findings(config.get("names", {}), runs, place)
    yield from _findings_in_columns(config, grid, place)


def _names_in(
    config: Mapping[str, Any], grid: Mapping[str, Any], runs: Mapping[str, Any]
) -> dict[str, Iterable[str]]:
    """Names that a grid defines for its own references."""
    asked = {suite for suites in grid["suites"].values() for suite in suites}
    defined = {suite for suites in config["suites"].values() for suite in suites}
    headings = [column["heading"] for _, column in numbered_columns(grid) if not column.get("measured")]
    swept = {setting for block in grid["runs"] for key in ("sweep", "at") for setting in block.get(key, {})}
    among = (
        asked if asked <= defined else asked | defined
    )  # a column may be of the suite that is misspelt above it
    scored = (suite for name, suite in config["suites"]["sts"].items() if name in among)
    return {
        "runs": runs,
        "suites": among,
        "headings": headings,
        "swept": swept,
        "positives": [task for suite in scored for task in suite.get("positives", {})],
    }


def _word_findings(
    config: Mapping[str, Any], grid: Mapping[str, Any], runs: Mapping[str, Any], place: str
) -> Iterator[str]:
    named = {run.corpus for run in runs.values()} & config["corpora"].keys()
    corpora = sorted({base_of(config, corpus) for corpus in named})
    if "word_frequencies" in grid and len(corpora) > 1:
        found = f"it shows the words of one corpus, and the runs train on {', '.join(corpora)}"
        yield f"{place}: word_frequencies: {found}. Leave it out, or give each corpus an experiment of its own."


def _findings_in_columns(config: Mapping[str, Any], grid: Mapping[str, Any], place: str) -> Iterator[str]:
    """Columns against what their suites write."""
    lists = dict.fromkeys(chain.from_iterable(grid["suites"].values()), config["mteb"]["lists"])
    for suite in grid["suites"].get("mteb", ()):
        if selection(config["suites"].get("mteb", {}).get(suite, {})):
            try:
                lists[suite] = lists_of(config, suite)
            except ConfigError as error:
                yield from str(error).splitlines()
                del lists[suite]
    asked = {
        suite: SUITES[kind].parse(config["suites"][kind][suite], f"suites.{kind}.{suite}")
        for kind, suites in grid["suites"].items()
        for suite in suites
        if suite in config["suites"].get(kind, {}) and suite in lists
    }
    for number, column in numbered_columns(grid):
        if suite := asked.get(column.get("suite")):
            where = f"{place}: columns.{number} ({column['heading']})"
            yield from column_findings(column, suite.shown(lists[column["suite"]]), suite.timed(), where)


def column_findings(
    column: Mapping[str, Any], scores: Mapping[str, Cells], times: Mapping[str, Cells], place: str
) -> Iterator[str]:
    """Columns that no file of scores holds, or no table of times if the column is measured."""
    suite, task, aggregation, metric = (column[key] for key in ("suite", "task", "aggregation", "metric"))
    measured = column.get("measured", False)
    tasks, others = (times, scores) if measured else (scores, times)
    if metric in {name for _, name in others.get(task, ())}:
        what = "no time" if measured else "a time"
        yield f"{place}.measured: {metric} of suite {suite} is {what}. Write measured: {str(not measured).lower()}."
        return
    if task not in tasks:
        yield f"{place}.task: {task} is no task of suite {suite}. {advice(task, sorted(tasks))}"
        return
    metrics = sorted({name for _, name in tasks[task]})
    if not any(fnmatchcase(metric, name) for name in metrics):
        yield f"{place}.metric: suite {suite} writes no {metric} of {task}. {advice(metric, metrics)}"
        return
    asked = sorted(pattern for pattern, name in tasks[task] if fnmatchcase(metric, name))
    if not any(fnmatchcase(aggregation, pattern) for pattern in asked):
        known = ", ".join(f'"{pattern}"' for pattern in asked)
        yield f'{place}.aggregation: suite {suite} has no "{aggregation}" of {metric}. Known: {known}.'


def _seed_findings(config: Mapping[str, Any], block: Mapping[str, Any], place: str) -> Iterator[str]:
    """Whether runs made of runs say that they have their seeds, and no others."""
    of_seeds = block.get("of_seeds", False)
    for encoder in listed(block["encoder"]):
        is_made = "runs" in config["encoders"].get(encoder, {}) and not block.get("corpus")
        if encoder in config["encoders"] and of_seeds != is_made:
            yield (
                f"{place}.of_seeds: true for a frozen run of an encoder that consists of runs, left out "
                f"for others; {encoder} has of_seeds {of_seeds}."
            )


def reader_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Readers, roles and options that sources of datasets name and that are not there, or not theirs."""
    for name, block in config["datasets"].items():
        for number, source in enumerate(block.get("sources", [])):
            if "reader" in source:
                yield from _source_findings(source, block["form"], f"datasets.{name}.sources.{number}")


def _source_findings(source: Mapping[str, Any], form: str, place: str) -> Iterator[str]:
    name, files = source["reader"], source["files"]
    if found := [*unknown(name, READERS, f"{place}.reader")]:
        yield from found
        return
    takes = READERS[name]
    for role in files if takes.roles else ():
        if role not in takes.roles:
            yield f"{place}.files: {role} is no role of a file of {name}. {advice(role, takes.roles)}"
    for role in takes.roles if takes.all_roles else ():
        if role not in files:
            yield f"{place}.files: {name} needs a file of role {role}. Name it there."
    options = source.get("options", {})
    settings, wrong = read(takes, options, f"{place}.options.")
    yield from wrong
    forms = settings.returns if settings else takes.forms
    if form not in forms:
        yield f"{place}.reader: {name} reads {' or '.join(forms)}, not {form}. Name another, or correct form."


def called_runs(names: Config, runs: Mapping[str, Run]) -> dict[str, list[str]]:
    """Each run's name in words, in as many parts as its identifier has between dots."""
    return {name: _in_words(names, name, run) for name, run in runs.items()}


def _in_words(names: Config, name: str, run: Run) -> list[str]:
    """Method, encoder and corpus, then what is behind: a reading, a teacher, a tag or values of a sweep."""
    axes = {"methods": run.method, "encoders": run.encoder, "corpora": run.corpus}
    found = [names.get(kind, {}).get(part, part) for kind, part in axes.items() if part]
    teacher = f"taught by {names.get('encoders', {}).get(run.teacher, run.teacher)}"
    others = name.split(".")[len(found) :]
    return [*found, *(teacher if part == run.teacher else part.replace("_", " ") for part in others)]


def called(names: Config, kind: str, identifiers: Iterable[str]) -> dict[str, str]:
    """Names of some blocks of one kind; those that have none are left out."""
    return {name: names[kind][name] for name in sorted(set(identifiers)) if name in names.get(kind, {})}


def ambiguity_findings(names: Config, runs: Mapping[str, Run], place: str) -> Iterator[str]:
    """Two runs of a grid that readers could not tell apart."""
    first: dict[tuple[str, ...], str] = {}
    for name, parts in called_runs(names, runs).items():
        if (other := first.setdefault(tuple(parts), name)) != name:
            yield f"{place}: {other} and {name} are both called {', '.join(parts)}. Change names."
