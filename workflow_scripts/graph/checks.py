"""The check of a whole study before any job: keys, names, and every run, column and file it asks for.

It is made whenever the graph is built, so that it imports nothing that jobs alone need. There are three rounds: keys,
types and ranges; names; conflicts between settings that are right by themselves. Each round reports all mistakes of
its kind, and the next round runs only if the round before it found none.

Names are looked up because Snakemake treats an output as a source if it exists and its rule's inputs are missing: a
wrong name would go unnoticed on a finished study.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_args

from workflow_scripts.errors import ConfigError, advice, one_line_errors, refuse, shown, unknown
from workflow_scripts.graph.clone import from_here
from workflow_scripts.graph.configuration import GRIDS, placed, read_mapping
from workflow_scripts.graph.extraction import (
    block_findings,
    definable_rows,
    extraction_findings,
    not_aggregated,
    tables_of,
)
from workflow_scripts.graph.folders import cache_findings
from workflow_scripts.graph.gaps import gap_runs
from workflow_scripts.graph.slices import Config, as_json, get_path
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.corpora import RoundTripCorpus
from workflow_scripts.settings.encoders import AdaptedEncoder, EncoderFromRuns
from workflow_scripts.settings.grids import (
    EXTRACTION,
    Column,
    GridBlock,
    MeanColumn,
    Run,
    RunBlock,
    expand,
    is_measured,
    listed,
)
from workflow_scripts.settings.methods import MethodConfig, ReductionBlock
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.overrides import Override
from workflow_scripts.settings.readouts import Start
from workflow_scripts.settings.report import CLAIMS_FOLDER, Claim, Comparison, claims_in, papers_in
from workflow_scripts.settings.sources import READERS, FileSource, HubSource
from workflow_scripts.settings.study import Configuration, RunSettings, read_run
from workflow_scripts.settings.suites import Attention, Cells
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.settings.wording import read

_SHOWN = 2
"""Runs that a line names; of more it gives the number."""


def open_study(
    config: Config,
    root: Path,
    configfiles: Iterable[str | Path] = (),
    given: Mapping[str, Any] | None = None,
) -> Study:
    """Check a configuration and expand its grids; ends the process with a line for each thing that is wrong.

    Args:
        config: As ``configuration.load_config`` merges it.
        root: Folder of the Snakefile.
        configfiles: As after --configfile.
        given: Of the command line.
    """
    with one_line_errors():
        plain, findings = read_grids(config, root / "config")
        study, more = checked(config, plain, root)
        files = [*map(from_here, configfiles)]
        refuse(placed(finding, root, files, given or {}) for finding in [*findings, *more])
        assert study
        study.runs  # noqa: B018  (of which two may have one name)
        study = replace(study, gaps=gap_runs(study))
    return study


def read_grids(config: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Grids that can be read, and what is wrong with files that cannot."""
    files = {file.stem: file for file in (folder / "experiments").glob("*.yaml")}
    listed = config.get("experiments")
    grids, findings = dict[str, Any](), list[str]()
    if EXTRACTION in files:
        findings.append(f"{GRIDS}/{EXTRACTION}.yaml: that name is the extraction study's. Rename the file.")
    # Of other things in the list, the check of types says what is wrong.
    names = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    for name in (one for one in names if one != EXTRACTION):
        if name not in files:
            known = advice(name, sorted({EXTRACTION, *files}))
            findings.append(f"experiments: no file {name}.yaml in {GRIDS}. {known}")
            continue
        try:
            grids[name] = read_mapping(files[name])
        except ConfigError as error:
            findings.append(str(error))
    return grids, findings


def checked(config: Config, plain: Mapping[str, Any], root: Path) -> tuple[Study | None, list[str]]:
    """The study, or None with a line for each wrong key, type or range; and what else is wrong with it.

    Args:
        config: The configuration, whatever it holds.
        plain: Its grids by name, likewise.
        root: Folder of the Snakefile.
    """
    settings, found = read(Configuration, config, "")
    grids: dict[str, GridBlock] = {}
    for name, grid in plain.items():
        block, lines = read(GridBlock, grid, f"{GRIDS}/{name}.yaml: ")
        found += lines
        grids |= {name: block} if block else {}
    if found or not settings:
        return None, found
    study = Study(settings, grids, root)
    return study, [*name_findings(study)] or [*sense_findings(study)]


# Names


def _placed(study: Study) -> dict[str, Settings]:
    """The configuration and the grids, by what stands in front of lines about them."""
    return {"": study.settings} | {f"{GRIDS}/{name}.yaml: ": grid for name, grid in study.blocks.items()}


def name_findings(study: Study) -> Iterator[str]:
    """Names of no block or of a block of another form, encoders that start from themselves, and names given twice."""
    settings = study.settings
    for place, block in _placed(study).items():
        yield from misnamed(settings, references(block), place)
        yield from (f"{place}{finding}" for finding in repetitions(block))
    for name, encoder in study.encoders.items():
        if name in study.reached(encoder.starts):
            yield f"encoders.{name}: it starts from itself, by way of its runs or base. Name another."
    kinds: dict[str, str] = {}
    for kind, suites in settings.suites.by_kind.items():
        for name in suites:
            if name in kinds:
                yield (
                    f"suites.{kind}.{name}: suites.{kinds[name]} has that name too. "
                    "Rename one: tables tell suites apart by name."
                )
            kinds[name] = kind
    for name, grid in study.blocks.items():
        place = f"{GRIDS}/{name}.yaml: "
        if name in (*settings.extraction.tables, *settings.extraction.statistics):
            yield f"{place}a table of the extraction study has that name. Rename the file."
        try:
            grid.expanded  # noqa: B018
        except ConfigError as error:
            yield f"{place}{error}"


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
            for key, part in value.parts().items():
                yield from references(part, f"{path}.{key}".lstrip("."), _marks(type(value))[key])
        case str():
            yield from ((path, value, mark) for mark in marks)
        case Mapping():
            for key, part in value.items():
                inside = [replace(mark, section=mark.section.format(key)) for mark in marks]
                yield from references(part, f"{path}.{key}", inside)
        case list() | tuple():
            for number, part in enumerate(value):
                place = path if isinstance(part, str) else f"{path}.{number}"
                yield from references(part, place, marks)


def repetitions(value: Any, path: str = "") -> Iterator[str]:
    """Yield a finding for each list in some settings that has a name or a whole number twice."""
    match value:
        case Settings():
            for key, part in value.parts().items():
                yield from repetitions(part, f"{path}.{key}".lstrip("."))
        case Mapping():
            for key, part in value.items():
                yield from repetitions(part, f"{path}.{key}")
        case list() | tuple():
            named = [part for part in value if isinstance(part, str | int)]
            for part in dict.fromkeys(one for one in named if named.count(one) > 1):
                yield f"{path}: {part} is listed twice. Leave one."
            for number, part in enumerate(value):
                yield from repetitions(part, f"{path}.{number}")


def misnamed(
    settings: Configuration, named: Iterable[tuple[str, str, Refers]], place: str = ""
) -> Iterator[str]:
    """Names that are not defined in their sections, and those of blocks of another form than is read there.

    Args:
        settings: The configuration; names of a grid's own, and of files, are not looked up.
        named: Place, name and section (``references``).
        place: In front of every line.
    """
    for path, name, refers in named:
        section, _, _ = refers.section.partition(".")
        if section in ("grid", "resources"):
            continue
        if found := [*unknown(name, get_path(settings, refers.section), f"{place}{path}")]:
            yield from found
        elif refers.forms and (form := _form(settings, section, name)) not in (None, *refers.forms):
            wanted = " or ".join(refers.forms)
            yield f"{place}{path}: {name} has the form {form}; this key needs {wanted}. Name another."


def _form(settings: Configuration, section: str, name: str) -> str | None:
    """The form of a section's block; None if the block itself is wrong."""
    match section:
        case "datasets":
            return settings.datasets[name].form
        case "corpora":
            corpus = settings.corpora[name]
            if isinstance(corpus, RoundTripCorpus):
                return "triples" if corpus.round_trip.form == "pairs" else "round trips"
            form = settings.datasets[corpus.dataset].form if corpus.dataset in settings.datasets else None
            return form if form in ("sentences", "triples") else None  # others are no corpus
        case "encoders":
            encoder = settings.encoders[name]
            if isinstance(encoder, EncoderFromRuns):
                return "single runs" if len(encoder.runs) == 1 else "several runs"
            return "single encoders"
    assert section == "methods"
    has_base = isinstance(settings.methods[name], ReductionBlock)
    return "methods with a base" if has_base else "methods without a base"


# What settings mean together


def sense_findings(study: Study) -> Iterator[str]:
    """Mistakes of settings whose keys and names are right."""
    settings = study.settings
    yield from reader_findings(settings)
    yield from extraction_findings(settings)
    for name, grid in study.blocks.items():
        yield from _grid_findings(study, grid, f"{GRIDS}/{name}.yaml")
    yield from claim_findings(study)
    yield from _run_findings(study)
    yield from cache_findings(settings.cache)
    yield from _resource_findings(study)


def reader_findings(settings: Configuration) -> Iterator[str]:
    """Readers, roles and options that sources of datasets name and that are not there, or not theirs."""
    for name, block in settings.datasets.items():
        for number, source in enumerate(block.sources):
            if not isinstance(source, HubSource):
                yield from _source_findings(source, block.form, f"datasets.{name}.sources.{number}")


def _source_findings(source: FileSource, form: str, place: str) -> Iterator[str]:
    name, files = source.reader, source.files
    if name not in READERS:
        yield from unknown(name, READERS, f"{place}.reader")
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


def _resource_findings(study: Study) -> Iterator[str]:
    """Names in the configuration and its grids of files below ``resources`` that are not there."""
    for place, block in _placed(study).items():
        for path, name, refers in references(block):
            section, _, folder = refers.section.partition(".")
            if section != "resources":
                continue
            files = (study.root / "resources" / folder).iterdir()
            known = {file.stem: file.suffix for file in sorted(files) if file.suffix != ".md"}
            if name not in known:
                (ending,) = {*known.values()}
                yield f"{place}{path}: no file resources/{folder}/{name}{ending}. {advice(name, known)}"


# Grids and their columns


def _grid_findings(study: Study, grid: GridBlock, place: str) -> Iterator[str]:
    """Names in a grid that refer to nothing in it, and columns that no suite writes."""
    own, lists = _names_in(study.settings, grid), study.settings.mteb.lists
    for path, name, refers in references(grid):
        if refers.section in own:
            yield from unknown(name, own[refers.section], f"{place}: {path}")
    baselines = dict.fromkeys(filter(None, (row.baseline for row in grid.expanded.values())))
    yield from unknown(baselines, own["grid.runs"], f"{place}: baseline")
    for number, column in grid.numbered:
        if isinstance(column, Column) and column.suite in own["grid.suites"]:
            suite, where = study.suites[column.suite].block, f"{place}: columns.{number} ({column.heading})"
            yield from column_findings(column, suite.written(lists), suite.timed(), where)


def _names_in(settings: Configuration, grid: GridBlock) -> dict[str, Collection[str]]:
    """Names that a grid defines for its own references."""
    columns = [column for _, column in grid.numbered if not is_measured(column)]
    scores = [column.heading for column in columns if isinstance(column, Column)]
    means = [column.heading for column in columns if isinstance(column, MeanColumn)]
    asked = {*chain.from_iterable(grid.suites.values())}
    return {
        "grid.headings": [column.heading for column in columns],
        "grid.scores": scores,
        "grid.scores and means": scores + means,
        "grid.runs": grid.expanded,
        "grid.suites": asked,
        "grid.swept": {setting for block in grid.runs for setting in (*block.sweep, *block.at)},
        "grid.positives": [
            task for name, suite in settings.suites.sts.items() if name in asked for task in suite.positives
        ],
    }


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


def claim_findings(study: Study) -> Iterator[str]:
    """Mistakes in the tables of claims that a study names, and in their references to its tables."""
    folder, scale = study.root / CLAIMS_FOLDER, study.settings.claims.scale
    known = papers_in(folder)
    for paper in study.settings.claims.papers:
        if paper not in known:
            yield f"claims.papers: no file {paper}.csv in {CLAIMS_FOLDER}. {advice(paper, known)}"
            continue
        try:
            rows = claims_in(folder, paper, scale)
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
                yield from _cell_findings(study, claim.compared, f"{place}: {scale}_")


def _cell_findings(study: Study, compared: Comparison, place: str) -> Iterator[str]:
    """A table that does not exist, and cells that a table of this study does not have."""
    table, extraction = compared.table, study.settings.extraction
    for_extraction = tables_of(extraction)
    runs: Iterable[str]
    headings: Iterable[str]
    if table in study.blocks:
        own = _names_in(study.settings, study.blocks[table])
        runs, headings = own["grid.runs"], own["grid.headings"]
    elif table in for_extraction:
        runs, headings = definable_rows(extraction, table)
    else:
        tables = {file.stem for file in (study.root / "config/experiments").glob("*.yaml")}
        yield from unknown(table, tables | {*for_extraction}, f"{place}table")
        return
    for column, known in {
        "ours": runs,
        "heading": headings,
        "theirs": runs,
        "their_heading": headings,
    }.items():
        yield from unknown(getattr(compared, column), known, f"{place}{column}")


# Runs


def _reading_findings(study: Study) -> Iterator[str]:
    """Wrong keys, types and ranges of readings, whether a grid uses them or not."""
    for method, block in study.settings.methods.items():
        for reading in block.readings:
            run = Run(method=method, encoder="", corpus=None, reading=reading, seeds=(), overrides=Override())
            place = f"methods.{method}.readings.{reading}."
            yield from (f"{place}{line}" for line in read_run(study.settings, run, partial=True)[1])


def _run_findings(study: Study) -> Iterator[str]:
    settings = study.settings
    if wrong := [*_reading_findings(study)]:  # each run would repeat them
        yield from wrong
        return
    named: set[str | None] = {pool.encoder for pool in settings.exemplars.values()}
    if settings.round_trip.similarity:
        named.add(settings.round_trip.similarity.encoder)
    if EXTRACTION in settings.experiments:
        encoder = settings.extraction.encoder
        named.add(encoder)
        size = study.encoders[encoder].size
        yield from block_findings(settings.extraction, size and size.layers)
        suites = {kind: [suite] for kind, suite in settings.extraction.suites if suite}
        yield from _suite_findings(study, "extraction", suites, [encoder])
    for name, grid in study.blocks.items():
        place, runs = f"{GRIDS}/{name}.yaml", [row.run for row in grid.expanded.values()]
        yield from _block_findings(study, f"{place}: runs", grid.runs, grid.seeds)
        encoders = dict.fromkeys(run.encoder for run in runs)
        yield from _suite_findings(study, place, grid.suites, encoders)
        named |= {*encoders, *(run.teacher for run in runs)}
    reached = study.reached(named)
    for encoder, block in settings.encoders.items():
        if isinstance(block, EncoderFromRuns):
            yield from _block_findings(study, f"encoders.{encoder}.runs", block.runs, used=encoder in reached)
        if isinstance(block, AdaptedEncoder) and encoder in reached:
            place = f"encoders.{encoder}.adapt."
            yield from read(ContinueMlm, study.encoders[encoder].adapting(), place)[1]


def _block_findings(
    study: Study, place: str, blocks: Sequence[RunBlock], seeds: Sequence[int] = (0,), *, used: bool = True
) -> Iterator[str]:
    """Mistakes in runs, a line each; a mistake that several runs share is one line, at the block of the first.

    Args:
        study: The study.
        place: The list of blocks that ask for them.
        blocks: These blocks.
        seeds: Of their runs.
        used: Whether the study has the runs; of others, only keys, types and ranges are checked.
    """
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for number, block in enumerate(blocks):
        for encoder in listed(block.encoder):
            is_made = isinstance(study.settings.encoders[encoder], EncoderFromRuns) and not block.corpus
            if block.of_seeds != is_made:
                yield (
                    f"{place}.{number}.of_seeds: true for a frozen run of an encoder that consists of runs, left out "
                    f"for others; {encoder} has of_seeds {shown(block.of_seeds)}."
                )
        for name, run, _ in expand(block, seeds):
            mistakes = _mistakes(study, name, run) if used else read_run(study.settings, run, partial=True)[1]
            for finding in mistakes:
                found[finding].append((number, name))
    for finding, runs in found.items():
        names = [name for _, name in runs]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"{place}.{runs[0][0]} ({', '.join(names[:_SHOWN])}{more}): {finding}"


def _suite_findings(
    study: Study, place: str, suites: Mapping[str, Iterable[str]], encoders: Iterable[str]
) -> Iterator[str]:
    """Suites that ask for longer sentences than one of the encoders takes, or map the attention of layers it lacks."""
    encoders = [*encoders]
    for kind, names in suites.items():
        for name in names:
            block, where = study.suites[name].block, f"{place}: suites.{kind}.{name}"
            yield from _too_long(study, block, where, encoders)
            layers = block.maps.layers if isinstance(block, Attention) else []
            for encoder in encoders:
                for depth in dict.fromkeys(size.layers for size in study.encoders[encoder].sizes):
                    if outside := [layer for layer in layers if not 1 <= layer <= depth]:
                        yield (
                            f"{where}.maps.layers: {outside[0]}; {encoder} has layers 1 to {depth}. "
                            "Name one of them."
                        )


def _too_long(study: Study, block: Settings, place: str, encoders: Iterable[str]) -> Iterator[str]:
    """Settings of a length, anywhere in a block, above what one of the encoders takes."""
    known = [(size.positions, name) for name in encoders for size in study.encoders[name].sizes]
    most, encoder = min(((most, name) for most, name in known if most), default=(None, ""))
    for key, value in block.parts().items():
        if isinstance(value, Settings):
            yield from _too_long(study, value, f"{place}.{key}", encoders)
        elif most and key in ("max_tokens", "tokens") and value > most:
            yield f"{place}.{key}: {value}; {encoder} takes {most}. Lower it."


def _mistakes(study: Study, name: str, run: Run) -> Sequence[str]:
    settings = study.settings
    readings = settings.methods[run.method].readings
    if run.reading != "default" and run.reading not in readings:
        return [
            f"reading: {run.reading} is not a reading of methods.{run.method}. {advice(run.reading, readings)}"
        ]
    merged, found = study.read_run(name, run)
    if found := found or [*misnamed(settings, references(merged))]:
        return found
    assert merged
    method, encoder = merged.method, study.encoders[run.encoder]
    pool, members = method.exemplar_pool, encoder.members()
    start = Start(
        encoder=run.encoder,
        sizes=encoder.sizes,
        members=len(members) or None,
        frozen=[name for name, member in members.items() if not member.corpus],
        pool_sentences=settings.exemplars[pool].sentences if pool else None,
    )
    trained = _trained(study, run, merged) if run.corpus else ()
    chunked = method.unchunkable() if run.corpus and merged.training.chunk else ()
    return [*trained, *chunked, *_origin(study, run, method), *method.misfits(start)]


def _trained(study: Study, run: Run, merged: RunSettings) -> Iterator[str]:
    """Mistakes in a training, such as no way to choose a checkpoint."""
    settings = study.settings
    yield from _too_long(study, merged.training, "training", [run.encoder])
    yield from _too_long(study, merged.development, "development", [run.encoder])
    if run.teacher:
        yield from _too_long(study, settings.teacher, "teacher", [run.teacher])
    corpus = settings.source_corpus(str(run.corpus))
    if not settings.development.dataset and not getattr(settings.corpora[corpus], "dev_sentences", 0):
        yield (
            "development.dataset: null, and no sentence of the corpus is held out. "
            f"Name one, or set corpora.{corpus}.dev_sentences."
        )


def _origin(study: Study, run: Run, method: MethodConfig) -> Iterator[str]:
    """Encoder, corpus and teacher of a run against what its method starts from."""
    inner = getattr(method, "base", method)
    module, encoder = method.module, run.encoder
    made = study.encoders[encoder].members()
    names, members = [*made], [*made.values()]
    count = f"{len(members) or 'no'} run{'s' if len(members) != 1 else ''}"
    match inner.starts_from:
        case "pair" if len(members) != 2:
            yield (
                f"encoder: {module} joins two different runs; {encoder} consists of {count}. "
                "Name two in its `runs`."
            )
        case "pair" if _decided(study, names[0], members[0]) == _decided(study, names[1], members[1]):
            yield (
                f"encoder: {module} joins two different runs; {' and '.join(names)} differ in nothing "
                f"that decides a model. Change one in `runs` of {encoder}."
            )
        case "runs" if not members:
            yield (
                f"encoder: {module} adds up runs; {encoder} consists of none. Name an encoder with `runs`."
            )
        case "run" if len(members) != 1:
            yield (
                f"encoder: {module} pools exactly one run again; {encoder} has {count}. "
                "Name an encoder with one in `runs`."
            )
        case "encoder" if members and (len(members) != 1 or not inner.columns):
            yield f"encoder: {module} starts from one encoder; {encoder} consists of {count}. Name another."
    yield from _corpus(study, run, method)
    if method.has_teacher and not run.teacher:
        yield (
            f"teacher: {module} learns the vectors of a teacher, and none is named. "
            "Name an encoder with one run."
        )
    if run.teacher and not method.has_teacher:
        yield f"teacher: {module} learns from no teacher; {run.teacher} is named. Leave it out, or name distil."


def _corpus(study: Study, run: Run, method: MethodConfig) -> Iterator[str]:
    module, corpus, wanted = method.module, run.corpus, method.read_columns
    if wanted and corpus is None:
        yield f"corpus: {module} trains, and no corpus is named. Name one."
    if not wanted and corpus is not None:
        yield f"corpus: {module} trains nothing; {corpus} is named. Leave it out, or name another method."
    has = _columns(study.settings, corpus) if corpus else wanted
    if missing := [column for column in wanted if column not in has]:
        yield (
            f"corpus: {module} reads the column {missing[0]}; {corpus} has {', '.join(has)}. "
            "Name another corpus, or another method."
        )


def _columns(settings: Configuration, corpus: str) -> Sequence[str]:
    """Columns that a method can read of a corpus; round trips have no negatives."""
    if _form(settings, "corpora", corpus) != "triples":
        return ("anchor",)
    negatives = () if isinstance(settings.corpora[corpus], RoundTripCorpus) else ("negative",)
    return ("anchor", "positive", *negatives)


def _decided(study: Study, name: str, run: Run) -> str:
    """All that decides a run's model but its seed."""
    settings, _ = study.read_run(name, run)
    decides = settings and [settings.method, settings.training.deciding(), settings.development]
    return as_json([run.encoder, run.corpus, run.teacher, decides])
