"""Settings of section ``extraction``: sentence vectors without training, and their tables and figures."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.errors import ErrorDetails
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import (
    AnyDataset,
    EncoderName,
    FirstN,
    MaxTokens,
    Measured,
    ModelName,
    Name,
    Postprocessed,
    Precision,
    Printed,
    Refers,
    Represented,
    Sentences,
    Substitution,
    Template,
    Weighted,
)
from workflow_scripts.settings.sources import File, Local, Packaged


class WikitextAverages(Settings):
    """The general corpus, which is no evaluation task."""

    dataset: Sentences = Field(description="Dataset of the form sentences.")
    max_sentences: FirstN
    max_tokens: MaxTokens
    label: Substitution


class Averages(WikitextAverages):
    """The corpus over which token states are averaged, and its batches."""

    block: int = Field(
        gt=0, description="Number of sentences that are sorted by length before they are batched."
    )
    precision: Precision


class LocalWords(File, Local):
    """A text file of word2vec's format below the data root."""

    @property
    def files(self) -> dict[str, File]:
        """Return the file by its role."""
        return {"vectors": self}


class PackagedWords(Packaged):
    """An array of vectors and the table of its words, in an installed Python package."""

    vectors: File = Field(description="NumPy's .npy: a row of float32 for each word.")
    words: File = Field(description="Parquet: one column of text, in the order of the rows.")

    @property
    def files(self) -> dict[str, File]:
        """Return both files by their roles."""
        return {"vectors": self.vectors, "words": self.words}


class WordRepresentation(Settings):
    """Static vectors of whole words, the most frequent first."""

    kind: Literal["words"]
    source: Annotated[LocalWords | PackagedWords, Field(discriminator="kind")]
    drop_frequent: int = Field(ge=0, description="Number of words to skip at the head.")
    licence: str
    label: Substitution = None


class EncoderRepresentation(Settings):
    """Hidden states of an encoder, contextual or mixed with their static averages."""

    kind: Literal["encoder"]
    template: Annotated[str, Refers("extraction.templates")] | None = Field(
        description="Name of a template; null for the sentence itself."
    )
    precision: Precision
    remove: list[Literal["frequent", "subword", "punctuation"]] = Field(
        default=[], description="Kinds of biased tokens to remove before encoding."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error if tokens are to be removed although there is a template."""
        if self.remove and self.template:
            yield ErrorDetails(
                "remove", "tokens are removed from sentences without a template", "Set template to null."
            )


class RandomRepresentation(Settings):
    """A random vector for every token."""

    kind: Literal["random"]
    width: int = Field(gt=0)
    sd: float = Field(gt=0, description="Standard deviation of every entry; the mean is 0.")
    draws: int = Field(gt=0, description="Number of random tables, with seeds seed, seed + 1, ...")
    seed: int = Field(ge=0)


Representation = Annotated[
    EncoderRepresentation | RandomRepresentation | WordRepresentation, Field(discriminator="kind")
]


class Uniform(Settings):
    """The unweighted average of tokens."""

    kind: Literal["uniform"]
    label: Printed = Field(description="Name in tables.")
    specials: bool = Field(description="Whether [CLS] and [SEP] are averaged over.")
    masks: bool = Field(description="Whether a template's [MASK] is averaged over.")


class Idf(Settings):
    """Weights by inverse document frequency."""

    kind: Literal["idf"]
    label: Printed
    documents: Literal["wikitext", "task", "subset"] = Field(
        description="Texts in which documents are counted."
    )
    document_text: Literal["raw", "templated"] = Field(
        description="Whether a task's documents are its texts, or the texts inside the template."
    )
    formula: Literal["documents", "tokens"]
    unseen: Literal["max", "zero"]
    repeated: Literal["once", "each"] = Field(
        description="once: a repeated text of a task is one document; each: every occurrence is one, like each "
        "sentence of WikitextAverages."
    )


class Unbiased(Settings):
    """The plain average without biased tokens: frequent ones, subwords, punctuation, special tokens."""

    kind: Literal["unbiased"]
    label: Printed
    drop: list[Literal["frequent", "subword", "punctuation", "special"]] = Field(
        default=["frequent", "subword", "punctuation", "special"],
        min_length=1,
        description="Kinds of tokens to leave out; special: [CLS] and [SEP].",
    )


class MaskAverage(Settings):
    """The average of a template's [MASK] tokens."""

    kind: Literal["masks"]
    label: Printed


Weighting = Annotated[Uniform | Idf | Unbiased | MaskAverage, Field(discriminator="kind")]

FitOn = Literal["task", "wikitext"]


class Plain(Settings):
    """Post-processing that is not fitted: none, or scaling to length 1."""

    kind: Literal["none", "normalise"]
    label: str = Field(description="Name in tables; empty for none.")
    fit: Literal["task"]


class _Fitted(Settings):
    label: Printed
    fit: FitOn


class Learnt(_Fitted):
    """Post-processing by mean and standard deviation, or by mean and principal directions."""

    kind: Literal["zscore", "whiten"]


class Abtt(_Fitted):
    """All but the top: removal of the first principal directions."""

    kind: Literal["abtt"]
    directions: int = Field(ge=0, description="Principal directions to remove; the paper tried up to 100.")


class Quantile(_Fitted):
    """A quantile transformation of every feature."""

    kind: Literal["quantile_uniform"]
    quantiles: int = Field(
        ge=2,
        description="Quantiles of each feature's distribution; N of them if there are fewer than that many "
        "vectors.",
    )


Postprocessing = Annotated[Plain | Learnt | Abtt | Quantile, Field(discriminator="kind")]


class Model(Settings):
    """One model, which is a column of the paper's tables."""

    representation: Represented
    mixing_weight: float = Field(description="Mixing weight w of Equation 10.")
    layers: str
    name: str | None = Field(
        default=None,
        description="Name printed in tables; {encoder} is the study's. Omit for the paper's name.",
    )


class Measure(Settings):
    """A score that is averaged over tasks."""

    kind: Literal["sts", "clustering", "transfer", "geometry", "isotropy"]
    tasks: list[str] | None = Field(
        description="Tasks; null for all tasks of the kind that the study scores."
    )
    aggregation: str
    metrics: list[str] = Field(
        min_length=1, description="Metrics by preference: the first that a task has is used."
    )
    scale: float = Field(gt=0)
    paper_tasks: int | None = Field(
        description="Tasks that the paper averages; a study with fewer tasks is compared with the paper's mean "
        "over these."
    )


class Variants(Settings):
    """All combinations of the named weightings and post-processings."""

    weightings: list[Weighted] = Field(min_length=1)
    postprocessings: list[Postprocessed] = Field(min_length=1)


class Names(Settings):
    """Definitions and labels of the rows and columns of tables."""

    models: dict[str, Model]
    measures: dict[str, Measure]
    weightings: dict[str, str]
    postprocessings: dict[str, str]
    encoder: str = Field(description="Printed name of the study's encoder.")
    representations: dict[str, str] = Field(default={}, description="Printed names by representation.")

    def model(self, name: str) -> str:
        """Return the printed name of a model; the paper's name may be that of another encoder."""
        return (self.models[name].name or name).format(encoder=self.encoder)


class ExtractionTable(Settings):
    """A table of measures by models and variants."""

    title: Printed
    source: str = Field(description="Paper and table.")
    columns: Literal["models", "measures"] = Field(
        description="Content of the columns; rows are variants, or models if the columns are measures."
    )
    models: list[ModelName] = Field(min_length=1)
    measures: list[Measured] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


DIGITS = {
    "N": 0, "C": 0, "L/S": 1, "vocabulary W": 0, "vocabulary B": 0, "tokens W": 1, "tokens B": 1,
    "alphabetic W, %": 0, "alphabetic B, %": 0,
}  # fmt: skip
"""The paper's names of columns, with their decimals; W stands for words, B for the encoder's pieces."""


class DatasetRow(Settings):
    """One row of the table of datasets: a dataset, or one of its splits."""

    name: str = Field(description="The paper's name of the dataset.")
    split: str = Field(description="The paper's name of the split; empty for the whole dataset.")
    dataset: AnyDataset = Field(
        description="Name of the dataset; if it has splits, the rows of `split` are used."
    )
    graded: bool = Field(
        description="true: labels are grades, whose extremes are compared; false: labels are classes."
    )
    words: Literal["whitespace", "marks_apart"] = Field(description="Definition of the words that W counts.")


class Statistics(Settings):
    """A table of statistics of datasets."""

    title: Printed
    source: str
    rows: list[DatasetRow] = Field(min_length=1)


class JobBlock(Settings):
    """The axes of a block that its jobs read."""

    mixing_weights: list[float] = Field(
        min_length=1,
        description="Values of w in Equation 10: 0 for contextual states only, 1 for static averages only.",
    )
    layers: list[str] = Field(
        min_length=1,
        description="Layers: static, 0, 1, ..., last, or sums such as 1+last; each: all single layers.",
    )
    weightings: list[Weighted] = Field(min_length=1)
    postprocessings: list[Postprocessed] = Field(min_length=1)


class Block(JobBlock):
    """All combinations of the lists, and the kinds of evaluation that score them."""

    kinds: list[Literal["sts", "clustering", "transfer", "geometry", "isotropy"]] = Field(
        min_length=1, description="Kinds of evaluation; isotropy: the IsoScore of Wikitext's sentences."
    )
    representations: list[Represented] = Field(min_length=1)


class JobSettings(Settings):
    """Settings of the job of one representation: its blocks, and the definitions named in them."""

    representation: Representation
    template: Template | None
    blocks: list[JobBlock]
    weightings: dict[str, Weighting]
    postprocessings: dict[str, Postprocessing]


class SuiteNames(Settings):
    """The suite of each kind, or null to leave the kind out. The suite of scored pairs also measures geometry."""

    sts: Annotated[Name, Refers("suites.sts")] | None
    clustering: Annotated[Name, Refers("suites.clustering")] | None
    transfer: Annotated[Name, Refers("suites.transfer")] | None


class Show(Settings):
    """The tables and figures of a study."""

    statistics: list[Annotated[Name, Refers("extraction.statistics")]]
    tables: list[Annotated[Name, Refers("extraction.tables")]]
    figures: list[Annotated[Name, Refers("extraction.figures")]]


# Figures


class Drawing(Settings):
    """Settings that all figures of the study without training have."""

    title: str
    below: str = Field(description="Table of the page below which the figure is placed.")


class Series(Settings):
    """One line of a plot."""

    panel: str = Field(description="Column of panels that contains the line.")
    representation: Represented
    weighting: Weighted

    def named(self, names: Names) -> str:
        """Return the name of the line in the table of points."""
        return f"{self.representation}, {names.weightings[self.weighting]}"

    def label(self, names: Names) -> str:
        """Return the name of the line in the legend."""
        source = names.representations.get(self.representation, self.representation)
        return f"{source}, {names.weightings[self.weighting]}"


class LayerLines(Drawing):
    """Settings of plots of measures over layers."""

    kind: Literal["layer_lines"]
    measures: list[Measured] = Field(min_length=1, description="Measures, a row of panels each.")
    series: list[Series] = Field(min_length=1)
    sums: list[str] = Field(description="Sums of layers to show at the end of the horizontal axis.")


class MixingMap(Drawing):
    """Settings of maps of measures over mixing weights and layers."""

    kind: Literal["mixing_map"]
    measures: list[Measured] = Field(min_length=1, description="Measures, a map each.")
    split: bool = Field(
        description="Whether to draw a map for each task of a measure instead of one for the measure."
    )
    representation: Represented
    weighting: Weighted
    mixing_weights: list[float] = Field(min_length=2)


class VariantScatter(Drawing):
    """Settings of a scatter plot: two measures, models and variants."""

    kind: Literal["variant_scatter"]
    x: Measured
    y: Measured
    models: list[ModelName] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    y_scale: Literal["linear", "log"]
    note: str | None = Field(description="Note on the measures, printed below the figure.")
    correlation: bool = Field(description="Whether the legend shows each model's correlation of x and y.")

    @property
    def table(self) -> ExtractionTable:
        """Return the table whose cells are the points."""
        return ExtractionTable(
            title=self.title,
            source="",
            columns="models",
            models=self.models,
            measures=[self.x, self.y],
            variants=self.variants,
            digits=2,
        )


# The study


class ExtractionStudy(Settings):
    """The study of sentence vectors without training."""

    encoder: EncoderName = Field(description="Encoder whose states, tokeniser and static averages are used.")
    bias_list: Annotated[Name, Refers("resources.tokens")] = Field(
        description="List of biased tokens: a file in resources/tokens."
    )
    suites: SuiteNames
    wikitext: WikitextAverages
    averages: Averages
    templates: dict[Name, Template]
    representations: dict[Name, Representation]
    weightings: dict[Name, Weighting]
    postprocessings: dict[Name, Postprocessing]
    blocks: list[Block]
    show: Show
    models: dict[str, Model]
    measures: dict[str, Measure]
    statistics: dict[Name, Statistics]
    tables: dict[Name, ExtractionTable]
    figures: dict[Name, Annotated[LayerLines | MixingMap | VariantScatter, Field(discriminator="kind")]]
