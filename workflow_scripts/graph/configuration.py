"""The configuration of a study: the files of ``config``, further files that override them, and the command line.

Mappings are merged key by key. A list is replaced, or extended by ``key+``: ``datasets+: [mine]`` appends ``mine`` to
the ``datasets`` of earlier files. Pydantic checks parts against their classes; this module adds file and line to its
errors.
"""

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from workflow_scripts.errors import ConfigError, ErrorDetails, advice, refuse, shown
from workflow_scripts.graph.clone import from_here
from workflow_scripts.graph.slices import Config, flat
from workflow_scripts.provenance.key import canonical

_GIVEN = "--config"
"""Name of the layer of values of the command line."""
_AFTER_CONFIGFILE = "Check the path after --configfile; write targets after --."


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises:
        ConfigError: with file and line, if it cannot be read or a mapping has a key twice.
    """
    try:
        content = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # a subclass of CSafeLoader
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. {_AFTER_CONFIGFILE}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}. Save it as UTF-8. {_AFTER_CONFIGFILE}") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}:{line}: {error.problem}. Fix the YAML.") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow, such as a control character
        raise ConfigError(f"{path}: {' '.join(str(error).split())}. Fix the YAML.") from error
    return content


_MOST_VALUES, _DEEPEST = 100_000, 30
"""Limits of one file, with aliases expanded; the files of ``config`` have at most 3,116 values, in 10 levels."""


class _Loader(yaml.CSafeLoader):
    """YAML's safe loader, which also refuses duplicate keys and aliases that would fill the memory."""

    def construct_document(self, node: yaml.Node) -> Any:
        _count_values(node, (), {})
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _value in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=deep)
            # As in {{encoder}}, which YAML reads as a mapping with a mapping as its key.
            if not isinstance(key, Hashable):
                raise yaml.MarkedYAMLError(
                    problem="a list or a mapping is used as a key; put text with braces or brackets into "
                    "quotes",
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} occurs twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> float | int:
        """Return a number in the form that equal numbers share: 2 for 2.0."""
        number: float | int = canonical(self.construct_yaml_float(node))
        return number


def _count_values(node: yaml.Node, above: tuple[int, ...], known: dict[int, int]) -> int:
    """Return the number of values in a node, with aliases expanded.

    Args:
        node: A node of YAML; an alias is the node to which it refers.
        above: Ids of the nodes around it.
        known: Numbers of nodes that were counted before, by id.

    Raises:
        MarkedYAMLError: if the node contains itself, or has too many values or levels.
    """
    if id(node) in above or len(above) > _DEEPEST:
        problem = "a block contains itself" if id(node) in above else f"more than {_DEEPEST} levels of blocks"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    if id(node) not in known:
        pairs = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = [part for pair in pairs for part in (pair if isinstance(pair, tuple) else (pair,))]
        known[id(node)] = 1 + sum(_count_values(part, (*above, id(node)), known) for part in parts)
    if known[id(node)] > _MOST_VALUES:
        problem = f"aliases stand for more than {_MOST_VALUES:,} values"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return known[id(node)]


_FLOAT = "tag:yaml.org,2002:float"
_Loader.add_constructor(_FLOAT, _Loader.construct_number)
# PyYAML reads YAML 1.1, in which 1e-4 and 1.0e4 are text; in YAML 1.2 and JSON they are numbers.
_WITH_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d{1,3}$")
_Loader.add_implicit_resolver(_FLOAT, _WITH_EXPONENT, list("-+.0123456789"))

PARTS = ("config", "encoders", "corpora", "apis", "exemplars", "datasets", "methods", "mteb", "extraction")
"""Files of ``config`` that every study reads, in order."""
GRIDS = "config/experiments"
"""Folder of the grids, relative to the Snakefile's folder."""
_ADD = "+"
_OF_ONE_NAME: Config = {"claims": {"papers": []}, "report": {"page": {"can_show": None, "cannot_show": None}}}
"""Settings about one study: its page's texts and its claims. A file that renames the study drops them."""


def base_files(root: Path) -> list[Path]:
    """Return the configuration files of the repository whose Snakefile is in ``root``."""
    return [root / f"config/{name}.yaml" for name in PARTS]


def grid_file(name: str) -> str:
    """Return the path of a grid's file, relative to the Snakefile's folder."""
    return f"{GRIDS}/{name}.yaml"


def load_config(
    root: Path,
    configfiles: Iterable[str | Path] = (),
    given: Mapping[str, Any] | None = None,
    origin: str = _GIVEN,
) -> Config:
    """Return the configuration of the repository's files, with others merged into it in order.

    Args:
        root: Folder of the Snakefile.
        configfiles: Files after --configfile.
        given: Values that override all files.
        origin: Origin of ``given``, for messages.

    Raises:
        ConfigError: with a line for each unreadable file, each grid, and each ``key+`` without a list to extend.
    """
    config: Config = {}
    layers = read_layers([*base_files(root), *map(from_here, configfiles)])
    refuse(
        f"{file}: a grid, not a configuration. Keep it in {GRIDS}, and list its name under `experiments`."
        for file, layer in layers.items()
        if "runs" in layer
    )
    for name, layer in (layers | {origin: given or {}}).items():
        renamed = layer.get("name", config.get("name")) != config.get("name")
        for above in (_OF_ONE_NAME, layer) if renamed else (layer,):
            refuse(_in_layer(name, error) for error in [*_lay_over(config, above, config)])
    return config


def _in_layer(name: str, error: ErrorDetails) -> ErrorDetails:
    """Return an error about a key with the name of its layer and, for a file, the line."""
    file = Path(name)
    lines = _lines(file.read_text("utf-8")) if file.is_file() else {}
    line = lines.get(error.path.replace(_ADD, ""))
    return error._replace(file=f"{name}:{line}" if line else name)


def read_layers(files: Iterable[str | Path]) -> dict[str, Mapping[str, Any]]:
    """Return the contents of configuration files, by path.

    Raises:
        ConfigError: with a line for each file that is unreadable or no mapping.
    """
    layers, errors = {}, []
    for file in files:
        try:
            layers[str(file)] = read_mapping(Path(file))
        except ConfigError as error:
            errors.append(str(error))
    refuse(errors)
    return layers


def read_mapping(file: Path) -> Mapping[str, Any]:
    """Return the mapping in a YAML file.

    Raises:
        ConfigError: if the file is unreadable or no mapping.
    """
    content = read_yaml(file)
    if not isinstance(content, Mapping):
        problem = "empty" if content is None else f"{type(content).__name__} at the top"
        raise ConfigError(f"{file}: {problem}. Write keys with their values.")
    return content


class _Place(NamedTuple):
    """Place of a setting."""

    number: int
    """Number of its file among those in which it may be."""
    file: str
    line: int

    def __str__(self) -> str:
        """Return the place as it is printed; values of the command line have no line."""
        return self.file if self.file == _GIVEN else f"{self.file}:{self.line}"


def placed(
    errors: Iterable[ErrorDetails], root: Path, files: Iterable[str], given: Mapping[str, Any]
) -> list[ErrorDetails]:
    """Return errors with the last file that contains their setting and the line there, in the order of these.

    If a file gives a block of an earlier file another form, one error about that replaces those about the earlier keys.

    Args:
        errors: Errors about settings of the files or of a grid; others are returned unchanged.
        root: Folder of the Snakefile.
        files: Files that override the repository's, in order.
        given: Values of the command line.
    """
    paths = [*base_files(root), *map(Path, files)]
    layers = {str(path): path.read_text("utf-8") for path in paths if path.is_file()}
    layers[_GIVEN] = json.dumps(as_in_a_file(given), default=str)
    pairs = [_placed(error, root, layers) for error in errors]
    return [*dict.fromkeys(error for _, error in sorted(pairs, key=lambda pair: pair[0]))]


def _placed(
    error: ErrorDetails, root: Path, layers: Mapping[str, str]
) -> tuple[tuple[int, str, int], ErrorDetails]:
    """Return an error with its place, and a key that sorts errors: by layer, then by grid, then those of no file."""
    texts, after = layers, len(layers)
    if error.file:
        file = root / error.file
        texts = {str(file): file.read_text("utf-8")} if file.is_file() else {}
    place, decided = _place(error.path, texts), _place(error.decided_by, texts)
    if place is None:
        return (after if error.file else after + 1, error.file, 0), error
    if decided and place.number < decided.number:
        earlier = _place(error.decided_by.rpartition(".")[0], {place.file: texts[place.file]})
        problem = f"another form of the block than in {earlier or place}, whose keys stay"
        remedy = "Give the block another name: a file cannot remove keys of an earlier one."
        place, error = decided, ErrorDetails(error.decided_by, problem, remedy)
    order = (after if error.file else place.number, error.file, place.line)
    return order, error._replace(file=str(place), decided_by="")


def _place(path: str, texts: Mapping[str, str]) -> _Place | None:
    """Return the place of a setting in the last text that has it or, if none has its last key, the block around it."""
    above, _, _ = path.rpartition(".")
    for setting in filter(None, (path, above)):
        for number, (file, text) in reversed([*enumerate(texts.items())]):
            if line := _lines(text).get(setting):
                return _Place(number, file, line)
    return None


@cache
def _lines(text: str) -> dict[str, int]:
    """Return the line of each setting in a YAML text, by dotted path."""
    lines: dict[str, int] = {}

    def note(node: yaml.Node | None, path: str) -> None:
        if isinstance(node, yaml.SequenceNode):
            parts = [(str(number), part, part) for number, part in enumerate(node.value)]
        else:
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            parts = [(str(key.value).removesuffix(_ADD), key, part) for key, part in pairs]
        for name, mark, part in parts:
            lines[f"{path}{name}"] = mark.start_mark.line + 1
            note(part, f"{path}{name}.")

    note(yaml.compose(text, Loader=yaml.CSafeLoader), "")
    return lines


def _lay_over(
    config: Config, above: Mapping[str, Any], whole: Config, path: str = ""
) -> Iterator[ErrorDetails]:
    """Merge ``above`` into ``config``; yield an error for each ``key+`` without a list to extend."""
    for key, value in above.items():
        name, key_path = str(key).removesuffix(_ADD), f"{path}{key}"
        if isinstance(value, Mapping) and str(key).endswith(_ADD):
            yield ErrorDetails(
                key_path,
                "a mapping, which is always merged key by key",
                f"Write {key_path.removesuffix(_ADD)}.",
            )
        elif isinstance(value, Mapping):
            if not isinstance(config.get(key), dict):
                config[key] = {}
            yield from _lay_over(config[key], value, whole, f"{key_path}.")
        elif not str(key).endswith(_ADD):
            config[key] = value
        elif not isinstance(value, list):
            item = value if isinstance(value, str) else shown(value)
            yield ErrorDetails(key_path, f"{shown(value)} is not a list", f"Write [{item}].")
        elif not isinstance(config.get(name), list):
            lists = [setting for setting, known in flat(whole).items() if isinstance(known, list)]
            yield ErrorDetails(
                key_path, "no earlier file contains this list", advice(key_path.removesuffix(_ADD), lists)
            )
        else:
            config[name] = [*config[name], *value]


def as_in_a_file(value: Any) -> Any:
    """Return a value of ``--config`` with each text parsed as it would be in a YAML file.

    Snakemake passes words and nested values as text. A text that is no YAML stays a text, which the check of the
    configuration then reports.
    """
    if isinstance(value, str):
        with suppress(yaml.YAMLError):
            value = yaml.load(value, Loader=_Loader)
        return value
    if isinstance(value, Mapping):
        return {key: as_in_a_file(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_in_a_file(item) for item in value]
    return canonical(value)
