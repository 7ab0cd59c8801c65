"""The check of a whole study before any job: keys, names, and every run, column and file it asks for.

It is made whenever the graph is built, so that it imports nothing that jobs alone need. There are three rounds: keys,
types and ranges; names; conflicts between settings that are right by themselves. Each round reports all mistakes of
its kind, and the next round runs only if the round before it found none. What fits what is asked of the settings
themselves: of columns, methods, suites and readers.

Names are looked up because Snakemake treats an output as a source if it exists and its rule's inputs are missing: a
wrong name would go unnoticed on a finished study.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from workflow_scripts.errors import ConfigError, Finding, advice, one_line_errors, refuse, unknown
from workflow_scripts.graph.claims import claim_findings
from workflow_scripts.graph.clone import from_here
from workflow_scripts.graph.configuration import GRIDS, placed, read_mapping
from workflow_scripts.graph.extraction import extraction_findings, layer_findings_of
from workflow_scripts.graph.folders import cache_findings
from workflow_scripts.graph.gaps import gap_runs
from workflow_scripts.graph.names import misnamed, missing_files, references, repetitions
from workflow_scripts.graph.run_checks import block_findings, reading_findings, suite_findings
from workflow_scripts.graph.slices import Config
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.encoders import AdaptedEncoder, EncoderFromRuns
from workflow_scripts.settings.grids import EXTRACTION, Column, GridBlock
from workflow_scripts.settings.sources import HubSource, reader_findings
from workflow_scripts.settings.study import Configuration
from workflow_scripts.settings.training import ContinueMlm
from workflow_scripts.settings.wording import read


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
        lines = [placed(finding, root, files, given or {}) for finding in [*findings, *more]]
        # An alias of YAML has one mistake in many blocks, all at one line.
        first: dict[Finding, Finding] = {}
        for finding in lines:
            first.setdefault(finding._replace(path=""), finding)
        refuse(first.values())
        assert study
        study.runs  # noqa: B018  (of which two may have one name)
        study = replace(study, gaps=gap_runs(study))
    return study


def read_grids(config: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], list[Finding]]:
    """Grids that can be read, and what is wrong with files that cannot."""
    files = {file.stem: file for file in (folder / "experiments").glob("*.yaml")}
    listed = config.get("experiments")
    grids, findings = dict[str, Any](), list[Finding]()
    if EXTRACTION in files:
        found = "that name is the extraction study's"
        findings.append(Finding("", found, "Rename the file.", file=grid_file(EXTRACTION)))
    # Of other things in the list, the check of types says what is wrong.
    names = [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
    for name in (one for one in names if one != EXTRACTION):
        if name not in files:
            known = advice(name, sorted({EXTRACTION, *files}))
            findings.append(Finding("experiments", f"no file {name}.yaml in {GRIDS}", known))
            continue
        try:
            grids[name] = read_mapping(files[name])
        except ConfigError as error:
            findings.append(Finding("", str(error)))
    return grids, findings


def checked(config: Config, plain: Mapping[str, Any], root: Path) -> tuple[Study | None, list[Finding]]:
    """Return the study, or None if a key, type or range is wrong; and what is wrong with it.

    Args:
        config: The configuration, whatever it holds.
        plain: Its grids by name, likewise.
        root: Folder of the Snakefile.
    """
    settings, found = read(Configuration, config)
    grids: dict[str, GridBlock] = {}
    for name, grid in plain.items():
        block, findings = read(GridBlock, grid)
        found += (finding.under("", grid_file(name)) for finding in findings)
        grids |= {name: block} if block else {}
    if found or not settings:
        return None, found
    study = Study(settings, grids, root)
    return study, [*name_findings(study)] or [*sense_findings(study)]


def grid_file(name: str) -> str:
    """Return the file of a grid, below the Snakefile's folder."""
    return f"{GRIDS}/{name}.yaml"


def _by_file(study: Study) -> dict[str, Settings]:
    """Return the grids by their files, and the configuration, which is in several."""
    return {"": study.settings} | {grid_file(name): grid for name, grid in study.blocks.items()}


# Names


def name_findings(study: Study) -> Iterator[Finding]:
    """Yield names of no block, or of a block of another form, and names given twice."""
    for file, block in _by_file(study).items():
        findings = [*misnamed(study.settings, references(block)), *repetitions(block)]
        yield from (finding.under("", file) for finding in findings)
    for name, encoder in study.encoders.items():
        if name in study.reached(encoder.starts):
            found = "it starts from itself, by way of its runs or base"
            yield Finding(f"encoders.{name}", found, "Name another.")
    yield from study.settings.suites.repeated()
    extraction = study.settings.extraction
    for name, grid in study.blocks.items():
        file = grid_file(name)
        if name in (*extraction.tables, *extraction.statistics):
            yield Finding("", "a table of the extraction study has that name", "Rename the file.", file=file)
        try:
            grid.expanded  # noqa: B018
        except ConfigError as error:
            yield Finding("", str(error), file=file)


# What settings mean together


def sense_findings(study: Study) -> Iterator[Finding]:
    """Yield mistakes of settings whose keys and names are right."""
    settings = study.settings
    for name, block in settings.datasets.items():
        for number, source in enumerate(block.sources):
            if not isinstance(source, HubSource):
                findings = reader_findings(source, block.form)
                yield from (one.under(f"datasets.{name}.sources.{number}") for one in findings)
    yield from extraction_findings(settings)
    for name, grid in study.blocks.items():
        yield from (finding.under("", grid_file(name)) for finding in grid_findings(study, grid))
    yield from claim_findings(study)
    # Each run would repeat what is wrong with a reading.
    yield from [*reading_findings(study)] or _run_findings(study)
    yield from cache_findings(settings.cache)
    for file, named in _by_file(study).items():
        yield from (one.under("", file) for one in missing_files(study.root, references(named)))


def grid_findings(study: Study, grid: GridBlock) -> Iterator[Finding]:
    """Yield names in a grid that refer to nothing in it, and columns that no suite writes."""
    own, lists = grid.own_names(study.settings.suites), study.settings.mteb.lists
    for path, name, refers in references(grid):
        if refers.section in own:
            yield from unknown(name, own[refers.section], path)
    baselines = dict.fromkeys(row.baseline for row in grid.expanded.values() if row.baseline)
    yield from unknown(baselines, grid.expanded, "baseline")
    for number, column in grid.numbered:
        if isinstance(column, Column) and column.suite in own["grid.suites"]:
            misfits = column.misfits(study.suites[column.suite].block, lists)
            yield from (one.under(f"columns.{number}")._replace(about=column.heading) for one in misfits)


def _run_findings(study: Study) -> Iterator[Finding]:
    """Yield what is wrong with the runs of grids and encoders, and with what suites ask of their encoders."""
    settings = study.settings
    named = settings.auxiliary_encoders()
    if EXTRACTION in settings.experiments:
        encoder = settings.extraction.encoder
        named.add(encoder)
        yield from layer_findings_of(settings.extraction, study.encoders[encoder].size)
        suites = {kind: [name] for kind, name in settings.extraction.suites if name}
        for finding in suite_findings(study, suites, [encoder]):
            yield finding._replace(file="extraction")
    for name, grid in study.blocks.items():
        runs = [row.run for row in grid.expanded.values()]
        encoders = dict.fromkeys(run.encoder for run in runs)
        in_grid = [*block_findings(study, "runs", grid.runs, grid.seeds)]
        in_grid += suite_findings(study, grid.suites, encoders)
        yield from (finding.under("", grid_file(name)) for finding in in_grid)
        named |= {*encoders, *(run.teacher for run in runs)}
    reached = study.reached(named)
    for name, block in settings.encoders.items():
        if isinstance(block, EncoderFromRuns):
            yield from block_findings(study, f"encoders.{name}.runs", block.runs, used=name in reached)
        if isinstance(block, AdaptedEncoder) and name in reached:
            _, findings = read(ContinueMlm, study.encoders[name].adapting())
            yield from (finding.under(f"encoders.{name}.adapt") for finding in findings)
