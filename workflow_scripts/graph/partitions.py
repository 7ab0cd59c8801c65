"""The file in which a site names its partitions, checked before the executor plugin (2.8.0) reads it.

Of most mistakes in it the plugin says nothing but a traceback.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.findings import advice
from workflow_scripts.graph.yaml_files import read_yaml

PARTITIONS = "slurm/partitions.yaml"
"""Where a site names its partitions."""
TIMES = "1440 (minutes), 24h, 2d12h or 1-00:00:00"
"""Forms of a limit of time that the plugin takes as they are meant."""
_CLUSTERS = ("slurm_cluster", "cluster", "clusters")
_KINDS = {"available_gpu_models": list, "available_constraints": list, "supports_mpi": bool}


def partition_findings(file: Path) -> Iterator[str]:
    """What the plugin would not understand, a line each."""
    if not file.is_file():
        yield f"{file}: no such file. slurm-partition-config of the profile names it."
        return
    try:
        content = read_yaml(file)
    except ConfigError as error:
        yield str(error)
        return
    shape = "Write partitions: {}, or below partitions: lines such as main: {max_runtime: 1440}"
    if not isinstance(content, dict) or "partitions" not in content:
        yield f"{file}: no key partitions. {shape}."
        return
    if not isinstance(content["partitions"], dict):
        yield f"{file}: partitions: {content['partitions']!r} is no mapping. {shape}."
        return
    written = yaml.load(file.read_text("utf-8"), Loader=yaml.CBaseLoader)["partitions"]
    for name, limits in content["partitions"].items():
        place = f"{file}: {name}"
        if not isinstance(name, str):
            yield f'{place}: is read as {name!r}, which is no name. Put it into quotes: "{name}".'
        elif not isinstance(limits, dict):
            yield f"{place}: {limits!r} is no mapping. Write name: {{max_runtime: 1440}}, or name: {{}}."
        else:
            yield from _limit_findings(place, limits, dict(written[name]))


def _limit_findings(place: str, limits: dict[str, Any], written: dict[str, str]) -> Iterator[str]:
    """What is wrong with one partition: its limits as YAML reads them, and as they are written."""
    from snakemake_executor_plugin_slurm.partitions import PartitionLimits

    known = [field.name for field in dataclasses.fields(PartitionLimits)]
    for key, value in limits.items():
        kind = _KINDS.get(key)
        if key in _CLUSTERS:
            continue
        if key not in known:
            yield f"{place}.{key}: no limit that the plugin knows. {advice(str(key), known)}"
        elif key == "max_runtime":
            yield from _time_findings(f"{place}.{key}", value, written.get(key, ""))
        elif kind and not isinstance(value, kind):
            yield f"{place}.{key}: {value!r} is no {'list' if kind is list else 'true or false'}. Correct it."
        elif not kind and (not isinstance(value, int | float) or isinstance(value, bool)):
            yield f"{place}.{key}: {value!r} is no number. Write one without a unit, or leave it out."


def _time_findings(place: str, value: Any, written: str) -> Iterator[str]:
    """A limit of time that the plugin refuses, or that YAML 1.1 turns into another: 24:00:00 is 86400 to it."""
    from snakemake_executor_plugin_slurm.partitions import PartitionLimits
    from snakemake_interface_common.exceptions import WorkflowError

    if isinstance(value, int | float) and ":" in written:
        yield f"{place}: {written} is read as {value} minutes. Write {TIMES}."
        return
    try:
        PartitionLimits(max_runtime=value)
    except (WorkflowError, TypeError, ValueError):
        yield f"{place}: {value!r} is no time. Write {TIMES}."
