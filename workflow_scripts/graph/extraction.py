"""The study without training: settings of its jobs, score files, names, checks, and lookups of its rules."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

from workflow_scripts.errors import ErrorDetails, unknown
from workflow_scripts.extraction.layers import layer_errors
from workflow_scripts.graph.slices import Wildcards, as_json
from workflow_scripts.graph.source_plans import source_now
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.extraction import (
    Block,
    EncoderRepresentation,
    ExtractionStudy,
    ExtractionTable,
    Idf,
    JobBlock,
    JobSettings,
    LayerLines,
    Measure,
    MixingMap,
    Names,
    Series,
    VariantScatter,
    WordRepresentation,
)
from workflow_scripts.settings.readouts import Size
from workflow_scripts.settings.study import Configuration
from workflow_scripts.settings.suites import SUITES, Cells, Sts, Suite, SuiteConfig, aggregation_errors

ISOTROPY: Cells = frozenset({("", "isoscore")})
"""Scores of Wikitext's sentences, which are in no suite."""
Shown = ExtractionTable | LayerLines | MixingMap | VariantScatter
"""A table or figure of the study."""

# Settings of jobs


def blocks_of(extraction: ExtractionStudy, kind: str | None, representation: str) -> list[JobBlock]:
    """Return the axes of the blocks that score a representation by ``kind`` (None: by any kind)."""
    return [
        _axes(block)
        for block in extraction.blocks
        if representation in block.representations and (kind is None or kind in block.kinds)
    ]


def _axes(block: Block) -> JobBlock:
    return JobBlock(**block.model_dump(include={*JobBlock.model_fields}))


def job_settings(extraction: ExtractionStudy, kind: str, representation: str) -> JobSettings:
    """Return the settings of the job of one representation and kind: its blocks and their definitions."""
    return settings_for(extraction, representation, blocks_of(extraction, kind, representation))


def wikitext_settings(extraction: ExtractionStudy, representation: str) -> dict[str, JobSettings]:
    """Return the settings of the job that encodes Wikitext: post-processings to fit, and cells to measure."""
    fits = {name: post.fit for name, post in extraction.postprocessings.items()}
    learnt = [
        block.model_copy(update={"postprocessings": names})
        for block in blocks_of(extraction, None, representation)
        if (names := [name for name in block.postprocessings if fits[name] == "wikitext"])
    ]
    measured = blocks_of(extraction, "isotropy", representation)
    return {
        "learnt": settings_for(extraction, representation, learnt + measured),
        "isotropy": settings_for(extraction, representation, measured),
    }


def settings_for(extraction: ExtractionStudy, representation: str, blocks: list[JobBlock]) -> JobSettings:
    """Return the settings of a job that scores some blocks of a representation."""
    definition = extraction.representations[representation]
    template = definition.template if isinstance(definition, EncoderRepresentation) else None
    return JobSettings(
        representation=definition,
        template=extraction.templates[template] if template else None,
        blocks=blocks,
        weightings={name: extraction.weightings[name] for block in blocks for name in block.weightings},
        postprocessings={
            name: extraction.postprocessings[name] for block in blocks for name in block.postprocessings
        },
    )


# Tasks and their score files


def evaluator_of(kind: str) -> str:
    """Return the kind of suite for a kind of score: suites of scored pairs also measure geometry."""
    return "sts" if kind == "geometry" else kind


def suite_of(settings: Configuration, kind: str) -> SuiteConfig | None:
    """Return the suite for one kind of score; None if the study leaves the kind out."""
    name = dict(settings.extraction.suites).get(evaluator_of(kind))
    suite = settings.suites.by_kind[evaluator_of(kind)][name] if name else None
    assert suite is None or isinstance(suite, SuiteConfig)
    return suite


def tasks_in(suite: Suite | None, kind: str) -> dict[str, str]:
    """Return the tasks of a suite for one kind of score, with their datasets."""
    if kind == "geometry":
        positives = suite.positives if isinstance(suite, Sts) else {}
        return {name: measure.dataset for name, measure in positives.items()}
    return {name: name for name in suite.datasets} if isinstance(suite, SuiteConfig) else {}


def tasks_of(settings: Configuration, kind: str) -> dict[str, str]:
    """Return the study's tasks of one kind, with their datasets."""
    return tasks_in(suite_of(settings, kind), kind)


def score_files(
    settings: Configuration,
    tasks: Mapping[str, Collection[str] | None],
    representations: Iterable[str],
) -> list[str]:
    """Return the paths of score files below the study's folder of results.

    Args:
        settings: The complete configuration.
        tasks: Wanted tasks by kind; None for all tasks of the study.
        representations: Wanted representations; one without a block for a kind has no file of that kind.
    """
    extraction, wanted = settings.extraction, set(representations)
    return [
        f"extraction/scores/{kind}/{name}/{task}.parquet"
        for kind, chosen in tasks.items()
        for name in extraction.representations
        if name in wanted and blocks_of(extraction, kind, name)
        for task in (["wikitext"] if kind == "isotropy" else tasks_of(settings, kind))
        if chosen is None or task in chosen
    ]


def files_of(settings: Configuration, block: Shown) -> list[str]:
    """Return the score files that a table or figure of the study reads."""
    extraction = settings.extraction
    models = [extraction.models[model].representation for model in _models(block)]
    lines = [line.representation for line in _lines(block)]
    return score_files(settings, _tasks(extraction, _measures(block)), [*models, *lines])


def _measures(block: Shown) -> Sequence[str]:
    """Return the measures of a table or figure, or those on its axes."""
    return (block.x, block.y) if isinstance(block, VariantScatter) else block.measures


def _models(block: Shown) -> Sequence[str]:
    return block.models if isinstance(block, ExtractionTable | VariantScatter) else ()


def _lines(block: Shown) -> Sequence[Series | MixingMap]:
    """Return the settings with representation and weighting of a figure's lines: its series, or the figure itself."""
    return block.series if isinstance(block, LayerLines) else [block] if isinstance(block, MixingMap) else []


def _tasks(extraction: ExtractionStudy, measures: Iterable[str]) -> dict[str, set[str] | None]:
    """Return the tasks of some measures by kind; None if one of them averages over all tasks."""
    tasks: dict[str, set[str] | None] = {}
    for measure in (extraction.measures[name] for name in measures):
        seen = tasks.get(measure.kind, set())
        tasks[measure.kind] = None if measure.tasks is None or seen is None else seen | {*measure.tasks}
    return tasks


def single_tables(extraction: ExtractionStudy, table: str) -> dict[str, str]:
    """Return, for each task of a table's measures, the name of the table that shows only this task."""
    kinds = _tasks(extraction, extraction.tables[table].measures)
    alone = {}
    for name, block in extraction.tables.items():
        first, *others = (extraction.measures[measure] for measure in block.measures)
        if not others and first.kind in kinds and len(first.tasks or ()) == 1:
            alone.update(dict.fromkeys(first.tasks or (), name))
    return alone


def datasets_of(settings: Configuration) -> list[str]:
    """Return the datasets that the extraction study reads."""
    extraction = settings.extraction
    kinds = {kind for block in shown_blocks(extraction) for kind in _tasks(extraction, _measures(block))}
    datasets = {
        row.dataset for table in extraction.show.statistics for row in extraction.statistics[table].rows
    }
    if kinds:
        tasks = (tasks_of(settings, kind) for kind in kinds - {"isotropy"})
        datasets |= {dataset for each in tasks for dataset in each.values()}
        datasets |= {extraction.wikitext.dataset, extraction.averages.dataset}
    return sorted(datasets)


def shown_blocks(extraction: ExtractionStudy) -> list[Shown]:
    """Return the tables and figures that the study shows."""
    tables = (extraction.tables[name] for name in extraction.show.tables)
    return [*tables, *(extraction.figures[name] for name in extraction.show.figures)]


def tables_of(extraction: ExtractionStudy) -> dict[str, ExtractionTable]:
    """Return the tables of the study by name, with the tables of its scatter plots."""
    figures = extraction.figures.items()
    drawn = {name: block.table for name, block in figures if isinstance(block, VariantScatter)}
    return extraction.tables | drawn


def definable_rows(extraction: ExtractionStudy, table: str) -> tuple[set[str], set[str]]:
    """Return all rows and headings that a table of this form could show, with those that the study leaves out."""
    weightings = [block.label for block in extraction.weightings.values()]
    posts = [block.label for block in extraction.postprocessings.values()]
    variants = {" + ".join(filter(None, pair)) for pair in product(weightings, posts)}
    if tables_of(extraction)[table].columns == "models":
        rows, groups, headings = variants, set(extraction.measures), set(extraction.models)
    else:
        rows, groups, headings = set(extraction.models), variants, set(extraction.measures)
    return rows | {f"{group}: {row}" for group, row in product(groups, rows)}, headings


# Names


def names(settings: Configuration, block: Shown) -> Names:
    """Return definitions and labels of the models, measures and variants in one table or figure."""
    extraction, lines, measures = settings.extraction, _lines(block), _measures(block)
    variants = block.variants if isinstance(block, ExtractionTable | VariantScatter) else []
    weightings = {name for variant in variants for name in variant.weightings}
    weightings |= {line.weighting for line in lines}
    posts = {name for variant in variants for name in variant.postprocessings} | {"none"}
    return Names(
        models={name: extraction.models[name] for name in _models(block)},
        measures={name: extraction.measures[name] for name in measures},
        weightings={name: extraction.weightings[name].label for name in weightings},
        postprocessings={name: extraction.postprocessings[name].label for name in posts},
        encoder=extraction.encoder,
        representations={
            line.representation: _representation(extraction, line.representation) for line in lines
        },
    )


def _representation(extraction: ExtractionStudy, name: str) -> str:
    """Return the printed name of a representation; one that reads an encoder is named after the encoder."""
    block = extraction.representations[name]
    if isinstance(block, EncoderRepresentation):
        return f"{extraction.encoder} in template {name}" if block.template else extraction.encoder
    return "random embeddings" if block.kind == "random" else name


# Checks


def extraction_errors(settings: Configuration) -> Iterator[ErrorDetails]:
    """Yield an error for each unknown name in measures and figures, shown or not."""
    extraction = settings.extraction
    for name, measure in extraction.measures.items():
        yield from _measure_errors(settings, measure, f"extraction.measures.{name}")
    tables = [*extraction.tables, *extraction.statistics]
    for name, figure in extraction.figures.items():
        yield from unknown(figure.below, tables, f"extraction.figures.{name}.below")


def layer_errors_of(extraction: ExtractionStudy, size: Size | None) -> Iterator[ErrorDetails]:
    """Yield an error for each layer or mask in the study's blocks that its representation lacks.

    Args:
        extraction: The section, without unknown names.
        size: The size of the study's encoder; None before it is fetched.
    """
    depth = size.layers if size else None
    for number, block in enumerate(extraction.blocks):
        for name in block.representations:
            for error in layer_errors(settings_for(extraction, name, [_axes(block)]), depth):
                yield error.under(f"extraction.blocks.{number}")._replace(about=name)


def _measure_errors(settings: Configuration, measure: Measure, path: str) -> Iterator[ErrorDetails]:
    """Yield errors in one measure; all tasks of its kind are valid, even those that the study leaves out."""
    kind, cells = measure.kind, ISOTROPY
    if kind != "isotropy":
        form = SUITES[evaluator_of(kind)].form
        suites = settings.suites.by_kind[evaluator_of(kind)].values()
        tasks = {task for suite in suites for task in tasks_in(suite, kind)}
        each = (suite.written(settings.mteb.lists) for suite in suites)
        cells = frozenset(cell for suite in each for task in tasks & suite.keys() for cell in suite[task])
        if kind != "geometry":
            tasks |= {name for name, block in settings.datasets.items() if block.form == form}
        yield from unknown(measure.tasks or [], tasks, f"{path}.tasks")
    yield from unknown(measure.metrics, {name for _, name in cells}, f"{path}.metrics")
    patterns = {pattern for pattern, metric in cells if metric in measure.metrics}
    metrics = ", ".join(measure.metrics)
    yield from aggregation_errors(measure.aggregation, patterns, f"{path}.aggregation", kind, metrics)


# Rules


class Extraction:
    """Lookups of the extraction study's rules, by a job's wildcards."""

    def __init__(self, study: Study) -> None:
        self._study, self._settings = study, study.settings
        self._extraction = extraction = study.settings.extraction
        self.encoder = f"<results>/encoders/{extraction.encoder}/record.json"
        self.biases = f"resources/tokens/{extraction.bias_list}.json"

    @cached_property
    def tables(self) -> list[str]:
        """Return the names of the tables that the study shows."""
        shown = self._study.shown_extraction
        return [f"<results>/tables/{name}.parquet" for name in shown.statistics + shown.tables]

    @cached_property
    def shown(self) -> list[str]:
        """Return the score files of the tables and figures that the study shows."""
        blocks = shown_blocks(self._extraction) if self._study.shows_extraction else []
        files = (file for block in blocks for file in files_of(self._settings, block))
        return [f"<results>/{file}" for file in dict.fromkeys(files)]

    @cached_property
    def tasks(self) -> dict[str, list[str]]:
        """Return the study's tasks by kind, apart from Wikitext's isotropy."""
        return {
            kind: [*tasks_of(self._settings, kind)] for kind in ("sts", "clustering", "transfer", "geometry")
        }

    def _job(self, wildcards: Wildcards) -> JobSettings:
        """Return the settings of a job of one representation, and of one kind of task if the job has one."""
        if "kind" in dict(wildcards.items()):
            return job_settings(self._extraction, wildcards.kind, wildcards.representation)
        return wikitext_settings(self._extraction, wildcards.representation)["learnt"]

    def reads(self, wildcards: Wildcards) -> dict[str, str]:
        """Return the name in each kind of file that a job of one representation reads."""
        job, name = self._job(wildcards), wildcards.representation
        words = isinstance(job.representation, WordRepresentation)
        counted = (
            isinstance(weighting, Idf) and weighting.documents == "wikitext"
            for weighting in job.weightings.values()
        )
        asked = {
            "words": (name, words),
            "documents": (name if words else "pieces", any(counted)),
            "averages": ("averages", any(any(block.mixing_weights) for block in job.blocks)),
            "fitted": (
                name,
                any(postprocessing.fit == "wikitext" for postprocessing in job.postprocessings.values()),
            ),
        }
        return {kind: named for kind, (named, is_read) in asked.items() if is_read}

    def word_vectors(self, wildcards: Wildcards) -> str:
        """Return the settings of static word vectors, and the files from which they would be read now, as JSON."""
        block = self._extraction.representations[wildcards.representation]
        assert isinstance(block, WordRepresentation)
        artefact = f"extraction/words/{wildcards.representation}.parquet"
        return as_json({"representation": block, "source": source_now(self._study, artefact, [block.source])})

    def wikitext(self, wildcards: Wildcards) -> str:
        """Return the settings of the job that fits post-processings on Wikitext with one representation, as JSON."""
        learnt = wikitext_settings(self._extraction, wildcards.representation)
        return as_json({"wikitext": self._extraction.wikitext, **learnt})

    def dataset(self, wildcards: Wildcards) -> str:
        """Return the dataset file of one task."""
        return f"<results>/datasets/{tasks_of(self._settings, wildcards.kind)[wildcards.task]}.parquet"

    def task(self, wildcards: Wildcards) -> str:
        """Return the settings of one job, as JSON: its representations, and the suite with only its task."""
        suite = suite_of(self._settings, wildcards.kind)
        assert suite, f"the study has no suite of {wildcards.kind}"
        return as_json({"job": self._job(wildcards), "suite": suite.for_task(wildcards.task)})

    def threads(self, wildcards: Wildcards) -> int:
        """Return the number of CPU threads for scores of a kind."""
        return SUITES[evaluator_of(wildcards.kind)].threads

    def modules(self, wildcards: Wildcards) -> list[str]:
        """Return the evaluator's module of a kind, which a job imports by name."""
        return [f"evaluation.{evaluator_of(wildcards.kind)}"]

    def scores(self, wildcards: Wildcards) -> list[str]:
        """Return the score files of one table."""
        files = files_of(self._settings, self._extraction.tables[wildcards.table])
        return [f"<results>/{file}" for file in files]

    def table(self, wildcards: Wildcards) -> str:
        """Return the settings of one table, as JSON."""
        table = self._extraction.tables[wildcards.table]
        single = single_tables(self._extraction, wildcards.table)
        return as_json({"names": names(self._settings, table), "table": table, "single": single})

    def described(self, wildcards: Wildcards) -> list[str]:
        """Return the datasets that one table describes."""
        rows = self._extraction.statistics[wildcards.statistics].rows
        return [f"<results>/datasets/{name}.parquet" for name in dict.fromkeys(row.dataset for row in rows)]

    def published(self, wildcards: Wildcards) -> list[str]:
        """Return the files of the paper's numbers for one table, and for the tables that show one of its tasks."""
        (table,) = wildcards
        alone = single_tables(self._extraction, table) if table in self._extraction.tables else {}
        files = [f"resources/published/{name}.csv" for name in dict.fromkeys([table, *alone.values()])]
        return [file for file in files if (self._study.root / file).exists()]
