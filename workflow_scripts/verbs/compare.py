"""The facts of records, such as settings, inputs and code, and the one comparison of facts behind the audit's verbs."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.graph.reasons import flat
from workflow_scripts.provenance.artefacts import artefact_contents, content_identity
from workflow_scripts.provenance.record import Input, Record

ABSENT = "(absent)"
_MACHINE = {"python", "processor", "capability", "threads", "blas", "gpu"}
HASHES = ("code", "input", "source")
"""Sections whose values are hashes of files."""
_SHOWN_DIGITS = 12
_VARIES = re.compile(rb'<(td|span) class="varies[a-z ]*">[^<]*</\1>')
"""Elements of a page that differ from run to run: seconds, the machine and the commit."""

Facts = Mapping[str, Mapping[str, object]]
"""Sections, such as setting or code, and the entries of each."""


class Change(NamedTuple):
    """One entry that differs."""

    section: str
    key: str
    a: object
    b: object

    def as_row(self, a: str = "A", b: str = "B") -> dict[str, object]:
        """The change as people read it, its hashes cut, the two sides under these headings."""
        shown = (str(one)[:_SHOWN_DIGITS] if self.section in HASHES else one for one in (self.a, self.b))
        return {"what": self.section, "key": self.key} | dict(zip((a, b), shown, strict=True))


def facts(record: Record) -> Facts:
    """All that is compared of a record; places and labels come last."""
    return {
        "rule": {"": record.rule},
        "wildcard": record.wildcards,
        "setting": flat(record.settings),
        "code": record.meaning,
        "package": record.packages,
        "input": {role: given.sha256 for role, given in inputs_by_role(record).items()},
        "machine": record.origin.model_dump(include=_MACHINE),
        "commit": {"": record.origin.commit},
        "uncommitted changes": {"": record.origin.dirty},
        "label": dict.fromkeys(record.labels, "present"),
    }


def compare(a: Facts, b: Facts) -> list[Change]:
    """Every entry that differs or that one side lacks, section by section."""
    return [
        Change(section, key, one, two)
        for section in a
        for key in sorted(a[section].keys() | b[section].keys())
        if (one := a[section].get(key, ABSENT)) != (two := b[section].get(key, ABSENT))
    ]


def inputs_by_role(record: Record) -> dict[str, Input]:
    """The inputs by role; a role that contains a path, as one with several files, is without the study's name."""
    return {_role(role, given.path): given for role, given in record.inputs.items()}


def _role(role: str, path: str) -> str:
    inside = re.sub(r"^results/[^/]+/", "", path)
    return role.removesuffix(path) + inside if role.endswith(f"/{path}") else role


def contents_hash(path: Path, record: Record) -> str:
    """Hash of an artefact without its record and without the elements of a page that differ from run to run.

    It is computed again: a file that was sealed again may claim another.
    """
    pieces = artefact_contents(path, record)  # a page is one piece
    return content_identity(
        (_VARIES.sub(b"", piece) for piece in pieces) if path.suffix == ".html" else pieces, ()
    )
