"""Section ``extraction``: sentence vectors without training, and the tables that are made of them."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.errors import Finding
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


class Wikitext(Settings):
    """The general corpus, which is not one of the tasks."""

    dataset: Sentences = Field(description="Dataset of the form sentences.")
    max_sentences: FirstN
    max_tokens: MaxTokens
    label: Substitution


class Averages(Wikitext):
    """The corpus that is averaged over, and how it is batched."""

    block: int = Field(gt=0, description="Sentences that are batched together by length.")
    precision: Precision


class LocalWords(File, Local):
    """A text file of word2vec's format below the data root."""

    @property
    def files(self) -> dict[str, File]:
        """The file by its role."""
        return {"vectors": self}


class PackagedWords(Packaged):
    """An array of vectors and the table of its words, in an installed Python package."""

    vectors: File = Field(description="NumPy's .npy: a row of float32 for each word.")
    words: File = Field(description="Parquet: one column of text, in the order of the rows.")

    @property
    def files(self) -> dict[str, File]:
        """Both files by their roles."""
        return {"vectors": self.vectors, "words": self.words}


class WordRepresentation(Settings):
    """Static vectors of whole words, the most frequent first."""

    kind: Literal["words"]
    source: Annotated[LocalWords | PackagedWords, Field(discriminator="kind")]
    drop_frequent: int = Field(ge=0, description="Number of words to skip at the head.")
    licence: str
    label: Substitution = None


class EncoderRepresentation(Settings):
    """Hidden states of an encoder, alone or mixed with their static averages."""

    kind: Literal["encoder"]
    template: Annotated[str, Refers("extraction.templates")] | None = Field(
        description="Name of a template; null for the sentence itself."
    )
    precision: Precision
    remove: list[Literal["frequent", "subword", "punctuation"]] = Field(
        default=[], description="Kinds of biased tokens that the encoder does not see."
    )

    def conflicts(self) -> Iterator[Finding]:
        """Tokens are removed from sentences, not from a template."""
        if self.remove and self.template:
            yield Finding(
                "remove", "tokens are removed from sentences without a template", "Set template to null."
            )


class RandomRepresentation(Settings):
    """A random vector for every token."""

    kind: Literal["random"]
    width: int = Field(gt=0)
    sd: float = Field(gt=0, description="Standard deviation of every entry; the mean is 0.")
    draws: int = Field(gt=0, description="Tables to draw, with seeds seed, seed + 1, ...")
    seed: int = Field(ge=0)


Representation = Annotated[
    EncoderRepresentation | RandomRepresentation | WordRepresentation, Field(discriminator="kind")
]


class Uniform(Settings):
    """The plain average."""

    kind: Literal["uniform"]
    label: Printed = Field(description="Name in tables.")
    specials: bool = Field(description="Whether [CLS] and [SEP] are averaged over.")
    masks: bool = Field(description="Whether a template's [MASK] is averaged over.")


class Idf(Settings):
    """Inverse document frequency."""

    kind: Literal["idf"]
    label: Printed
    documents: Literal["wikitext", "task", "subset"] = Field(description="Where documents are counted.")
    text: Literal["raw", "templated"] = Field(
        description="Whether a task's documents are its texts, or the texts inside the template."
    )
    formula: Literal["documents", "tokens"]
    unseen: Literal["max", "zero"]
    repeated: Literal["once", "each"] = Field(
        description="Documents that a repeated text of a task is; Wikitext's sentences are one each."
    )


class Unbiased(Settings):
    """The plain average without biased tokens: frequent ones, subwords, punctuation, special tokens."""

    kind: Literal["unbiased"]
    label: Printed
    drop: list[Literal["frequent", "subword", "punctuation", "special"]] = Field(
        default=["frequent", "subword", "punctuation", "special"],
        min_length=1,
        description="Kinds of tokens that are left out; special: [CLS] and [SEP].",
    )


class Masks(Settings):
    """The average of a template's [MASK] tokens."""

    kind: Literal["masks"]
    label: Printed


Weighting = Annotated[Uniform | Idf | Unbiased | Masks, Field(discriminator="kind")]

FitOn = Literal["task", "wikitext"]


class Plain(Settings):
    """No post-processing, or length 1: neither is fitted."""

    kind: Literal["none", "normalise"]
    label: str = Field(description="Name in tables; empty for none.")
    fit: Literal["task"]


class _Fitted(Settings):
    label: Printed
    fit: FitOn


class Learnt(_Fitted):
    """Mean and spread, or mean and principal directions."""

    kind: Literal["zscore", "whiten"]


class Abtt(_Fitted):
    """All but the top principal directions."""

    kind: Literal["abtt"]
    directions: int = Field(ge=0, description="Principal directions to remove; the paper tried up to 100.")


class Quantile(_Fitted):
    """Quantiles of every feature."""

    kind: Literal["quantile_uniform"]
    quantiles: int = Field(
        ge=2, description="Points of each feature's distribution; fewer where N is smaller."
    )


Postprocessing = Annotated[Plain | Learnt | Abtt | Quantile, Field(discriminator="kind")]


class Model(Settings):
    """One column of the paper's tables."""

    representation: Represented
    mixing_weight: float = Field(description="w of Equation 10.")
    layers: str
    name: str | None = Field(
        default=None, description="What readers see; {encoder} is the study's. Left out: the paper's name."
    )


class Measure(Settings):
    """A score, averaged over tasks."""

    kind: Literal["sts", "clustering", "transfer", "geometry", "isotropy"]
    tasks: list[str] | None = Field(description="null for all tasks that the study scores of the kind.")
    aggregation: str
    metrics: list[str] = Field(min_length=1, description="The first one that a task has.")
    scale: float = Field(gt=0)
    paper_tasks: int | None = Field(
        description="Tasks that the paper averages; a study with fewer is compared with the mean of the same ones."
    )


class Variants(Settings):
    """Every combination of some weightings and post-processings."""

    weightings: list[Weighted] = Field(min_length=1)
    postprocessings: list[Postprocessed] = Field(min_length=1)


class Names(Settings):
    """Definitions and labels behind the rows and columns of tables."""

    models: dict[str, Model]
    measures: dict[str, Measure]
    weightings: dict[str, str]
    postprocessings: dict[str, str]
    encoder: str = Field(description="What the study's encoder is called.")
    representations: dict[str, str] = Field(default={}, description="Representation to what readers see.")

    def model(self, name: str) -> str:
        """Name for readers, in place of the paper's name of a model, which may be another encoder's."""
        return (self.models[name].name or name).format(encoder=self.encoder)


class ExtractionTable(Settings):
    """One table."""

    title: Printed
    source: str = Field(description="Paper and table.")
    columns: Literal["models", "measures"] = Field(
        description="What the columns are; rows are variants, or models where columns are measures."
    )
    models: list[ModelName] = Field(min_length=1)
    measures: list[Measured] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    digits: int = Field(ge=0, le=6, description="Decimals printed.")


DIGITS = {
    "N": 0, "C": 0, "L/S": 1, "vocabulary W": 0, "vocabulary B": 0, "tokens W": 1, "tokens B": 1,
    "alphabetic W, %": 0, "alphabetic B, %": 0,
}  # fmt: skip
"""Columns as the paper calls them, and their decimals; W is for words, B for the encoder's pieces."""


class DatasetRow(Settings):
    """One dataset, or one of its splits."""

    name: str = Field(description="As the paper prints it.")
    split: str = Field(description="Split, as the paper prints it; empty for the whole dataset.")
    dataset: AnyDataset = Field(
        description="Name of the dataset; if it has splits, the rows of `split` are used."
    )
    graded: bool = Field(description="Whether labels are grades, whose extremes are compared, or classes.")
    words: Literal["whitespace", "marks_apart"] = Field(description="What W counts as words.")


class Statistics(Settings):
    """One table."""

    title: Printed
    source: str
    rows: list[DatasetRow] = Field(min_length=1)


class JobBlock(Settings):
    """The axes of a block that are settings of its jobs."""

    mixing_weights: list[float] = Field(
        min_length=1, description="w of Equation 10: 0 for contextual states alone, 1 for static averages."
    )
    layers: list[str] = Field(
        min_length=1, description="static, 0, 1, ..., last, sums such as 1+last; each: all."
    )
    weightings: list[Weighted] = Field(min_length=1)
    postprocessings: list[Postprocessed] = Field(min_length=1)


class Block(JobBlock):
    """Every combination of the lists, scored by some kinds of evaluation."""

    kinds: list[Literal["sts", "clustering", "transfer", "geometry", "isotropy"]] = Field(
        min_length=1, description="isotropy is the IsoScore of Wikitext's sentences."
    )
    representations: list[Represented] = Field(min_length=1)


class JobSettings(Settings):
    """Settings of the job of one representation: its blocks, and the definitions that they name."""

    representation: Representation
    template: Template | None
    blocks: list[JobBlock]
    weightings: dict[str, Weighting]
    postprocessings: dict[str, Postprocessing]


class SuiteNames(Settings):
    """The suite of each kind; null where a study leaves a kind out. Geometry is measured by that of scored pairs."""

    sts: Annotated[Name, Refers("suites.sts")] | None
    clustering: Annotated[Name, Refers("suites.clustering")] | None
    transfer: Annotated[Name, Refers("suites.transfer")] | None


class Show(Settings):
    """Tables and figures that a study makes."""

    statistics: list[Annotated[Name, Refers("extraction.statistics")]]
    tables: list[Annotated[Name, Refers("extraction.tables")]]
    figures: list[Annotated[Name, Refers("extraction.figures")]]


# Figures


class Drawing(Settings):
    """Settings of every figure of the study without training."""

    title: str
    below: str = Field(description="Table of the page; the figure is placed below it.")


class Series(Settings):
    """One line."""

    panel: str = Field(description="Column of panels that contains the line.")
    representation: Represented
    weighting: Weighted

    def named(self, names: Names) -> str:
        """The name of the line in the points."""
        return f"{self.representation}, {names.weightings[self.weighting]}"

    def label(self, names: Names) -> str:
        """The name of the line in the legend."""
        source = names.representations.get(self.representation, self.representation)
        return f"{source}, {names.weightings[self.weighting]}"


class LayerLines(Drawing):
    """Settings of lines of measures over layers."""

    kind: Literal["layer_lines"]
    measures: list[Measured] = Field(min_length=1, description="Measures; each has a row of panels.")
    series: list[Series] = Field(min_length=1)
    sums: list[str] = Field(description="Sums of layers, at the end of the horizontal axis.")


class MixingMap(Drawing):
    """Settings of maps of measures over shares and layers."""

    kind: Literal["mixing_map"]
    measures: list[Measured] = Field(min_length=1, description="Measures; each has a map.")
    split: bool = Field(description="Draw a map for each task of a measure in place of one for the measure.")
    representation: Represented
    weighting: Weighted
    mixing_weights: list[float] = Field(min_length=2)


class VariantScatter(Drawing):
    """Settings of the scatter plot: two measures, models and variants."""

    kind: Literal["variant_scatter"]
    x: Measured
    y: Measured
    models: list[ModelName] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    y_scale: Literal["linear", "log"]
    note: str | None = Field(description="A note on the measures, printed below the figure.")
    correlation: bool = Field(description="Show the correlation of x and y of each model in the legend.")

    @property
    def table(self) -> ExtractionTable:
        """The table that its points are cells of."""
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
    """Sentence vectors without training."""

    encoder: EncoderName = Field(description="Whose states, tokeniser and static averages are used.")
    bias_list: Annotated[Name, Refers("resources.tokens")] = Field(description="File in resources/tokens.")
    suites: SuiteNames
    wikitext: Wikitext
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
