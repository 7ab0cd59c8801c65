"""Settings of suites, a class for each kind, and the contents of their files of scores."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from workflow_scripts.errors import ErrorDetails, unknown
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Labelled, MaxTokens, Name, Pairs, Refers, Substitution, Texts
from workflow_scripts.settings.readouts import Pooling, StartingPoint, too_long

Cells = frozenset[tuple[str, str]]
"""Pairs of aggregation and metric; both may contain ``*``."""


def cells(aggregations: Iterable[str], metrics: Iterable[str]) -> Cells:
    """Return all pairs of aggregation and metric."""
    return frozenset(product(aggregations, metrics))


LOWER_IS_BETTER = frozenset(
    {
        "alignment", "uniformity", "parameters", "gmac_linear", "gmac_total", "added_parameters_percent",
        "latency_ms", "latency_ratio", "added_latency_percent", "retrieval_ms", "index_bytes",
    }
)  # fmt: skip
"""Metrics of which lower values are better."""
NOT_RANKED = frozenset({"mean_modulus", "mean_cosine", "cls_energy", "base_latency_ms"})
"""Metrics that describe an encoder, or another one: neither end is better."""
_NO_SCORES = ("training", "statistics")
"""Values of the column ``suite`` in tables for paths of a training, and for statistics of datasets."""


def direction_of(suite: str, aggregation: str, metric: str) -> int:
    """Return 1 if higher values are better, -1 if lower ones are, and 0 if neither is.

    Args:
        suite: As in ``columns.TABLE``.
        aggregation: A standard deviation is not ranked.
        metric: One, or several with " and " between them, which are ranked if all agree.
    """
    if suite in _NO_SCORES or "sd" in aggregation.split(" and "):
        return 0
    ends = {
        0 if name in NOT_RANKED else -1 if name in LOWER_IS_BETTER else 1 for name in metric.split(" and ")
    }
    return ends.pop() if len(ends) == 1 else 0


def aggregation_errors(
    aggregation: str, patterns: Collection[str], path: str, who: str, metric: str
) -> Iterator[ErrorDetails]:
    """Yield an error if a metric is not written with an aggregation; none if the metric is unknown."""
    if patterns and not any(fnmatchcase(aggregation, pattern) for pattern in patterns):
        known = ", ".join(f'"{pattern}"' for pattern in sorted(patterns))
        yield ErrorDetails(path, f'{who} has no "{aggregation}" of {metric}', f"Choose from: {known}.")


class Suite(Settings):
    """Settings of a suite: every field is a key of its block below ``suites.<kind>``."""

    form: ClassVar[str | None] = None
    """Form of its ``datasets``; None for a kind without datasets."""
    threads: ClassVar[int] = 1
    """CPU threads that an evaluation of this kind uses, besides the encoder's."""
    gpu: ClassVar[Literal["never", "here", "always"]] = "always"
    """Where its jobs request a GPU by default: nowhere, on a machine without a queue, or also in a queue."""
    hub_task: ClassVar[str] = "feature-extraction"
    """Type of its tasks in the results of a model card."""
    scores: ClassVar[Cells] = cells(["*"], ["*"])
    """Content of the files of scores for each of its ``datasets``; by default unspecified."""

    @property
    def tasks(self) -> Mapping[str, str]:
        """Return the tasks, each with its dataset; empty for a kind without datasets."""
        return {}

    @property
    def mteb_lists(self) -> Sequence[str]:
        """Return the lists of mteb's tasks to evaluate."""
        return ()

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Return the tasks, each with the content of its file of scores.

        Args:
            _lists: Lists of mteb's tasks, by name.
        """
        return dict.fromkeys(self.tasks, self.scores)

    def timed(self) -> dict[str, Cells]:
        """Return the tasks whose time is measured, each with the content of its file of times."""
        return {}

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error for each requirement that an encoder does not meet, such as enough positions."""
        yield from too_long(self, start)


class SuiteConfig(Suite):
    """Settings of a suite whose tasks are scored from vectors of their texts (``evaluation.base``)."""

    form: ClassVar[str] = "labelled"

    datasets: list[Labelled] = Field(min_length=1, description="Datasets; each is a task.")
    max_tokens: MaxTokens
    label: Substitution = None
    readout: Pooling | None = Field(
        default=None,
        description="Readout of every run's backbone, which replaces its own readout and head; null for its own.",
    )

    @property
    def tasks(self) -> Mapping[str, str]:
        """Return the tasks, each with the dataset that it reads."""
        return {name: name for name in self.datasets}

    def labels(self, scored: Collection[str], _pieces: Callable[[str], object]) -> Sequence[str]:
        """Return the labels to print with the scores; empty if no task has a score.

        Args:
            scored: Tasks that have a score.
            _pieces: Function that splits a text into an encoder's tokens.
        """
        return [self.label] if self.label and scored else []

    def for_task(self, task: str) -> Self:
        """Return the settings that determine the scores of one task, without those of other tasks."""
        return self.model_copy(update={"datasets": [task]})


SIGNS = {"above": ">", "at_least": ">="}
SENTEVAL = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick")
"""Prefixes of the names of SentEval's datasets."""
RELEASED = (
    "STS sentences as released, not lower-cased and tokenised as in SentEval, on which published numbers "
    "are computed; this tokeniser is cased"
)


class Positives(Settings):
    """One measurement of alignment and uniformity."""

    dataset: Pairs = Field(description="Dataset of the form pairs.")
    comparison: Literal["above", "at_least"] = Field(
        description="Whether positive pairs have scores above the threshold, or at least the threshold."
    )
    threshold: float = Field(description="Threshold of positive pairs, on the dataset's own scale.")
    normalise: bool = Field(description="Whether vectors are first scaled to length 1.")

    def describe(self) -> str:
        """Return a description of the measurement for tables."""
        form = "normalised" if self.normalise else "not normalised"
        return f"{self.dataset}, score {SIGNS[self.comparison]} {self.threshold:g}, {form}"


class SentenceSample(Settings):
    """A sample of sentences for isotropy, modulus and mean cosine."""

    dataset: Texts = Field(description="Dataset of sentences or pairs; each distinct sentence counts once.")
    min_characters: int = Field(
        ge=0, description="Minimum number of characters; shorter sentences are excluded."
    )
    max_sentences: int = Field(gt=1, description="Use the first N sentences.")


Measure = Positives | SentenceSample


class Sts(SuiteConfig):
    """A suite of scored pairs, whose tasks are datasets and measurements of geometry."""

    gpu: ClassVar[Literal["never", "here", "always"]] = "here"  # waiting in a queue takes longer than the job
    form: ClassVar[str] = "pairs"
    hub_task: ClassVar[str] = "semantic-similarity"
    scores: ClassVar[Cells] = cells(("all", "wmean", "mean", "subset:*"), ("spearman", "pearson"))

    datasets: list[Pairs] = Field(default=[], description="Datasets of the form pairs; each is a task.")
    text_version: Literal["release", "senteval"] = Field(
        default="release",
        description="Sentences as released, or tokenised and lower-cased as in SentEval.",
    )
    positives: dict[str, Positives] = Field(
        default={}, description="Measurements of alignment and uniformity, by name."
    )
    samples: dict[str, SentenceSample] = Field(
        default={}, description="Samples of sentences whose isotropy and moduli are measured, by name."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a task, and names that are unique among the tasks."""
        if not self.tasks:
            yield ErrorDetails(
                "datasets", "empty, and so are positives and samples", "Add a dataset, such as stsb."
            )
        for task in sorted(self.positives.keys() & {*self.datasets, *self.samples}):
            yield ErrorDetails(f"positives.{task}", "another task of the suite has that name", "Rename one.")
        for task in sorted(self.samples.keys() & {*self.datasets}):
            yield ErrorDetails(f"samples.{task}", "another task of the suite has that name", "Rename one.")

    @property
    def measures(self) -> Mapping[str, Measure]:
        """Return the measurements of geometry, by name."""
        return {**self.positives, **self.samples}

    @property
    def tasks(self) -> Mapping[str, str]:
        """Return the tasks, which include measurements, each with its dataset."""
        return {**super().tasks, **{name: measure.dataset for name, measure in self.measures.items()}}

    def labels(self, scored: Collection[str], pieces: Callable[[str], object]) -> Sequence[str]:
        """Add a label if the text differs from SentEval's, on which published numbers are computed."""
        cased = pieces("Town") != pieces("town")
        of_senteval = any(name in scored and name.startswith(SENTEVAL) for name in self.datasets)
        released = [RELEASED] if cased and of_senteval and self.text_version == "release" else []
        return [*super().labels(scored, pieces), *released]

    def for_task(self, task: str) -> Self:
        """Return the settings that determine the scores of one dataset or measurement."""
        alone = {
            "datasets": [name for name in self.datasets if name == task],
            "positives": {name: measure for name, measure in self.positives.items() if name == task},
            "samples": {name: measure for name, measure in self.samples.items() if name == task},
        }
        return self.model_copy(update=alone)

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Return the tasks, each with its correlations or measures of geometry."""
        positives = cells([""], ("alignment", "uniformity"))
        sample = cells([""], ("isoscore", "mean_modulus", "mean_cosine"))
        measured = dict.fromkeys(self.positives, positives) | dict.fromkeys(self.samples, sample)
        return dict.fromkeys(self.datasets, self.scores) | measured


class Clustering(SuiteConfig):
    """A suite of clustering tasks."""

    hub_task: ClassVar[str] = "clustering"
    scores: ClassVar[Cells] = cells(("mean", "sd"), ("accuracy", "nmi", "v_measure"))

    seeds: int = Field(ge=2, description="Runs of k-means, with seeds 0, 1, ...")
    n_init: int = Field(ge=1, description="Starts of each run; the best is used.")
    max_texts: int | None = Field(
        default=None,
        gt=0,
        description="Maximum number of texts; from a larger set, this many are drawn, the same for all runs. "
        "Omit for all texts.",
    )


class Transfer(SuiteConfig):
    """A suite of transfer tasks."""

    hub_task: ClassVar[str] = "text-classification"
    scores: ClassVar[Cells] = cells([""], ("accuracy", "dev_accuracy"))
    threads: ClassVar[int] = 8  # classifiers are fitted in parallel
    of_positive: ClassVar[Cells] = cells([""], ["f1"])
    of_grades: ClassVar[Cells] = cells([""], ("spearman", "pearson", "dev_pearson"))

    graded: list[str] = Field(description="Datasets whose labels are scores.")
    grades: dict[str, tuple[float, float]] = Field(
        default={},
        description="Scores of the first and the last of the five soft classes, by graded dataset; if omitted, "
        "minimum and maximum of the training part. SentEval uses 1 and 5 for SICK and STS-B.",
    )
    positive: dict[str, str] = Field(
        default={}, description="Class whose F1 on the test part is measured too, by dataset; 1 for MRPC."
    )
    classifier: Literal["exact", "senteval"]
    folds: int = Field(ge=2, description="Number of folds of every cross-validation; SentEval uses 10.")
    seed: int = Field(ge=0, description="Seed of folds, batches and initial weights; SentEval uses 1111.")

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require ``graded`` among the datasets, ``grades`` for graded ones only, and ``positive`` for others only."""
        yield from unknown(self.graded, self.datasets, "graded")
        yield from unknown(self.grades, self.graded, "grades")
        yield from unknown(
            self.positive, [name for name in self.datasets if name not in self.graded], "positive"
        )
        for name, (low, high) in self.grades.items():
            if low >= high:
                yield ErrorDetails(
                    f"grades.{name}", f"{low:g} to {high:g}", "Write the minimum first, then the maximum."
                )

    def for_task(self, task: str) -> Self:
        """Return the settings that determine the scores of one task, with its grades and its positive class."""
        alone = {
            "graded": [name for name in self.graded if name == task],
            "grades": {name: grades for name, grades in self.grades.items() if name == task},
            "positive": {name: label for name, label in self.positive.items() if name == task},
        }
        return super().for_task(task).model_copy(update=alone)

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Return the tasks: graded ones with correlations, others with accuracies and the F1 of a positive class."""
        classes = {
            task: self.scores | self.of_positive if task in self.positive else self.scores
            for task in self.datasets
        }
        return {task: self.of_grades if task in self.graded else classes[task] for task in self.datasets}


class InvertedIndex(Settings):
    """An inverted index of FAISS, which searches only some of its lists and may miss the nearest texts."""

    nlist: int = Field(
        ge=1, description="Number of lists into which k-means with a fixed seed divides the texts."
    )
    nprobe: int = Field(ge=1, description="Number of lists that each query searches.")

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error if more lists are searched than the index has."""
        if self.nprobe > self.nlist:
            yield ErrorDetails(
                "nprobe", f"{self.nprobe} of {self.nlist} lists", f"Set nprobe to {self.nlist} or less."
            )


class Search(SuiteConfig):
    """A suite of search tasks; label 1 of a dataset marks a duplicate."""

    hub_task: ClassVar[str] = "information-retrieval"
    scores: ClassVar[Cells] = cells([""], ("mrr@10", "recall@1", "recall@10"))

    max_pairs: int | None = Field(ge=1, description="Use the first N pairs; null: all.")
    index: InvertedIndex | None = Field(
        default=None, description="Inverted index to search; null compares each query with all texts."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error if the index has more lists than the pairs can have texts."""
        if self.index and self.max_pairs and self.max_pairs < self.index.nlist:
            yield ErrorDetails(
                "index.nlist",
                f"{self.index.nlist} lists for at most {self.max_pairs} texts",
                f"Set nlist to {self.max_pairs} or less, or raise max_pairs.",
            )

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Return the tasks, each with the quality of its hits, and the size of an inverted index."""
        size = cells([""], ["index_bytes"] if self.index else [])
        return dict.fromkeys(self.datasets, self.scores | size)

    def timed(self) -> dict[str, Cells]:
        """Return the tasks, each with the time of a query."""
        return dict.fromkeys(self.datasets, cells([""], ["retrieval_ms"]))


class MtebLists(Settings):
    """Content of config/mteb.yaml."""

    lists: dict[str, dict[str, str]] = Field(
        description="Lists of tasks by name; each maps a paper's names of tasks to mteb's."
    )
    not_in_this_mteb: dict[str, str] = Field(
        description="Tasks of papers that the lists lack, each with the reason."
    )


class Mteb(Suite):
    """A suite that mteb evaluates."""

    lists: list[Annotated[str, Refers("mteb.lists")]] = Field(
        min_length=1, description="Lists of config/mteb.yaml to evaluate."
    )
    max_tokens: MaxTokens
    batch_size: int = Field(gt=0, description="Texts per forward pass.")
    metrics: list[str] = Field(
        description="Metrics to store besides main_score, if a task has them, such as map_at_10."
    )
    label: Substitution = None

    @property
    def mteb_lists(self) -> Sequence[str]:
        """Return the lists of mteb's tasks to evaluate."""
        return self.lists

    def written(self, lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Return the tasks, each with its splits and subsets, and the lists, each with its means."""
        parts = cells(["*:*"], ("main_score", *self.metrics)) | {("mean", "main_score")}
        tasks = [task for name in self.lists for task in lists[name].values()]
        return dict.fromkeys(tasks, parts) | dict.fromkeys(self.lists, cells(["mean"], self.metrics))


class Cost(Suite):
    """A suite of the costs of encoding: parameters, operations and times."""

    gpu: ClassVar[Literal["never", "here", "always"]] = "never"

    tokens: int = Field(
        gt=0, description="Tokens per sentence T, for counting and for timing, without padding."
    )
    batch_sizes: list[int] = Field(min_length=1, description="Batch sizes to time.")
    repeats: int = Field(
        gt=0, description="Number of timed passes per encoder and batch size; their median is reported."
    )
    warmup: int = Field(ge=0, description="Number of passes before the first timed one.")

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Return one task, with counts of the encoder and of the one from which it starts."""
        counts = cells(("", "base"), ("parameters", "gmac_linear", "gmac_total"))
        return {"cost": counts | {("", "added_parameters_percent")}}

    def timed(self) -> dict[str, Cells]:
        """Return one task, with times of each batch size."""
        times, base = ("latency_ms", "sentences_per_second"), ("base_latency_ms", "latency_ratio")
        sizes = (f"batch:{size}" for size in self.batch_sizes)
        return {"cost": cells(sizes, (*times, *base, "added_latency_percent"))}


class Energy(Settings):
    """Settings of the sentences over which E_CLS is averaged."""

    dataset: Texts = Field(description="Dataset of the form sentences or pairs.")
    max_sentences: int = Field(gt=0, description="Use the first N sentences.")
    max_tokens: MaxTokens
    batch_size: int = Field(gt=0, description="Sentences per forward pass; does not change the result.")


class StoredMaps(Settings):
    """Settings of the sentences and layers whose attention is stored for figures."""

    sentences: list[str] = Field(min_length=1, description="Sentences, each encoded without padding.")
    layers: list[int] = Field(min_length=1, description="Layers to map, counted from 1.")
    max_tokens: MaxTokens


class Attention(Suite):
    """A suite of attention maps and energies."""

    gpu: ClassVar[Literal["never", "here", "always"]] = "never"

    energy: Energy
    maps: StoredMaps

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error for layers that an encoder lacks, too."""
        yield from super().size_errors(start)
        for depth in start.depths:
            if outside := [layer for layer in self.maps.layers if not 1 <= layer <= depth]:
                problem = f"{outside[0]}; {start.encoder} has layers 1 to {depth}"
                yield ErrorDetails("maps.layers", problem, f"Choose from: 1 to {depth}.")

    @property
    def tasks(self) -> Mapping[str, str]:
        """Return one task, with the dataset over which the energy is averaged."""
        return {self.energy.dataset: self.energy.dataset}

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Return one task, with the energy of [CLS] in each layer."""
        return {self.energy.dataset: cells(("mean", "layer:*"), ["cls_energy"])}


class Suites(Settings):
    """Suites by kind; this is the only place where a kind is registered."""

    attention: dict[Name, Attention] = Field(default={})
    clustering: dict[Name, Clustering] = Field(default={})
    cost: dict[Name, Cost] = Field(default={})
    mteb: dict[Name, Mteb] = Field(default={})
    search: dict[Name, Search] = Field(default={})
    sts: dict[Name, Sts] = Field(default={})
    transfer: dict[Name, Transfer] = Field(default={})

    @property
    def by_kind(self) -> dict[str, dict[str, Suite]]:
        """Return the suites by kind and name."""
        return self.parts()

    def repeated(self) -> Iterator[ErrorDetails]:
        """Yield an error for each name that suites of two kinds share."""
        kinds: dict[str, str] = {}
        for kind, suites in self.by_kind.items():
            for name in suites:
                if name in kinds:
                    problem = f"suites.{kinds[name]} also contains this name"
                    remedy = "Rename one: tables identify suites by name."
                    yield ErrorDetails(f"suites.{kind}.{name}", problem, remedy)
                kinds[name] = kind


def _class_of(section: FieldInfo) -> type[Suite]:
    """Return the class of the suites in a section, which are the values of its mapping."""
    suite: type[Suite]
    _, suite = get_args(section.annotation)
    return suite


SUITES = {kind: _class_of(section) for kind, section in Suites.model_fields.items()}
"""Classes of suites by kind."""
EVALUATORS = [kind for kind, suite in SUITES.items() if issubclass(suite, SuiteConfig)]
"""Kinds of suites that score vectors (``evaluation.base``)."""


ON_GPU = (*(kind for kind, suite in SUITES.items() if suite.gpu != "never"), "extraction")
"""Kinds of suites whose jobs can request a GPU, and the extraction study."""


def _may_ask_for_gpu(kind: str) -> str:
    if kind not in ON_GPU:
        *others, last = map(repr, ON_GPU)
        raise PydanticCustomError("no_gpu", f"must be {', '.join(others)} or {last}")
    return kind


GpuKind = Annotated[str, AfterValidator(_may_ask_for_gpu), Field(json_schema_extra={"enum": [*ON_GPU]})]


def _known_kind(kind: str) -> str:
    if kind not in SUITES:
        raise PydanticCustomError("unknown_kind", f"Choose from: {', '.join(SUITES)}.")
    return kind


SuiteKind = Annotated[str, AfterValidator(_known_kind)]
EvaluatedSuites = Annotated[
    dict[SuiteKind, list[Annotated[str, Refers("suites.{}")]]],
    AfterValidator(lambda suites: dict(sorted(suites.items()))),
    Field(description="Suites to evaluate on, by kind."),
]
"""Names of suites by their kind, in the order of kinds."""
