"""Pin data that the configuration leaves open: python -m workflow_scripts.tools.pin [NAME ...].

Writes the sha256 of files that are now at hand in the place of `sha256: null`, and the newest commit of the Hub's
repositories that have none. Nothing else of a file is touched: comments and layout stay. A dataset is pinned only if
all files of that source are there and its rows meet its contract; what is not there is left as it is, and named. With
names, of datasets or encoders, exit code 1 if anything of theirs is left open. A pin is a setting: it reruns what reads
the dataset.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from workflow_scripts.data.hub import Kind, find
from workflow_scripts.data.planned import ON_HUB
from workflow_scripts.data.sources import Dataset, data_root, load
from workflow_scripts.errors import ConfigError, DataError, one_line_errors
from workflow_scripts.graph.findings import refuse, unknown
from workflow_scripts.graph.yaml_files import configfiles_of, read_yaml
from workflow_scripts.provenance.artefacts import atomic


class Pin(NamedTuple):
    """A text to be put into a configuration file."""

    start: int
    end: int
    """Characters between these two positions are replaced."""
    text: str
    shown: str
    """What a person is told."""


class Found(NamedTuple):
    """What can be pinned in one file, and what cannot."""

    pins: list[Pin]
    left: list[str]


class Open(NamedTuple):
    """A source of a file's text that leaves something open."""

    place: str
    """Such as datasets.sts16."""
    number: int
    block: Mapping[str, Any]
    """Of the dataset, or what is below ``fetch`` of an encoder."""
    node: yaml.MappingNode
    """Of the source."""

    @property
    def source(self) -> Mapping[str, Any]:
        """As the configuration has it."""
        source: Mapping[str, Any] = self.block["sources"][self.number]
        return source


def find_pins(file: Path, names: Iterable[str], root: Path | None) -> Found:
    """What the data at hand can pin in one configuration file.

    Args:
        file: YAML with datasets or encoders.
        names: Of those to look at; all if there are none.
        root: Folder of local data.

    Raises:
        ConfigError: if the file cannot be read.
    """
    found = Found([], [])
    wanted = {*names}
    for one in _sources(file):
        if not wanted or one.place.partition(".")[2] in wanted:
            try:
                found.pins.extend(_revision(one) if one.source["kind"] in ON_HUB else _hashes(one, root))
            except DataError as error:
                line = str(error)
                found.left.append(line if line.startswith(one.place) else f"{one.place}: {line}")
    return found


def _sources(file: Path) -> Iterator[Open]:
    """Sources of the blocks of a file, in order."""
    config, node = read_yaml(file) or {}, yaml.compose(_text(file), Loader=yaml.SafeLoader)
    for section, below in (("datasets", ()), ("encoders", ("fetch",))):
        for name, block in (config.get(section) or {}).items():
            path = [section, name, *below, "sources"]
            listed = _at(node, path)
            if isinstance(listed, yaml.SequenceNode):
                for number, source in enumerate(listed.value):
                    yield Open(f"{section}.{name}", number, block["fetch"] if below else block, source)


def _text(file: Path) -> str:
    """What a file holds, its ends of lines as they are."""
    return file.read_bytes().decode("utf-8")


def _at(node: yaml.Node | None, path: Iterable[str]) -> yaml.Node | None:
    """The node below keys, if each of them is there."""
    for key in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == key), None)
    return node


def _hashes(one: Open, root: Path | None) -> Iterator[Pin]:
    files = one.source.get("files", {})
    roles = [role for role, file in files.items() if file["sha256"] is None]
    if not roles:
        return
    name = one.place.partition(".")[2]
    decides = {key: value for key, value in one.block.items() if key != "about"}
    dataset = Dataset.parse(decides | {"sources": [dict(one.source)]}, one.place)
    _, origin = load(name, dataset, root)
    for role in roles:
        null = _at(one.node, ["files", role, "sha256"])
        if null is not None:
            yield _pin(one, null, origin[role].sha256, f"{origin[role].path}: sha256 {origin[role].sha256}")


def _revision(one: Open) -> Iterator[Pin]:
    """The newest commit of a repository that has none, put beside the repository where the key is left out."""
    if one.source.get("revision") is not None:
        return
    repository = one.source["repository"]
    kind: Kind = "dataset" if one.place.startswith("datasets.") else "model"
    newest = str(find(repository, None, kind))
    shown = f"hub:{repository}: revision {newest}"
    if (null := _at(one.node, ["revision"])) is not None:
        yield _pin(one, null, newest, shown)
    elif (beside := _at(one.node, ["repository"])) is not None:
        comma = ", " if one.node.flow_style else f"\n{' ' * one.node.start_mark.column}"
        end = beside.end_mark.index
        yield Pin(end, end, f"{comma}revision: {newest}", f"{one.place}: {shown}")


def _pin(one: Open, null: yaml.Node, text: str, shown: str) -> Pin:
    return Pin(null.start_mark.index, null.end_mark.index, text, f"{one.place}: {shown}")


def pinned(text: str, pins: Iterable[Pin]) -> str:
    """A file's text with its pins in their places; one that several blocks share is put there once."""
    for start, end, new in sorted({pin[:3] for pin in pins}, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def write(file: Path, pins: Iterable[Pin]) -> None:
    """Put pins into a file, whole or not at all."""
    text = pinned(_text(file), pins)
    with atomic(file) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def check_names(files: Iterable[Path], names: Iterable[str]) -> None:
    """Check that names are of datasets or encoders.

    Raises:
        ConfigError: with a line for each that is not.
    """
    known = {one.place.partition(".")[2] for file in files for one in _sources(file)}
    refuse(finding for name in names for finding in unknown(name, known, "pin"))


def main() -> None:
    """Look, write, and print what was written and what was left."""
    parser = argparse.ArgumentParser(prog="python -m workflow_scripts.tools.pin", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="datasets or encoders; default: all")
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], metavar="FILE", help="more files")
    parser.add_argument("--data-root", type=Path, default=data_root(), help="default: SEMBLANCE_DATA")
    parser.add_argument("--dry-run", "-n", action="store_true", help="print, and write nothing")
    given = parser.parse_args()
    if not Path("Snakefile").is_file():
        raise ConfigError("Snakefile: no such file. Run this in the folder of the pipeline.")
    files = [*configfiles_of(Path("Snakefile")), *given.configfile]
    check_names(files, given.names)
    found = [_pin_file(file, given) for file in files]
    if not any(map(any, found)):
        print("Nothing is open.")  # noqa: T201
    sys.exit(1 if given.names and any(one.left for one in found) else 0)


def _pin_file(file: Path, given: argparse.Namespace) -> Found:
    """Pin one file, and print what is done and what is left."""
    found = find_pins(file, given.names, given.data_root)
    if found.pins and not given.dry_run:
        write(file, found.pins)
    did = "would write" if given.dry_run else "wrote"
    lines = [*(f"{did}: {pin.shown}" for pin in found.pins), *(f"left: {line}" for line in found.left)]
    for line in lines:
        print(f"{file}: {line}")  # noqa: T201
    return found


if __name__ == "__main__":
    with one_line_errors():
        main()
