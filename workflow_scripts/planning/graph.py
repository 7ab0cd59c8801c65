"""The jobs of a study and what they are for, asked of Snakemake without running anything."""

import contextlib
import io
import json
import logging
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError

SHARED = "report"
"""The part of a study that no experiment needs: its page, and what that alone shows."""
EXTRACTION = "extraction"
"""The part that holds all tables and figures of the extraction study, which share their jobs."""


class Job(NamedTuple):
    """One job that a run of everything would execute."""

    rule: str
    wildcards: Mapping[str, str]
    settings: Mapping[str, Any]
    """Its slice of the configuration."""
    inputs: Sequence[str]
    outputs: Sequence[str]
    gpus: int
    minutes: int
    """The limit that its rule declares."""

    @property
    def part(self) -> str | None:
        """The experiment whose table or figure this job makes, if it makes one."""
        if self.rule in ("describe_datasets", "tabulate_extraction", "draw_extraction"):
            return EXTRACTION
        return self.wildcards.get("experiment")


class Graph:
    """Jobs by the files that they make."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.jobs = list(jobs)
        self._makers = {file: number for number, job in enumerate(self.jobs) for file in job.outputs}

    def maker(self, file: str) -> Job | None:
        """The job that makes a file; None for one that is there."""
        return self.jobs[self._makers[file]] if file in self._makers else None

    def makers(self, files: Iterable[str]) -> list[Job]:
        """The jobs that make ``files``, each once."""
        return [self.jobs[number] for number in dict.fromkeys(self._numbers(files))]

    def _numbers(self, files: Iterable[str]) -> Iterator[int]:
        return (self._makers[file] for file in files if file in self._makers)

    def parts(self) -> dict[str, list[Job]]:
        """Each experiment with all jobs that it takes; the last part holds those that no experiment takes.

        A job that several experiments share stands in each of them.
        """
        ends: dict[str, list[int]] = defaultdict(list)
        for number, job in enumerate(self.jobs):
            if job.part:
                ends[job.part].append(number)
        behind = {part: self._behind(numbers) for part, numbers in sorted(ends.items())}
        left = set(range(len(self.jobs))).difference(*behind.values())
        every = behind | ({SHARED: left} if left else {})
        return {part: [self.jobs[number] for number in sorted(numbers)] for part, numbers in every.items()}

    def _behind(self, numbers: Iterable[int]) -> set[int]:
        """Jobs and all whose files they read, directly or through others."""
        found: set[int] = set()
        pending = list(numbers)
        while pending:
            number = pending.pop()
            if number not in found:
                found.add(number)
                pending.extend(self._numbers(self.jobs[number].inputs))
        return found


class _Listener(logging.Filter):
    """Notes the jobs that Snakemake tells its loggers about, and what it complains of."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.complaints: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            self.complaints += [line for line in record.getMessage().splitlines() if line.strip()]
        elif getattr(getattr(record, "event", None), "value", None) == "job_info" and record.shellcmd:  # type: ignore[attr-defined]
            self.jobs.append(_job(record))
        return True


def _job(record: Any) -> Job:
    tokens = shlex.split(record.shellcmd)
    return Job(
        rule=record.rule_name,
        wildcards=dict(record.wildcards or {}),
        settings=json.loads(tokens[tokens.index("--config") + 1]),
        inputs=list(record.input),
        outputs=list(record.output),
        gpus=int(record.resources.get("gpu", 0)),
        minutes=int(record.resources.get("runtime", 0)),
    )


def planned(targets: Sequence[str], configfiles: Sequence[str]) -> Graph:
    """Plan in the working directory, as if nothing were there yet.

    Args:
        targets: Files or rules; none: the whole study.
        configfiles: As after snakemake's --configfile.

    Raises:
        ConfigError: if Snakemake does not accept the configuration, or does not know a target.
    """
    from snakemake.cli import main  # slow to import

    listener = _Listener()
    logger = logging.getLogger("snakemake.logging")
    logger.addFilter(listener)
    chosen = ["--configfile", *configfiles] if configfiles else []
    options = ["--dry-run", "--forceall", *chosen]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main([*options, "--", *targets])
    except SystemExit as end:
        if end.code:
            printed = [*listener.complaints, *said.getvalue().splitlines()]
            errors = [line for line in printed if "Error" in line] or printed or [str(end.code)]
            reason = errors[0].strip()
            raise ConfigError(f"snakemake cannot plan: {reason} Try snakemake --dry-run.") from None
    finally:
        logger.removeFilter(listener)
    return Graph(listener.jobs)
