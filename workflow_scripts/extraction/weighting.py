"""Token weights, from tables with a weight for every id of the vocabulary.

    idf_t = log(N / df_t)        (Equation 4 of the extraction study; df_t of N documents contain token t)

With each weighting, the weights of a text are scaled to sum to 1. If the paper is ambiguous, the weighting has a
setting, and ``config/extraction.yaml`` names each interpretation:

* F1, ``specials``: whether [CLS] and [SEP] are part of the plain average. They are: BERT's published row (layers 1
  and 12) agrees to rounding with SimCSE's avg_first_last, which includes them.
* F6, ``unseen``: the weight of a token that occurs in no document; ``max`` is log N, as if one document contained
  it, ``zero`` ignores it. A text whose weights are all 0 falls back to the plain average of all its tokens; the
  notes of scores count such texts.
* F7, ``text``: the documents behind idf^T under a template. With ``raw`` texts, the template's words are looked up
  like any other, and [MASK], which no text contains, is an unseen token. With ``templated`` texts, all of them,
  [MASK] included, occur in every document and have weight 0, which leaves the sentence's own words.
* F8, ``documents``: ``task`` counts all texts of a task, ``subset`` those of a text's own subset.
* F9, ``formula``: ``documents`` is Equation 4; ``tokens`` is log(tokens / df_t), which is flatter and comes closer
  to the paper's rows for random embeddings (unresolved).

* ``drop``: the kinds of tokens that -biases leaves out. The study names three, and evaluates each by itself too
  (section 3.3); ASSUME: all of them, and [CLS] and [SEP], whose states are of no word (reading ``unbiased_words`` keeps
  these two).
* ``repeated``: a text that occurs several times in a task, such as a caption of several images, counts as that many
  documents (``each``) or as one (``once``). ASSUME: each, as section 3.3 counts "all samples from the given
  target task", and as post-processings are fitted. Over STS12 to STS15 and STS-B, random embeddings (ten draws) differ
  by .23 points from the paper's printed rows, .38 with ``once`` and .55 with a pair as one document, if the paper's two
  idf rows are swapped (docs/laboratory.md); draws differ by .2.

Shape suffixes: V vocabulary, G groups of texts (subsets), F tokens of all texts, concatenated.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workflow_scripts.arrays import Floats, Integers
from workflow_scripts.extraction.vocabulary import Counts, Vocabulary
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.settings.extraction import Idf, MaskAverage, Unbiased, Weighting


def idf(counts: Counts, settings: Idf) -> Floats:
    """Return the idf of every id, shape (V,), never negative."""
    total = counts.documents if settings.formula == "documents" else counts.tokens
    weights_V: Floats = np.log(max(total, 1) / np.maximum(counts.documents_V, 1))
    if settings.unseen == "zero":
        weights_V[counts.documents_V == 0] = 0
    return weights_V


def weight_tables(
    settings: Weighting, vocabulary: Vocabulary, wikitext: Counts | None, groups: Sequence[Counts]
) -> Floats:
    """Return a weight for every id, shape (G, V), or (1, V) if all groups have the same weights.

    Args:
        settings: The weighting.
        vocabulary: Ids of the tokeniser.
        wikitext: Document frequencies of Wikitext; None if no weighting uses them.
        groups: Document frequencies of the task, or of each of its subsets.
    """
    if isinstance(settings, Idf):
        counted = [wikitext] if settings.documents == "wikitext" else groups
        assert counted and all(counts is not None for counts in counted)
        return np.stack([idf(counts, settings) for counts in counted if counts is not None])
    mask = [] if vocabulary.mask is None else [vocabulary.mask]
    if isinstance(settings, MaskAverage):
        return (1 - vocabulary.without(mask))[None]
    if isinstance(settings, Unbiased):
        dropped = [number for kind in settings.drop for number in vocabulary.biased[kind]]
    else:
        dropped = [*([] if settings.specials else vocabulary.specials), *([] if settings.masks else mask)]
    return vocabulary.without(dropped)[None]


class Weights(NamedTuple):
    """Weights of all tokens of some texts, concatenated, and the number of texts that use the plain average instead."""

    weights_F: NDArray[np.float32]
    fallbacks: int


Marks = Mapping[int, tuple[int, int]]
"""Numbers of times that tokeniser and template write a mark, such as [MASK], before and after a text, by its id."""


def marks_in_texts(text: TokenisedText, marks: Marks) -> NDArray[np.bool_]:
    """Return whether a token is a mark of the text itself, not of tokeniser or template, shape (F)."""
    inside_F = np.zeros(len(text.ids), np.bool_)
    for mark, (before, after) in marks.items():
        is_mark_F = text.ids == mark
        count_F = np.concatenate([[0], np.cumsum(is_mark_F)])
        earlier_U = count_F[text.starts[:-1]]
        number_F = count_F[1:] - np.repeat(earlier_U, text.lengths)
        total_F = np.repeat(count_F[text.starts[1:]] - earlier_U, text.lengths)
        inside_F |= is_mark_F & (number_F > before) & (number_F <= total_F - after)
    return inside_F


def weigh(
    text: TokenisedText,
    tables_GV: Floats,
    groups: Integers,
    settings: Weighting | None = None,
    marks: Marks | None = None,
) -> Weights:
    """Return weights of every token; those of a text sum to 1.

    Args:
        text: The texts.
        tables_GV: Result of ``weight_tables``.
        groups: Group of each text; ignored if there is only one table.
        settings: The weighting. If it selects kinds of tokens, a mark inside a text counts as a word.
        marks: The marks around texts.
    """
    lengths, starts = text.lengths, text.starts[:-1]
    table_F = np.repeat(np.zeros_like(groups) if len(tables_GV) == 1 else groups, lengths)
    weights_F = tables_GV[table_F, text.ids]
    if not isinstance(settings, Idf):
        weights_F = np.where(
            marks_in_texts(text, marks or {}), not isinstance(settings, MaskAverage), weights_F
        )
    sums = np.add.reduceat(weights_F, starts) if len(starts) else np.empty(0)
    empty = sums <= 0
    weights_F = np.where(np.repeat(empty, lengths), 1.0, weights_F)
    sums = np.where(empty, lengths, sums)
    return Weights((weights_F / np.repeat(sums, lengths)).astype(np.float32), int(empty.sum()))
