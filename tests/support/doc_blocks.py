"""Doing what the documentation says: its fenced blocks, in their order, in a folder where the demo has run.

``python -m tests.support.doc_blocks --write`` writes the tables of pages that are generated, between ``<!-- table: NAME -->`` and
``<!-- end -->``, and draws the picture of gains; without ``--write`` it lists those that are out of date.

A block's info string says what it is: ``python title=PATH`` (any language) is a file to write, ``yaml append=PATH`` text to
add at the end of one, ``diff edit=PATH`` lines to change, ``sh`` commands to run, ``sh dry`` commands to plan, ``sh untried: REASON`` what no test can run,
``python`` a script. Text, tables and the like are there to be read.
"""

import csv
import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
import yaml
from PIL import Image

from tests.support import printed_numbers
from tests.support.fork_server import programs
from tests.support.snakemake_plans import ROOT
from workflow_scripts.evaluation.significance import detectable_difference, half_width
from workflow_scripts.figures.drawing import figure_style
from workflow_scripts.figures.gains import draw_gains
from workflow_scripts.reporting.cells import brief
from workflow_scripts.settings.grids import PAPERS
from workflow_scripts.verbs.printing import markdown_table
from workflow_scripts.verbs.schema import schema_of

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
RECIPES = sorted(ROOT.glob("docs/adding/*.md"))
READ_LANGUAGES = {"text"}
_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLANNED = {"make": "--dry-run", "snakemake": "--dry-run --quiet all", "sqlite3": "-version"}
"""What makes a program say what it would do, and do nothing."""

Use = Literal["write", "append", "edit", "run", "plan", "script", "untried", "read"]


class Step(NamedTuple):
    """One fenced block: what is done with it, the path or reason of its info string, its language and text."""

    use: Use
    note: str
    language: str
    text: str


def steps(page: str) -> list[Step]:
    """The fenced blocks of a page, in their order."""
    return [_step(*found) for found in _FENCE.findall(page)]


def _step(language: str, info: str, text: str) -> Step:
    info = info.strip()
    if named := re.match(r"(title|append|edit)=(\S+)$", info):
        uses_of_files: dict[str, Use] = {"title": "write", "append": "append", "edit": "edit"}
        return Step(uses_of_files[named[1]], named[2], language, text)
    if untried := re.match(r"untried: *(.*)", info):
        return Step("untried", untried[1], language, text)
    assert info in ("", "dry"), f"{language} {info}: neither dry, untried, title, append nor edit"
    uses: dict[str, Use] = {"sh": "plan" if info else "run", "python": "script"}
    return Step(uses.get(language, "read"), "", language, text)


def planned(commands: str) -> str:
    """Commands that say what ``commands`` would do.

    Raises:
        AssertionError: if there is no such thing for one of them.
    """
    return "\n".join(_planned(line) for line in commands.splitlines() if line.strip())


def _planned(line: str) -> str:
    words = shlex.split(line, comments=True)
    program = next(number for number, word in enumerate(words) if "=" not in word)
    if words[program] == "python":
        assert words[program + 1] == "-m", f"{line}: cannot be planned"
        verb = words[program + 3 : program + 4] if words[program + 2] == "workflow_scripts" else []
        return shlex.join([*words[: program + 3], *verb, "--help"])
    option = _PLANNED[words[program]].split()
    return shlex.join([*words[: program + 1], *option, *words[program + 1 :]])


def follow(page: Path, folder: Path) -> list[Step]:
    """Do in ``folder`` what ``page`` says; returns the steps that were done.

    Raises:
        AssertionError: if a command fails, with what it printed.
    """
    found = steps(page.read_text("utf-8"))
    for step in found:
        do(step, page, folder)
    return found


def do(step: Step, page: Path, folder: Path) -> None:
    """Do one step of ``page`` in ``folder``.

    Raises:
        AssertionError: if a command fails, or an edit's lines are not in its file once.
    """
    if step.use == "write":
        assert not (folder / step.note).exists(), f"{page}: {step.note} is there already"
        (folder / step.note).parent.mkdir(parents=True, exist_ok=True)
        (folder / step.note).write_text(step.text, "utf-8")
    elif step.use == "append":
        assert (folder / step.note).exists(), f"{page}: no {step.note} to add to"
        with (folder / step.note).open("a") as file:
            file.write(step.text)
    elif step.use == "edit":
        lines, there = step.text.splitlines(keepends=True), (folder / step.note).read_text("utf-8")
        before, after = (
            "".join(line[1:] or line for line in lines if not line.startswith(other)) for other in "+-"
        )
        assert there.count(before) == 1, f"{page}: {step.note} does not have the lines once"
        (folder / step.note).write_text(there.replace(before, after), "utf-8")
    elif step.use in ("run", "plan"):
        run(planned(step.text) if step.use == "plan" else step.text, folder)
    elif step.use == "script":
        run(f"python -c {shlex.quote(step.text)}", folder)


def run(commands: str, folder: Path) -> None:
    """Run shell commands in ``folder`` with this Python's programs first.

    Raises:
        AssertionError: if one of them fails, with all that was printed.
    """
    path = os.pathsep.join([str(programs()), str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder, env=os.environ | {"PATH": path, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{commands}\n{done.stdout}"


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page)


def links(page: str) -> list[str]:
    """Targets of a page's links and pictures."""
    text = prose(page)
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)


def anchors(page: str) -> set[str]:
    """Anchors of a page: its headings, as GitHub writes them."""
    headings = re.findall(r"^#+ +(.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


_TABLE = re.compile(r"(<!-- table: ([\w ]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
CLAIMS = ROOT / "resources/laboratory/claims.md"
"""What `python -m workflow_scripts claims --markdown` printed of the laboratory: counts, an empty line, every comparison."""

GAINS = CLAIMS.with_name("gains.csv")
"""The points of the laboratory's figure of gains."""
PICTURE = ROOT / "docs/laboratory_gains.png"
_SOURCE = "Source"
"""Key of a picture's text with the hash of the points in it."""


def with_tables(page: str) -> str:
    """A page with its generated tables as they would be written now."""
    return _TABLE.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[4]}", page)


OFTEN_CHANGED = (
    "data_root",
    "experiments",
    "training.max_steps",
    "training.batch_size",
    "training.max_tokens",
    "training.learning_rate",
    "training.gpus",
    "training.chunk",
    "development.dataset",
    "evaluation.on_gpu",
)
"""Keys that people change; ``schema`` has all of them."""


def settings_table() -> str:
    """The keys that people change, in the words of their classes; a star marks keys that rerun nothing."""
    schema = schema_of("configuration")
    (whole,) = _blocks(schema, schema)
    fields: dict[str, dict[str, Any]] = {}
    for section, value in whole["properties"].items():
        path = f"{section}.<name>" if "patternProperties" in value else section
        fields[path] = value
        for block in _blocks(schema, value) if section != "methods" else []:
            fields |= {f"{path}.{key}": field for key, field in block["properties"].items()}
    lines = [
        f"| `{path}`{star} | {text} |"
        for path, field in ((path, fields[path]) for path in OFTEN_CHANGED)
        if (text := _description(field, _blocks(schema, field)))
        for star in ["\\*" if field.get("operational") else ""]
    ]
    return "\n".join(["| key | description |", "| --- | --- |", *lines])


def _blocks(schema: dict[str, Any], value: Any) -> list[dict[str, Any]]:
    """The classes whose blocks a value may be, or hold in a list or mapping."""
    if not isinstance(value, dict):
        return []
    if "properties" in value:
        return [value]
    inner = [schema["$defs"][value["$ref"].rpartition("/")[2]]] if "$ref" in value else []
    for key in ("anyOf", "oneOf", "allOf"):
        inner += value.get(key, [])
    inner += [
        value.get("additionalProperties"),
        value.get("items"),
        *value.get("patternProperties", {}).values(),
    ]
    return [block for one in inner for block in _blocks(schema, one)]


def _description(field: dict[str, Any], blocks: list[dict[str, Any]]) -> str:
    text = field.get("description") or (blocks[0].get("description", "") if len(blocks) == 1 else "")
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|").replace("``", "`")


def verdicts_table() -> str:
    """Numbers of verdicts, by paper."""
    counted, _compared = CLAIMS.read_text("utf-8").split("\n\n")
    return "\n".join(line for line in counted.splitlines() if not line.startswith("| all |"))


def contradicted_claims() -> str:
    """The claims that the laboratory contradicts, as a list, with measured and printed difference."""
    points = pd.read_csv(GAINS)
    contradicted = points[points["verdict"] == "contradicted"].to_dict("records")
    return "\n".join(["", *map(_contradicted, contradicted), ""])


def _contradicted(point: Mapping[Any, Any]) -> str:
    ends = f"{brief(point['low'])} to {brief(point['high'])}"
    printed = "" if pd.isna(point["printed"]) else f"; printed {point['printed']:.4g}"
    return f"* {PAPERS[point['paper']]}: {point['says']} {brief(point['difference'])} ({ends}){printed}"


def systems_table(folder: Path = CLAIMS.parent) -> str:
    """The systems that ``systems.yaml`` lists: mean over seeds, and gain over the own baseline, paired by seed."""
    listed = yaml.safe_load((folder / "systems.yaml").read_text("utf-8"))
    tables = {one["table"] for one in listed.values()}
    cells = pd.concat({table: pd.read_csv(folder / f"{table}.csv") for table in tables})
    means = cells[cells["heading"] == "mean"].droplevel(1).set_index("run", append=True)
    names = {one["run"]: name for name, one in listed.items()}
    rows = [
        {"system": name, **_gain(means.loc[(one["table"], one["run"])], names), "cost": one["cost"]}
        for name, one in listed.items()
    ]
    return markdown_table(rows).rstrip()


def _gain(row: "pd.Series[Any]", names: Mapping[str, str]) -> dict[str, str]:
    """A mean over seeds, and its difference to the baseline with the 95% interval, not corrected."""
    mean = f"{row['mean']:.2f}" + ("" if pd.isna(row["sd"]) else f" ± {row['sd']:.2f}")
    if pd.isna(row["sd"]) or pd.isna(row["baseline"]):
        return {"mean": mean, "gain (95%)": "", "over": ""}
    # The detectable difference is a multiple of the spread of differences between seeds, which the table has not.
    seeds, difference = int(row["seeds"]), row["difference"]
    spread = row["detectable"] / detectable_difference(1.0, seeds, alpha=0.05, power=0.8)
    reach = half_width(spread, seeds, alpha=0.05)
    gain = f"{difference:+.2f} ({difference - reach:.1f} to {difference + reach:.1f})"
    return {"mean": mean, "gain (95%)": gain, "over": names[row["baseline"]]}


def printed_table() -> str:
    """How many numbers the papers print, how many a run stands for, and how many the laboratory has measured."""
    measured = {
        (file.stem, cell["run"].removeprefix("'"), cell["heading"])
        for file in CLAIMS.parent.glob("*.csv")
        for cell in csv.DictReader(file.read_text("utf-8").splitlines())
        if cell.get("mean")
    }
    targets = {paper: [cell.target for cell in printed_numbers.cells(paper)] for paper in PAPERS}
    rows = [
        {
            "paper": PAPERS[paper],
            "printed": len(found),
            "with a run": sum(target is not None for target in found),
            "laboratory": sum(target in measured for target in found),
        }
        for paper, found in targets.items()
    ]
    return markdown_table(rows).rstrip()


TABLES: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "verdicts": verdicts_table,
    "contradicted claims": contradicted_claims,
    "printed numbers": printed_table,
    "systems": systems_table,
}


def out_of_date() -> Iterator[tuple[Path, str]]:
    """Pages whose generated tables are not what would be written now, with the text that would be."""
    for page in (*PAGES, ROOT / "config/README.md"):
        text = page.read_text("utf-8")
        if (new := with_tables(text)) != text:
            yield page, new


def points_drawn() -> str:
    """The hash of the points in the picture of gains; empty without a picture."""
    if not PICTURE.exists():
        return ""
    with Image.open(PICTURE) as picture:
        return str(picture.info.get(_SOURCE, ""))


def points_kept() -> str:
    """The hash of the points that the picture of gains should have."""
    return hashlib.sha256(GAINS.read_bytes()).hexdigest()


def draw_picture() -> None:
    """Draw the picture of gains, on white, since a page of GitHub may be dark."""
    with figure_style():
        picture = draw_gains(pd.read_csv(GAINS))
        picture.savefig(
            PICTURE, dpi=160, facecolor="white", bbox_inches="tight", metadata={_SOURCE: points_kept()}
        )


if __name__ == "__main__":
    if points_drawn() != points_kept():
        print(PICTURE.relative_to(ROOT))  # noqa: T201
        if sys.argv[1:] == ["--write"]:
            draw_picture()
    for page, new in out_of_date():
        print(page.relative_to(ROOT))  # noqa: T201
        if sys.argv[1:] == ["--write"]:
            page.write_text(new, "utf-8")
