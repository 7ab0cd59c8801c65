"""Pin data that the configuration leaves open.

Writes the sha256 of files that are now at hand in the place of `sha256: null`, and the newest commit of the Hub's
repositories that have none; a commit fixes the bytes of all files. Nothing else of a file is touched: comments and
layout stay. Files at hand are pinned only if all of their source are there and its rows meet the contract; what is not
there is left as it is, and named. With names, of datasets or encoders, exit code 1 if anything of theirs is left open.
A pin is a setting: it reruns what reads the dataset.

  python -m workflow_scripts pin sts16 --dry-run
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from workflow_scripts.audit.printing import Answer, argument
from workflow_scripts.data.hub import Kind, find
from workflow_scripts.data.planned import ON_HUB
from workflow_scripts.data.sources import load
from workflow_scripts.errors import ConfigError, DataError, refuse, unknown
from workflow_scripts.graph.checks import content_findings
from workflow_scripts.graph.configuration import base_files, load_config, read_yaml
from workflow_scripts.graph.study import data_root_of
from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.settings.datasets import Dataset


class Pin(NamedTuple):
    """A text to be put into a configuration file."""

    start: int
    end: int
    """Characters between these two positions are replaced."""
    text: str
    shown: str
    """What a person is told; empty for what stands beside another pin."""


class Source(NamedTuple):
    """A source of a dataset or encoder, as settings and as text."""

    place: str
    """Such as datasets.sts16."""
    settings: Mapping[str, Any]
    block: Mapping[str, Any]
    """Of the dataset, or what is below ``fetch`` of an encoder."""
    node: yaml.MappingNode

    @property
    def name(self) -> str:
        """The dataset's or encoder's."""
        return self.place.partition(".")[2]


def find_pins(file: Path, names: Iterable[str], root: Path | None) -> tuple[list[Pin], list[str]]:
    """What the data at hand can pin in one configuration file, and lines about what is left open.

    Args:
        file: YAML with datasets or encoders.
        names: Of those to look at; all if there are none.
        root: Folder of local data.

    Raises:
        ConfigError: if the file cannot be read.
    """
    pins, left, wanted = list[Pin](), list[str](), {*names}
    for source in sources_in(file):
        if not wanted or source.name in wanted:
            try:
                pins += _on_hub(source) if source.settings["kind"] in ON_HUB else _at_hand(source, root)
            except DataError as error:
                line = str(error)
                left.append(line if line.startswith(source.place) else f"{source.place}: {line}")
    return pins, left


def sources_in(file: Path) -> Iterator[Source]:
    """Sources of the blocks of a file, in order."""
    config, node = read_yaml(file) or {}, yaml.compose(_text(file), Loader=yaml.SafeLoader)
    for section, below in (("datasets", ()), ("encoders", ("fetch",))):
        for name, block in (config.get(section) or {}).items():
            listed = _at(node, [section, name, *below, "sources"])
            if isinstance(listed, yaml.SequenceNode):
                whole = block["fetch"] if below else block
                for settings, source in zip(whole["sources"], listed.value, strict=True):
                    yield Source(f"{section}.{name}", settings, whole, source)


def _text(file: Path) -> str:
    """What a file holds, its ends of lines as they are."""
    return file.read_bytes().decode("utf-8")


def _at(node: yaml.Node | None, path: Iterable[str]) -> yaml.Node | None:
    """The node below keys, if each of them is there."""
    for key in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == key), None)
    return node


def _at_hand(source: Source, root: Path | None) -> Iterator[Pin]:
    """Hashes of files on this machine, of which a reader has read rows that meet the contract."""
    roles = [role for role, file in source.settings.get("files", {}).items() if file["sha256"] is None]
    if not roles:
        return
    decides = {key: value for key, value in source.block.items() if key != "about"}
    dataset = Dataset.parse(decides | {"sources": [source.settings]}, source.place)
    _rows, origin = load(source.name, dataset, root)
    for role in roles:
        node, found = _at(source.node, ["files", role]), origin[role]
        shown = f"{source.place}: {found.path}: sha256 {found.sha256}"
        yield _set(node, "sha256", found.sha256, "path", shown)


def _on_hub(source: Source) -> Iterator[Pin]:
    """The newest commit of a repository that has none."""
    if source.settings.get("revision") is None:
        repository = source.settings["repository"]
        kind: Kind = "dataset" if source.place.startswith("datasets.") else "model"
        newest = str(find(repository, None, kind))
        shown = f"{source.place}: hub:{repository}: revision {newest}"
        yield _set(source.node, "revision", newest, "repository", shown)


def _set(mapping: yaml.Node | None, key: str, value: str, before: str, shown: str) -> Pin:
    """A value in the place of the one of ``key``, or behind the key ``before``."""
    assert isinstance(mapping, yaml.MappingNode), shown
    if (old := _at(mapping, [key])) is not None:
        return Pin(old.start_mark.index, old.end_mark.index, value, shown)
    end = next(node.end_mark.index for name, node in mapping.value if name.value == before)
    column = mapping.value[0][0].start_mark.column
    between = ", " if mapping.flow_style else f"\n{' ' * column}"
    return Pin(end, end, f"{between}{key}: {value}", shown)


def write(file: Path, pins: Iterable[Pin]) -> None:
    """Put pins into a file, whole or not at all; what several blocks share is put there once."""
    text = _text(file)
    line_end = "\r\n" if "\r\n" in text else "\n"
    for start, end, new in sorted({pin[:3] for pin in pins}, reverse=True):
        text = f"{text[:start]}{new.replace(chr(10), line_end)}{text[end:]}"
    with atomic(file) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


ARGUMENTS = (
    argument("names", nargs="*", metavar="NAME", help="datasets or encoders; default: all"),
    argument("--configfile", type=Path, nargs="+", default=[], metavar="FILE", help="more files"),
    argument("--dry-run", "-n", action="store_true", help="print, and write nothing"),
)


def answer(names: list[str], configfile: list[Path], dry_run: bool) -> Answer:
    """Look, write, and say what was written and what was left."""
    if not Path("Snakefile").is_file():
        raise ConfigError("Snakefile: no such file. Run this in the folder of the pipeline.")
    files = [*base_files(Path()), *configfile]
    config = load_config(Path(), configfile)
    refuse(content_findings(config, {}))
    known = {source.name for file in files for source in sources_in(file)}
    refuse(finding for name in names for finding in unknown(name, known, "pin"))
    root = data_root_of(config)
    wrote, left = list[str](), list[str]()
    for file in files:
        pins, open_still = find_pins(file, names, root)
        if pins and not dry_run:
            write(file, pins)
        did = "would write" if dry_run else "wrote"
        wrote += [f"{file}: {did}: {pin.shown}" for pin in pins if pin.shown]
        left += [f"{file}: left: {line}" for line in open_still]
    said = "" if wrote or left else "Nothing is open."
    return Answer(said, not (names and left), [*wrote, *left], {"wrote": wrote, "left": left})
