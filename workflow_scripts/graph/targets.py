"""Check that a rule makes each target of this call of snakemake, and print notes about the study.

If no rule makes an existing file, Snakemake treats it as a source and reports "nothing to be done".
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from workflow_scripts.errors import advice, one_line_errors, refuse
from workflow_scripts.graph.place import call_words, from_here, is_in_job
from workflow_scripts.graph.slices import Config
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.grids import paper_of

RECORD_FILE = "record.json"  # of a model folder; ``artefacts`` has the name, and is slow to import


def check_targets(workflow: Any, study: Study) -> None:
    """Check the targets of this call.

    Ends the process with a line for each that no rule makes.

    Args:
        workflow: Snakemake's, once all rules are known.
        study: The study, whose tables and figures are what a wrong name may have meant.
    """
    from snakemake.cli import get_argument_parser  # there already, since it runs this

    # Snakemake does not show its Snakefile the targets of the command line. It looks for these paths.
    words, rules = call_words(), list(workflow.rules)
    targets: list[str] = get_argument_parser().parse_args(words).targets if words else []
    targets = [target if Path(target).is_absolute() else os.path.relpath(target) for target in targets]
    hint = "" if workflow.overwrite_configfiles else " No --configfile is given."
    with one_line_errors():
        refuse(f"{finding}{hint}" for finding in target_findings(targets, rules, study))


def check_papers(workflow: Any, study: Study) -> list[str]:
    """The study's papers, each of which becomes a target.

    Ends the process with a line for each grid whose paper is the name of a rule.

    Args:
        workflow: Snakemake's, once all other rules are known.
        study: The study.
    """
    papers = {name: paper_of(name) for name in study.settings.experiments}
    with one_line_errors():
        refuse(
            f"experiments/{name}.yaml: its tables and figures would be the target {paper}, "
            "which is the name of a rule. Rename the file."
            for name, paper in papers.items()
            if workflow.is_rule(paper)
        )
    return sorted({*papers.values()})


def target_findings(targets: Iterable[str], rules: Sequence[Any], study: Study) -> Iterator[str]:
    """Targets that are neither a rule nor a file that one makes, or that name scores by a suite of another kind."""
    plain = [rule.name for rule in rules if not rule.has_wildcards()]
    names, suites = {rule.name for rule in rules}, study.settings.suites.by_kind

    def made(file: str) -> bool:
        return any(rule.is_producer(file) for rule in rules)

    for target in sorted(targets):
        parts = re.match(rf"{study.folder}/(?:runs|scores/(\w+)/(\w+))/([^/]+)/", target)
        kind, suite, run = parts.groups("") if parts else ("", "", "")
        if suite not in suites.get(kind, [suite]):
            yield f"{target}: {suite} is not a suite of {kind}. {advice(suite, suites[kind])}"
        elif run and run not in study.runs:
            yield f"{target}: the study has no run {run}. {advice(run, study.runs)}"
        elif made(record := f"{target}/{RECORD_FILE}"):
            yield f"{target}: a folder. Name its record: {record}"
        elif target not in names and not made(target):
            shown = (str(file) for rule in rules if rule.name == "all" for file in rule.input)
            known = [file.replace("<results>", study.folder) for file in shown] if "/" in target else plain
            yield f"{target}: no rule makes it. {advice(target, known)}"


def print_lines(lines: Iterable[str]) -> None:
    """Print on the terminal what is worth knowing of a study; nothing where Snakemake runs one of its jobs."""
    if not is_in_job():
        print("\n".join([*lines, ""]), end="", file=sys.stderr)  # noqa: T201


def check_configfiles() -> None:
    """End the process with a line if --configfile is given twice: Snakemake reads the files of the last alone."""
    options = takewhile(lambda word: word != "--", call_words())
    if sum(word.startswith("--configf") for word in options) > 1:
        sys.exit(
            "ConfigError: --configfile: given twice, and Snakemake reads what follows the last alone. "
            "Write all files after one."
        )


def study_line(config: Config, configfiles: Iterable[str | Path]) -> str:
    """The study that is planned, and the files that are laid over the repository's; the last to name one names it.

    Args:
        config: As all files make it, unchecked.
        configfiles: As after --configfile.
    """
    read = ", ".join(map(from_here, configfiles)) or "the repository's own files: no --configfile is given"
    return f"Study {config.get('name')}, from {read}"
