"""Whether a study can run here to its end.

Looks at everything that a run would only miss later: installed packages, the configuration with every run and column,
keys, engines and data of the jobs that are left to do, and disk space; with --profile slurm, the cluster's partitions,
limits, GPUs and accounts. It runs nothing. What is in order is a line; what is not is red, with what to do about it,
and makes the exit code 1.

  python -m workflow_scripts preflight jtcse --profile slurm
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rich.text import Text

from workflow_scripts.audit.printing import Answer, argument
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.configuration import load_config
from workflow_scripts.graph.outside import NAMED_BY, need_findings
from workflow_scripts.graph.queue import Settings, queue_findings, requests_of, settings_of, target_of
from workflow_scripts.graph.sizes import read_rates
from workflow_scripts.graph.study import data_root_of
from workflow_scripts.planning.graph import CONFIGFILE, TARGETS, Graph, planned
from workflow_scripts.planning.plan import Estimator, by
from workflow_scripts.provenance.closure import ROOT

Check = tuple[bool, str]
"""Whether something is in order, and a line about it."""


ARGUMENTS = (
    TARGETS,
    CONFIGFILE,
    argument("--profile", help="as for snakemake: check the cluster that it submits to, too"),
)


def answer(targets: list[str], configfile: list[str], profile: str | None) -> Answer:
    """A line for each check; exit code 1 if one is red."""
    found = list(checks(targets, configfile, profile))
    red = sum(not good for good, _ in found)
    marks = {True: ("ok ", "green"), False: ("no ", "bold red")}
    lines = [Text.assemble(marks[good], line) for good, line in found]
    said = f"{red} in the way" if red else "It can run here to its end."
    return Answer(said, not red, lines, {"checks": [{"good": good, "line": line} for good, line in found]})


def checks(targets: Sequence[str], configfiles: Sequence[str], profile: str | None = None) -> Iterator[Check]:
    """All checks; those of the jobs need a configuration that is sound."""
    yield from _checked(package_findings(ROOT / "requirements.lock"), "packages: as pinned")
    try:
        graph = planned(targets, configfiles, from_nothing=False, profile=profile)
    except ConfigError as error:
        yield from _checked(str(error).splitlines(), "")
        return
    yield True, f"configuration: sound; {len(graph.jobs)} jobs are left to do"
    config = load_config(ROOT, configfiles)
    jobs = [(job.rule, job.wildcards[NAMED_BY[job.rule]]) for job in graph.jobs if job.rule in NAMED_BY]
    yield from _checked(
        need_findings(config, jobs, data_root_of(config)),
        f"keys, engines, data: there for the {len(set(jobs))} sources and requests that are left",
    )
    estimator = Estimator(graph, read_rates(ROOT / "config/rates.yaml"))
    yield from _checked(
        disk_findings(by(graph.jobs, estimator.gigabytes).value or 0.0, shutil.disk_usage(".").free / 1e9),
        "disk: enough, as far as is known",
    )
    if profile and (settings := settings_of(["--profile", profile])):
        yield from _checked(
            cluster_findings(graph, settings), "cluster: sbatch --test-only takes what jobs ask for"
        )


def _checked(findings: Iterable[str], otherwise: str) -> Iterator[Check]:
    """What is in the way, a line each, or one about what is in order."""
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


def cluster_findings(graph: Graph, settings: Settings) -> Iterator[str]:
    """What the cluster of a profile would keep from running."""
    local = local_rules(ROOT)
    jobs = [job for job in graph.jobs if job.rule not in local]
    named = ((job.rule, settings.groups.get(job.rule), job.queued) for job in jobs)
    targets = {target_of(job.rule, job.wildcards) for job in jobs}
    yield from queue_findings(requests_of(named, settings.components), settings.plugin, targets)


def local_rules(root: Path) -> set[str]:
    """Rules that run where Snakemake runs, which its dry run does not tell."""
    texts = [file.read_text("utf-8") for file in root.glob("rules/*.smk")]
    parts = [part for text in texts for part in re.split(r"^ *rule\b", text, flags=re.MULTILINE)[1:]]
    named = ((re.match(r" (\w+):", part), part) for part in parts)
    return {name[1] for name, part in named if name and "localrule: True" in part}


def disk_findings(wanted: float, free: float) -> Iterator[str]:
    """Gigabytes that the plan takes, as far as its numbers know, where fewer are free."""
    if wanted > free:
        yield f"disk: {free:,.0f} GB free, about {wanted:,.0f} GB planned. Free some, or plan fewer runs."
