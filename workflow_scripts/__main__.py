"""Commands for everything except running the pipeline: python -m workflow_scripts VERB [ARGUMENT ...].

Run it in the folder where you run snakemake. Each verb has --help, with an example, and --json. Exit codes: 0,
nothing is wrong; 1, something is; 2, wrong call.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from workflow_scripts.errors import STUDY_OPTIONS, advice, one_line_errors

VERBS = {
    "preflight": "check that a study can run here, and estimate its cost",
    "watch": "follow the running jobs of a study",
    "show": "print tables, sorted, chosen or joined; draw learning curves",
    "claims": "print a study's verdicts on the papers' claims",
    "explain": "show where a file or a table cell comes from",
    "verify": "check results for changes since they were written",
    "stale": "list results that would be made again, and why",
    "diff": "show why two files differ, and by how much",
    "rebuild": "rebuild a file elsewhere, and compare",
    "lock": "write a study's hashes and numbers to a lock file, or compare with one",
    "schema": "print a JSON Schema of the configuration, or of a reader's options",
}
"""Summary of each verb, by its module in ``verbs``, which is imported when it is called."""


def overview() -> str:
    """Return the help text: one line per verb."""
    lines = (f"  {name:<10} {summary}" for name, summary in VERBS.items())
    return "\n".join(["usage: python -m workflow_scripts VERB [ARGUMENT ...]", "", *lines, "", str(__doc__)])


def ask(words: Sequence[str]) -> int:
    """Run one verb, and return the exit code."""
    name, *arguments = words or ["--help"]
    if name in ("-h", "--help"):
        print(overview(), end="")  # noqa: T201
        return 0
    if name not in VERBS:
        print(f"error: unknown verb '{name}'. {advice(name, VERBS)}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        module = import_module(f"workflow_scripts.verbs.{name}")
    except ModuleNotFoundError as error:
        problem = f"Python package '{error.name}' is not installed. Run make environment"
        print(f"{name}: {problem}.", file=sys.stderr)  # noqa: T201
        return 2
    # without abbreviations: --config is not --configfile
    parser = argparse.ArgumentParser(
        prog=f"python -m workflow_scripts {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    some_exclude = any(exclusive for _, exclusive, _ in module.ARGUMENTS)
    # argparse prints no empty group
    either = parser.add_mutually_exclusive_group() if some_exclude else parser
    for names, exclusive, options in module.ARGUMENTS:
        (either if exclusive else parser).add_argument(*names, **options)
    values = vars(parser.parse_args(arguments))
    from workflow_scripts.graph.notes import options_for
    from workflow_scripts.verbs.printing import print_answer

    STUDY_OPTIONS.set(options_for)
    as_json = values.pop("json")
    return print_answer(module.answer(**values), as_json=as_json)


def main() -> None:
    """Run the verb of the command line; print an error that a user can mend as one line."""
    try:
        with one_line_errors():
            code = ask(sys.argv[1:])
            sys.stdout.flush()
            sys.exit(code)
    except BrokenPipeError:  # as in `| head`; Python would write the rest at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        print(end.code, file=sys.stderr)  # noqa: T201
        sys.exit(2)


if __name__ == "__main__":
    main()
