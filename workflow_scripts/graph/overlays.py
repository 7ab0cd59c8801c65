"""Laying configuration files over each other: mappings key by key, lists replaced, or added to by ``key+``.

``datasets+: [mine]`` puts ``mine`` behind what the files below say of ``datasets``. To Snakemake, which merges first,
``datasets+`` is a key of its own, of which it keeps the last file's value. A configuration in which such a key is left
is therefore merged anew from its files.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.findings import advice, refuse
from workflow_scripts.graph.slices import Config
from workflow_scripts.graph.yaml_files import read_yaml

_ADD = "+"

Keys = tuple[str, ...]
"""From the top of a configuration to a place in it."""


def merged(files: Iterable[str | Path], command_line: Mapping[str, Any] | None = None) -> Config:
    """The configuration that files make, each laid over those before it, and the command line over all.

    Raises:
        ConfigError: if a file cannot be read or has no keys, or with a line for each list that is not there to be added
            to.
    """
    config: Config = {}
    for file in files:
        content = read_yaml(Path(file))
        if content is None:
            continue
        if not isinstance(content, Mapping):
            raise ConfigError(f"{file}: {type(content).__name__} at the top. Write keys with their values.")
        lay_over(config, content, str(file))
    lay_over(config, command_line or {}, "--config")
    return config


def lay_over(config: Config, above: Mapping[str, Any], place: str) -> None:
    """Merge ``above`` into ``config`` as Snakemake does, and add to the lists that it names with a plus.

    Raises:
        ConfigError: with a line for each list that is not there to be added to; nothing is merged then.
    """
    refuse(
        f"{place}: {'.'.join(path)}: {finding}"
        for path, block in additions(above)
        for finding in _findings(config, path, block)
    )
    _merge(config, above)


def additions(config: Mapping[str, Any], path: Keys = ()) -> Iterator[tuple[Keys, Mapping[str, Any]]]:
    """The path of every key that adds to a list, with the block that it is in."""
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from additions(value, (*path, str(key)))
        elif str(key).endswith(_ADD):
            yield (*path, str(key)), config


def _findings(config: Any, path: Keys, block: Mapping[str, Any]) -> Iterator[str]:
    """Why ``block``'s last key of ``path`` cannot add to a list of ``config``."""
    name = path[-1].removesuffix(_ADD)
    if name in block:
        yield f"{name} is in the same block. Keep one of them."
    if not isinstance(block[path[-1]], list):
        yield f"{block[path[-1]]!r} is no list. Write [{block[path[-1]]}]."
    for key in (*path[:-1], name):
        below = {str(step): part for step, part in config.items()} if isinstance(config, Mapping) else {}
        if key not in below:
            yield f"no file below has a key {key}. {advice(key, below)}"
            return
        config = below[key]
    if not isinstance(config, list):
        found = "a mapping" if isinstance(config, Mapping) else repr(config)
        yield f"{name} is {found} below, no list. Write {name} without the plus."


def _merge(config: Config, above: Mapping[str, Any]) -> None:
    for key, value in above.items():
        if isinstance(value, Mapping):
            if not isinstance(config.get(key), dict):
                config[key] = {}
            _merge(config[key], value)
        elif str(key).endswith(_ADD):
            name = key.removesuffix(_ADD)
            config[name] = [*config[name], *value]
        else:
            config[key] = value
