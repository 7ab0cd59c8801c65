"""Weights of tokens, from tables with a weight for every id of the vocabulary.

    idf_t = log(N / df_t)        (Equation 4 of the extraction study; N documents, df_t of them hold token t)

Whatever the weighting, the weights of a text are scaled to the sum 1. What the paper leaves open is a setting of
the weighting, and each reading a named variant in ``config/extraction.yaml``:

* F1, [CLS] and [SEP] in the plain average: ``specials``. They count: BERT's published row (layers 1 and 12) agrees
  to rounding with SimCSE's avg_first_last, which counts them.
* F6, a token in no document: ``unseen``; ``max`` is log N, as if one document held it, ``zero`` ignores it.
  A text whose weights are all 0 falls back to the plain average of all its tokens; notes of scores say how often.
* F7, idf on the task under a template: ``text``. On ``raw`` texts the template's words are looked up like any
  other, and [MASK], which no text holds, weighs as an unseen token. On ``templated`` texts all of them, [MASK]
  included, stand in every document and weigh 0, which leaves the sentence's own words.
* F8, the documents of a task: ``task`` takes all of its texts, ``subset`` those of a text's own subset.
* F9, the equation: ``documents`` is Equation 4; ``tokens`` is log(tokens / df_t), flatter, which comes closer to
  the paper's rows for random embeddings (PAPERS: unresolved).

Each distinct text of a task is one document. ASSUME: repeats say nothing new about how rare a token is.

Shape suffixes: V vocabulary, G groups of texts (subsets), F tokens of all texts end to end.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from workflow_scripts.config import Slice
from workflow_scripts.models.tokens import TokenisedText

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_WORD_BEGINS = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"

Bias = Literal["frequent", "subword", "punctuation", "special"]


class Uniform(Slice):
    """The plain average."""

    kind: Literal["uniform"]
    label: str = Field(description="As tables print it.")
    specials: bool = Field(description="Whether [CLS] and [SEP] count.")
    masks: bool = Field(description="Whether a template's [MASK] counts.")


class Idf(Slice):
    """Inverse document frequency."""

    kind: Literal["idf"]
    label: str
    documents: Literal["wikitext", "task", "subset"] = Field(description="Where frequencies come from.")
    text: Literal["raw", "templated"] = Field(description="Form of the task's documents under a template.")
    formula: Literal["documents", "tokens"]
    unseen: Literal["max", "zero"]


class Unbiased(Slice):
    """The plain average of what is left without frequent tokens, subwords and punctuation."""

    kind: Literal["unbiased"]
    label: str
    drop: list[Bias]


class Masks(Slice):
    """The average of a template's masks."""

    kind: Literal["masks"]
    label: str


Weighting = Annotated[Uniform | Idf | Unbiased | Masks, Field(discriminator="kind")]


class Counts(NamedTuple):
    """In how many documents each token stands."""

    documents: int
    tokens: int
    documents_V: Integers


class Vocabulary(NamedTuple):
    """Ids of a tokeniser, by what weightings ask."""

    tokens: Sequence[str]
    specials: frozenset[int]
    mask: int | None
    biased: Mapping[Bias, Sequence[int]]

    def without(self, ids: Sequence[int]) -> Floats:
        """1 for every id but ``ids``, shape (V,)."""
        weights_V = np.ones(len(self.tokens))
        weights_V[list(ids)] = 0
        return weights_V


def read_vocabulary(
    tokenizer: PreTrainedTokenizerBase, frequent: Sequence[str], punctuation: Sequence[str]
) -> Vocabulary:
    """Look up a tokeniser's ids.

    Args:
        tokenizer: Any fast tokeniser. A subword begins with ``##``, or lacks the mark with which a tokeniser like
            RoBERTa's begins words.
        frequent: Tokens that are dropped as frequent; those that the vocabulary lacks are no loss.
        punctuation: Tokens that are dropped as punctuation.
    """
    known = tokenizer.get_vocab()
    size = max(len(tokenizer), max(known.values()) + 1)
    names = [""] * size
    for token, number in known.items():
        names[number] = token
    specials = {tokenizer.cls_token_id, tokenizer.sep_token_id} - {None}
    return Vocabulary(
        tokens=names,
        specials=frozenset(specials),
        mask=tokenizer.mask_token_id,
        biased={
            "frequent": [known[token] for token in frequent if token in known],
            "subword": sorted(_subwords(known) - set(tokenizer.all_special_ids)),
            "punctuation": [known[token] for token in punctuation if token in known],
            "special": sorted(specials),
        },
    )


def _subwords(known: Mapping[str, int]) -> set[int]:
    if any(token.startswith(_WORD_BEGINS) for token in known):
        return {number for token, number in known.items() if not token.startswith(_WORD_BEGINS)}
    return {number for token, number in known.items() if token.startswith("##")}


def count_documents(text: TokenisedText, vocabulary: int) -> Counts:
    """Count for each id the texts that hold it."""
    rows_F = np.repeat(np.arange(len(text)), text.lengths)
    pairs = np.unique(rows_F * vocabulary + text.ids)
    return Counts(len(text), len(text.ids), np.bincount(pairs % vocabulary, minlength=vocabulary))


def idf(counts: Counts, settings: Idf) -> Floats:
    """Idf of every id, shape (V,), never negative."""
    total = counts.documents if settings.formula == "documents" else counts.tokens
    weights_V: Floats = np.log(max(total, 1) / np.maximum(counts.documents_V, 1))
    if settings.unseen == "zero":
        weights_V[counts.documents_V == 0] = 0
    return weights_V


def weight_tables(
    settings: Weighting, vocabulary: Vocabulary, wikitext: Counts | None, groups: Sequence[Counts]
) -> Floats:
    """A weight for every id, shape (G, V), or (1, V) where all groups share it.

    Args:
        settings: The weighting.
        vocabulary: Ids by what they are.
        wikitext: Document frequencies of Wikitext; None where no weighting asks for them.
        groups: Document frequencies of the task, or of each of its subsets.
    """
    if isinstance(settings, Idf):
        sources = [wikitext] if settings.documents == "wikitext" else groups
        assert sources and all(source is not None for source in sources)
        return np.stack([idf(source, settings) for source in sources if source is not None])
    if isinstance(settings, Masks):
        return (1 - vocabulary.without([] if vocabulary.mask is None else [vocabulary.mask]))[None]
    if isinstance(settings, Unbiased):
        return vocabulary.without([number for bias in settings.drop for number in vocabulary.biased[bias]])[
            None
        ]
    dropped = [] if settings.specials else sorted(vocabulary.specials)
    dropped += [] if settings.masks or vocabulary.mask is None else [vocabulary.mask]
    return vocabulary.without(dropped)[None]


class Weights(NamedTuple):
    """Weights of all tokens of some texts end to end, and how many texts fell back to the plain average."""

    weights_F: NDArray[np.float32]
    fallbacks: int


def weigh(text: TokenisedText, tables_GV: Floats, groups: Integers) -> Weights:
    """Weigh every token; the weights of a text sum to 1.

    Args:
        text: The texts.
        tables_GV: From ``weight_tables``.
        groups: Group of each text; of no effect where there is one table.
    """
    lengths, starts = text.lengths, text.starts[:-1]
    table_F = np.repeat(np.zeros_like(groups) if len(tables_GV) == 1 else groups, lengths)
    weights_F = tables_GV[table_F, text.ids]
    sums = np.add.reduceat(weights_F, starts) if len(starts) else np.empty(0)
    empty = sums <= 0
    weights_F = np.where(np.repeat(empty, lengths), 1.0, weights_F)
    sums = np.where(empty, lengths, sums)
    return Weights((weights_F / np.repeat(sums, lengths)).astype(np.float32), int(empty.sum()))
