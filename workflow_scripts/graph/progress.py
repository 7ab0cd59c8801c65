"""How far a run is, where snakemake was told to be quiet about rules: lines that replace themselves on a terminal.

What is no terminal gets a line for each tenth of the jobs. Everything else that Snakemake prints stays as it is.
"""

import logging
import sys
from typing import Any

from snakemake.logging import logger
from snakemake.settings.enums import Quietness
from snakemake_interface_logger_plugins.common import LogEvent

_LISTED = 4
"""Running jobs that are named; of more, their number."""
_PARTS = 10
_OVERLAY = " additional config specified via the command line"
_STEPS = ("Select jobs to execute", "Execute ")
"""What Snakemake prints before each job."""
_COUNTED = (LogEvent.JOB_INFO, LogEvent.JOB_FINISHED, LogEvent.PROGRESS)
_HIDDEN = (*_COUNTED, LogEvent.JOB_STARTED, LogEvent.SHELLCMD)


class Progress(logging.Filter):
    """Counts jobs by what Snakemake says of them, and shows the count in the place of its messages."""

    def __init__(self, live: Any = None) -> None:
        """``live`` is what draws on a terminal (``rich.live.Live``); None where there is none."""
        super().__init__()
        self._live = live
        self._running: dict[int, str] = {}
        self._done, self._total, self._said = 0, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Take note of a job that begins or ends; what else Snakemake prints stands above the lines."""
        event, told = getattr(record, "event", None), vars(record)
        if event == LogEvent.JOB_INFO:
            values = dict(told["wildcards"] or {}).values()
            self._running[told["jobid"]] = " ".join([told["rule_name"], *values])
        elif event in (LogEvent.JOB_FINISHED, LogEvent.JOB_ERROR):
            self._running.pop(told["job_id" if event == LogEvent.JOB_FINISHED else "jobid"], None)
        elif event == LogEvent.PROGRESS:
            self._done, self._total = told["done"], told["total"]
        if event in _COUNTED:
            self._show()
        elif self._live is not None and is_printed(record):
            self._live.stop()
        return True

    def _show(self) -> None:
        if self._live is not None:
            self._live.start()
            self._live.update(self.text(), refresh=True)
        elif self._total and self._done * _PARTS // self._total > self._said:
            self._said = self._done * _PARTS // self._total
            print(f"{self._done} of {self._total} jobs done", file=sys.stderr, flush=True)  # noqa: T201

    def text(self) -> str:
        """The lines as they are now."""
        names = list(self._running.values())
        more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
        counted = f"{self._done} of {self._total} jobs done" if self._total else "jobs begin"
        return "\n".join([counted, *(f"  {line}" for line in [*names[:_LISTED], *more])])


def is_printed(record: logging.LogRecord) -> bool:
    """Whether a message is not among those that the lines stand for."""
    return getattr(record, "event", None) not in _HIDDEN and not str(record.msg).startswith(_STEPS)


def show_progress(workflow: Any) -> None:
    """Have the terminal of this run say how far it is, and nothing of configuration files that are laid over others."""
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(lambda record: _OVERLAY not in str(record.msg))
            hidden = any(Quietness.RULES in getattr(one, "quiet", ()) for one in handler.filters)
            if hidden and not workflow.dryrun:
                handler.addFilter(is_printed)
                logger.addFilter(Progress(_live() if sys.stderr.isatty() else None))


def _live() -> Any:
    from rich.console import Console  # of which a run without a terminal has no need
    from rich.live import Live

    return Live(
        console=Console(stderr=True, markup=False, highlight=False),
        auto_refresh=False,
        transient=True,
        redirect_stderr=False,
    )
