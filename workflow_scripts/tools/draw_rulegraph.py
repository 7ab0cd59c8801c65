"""Draw which rule feeds which, from what snakemake --rulegraph dot prints.

Rules of one file of ``rules/`` share a frame. An edge that longer paths imply is left out, or the report, which reads
nearly everything, would hide the rest.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from workflow_scripts.audit.lookup import check_file_place
from workflow_scripts.errors import DataError, MissingError, one_line_errors
from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.provenance.closure import ROOT

Edge = tuple[str, str]
STYLE = """
    graph [rankdir=LR, bgcolor=white, fontname="Helvetica", fontsize=11, fontcolor="#5c626b", nodesep=0.12,
           ranksep=0.35]
    node [shape=box, style="rounded,filled", fillcolor="#f3f5f7", color="#5c626b", fontname="Helvetica", fontsize=11,
          height=0.28, margin="0.10,0.03"]
    edge [color="#8a9099", arrowsize=0.6]"""

_JOINT = {
    re.compile(r"^evaluate_\w+_with_\w+$"): "evaluate_sts",
    re.compile(r"^draw_figures_as_in_\w+$"): "draw_figure",
    re.compile(r"^train_encoder_seeds\d+(?:_\d+)*$"): "train_encoder",
}
"""Rules for what a study has several of, and the rule as which each is drawn: that of the job that comes first."""


def parse(dot: str) -> set[Edge]:
    """Edges between rules, by name, of what ``snakemake --rulegraph dot`` prints; the target ``all`` is left out."""
    labels = re.findall(r'^\s*(\d+)\[label = "(\w+)"', dot, flags=re.MULTILINE)
    names = {number: _alone(label) for number, label in labels}
    pairs = re.findall(r"^\s*(\d+) -> (\d+)", dot, flags=re.MULTILINE)
    return {(names[source], names[target]) for source, target in pairs if names[target] != "all"}


def _alone(rule: str) -> str:
    """The rule that does one of the things that a joint one does; any other rule itself."""
    return next((alone for joint, alone in _JOINT.items() if joint.match(rule)), rule)


def reduced(edges: Collection[Edge]) -> set[Edge]:
    """The edges that no longer path implies; only a rule that feeds itself may close a circle."""
    after: dict[str, set[str]] = {}
    for source, target in edges:
        after.setdefault(source, set()).update({target} - {source})

    def reach(rule: str) -> set[str]:
        return {rule}.union(*(reach(target) for target in after.get(rule, ())))

    return {
        (source, target)
        for source, target in edges
        if not any(target in reach(other) for other in after[source] - {target}) or source == target
    }


def stages(folder: Path) -> dict[str, list[str]]:
    """Rules of each file in ``folder``, by the file's name."""
    return {
        path.stem: re.findall(r"^rule (\w+):", path.read_text("utf-8"), flags=re.MULTILINE)
        for path in sorted(folder.glob("*.smk"))
    }


def graph(edges: Collection[Edge], rules: Mapping[str, Collection[str]]) -> str:
    """The graph as text for ``dot``, with a frame around the rules of each stage."""
    drawn = {rule for edge in edges for rule in edge}
    frames = [
        f'    subgraph cluster_{stage} {{ label="rules/{stage}.smk"; color="#d5d8dd"; {"; ".join(shown)} }}'
        for stage, named in rules.items()
        if (shown := sorted(drawn.intersection(named)))
    ]
    arrows = [f"    {source} -> {target}" for source, target in sorted(edges)]
    return "\n".join(["digraph rules {" + STYLE, *frames, *arrows, "}"])


def as_svg(dot: str) -> str:
    """Lay a graph out, without the comments in which Graphviz names its version.

    Raises:
        MissingError: if Graphviz is not installed.
    """
    if shutil.which("dot") is None:
        raise MissingError("Graphviz's dot is not installed: apt-get install graphviz.")
    svg = subprocess.run(["dot", "-Tsvg"], input=dot, capture_output=True, text=True, check=True).stdout
    return re.sub(r"<!--.*?-->\n", "", svg, flags=re.DOTALL)


def main() -> None:
    """Read Snakemake's graph, write the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts.tools.draw_rulegraph", description=__doc__
    )
    parser.add_argument("picture", type=Path, help="file to write, an SVG")
    picture = parser.parse_args().picture
    check_file_place(picture)
    edges = reduced(parse(sys.stdin.read()))
    if not edges:
        raise DataError("standard input: no rule that feeds another. Call it as make rulegraph does.")
    svg = as_svg(graph(edges, stages(ROOT / "rules")))
    with atomic(picture) as temporary:
        temporary.write_text(svg, "utf-8")


if __name__ == "__main__":
    with one_line_errors():
        main()
