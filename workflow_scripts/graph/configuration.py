"""The configuration of a study: the files of ``config``, those laid over them, and what a command line gives.

Mappings are merged key by key; a list is replaced, or added to by ``key+``: ``datasets+: [mine]`` puts ``mine`` behind
what earlier files say of ``datasets``. Pydantic checks parts against their classes. Here its errors become lines that
say where a mistake is, in which file and line, what was found and what to do.
"""

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.errors import ConfigError, Finding, advice, refuse, shown
from workflow_scripts.graph.slices import Config, flat
from workflow_scripts.provenance.key import canonical

_AFTER_CONFIGFILE = "Check the path after --configfile; a target stands behind --."


def read_yaml(path: Path) -> Any:
    """Read a YAML file whose mappings name no key twice.

    Raises:
        ConfigError: with the line of the mistake.
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
    except yaml.YAMLError as error:  # a character that YAML does not know, such as a control character
        raise ConfigError(f"{path}: {' '.join(str(error).split())}. Fix the YAML.") from error
    return content


_MOST_VALUES, _DEEPEST = 100_000, 30
"""Limits of one file, aliases written out; the files of ``config`` have at most 3,116 values, in 10 levels."""


class _Loader(yaml.CSafeLoader):
    """YAML's safe loader, but a key that occurs twice and aliases that fill the memory are errors."""

    def construct_document(self, node: yaml.Node) -> Any:
        _count_values(node, (), {})
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _value in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(
                key, Hashable
            ):  # as in {{encoder}}, which YAML takes for a mapping of a mapping
                raise yaml.MarkedYAMLError(
                    problem="a list or a mapping is a key; text with braces or brackets stands in quotes",
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} occurs twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)

    def construct_number(self, node: yaml.ScalarNode) -> float | int:
        """The form that equal numbers share: 2.0 is 2."""
        number: float | int = canonical(self.construct_yaml_float(node))
        return number


def _count_values(node: yaml.Node, above: tuple[int, ...], known: dict[int, int]) -> int:
    """Return the number of values in a node, aliases written out.

    Args:
        node: A node of YAML; an alias is the node that it stands for.
        above: Ids of the nodes around it.
        known: Id to number, of the nodes that were counted before.

    Raises:
        MarkedYAMLError: if it contains itself, or has too many values or levels.
    """
    if id(node) in above or len(above) > _DEEPEST:
        found = "a block contains itself" if id(node) in above else f"more than {_DEEPEST} levels of blocks"
        raise yaml.MarkedYAMLError(problem=found, problem_mark=node.start_mark)
    if id(node) not in known:
        pairs = node.value if isinstance(node, yaml.CollectionNode) else ()
        parts = [part for pair in pairs for part in (pair if isinstance(pair, tuple) else (pair,))]
        known[id(node)] = 1 + sum(_count_values(part, (*above, id(node)), known) for part in parts)
    if known[id(node)] > _MOST_VALUES:
        found = f"aliases stand for more than {_MOST_VALUES:,} values"
        raise yaml.MarkedYAMLError(problem=found, problem_mark=node.start_mark)
    return known[id(node)]


_FLOAT = "tag:yaml.org,2002:float"
_Loader.add_constructor(_FLOAT, _Loader.construct_number)
# YAML 1.1, which PyYAML reads, takes 1e-4 and 1.0e4 for text, where YAML 1.2 and JSON see a number.
_WITH_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d{1,3}$")
_Loader.add_implicit_resolver(_FLOAT, _WITH_EXPONENT, list("-+.0123456789"))

PARTS = ("config", "encoders", "corpora", "apis", "exemplars", "datasets", "methods", "mteb", "extraction")
"""Files that every study reads, in order."""
GRIDS = "config/experiments"
"""Folder of the grids, below the Snakefile's."""
_ADD = "+"
_OF_ONE_NAME: Config = {"claims": {"papers": []}, "report": {"page": {"shows": None, "cannot_show": None}}}
"""Texts and claims describe the study of one name: a file that gives the study another name begins without them."""


def base_files(root: Path) -> list[Path]:
    """The files of the repository whose Snakefile is in ``root``."""
    return [root / f"config/{name}.yaml" for name in PARTS]


def load_config(
    root: Path,
    configfiles: Iterable[str | Path] = (),
    given: Mapping[str, Any] | None = None,
    place: str = "--config",
) -> Config:
    """The configuration that the repository's files make, with others laid over them in order.

    Args:
        root: Folder of the Snakefile.
        configfiles: As after --configfile.
        given: What is laid over all files.
        place: What messages call ``given``.

    Raises:
        ConfigError: with a line for each file that cannot be read, and each ``key+`` that has no list to add to.
    """
    config: Config = {}
    for name, layer in (read_layers([*base_files(root), *configfiles]) | {place: given or {}}).items():
        renamed = layer.get("name", config.get("name")) != config.get("name")
        for above in (_OF_ONE_NAME, layer) if renamed else (layer,):
            refuse(_in_layer(name, finding) for finding in [*_lay_over(config, above, config)])
    return config


def _in_layer(name: str, finding: Finding) -> Finding:
    """A finding about a key of one layer, with the layer's name and, in a file, the line."""
    file = Path(name)
    lines = _lines(file.read_text("utf-8")) if file.is_file() else {}
    line = lines.get(finding.path.replace(_ADD, ""))
    return finding._replace(file=f"{name}:{line}" if line else name)


def read_layers(files: Iterable[str | Path]) -> dict[str, Mapping[str, Any]]:
    """Contents of configuration files, by their paths.

    Raises:
        ConfigError: with a line for each file that cannot be read or has no keys at the top.
    """
    layers, findings = {}, []
    for file in files:
        try:
            layers[str(file)] = read_mapping(Path(file))
        except ConfigError as error:
            findings.append(str(error))
    refuse(findings)
    return layers


def read_mapping(file: Path) -> Mapping[str, Any]:
    """The keys of a file of YAML, with their values.

    Raises:
        ConfigError: if it cannot be read, or has no keys at the top.
    """
    content = read_yaml(file)
    if not isinstance(content, Mapping):
        found = "nothing in it" if content is None else f"{type(content).__name__} at the top"
        raise ConfigError(f"{file}: {found}. Write keys with their values.")
    return content


def placed(finding: Finding, root: Path, files: Iterable[str], given: Mapping[str, Any]) -> Finding:
    """Return a finding with the last file that has its setting, and the line there.

    Args:
        finding: About a setting of a grid, or of one of the files; without such a setting it stays as it is.
        root: Folder of the Snakefile.
        files: Laid over the repository's, in order.
        given: Of the command line.
    """
    if finding.file.startswith(f"{GRIDS}/"):
        layers = {str(root / finding.file): root / finding.file}
        texts = {}
    elif finding.file:
        return finding
    else:
        layers = {str(file): file for file in [*base_files(root), *map(Path, files)]}
        texts = {"--config": json.dumps(as_in_a_file(given), default=str)}
    texts = {name: file.read_text("utf-8") for name, file in layers.items() if file.is_file()} | texts
    above, _, _ = finding.path.rpartition(".")
    for path in filter(None, (finding.path, above)):  # the last key may be missing
        for name, text in reversed(texts.items()):
            if line := _lines(text).get(path):
                return finding._replace(file=name if name == "--config" else f"{name}:{line}")
    return finding


@cache
def _lines(text: str) -> dict[str, int]:
    """The line of every setting in a text of YAML, by its dotted path."""
    found: dict[str, int] = {}

    def note(node: yaml.Node | None, path: str) -> None:
        if isinstance(node, yaml.SequenceNode):
            parts = [(str(number), part, part) for number, part in enumerate(node.value)]
        else:
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            parts = [(str(key.value).removesuffix(_ADD), key, part) for key, part in pairs]
        for name, mark, part in parts:
            found[f"{path}{name}"] = mark.start_mark.line + 1
            note(part, f"{path}{name}.")

    note(yaml.compose(text, Loader=yaml.CSafeLoader), "")
    return found


def _lay_over(config: Config, above: Mapping[str, Any], whole: Config, path: str = "") -> Iterator[Finding]:
    """Merge ``above`` into ``config``; a line for each ``key+`` that has no list to add to."""
    for key, value in above.items():
        name, place = str(key).removesuffix(_ADD), f"{path}{key}"
        if isinstance(value, Mapping) and str(key).endswith(_ADD):
            yield Finding(
                place, "a mapping, which is merged key by key anyway", f"Write {place.removesuffix(_ADD)}."
            )
        elif isinstance(value, Mapping):
            if not isinstance(config.get(key), dict):
                config[key] = {}
            yield from _lay_over(config[key], value, whole, f"{place}.")
        elif not str(key).endswith(_ADD):
            config[key] = value
        elif not isinstance(value, list):
            item = value if isinstance(value, str) else shown(value)
            yield Finding(place, f"{shown(value)} is not a list", f"Write [{item}].")
        elif not isinstance(config.get(name), list):
            lists = [setting for setting, known in flat(whole).items() if isinstance(known, list)]
            yield Finding(place, "no earlier file has such a list", advice(place.removesuffix(_ADD), lists))
        else:
            config[name] = [*config[name], *value]


def as_in_a_file(value: Any) -> Any:
    """``value`` as ``--config`` gives it, with every text replaced by what it would be in a YAML file.

    Snakemake leaves words and nested values as text. A text that YAML cannot read stays a text, and the check of the
    configuration says what is wrong with it.
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


# Mistakes
