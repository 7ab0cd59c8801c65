"""The configuration of a study: the files of ``config``, those laid over them, and what a command line gives.

Mappings are merged key by key; a list is replaced, or added to by ``key+``: ``datasets+: [mine]`` puts ``mine`` behind
what the files below say of ``datasets``.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.findings import advice, refuse
from workflow_scripts.graph.slices import Config
from workflow_scripts.graph.yaml_files import read_text, read_yaml
from workflow_scripts.provenance.key import canonical

PARTS = (
    "config",
    "encoders",
    "corpora",
    "apis",
    "exemplars",
    "datasets",
    "methods",
    "mteb",
    "extraction",
    "names",
)
"""Files that every study reads, in order."""
_ADD = "+"


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
        place: What messages call it.

    Raises:
        ConfigError: with a line for each file that cannot be read, or each list that is not there to be added to.
    """
    layers, findings = {}, []
    for file in [*base_files(root), *configfiles]:
        try:
            layers[str(file)] = _layer(Path(file))
        except ConfigError as error:
            findings.append(str(error))
    refuse(findings)
    config: Config = {}
    for name, layer in (*layers.items(), (place, given or {})):
        refuse(f"{name}: {finding}" for finding in [*_lay_over(config, layer, config)])
    return config


def _layer(file: Path) -> Mapping[str, Any]:
    content = read_yaml(file) or {}
    if not isinstance(content, Mapping):
        raise ConfigError(f"{file}: {type(content).__name__} at the top. Write keys with their values.")
    return content


def _lay_over(config: Config, above: Mapping[str, Any], whole: Config, path: str = "") -> Iterator[str]:
    """Merge ``above`` into ``config``, and say which lists are not there to be added to."""
    for key, value in above.items():
        name, place = str(key).removesuffix(_ADD), f"{path}{key}"
        if isinstance(value, Mapping):
            if not isinstance(config.get(key), dict):
                config[key] = {}
            yield from _lay_over(config[key], value, whole, f"{place}.")
        elif not str(key).endswith(_ADD):
            config[key] = value
        elif name in above:
            yield f"{place}: {name} is in the same block. Keep one of them."
        elif not isinstance(value, list):
            yield f"{place}: {value!r} is no list. Write [{value}]."
        elif not isinstance(config.get(name), list):
            yield f"{place}: no file below has such a list. {advice(place.removesuffix(_ADD), _lists(whole))}"
        else:
            config[name] = [*config[name], *value]


def _lists(config: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """The dotted path of every list."""
    for key, value in config.items():
        if isinstance(value, list):
            yield f"{path}{key}"
        elif isinstance(value, Mapping):
            yield from _lists(value, f"{path}{key}.")


def as_in_a_file(value: Any) -> Any:
    """``value`` as ``--config`` gives it, with every text replaced by what it would be in a YAML file.

    Snakemake leaves words and nested values as text. A text that YAML cannot read stays a text, and the check of the
    configuration says what is wrong with it.
    """
    if isinstance(value, str):
        return read_text(value)
    if isinstance(value, Mapping):
        return {key: as_in_a_file(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_in_a_file(item) for item in value]
    return canonical(value)
