"""Whether somebody makes what this call asks for, and everything that rules read of the repository is there.

Snakemake takes a file that is there for a source if no rule makes it or its rule's inputs are missing, and says
that nothing is to be done.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph.findings import advice, refuse
from workflow_scripts.graph.study import Study

_IN_A_GRID = (
    "A grid of the study (config/experiments) must list the run, its seed and the suite, under its full name."
)


def check_targets(workflow: Any, study: Study) -> None:
    """Check the targets of this call and the static inputs of all rules.

    Ends the process with a line for each that nobody makes or that is not there.

    Args:
        workflow: Snakemake's, once all rules are known.
        study: The study, whose tables and figures are what a wrong name may have meant.
    """
    rules, targets = list(workflow.rules), _asked()
    with one_line_errors():
        refuse([*resource_findings(rules, study.root), *name_findings(targets, study)])
        refuse(target_findings(targets, rules, study.folder))


def _asked() -> list[str]:
    """Targets on snakemake's command line, of which it tells its Snakefile nothing, as it looks for their makers."""
    program = Path(sys.argv[0])
    if "snakemake" not in (program.name, program.parent.name):
        return []
    from snakemake.cli import get_argument_parser  # there already, since it runs this

    targets: list[str] = get_argument_parser().parse_args(sys.argv[1:]).targets
    return [target if Path(target).is_absolute() else os.path.relpath(target) for target in targets]


def name_findings(targets: Iterable[str], study: Study) -> Iterator[str]:
    """Targets that name scores of a kind by a suite of another kind."""
    for target in sorted(targets):
        parts = Path(target).parts[2:] if target.startswith(f"{study.folder}/") else ()
        if parts[:1] == ("scores",) and len(parts) > 3:
            _scores, kind, suite, *_rest = parts
            of_kind = study.config["suites"].get(kind, {})
            if suite not in of_kind and any(suite in suites for suites in study.config["suites"].values()):
                yield f"{target}: {suite} is no suite of {kind}. {advice(suite, of_kind)}"


def target_findings(targets: Iterable[str], rules: Iterable[Any], results: str) -> Iterator[str]:
    """Targets that are neither a rule nor a file that one makes."""
    rules = list(rules)
    names = {rule.name for rule in rules}
    for target in sorted(targets):
        if target not in names and not any(rule.is_producer(target) for rule in rules):
            plain = [rule.name for rule in rules if not rule.has_wildcards()]
            shown = next((rule for rule in rules if rule.name == "all"), None)
            files = [str(file) for file in shown.input] if shown else []
            known = [file.replace("<results>", results) for file in files] if "/" in target else plain
            remedy = _IN_A_GRID if f"{results}/scores/" in target else advice(target, known)
            yield f"{target}: no rule makes it. {remedy}"


def resource_findings(rules: Iterable[Any], root: Path) -> Iterator[str]:
    """Files below ``resources`` that rules read and that are not there."""
    for rule in rules:
        read = [str(file) for file in rule.input if not callable(file)]
        for file in read:
            if file.startswith("resources/") and "{" not in file and not (root / file).exists():
                known = sorted(f"{Path(file).parent}/{path.name}" for path in (root / file).parent.glob("*"))
                yield f"rule {rule.name}: {file} is not there. {advice(file, known)}"
