"""List everything that a file was made from, down to sources, and everything that was made from it.

Where ``explain`` draws the chain, this lists it, in both directions. Also takes a source as records name it,
such as hub:owner/name@revision/file, and lists what was made from that. Exit code 1 where something upstream
is missing, damaged or was made anew since.
"""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from workflow_scripts.audit import explain
from workflow_scripts.audit.reading import (
    artefact_at,
    console,
    is_outside,
    made_by,
    name_of,
    print_json,
    table,
)
from workflow_scripts.audit.verify import Judge, studies_of, unchecked
from workflow_scripts.errors import DataError


class Ancestor(NamedTuple):
    """Something upstream."""

    path: str
    state: explain.State
    seal: str
    job: str
    """Empty for a source or a file that no job made."""


class Descendant(NamedTuple):
    """Something downstream."""

    path: str
    job: str


@dataclass
class Lineage:
    """Both directions of one file."""

    path: str
    upstream: list[Ancestor] = field(default_factory=list)
    downstream: list[Descendant] = field(default_factory=list)

    @property
    def broken(self) -> bool:
        """Whether the chain upstream does not hold."""
        return any(one.state in ("missing", "damaged", "made anew since") for one in self.upstream)

    def as_data(self) -> dict[str, object]:
        """The lineage as JSON can hold it."""
        upstream = [one._asdict() for one in self.upstream]
        downstream = [one._asdict() for one in self.downstream]
        return {"path": self.path, "green": not self.broken, "upstream": upstream, "downstream": downstream}


def lineage(name: str, root: Path) -> Lineage:
    """Everything up and down from ``name``, a source as records name it or a file.

    Raises:
        DataError: if nothing knows of it.
    """
    judge = unchecked(root, studies_of(root, []))
    if is_outside(name):
        return Lineage(name, downstream=_downstream(judge, _readers_of_source(judge, name)))
    path = artefact_at(name_of(name, root), root)
    found = judge.made_from(path)
    if path not in judge.records and not found:
        raise DataError(f"{path}: no artefact, and no record names it. Name a file below results/.")
    upstream = _upstream(path, root) if path in judge.records else []
    return Lineage(path, upstream, _downstream(judge, found))


def _upstream(path: str, root: Path) -> list[Ancestor]:
    nodes = [node for node in explain.explain(root / path, root).walk() if not node.repeated]
    found = {node.path: Ancestor(node.path, node.state, node.seal, _job(node)) for node in nodes[1:]}
    order = ("results/",)  # artefacts in the order of the walk, then all else
    return sorted(found.values(), key=lambda one: not one.path.startswith(order))


def _job(node: explain.Node) -> str:
    return made_by(node.record) if node.record else ""


def _readers_of_source(judge: Judge, source: str) -> set[str]:
    direct = {
        name
        for name, record in judge.records.items()
        if source in {given.path for given in record.inputs.values()}
    }
    if not direct:
        raise DataError(f"{source}: no record names this source. explain lists those that a file came from.")
    return direct.union(*map(judge.made_from, direct))


def _downstream(judge: Judge, names: set[str]) -> list[Descendant]:
    return [Descendant(name, made_by(judge.records[name])) for name in sorted(names)]


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit lineage`` takes."""
    parser.add_argument("path", help="artefact, any file that a record names, or a source such as hub:...")


def run(args: argparse.Namespace) -> int:
    """List both directions; exit code 1 where the chain upstream does not hold."""
    found = lineage(args.path, args.root)
    if args.json:
        print_json(found.as_data())
    else:
        show(found, console())
    return 1 if found.broken else 0


def show(found: Lineage, out: Console) -> None:
    """Print both directions for people."""
    upstream = table("made from", "by", "seal", "state")
    for one in found.upstream:
        upstream.add_row(one.path, one.job, one.seal[:12], one.state)
    downstream = table("made into", "by")
    for other in found.downstream:
        downstream.add_row(other.path, other.job)
    out.print(found.path, style="bold")
    for shown in (upstream, downstream):
        out.print(shown if shown.row_count else "nothing in this direction", end="\n\n")
    out.print(
        f"{len(found.upstream)} upstream, {len(found.downstream)} downstream",
        style="red" if found.broken else "green",
    )
