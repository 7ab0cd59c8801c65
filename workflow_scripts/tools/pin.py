"""Pin data that the configuration leaves open.

Writes sha256 and size of files that are now at hand, or that the Hub holds, in the place of `sha256: null`, and the
newest commit of the Hub's repositories that have none. A contract without a number of rows gets it, where all sources
of a dataset are read alike. Nothing else of a file is touched: comments and layout stay. Files at hand are pinned only
if all of their source are there and its rows meet the contract; what is not there is left as it is, and named. With
names, of datasets or encoders, exit code 1 if anything of theirs is left open. A pin is a setting: it reruns what reads
the dataset. With --accept, another file than the one that is pinned is pinned beside it: from then on a dataset may be
read from either, since the rows of both meet its contract.

  python -m workflow_scripts pin sts16 --dry-run
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from workflow_scripts.audit.printing import Answer
from workflow_scripts.data.hub import Kind, describe, find
from workflow_scripts.data.planned import ON_HUB, accepted
from workflow_scripts.data.sources import load, local_root, package_root
from workflow_scripts.errors import ConfigError, DataError, MissingError
from workflow_scripts.graph.checks import content_findings
from workflow_scripts.graph.configuration import base_files, load_config
from workflow_scripts.graph.findings import refuse, unknown
from workflow_scripts.graph.study import data_root_of
from workflow_scripts.graph.yaml_files import read_yaml
from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.provenance.record import sha256_of
from workflow_scripts.settings.datasets import Dataset


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
    contract: yaml.Node | None
    """Of the dataset, where it has one of its own."""

    @property
    def source(self) -> Mapping[str, Any]:
        """As the configuration has it."""
        source: Mapping[str, Any] = self.block["sources"][self.number]
        return source


def find_pins(file: Path, names: Iterable[str], root: Path | None, *, accept: bool = False) -> Found:
    """What the data at hand can pin in one configuration file.

    Args:
        file: YAML with datasets or encoders.
        names: Of those to look at; all if there are none.
        root: Folder of local data.
        accept: Whether files at hand are pinned beside others that are pinned in their place.

    Raises:
        ConfigError: if the file cannot be read.
    """
    found = Found([], [])
    wanted = {*names}
    for one in _sources(file):
        if not wanted or one.place.partition(".")[2] in wanted:
            try:
                on_hub = one.source["kind"] in ON_HUB
                found.pins.extend(_on_hub(one) if on_hub else _hashes(one, root, accept=accept))
            except DataError as error:
                line = str(error)
                found.left.append(line if line.startswith(one.place) else f"{one.place}: {line}")
    return found


def _sources(file: Path) -> Iterator[Open]:
    """Sources of the blocks of a file, in order."""
    config, text = read_yaml(file) or {}, _text(file)
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for section, below in (("datasets", ()), ("encoders", ("fetch",))):
        for name, block in (config.get(section) or {}).items():
            path = [section, name, *below, "sources"]
            listed, contract = _at(node, path), _at(node, [section, name, "contract"])
            if contract and text[contract.start_mark.index] == "&":
                contract = None  # several blocks have it
            if isinstance(listed, yaml.SequenceNode):
                for number, source in enumerate(listed.value):
                    yield Open(
                        f"{section}.{name}", number, block["fetch"] if below else block, source, contract
                    )


def _text(file: Path) -> str:
    """What a file holds, its ends of lines as they are."""
    return file.read_bytes().decode("utf-8")


def _at(node: yaml.Node | None, path: Iterable[str]) -> yaml.Node | None:
    """The node below keys, if each of them is there."""
    for key in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == key), None)
    return node


def _hashes(one: Open, root: Path | None, *, accept: bool) -> Iterator[Pin]:
    """Hashes and sizes of files on this machine, and rows."""
    others = _other_roles(one, root) if accept else []
    roles = [*_open_roles(one), *others]
    if not roles:
        return
    name = one.place.partition(".")[2]
    decides = {key: value for key, value in one.block.items() if key != "about"}
    anything = {role: {"path": one.source["files"][role]["path"], "sha256": None} for role in others}
    source = {**one.source, "files": one.source["files"] | anything}
    dataset = Dataset.parse(decides | {"sources": [source]}, one.place)
    rows, origin = load(name, dataset, root)
    for role in roles:
        path = origin[role].path
        file = (root or Path()) / one.source["files"][role]["path"]
        size = file.stat().st_size if one.source["kind"] == "local" else None
        yield from _file(one, role, path, origin[role].sha256, size)
    yield from _rows(one, len(rows.table))


def _open_roles(one: Open) -> list[str]:
    return [role for role, file in one.source.get("files", {}).items() if file["sha256"] is None]


def _other_roles(one: Open, root: Path | None) -> list[str]:
    """Files at hand that have another hash than those that are pinned."""
    package = one.source.get("package")
    folder = package_root(package) if package else local_root(root)
    pins = {
        role: (folder / file["path"], file["sha256"]) for role, file in one.source.get("files", {}).items()
    }
    return [
        role
        for role, (path, pin) in pins.items()
        if pin and path.is_file() and sha256_of(path) not in accepted(pin)
    ]


def _on_hub(one: Open) -> Iterator[Pin]:
    """The newest commit of a repository that has none, and what the Hub says of its files."""
    if "repository" not in one.source:
        raise DataError(f"{one.place}: a source of kind hub names no repository. Write it there.")
    repository, revision = one.source["repository"], one.source.get("revision")
    kind: Kind = "dataset" if one.place.startswith("datasets.") else "model"
    if revision is None:
        revision = str(find(repository, None, kind))
        yield _revision(one, revision)
    if roles := _open_roles(one):
        files = {role: one.source["files"][role]["path"] for role in roles}
        known = describe(repository, revision, kind, list(files.values()))
        for role, path in files.items():
            if path not in known:
                raise MissingError(f"hub:{repository}@{revision}: no file {path}")
            if known[path].sha256:
                yield from _file(one, role, f"hub:{repository}@{revision}/{path}", *known[path][::-1])


def _revision(one: Open, newest: str) -> Pin:
    """Put beside the repository where the key is left out."""
    shown = f"hub:{one.source['repository']}: revision {newest}"
    if (null := _at(one.node, ["revision"])) is not None:
        return _pin(one, null, newest, shown)
    beside = _at(one.node, ["repository"])
    assert beside is not None, one.place
    end = beside.end_mark.index
    return Pin(end, end, f"{_next_key(one.node)}revision: {newest}", f"{one.place}: {shown}")


def _file(one: Open, role: str, name: str, sha256: str | None, size: int | None) -> Iterator[Pin]:
    """Hash and size of a file, one beside the other where there was no size."""
    given, null = _at(one.node, ["files", role]), _at(one.node, ["files", role, "sha256"])
    if sha256 is None or null is None or not isinstance(given, yaml.MappingNode):
        return
    old = _at(given, ["size"])
    if known := accepted(one.source["files"][role]["sha256"]):
        yield _pin(one, null, f"[{', '.join([*known, sha256])}]", f"{name}: sha256 {sha256} too")
        return
    beside = f"{_next_key(given)}size: {size}" if size is not None and old is None else ""
    yield _pin(
        one, null, f"{sha256}{beside}", f"{name}: sha256 {sha256}{f', {size} bytes' if beside else ''}"
    )


def _rows(one: Open, rows: int) -> Iterator[Pin]:
    """Rows of a dataset, before the first key of its contract; nothing where sources may differ in them."""
    ways = [(source.get("reader"), source.get("options")) for source in one.block["sources"]]
    if (
        not isinstance(one.contract, yaml.MappingNode)
        or _at(one.contract, ["rows"])
        or ways != ways[:1] * len(ways)
    ):
        return
    shown = f"{one.place}: rows {rows}"
    if not one.contract.value:
        start = one.contract.start_mark.index + 1
        yield Pin(start, start, f"rows: {rows}", shown)
        return
    start = one.contract.value[0][0].start_mark.index
    yield Pin(start, start, f"rows: {rows}{_next_key(one.contract)}", shown)


def _next_key(mapping: yaml.MappingNode) -> str:
    """What stands between two keys."""
    column = mapping.value[0][0].start_mark.column
    return ", " if mapping.flow_style else f"\n{' ' * column}"


def _pin(one: Open, null: yaml.Node, text: str, shown: str) -> Pin:
    return Pin(null.start_mark.index, null.end_mark.index, text, f"{one.place}: {shown}")


def pinned(text: str, pins: Iterable[Pin]) -> str:
    """A file's text with its pins in their places; one that several blocks share is put there once."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    for start, end, new in sorted({pin[:3] for pin in pins}, reverse=True):
        text = f"{text[:start]}{new.replace(chr(10), line_end)}{text[end:]}"
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what pin takes."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="datasets or encoders; default: all")
    parser.add_argument("--configfile", type=Path, nargs="+", default=[], metavar="FILE", help="more files")
    parser.add_argument(
        "--data-root", type=Path, help="default: data_root of the configuration, or else SEMBLANCE_DATA"
    )
    parser.add_argument(
        "--accept", action="store_true", help="pin the files at hand of NAME beside those that are pinned"
    )
    parser.add_argument("--dry-run", "-n", action="store_true", help="print, and write nothing")


def answer(given: argparse.Namespace) -> Answer:
    """Look, write, and say what was written and what was left."""
    if given.accept and not given.names:
        raise ConfigError("--accept: without a dataset. Name the one whose files are to be accepted.")
    if not Path("Snakefile").is_file():
        raise ConfigError("Snakefile: no such file. Run this in the folder of the pipeline.")
    files = [*base_files(Path()), *given.configfile]
    config = load_config(Path(), given.configfile)
    refuse(content_findings(config, {}))
    check_names(files, given.names)
    given.data_root = given.data_root or data_root_of(config)
    found = {file: _pin_file(file, given) for file in files}
    did = "would write" if given.dry_run else "wrote"
    wrote = [f"{file}: {did}: {pin.shown}" for file, one in found.items() for pin in one.pins]
    left = [f"{file}: left: {line}" for file, one in found.items() for line in one.left]
    said = "" if wrote or left else "Nothing is open."
    return Answer(said, not (given.names and left), [*wrote, *left], {"wrote": wrote, "left": left})


def _pin_file(file: Path, given: argparse.Namespace) -> Found:
    """Pin one file."""
    found = find_pins(file, given.names, given.data_root, accept=given.accept)
    if found.pins and not given.dry_run:
        write(file, found.pins)
    return found
