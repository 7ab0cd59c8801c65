"""List the readers of datasets, or those named.

Of each: the rows that it returns, the roles that its files may have, and its options with their types.

  python -m workflow_scripts readers scored_pairs_tsv
"""

import argparse
from collections.abc import Iterator

from workflow_scripts.audit.printing import Answer
from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.graph.findings import refuse, unknown
from workflow_scripts.graph.readers import Option, Reader, reader, reader_names


def described(name: str, takes: Reader) -> Iterator[str]:
    """Lines about one reader."""
    yield f"{name}: {takes.meaning}".replace("``", "")
    for form in takes.forms:
        yield f"  rows    {form}: {', '.join(FORMS[form].names)}"
    yield f"  files   {_roles(takes)}"
    for key, option in takes.options.items():
        yield f"  option  {key}: {_option(option)}"


def _roles(takes: Reader) -> str:
    roles = ", ".join(takes.roles)
    if not takes.roles:
        return takes.files
    return roles if takes.all_roles else f"any of {roles}"


def _option(option: Option) -> str:
    default = "" if option.default is None else f", {option.default} if left out"
    return f"{option.type}{default}. {option.meaning}".replace("``", "").rstrip()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what readers takes."""
    parser.add_argument("readers", nargs="*", metavar="READER", help="names; default: all")


def answer(args: argparse.Namespace) -> Answer:
    """Every reader, or those that are named."""
    names = args.readers or reader_names()
    refuse(finding for name in names for finding in unknown(name, reader_names(), "readers"))
    told = {name: [*described(name, reader(name))] for name in names}
    lines = [line for found in told.values() for line in (*found, "")]
    return Answer(f"{len(names)} readers", parts=lines, data=told)
