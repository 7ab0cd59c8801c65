"""Check whether a study can run here to its end, and estimate what its remaining jobs would take. Runs none of them.

Checks packages, the configuration with every run and column, keys, engines and data of the jobs that are left, and disk
space; with --profile slurm, it has sbatch test each distinct request. Every translator and language model is asked one
question, unless --offline leaves that out. A failed check is a red line that ends with a remedy.

The tables have jobs by rule, GPU hours of trainings (steps times the milliseconds that a step of SimCSE took), disk,
requests with days at a service's limits and dollars at its prices, and the place that each dataset and encoder would be
read from. An empty cell is an unknown number.

Exit code 1 if a check fails.

  python -m workflow_scripts preflight jtcse --offline
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.text import Text

from workflow_scripts.apis.ledger import is_offline
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.outside import NAMED_BY, need_findings
from workflow_scripts.graph.study import Study, data_root_of, open_study
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.verbs import cluster, engines, estimate
from workflow_scripts.verbs.plan import CONFIGURATION, TARGETS, PlannedJob, call_of, config_of, planned
from workflow_scripts.verbs.printing import Answer, Rows, argument

Check = tuple[bool, str]
"""Whether something is in order, and a line about it."""

ARGUMENTS = (
    TARGETS,
    *CONFIGURATION,
    argument("--profile", metavar="NAME", help="as for snakemake; ask its cluster as well"),
    argument("--offline", action="store_true", help="ask no translator and no language model"),
)


def answer(
    targets: list[str], configfile: list[str], config: list[str], profile: str | None, offline: bool
) -> Answer:
    """A line for each check, and tables of what is left; exit code 1 if a check fails."""
    found = [*_checked(package_findings(ROOT / "requirements.lock"), "packages: as pinned")]
    tables: list[Rows] = []
    try:
        call = call_of(configfile, config)
        jobs = planned(targets, call, from_nothing=False, profile=profile).jobs
        study = open_study(config_of(call), ROOT)
        found += checks(study, jobs, profile, ask=not (offline or study.config["offline"] or is_offline()))
        tables = tables_of(study, jobs)
    except ConfigError as error:
        found += _checked(str(error).splitlines(), "")
    failed = sum(not good for good, _ in found)
    marks = {True: ("ok   ", "green"), False: ("FAIL ", "bold red")}
    lines = [Text.assemble(marks[good], line) for good, line in found]
    said = f"{failed} in the way" if failed else "It can run here to its end."
    data = {"checks": [{"good": good, "line": line} for good, line in found]}
    return Answer(said, not failed, [*tables, *lines], data)


def tables_of(study: Study, jobs: Sequence[PlannedJob]) -> list[Rows]:
    """Estimates for the jobs that are left."""
    return [
        Rows("jobs by rule", estimate.by_rule(study, jobs)),
        Rows("GPU hours of trainings", estimate.gpu_hours(study, jobs)),
        Rows("requests", estimate.requests(study.config, jobs)),
        Rows("read from", estimate.read_from(jobs)),
    ]


def checks(study: Study, jobs: Sequence[PlannedJob], profile: str | None, *, ask: bool) -> Iterator[Check]:
    """All checks of a sound study; engines are asked only where ``ask`` is set and their keys are there."""
    yield True, f"configuration of {study.config['name']}: sound; {len(jobs):,} jobs are left to do"
    needed = [(job.rule, job.wildcards[NAMED_BY[job.rule]]) for job in jobs if job.rule in NAMED_BY]
    needs = [*need_findings(study.config, needed, data_root_of(study.config))]
    failed = {line.partition(": ")[0] for line in needs}
    needs += [line for line in estimate.without_revision(jobs) if line.partition(": ")[0] not in failed]
    yield from _checked(
        needs, f"keys, engines, data: there for the {len(set(needed))} sources and requests that are left"
    )
    if ask:
        asked = engines.answers(study.config, jobs)
        yield from (one for one in asked if one[1].partition(": ")[0] not in failed)
    wanted = sum(estimate.gigabytes(study, job) for job in jobs)
    yield from _checked(
        disk_findings(wanted, shutil.disk_usage(".").free / 1e9), "disk: enough, as far as is known"
    )
    if profile and (site := cluster.site_of(profile)):
        yield from cluster.answers(cluster.requests_of(jobs, site))


def _checked(findings: Iterable[str], otherwise: str) -> Iterator[Check]:
    """A failed check for each finding, or one that says what is in order."""
    found = list(dict.fromkeys(findings))
    yield from ((False, line) for line in found) if found else [(True, otherwise)]


def package_findings(lock: Path) -> Iterator[str]:
    """Packages of another version than the lock's."""
    pins = re.findall(r"^([\w.-]+)==([^\s;+]+)", lock.read_text("utf-8"), flags=re.MULTILINE)
    others = [f"{name} {_installed(name)}, pinned {pin}" for name, pin in pins if _installed(name) != pin]
    if others:
        yield f"packages: {'; '.join(others)}. Run pip install -r {lock.name} in .venv."


def _installed(name: str) -> str:
    try:
        return version(name).partition("+")[0]  # torch says for which processor it was built
    except PackageNotFoundError:
        return "not installed"


def disk_findings(wanted: float, free: float) -> Iterator[str]:
    """A finding where fewer gigabytes are free than the estimate needs."""
    if wanted > free:
        yield f"disk: {free:,.0f} GB free, about {wanted:,.0f} GB planned. Free some, or plan fewer runs."
