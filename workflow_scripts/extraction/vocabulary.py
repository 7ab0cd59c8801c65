"""Vocabularies of tokenisers and word vectors, and document frequencies of their tokens.

Shape suffixes: V vocabulary, U texts, F tokens of all texts, concatenated.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase

from workflow_scripts.arrays import Integers
from workflow_scripts.columns import SENTENCES, TOKEN_DOCUMENTS, WORD_VECTORS
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.tokens import TokenisedText, tokenise
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import WikitextAverages

_WORD_BEGINS = "\N{LATIN CAPITAL LETTER G WITH DOT ABOVE}"


class Counts(NamedTuple):
    """Document frequencies of tokens."""

    documents: int
    """Number of all documents."""
    tokens: int
    """Number of all tokens."""
    documents_V: Integers
    """Number of documents that contain each id."""


class Vocabulary(NamedTuple):
    """The tokens of a tokeniser, and the ids that weightings treat specially."""

    tokens: Sequence[str]
    specials: frozenset[int]
    mask: int | None
    biased: Mapping[str, Sequence[int]]

    def without(self, ids: Sequence[int]) -> NDArray[np.float64]:
        """Return weight 0 for ``ids`` and 1 for all other ids, shape (V,)."""
        weights_V = np.ones(len(self.tokens))
        weights_V[list(ids)] = 0
        return weights_V


def read_vocabulary(
    tokenizer: PreTrainedTokenizerBase, frequent: Sequence[str], punctuation: Sequence[str]
) -> Vocabulary:
    """Return the vocabulary of a tokeniser.

    Args:
        tokenizer: A fast tokeniser. A subword begins with ``##`` or, in a tokeniser like RoBERTa's, lacks the mark of
            beginnings of words.
        frequent: Tokens that count as frequent; unknown ones are ignored.
        punctuation: Tokens that count as punctuation.
    """
    known = tokenizer.get_vocab()
    names = dict.fromkeys(range(max(len(tokenizer), max(known.values()) + 1)), "")
    names |= {number: token for token, number in known.items()}
    specials = frozenset({tokenizer.cls_token_id, tokenizer.sep_token_id} - {None})
    biased = {
        "frequent": [known[token] for token in frequent if token in known],
        "subword": sorted(_subwords(known) - set(tokenizer.all_special_ids)),
        "punctuation": [known[token] for token in punctuation if token in known],
        "special": sorted(specials),
    }
    return Vocabulary(list(names.values()), specials, tokenizer.mask_token_id, biased)


def _subwords(known: Mapping[str, int]) -> set[int]:
    if any(token.startswith(_WORD_BEGINS) for token in known):
        return {number for token, number in known.items() if not token.startswith(_WORD_BEGINS)}
    return {number for token, number in known.items() if token.startswith("##")}


def word_vocabulary(words: Sequence[str], frequent: Sequence[str], punctuation: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of whole words, ids from 1, without subwords, special tokens and masks."""
    known = _numbers(words)
    biased = {
        "frequent": [known[word] for word in frequent if word in known],
        "subword": [],
        "punctuation": [known[word] for word in punctuation if word in known],
        "special": [],
    }
    return Vocabulary(["", *words], frozenset(), None, biased)


def _numbers(words: Sequence[str]) -> dict[str, int]:
    """Return the id of each word, from 1; of a repeated word, the first counts, as in gensim."""
    return {word: len(words) - place for place, word in enumerate(reversed(words))}


def split_into_words(words: Sequence[str], texts: Sequence[str], max_tokens: int) -> TokenisedText:
    """Return ids (from 1) of the known ``words`` in lower-cased texts, at most ``max_tokens`` per text.

    A text is split into words and punctuation marks; a text without a known word becomes the id 0.
    """
    known = _numbers(words)
    rows = []
    for text in texts:
        ids = [known[word] for word in re.findall(r"\w+|[^\w\s]", text.lower()) if word in known]
        rows.append(ids[:max_tokens] or [0])
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    return TokenisedText(np.array([number for row in rows for number in row], np.int32), starts, pad_id=0)


def count_documents(text: TokenisedText, vocabulary: int, times_U: Integers | None = None) -> Counts:
    """Return the number of texts that contain each id; each text counts ``times_U`` times, by default once."""
    times_U = np.ones(len(text), dtype=np.int64) if times_U is None else times_U
    rows_F = np.repeat(np.arange(len(text)), text.lengths)
    pairs = np.unique(rows_F * vocabulary + text.ids)
    documents_V = np.zeros(vocabulary, dtype=np.int64)
    np.add.at(documents_V, pairs % vocabulary, times_U[pairs // vocabulary])
    return Counts(int(times_U.sum()), int(times_U @ text.lengths), documents_V)


def read_counts(table: pa.Table, vocabulary: int) -> Counts:
    """Return document frequencies from a table with the columns of ``columns.TOKEN_DOCUMENTS``."""
    documents_V = np.zeros(vocabulary, dtype=np.int64)
    documents_V[table["token_id"].to_numpy()] = table["documents"].to_numpy()
    return Counts(table["all_documents"][0].as_py(), table["all_tokens"][0].as_py(), documents_V)


def counts_table(counts: Counts, tokens: Sequence[str]) -> pa.Table:
    """Return document frequencies as a table with the columns of ``columns.TOKEN_DOCUMENTS``."""
    ids = np.flatnonzero(counts.documents_V)
    columns = [
        ids.astype(np.int32),
        pa.array([tokens[number] for number in ids.tolist()], pa.string()),
        counts.documents_V[ids],
        np.full(len(ids), counts.documents),
        np.full(len(ids), counts.tokens),
    ]
    return pa.table(columns, schema=TOKEN_DOCUMENTS)


def count_tokens(job: Job) -> None:
    """Write the number of Wikitext's sentences that contain each token or known word (rule count_tokens)."""
    settings = WikitextAverages.parse(job.settings["wikitext"], "extraction.wikitext")
    table = job.read("sentences", SENTENCES).slice(0, settings.max_sentences)
    sentences = list(dict.fromkeys(table["sentence"].to_pylist()))
    labels = [settings.label]
    if words := job.inputs("words"):
        known = read_table(words[0], WORD_VECTORS, ["word"])["word"].to_pylist()
        tokens = ["", *known]
        labels = labels if known else []  # without vectors, nothing is counted
        text = split_into_words(known, sentences, settings.max_tokens)
    else:
        tokenizer = load_tokenizer(job.input("encoder").parent)
        text = tokenise(tokenizer, sentences, settings.max_tokens)
        tokens = list(read_vocabulary(tokenizer, [], []).tokens)
    documents = counts_table(count_documents(text, len(tokens)), tokens)
    job.write({"documents": documents}, labels=labels)
