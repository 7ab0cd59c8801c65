"""List the readers of datasets, or those named.

Of each: the rows that it returns, the roles that its files may have, and its options with their types.

  python -m workflow_scripts readers delimited
"""

import argparse
import json
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from workflow_scripts.audit.printing import Answer
from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.config import names_in
from workflow_scripts.graph.findings import refuse, unknown
from workflow_scripts.graph.readers import READERS, reader
from workflow_scripts.settings.readers import ReaderConfig


def described(name: str, takes: type[ReaderConfig]) -> Iterator[str]:
    """Lines about one reader."""
    yield f"{name}: {takes.__doc__}"
    for form in takes.forms:
        yield f"  rows    {form}: {', '.join(FORMS[form].names)}"
    roles = ", ".join(takes.roles) or "under names of their own"
    yield f"  files   {roles if takes.all_roles else f'any of {roles}'}"
    for key, option in takes.model_fields.items():
        default = "" if option.is_required() else f", {json.dumps(option.default)} if left out"
        yield f"  option  {key}: {_type(option.annotation)}{default}. {option.description}"


def _type(annotation: Any) -> str:
    """Values that an option may have, in words."""
    words = {str: "text", int: "a whole number", bool: "true or false", NoneType: "null", list[str]: "a list"}
    words[dict[str, str]] = "a block of settings"
    choice = get_origin(annotation) in (Literal, Union, UnionType)
    return " or ".join(words.get(one, str(one)) for one in (get_args(annotation) if choice else [annotation]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what readers takes."""
    parser.add_argument("readers", nargs="*", metavar="READER", help="names; default: all")


def answer(args: argparse.Namespace) -> Answer:
    """Every reader, or those that are named."""
    names = args.readers or names_in(READERS)
    refuse(finding for name in names for finding in unknown(name, names_in(READERS), "readers"))
    told = {name: [*described(name, reader(name))] for name in names}
    lines = [line for found in told.values() for line in (*found, "")]
    return Answer(f"{len(names)} readers", parts=lines, data=told)
