"""Everything that a person asks of this pipeline besides running it: python -m workflow_scripts VERB [ARGUMENT ...].

Run it in the folder where snakemake runs. Each verb has --help, with an example, and --json. Exit code 0: all is well;
1: something was found; 2: the call was wrong.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from workflow_scripts.errors import advice, one_line_errors


class Verb(NamedTuple):
    """One question; its module is imported when it is asked."""

    module: str
    asks: str
    packages: str = ""
    """All that it needs, as arguments of pip, on a machine that has nothing else of this pipeline."""


VERBS = {
    "preflight": Verb("verbs.preflight", "can it run here, and what would it take"),
    "show": Verb("verbs.show", "tables and scores; --csv, --markdown, --latex"),
    "claims": Verb("verbs.claims", "what the papers claim, and what a study says of it"),
    "explain": Verb("verbs.explain", "where a file or a table cell comes from"),
    "verify": Verb("verbs.verify", "is everything as it was written"),
    "stale": Verb("verbs.stale", "what would be made again, and why"),
    "diff": Verb("verbs.diff", "why do two files differ, and by how much"),
    "rebuild": Verb("verbs.rebuild", "make a file again elsewhere, and compare"),
    "lock": Verb("verbs.lock", "write down what a study holds, or compare with what was written down"),
    "schema": Verb(
        "verbs.schema", "which keys a configuration, or the options of a reader, may have: JSON Schema"
    ),
    "answers": Verb("verbs.answers", "what translators and language models were asked, and said"),
}


def overview() -> str:
    """The verbs by what a person wants."""
    lines = (f"  {name:<10} {verb.asks}" for name, verb in VERBS.items())
    return "\n".join(["usage: python -m workflow_scripts VERB [ARGUMENT ...]", "", *lines, "", str(__doc__)])


def ask(words: Sequence[str]) -> int:
    """Ask one verb; returns the exit code."""
    name, *arguments = words or ["--help"]
    if name in ("-h", "--help"):
        print(overview(), end="")  # noqa: T201
        return 0
    if name not in VERBS:
        print(f"{name}: no verb. {advice(name, VERBS)}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        module = import_module(f"workflow_scripts.{VERBS[name].module}")
    except ModuleNotFoundError as error:
        install = f"pip install {VERBS[name].packages}" if VERBS[name].packages else "make environment"
        print(f"{name}: no Python package {error.name} is here. {install}", file=sys.stderr)  # noqa: T201
        return 2
    parser = argparse.ArgumentParser(
        prog=f"python -m workflow_scripts {name}",
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        conflict_handler="resolve",  # a verb may have its own --json
        allow_abbrev=False,  # --config is not --configfile
    )
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    for names, options in module.ARGUMENTS:
        parser.add_argument(*names, **options)
    given = vars(parser.parse_args(arguments))
    from workflow_scripts.verbs.printing import give

    as_json = given.pop("json", False)
    return give(module.answer(**given), as_json=as_json)


def main() -> None:
    """Ask what the command line says; an error that a user can mend is one line."""
    try:
        with one_line_errors():
            sys.exit(ask(sys.argv[1:]))
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        print(end.code, file=sys.stderr)  # noqa: T201
        sys.exit(2)


if __name__ == "__main__":
    main()
