"""Whether the readers that sources of datasets name are there, and take their files and options."""

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from workflow_scripts.config import names_in
from workflow_scripts.graph.findings import advice, unknown
from workflow_scripts.graph.mistakes import mistakes
from workflow_scripts.settings.readers import ReaderConfig

READERS = "workflow_scripts.settings.readers"


def reader(name: str) -> type[ReaderConfig]:
    """What the reader ``name`` takes."""
    takes: type[ReaderConfig] = importlib.import_module(f"{READERS}.{name}").Config
    return takes


def reader_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Readers, roles and options that sources of datasets name and that are not there, or not theirs."""
    for name, block in config["datasets"].items():
        for number, source in enumerate(block.get("sources", [])):
            if "reader" in source:
                yield from _of_source(source, block["form"], f"datasets.{name}.sources.{number}")


def _of_source(source: Mapping[str, Any], form: str, place: str) -> Iterator[str]:
    name, files = source["reader"], source["files"]
    if found := [*unknown(name, names_in(READERS), f"{place}.reader")]:
        yield from found
        return
    takes = reader(name)
    for role in files if takes.roles else ():
        if role not in takes.roles:
            yield f"{place}.files: {role} is no role of a file of {name}. {advice(role, takes.roles)}"
    for role in takes.roles if takes.all_roles else ():
        if role not in files:
            yield f"{place}.files: {name} needs a file of role {role}. Name it there."
    options = source.get("options", {})
    wrong = [*mistakes(takes, options, f"{place}.options.")]
    yield from wrong
    forms = takes.forms if wrong else takes.strictly(options).returns
    if form not in forms:
        yield f"{place}.reader: {name} reads {' or '.join(forms)}, not {form}. Name another, or correct form."
