"""Whether every name that the configuration uses is defined, and of the form that its user reads."""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, get_args

from workflow_scripts.errors import ConfigError, advice, shown, unknown
from workflow_scripts.graph.benchmarks import selection, task_lists
from workflow_scripts.graph.mistakes import meant_form, read
from workflow_scripts.graph.schema import Grid
from workflow_scripts.graph.slices import Config, at
from workflow_scripts.settings.grids import Run, baselines_of, listed, numbered_columns, runs_of
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.readers import READERS
from workflow_scripts.settings.suites import SUITES, Cells


def source_corpus(config: Mapping[str, Any], corpus: str) -> str:
    """The corpus that is cut from a dataset, behind one that is made from it."""
    block = config["corpora"][corpus]
    return block["round_trip"]["corpus"] if "round_trip" in block else corpus


def corpus_datasets(config: Mapping[str, Any], corpora: Iterable[str]) -> list[str]:
    """Datasets that corpora are cut from, and those whose sentences are added to them."""
    blocks = [config["corpora"][source_corpus(config, corpus)] for corpus in corpora]
    return sorted({name for block in blocks for name in (block["dataset"], block.get("also")) if name})


def corpus_columns(config: Mapping[str, Any], corpus: str) -> tuple[str, ...]:
    """Columns that a method can read of a corpus; round trips have no negatives."""
    if block_form(config, "corpora", corpus) != "triples":
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


def block_form(config: Mapping[str, Any], section: str, name: str) -> str | None:
    """The form of a section's block; None if all blocks are alike, or the block itself is wrong."""
    block = config[section][name] if section in config else {}
    match section:
        case "datasets":
            return str(block["form"])
        case "corpora" if "round_trip" in block:
            return "triples" if block["round_trip"]["form"] == "pairs" else "round trips"
        case "corpora":
            form = config.get("datasets", {}).get(block["dataset"], {}).get("form")
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
    form = meant_form(kind, value)
    if form is None:
        return
    if isinstance(value, str):
        yield from ((path, value, mark) for mark in form.marks if isinstance(mark, Refers))
    for key, part in _parts(value):
        place = path if isinstance(value, list) and isinstance(part, str) else f"{path}.{key}".lstrip(".")
        if form.plain is dict and not form.is_block:
            yield from references(key, get_args(form.kind)[0], place)
        yield from references(part, form.part(value, key), place)


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    """Keys or numbers with their parts of a value."""
    return (
        value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    )


def misnamed(
    config: Mapping[str, Any], named: Iterable[tuple[str, str, Refers]], place: str = ""
) -> Iterator[str]:
    """Names that are not defined in their sections, and those of blocks of another form than is read there.

    Args:
        config: Sections without mistakes; a name of another section is not looked up.
        named: Place, name and section (``references``).
        place: In front of every line.
    """
    for path, name, refers in named:
        if refers.section.partition(".")[0] not in config:
            continue
        if found := [*unknown(name, at(dict(config), refers.section), f"{place}{path}")]:
            yield from found
        elif refers.forms and (form := block_form(config, refers.section, name)) not in (None, *refers.forms):
            wanted = " or ".join(refers.forms)
            yield f"{place}{path}: {name} has the form {form}; this key needs {wanted}. Name another."


def encoder_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Encoders that start from themselves, and seeds of the runs that encoders consist of."""
    for name, encoder in config["encoders"].items():
        for number, block in enumerate(encoder.get("runs", [])):
            yield from _seed_findings(config, block, f"encoders.{name}.runs.{number}")
        if name in encoders_behind(config["encoders"], name):
            yield f"encoders.{name}: it starts from itself, by way of its runs or base. Name another."


def suite_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Datasets of another form than their suite scores, and suites of one name."""
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


def grid_findings(config: Mapping[str, Any], grid: Mapping[str, Any], place: str) -> Iterator[str]:
    """Names in a grid that refer to nothing in it, two runs of one name, and columns that no suite writes."""
    for number, block in enumerate(grid["runs"]):
        yield from _seed_findings(config, block, f"{place}: runs.{number}")
    try:
        runs, baselines = runs_of(grid), baselines_of(grid).values()
    except ConfigError as error:
        yield f"{place}: {error}"
        return
    yield from misnamed({"grid": _names_in(config, grid, runs)}, references(grid, Grid), f"{place}: ")
    for baseline in dict.fromkeys(filter(None, baselines)):
        yield from unknown(baseline, runs, f"{place}: baseline")
    yield from ambiguity_findings(config["names"], runs, place)
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
    scored = (suite for name, suite in config["suites"].get("sts", {}).items() if name in among)
    return {
        "runs": runs,
        "suites": among,
        "headings": headings,
        "swept": swept,
        "positives": [task for suite in scored for task in suite.get("positives", {})],
    }


def _findings_in_columns(config: Mapping[str, Any], grid: Mapping[str, Any], place: str) -> Iterator[str]:
    """Columns against what their suites write."""
    lists = dict.fromkeys(chain.from_iterable(grid["suites"].values()), config["mteb"]["lists"])
    for suite in grid["suites"].get("mteb", ()):
        if selection(config["suites"].get("mteb", {}).get(suite, {})):
            try:
                lists[suite] = task_lists(config, suite)
            except ConfigError as error:
                yield from str(error).splitlines()
                del lists[suite]
    asked = {
        suite: SUITES[kind].parse(config["suites"][kind][suite], f"suites.{kind}.{suite}")
        for kind, suites in grid["suites"].items()
        for suite in suites
        if suite in config["suites"].get(kind, {})
        and suite in lists
        and {*tasks_in(config["suites"][kind][suite]).values()} <= config["datasets"].keys()
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
        yield f"{place}.measured: {metric} of suite {suite} is {what}. Write measured: {shown(not measured)}."
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
                f"for others; {encoder} has of_seeds {shown(of_seeds)}."
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
            yield f"{place}.files: {role} is not a role of a file of {name}. {advice(role, takes.roles)}"
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
