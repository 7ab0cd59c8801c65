"""The check of a whole study before any job: files, keys, names, and every run, column and resource it asks for.

It is made whenever the graph is built, so that it imports nothing that jobs alone need. All mistakes are found at once:
what sections and grids hold, and what those of them mean together that are sound.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import TypeAdapter

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError, advice, unknown
from workflow_scripts.graph.blocks import block_findings, extraction_findings
from workflow_scripts.graph.call import Config, as_json
from workflow_scripts.graph.configuration import read_mapping
from workflow_scripts.graph.mistakes import read
from workflow_scripts.graph.references import (
    claim_findings,
    corpus_columns,
    data_root_findings,
    encoder_findings,
    encoders_reached,
    grid_findings,
    headings_in,
    misnamed,
    reader_findings,
    references,
    resource_findings,
    source_corpus,
    suite_findings,
)
from workflow_scripts.graph.runs import Sizes, adapting_training, members_of, read_run
from workflow_scripts.graph.schema import (
    AdaptedEncoder,
    Configuration,
    EncoderFromRuns,
    GridBlock,
    RunSettings,
)
from workflow_scripts.settings.corpora import Corpus
from workflow_scripts.settings.grids import EXTRACTION, Run, RunBlock, expand
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.readouts import Start
from workflow_scripts.settings.training import ContinueMlm


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


_OF_GRIDS = {"suites", "datasets", "mteb", "corpora", "encoders", "extraction"}
_OF_EXTRACTION = {"extraction", "suites", "datasets", "mteb", "experiments"}
_OF_RUNS = {
    *("name", "training", "development", "encoders", "corpora", "datasets", "methods", "exemplars"),
    *("continue_mlm", "teacher", *_OF_EXTRACTION),
}


def study_findings(
    config: Config, plain: Mapping[str, Any], root: Path, data_root: Path | None
) -> tuple[Configuration, dict[str, GridBlock], list[str]]:
    """Everything that is wrong with a study: a check is left out where its sections have mistakes of their own.

    Args:
        config: The configuration, whatever it holds.
        plain: Its grids by name, likewise.
        root: Folder of the Snakefile.
        data_root: Folder of local data.

    Returns:
        The sections and the grids without mistakes, and a line for each mistake.
    """
    whole, found = read(Configuration, config, "")

    def clean(*places: str) -> bool:
        starts = tuple(f"{place}{end}" for place in places for end in ".:")
        return not any(line.startswith(starts) for line in found)

    settings = whole or _sections(config, clean)
    grids: dict[str, GridBlock] = {}
    for name, grid in plain.items():
        block, lines = read(GridBlock, grid, f"experiments/{name}.yaml: ")
        found += lines
        grids |= {name: block} if block else {}
    found += misnamed(settings, references(settings))
    for name, block in grids.items():
        found += misnamed(settings, references(block), f"experiments/{name}.yaml: ", headings_in(block))
    for sections, check in (
        ({"datasets"}, reader_findings(settings)),
        ({"encoders"}, encoder_findings(settings)),
        ({"suites"}, suite_findings(settings)),
        (_OF_EXTRACTION, extraction_findings(settings)),
        (_OF_GRIDS, grid_findings(settings, grids)),
    ):
        found += check if settings.model_fields_set >= sections else ()
    if settings.model_fields_set >= {*_OF_GRIDS, "claims"}:
        sound = {name: grid for name, grid in grids.items() if clean(f"experiments/{name}.yaml")}
        found += claim_findings(settings, sound, root)
    if settings.model_fields_set >= _OF_RUNS and clean(*_OF_RUNS):
        found += _run_findings(config, settings, grids, data_root)
    for sections, check in (  # last, since no run depends on what they find
        ({"data_root", "answers"}, data_root_findings(settings, data_root)),
        ({"extraction", "exemplars"}, resource_findings(settings, grids, root)),
    ):
        found += check if settings.model_fields_set >= sections else ()
    return settings, grids, found


def _sections(config: Config, clean: Callable[[str], bool]) -> Configuration:
    """The sections of a configuration that have no mistakes; the others are not set."""
    parts = {}
    for name, field in Configuration.model_fields.items():
        if name in config and clean(name):
            kind: Any = Annotated[field.annotation, field]
            parts[name] = TypeAdapter(kind).validate_json(json.dumps(config[name], default=str), strict=True)
    return Configuration.model_construct(_fields_set={*parts}, **parts)


def _defined_runs(
    settings: Configuration, blocks: Sequence[RunBlock], seeds: Sequence[int] = (0,)
) -> dict[str, tuple[int, Run]]:
    """Runs of some blocks whose parts are all defined, each with the number of its block."""
    encoders, corpora = {None, *settings.encoders}, {None, *settings.corpora}
    return {
        name: (number, run)
        for number, block in enumerate(blocks)
        for name, run, _ in expand(block, seeds)
        if run.method in settings.methods and {run.encoder, run.teacher} <= encoders and run.corpus in corpora
    }


def _run_findings(
    config: Config, settings: Configuration, grids: Mapping[str, GridBlock], data_root: Path | None
) -> Iterator[str]:
    sizes, encoders = Sizes(settings, data_root), settings.encoders
    checks = RunChecks(config, settings, sizes)
    named: set[str | None] = {pool.encoder for pool in settings.exemplars.values()}
    if EXTRACTION in settings.experiments:
        encoder = settings.extraction.encoder
        named.add(encoder)
        size = sizes.of(encoder)
        yield from block_findings(settings.extraction, size and size.layers)
        suites = {kind: [suite] for kind, suite in settings.extraction.suites if suite}
        yield from checks.length_findings("extraction", suites, [encoder])
    for name, grid in grids.items():
        numbered, place = _defined_runs(settings, grid.runs, grid.seeds), f"experiments/{name}.yaml"
        yield from checks.findings(f"{place}: runs", numbered)
        runs = {name: run for name, (_, run) in numbered.items()}
        yield from checks.length_findings(place, grid.suites.by_kind, (run.encoder for run in runs.values()))
        yield from checks.attention_findings(place, grid, runs)
        named |= {encoder for run in runs.values() for encoder in (run.encoder, run.teacher)}
    reached = sorted(encoders_reached(encoders, filter(None, named)))
    for encoder in reached:
        block = encoders[encoder]
        if isinstance(block, EncoderFromRuns):
            yield from checks.findings(f"encoders.{encoder}.runs", _defined_runs(settings, block.runs))
        if isinstance(block, AdaptedEncoder):
            place = f"encoders.{encoder}.adapt."
            training = {"training": adapting_training(config, encoder)}
            yield from read(ContinueMlm, config["continue_mlm"] | training, place)[1]


_SHOWN = 2
"""Runs that a line names; of more it gives the number."""


class RunChecks:
    """Checks of runs, whose names have all been found to be defined."""

    def __init__(self, config: Config, settings: Configuration, sizes: Sizes) -> None:
        self._config, self._settings, self._sizes_of = config, settings, sizes.behind

    def findings(self, place: str, runs: Mapping[str, tuple[int, Run]]) -> Iterator[str]:
        """Mistakes in runs, a line each; a mistake that several runs share is one line, at the block of the first.

        Args:
            place: The list of blocks that ask for them.
            runs: Runs by name, each with the number of its block.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for name, (_, run) in runs.items():
            for finding in self._mistakes(run):
                found[finding].append(name)
        for finding, names in found.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield f"{place}.{runs[names[0]][0]} ({', '.join(names[:_SHOWN])}{more}): {finding}"

    def length_findings(
        self, place: str, suites: Mapping[str, Iterable[str]], encoders: Iterable[str]
    ) -> Iterator[str]:
        """Suites that ask for longer sentences than one of the encoders takes."""
        encoders = set(encoders)
        for kind, names in suites.items():
            known = self._settings.suites.by_kind[kind]
            for suite in (name for name in names if name in known):
                yield from self._too_long(known[suite], f"{place}: suites.{kind}.{suite}", encoders)

    def _too_long(self, block: Settings, place: str, encoders: Iterable[str]) -> Iterator[str]:
        """Settings of a length, anywhere in a block, above what one of the encoders takes."""
        known = [(size.positions, name) for name in encoders for size in self._sizes_of(name)]
        most, encoder = min(((most, name) for most, name in known if most), default=(None, ""))
        for key, value in block:
            if isinstance(value, Settings):
                yield from self._too_long(value, f"{place}.{key}", encoders)
            elif most and key in ("max_tokens", "tokens") and value > most:
                yield f"{place}.{key}: {value}; {encoder} takes {most}. Lower it."

    def attention_findings(self, place: str, grid: GridBlock, runs: Mapping[str, Run]) -> Iterator[str]:
        """Layers whose attention a suite maps and that an encoder of the grid lacks."""
        known = self._settings.suites.attention
        for suite in (name for name in grid.suites.attention if name in known):
            for encoder in dict.fromkeys(run.encoder for run in runs.values()):
                for size in dict.fromkeys(self._sizes_of(encoder)):
                    layers = known[suite].maps.layers
                    if outside := [layer for layer in layers if not 1 <= layer <= size.layers]:
                        found = f"{outside[0]}; {encoder} has layers 1 to {size.layers}"
                        yield f"{place}: suites.attention.{suite}.maps.layers: {found}. Name one of them."

    def _mistakes(self, run: Run) -> Sequence[str]:
        readings = self._settings.methods[run.method].readings
        if run.reading != "default" and run.reading not in readings:
            return [
                f"reading: {run.reading} is not a reading of methods.{run.method}. {advice(run.reading, readings)}"
            ]
        merged, found = read_run(self._config, run)
        if not merged:
            return found
        method = merged.method
        pool = getattr(method, "pool", None)
        if pool and (found := [*unknown(pool, self._settings.exemplars, "method.pool")]):
            return found
        members = members_of(self._settings.encoders, run.encoder)
        start = Start(
            encoder=run.encoder,
            sizes=self._sizes_of(run.encoder),
            members=len(members) or None,
            frozen=[name for name, member in members.items() if not member.corpus],
            pool_sentences=self._settings.exemplars[pool].sentences if pool else None,
        )
        trained = self._trained(run, merged) if run.corpus else ()
        chunked = method.unchunkable() if run.corpus and merged.training.chunk else ()
        return [*trained, *chunked, *self._origin(run, method), *method.misfits(start)]

    def _trained(self, run: Run, merged: RunSettings) -> Iterator[str]:
        """Mistakes in a training, such as no way to choose a checkpoint."""
        yield from self._too_long(merged.training, "training", [run.encoder])
        yield from self._too_long(merged.development, "development", [run.encoder])
        if run.teacher:
            yield from self._too_long(self._settings.teacher, "teacher", [run.teacher])
        corpus = source_corpus(self._settings, str(run.corpus))
        block = self._settings.corpora[corpus]
        assert isinstance(block, Corpus)
        if not self._settings.development.dataset and not block.dev_sentences:
            found = "null, and no sentence of the corpus is held out"
            yield f"development.dataset: {found}. Name one, or set corpora.{corpus}.dev_sentences."

    def _origin(self, run: Run, method: MethodConfig) -> Iterator[str]:
        """Encoder, corpus and teacher of a run against what its method starts from."""
        inner = getattr(method, "base", method)
        module, encoder = method.module, run.encoder
        made = members_of(self._settings.encoders, encoder)
        names, members = [*made], [*made.values()]
        count = f"{len(members) or 'no'} run{'s' if len(members) != 1 else ''}"
        match inner.starts_from:
            case "pair" if len(members) != 2:
                found = f"{module} joins two different runs; {encoder} consists of {count}"
                yield f"encoder: {found}. Name two in its `runs`."
            case "pair" if self._decided(members[0]) == self._decided(members[1]):
                same = f"{' and '.join(names)} differ in nothing that decides a model"
                found = f"{module} joins two different runs; {same}"
                yield f"encoder: {found}. Change one in `runs` of {encoder}."
            case "runs" if not members:
                found = f"{module} adds up runs; {encoder} consists of none"
                yield f"encoder: {found}. Name an encoder with `runs`."
            case "run" if len(members) != 1:
                found = f"{module} pools exactly one run again; {encoder} has {count}"
                yield f"encoder: {found}. Name an encoder with one in `runs`."
            case "encoder" if members and (len(members) != 1 or not inner.columns):
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
        has = corpus_columns(self._settings, corpus) if corpus else wanted
        if missing := [column for column in wanted if column not in has]:
            found = f"{module} reads the column {missing[0]}; {corpus} has {', '.join(has)}"
            yield f"corpus: {found}. Name another corpus, or another method."

    def _decided(self, run: Run) -> str:
        """All that decides a run's model but its seed."""
        settings, _ = read_run(self._config, run)
        decides = settings and [settings.method, settings.training.deciding(), settings.development]
        return as_json([run.encoder, run.corpus, run.teacher, decides])
