"""Checks of a complete study before any job: keys, names, and all runs, columns and files that it needs.

Checks run each time the graph is built, so this module imports nothing that only jobs need. There are three rounds:
keys, types and ranges; names; conflicts between valid settings. Each round reports all errors of its kind, and the
next one runs only if there were none. The classes of columns, methods, suites and readers check what fits them.

Names are checked because Snakemake treats an existing output as a source if its rule's inputs are missing: in a
finished study, a wrong name would go unnoticed.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Any

import pyarrow as pa

from workflow_scripts.columns import FORMS
from workflow_scripts.data.printed import cell_numbers
from workflow_scripts.errors import (
    ConfigError,
    DataError,
    ErrorDetails,
    advice,
    one_line_errors,
    refuse,
    unknown,
)
from workflow_scripts.graph.claims import claim_errors
from workflow_scripts.graph.clone import from_here
from workflow_scripts.graph.configuration import GRIDS, grid_file, placed, read_mapping
from workflow_scripts.graph.extraction import extraction_errors, layer_errors_of
from workflow_scripts.graph.folders import cache_errors
from workflow_scripts.graph.gaps import gap_runs
from workflow_scripts.graph.names import misnamed, missing_files, references, repetitions
from workflow_scripts.graph.run_checks import block_errors, reading_errors, suite_errors, value_errors
from workflow_scripts.graph.runs import AS_PUBLISHED, ENSEMBLE, Grid, all_runs
from workflow_scripts.graph.slices import Config
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.corpora import Corpus, RoundTripCorpus
from workflow_scripts.settings.encoders import AdaptedEncoder, EncoderFromRuns
from workflow_scripts.settings.grids import EXTRACTION, Column, GridBlock
from workflow_scripts.settings.report import CLAIM_FIGURES
from workflow_scripts.settings.sources import HubSource, reader_errors
from workflow_scripts.settings.study import Configuration
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.settings.wording import read

_FOLDER = re.compile(r"[\w.+-]{1,200}", re.ASCII)
"""Pattern of names that every file system accepts, and that Snakemake does not read as patterns."""


def open_study(
    config: Config,
    root: Path,
    configfiles: Iterable[str | Path] = (),
    given: Mapping[str, Any] | None = None,
) -> Study:
    """Return the study of a configuration, or end the process with a line for each error.

    Args:
        config: Configuration, as merged by ``configuration.load_config``.
        root: Folder of the Snakefile.
        configfiles: Files after --configfile.
        given: Values of the command line.
    """
    with one_line_errors():
        plain, errors = read_grids(config, root / "config")
        study, more = checked(config, plain, root)
        files = [*map(from_here, configfiles)]
        lines = placed([*errors, *more], root, files, given or {})
        # A YAML alias repeats one error in many blocks, all with the same line.
        first: dict[ErrorDetails, ErrorDetails] = {}
        for error in lines:
            first.setdefault(error._replace(path=""), error)
        refuse(first.values())
        assert study
        study = replace(study, gaps=gap_runs(study))
    return study


def read_grids(config: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], list[ErrorDetails]]:
    """Return the readable grids of a configuration, and errors about the other files."""
    files = {file.stem: file for file in (folder / "experiments").glob("*.yaml")}
    listed = config.get("experiments")
    grids, errors = dict[str, Any](), list[ErrorDetails]()
    reserved = {EXTRACTION: "the extraction study", CLAIM_FIGURES: "figures of the papers' claims"}
    for name in reserved.keys() & files.keys():
        problem = f"this name is reserved for {reserved[name]}"
        errors.append(ErrorDetails("", problem, "Rename the file.", file=grid_file(name)))
    # Entries of other types are reported by the check of types.
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    for name in (name for name in names if name != EXTRACTION):
        if name not in files:
            known = advice(name, sorted({EXTRACTION, *files}))
            errors.append(ErrorDetails("experiments", f"no file {name}.yaml in {GRIDS}", known))
            continue
        try:
            grids[name] = read_mapping(files[name])
        except ConfigError as error:
            errors.append(ErrorDetails("", str(error)))
    return grids, errors


def checked(config: Config, plain: Mapping[str, Any], root: Path) -> tuple[Study | None, list[ErrorDetails]]:
    """Return the study and the errors about it; None for the study if a key, type or range is wrong.

    Args:
        config: The configuration, unchecked.
        plain: Its grids by name, unchecked.
        root: Folder of the Snakefile.
    """
    settings, errors = read(Configuration, config)
    grids: dict[str, GridBlock] = {}
    for name, grid in plain.items():
        block, more = read(GridBlock, grid)
        errors += (error.under("", grid_file(name)) for error in more)
        grids |= {name: block} if block else {}
    if errors or not settings:
        return None, errors
    study = Study(settings, grids, root)
    # Figures read the planned runs, which exist only if nothing else is wrong.
    return study, [*name_errors(study)] or [*sense_errors(study)] or [*_figure_errors(study)]


def _by_file(study: Study) -> dict[str, Settings]:
    """Return the grids by file, and the configuration, which comes from several files, by an empty text."""
    return {"": study.settings} | {grid_file(name): grid for name, grid in study.blocks.items()}


# Names


def name_errors(study: Study) -> Iterator[ErrorDetails]:
    """Yield unknown references, references to a block of the wrong form, cycles of encoders and duplicate names."""
    for file, block in _by_file(study).items():
        errors = [*misnamed(study.settings, references(block)), *repetitions(block)]
        yield from (error.under("", file) for error in errors)
    for name, encoder in study.encoders.items():
        yield from _unfit_names(dict.fromkeys(encoder.members(), f"encoders.{name}.runs"))
        if name in study.reached(encoder.starts):
            problem = "it starts from itself, through its runs or its base"
            yield ErrorDetails(
                f"encoders.{name}", problem, "Change the encoders of its `runs`, or its `adapt.base`."
            )
    yield from study.settings.suites.repeated()
    extraction = study.settings.extraction
    for name, grid in study.blocks.items():
        file = grid_file(name)
        if name in (*extraction.tables, *extraction.statistics):
            yield ErrorDetails(
                "", "a table of the extraction study has this name", "Rename the file.", file=file
            )
        try:
            runs = {run: f"runs.{row.block}" for run, row in grid.expanded.items()}
        except ConfigError as error:
            yield ErrorDetails("", str(error), file=file)
        else:
            yield from (error.under("", file) for error in _unfit_names(runs))


def _unfit_names(runs: Mapping[str, str]) -> Iterator[ErrorDetails]:
    """Yield an error for each run that cannot name a folder, such as one with a swept text.

    Args:
        runs: Paths of the settings that name the runs, by run.
    """
    for name, path in runs.items():
        if not _FOLDER.fullmatch(name):
            problem = f"run {shorten(name, 100)} cannot be the name of a folder"
            yield ErrorDetails(
                path, problem, "Write a block with `tag` and `overrides` for each value of its `sweep`."
            )


# Conflicts between settings


def sense_errors(study: Study) -> Iterator[ErrorDetails]:
    """Yield conflicts between settings with valid keys and names."""
    settings = study.settings
    for name, block in settings.datasets.items():
        for number, source in enumerate(block.sources):
            if isinstance(source, HubSource):
                errors = hub_errors(source, block.form)
            else:
                errors = reader_errors(source, block.form)
            yield from (error.under(f"datasets.{name}.sources.{number}") for error in errors)
    for name, corpus in settings.corpora.items():
        yield from (error.under(f"corpora.{name}") for error in corpus_errors(settings, corpus))
    yield from extraction_errors(settings)
    for name, grid in study.blocks.items():
        yield from (error.under("", grid_file(name)) for error in grid_errors(study, name, grid))
    yield from claim_errors(study)
    yield from _clashes(study)
    # Otherwise each run would repeat the errors of its reading.
    yield from [*reading_errors(study)] or _run_errors(study)
    yield from cache_errors(settings.cache)
    for file, named in _by_file(study).items():
        yield from (error.under("", file) for error in missing_files(study.root, references(named)))


_OPTIONAL = {"subset", "negative", "text2", "split", "document", "position"}
"""Columns of the forms that a dataset of the Hub may lack."""


def hub_errors(source: HubSource, form: str) -> Iterator[ErrorDetails]:
    """Yield an error for columns that the form does not have or lacks, and for values and names without an effect."""
    types = {field.name: field.type for field in FORMS[form]}
    yield from unknown(source.columns, types, "columns")
    for name in sorted(types.keys() - _OPTIONAL - source.columns.keys()):
        yield ErrorDetails(
            "columns", f"no {name}, which {form} need", f"Add `{name}:` with the name of its column."
        )
    texts = [name for name, kind in types.items() if pa.types.is_string(kind)]
    yield from unknown(source.constants, texts, "constants")
    for name in sorted(source.constants.keys() & source.columns.keys()):
        yield ErrorDetails("constants", f"{name} is one of `columns`, too", "Remove it from one of them.")
    yield from unknown(source.split_names, source.splits, "split_names")


def corpus_errors(settings: Configuration, corpus: Corpus | RoundTripCorpus) -> Iterator[ErrorDetails]:
    """Yield keys of a corpus that need documents, if its dataset has none."""
    if not isinstance(corpus, Corpus):
        return
    dataset = settings.datasets[corpus.dataset]
    if dataset.form == "triples":
        lacking = "triples"
    elif any(
        isinstance(source, HubSource) and "document" not in source.columns for source in dataset.sources
    ):
        lacking = "rows of the Hub without a column for `document`"
    else:
        return
    if corpus.dev_sentences:
        problem = f"{corpus.dev_sentences}, but {lacking} have no documents that can be held out"
        yield ErrorDetails("dev_sentences", problem, "Set it to 0.")
    if corpus.add_sentences_of:
        problem = f"{corpus.add_sentences_of}, but sentences cannot be added to {lacking}"
        yield ErrorDetails("add_sentences_of", problem, "Remove `add_sentences_of`.")


def grid_errors(study: Study, name: str, grid: GridBlock) -> Iterator[ErrorDetails]:
    """Yield references in a grid to something that it does not define, and columns without a score."""
    defined, lists = grid.own_names(study.settings.suites), study.settings.mteb.lists
    for path, named, refers in references(grid):
        if refers.section in defined:
            yield from unknown(named, defined[refers.section], path)
    own = {number for number, block in enumerate(grid.runs) if block.baseline}
    baselines = {
        (f"runs.{row.block}.baseline" if row.block in own else "baseline", row.baseline): None
        for row in grid.expanded.values()
    }
    for path, baseline in baselines:
        yield from unknown(baseline or (), grid.expanded, path)
    for number, column in grid.numbered:
        if isinstance(column, Column) and column.suite in defined["grid.suites"]:
            lacking = column.score_errors(study.suites[column.suite].block, lists)
            yield from (error.under(f"columns.{number}")._replace(about=column.heading) for error in lacking)
    yield from _printed_errors(study.root, study.grids[name])


def _printed_errors(root: Path, grid: Grid) -> Iterator[ErrorDetails]:
    """Yield the first error in printed numbers of a grid, such as one without a cell; its table would be the last job.

    Files that are missing are reported by the check of references.
    """
    files = {file: root / file for file in grid.published if (root / file).is_file()}
    contents = {file: path.read_bytes() for file, path in files.items()}
    try:
        cell_numbers(contents, grid.block.experiment.cells(), grid.name, grid.block.printed_in)
    except DataError as error:
        yield ErrorDetails("", str(error))


def _clashes(study: Study) -> Iterator[ErrorDetails]:
    """Yield an error if two different runs have one name."""
    try:
        all_runs(study.blocks, study.settings.encoders)
    except ConfigError as error:
        yield ErrorDetails("", str(error))


def _figure_errors(study: Study) -> Iterator[ErrorDetails]:
    """Yield runs whose words a figure cannot compare, because they are no single encoder with a readout."""
    for name, grid in study.blocks.items():
        for run in grid.token_similarity.runs if grid.token_similarity else ():
            if {ENSEMBLE, AS_PUBLISHED} & {*study.runs[run].loading}:
                problem = f"{run} is a sum of encoders, or an encoder as it was published"
                remedy = "Remove it: the figure shows single encoders with a readout."
                yield ErrorDetails("token_similarity.runs", problem, remedy, file=grid_file(name))


def _run_errors(study: Study) -> Iterator[ErrorDetails]:
    """Yield errors in the runs of grids and encoders, and suites that do not fit their encoders."""
    settings = study.settings
    named, in_suites = settings.auxiliary_encoders(), list[ErrorDetails]()
    if EXTRACTION in settings.experiments:
        encoder = settings.extraction.encoder
        named.add(encoder)
        yield from layer_errors_of(settings.extraction, study.encoders[encoder].size)
        suites = {kind: [name] for kind, name in settings.extraction.suites if name}
        in_suites += suite_errors(study, suites, [encoder])
    for name, grid in study.blocks.items():
        runs = [row.run for row in grid.expanded.values()]
        encoders = dict.fromkeys(run.encoder for run in runs)
        in_runs = [*block_errors(study, "runs", grid.runs, grid.seeds)] or value_errors(study, grid)
        yield from (error.under("", grid_file(name)) for error in in_runs)
        in_suites += suite_errors(study, grid.suites, encoders)
        named |= {*encoders, *(run.teacher for run in runs)}
    yield from dict.fromkeys(in_suites)  # several grids may read a suite
    reached = study.reached(named)
    for name, block in settings.encoders.items():
        if isinstance(block, EncoderFromRuns):
            yield from block_errors(study, f"encoders.{name}.runs", block.runs, used=name in reached)
        if isinstance(block, AdaptedEncoder) and name in reached:
            _, errors = read(ContinueMlm, study.encoders[name].adapting())
            yield from (error.under(f"encoders.{name}.adapt") for error in errors)
