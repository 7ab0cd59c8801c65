"""What rules call while Snakemake builds the job graph; every job loads this, so imports stay light."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import yaml

from workflow_scripts.closure import packages
from workflow_scripts.errors import ConfigError

Config = dict[str, Any]
AXES = ("method", "encoder", "corpus", "reading", "teacher")


class Wildcards(Protocol):
    """A job's wildcards, by attribute."""

    def __getattr__(self, name: str) -> str:
        """Value of the wildcard ``name``."""


class Run(NamedTuple):
    """One encoder of an experiment: which method, on what, read how, and how often."""

    method: str
    encoder: str
    corpus: str | None
    reading: str
    overrides: Config
    seeds: tuple[int, ...]
    teacher: str | None = None

    def seed_for(self, seed: int) -> int:
        """The seed of this run that goes with ``seed`` of a run made from it: its only one if it is not trained."""
        return seed if seed in self.seeds else self.seeds[0]


def config_slice(config: Config, **sections: str) -> Callable[[Wildcards], str]:
    """Make a param function: the named sections of the configuration as one JSON string.

    One string with sorted keys, because Snakemake compares params as a set of their ``repr``: two
    numbers that trade places would count as unchanged, and reordered keys as a change.

    Args:
        config: The whole configuration.
        sections: Name in the slice to dotted path in the configuration; ``{wildcards}`` are filled in.
    """

    def of(wildcards: Wildcards) -> str:
        filled = {name: path.format(**dict(wildcards.items())) for name, path in sections.items()}  # type: ignore[operator]
        return as_json({name: at(config, path) for name, path in filled.items()})

    return of


def as_json(value: Any) -> str:
    """JSON with sorted keys."""
    return json.dumps(value, sort_keys=True)


def at(config: Config, path: str) -> Any:
    """The value at a dotted path.

    Raises:
        ConfigError: naming the first key that is not there.
    """
    value: Any = config
    for depth, key in enumerate(keys := path.split(".")):
        if not isinstance(value, Mapping) or key not in value:
            raise ConfigError(f"{'.'.join(keys[: depth + 1])}: not in the configuration.")
        value = value[key]
    return value


@cache  # reading the versions takes 30 ms, and thousands of jobs ask for the same few
def versions(*modules: str) -> str:
    """Versions of the packages that running ``modules`` imports, as a param: an upgrade reruns its users."""
    return as_json(packages(*modules))


def read_experiments(config: Config, folder: Path) -> dict[str, Config]:
    """Read the grids that ``config`` asks for.

    Raises:
        ConfigError: if a grid has no file.
    """
    grids = {}
    for name in config["experiments"]:
        path = folder / f"{name}.yaml"
        if not path.exists():
            known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
            raise ConfigError(f"experiments: no file {path.name} in config/experiments; there are {known}.")
        grids[name] = yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)  # a tenth of the time
    return grids


def paper_of(experiment: str) -> str:
    """The paper, or study, that an experiment belongs to: its name up to the table or figure."""
    return re.sub(r"_(table|figure|readings).*", "", experiment)


class Point(NamedTuple):
    """Where a run lies in the sweep of its block: the name it has without it, and dotted setting to value."""

    series: str
    values: Config


def runs_of(grid: Mapping[str, Any]) -> dict[str, Run]:
    """Every run that one grid asks for, by its name.

    An axis may list several values; a run without a corpus is not trained and has one seed, unless it is made of
    runs that are (``of_seeds``).

    Raises:
        ConfigError: if two different runs would have one name.
    """
    runs: dict[str, Run] = {}
    for block in grid["runs"]:
        for name, run, _ in _expand(block, grid["seeds"]):
            if runs.get(name, run) != run:
                raise ConfigError(f"{grid['title']}: two runs are named {name}. Give one of them a tag.")
            runs[name] = run
    return runs


def points_of(grid: Mapping[str, Any]) -> dict[str, Point]:
    """Where the runs of blocks with a sweep lie, by name."""
    return {
        name: point
        for block in grid["runs"]
        if block.get("sweep")
        for name, _, point in _expand(block, grid["seeds"])
    }


def _expand(block: Config, seeds: Sequence[int]) -> Iterator[tuple[str, Run, Point]]:
    choices = [_listed(block.get(axis)) for axis in AXES]
    sweep = block.get("sweep") or {}
    for method, encoder, corpus, reading, teacher in product(*choices):
        named = [method, encoder, corpus, reading, teacher, block.get("tag")]
        series = ".".join(part for part in named if part)
        for values in product(*sweep.values()):
            point = Point(series, dict(zip(sweep, values, strict=True)))
            overrides = copy.deepcopy(block.get("overrides") or {})
            for setting, value in point.values.items():
                _merge(overrides, _nested(setting.split("."), value))
            run = Run(
                method=method,
                encoder=encoder,
                corpus=corpus,
                reading=reading or "default",
                overrides=overrides,
                seeds=tuple(seeds) if corpus or block.get("of_seeds") else (0,),
                teacher=teacher,
            )
            yield ".".join([series, *_tag(point.values)]), run, point


def _nested(keys: Sequence[str], value: Any) -> Config:
    return {keys[0]: _nested(keys[1:], value) if len(keys) > 1 else value}


def _tag(values: Mapping[str, Any]) -> list[str]:
    """One readable part of a run's name, such as blocks3-frequencies4; none without a sweep."""
    parts = [f"{setting.rsplit('.', 1)[-1]}{_shown(value)}" for setting, value in values.items()]
    return ["-".join(parts)] if parts else []


def _shown(value: Any) -> str:
    """A value as a part of a name: words set off by a dash, no dots."""
    if isinstance(value, list):
        return "_".join(map(_shown, value))
    text = f"{value:g}" if isinstance(value, float) else str(value).lower()
    return f"-{text}" if isinstance(value, str | bool) else text.replace(".", "p")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def all_runs(grids: Mapping[str, Config], encoders: Mapping[str, Config]) -> dict[str, Run]:
    """Every run of every grid, and those that they are made from, each with all seeds that are asked of it.

    Raises:
        ConfigError: if one name is given to different runs.
    """
    runs: dict[str, Run] = {}
    for experiment, grid in grids.items():
        for name, run in runs_of(grid).items():
            _add(runs, name, run, encoders, f"experiments.{experiment}")
    return runs


def _add(runs: dict[str, Run], name: str, run: Run, encoders: Mapping[str, Config], place: str) -> None:
    """Add a run and those that it is made from to ``runs``."""
    seen = runs.get(name, run)
    if seen._replace(seeds=()) != run._replace(seeds=()):
        raise ConfigError(f"{place}: run {name} differs from another of that name. Give it a tag.")
    joined = run._replace(seeds=tuple(sorted({*seen.seeds, *run.seeds})))
    if runs.get(name) != joined:
        runs[name] = joined
        for encoder in filter(None, (run.encoder, run.teacher)):
            for part, made in members_of(encoders, encoder, run.seeds).items():
                _add(runs, part, made, encoders, f"encoders.{encoder}.runs")


def members_of(encoders: Mapping[str, Config], name: str, seeds: Sequence[int]) -> dict[str, Run]:
    """The runs that an encoder consists of, in order; none for one that is fetched or adapted."""
    blocks = encoders[name].get("runs", []) if name in encoders else []
    return {part: run for block in blocks for part, run, _ in _expand(block, seeds)}


def run_settings(config: Config, run: Run) -> Config:
    """Settings of one run: its method and training, with what encoder, method, reading and run override.

    Later ones win: ``training``, then the encoder's, then the method's, then the reading's, then the run's. A
    method that names another one as its ``base`` is given that one's block, and its training settings.

    Raises:
        ConfigError: if the method lacks the reading.
    """
    method = copy.deepcopy(at(config, f"methods.{run.method}"))
    if "base" in method:
        method["base"], below = _base_of(config, run.method)
        method["training"] = _merged(below, method.get("training", {}))
    readings = method.pop("readings", {})
    if run.reading != "default" and run.reading not in readings:
        raise ConfigError(
            f"methods.{run.method}: no reading {run.reading}; has {sorted(readings) or 'none'}."
        )
    settings = {"method": method, "training": copy.deepcopy(config["training"])}
    _merge(settings["training"], at(config, f"encoders.{run.encoder}").get("training", {}))
    _merge(settings["training"], method.pop("training", {}))
    _merge(settings, readings.get(run.reading, {}))
    _merge(settings, run.overrides)
    return settings


def _base_of(config: Config, name: str) -> tuple[Config, Config]:
    """The block that a method which wraps another names as its ``base``, and the training settings of that."""
    base = copy.deepcopy(at(config, f"methods.{at(config, f'methods.{name}')['base']}"))
    base.pop("readings", None)
    return base, base.pop("training", {})


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> Config:
    merged = copy.deepcopy(dict(base))
    _merge(merged, changes)
    return merged


def _merge(base: Config, changes: Mapping[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = copy.deepcopy(value)
