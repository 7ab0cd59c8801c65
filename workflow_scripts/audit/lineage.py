"""List everything that a file was made from, down to the sources, and everything that was made from it.

While ``explain`` draws a tree, this command lists both directions. It also accepts a source as named in records, such
as hub:owner/name@revision/file, and lists what was made from it. Exit code 1 if the file or something upstream is
missing, damaged or has been rebuilt since.
"""

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from workflow_scripts.audit import explain
from workflow_scripts.audit.lookup import artefact_at, is_outside, made_by, name_of
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.audit.verify import Verifier, studies_of, unchecked
from workflow_scripts.errors import DataError


class Ancestor(NamedTuple):
    """A file upstream."""

    path: str
    state: explain.State
    sha256: str
    job: str
    """Empty for a source or a file that no job made."""


class Descendant(NamedTuple):
    """A file downstream."""

    path: str
    job: str


@dataclass
class Lineage:
    """What a file was made from, and what was made from it."""

    path: str
    state: explain.State
    upstream: list[Ancestor] = field(default_factory=list)
    downstream: list[Descendant] = field(default_factory=list)

    @property
    def broken(self) -> bool:
        """Whether it, or something upstream, is missing, damaged or rebuilt."""
        states = {self.state, *(one.state for one in self.upstream)}
        return not states.isdisjoint({"missing", "damaged", "rebuilt since"})

    def as_data(self) -> dict[str, object]:
        """The lineage as data for JSON."""
        upstream = [one._asdict() for one in self.upstream]
        downstream = [one._asdict() for one in self.downstream]
        known = {"path": self.path, "state": self.state, "green": not self.broken}
        return {**known, "upstream": upstream, "downstream": downstream}


def lineage(name: str, root: Path) -> Lineage:
    """The lineage of ``name``, a file or a source as named in records.

    Raises:
        DataError: if it is not an artefact and no record names it.
    """
    verifier = unchecked(root, studies_of(root, []))
    if is_outside(name):
        return Lineage(name, "source", downstream=_downstream(verifier, _readers_of_source(verifier, name)))
    path = artefact_at(name_of(name, root), root)
    found = verifier.made_from(path)
    if path not in verifier.records and not found:
        raise DataError(f"{path}: not an artefact, and no record names it. Name a file below results/.")
    if path not in verifier.records:
        state = explain.node_at(path, "", root).state
        return Lineage(path, state, downstream=_downstream(verifier, found))
    chain = explain.explain(root / path, root)
    return Lineage(path, chain.state, _upstream(chain), _downstream(verifier, found))


def _upstream(chain: explain.Node) -> list[Ancestor]:
    nodes = [node for node in chain.walk() if not node.repeated]
    found = {node.path: Ancestor(node.path, node.state, node.sha256, _job(node)) for node in nodes[1:]}
    return sorted(found.values(), key=lambda one: not one.path.startswith("results/"))  # artefacts first


def _job(node: explain.Node) -> str:
    return made_by(node.record) if node.record else ""


def _readers_of_source(verifier: Verifier, source: str) -> set[str]:
    direct = {
        name
        for name, record in verifier.records.items()
        if source in {given.path for given in record.inputs.values()}
    }
    if not direct:
        raise DataError(
            f"{source}: no record names this source. Run audit explain on a file to see its sources."
        )
    return direct.union(*map(verifier.made_from, direct))


def _downstream(verifier: Verifier, names: set[str]) -> list[Descendant]:
    return [Descendant(name, made_by(verifier.records[name])) for name in sorted(names)]


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit lineage`` takes."""
    parser.add_argument("path", help="artefact, any file that a record names, or a source such as hub:...")


def run(args: argparse.Namespace) -> int:
    """List both directions; exit code 1 if it, or something upstream, is missing, damaged or rebuilt."""
    found = lineage(args.path, args.root)
    if args.json:
        print_json(found.as_data())
    else:
        show(found, console())
    return 1 if found.broken else 0


def show(found: Lineage, out: Console) -> None:
    """Print both directions as tables."""
    upstream = table("made from", "by", "hash", "state")
    for one in found.upstream:
        upstream.add_row(one.path, one.job, one.sha256[:12], one.state)
    downstream = table("made into", "by")
    for other in found.downstream:
        downstream.add_row(other.path, other.job)
    out.print(f"{found.path} ({found.state})", style="bold", soft_wrap=True)
    for shown in (upstream, downstream):
        out.print(shown if shown.row_count else "nothing in this direction", end="\n\n")
    out.print(
        f"{len(found.upstream)} upstream, {len(found.downstream)} downstream",
        style="red" if found.broken else "green",
    )
