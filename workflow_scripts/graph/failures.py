"""Jobs on the terminal: a line for each that starts, one a minute on progress, and why jobs failed at the very end.

Snakemake prints a failed job's command twice, and its whole log. Both stay in the run's own log, which is not changed.
"""

import logging
import re
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from snakemake.logging import DefaultFilter, logger
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

from workflow_scripts.graph.place import is_in_job
from workflow_scripts.graph.reasons import in_words

_SENTENCE = re.compile(
    r"[\w.]*(?:Error|Exception|Interrupt|Exit)\b|(?:Preempted|Interrupted)\b|slurmstepd\S*: error: |Killed$"
)
"""How a line that says why a job ended begins."""
_REDUNDANT_MESSAGES = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete",
)


class Failures(logging.Filter):
    """Prints lines of its own in place of Snakemake's messages about jobs that start or fail."""

    def __init__(self) -> None:
        super().__init__()
        self._failed: dict[int, str] = {}
        self._running: dict[int, tuple[str, Path, float]] = {}
        """Jobs by number: name, log and start."""
        self._said: dict[str, str] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Print the log of a failed job, or at the end all sentences; returns whether Snakemake prints ``record``."""
        event, text = getattr(record, "event", None), str(record.msg)
        if event == LogEvent.JOB_INFO:
            job = vars(record)
            job |= {"rule_msg": _named(job), "reason": in_words(job["reason"])}
            if job["log"]:
                self._running[job["jobid"]] = job["rule_msg"], Path(job["log"][0]), time.monotonic()
        if event == LogEvent.JOB_FINISHED:
            self._failed.pop(vars(record)["job_id"], None)  # it was tried again
            self._running.pop(vars(record)["job_id"], None)
        elif event == LogEvent.JOB_ERROR:
            job = vars(record)
            self._running.pop(job["jobid"], None)
            self._failed[job["jobid"]] = _sentence(job["log"], job["rule_msg"])
            _say(f"Failed: {job['rule_name']}, log {' '.join(job['log'])}")
            return False
        elif text.startswith(_REDUNDANT_MESSAGES[1]) and self._failed:
            _say("\n".join(dict.fromkeys(self._failed.values())))
            return False
        return event != LogEvent.GROUP_ERROR and not (
            text.startswith(_REDUNDANT_MESSAGES[0]) or "\nCalledProcessError" in text
        )

    def progress(self) -> str:
        """A line on one running job, of one whose log says something new if there is any; empty where none runs."""
        running = [*self._running.values()]  # a copy, since Snakemake goes on
        lines = {name: lines_of(log)[-1] for name, log, _ in running}
        new = [one for one in running if lines[one[0]] != self._said.get(one[0])]
        for name, _, began in (new or running)[:1]:
            self._said[name] = lines[name]
            others = f" ({len(running)} jobs are running)" if len(running) > 1 else ""
            return f"{name}, {(time.monotonic() - began) / 60:.0f} min: {lines[name]}{others}"
        return ""

    def report_progress(self) -> None:
        """Print such a line every minute, as long as the process lives."""
        while True:
            time.sleep(60)
            if line := self.progress():
                _say(line)


def report_failures() -> None:
    """Print the progress of this run each minute and, at its end, one line per failed job."""
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            failures = Failures()
            theirs = [one for one in handler.filters if isinstance(one, DefaultFilter)]
            if not is_in_job() and not any(one.dryrun or Quietness.ALL in one.quiet for one in theirs):
                threading.Thread(target=failures.report_progress, daemon=True).start()
            # Before the filter that hides failures where --quiet hides rules.
            handler.filters.insert(0, failures)


def _named(job: Mapping[str, Any]) -> str:
    """Rule and wildcards, in place of a message and all files."""
    wildcards = (f"{name}={value}" for name, value in (job["wildcards"] or {}).items())
    return " ".join([job["rule_name"], *wildcards])


def _sentence(logs: list[str], cause: str | None) -> str:
    """Why a job ended, what the cluster says, and where the log is."""
    said = why(map(Path, logs), "The job was ended from outside, or says nothing of what went wrong.")
    return "\n".join([said, *([f"    {cause}"] if cause else []), f"    log: {' '.join(logs)}"])


def why(logs: Iterable[Path], otherwise: str = "") -> str:
    """The line that says why a job ended, from the first of its logs that has one.

    Args:
        logs: The job's own, then those that a cluster kept.
        otherwise: What is said if none has such a line; if empty, the last line of the first log.
    """
    lines = [lines_of(log) for log in logs]
    found = [line for said in lines for line in reversed(said) if _SENTENCE.match(line)]
    return found[0] if found else otherwise or lines[0][-1]


def lines_of(log: Path) -> list[str]:
    """Lines of a log that say something."""
    text = log.read_text("utf-8", "replace") if log.exists() else ""
    return [line.strip() for line in re.split(r"[\r\n]", text) if line.strip()] or ["nothing written"]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201
