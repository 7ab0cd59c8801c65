"""Runs: what the grids of a study ask for, and the settings of each."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError

PAPERS = {
    "s2sent": "S2Sent",
    "layerattpooler": "LayerAttPooler",
    "three_r": "3R",
    "jtcse": "JTCSE",
    "extraction": "Extracting Sentence Embeddings",
}
"""Names of the five papers' files, and the papers."""

Config = dict[str, Any]
OF_A_RUN = ("training", "development")
"""Sections of the configuration that a method, a reading and a run can change for themselves."""

EXTRACTION = "extraction"
"""What names the study of vectors without training among the experiments, and in paths of its figures."""

AXES = ("method", "encoder", "corpus", "reading", "teacher")

COMPUTED_FROM = ("mean_of", "ratio_of", "gain_of")
"""Settings of a column that name the columns that it is computed from."""


class Run(NamedTuple):
    """One encoder of an experiment: which method, on what, read how, and how often."""

    method: str
    encoder: str
    corpus: str | None
    reading: str
    overrides: Config
    seeds: tuple[int, ...]
    teacher: str | None = None

    @property
    def fixed(self) -> bool:
        """Whether it has one value, because nothing in it is random."""
        return self.corpus is None and self.seeds == (0,)

    def seed_for(self, seed: int) -> int:
        """The seed of this run that goes with ``seed`` of a run made from it: its only one if it is not trained."""
        return seed if seed in self.seeds else self.seeds[0]


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
        ConfigError: if two runs would have one name.
    """
    runs: dict[str, Run] = {}
    for block in grid["runs"]:
        for name, run, _ in _expand(block, grid["seeds"]):
            if name in runs:
                advice = "Leave one out" if runs[name] == run else "Give one of them a tag"
                raise ConfigError(f"{grid['title']}: two runs are named {name}. {advice}.")
            runs[name] = run
    return runs


def baselines_of(grid: Mapping[str, Any]) -> dict[str, str | None]:
    """The run that each run of a grid is compared with: its block's baseline, else the grid's; None for that run.

    ``{encoder}`` and other axes in a baseline are filled in by those of the run that is compared.

    Raises:
        ConfigError: if a baseline names an axis that is none.
    """
    found: dict[str, str | None] = {}
    for block in grid["runs"]:
        for name, run, _ in _expand(block, grid["seeds"]):
            baseline = _filled(block.get("baseline") or grid["baseline"], run, grid["title"])
            found[name] = None if name == baseline else baseline
    return found


def _filled(baseline: str | None, run: Run, title: str) -> str | None:
    try:
        return baseline and baseline.format(**{axis: getattr(run, axis) for axis in AXES})
    except (LookupError, ValueError) as error:
        raise ConfigError(
            f"{title}: baseline {baseline}: {error} is no axis; there are {', '.join(AXES)}."
        ) from error


def points_of(grid: Mapping[str, Any]) -> dict[str, Point]:
    """Where the runs of blocks with a sweep lie, by name."""
    return {
        name: point
        for block in grid["runs"]
        if block.get("sweep")
        for name, _, point in _expand(block, grid["seeds"])
    }


def _expand(block: Config, seeds: Sequence[int]) -> Iterator[tuple[str, Run, Point]]:
    choices = [listed(block.get(axis)) for axis in AXES]
    sweep = block.get("sweep") or {}
    for method, encoder, corpus, reading, teacher in product(*choices):
        named = [method, encoder, corpus, reading, teacher, block.get("tag")]
        series = ".".join(part for part in named if part)
        for values in product(*sweep.values()):
            point = Point(series, dict(zip(sweep, values, strict=True)))
            swept = (_nested(setting.split("."), value) for setting, value in point.values.items())
            run = Run(
                method=method,
                encoder=encoder,
                corpus=corpus,
                reading=reading or "default",
                overrides=reduce(merged, swept, block.get("overrides") or {}),
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


def listed(value: Any) -> list[Any]:
    """Values of an axis, of which a block may name one or several."""
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
    """Settings of one run: its method, training and development, with what encoder, method, reading and run override.

    Later ones win: ``training``, then the encoder's, then the method's, then the reading's, then the run's; likewise
    ``development``, which encoders leave alone. A method that names another one as its ``base`` is given that one's
    block, and its training and development settings. A reading that the method lacks changes nothing.

    Returns:
        Parts of the configuration, shared with it and so not to be changed.
    """
    block = config["methods"][run.method]
    below = config["methods"][block["base"]] if "base" in block else {}
    method = _of_method(block) | ({"base": _of_method(below)} if below else {})
    development = {key: value for key, value in config["development"].items() if key != "dataset"}
    overrides = (
        {"training": config["encoders"][run.encoder].get("training", {})},
        *({section: one.get(section, {}) for section in OF_A_RUN} for one in (below, block)),
        block.get("readings", {}).get(run.reading, {}),
        run.overrides,
    )
    shared = {"method": method, "training": config["training"], "development": development}
    return reduce(merged, overrides, shared)


def _of_method(block: Config) -> Config:
    """What a block of ``methods`` says of the method itself."""
    return {key: value for key, value in block.items() if key not in (*OF_A_RUN, "readings")}


def adapting_training(config: Config, encoder: str) -> Config:
    """Settings of the training that adapts an encoder: the shared ones with what its block says of its own."""
    return {**config["continue_mlm"]["training"], **config["encoders"][encoder]["adapt"].get("training", {})}


def merged(below: Config, above: Config) -> Config:
    """``below`` with ``above`` laid over it, key by key; neither is changed."""
    inside = {
        key: merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return below | above | inside


def numbered_columns(grid: Mapping[str, Any]) -> Iterator[tuple[int, Config]]:
    """Every column, with the number of the block in the grid's file that asks for it."""
    for number, block in enumerate(grid["columns"]):
        for column in written_out(block):
            yield number, column


def one_column_a_task(grid: Mapping[str, Any]) -> Config:
    """The grid as if every column had been written out."""
    return {**grid, "columns": [column for _, column in numbered_columns(grid)]}


def written_out(block: Config) -> list[Config]:
    """Columns of the tasks that a block lists, headed by their names, or gives by heading."""
    if "tasks" not in block:
        return [block]
    tasks, shared = block["tasks"], {key: value for key, value in block.items() if key != "tasks"}
    headed = tasks if isinstance(tasks, Mapping) else {task: task for task in tasks}
    return [{"heading": heading, "task": task} | shared for heading, task in headed.items()]


def scored_columns(columns: Iterable[Mapping[str, Any]], heading: str) -> list[Mapping[str, Any]]:
    """The columns that one heading of a grid is computed from, itself if it is computed from no other."""
    by_heading = {column["heading"]: column for column in columns}
    column = by_heading[heading]
    behind = [part for key in COMPUTED_FROM for part in listed(column.get(key, []))]
    if not behind:
        return [column]
    return [one for part in behind for one in scored_columns(by_heading.values(), part)]
