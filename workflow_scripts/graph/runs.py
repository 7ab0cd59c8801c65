"""The runs that grids and encoders ask for, and the settings of each, merged from all that may override them."""

import json
from collections.abc import Mapping, Sequence
from functools import cache, reduce

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.call import Config, as_json
from workflow_scripts.graph.mistakes import read
from workflow_scripts.graph.schema import AnyEncoder, EncoderFromRuns, GridBlock, RunSettings
from workflow_scripts.settings.grids import Run, expand, merged, runs_of

_OVERRIDABLE = ("training", "development")
"""Sections of the configuration that a method, a reading and a run can change for themselves."""


def all_runs(grids: Mapping[str, GridBlock], encoders: Mapping[str, AnyEncoder]) -> dict[str, Run]:
    """Every run of every grid, and those that they are made from, each with all seeds that are asked of it.

    Raises:
        ConfigError: if one name is given to different runs.
    """
    runs: dict[str, Run] = {}
    for experiment, grid in grids.items():
        for name, run in runs_of(grid).items():
            _add(runs, name, run, encoders, f"experiments.{experiment}")
    return runs


def _add(runs: dict[str, Run], name: str, run: Run, encoders: Mapping[str, AnyEncoder], place: str) -> None:
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


def members_of(encoders: Mapping[str, AnyEncoder], name: str, seeds: Sequence[int] = (0,)) -> dict[str, Run]:
    """The runs that an encoder consists of, in order; none for one that is fetched or adapted."""
    encoder = encoders.get(name)
    blocks = encoder.runs if isinstance(encoder, EncoderFromRuns) else ()
    return {part: run for block in blocks for part, run, _ in expand(block, seeds)}


def run_settings(config: Config, run: Run) -> Config:
    """Settings of one run: its method, training and development, with what encoder, method, reading and run override.

    Later ones win: ``training``, then the encoder's, then the method's, then the reading's, then the run's; likewise
    ``development``, which encoders leave alone. A method that names another one as its ``base`` is given that one's
    block, and its training and development settings. A reading that the method lacks changes nothing.

    Args:
        config: As files have it, since only keys that are written down override others.
        run: The run.

    Returns:
        Parts of the configuration, shared with it and so not to be changed.
    """
    block = config["methods"][run.method]
    below = config["methods"][block["base"]] if "base" in block else {}
    method = _method_keys(block) | ({"base": _method_keys(below)} if below else {})
    development = {key: value for key, value in config["development"].items() if key != "dataset"}
    overrides = (
        {"training": config["encoders"][run.encoder].get("training", {})},
        *({section: one.get(section, {}) for section in _OVERRIDABLE} for one in (below, block)),
        block.get("readings", {}).get(run.reading, {}),
        run.overrides,
    )
    shared = {"method": method, "training": config["training"], "development": development}
    return reduce(merged, overrides, shared)


def _method_keys(block: Config) -> Config:
    """A block of ``methods`` without training, development and readings."""
    return {key: value for key, value in block.items() if key not in (*_OVERRIDABLE, "readings")}


def read_run(config: Config, run: Run) -> tuple[RunSettings | None, list[str]]:
    """The settings of one run (``run_settings``), or a line for each thing that is wrong with them."""
    return _read(as_json(run_settings(config, run)))


@cache
def _read(settings: str) -> tuple[RunSettings | None, list[str]]:
    return read(RunSettings, json.loads(settings), "")


def adapting_training(config: Config, encoder: str) -> Config:
    """Settings of the training that adapts an encoder: the shared ones with what its block says of its own."""
    return {**config["continue_mlm"]["training"], **config["encoders"][encoder]["adapt"].get("training", {})}
