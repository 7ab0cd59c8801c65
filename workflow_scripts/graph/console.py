"""The terminal of one call of snakemake: checks of its files and targets, started jobs, reasons of failures.

Lines of this project are records of Snakemake's logger, so --quiet all, --nocolor and loggers of plugins hold for them.

Snakemake prints a failed job's command twice, with its complete log, and both versions of all params if one has
changed. These stay in the run's own log. The last lines on the terminal give the reason of each failure.
"""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from snakemake.logging import logger
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.errors import advice, one_line_errors, refuse
from workflow_scripts.graph.clone import call_words, from_here, is_in_job
from workflow_scripts.provenance import cards
from workflow_scripts.provenance.closure import installed

_SENTENCE = re.compile(
    r"[\w.]*(?:Error|Exception|Interrupt|Exit)\b|(?:Preempted|Interrupted)\b|slurmstepd\S*: error: |Killed$"
)
"""Beginnings of lines that give the reason why a job ended."""
_REDUNDANT_MESSAGES = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete",
)
_PARAMS = "Params have changed since last execution"
"""Beginning of the last of Snakemake's reasons for a job, if params are among them."""


# Before the graph


def check_configfiles() -> None:
    """End the process with a line if --configfile is given twice: Snakemake reads only the last one's files."""
    options = takewhile(lambda word: word != "--", call_words())
    if sum(word.startswith("--configf") for word in options) > 1:
        sys.exit(
            "ConfigError: --configfile: given twice, but Snakemake reads only the files after the last "
            "one. Write all files after one --configfile."
        )


def share_gpus(workflow: Any) -> int:
    """Limit concurrent jobs that request a GPU to the number of this machine's GPUs, and return this number.

    Return 0 and set no limit if jobs are submitted to a scheduler, or if this machine has no GPU. ``--resources gpu=N``
    sets another limit. A job reserves its GPU when it starts (``provenance.cards``).
    """
    if workflow.remote_exec:
        os.environ[cards.GRANTED] = "1"
    if workflow.resource_settings.nodes is not None:  # in the main process, whose jobs are submitted
        return 0
    number = len(cards.visible())
    if number and "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", number)
    return number


def print_study(config: Mapping[str, Any], configfiles: Iterable[str | Path], gpus: int) -> None:
    """Print the planned study, its configuration files and its GPUs; print nothing in a job.

    Args:
        config: The merged configuration, unchecked.
        configfiles: Files after --configfile.
        gpus: Number of this machine's GPUs that jobs share.
    """
    read = ", ".join(map(from_here, configfiles)) or "the repository's own files (no --configfile given)"
    if is_in_job():
        return
    logger.info(f"Study {config.get('name')}, from {read}")
    if gpus:
        logger.info(f"GPUs of this machine: {gpus}, each used by one job at a time")
    elif cards.lack_cuda():
        logger.info(
            f"PyTorch {installed('torch')} cannot use this machine's GPUs: make environment LOCK=requirements-gpu.lock"
        )


def warn(line: str) -> None:
    """Print a warning when a run starts, unless it is empty."""
    if line:
        logger.info(line)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines about the planned study; print nothing in a job."""
    if is_in_job():
        return
    for line in lines:
        logger.info(line)


def check_targets(workflow: Any, results: str) -> None:
    """End the process with a line for each target without a rule; print nothing otherwise.

    Snakemake would take an existing file for a source and report success.

    Args:
        workflow: Snakemake's workflow with all rules.
        results: Folder of the study's results.
    """
    from snakemake.cli import get_argument_parser  # loaded already: this code runs within it

    # Snakemake passes no targets of the command line to its Snakefile. It looks for these paths.
    words, rules = call_words(), {rule.name: rule for rule in workflow.rules}
    targets: list[str] = get_argument_parser().parse_args(words).targets if words else []
    given = ", ".join(os.path.relpath(file) for file in workflow.overwrite_configfiles)
    hint = f"The study is the one of --configfile {given}" if given else "No --configfile is given"

    def errors() -> Iterator[str]:
        for target in sorted(path if Path(path).is_absolute() else os.path.relpath(path) for path in targets):
            if target not in rules and not any(rule.is_producer(target) for rule in rules.values()):
                files = [str(file).replace("<results>", results) for file in rules["all"].input]
                plain = [name for name, rule in rules.items() if not rule.has_wildcards()]
                yield f"{target}: no rule makes it. {advice(target, files if '/' in target else plain)} {hint}."

    with one_line_errors():
        refuse(errors())


# While jobs run


class FailureFilter(logging.Filter):
    """A filter that replaces Snakemake's messages about started and failed jobs by shorter ones."""

    def __init__(self, on_plan: Callable[[], str] = str) -> None:
        super().__init__()
        self._on_plan = on_plan
        self._failed: dict[int, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether Snakemake prints ``record``; print shorter lines for jobs that start or fail."""
        event, text = vars(record).get("event"), str(record.msg)
        if event == LogEvent.RUN_INFO:  # of a dry run twice
            said, self._on_plan = self._on_plan(), str
            warn(said)
        if event == LogEvent.JOB_INFO:
            job = vars(record)
            wildcards = (f"{name}={value}" for name, value in (job["wildcards"] or {}).items())
            called = job["rule_msg"] or " ".join([job["rule_name"], *wildcards])  # instead of all files
            before, params, _json = job["reason"].partition(_PARAMS)
            named = (
                " (named by python -m workflow_scripts stale, with the same --configfile)" if params else ""
            )
            job |= {"rule_msg": called, "reason": f"{before}{params}{named}"}
        if event == LogEvent.JOB_FINISHED:
            self._failed.pop(vars(record)["job_id"], None)  # a retry has succeeded
        elif event == LogEvent.JOB_ERROR:
            job = vars(record)
            cause = [f"    {job['rule_msg']}"] if job["rule_msg"] else []  # the cluster's reason
            parts = [why(map(Path, job["log"])), *cause, f"    log: {' '.join(job['log'])}"]
            self._failed[job["jobid"]] = "\n".join(parts)
            logger.error(f"Failed: {job['rule_name']}, log {' '.join(job['log'])}")
            return False
        elif text.startswith(_REDUNDANT_MESSAGES[1]) and self._failed:
            logger.error("\n".join(dict.fromkeys(self._failed.values())))
            return False
        return event != LogEvent.GROUP_ERROR and not (
            text.startswith(_REDUNDANT_MESSAGES[0]) or "\nCalledProcessError" in text
        )


def report_failures(on_plan: Callable[[], str] = str) -> None:
    """Print one line per failed job at the end of the run.

    Args:
        on_plan: Function that returns a line to print when all jobs are planned; may be empty.
    """
    for handler in logger.handlers:
        # Placed before the handler's own filter, which hides failures if --quiet hides rules.
        if handler.name == "DefaultStreamHandler":
            handler.filters.insert(0, FailureFilter(on_plan))


def why(logs: Iterable[Path]) -> str:
    """Return the line with the reason why a job ended, from the first log that contains one.

    Args:
        logs: The job's own log, then those of the cluster.
    """
    texts = (log.read_text("utf-8", "replace") for log in logs if log.exists())
    lines = (line.strip() for text in texts for line in reversed(re.split(r"[\r\n]", text)))
    otherwise = "The job was ended from outside, or its logs contain no reason."
    return next((line for line in lines if _SENTENCE.match(line)), otherwise)
