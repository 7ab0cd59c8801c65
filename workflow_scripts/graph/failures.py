"""Jobs on the terminal: a line for each that starts, with its reason, and at the very end why each that failed did.

Snakemake prints a failed job's command twice, and its whole log. Both stay in the run's own log, which is not changed.
Of a rerun it prints the JSON of all params before and now; here each changed setting or package has its old and new
value, and of many files two are named.
"""

import ast
import json
import logging
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snakemake.logging import logger
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.graph.slices import flat

_SENTENCE = re.compile(
    r"[\w.]*(?:Error|Exception|Interrupt|Exit)\b|(?:Preempted|Interrupted)\b|slurmstepd\S*: error: |Killed$"
)
"""How a line that says why a job ended begins."""
_REDUNDANT_MESSAGES = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete",
)

_ABSENT = "(absent)"
_SHOWN = 3
"""Changes that a line names; of more, their number."""
_LONGEST = 60
_NOTHING = "<nothing exclusive>"
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_SET = rf"({_TEXT}(?:,{_TEXT})*|{_NOTHING})"
_FILES = re.compile(r"((?:output|input) files|updated by another job): ([^;]+)")
"""How Snakemake prints files, separated by commas, before the next reason."""
_FILES_SHOWN = 2
_PARAMS = re.compile(rf"Params have changed since last execution: [^:]*: before: {_SET} now: {_SET} ")
"""How Snakemake prints params: the texts before and now, each as Python writes it."""


class Failures(logging.Filter):
    """Prints lines of its own in place of Snakemake's messages about jobs that start or fail."""

    def __init__(self) -> None:
        super().__init__()
        self._failed: dict[int, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Print the log of a failed job, or at the end all sentences; returns whether Snakemake prints ``record``."""
        event, text = getattr(record, "event", None), str(record.msg)
        if event == LogEvent.JOB_INFO:
            job = vars(record)
            wildcards = (f"{name}={value}" for name, value in (job["wildcards"] or {}).items())
            called = " ".join([job["rule_name"], *wildcards])  # in place of a message and all files
            job |= {"rule_msg": called, "reason": in_words(job["reason"])}
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


def report_failures() -> None:
    """At the end of the run, print one line per failed job."""
    for handler in logger.handlers:
        if (
            handler.name == "DefaultStreamHandler"
        ):  # before its filter, which hides failures if --quiet hides rules
            handler.filters.insert(0, Failures())


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


def in_words(reason: str) -> str:
    """Snakemake's reason for a job, with keys that differ in place of the JSON of changed params, and fewer files."""
    return _PARAMS.sub(lambda found: _changes(*found.groups()), _FILES.sub(_fewer, reason))


def _fewer(found: re.Match[str]) -> str:
    files = found[2].split(", ")
    more = f", and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
    return f"{found[1]}: {', '.join(files[:_FILES_SHOWN])}{more}"


def _changes(before: str, now: str) -> str:
    old, new = _values(before), _values(now)
    names = [name for name in old | new if old.get(name, _ABSENT) != new.get(name, _ABSENT)]
    shown = [
        f"{name} {_brief(old.get(name, _ABSENT))} -> {_brief(new.get(name, _ABSENT))}"
        for name in names[:_SHOWN]
    ]
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"Changed: {', '.join(shown) or 'the order of settings'}{more}"


def _values(texts: str) -> dict[str, Any]:
    """The entries of JSON texts, as Snakemake prints a set of params."""
    params = () if texts == _NOTHING else ast.literal_eval(f"({texts},)")
    return {name: value for text in params for name, value in flat(json.loads(text)).items()}


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
