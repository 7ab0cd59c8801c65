"""One call of snakemake and its terminal: its files and targets checked, jobs that start, and why others failed.

Snakemake prints a failed job's command twice, and its whole log; of a changed setting, the JSON of all params before
and now. All that stays in the run's own log. On the terminal, a line at the very end says why each failed job did.
"""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
"""How a line that says why a job ended begins."""
_REDUNDANT_MESSAGES = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete",
)
_PARAMS = "Params have changed since last execution"
"""How the last of Snakemake's reasons for a job begins, if it has this one."""


# Before the graph


def check_configfiles() -> None:
    """End the process with a line if --configfile is given twice: Snakemake reads the files of the last alone."""
    options = takewhile(lambda word: word != "--", call_words())
    if sum(word.startswith("--configf") for word in options) > 1:
        sys.exit(
            "ConfigError: --configfile: given twice, and Snakemake reads what follows the last alone. "
            "Write all files after one."
        )


def share_gpus(workflow: Any) -> int:
    """Let as many jobs that ask for a GPU run at once as there are GPUs; return their number.

    0, and no limit, if jobs are submitted to a scheduler, or this machine has none. ``--resources gpu=N`` sets another
    limit. Which GPU is a job's own is decided when it begins (``provenance.cards``).
    """
    if workflow.remote_exec:
        os.environ[cards.GRANTED] = "1"
    if workflow.resource_settings.nodes is not None:  # of the main process, whose jobs are submitted
        return 0
    number = len(cards.visible())
    if number and "gpu" not in workflow.global_resources:
        workflow.register_resource("gpu", number)
    return number


def print_study(config: Mapping[str, Any], configfiles: Iterable[str | Path], gpus: int) -> None:
    """Print the planned study, its configuration files and its GPUs; print nothing in a job.

    Args:
        config: As all files make it, unchecked.
        configfiles: As after --configfile.
        gpus: Number of this machine's GPUs that jobs share.
    """
    read = ", ".join(map(from_here, configfiles)) or "the repository's own files: no --configfile is given"
    if is_in_job():
        return
    _say(f"Study {config.get('name')}, from {read}")
    if gpus:
        _say(f"GPUs of this machine: {gpus}, each used by one job at a time")
    elif cards.lack_cuda():
        _say(
            f"PyTorch {installed('torch')} cannot use this machine's GPUs: make environment LOCK=requirements-gpu.lock"
        )


def warn(line: str) -> None:
    """Print a line about a run that starts, unless it is empty."""
    if line:
        _say(line)


def print_gaps(runs_by_reason: Mapping[str, Sequence[str]]) -> None:
    """Print what cannot be had, with the number of runs that are gaps for it; nothing within a job."""
    for reason, runs in {} if is_in_job() else runs_by_reason.items():
        _say(f"Gap: {reason} ({len(runs)} run{'s' if len(runs) > 1 else ''})")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines about the study that is planned; nothing within a job."""
    for line in () if is_in_job() else lines:
        _say(line)


def check_targets(workflow: Any, results: str) -> None:
    """End the process with a line for each target that no rule makes: one that is there would be taken for a source.

    Args:
        workflow: Snakemake's, once all rules are known.
        results: The study's folder.
    """
    from snakemake.cli import get_argument_parser  # there already, since it runs this

    # Snakemake does not show its Snakefile the targets of the command line. It looks for these paths.
    words, rules = call_words(), {rule.name: rule for rule in workflow.rules}
    targets: list[str] = get_argument_parser().parse_args(words).targets if words else []
    given = ", ".join(os.path.relpath(file) for file in workflow.overwrite_configfiles)
    hint = f"The study is that of --configfile {given}" if given else "No --configfile is given"

    def findings() -> Iterator[str]:
        for target in sorted(one if Path(one).is_absolute() else os.path.relpath(one) for one in targets):
            if target not in rules and not any(rule.is_producer(target) for rule in rules.values()):
                files = [str(file).replace("<results>", results) for file in rules["all"].input]
                plain = [name for name, rule in rules.items() if not rule.has_wildcards()]
                yield f"{target}: no rule makes it. {advice(target, files if '/' in target else plain)} {hint}."

    with one_line_errors():
        refuse(findings())


# While jobs run


class Failures(logging.Filter):
    """Prints lines of its own in place of Snakemake's messages about jobs that start or fail."""

    def __init__(self, on_plan: Callable[[], str] = str) -> None:
        super().__init__()
        self._on_plan = on_plan
        self._failed: dict[int, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Print the log of a failed job, or at the end all sentences; returns whether Snakemake prints ``record``."""
        event, text = vars(record).get("event"), str(record.msg)
        if event == LogEvent.RUN_INFO:  # of a dry run twice
            said, self._on_plan = self._on_plan(), str
            warn(said)
        if event == LogEvent.JOB_INFO:
            job = vars(record)
            wildcards = (f"{name}={value}" for name, value in (job["wildcards"] or {}).items())
            called = job["rule_msg"] or " ".join([job["rule_name"], *wildcards])  # in place of all files
            before, params, _json = job["reason"].partition(_PARAMS)
            named = (
                " (named by python -m workflow_scripts stale, with the same --configfile)" if params else ""
            )
            job |= {"rule_msg": called, "reason": f"{before}{params}{named}"}
        if event == LogEvent.JOB_FINISHED:
            self._failed.pop(vars(record)["job_id"], None)  # it was tried again
        elif event == LogEvent.JOB_ERROR:
            job = vars(record)
            cause = [f"    {job['rule_msg']}"] if job["rule_msg"] else []  # what the cluster says
            parts = [why(map(Path, job["log"])), *cause, f"    log: {' '.join(job['log'])}"]
            self._failed[job["jobid"]] = "\n".join(parts)
            _say(f"Failed: {job['rule_name']}, log {' '.join(job['log'])}")
            return False
        elif text.startswith(_REDUNDANT_MESSAGES[1]) and self._failed:
            _say("\n".join(dict.fromkeys(self._failed.values())))
            return False
        return event != LogEvent.GROUP_ERROR and not (
            text.startswith(_REDUNDANT_MESSAGES[0]) or "\nCalledProcessError" in text
        )


def report_failures(on_plan: Callable[[], str] = str) -> None:
    """At the end of the run, print one line per failed job.

    Args:
        on_plan: Returns a line to print once all jobs are planned, before any of them starts; may be empty.
    """
    for handler in logger.handlers:
        if (
            handler.name == "DefaultStreamHandler"
        ):  # before its filter, which hides failures if --quiet hides rules
            handler.filters.insert(0, Failures(on_plan))


def why(logs: Iterable[Path]) -> str:
    """The line that says why a job ended, from the first of its logs that has one.

    Args:
        logs: The job's own, then those that a cluster kept.
    """
    texts = (log.read_text("utf-8", "replace") for log in logs if log.exists())
    lines = (line.strip() for text in texts for line in reversed(re.split(r"[\r\n]", text)))
    otherwise = "The job was ended from outside, or says nothing of what went wrong."
    return next((line for line in lines if _SENTENCE.match(line)), otherwise)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
