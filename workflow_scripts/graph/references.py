"""Whether everything that the configuration names is there: blocks of the form that is read, tasks, files, claims.

If a rule's inputs are missing but its output exists, Snakemake treats the output as a source, and a wrong name goes
unnoticed on a finished study.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, get_args

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError, advice, shown, unknown
from workflow_scripts.graph.blocks import definable_rows, not_aggregated, tables_of
from workflow_scripts.graph.call import at
from workflow_scripts.graph.mistakes import read
from workflow_scripts.graph.schema import (
    AdaptedEncoder,
    AnyEncoder,
    Configuration,
    EncoderFromRuns,
    GridBlock,
    MethodBlock,
)
from workflow_scripts.settings.corpora import Corpus, LlmPool, RoundTripCorpus
from workflow_scripts.settings.grids import (
    Column,
    MeanColumn,
    RatioColumn,
    RunBlock,
    baselines_of,
    is_measured,
    listed,
    runs_of,
)
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.report import CLAIMS_FOLDER, Claim, Comparison, claims_in, papers_in
from workflow_scripts.settings.sources import READERS, FileSource, HubSource
from workflow_scripts.settings.suites import Cells, Suite

_CLAIMED = (Column, MeanColumn, RatioColumn)
"""Columns that claims can be about: paths and gains are of single runs."""


def source_corpus(settings: Configuration, corpus: str) -> str:
    """The corpus that is cut from a dataset, behind one that is made from it."""
    block = settings.corpora[corpus]
    return block.round_trip.corpus if isinstance(block, RoundTripCorpus) else corpus


def corpus_datasets(settings: Configuration, corpora: Iterable[str]) -> list[str]:
    """Datasets that corpora are cut from, and those whose sentences are added to them."""
    blocks = [settings.corpora[source_corpus(settings, corpus)] for corpus in corpora]
    cut = (block for block in blocks if isinstance(block, Corpus))
    return sorted({name for block in cut for name in (block.dataset, block.also) if name})


def corpus_columns(settings: Configuration, corpus: str) -> tuple[str, ...]:
    """Columns that a method can read of a corpus; round trips have no negatives."""
    if block_form(settings, "corpora", corpus) != "triples":
        return ("anchor",)
    negatives = () if isinstance(settings.corpora[corpus], RoundTripCorpus) else ("negative",)
    return ("anchor", "positive", *negatives)


def _starts(encoder: AnyEncoder | None) -> set[str]:
    """Encoders that one is made from."""
    match encoder:
        case AdaptedEncoder(adapt=adapt):
            return {adapt.base}
        case EncoderFromRuns(runs=runs):
            return {
                name for run in runs for axis in (run.encoder, run.teacher) for name in listed(axis) if name
            }
    return set()


def encoders_reached(encoders: Mapping[str, AnyEncoder], names: Iterable[str]) -> set[str]:
    """Encoders, and all that they are made from."""
    found, pending = set[str](), {*names}
    while pending:
        found |= pending
        pending = set().union(*(_starts(encoders.get(name)) for name in pending)) - found
    return found


def block_form(settings: Configuration, section: str, name: str) -> str | None:
    """The form of a section's block; None if all blocks are alike, or the block itself is wrong."""
    block = at(settings, section)[name]
    match section:
        case "datasets":
            return str(block.form)
        case "corpora" if isinstance(block, RoundTripCorpus):
            return "triples" if block.round_trip.form == "pairs" else "round trips"
        case "corpora":
            dataset = getattr(settings, "datasets", {}).get(block.dataset)
            form = dataset and dataset.form
            return form if form in ("sentences", "triples") else None  # others are no corpus
        case "encoders" if isinstance(block, EncoderFromRuns):
            return "single runs" if len(block.runs) == 1 else "several runs"
        case "encoders":
            return "single encoders"
        case "methods":
            return "methods with a base" if block.base else "methods without a base"
    return None


@cache
def _marks(kind: type[Settings]) -> dict[str, list[Refers]]:
    """The marks of the names in each setting of a class."""

    def within(part: Any) -> list[Refers]:
        return (
            [part] if isinstance(part, Refers) else [mark for one in get_args(part) for mark in within(one)]
        )

    fields = kind.model_fields.items()
    return {key: within(Annotated[field.annotation, *field.metadata, None]) for key, field in fields}


def references(value: Any, path: str = "", marks: Sequence[Refers] = ()) -> Iterator[tuple[str, str, Refers]]:
    """Every name in some settings that its class marks: where it is, and what it refers to."""
    match value:
        case Settings():
            for key, part in value:
                place = f"{path}.{key}".lstrip(".")
                # In the configuration, the settings of a method are keys of its block.
                place = place.removesuffix(".method") if isinstance(value, MethodBlock) else place
                yield from references(part, place, _marks(type(value))[key])
        case str():
            yield from ((path, value, mark) for mark in marks)
        case Mapping():
            for key, part in value.items():
                yield from ((f"{path}.{key}", key, mark) for mark in marks)
                yield from references(part, f"{path}.{key}")
        case list() | tuple():
            for number, part in enumerate(value):
                place = path if isinstance(part, str) else f"{path}.{number}"
                yield from references(part, place, marks)


def misnamed(
    settings: Configuration,
    named: Iterable[tuple[str, str, Refers]],
    place: str = "",
    own: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> Iterator[str]:
    """Names that are not defined in their sections, and those of blocks of another form than is read there.

    Args:
        settings: Sections without mistakes; a name of another section is not looked up.
        named: Place, name and section (``references``).
        place: In front of every line.
        own: Names that a grid defines for its own references, by what these refer to.
    """
    for path, name, refers in named:
        section, _, _ = refers.section.partition(".")
        if refers.section in own:
            yield from unknown(name, own[refers.section], f"{place}{path}")
        elif section in settings.model_fields_set:
            if found := [*unknown(name, at(settings, refers.section), f"{place}{path}")]:
                yield from found
            elif refers.forms:
                form = block_form(settings, section, name)
                if form not in (None, *refers.forms):
                    wanted = " or ".join(refers.forms)
                    yield f"{place}{path}: {name} has the form {form}; this key needs {wanted}. Name another."


def headings_in(grid: GridBlock) -> dict[str, list[str]]:
    """Headings that a grid defines for its own references."""
    columns = [column for _, column in grid.numbered() if not is_measured(column)]
    scores = [column.heading for column in columns if isinstance(column, Column)]
    means = [column.heading for column in columns if isinstance(column, MeanColumn)]
    headings = [column.heading for column in columns]
    return {"grid.headings": headings, "grid.scores": scores, "grid.scores and means": scores + means}


def encoder_findings(settings: Configuration) -> Iterator[str]:
    """Encoders that start from themselves, and seeds of the runs that encoders consist of."""
    for name, encoder in settings.encoders.items():
        for number, block in enumerate(encoder.runs if isinstance(encoder, EncoderFromRuns) else ()):
            yield from _seed_findings(settings, block, f"encoders.{name}.runs.{number}")
        if name in encoders_reached(settings.encoders, _starts(encoder)):
            yield f"encoders.{name}: it starts from itself, by way of its runs or base. Name another."


def suite_findings(settings: Configuration) -> Iterator[str]:
    """Suites of one name."""
    kinds: dict[str, str] = {}
    for kind, suites in settings.suites.by_kind.items():
        for name in suites:
            if name in kinds:
                found = f"suites.{kinds[name]} has that name too"
                yield f"suites.{kind}.{name}: {found}. Rename one: tables tell suites apart by name."
            kinds[name] = kind


def grid_findings(settings: Configuration, grids: Mapping[str, GridBlock]) -> Iterator[str]:
    """Names in grids that refer to nothing in them, two runs of one name, and columns that no suite writes."""
    for name, grid in grids.items():
        place = f"experiments/{name}.yaml"
        if name in (*settings.extraction.tables, *settings.extraction.statistics):
            yield f"{place}: a table of the extraction study has that name. Rename the file."
        for number, block in enumerate(grid.runs):
            yield from _seed_findings(settings, block, f"{place}: runs.{number}")
        try:
            runs, baselines = runs_of(grid), baselines_of(grid).values()
        except ConfigError as error:
            yield f"{place}: {error}"
            continue
        own = _names_in(settings, grid, runs)
        named = (one for one in references(grid) if one[2].section in own)
        yield from misnamed(settings, named, f"{place}: ", own)
        yield from unknown(dict.fromkeys(filter(None, baselines)), runs, f"{place}: baseline")
        yield from _findings_in_columns(settings, grid, place)


def _names_in(settings: Configuration, grid: GridBlock, runs: Iterable[str]) -> dict[str, Iterable[str]]:
    """Names besides headings that a grid defines for its own references."""
    asked = {*chain.from_iterable(grid.suites.by_kind.values())}
    defined = {*chain.from_iterable(settings.suites.by_kind.values())}
    # A column may be of the suite that is misspelt above it.
    among = asked if asked <= defined else asked | defined
    return {
        "grid.runs": runs,
        "grid.suites": among,
        "grid.swept": {setting for block in grid.runs for setting in (*block.sweep, *block.at)},
        "grid.positives": [
            task for name, suite in settings.suites.sts.items() if name in among for task in suite.positives
        ],
    }


def _findings_in_columns(settings: Configuration, grid: GridBlock, place: str) -> Iterator[str]:
    """Columns against what their suites write."""
    asked: dict[str, Suite] = {}
    for kind, names in grid.suites.by_kind.items():
        known = settings.suites.by_kind[kind]
        suites = {name: known[name] for name in names if name in known}
        asked |= {
            name: suite
            for name, suite in suites.items()
            if {*suite.tasks.values()} <= settings.datasets.keys()
        }
    for number, column in grid.numbered():
        if isinstance(column, Column) and (suite := asked.get(column.suite)):
            where = f"{place}: columns.{number} ({column.heading})"
            yield from column_findings(column, suite.written(settings.mteb.lists), suite.timed(), where)


def column_findings(
    column: Column, scores: Mapping[str, Cells], times: Mapping[str, Cells], place: str
) -> Iterator[str]:
    """Columns that no file of scores holds, or no table of times if the column is measured."""
    suite, task, metric, measured = column.suite, column.task, column.metric, column.measured
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
    asked = {pattern for pattern, name in tasks[task] if fnmatchcase(metric, name)}
    yield from not_aggregated(column.aggregation, asked, f"{place}.aggregation: suite {suite}", metric)


def _seed_findings(settings: Configuration, block: RunBlock, place: str) -> Iterator[str]:
    """Whether runs made of runs say that they have their seeds, and no others."""
    for encoder in listed(block.encoder):
        is_made = isinstance(settings.encoders.get(encoder), EncoderFromRuns) and not block.corpus
        if encoder in settings.encoders and block.of_seeds != is_made:
            yield (
                f"{place}.of_seeds: true for a frozen run of an encoder that consists of runs, left out "
                f"for others; {encoder} has of_seeds {shown(block.of_seeds)}."
            )


def reader_findings(settings: Configuration) -> Iterator[str]:
    """Readers, roles and options that sources of datasets name and that are not there, or not theirs."""
    for name, block in settings.datasets.items():
        for number, source in enumerate(block.sources):
            if not isinstance(source, HubSource):
                yield from _source_findings(source, block.form, f"datasets.{name}.sources.{number}")


def _source_findings(source: FileSource, form: str, place: str) -> Iterator[str]:
    name, files = source.reader, source.files
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
    settings, wrong = read(takes, source.options, f"{place}.options.")
    yield from wrong
    forms = settings.returns if settings else takes.forms
    if form not in forms:
        yield f"{place}.reader: {name} reads {' or '.join(forms)}, not {form}. Name another, or correct form."


# Files of the repository


def resource_findings(settings: Configuration, grids: Mapping[str, GridBlock], root: Path) -> Iterator[str]:
    """Names in the configuration and its grids of files below ``resources`` that are not there."""
    folder = root / "resources"
    yield from missing(folder / "tokens", "json", settings.extraction.bias_list, "extraction.bias_list")
    for name, pool in settings.exemplars.items():
        if isinstance(pool, LlmPool):
            yield from missing(folder / "prompts", "txt", pool.prompt, f"exemplars.{name}.prompt")
    for name, grid in grids.items():
        for table in grid.published:
            yield from missing(folder / "published", "csv", table, f"experiments/{name}.yaml: published")


def missing(folder: Path, ending: str, name: str, place: str) -> Iterator[str]:
    """A finding where a folder of ``resources`` lacks a file that is named at a place of the configuration."""
    if not (folder / f"{name}.{ending}").exists():
        known = sorted(file.stem for file in folder.glob(f"*.{ending}"))
        yield f"{place}: no file resources/{folder.name}/{name}.{ending}. {advice(name, known)}"


def data_root_findings(settings: Configuration, data_root: Path | None) -> Iterator[str]:
    """Folders on this machine that are named and not there, or lie where nothing of a study may."""
    if data_root is not None and not data_root.is_dir():
        place = "data_root" if settings.data_root else "environment variable SEMBLANCE_DATA"
        yield f"{place}: {data_root} is not a folder. Name the folder of local data, or none."
    answers = Path(settings.answers)
    if answers.is_absolute() or ".." in answers.parts:
        yield (
            f"answers: {settings.answers} is outside the study's folder. Name a path below it; "
            "the environment variable SEMBLANCE_ANSWERS may name another place."
        )


def claim_findings(settings: Configuration, grids: Mapping[str, GridBlock], root: Path) -> Iterator[str]:
    """Mistakes in the tables of claims that a study names, and in their references to its tables.

    Args:
        settings: The configuration, which is sound.
        grids: Its grids by name, likewise.
        root: Folder of the Snakefile.
    """
    known, scale = papers_in(root / CLAIMS_FOLDER), settings.claims.scale
    for paper in settings.claims.papers:
        if paper not in known:
            yield f"claims.papers: no file {paper}.csv in {CLAIMS_FOLDER}. {advice(paper, known)}"
            continue
        try:
            rows = claims_in(root / CLAIMS_FOLDER, paper, scale)
        except ConfigError as error:
            yield str(error)
            continue
        for place, row in rows.items():
            if not row["compared"]:
                yield f"{place}: neither {scale}_table nor {scale}_note. Name a table, or the reason why none tests it."
                continue
            claim, found = read(Claim, row, f"{place}: ")
            yield from found
            if claim and isinstance(claim.compared, Comparison):
                yield from _cell_findings(settings, grids, root, claim.compared, f"{place}: {scale}_")


def _cell_findings(
    settings: Configuration, grids: Mapping[str, GridBlock], root: Path, compared: Comparison, place: str
) -> Iterator[str]:
    """A table that does not exist, and cells that a table of this study does not have."""
    table, for_extraction = compared.table, tables_of(settings.extraction)
    runs: Iterable[str]
    if table in grids:
        held = (column for _, column in grids[table].numbered() if not is_measured(column))
        runs, headings = runs_of(grids[table]), {one.heading for one in held if isinstance(one, _CLAIMED)}
    elif table in for_extraction:
        runs, headings = definable_rows(settings.extraction, table)
    else:
        tables = {file.stem for file in (root / "config/experiments").glob("*.yaml")} | set(for_extraction)
        yield from unknown(table, tables, f"{place}table")
        return
    for column, known in (
        ("ours", runs),
        ("heading", headings),
        ("theirs", runs),
        ("their_heading", headings),
    ):
        yield from unknown(getattr(compared, column), known, f"{place}{column}")
