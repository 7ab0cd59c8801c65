"""Checks of runs by the classes of their settings, with the known sizes of their encoders."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from workflow_scripts.errors import ErrorDetails, advice, shown
from workflow_scripts.graph.development import has_neighbours
from workflow_scripts.graph.names import misnamed, references
from workflow_scripts.graph.slices import as_json, flat
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.corpora import Corpus
from workflow_scripts.settings.encoders import EncoderFromRuns
from workflow_scripts.settings.grids import GridBlock, Run, RunBlock, expand, listed
from workflow_scripts.settings.overrides import Override
from workflow_scripts.settings.readouts import RunOrigin, StartingPoint, too_long
from workflow_scripts.settings.study import Configuration, RunSettings, read_run

_SHOWN = 2
"""Maximum number of runs named in a line; further runs are counted."""


def reading_errors(study: Study) -> Iterator[ErrorDetails]:
    """Yield wrong keys, types and ranges of readings, used or not."""
    for method, block in study.settings.methods.items():
        for reading in block.readings:
            run = Run(method, "", None, reading, Override(), ())
            _, errors = read_run(study.settings, run, partial=True)
            yield from (error.under(f"methods.{method}.readings.{reading}") for error in errors)


def block_errors(
    study: Study, path: str, blocks: Sequence[RunBlock], seeds: Sequence[int] = (0,), *, used: bool = True
) -> Iterator[ErrorDetails]:
    """Yield errors in runs; one that several runs share is yielded once, at the block of the first.

    Args:
        study: The study.
        path: Path of the list of blocks.
        blocks: These blocks.
        seeds: Seeds of their runs.
        used: Whether the study has the runs; if not, only keys, types and ranges are checked.
    """
    runs_by_error: dict[ErrorDetails, list[tuple[int, str]]] = defaultdict(list)
    for number, block in enumerate(blocks):
        for encoder in listed(block.encoder):
            is_made = isinstance(study.settings.encoders[encoder], EncoderFromRuns) and not block.corpus
            if block.per_seed != is_made:
                problem = (
                    f"{shown(block.per_seed)}, but only frozen runs of encoders that consist of runs need it"
                )
                remedy = "Remove `per_seed`."
                if is_made:
                    problem = f"missing, but {encoder} consists of runs, and this run of it is frozen"
                    remedy = "Set it to true."
                yield ErrorDetails(f"{path}.{number}.per_seed", problem, remedy)
        for name, run, _ in expand(block, seeds):
            if used:
                errors = run_errors(study, name, run)
            else:
                _, errors = read_run(study.settings, run, partial=True)
            for error in errors:
                runs_by_error[error].append((number, name))
    for error, runs in runs_by_error.items():
        names = [name for _, name in runs]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield ErrorDetails(
            f"{path}.{runs[0][0]}",
            f"{error.path}: {error.problem}",
            error.remedy,
            about=f"{', '.join(names[:_SHOWN])}{more}",
        )


def run_errors(study: Study, name: str, run: Run) -> Sequence[ErrorDetails]:
    """Return the errors about a run."""
    readings = study.settings.methods[run.method].readings
    if run.reading != "default" and run.reading not in readings:
        problem = f"{run.reading} is not a reading of methods.{run.method}"
        return [ErrorDetails("reading", problem, advice(run.reading, readings))]
    settings, errors = study.read_run(name, run)
    if errors := errors or [*misnamed(study.settings, references(settings))]:
        return errors
    assert settings
    method = settings.method
    trained = _training_errors(study, run, settings) if run.corpus else ()
    return [
        *trained,
        *method.origin_errors(_origin(study, run)),
        *method.size_errors(_start(study, run, settings)),
    ]


def _start(study: Study, run: Run, settings: RunSettings) -> StartingPoint:
    """Return the known facts about the encoder of a run before it is loaded."""
    encoder, pool = study.encoders[run.encoder], settings.method.exemplar_pool
    members = encoder.members()
    return StartingPoint(
        encoder=run.encoder,
        sizes=encoder.sizes,
        members=len(members) or None,
        frozen=[name for name, member in members.items() if not member.corpus],
        pool_sentences=study.settings.exemplars[pool].sentences if pool else None,
    )


def _origin(study: Study, run: Run) -> RunOrigin:
    """Return encoder, corpus and teacher of a run, as configured."""
    members = study.encoders[run.encoder].members()
    decided = set[str]()  # everything that determines a model, except the seed
    for name, member in members.items():
        settings, _ = study.read_run(name, member)
        decides = settings and [settings.method, settings.training.result_fields(), settings.development]
        decided.add(as_json([member.encoder, member.corpus, member.teacher, decides]))
    return RunOrigin(
        encoder=run.encoder,
        members=[*members],
        alike=len(decided) < len(members),
        corpus=run.corpus,
        columns=study.settings.corpus_columns(run.corpus) if run.corpus else (),
        teacher=run.teacher,
    )


def _training_errors(study: Study, run: Run, settings: RunSettings) -> Iterator[ErrorDetails]:
    """Yield errors in a training, such as a missing development set."""
    start = StartingPoint(run.encoder, study.encoders[run.encoder].sizes)
    yield from too_long(settings.training, start, "training")
    yield from too_long(settings.development, start, "development")
    if run.teacher:
        teacher = study.encoders[run.teacher]
        yield from too_long(study.settings.teacher, StartingPoint(run.teacher, teacher.sizes), "teacher")
        if len(members := teacher.members()) > 1:
            problem = f"{run.teacher}, whose block of runs stands for {len(members)}: {', '.join(members)}"
            yield ErrorDetails("teacher", problem, "Choose an encoder with one run.")
    if not study.settings.development.dataset:
        yield from _held_out_errors(study.settings, study.settings.source_corpus(str(run.corpus)))
    if settings.training.chunk:
        yield from settings.method.chunk_errors()


def _held_out_errors(settings: Configuration, corpus: str) -> Iterator[ErrorDetails]:
    """Yield an error if a corpus holds out no text, or none that gives pairs to select a checkpoint."""
    block, remedy = settings.corpora[corpus], "Set it to a dataset of pairs"
    if isinstance(block, Corpus) and not has_neighbours(settings.datasets[block.dataset]):
        problem = f"null, but no document of {block.dataset} has two sentences, from which pairs are made"
        yield ErrorDetails("development.dataset", problem, f"{remedy}.")
    elif not settings.held_out(corpus):
        problem = "null, but no sentence of the corpus is held out"
        remedy = f"{remedy}, or corpora.{corpus}.dev_sentences to 1000, for example."
        yield ErrorDetails("development.dataset", problem, remedy)


def value_errors(study: Study, grid: GridBlock) -> Iterator[ErrorDetails]:
    """Yield values for plots that are not the settings of their run or, if it lacks the setting, of no run of the grid.

    A run may have the value at which a method is this run, such as SimCSE in a plot over a threshold of 3R.

    Args:
        study: The study.
        grid: A grid whose runs have no errors.
    """
    if not any(block.values for block in grid.runs):
        return
    by_run = {name: _flat_settings(study, name, row.run) for name, row in grid.expanded.items()}
    for name, row in grid.expanded.items():
        known = by_run[name]
        for setting, value in grid.runs[row.block].values.items():
            path = f"runs.{row.block}.values.{setting}"
            if setting in known and known[setting] != value:
                problem = f"{shown(value)}, but its setting is {shown(known[setting])}"
                remedy = f"Set it to {shown(known[setting])}, or change the setting by `overrides`."
                yield ErrorDetails(path, problem, remedy, about=name)
            elif not any(setting in settings for settings in by_run.values()):
                yield ErrorDetails(
                    path, "no run of the grid has this setting", advice(setting, known), about=name
                )


def _flat_settings(study: Study, name: str, run: Run) -> Mapping[str, Any]:
    """Return the settings of a run and of its pool of exemplars, by dotted setting."""
    settings, _ = study.read_run(name, run)
    assert settings
    pool = settings.method.exemplar_pool
    exemplars = {"exemplars": study.settings.exemplars[pool].model_dump(mode="json")} if pool else {}
    return flat(settings.model_dump(mode="json") | exemplars)


def suite_errors(
    study: Study, suites: Mapping[str, Iterable[str]], encoders: Iterable[str]
) -> Iterator[ErrorDetails]:
    """Yield suites whose max_tokens exceeds an encoder's limit, or that map layers it does not have."""
    encoders = [*encoders]
    for kind, names in suites.items():
        for name in names:
            for encoder in encoders:
                start = StartingPoint(encoder, study.encoders[encoder].sizes)
                size_errors = study.suites[name].block.size_errors(start)
                yield from (error.under(f"suites.{kind}.{name}") for error in size_errors)
