"""The check of a whole study before any job: files, keys, names, and every run, column and resource it asks for.

It is made whenever the graph is built, so that it imports nothing that jobs alone need. All mistakes are found at once:
what sections and grids hold, and what those of them mean together that are sound.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from workflow_scripts.errors import ConfigError, advice, refuse, unknown
from workflow_scripts.extraction.blocks import block_findings, extraction_findings
from workflow_scripts.graph.call import OPERATIONAL
from workflow_scripts.graph.configuration import base_files, placed, read_mapping
from workflow_scripts.graph.mistakes import mistakes, read
from workflow_scripts.graph.place import from_here
from workflow_scripts.graph.references import (
    corpus_columns,
    encoder_findings,
    encoders_reached,
    grid_findings,
    misnamed,
    reader_findings,
    references,
    source_corpus,
    suite_findings,
)
from workflow_scripts.graph.resources import (
    claim_findings,
    data_root_findings,
    folder_findings,
    published_findings,
    resource_findings,
)
from workflow_scripts.graph.schema import Grid, RunSettings, Study
from workflow_scripts.graph.sizes import Rows, Sizes
from workflow_scripts.graph.slices import Config, as_json
from workflow_scripts.settings.grids import (
    EXTRACTION,
    Run,
    adapting_training,
    members_of,
    run_settings,
    runs_of,
)
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.start import Start
from workflow_scripts.settings.training import ContinueMlm, Development, Training


def checked(
    config: Config,
    root: Path,
    data_root: Path | None,
    configfiles: Iterable[str | Path] = (),
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Check the configuration and the grids that it asks for.

    Args:
        config: The configuration, whatever it holds.
        root: Folder of the Snakefile.
        data_root: Folder of local data.
        configfiles: As after --configfile.
        given: Of the command line.

    Returns:
        The grids by name; the extraction study has none.

    Raises:
        ConfigError: with a line for each mistake: the key, what was found and what to do.
    """
    grids, findings = read_grids(config, root / "config")
    findings += study_findings(config, grids, root, data_root)
    files = [*base_files(root), *(Path(from_here(file)) for file in configfiles)]
    refuse(_placed(finding, files, given or {}, root / "config") for finding in findings)
    return grids


def _placed(finding: str, files: Sequence[Path], given: Mapping[str, Any], folder: Path) -> str:
    """A finding with file and line (``configuration.placed``), of a grid in the grid's own file."""
    grid, _, rest = finding.partition(": ")
    if not grid.startswith("experiments/"):
        return placed(finding, files, given)
    there = placed(rest, [folder / grid], {}) if (folder / grid).is_file() else rest
    return finding if there == rest else f"{grid}{there.removeprefix(str(folder / grid))}"


def read_grids(config: Mapping[str, Any], folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Grids that can be read, and what is wrong with files that cannot."""
    files = {file.stem: file for file in (folder / "experiments").glob("*.yaml")}
    listed = config.get("experiments")
    grids, findings = dict[str, Any](), list[str]()
    if EXTRACTION in files:
        findings.append(
            f"experiments/{EXTRACTION}.yaml: that name is the extraction study's. Rename the file."
        )
    for name in [one for one in listed if one != EXTRACTION] if isinstance(listed, list) else []:
        if name not in files:
            known = advice(str(name), sorted({EXTRACTION, *files}))
            findings.append(f"experiments: no file {name}.yaml in config/experiments. {known}")
            continue
        try:
            grids[name] = read_mapping(files[name])
        except ConfigError as error:
            findings.append(str(error))
    return grids, findings


_OF_GRIDS = ("suites", "datasets", "mteb", "corpora", "encoders", "names", "extraction")
_OF_EXTRACTION = ("extraction", "suites", "datasets", "mteb", "experiments")
_OF_RUNS = (
    *("name", "training", "development", "encoders", "corpora", "datasets", "methods", "exemplars"),
    *("continue_mlm", "teacher", *_OF_EXTRACTION),
)


def study_findings(config: Config, grids: Mapping[str, Any], root: Path, data_root: Path | None) -> list[str]:
    """Everything that is wrong with a study: a check is left out where what it reads has mistakes of its own.

    Args:
        config: The configuration, whatever it holds.
        grids: Its grids by name, likewise.
        root: Folder of the Snakefile.
        data_root: Folder of local data.
    """
    found = mistakes(Study, config, "")

    def clean(*places: str) -> bool:
        starts = tuple(f"{place}{end}" for place in places for end in ".:")
        return not any(line.startswith(starts) for line in found)

    if config.keys() >= {"methods", "encoders"} and clean("methods", "encoders"):
        found += _override_findings(config)
    places = {name: f"experiments/{name}.yaml" for name in grids}
    for name, grid in grids.items():
        found += mistakes(Grid, grid, f"{places[name]}: ")
    grids = {name: grid for name, grid in grids.items() if clean(places[name])}
    parts = {section: config[section] for section in Study.model_fields.keys() & config if clean(section)}
    found += misnamed(parts, references(parts, Study))
    for name, grid in grids.items():
        found += misnamed(parts, references(grid, Grid), f"{places[name]}: ")
    if parts.keys() >= {"datasets"}:
        found += reader_findings(config)
    if parts.keys() >= {"encoders"}:
        found += encoder_findings(config)
    if parts.keys() >= {"suites", "datasets"}:
        found += suite_findings(config)
    if parts.keys() >= {*_OF_EXTRACTION}:
        found += extraction_findings(config)
    if parts.keys() >= {*_OF_GRIDS}:
        tables = {*config["extraction"]["tables"], *config["extraction"]["statistics"]}
        taken = "a table of the extraction study has that name. Rename the file."
        found += [f"{places[name]}: {taken}" for name in grids if name in tables]
        for name, grid in grids.items():
            found += grid_findings(config, grid, places[name])
        whole = {name: grid for name, grid in grids.items() if clean(places[name])}
        found += published_findings(config, whole, root)
        if "claims" in parts:
            found += claim_findings(config, whole, root)
    if parts.keys() >= {*_OF_RUNS} and clean(*_OF_RUNS):
        found += _run_findings(config, grids, data_root)
    if parts.keys() >= {"data_root", "answers"}:
        found += data_root_findings(config, data_root)
    if parts.keys() >= {"extraction", "exemplars"}:
        found += resource_findings(config, grids, root)
    return found


def _override_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Keys, types and ranges of what methods and encoders override, each by itself; runs are checked as a whole."""
    blocks = [
        (f"methods.{name}.{section}.", kind, block.get(section, {}))
        for name, block in config["methods"].items()
        for section, kind in (("training", Training), ("development", Development))
    ]
    for name, block in config["encoders"].items():
        blocks.append((f"encoders.{name}.training.", Training, block.get("training", {})))
        adapting = block.get("adapt", {}).get("training", {})
        blocks.append((f"encoders.{name}.adapt.training.", Training, adapting))
    for place, kind, overrides in blocks:
        yield from mistakes(kind, overrides, place, partial=True)


def _defined_runs(config: Mapping[str, Any], grid: Mapping[str, Any]) -> dict[str, Run]:
    """Runs of a grid whose parts are all defined; none where two have one name."""
    runs: Mapping[str, Run] = {}
    with suppress(ConfigError):
        runs = runs_of(grid)
    methods, encoders, corpora = ({None, *config[part]} for part in ("methods", "encoders", "corpora"))
    return {
        name: run
        for name, run in runs.items()
        if run.method in methods and {run.encoder, run.teacher} <= encoders and run.corpus in corpora
    }


def _run_findings(config: dict[str, Any], grids: Mapping[str, Any], data_root: Path | None) -> Iterator[str]:
    sizes = Sizes(config, data_root)
    rows = Rows(config, data_root)
    checks = RunChecks(config, sizes, rows)
    encoders = config["encoders"]
    named = {pool["encoder"] for pool in config["exemplars"].values()}
    if EXTRACTION in config["experiments"]:
        encoder = config["extraction"]["encoder"]
        named.add(encoder)
        size = sizes.of(encoder)
        yield from block_findings(config["extraction"], size and size.layers)
        suites = {kind: [suite] for kind, suite in config["extraction"]["suites"].items() if suite}
        yield from checks.length_findings("extraction", suites, [encoder])
    for name, grid in grids.items():
        runs, place = _defined_runs(config, grid), f"experiments/{name}.yaml"
        yield from checks.findings(place, runs)
        yield from checks.length_findings(place, grid["suites"], (run.encoder for run in runs.values()))
        yield from checks.attention_findings(place, grid, runs)
        for run in runs.values():
            named |= {run.encoder, run.teacher} - {None}
    reached = sorted(encoders_reached(encoders, named))
    yield from folder_findings(config, reached, data_root)
    yield from rows.findings()
    for encoder in reached:
        if "runs" in encoders[encoder]:
            yield from checks.findings(f"encoders.{encoder}.runs", members_of(encoders, encoder, (0,)))
    for encoder in reached:
        if adapt := encoders[encoder].get("adapt"):
            place = f"encoders.{encoder}.adapt."
            block = config["continue_mlm"] | {"training": adapting_training(config, encoder)}
            masked, found = read(ContinueMlm, block, place)
            yield from found
            if masked:
                misfits = masked.training.misfits(adapt["corpus"], rows.most(adapt["corpus"]))
                yield from (f"{place}{line}" for line in misfits)


_SHOWN = 2
"""Runs that a line names; of more it gives the number."""


class RunChecks:
    """Checks of runs, whose names have all been found to be defined."""

    def __init__(self, config: Config, sizes: Sizes, rows: Rows) -> None:
        self._config = config
        self._rows = rows
        self._read = cache(lambda text: read(RunSettings, json.loads(text), ""))
        self._sizes_of = sizes.behind

    def findings(self, place: str, runs: Mapping[str, Run]) -> Iterator[str]:
        """Mistakes in runs, a line each; a mistake that several runs share is one line.

        Args:
            place: The file or the block that asks for them.
            runs: Runs by name.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for name, run in runs.items():
            for finding in self._mistakes(run):
                found[finding].append(name)
        for finding, names in found.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield f"{place}: run {', '.join(names[:_SHOWN])}{more}: {finding}"

    def length_findings(
        self, place: str, suites: Mapping[str, Iterable[str]], encoders: Iterable[str]
    ) -> Iterator[str]:
        """Suites that ask for longer sentences than one of the encoders takes."""
        encoders = set(encoders)
        for kind, names in suites.items():
            for suite in names:
                block = self._config["suites"].get(kind, {}).get(suite, {})
                yield from self._too_long(block, f"{place}: suites.{kind}.{suite}", encoders)

    def _too_long(self, block: Mapping[str, Any], place: str, encoders: Iterable[str]) -> Iterator[str]:
        """Settings of a length, anywhere in a block, above what one of the encoders takes."""
        known = [(size.positions, name) for name in encoders for size in self._sizes_of(name)]
        most, encoder = min((one for one in known if one[0]), default=(None, ""))
        for key, value in block.items():
            if isinstance(value, Mapping):
                yield from self._too_long(value, f"{place}.{key}", encoders)
            elif most and key in ("max_tokens", "tokens") and value > most:
                yield f"{place}.{key}: {value}; {encoder} takes {most}. Lower it."

    def attention_findings(
        self, place: str, grid: Mapping[str, Any], runs: Mapping[str, Run]
    ) -> Iterator[str]:
        """Layers whose attention a suite maps and that an encoder of the grid lacks."""
        known = self._config["suites"].get("attention", {})
        for suite in grid["suites"].get("attention", []):
            layers = known.get(suite, {}).get("maps", {}).get("layers", [])
            for encoder in dict.fromkeys(run.encoder for run in runs.values()):
                for size in dict.fromkeys(self._sizes_of(encoder)):
                    if outside := [layer for layer in layers if not 1 <= layer <= size.layers]:
                        found = f"{outside[0]}; {encoder} has layers 1 to {size.layers}"
                        yield f"{place}: suites.attention.{suite}.maps.layers: {found}. Name one of them."

    def _mistakes(self, run: Run) -> Sequence[str]:
        readings = self._config["methods"][run.method].get("readings", {})
        if run.reading != "default" and run.reading not in readings:
            return [
                f"reading: {run.reading} is not a reading of methods.{run.method}. {advice(run.reading, readings)}"
            ]
        settings = run_settings(self._config, run)
        merged, found = self._read(as_json(settings))
        if not merged:
            return found
        method, training = merged.method, merged.training
        pool = getattr(method, "pool", None)
        if pool and (found := [*unknown(pool, self._config["exemplars"], "method.pool")]):
            return found
        start = self._start(run, pool)
        trained = self._trained(run, settings, training) if run.corpus else ()
        chunked = method.unchunkable(start) if run.corpus and training.chunk else ()
        return [*trained, *chunked, *self._origin(run, method), *method.misfits(start)]

    def _trained(self, run: Run, settings: Config, training: Training) -> Iterator[str]:
        """Mistakes in a training, such as no way to choose a checkpoint."""
        corpus = str(run.corpus)
        yield from training.misfits(corpus, self._rows.most(corpus))
        for section in ("training", "development"):
            yield from self._too_long(settings[section], section, [run.encoder])
        if run.teacher:
            yield from self._too_long(self._config["teacher"], "teacher", [run.teacher])
        corpus = source_corpus(self._config, corpus)
        yield from self._rows.too_few(corpus)
        if (
            not self._config["development"]["dataset"]
            and not self._config["corpora"][corpus]["dev_sentences"]
        ):
            found = "null, and no sentence of the corpus is held out"
            yield f"development.dataset: {found}. Name one, or set corpora.{corpus}.dev_sentences."

    def _start(self, run: Run, pool: str | None) -> Start:
        """The encoder of a run, against which its method's settings are checked."""
        members = members_of(self._config["encoders"], run.encoder, (0,))
        return Start(
            encoder=run.encoder,
            sizes=self._sizes_of(run.encoder),
            members=len(members) if "runs" in self._config["encoders"][run.encoder] else None,
            frozen=[name for name, member in members.items() if not member.corpus],
            teacher=run.teacher or "",
            teacher_sizes=self._sizes_of(run.teacher) if run.teacher else [],
            pool_sentences=self._config["exemplars"][pool]["sentences"] if pool else None,
        )

    def _origin(self, run: Run, method: MethodConfig) -> Iterator[str]:
        """Encoder, corpus and teacher of a run against what its method starts from."""
        inner = getattr(method, "base", method)
        module, encoder = method.module, run.encoder
        is_made = "runs" in self._config["encoders"][encoder]
        made = members_of(self._config["encoders"], encoder, (0,))
        names, members = [*made], [*made.values()]
        count = f"{len(members)} run{'s' if len(members) != 1 else ''}" if is_made else "no runs"
        match inner.starts_from:
            case "pair" if len(members) != 2:
                found = f"{module} joins two different runs; {encoder} consists of {count}"
                yield f"encoder: {found}. Name two in its `runs`."
            case "pair" if self._decided(members[0]) == self._decided(members[1]):
                same = f"{' and '.join(names)} differ in nothing that decides a model"
                found = f"{module} joins two different runs; {same}"
                yield f"encoder: {found}. Change one in `runs` of {encoder}."
            case "runs" if not is_made:
                found = f"{module} adds up runs; {encoder} consists of none"
                yield f"encoder: {found}. Name an encoder with `runs`."
            case "run" if len(members) != 1:
                found = f"{module} pools exactly one run again; {encoder} has {count}"
                yield f"encoder: {found}. Name an encoder with one in `runs`."
            case "encoder" if is_made and (len(members) != 1 or not inner.columns):
                yield f"encoder: {module} starts from one encoder; {encoder} consists of {count}. Name another."
        yield from self._corpus(run, method)
        if method.has_teacher and not run.teacher:
            found = f"{module} learns the vectors of a teacher, and none is named"
            yield f"teacher: {found}. Name an encoder with one run."
        if run.teacher and not method.has_teacher:
            yield f"teacher: {module} learns from no teacher; {run.teacher} is named. Leave it out, or name distil."

    def _corpus(self, run: Run, method: MethodConfig) -> Iterator[str]:
        module, corpus, wanted = method.module, run.corpus, method.read_columns
        if wanted and corpus is None:
            yield f"corpus: {module} trains, and no corpus is named. Name one."
        if not wanted and corpus is not None:
            yield f"corpus: {module} trains nothing; {corpus} is named. Leave it out, or name another method."
        has = corpus_columns(self._config, corpus) if corpus else wanted
        if missing := [column for column in wanted if column not in has]:
            found = f"{module} reads the column {missing[0]}; {corpus} has {', '.join(has)}"
            yield f"corpus: {found}. Name another corpus, or another method."

    def _decided(self, run: Run) -> str:
        """All that decides a run's model but its seed."""
        settings = run_settings(self._config, run)
        training = {name: value for name, value in settings["training"].items() if name not in OPERATIONAL}
        settings["training"] = training
        return as_json([run.encoder, run.corpus, run.teacher, settings])
