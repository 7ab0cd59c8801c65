"""The jobs of a study, from Snakemake's dry run: the one reader of its plan, behind every verb that asks for jobs."""

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
from workflow_scripts.graph.console import warn
from workflow_scripts.graph.job_specs import COMMANDS
from workflow_scripts.graph.notes import STUDIES, Call, call_for
from workflow_scripts.graph.unasked import NamedJob, unasked_study
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.job import TIMINGS
from workflow_scripts.provenance.record import Record
from workflow_scripts.verbs.printing import argument
from workflow_scripts.verbs.records import audited_studies, study_folder


class PlannedJob(NamedTuple):
    """One job that a run of everything would execute."""

    rule: str
    wildcards: Mapping[str, str]
    settings: Mapping[str, Any]
    """Its slice of the configuration."""
    inputs: Sequence[str]
    outputs: Sequence[str]
    queued: Mapping[str, Any] = {}
    """Its resources as an executor sees them, those of a profile included."""
    roles: Mapping[str, str | list[str]] = {}
    """Its inputs by role, one path or several, without the list of its code."""
    timings: Sequence[str] = ()
    """Outputs that hold times."""
    code_hashes: Mapping[str, str] = {}
    """Files of its code and the hashes of their syntax trees."""
    packages: Mapping[str, str] = {}
    """Versions of the packages behind it."""
    outside: str = ""
    """The block that names what it needs from outside; empty if it needs nothing."""
    call: str = ""
    """The JSON that its entry script reads."""
    benchmark: str = ""
    """The file in which Snakemake notes its time; empty if its rule has none."""
    threads: int = 1


def writer(makers: Mapping[str, PlannedJob], record: Record) -> PlannedJob | None:
    """The job that would write the artefact of a record; None if no job would.

    Args:
        makers: File to the job that makes it.
        record: Of the artefact.
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
    """The configuration that a verb is given, or else that of the last run of a study, or of any, in this folder.

    Args:
        configfiles: As after --configfile.
        config: As after --config.
        study: Its name.
        file: One of the study's files, if the configuration with which it was made is wanted.

    Raises:
        ConfigError: if a word of ``config`` is not KEY=VALUE, or the study has not run in this folder.
    """
    if configfiles or config:
        from snakemake.cli import parse_config  # slow to import

        try:
            return Call([*configfiles], as_in_a_file(parse_config(config)))
        except ValueError as error:  # of a word that is no KEY=VALUE
            raise ConfigError(f"--config {' '.join(config)}: {error} Write KEY=VALUE.") from None
    last = max(STUDIES.glob("*.json"), key=lambda note: note.stat().st_mtime, default=None)
    name = study or (last.stem if last else "")
    if found := call_for(name, file):
        return found
    if study:
        raise ConfigError(f"{study}: has not run in this folder. Give its configuration by --configfile.")
    return Call([], {})


def whole_config(call: Call) -> dict[str, Any]:
    """The whole configuration of a call.

    Raises:
        ConfigError: if it has mistakes.
    """
    return load_config(ROOT, call.configfiles, as_in_a_file(call.config))


def audited_folders(studies: Sequence[Path], configfile: Sequence[str], config: Sequence[str]) -> list[Path]:
    """The folders to audit: those that are named, or that of the given configuration, or each below ``results``."""
    if not studies and (configfile or config):
        studies = [Path("results", whole_config(given_call(configfile, config))["name"])]
    return audited_studies(studies)


def planned(
    targets: Sequence[str], call: Call, *, from_nothing: bool = True, profile: str | None = None
) -> list[PlannedJob]:
    """The jobs of a run in the working directory.

    Args:
        targets: Files or rules; empty for the whole study.
        call: The configuration.
        from_nothing: Whether to plan as if no file existed yet, instead of what is left to do.
        profile: As for snakemake's --profile.

    Raises:
        ConfigError: if a file cannot be read, the working directory cannot be written, Snakemake does not accept the
            configuration, or knows no such target.
    """
    _check_writable()
    read_layers(call.configfiles)  # of a mistake, Snakemake would name neither file nor line
    options = ["--dry-run", *(["--forceall"] if from_nothing else [])]
    options += [] if Path("Snakefile").is_file() else ["--snakefile", str(ROOT / "Snakefile")]
    options += ["--profile", profile] if profile else []
    jobs = _dry_run([*options, *snakemake_options(call), "--", *targets])
    if not call.configfiles:
        study = open_study(whole_config(call), ROOT)
        warn(unasked_study(study, [], (NamedJob(job.rule, job.wildcards) for job in jobs)))
    return jobs


def _check_writable() -> None:
    """Raise unless Snakemake can write its notes into the working directory, which it does for a dry run too."""
    notes = Path(".snakemake")
    if not os.access(notes if notes.is_dir() else Path(), os.W_OK):
        raise ConfigError(
            f"{Path.cwd()}: Snakemake plans jobs only in a folder that it can write, and this one can only be read. "
            "Copy it with its results (cp -a), and ask in the copy; verify, explain and show need no copy."
        )


def snakemake_options(call: Call) -> list[str]:
    """Options of snakemake that give it a configuration."""
    given = [f"{key}={json.dumps(value)}" for key, value in call.config.items()]
    options = {"--configfile": call.configfiles, "--config": given}
    return [word for name, values in options.items() if values for word in (name, *values)]


def _dry_run(words: Sequence[str]) -> list[PlannedJob]:
    """The jobs that Snakemake lists when it is called with these words."""
    from snakemake.cli import main  # slow to import

    logged: list[logging.LogRecord] = []

    def listen(record: logging.LogRecord) -> bool:
        logged.append(record)
        return True

    logger = logging.getLogger("snakemake.logging")
    logger.addFilter(listen)
    said = io.StringIO()
    called_by, sys.argv = sys.argv, ["snakemake", *words]  # what the Snakefile looks at
    environment = {**os.environ}  # to which the Snakefile adds the clone's code for its jobs
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main(sys.argv[1:])
    except SystemExit as end:
        if isinstance(end.code, str):  # a check of the Snakefile's own, which says all there is to say
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
    """The jobs among records that Snakemake has logged."""
    hashes_of = cache(lambda code: json.loads(Path(code).read_text("utf-8")))  # jobs of a rule share a list
    for record in logged:
        if vars(record).get("event") == "job_info" and record.shellcmd:
            found = COMMANDS.search(record.shellcmd)
            assert found, f"rule {record.rule_name}: a command that calls no entry script"
            call = json.loads(found[2])
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
                call=found[2],
                benchmark=record.benchmark or "",
                threads=record.threads,
            )
