"""Jobs of a study, read from Snakemake's dry run; all verbs that need the plan use this module."""

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.checks import open_study
from workflow_scripts.graph.configuration import as_in_a_file, load_config, read_layers
from workflow_scripts.graph.job_specs import COMMANDS
from workflow_scripts.graph.notes import STUDIES, Call, call_for
from workflow_scripts.graph.unasked import NamedJob, unasked_study
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.job import TIMINGS
from workflow_scripts.provenance.record import Record
from workflow_scripts.verbs.printing import argument
from workflow_scripts.verbs.records import audited_studies, study_folder


class PlannedJob(NamedTuple):
    """One job of Snakemake's plan."""

    rule: str
    wildcards: Mapping[str, str]
    settings: Mapping[str, Any]
    """The job's slice of the configuration."""
    inputs: Sequence[str]
    outputs: Sequence[str]
    queued: Mapping[str, Any] = {}
    """Resources for the executor, including those of a profile."""
    roles: Mapping[str, str | list[str]] = {}
    """Inputs by role, one path or several, without the list of code."""
    timings: Sequence[str] = ()
    """Outputs that contain times."""
    code_hashes: Mapping[str, str] = {}
    """Hashes of the syntax trees of the job's code, by file."""
    packages: Mapping[str, str] = {}
    """Versions of the packages that the job imports."""
    outside: str = ""
    """Block of the external source or service that the job needs; empty if it needs none."""
    call: str = ""
    """JSON for the job's entry script."""
    benchmark: str = ""
    """Snakemake's benchmark file of the job; empty if its rule has none."""
    threads: int = 1


def writer(makers: Mapping[str, PlannedJob], record: Record) -> PlannedJob | None:
    """Return the job that would write the artefact of a record; None if no job would.

    Args:
        makers: Job by the file that it makes.
        record: The record of the artefact.
    """
    job = makers.get(record.outputs[0])
    return job if job and job.rule == record.rule and {*record.outputs} <= {*job.outputs} else None


CONFIGURATION = (
    argument(
        "--configfile",
        nargs="+",
        default=[],
        metavar="FILE",
        help="as for snakemake, such as config/demo.yaml; -- ends them; default: as in the last run in this folder",
    ),
    argument("--config", nargs="+", default=[], metavar="KEY=VALUE", help="as for snakemake"),
)
"""Arguments of a verb that select a study's configuration."""
FOLDERS = (
    argument(
        "studies",
        nargs="*",
        type=study_folder,
        metavar="FOLDER",
        help="results of a study; default: those of the given configuration, or else all below results/",
    ),
    *CONFIGURATION,
)
"""Arguments of a verb that audits studies."""
TARGETS = argument("targets", nargs="*", metavar="TARGET", help="files or rules; default: the whole study")
"""The argument of a verb that plans targets of a study."""


def given_call(
    configfiles: Sequence[str], config: Sequence[str], study: str | None = None, file: str = ""
) -> Call:
    """Return the given configuration or, without one, that of the last run in this folder, of a study or of any.

    Args:
        configfiles: Files, as after snakemake's --configfile.
        config: Pairs, as after snakemake's --config.
        study: Name of the study.
        file: A file of the study, to get the configuration with which it was made.

    Raises:
        ConfigError: if a word of ``config`` is not KEY=VALUE, or the study has not run in this folder.
    """
    if configfiles or config:
        from snakemake.cli import parse_config  # slow to import

        try:
            return Call([*configfiles], as_in_a_file(parse_config(config)))
        except ValueError as error:  # a word is not KEY=VALUE, or its key is nested
            remedy = "Write KEY=VALUE, such as 'training={max_steps: 7}'; lists are extended in files only."
            raise ConfigError(f"--config {' '.join(config)}: {error} {remedy}") from None
    last = max(STUDIES.glob("*.json"), key=lambda note: note.stat().st_mtime, default=None)
    name = study or (last.stem if last else "")
    if call := call_for(name, file):
        return call
    if study:
        raise ConfigError(f"{study}: has not run in this folder. Add its configuration: --configfile FILE.")
    return Call([], {})


def whole_config(call: Call) -> dict[str, Any]:
    """Return the complete configuration of a call.

    Raises:
        ConfigError: if it has errors.
    """
    return load_config(ROOT, call.configfiles, as_in_a_file(call.config))


def audited_folders(studies: Sequence[Path], configfile: Sequence[str], config: Sequence[str]) -> list[Path]:
    """Return the folders to audit: the named ones, or that of the given configuration, or all below ``results``."""
    if not studies and (configfile or config):
        studies = [Path("results", whole_config(given_call(configfile, config))["name"])]
    return audited_studies(studies)


def planned(
    targets: Sequence[str], call: Call, *, from_nothing: bool = True, profile: str | None = None
) -> list[PlannedJob]:
    """Return the jobs of a run in the working directory.

    Args:
        targets: Files or rules; empty for the whole study.
        call: The configuration.
        from_nothing: Whether to plan all jobs, as if no file existed, instead of the remaining ones.
        profile: A profile, as after snakemake's --profile.

    Raises:
        ConfigError: if a file cannot be read, the working directory cannot be written, Snakemake rejects the
            configuration, or no rule makes a target.
    """
    _check_writable()
    read_layers(call.configfiles)  # Snakemake's errors would have neither file nor line
    options = ["--dry-run", *(["--forceall"] if from_nothing else [])]
    options += [] if Path("Snakefile").is_file() else ["--snakefile", str(ROOT / "Snakefile")]
    options += ["--profile", profile] if profile else []
    jobs = _dry_run([*options, *call.options(), "--", *targets])
    if not call.configfiles:
        study = open_study(whole_config(call), ROOT)
        if said := unasked_study(study, [], (NamedJob(job.rule, job.wildcards) for job in jobs)):
            print(said, file=sys.stderr)  # noqa: T201
    return jobs


def _check_writable() -> None:
    """Raise ConfigError unless the working directory can be written, as Snakemake needs even for a dry run."""
    notes = Path(".snakemake")
    if not os.access(notes if notes.is_dir() else Path(), os.W_OK):
        raise ConfigError(
            f"{Path.cwd()}: Snakemake plans jobs only in a writable folder, and this one is read-only. "
            "Copy it with its results (cp -a), and run this in the copy; verify, explain and show need "
            "no copy."
        )


def _dry_run(words: Sequence[str]) -> list[PlannedJob]:
    """Return the jobs that Snakemake lists when called with these words."""
    from snakemake.cli import main  # slow to import

    logged: list[logging.LogRecord] = []

    def listen(record: logging.LogRecord) -> bool:
        logged.append(record)
        return True

    logger = logging.getLogger("snakemake.logging")
    logger.addFilter(listen)
    said = io.StringIO()
    called_by, sys.argv = sys.argv, ["snakemake", *words]  # the Snakefile reads sys.argv
    environment = {**os.environ}  # the Snakefile adds the clone's code for its jobs
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main(sys.argv[1:])
    except SystemExit as end:
        if isinstance(end.code, str):  # a check of the Snakefile, with a complete message
            raise ConfigError(end.code.removeprefix("ConfigError: ")) from None
        if end.code:
            errors = [record.getMessage() for record in logged if record.levelno >= logging.ERROR]
            reason = " ".join(" ".join(errors or said.getvalue().splitlines()[-1:]).split())
            raise ConfigError(f"snakemake's dry run failed: {reason} Run snakemake --dry-run.") from None
    finally:
        sys.argv = called_by
        for name in os.environ.keys() - environment:
            del os.environ[name]
        os.environ.update(environment)
        logger.removeFilter(listen)
    return [*_jobs(logged)]


def _jobs(logged: Iterable[Any]) -> Iterator[PlannedJob]:
    """Yield the jobs among Snakemake's log records."""
    # jobs of a rule share this list
    hashes_of = cache(lambda code: json.loads(Path(code).read_text("utf-8")))
    for record in logged:
        if vars(record).get("event") == "job_info" and record.shellcmd:
            command = COMMANDS.search(record.shellcmd)
            assert command, f"rule {record.rule_name}: a command that calls no entry script"
            call = json.loads(command[2])
            files, roles = call["files"], call["files"]["inputs"]
            code_hashes = hashes_of(roles.pop("code"))
            yield PlannedJob(
                rule=record.rule_name,
                wildcards=files["wildcards"],
                settings=call["settings"],
                inputs=list(record.input),
                outputs=list(record.output),
                queued=dict(record.resources.items()),
                roles=roles,
                timings=[path for role, path in files["outputs"].items() if role in TIMINGS],
                code_hashes=code_hashes,
                packages=call["packages"],
                outside=call["outside"],
                call=command[2],
                benchmark=record.benchmark or "",
                threads=record.threads,
            )
