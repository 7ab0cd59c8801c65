"""Whether a study can run here to its end.

Looks at everything that a run would only miss later: Python and its packages, the configuration with every run and
column, keys, engines and data of the jobs that are left to do, folders, disk space and GPU memory; with --profile
slurm, the cluster's partitions, limits, GPUs and accounts in the place of this machine's GPU. It runs nothing. What is
in order is a line; what is not is red, with what to do about it, and makes the exit code 1.

  python -m workflow_scripts preflight jtcse --profile slurm
"""

import argparse
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet
from rich.text import Text

from workflow_scripts.audit.printing import Answer, rows_of
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.checks import rules_in
from workflow_scripts.graph.findings import advice
from workflow_scripts.graph.needs import NAMED_BY, Needed, need_findings
from workflow_scripts.graph.queue import ask, queue_findings, target_of
from workflow_scripts.graph.sbatch import Settings, as_groups, request_of, settings_of
from workflow_scripts.graph.study import Study, data_root_of
from workflow_scripts.planning.estimates import Estimator, by
from workflow_scripts.planning.graph import Graph, Job, add_targets, planned, study_in
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.provenance.closure import ROOT


class Line(NamedTuple):
    """What one check found; ``remedy`` is empty where all is well."""

    subject: str
    found: str
    remedy: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what preflight takes."""
    add_targets(parser)
    parser.add_argument("--profile", help="as for snakemake: check the cluster that it submits to, too")


def answer(args: argparse.Namespace) -> Answer:
    """A line for each check; exit code 1 if one is red."""
    if args.profile:
        check_profile(args.profile)
    lines = list(checks(args.targets, args.configfile, args.profile))
    red = [line for line in lines if line.remedy]
    said = f"{len(red)} in the way" if red else "It can run here to its end."
    return Answer(said, not red, [_shown(line) for line in lines], {"checks": rows_of(lines)})


def _shown(line: Line) -> Text:
    mark = Text("no ", "bold red") if line.remedy else Text("ok ", "green")
    return Text.assemble(mark, f"{line.subject}: {line.found}", f" {line.remedy}" if line.remedy else "")


def check_profile(name: str) -> None:
    """Look for a profile where snakemake would.

    Raises:
        ConfigError: if there is none of this name.
    """
    from snakemake.cli import get_profile_dir  # slow to import

    if get_profile_dir(name) is None:
        here = {file.parent.name for file in Path.cwd().glob("*/config.yaml")} - {"config"}
        known = sorted(here) or [str(ROOT / "slurm")]
        raise ConfigError(
            f"--profile {name}: no folder {name} with a config.yaml here. {advice(name, known)}"
        )


def checks(targets: Sequence[str], configfiles: Sequence[str], profile: str | None = None) -> Iterator[Line]:
    """All checks; those of the jobs need a configuration that is sound."""
    yield python(sys.version_info[:3], ROOT / "pyproject.toml")
    yield packages(ROOT / "requirements.lock")
    try:
        graph = planned(targets, configfiles, from_nothing=False, profile=profile)
    except ConfigError as error:
        for finding in str(error).splitlines():
            where, _, what = finding.partition(": ")
            found, _, remedy = what.rpartition(". ")
            yield Line(where, f"{found or what}.", remedy or "Correct it.")
        return
    yield Line("configuration", f"sound; {len(graph.jobs)} jobs are left to do")
    study = study_in(ROOT, configfiles)
    yield from needs(graph, study.config)
    yield from folders(study.config)
    estimator = Estimator(graph, read_rates(ROOT / "config/rates.yaml"), ROOT)
    yield disk(
        by(graph.jobs, estimator.gigabytes).value or 0.0,
        shutil.disk_usage(_nearest(Path("results"))).free / 1e9,
    )
    if profile and (settings := settings_of(["--profile", profile])):
        yield from cluster(graph, settings)
        return
    yield memory(graph, study, *gpu_gigabytes())
    if shutil.which("sbatch"):
        yield Line("cluster", "not asked; --profile slurm asks it")


def python(found: tuple[int, ...], project: Path) -> Line:
    """The version of Python against what the project says."""
    wanted = tomllib.loads(project.read_text("utf-8"))["project"]["requires-python"]
    shown = ".".join(map(str, found))
    if shown in SpecifierSet(wanted):
        return Line("Python", f"{shown} (wanted: {wanted})")
    return Line("Python", f"{shown}; the project wants {wanted}.", "Make .venv anew with such a Python.")


def packages(lock: Path) -> Line:
    """Installed versions against the lock."""
    pins = dict(re.findall(r"^([\w.-]+)==([^\s;+]+)", lock.read_text("utf-8"), flags=re.MULTILINE))
    others = [
        f"{name} {_installed(name)}, pinned {pin}" for name, pin in pins.items() if _installed(name) != pin
    ]
    if not others:
        return Line("packages", f"{len(pins)} as pinned in {lock.name}")
    shown = "; ".join(others[:3]) + (f"; and {len(others) - 3} more" if len(others) > 3 else "")
    return Line("packages", f"{shown}.", f"Run pip install -r {lock.name} in .venv.")


def _installed(name: str) -> str:
    try:
        return version(name).partition("+")[0]  # torch says for which processor it was built
    except PackageNotFoundError:
        return "not installed"


def needs(graph: Graph, config: dict[str, Any]) -> Iterator[Line]:
    """Keys, engines and data of the jobs that are left to do."""
    jobs = [Needed(job.rule, job.wildcards[NAMED_BY[job.rule]]) for job in graph.jobs if job.rule in NAMED_BY]
    findings = list(dict.fromkeys(need_findings(config, jobs, data_root_of(config))))
    for finding in findings:
        where, _, what = finding.partition(": ")
        found, _, remedy = what.rpartition(". ")
        yield Line(where, f"{found}.", remedy)
    if not findings:
        yield Line(
            "keys, engines, data", f"there for the {len(set(jobs))} sources and requests that are left"
        )


def folders(config: dict[str, Any]) -> Iterator[Line]:
    """Whether what a run writes to can be written."""
    answers = Path(os.environ.get("SEMBLANCE_ANSWERS", config["answers"])).parent
    written = [Path("results"), Path("logs"), Path("benchmarks"), Path(".snakemake"), answers]
    locked = [str(path) for path in written if not os.access(_nearest(path), os.W_OK | os.X_OK)]
    if locked:
        yield Line("folders", f"{', '.join(locked)} cannot be written.", "Change their owner or their mode.")
    else:
        yield Line("folders", f"{', '.join(map(str, written))} can be written")


def cluster(graph: Graph, settings: Settings) -> Iterator[Line]:
    """What the cluster of a profile would keep from running, or that it takes all."""
    local = local_rules(ROOT)
    jobs = [job for job in graph.jobs if job.rule not in local]
    requests = as_groups(
        ((group_of(job, settings), request_of(job.rule, job.queued)) for job in jobs), settings.components
    )
    targets = {target_of(job.rule, job.wildcards) for job in jobs}
    findings = list(queue_findings(requests, settings, targets))
    for finding in findings:
        where, _, what = finding.partition(": ")
        found, _, remedy = what.rpartition(". ")
        yield Line(where, f"{found}.", remedy)
    if not findings:
        yield Line("cluster", f"{len(jobs)} jobs go to the queue; sbatch --test-only takes what they ask for")
        code, _said = ask("sacct", "--noheader", "--starttime=now")
        better = "accounting answers: slurm-status-command: sacct outlives a slurmctld that is down"
        yield Line("accounting", better if code == 0 else "none answers: slurm-status-command stays squeue")


def group_of(job: Job, settings: Settings) -> str:
    """The group that a job is queued in; empty where it is queued alone."""
    return settings.groups.get(job.rule, "")


def local_rules(root: Path) -> set[str]:
    """Rules that run where Snakemake runs, which its dry run does not tell."""
    return {name for name, text in rules_in(root).items() if "localrule: True" in text}


def _nearest(path: Path) -> Path:
    """A path, or the nearest folder above it that is there."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())


def disk(wanted: float, free: float) -> Line:
    """Gigabytes that the plan takes, as far as its numbers know, against those that are free."""
    if wanted <= free:
        return Line("disk", f"{free:,.0f} GB free, about {wanted:,.1f} GB planned")
    return Line(
        "disk", f"{free:,.0f} GB free, about {wanted:,.0f} GB planned.", "Free some, or plan fewer runs."
    )


def gpu_gigabytes() -> tuple[float | None, str]:
    """Memory of the smallest GPU here, None where there is none or none that says, and what its tool said instead."""
    if not shutil.which("nvidia-smi"):
        return None, ""
    query = ("--query-gpu=memory.total", "--format=csv,noheader,nounits")
    code, said = ask("nvidia-smi", *query, seconds=60)  # a node of many GPUs takes its time
    sizes = [float(size) for size in said.split() if size.isdigit()] if code == 0 else []
    return (min(sizes) * 1.048576e-3, "") if sizes else (None, said.strip())  # it counts in MiB


def memory(graph: Graph, study: Study, gigabytes: float | None, complaint: str = "") -> Line:
    """The largest training that is left to do, without activations, against a GPU's memory.

    Args:
        graph: What is left to do.
        study: Whose trainings they are.
        gigabytes: Of the smallest GPU here.
        complaint: What its tool said where it did not tell them.
    """
    each = {
        " ".join(job.wildcards.values()): _trained_gb(job, study)
        for job in graph.jobs
        if job.rule in ("train_encoder", "continue_mlm")
    }
    sizes = {name: known for name, known in each.items() if known is not None}
    unsized = [name for name in each if name not in sizes]
    if not each:
        return Line("GPU memory", "no training is left to do")
    more = (
        f"; of {len(unsized)}, as {unsized[0]}, nobody can say before the encoder is fetched"
        if unsized
        else ""
    )
    if not sizes:
        return Line("GPU memory", f"what trainings take is not known{more}")
    largest = max(sizes, key=lambda name: sizes[name])
    wanted = f"{sizes[largest]:,.1f} GB and its activations for {largest}{more}"
    if gigabytes is None:
        unknown, none = f"nvidia-smi does not say ({complaint})", "no GPU here: trainings use the CPU"
        return Line("GPU memory", f"{unknown if complaint else none}; the largest takes {wanted}")
    if sizes[largest] <= gigabytes:
        return Line("GPU memory", f"{gigabytes:,.0f} GB; the largest training takes {wanted}")
    return Line("GPU memory", f"{gigabytes:,.0f} GB; {wanted}.", "Use a larger GPU, or leave that run out.")


def _trained_gb(job: Job, study: Study) -> float | None:
    """What a training keeps of parameters; None for an encoder that nobody can size yet.

    Four bytes each, and twelve more with a gradient and AdamW's two moments, which frozen ones beside adapters lack.
    """
    run = job.wildcards.get("run")
    method = study.method(run) if run else {}
    sizes = study.sizes.behind(study.runs[run].encoder if run else job.wildcards["encoder"])
    known = [size.parameters for size in sizes if size]
    frozen = method.get("base", method).get("weights")
    return sum(known) * (16 if frozen is None else 4) / 1e9 if len(known) == len(sizes) else None
