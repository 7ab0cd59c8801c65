"""Whether some rule makes what this call of snakemake asks for, and what is worth knowing of the study.

Snakemake takes a file that is there for a source if no rule makes it, and says that nothing is to be done.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.errors import advice, one_line_errors, refuse
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.graph.place import from_here, is_in_job, words_of_call
from workflow_scripts.graph.study import Study

_IN_A_GRID = (
    "A grid of the study (config/experiments) must list the run, its seed and the suite, under its full name."
)


def check_targets(workflow: Any, study: Study) -> None:
    """Check the targets of this call.

    Ends the process with a line for each that no rule makes.

    Args:
        workflow: Snakemake's, once all rules are known.
        study: The study, whose tables and figures are what a wrong name may have meant.
    """
    rules, targets = list(workflow.rules), _targets()
    with one_line_errors():
        refuse(target_findings(targets, rules, study))


def _targets() -> list[str]:
    """Targets on snakemake's command line, which it does not show its Snakefile, as the paths that it looks for."""
    from snakemake.cli import get_argument_parser  # there already, since it runs this

    words = words_of_call()
    targets: list[str] = get_argument_parser().parse_args(words).targets if words else []
    return [target if Path(target).is_absolute() else os.path.relpath(target) for target in targets]


def target_findings(targets: Iterable[str], rules: Sequence[Any], study: Study) -> Iterator[str]:
    """Targets that are neither a rule nor a file that one makes, or that name scores by a suite of another kind."""
    plain = [rule.name for rule in rules if not rule.has_wildcards()]
    names, suites = {rule.name for rule in rules}, study.config["suites"]
    for target in sorted(targets):
        scores = re.match(rf"{study.folder}/scores/(\w+)/(\w+)/", target)
        kind, suite = scores.groups() if scores else ("", "")
        if suite not in suites.get(kind, [suite]):
            yield f"{target}: {suite} is no suite of {kind}. {advice(suite, suites[kind])}"
        elif target not in names and not any(rule.is_producer(target) for rule in rules):
            shown = (str(file) for rule in rules if rule.name == "all" for file in rule.input)
            known = [file.replace("<results>", study.folder) for file in shown] if "/" in target else plain
            yield f"{target}: no rule makes it. {_IN_A_GRID if kind else advice(target, known)}"


def print_about(study: Study, configfiles: Iterable[str | Path]) -> None:
    """Print on the terminal what is worth knowing of a study; nothing where Snakemake runs one of its jobs."""
    if not is_in_job():
        print("\n".join(lines_about(study, configfiles)), file=sys.stderr)  # noqa: T201


def lines_about(study: Study, configfiles: Iterable[str | Path]) -> Iterator[str]:
    """The study that is planned, files whose name for it is another one, and threads that this machine lacks.

    Args:
        study: The study.
        configfiles: As after --configfile; the last to name a study gives it its name.
    """
    name = study.config["name"]
    names = {from_here(file): (read_yaml(Path(file)) or {}).get("name", name) for file in configfiles}
    others = [f"{file} names {other}, which is overruled" for file, other in names.items() if other != name]
    yield "; ".join([f"Study {name}, in {study.folder}", *others])
    threads = max((study.settings[run]["training"]["cpu_threads"] for run in study.trained), default=0)
    if threads > (cores := os.cpu_count() or threads):
        yield f"training.cpu_threads is {threads}, and this machine has {cores}: here, fewer are faster."
