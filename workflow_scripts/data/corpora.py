"""Splits of corpora into training text and a development set of held-out text."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import PAIRS, SENTENCES
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import Corpus


def split(sentences: pa.Table, corpus: Corpus) -> tuple[pa.Table, pa.Table]:
    """Return a corpus without its last documents, and these, which have at least ``dev_sentences`` sentences.

    Args:
        sentences: Columns of ``columns.SENTENCES`` or ``columns.TRIPLES``.
        corpus: Numbers of sentences to hold out and to train on.

    Returns:
        The training part and the held-out part, which share no document. Triples have no documents: their second part
        is empty.

    Raises:
        ConfigError: if triples, which have no documents, are to be held out.
        DataError: if no sentence is left for training.
    """
    if not len(sentences):
        raise DataError(f"corpora: dataset {corpus.dataset} has no sentences. Check its sources.")
    if "document" not in sentences.column_names:
        if corpus.dev_sentences:
            problem = f"dev_sentences {corpus.dev_sentences}, but {corpus.dataset} has no documents"
            raise ConfigError(
                f"corpora: {problem}. Set it to 0, and development.dataset to a dataset of pairs."
            )
        return sentences.slice(0, corpus.max_sentences), SENTENCES.empty_table()
    documents = sentences["document"].to_numpy()
    cut = len(documents)
    if corpus.dev_sentences:
        cut = int(np.searchsorted(documents, documents[max(0, cut - corpus.dev_sentences)]))
    if not cut:
        most = len(documents) - int(np.searchsorted(documents, documents[0], side="right"))
        problem = f"dev_sentences {corpus.dev_sentences} of {len(documents)} leaves no document for training"
        raise DataError(f"corpora: {problem}. Set it to {most} or less.")
    return sentences.slice(0, min(cut, corpus.max_sentences or cut)), sentences.slice(cut)


def with_pair_sentences(train: pa.Table, pairs: pa.Table, added: str) -> pa.Table:
    """Return a corpus of sentences with the distinct sentences of scored pairs as a further document, none blank.

    Args:
        train: Columns of ``columns.SENTENCES``.
        pairs: Columns of ``columns.PAIRS``; scores are not used.
        added: Name of their dataset.

    Raises:
        ConfigError: if the corpus contains triples.
        DataError: if there are no pairs: the same name would stand for another corpus.
    """
    if "document" not in train.column_names:
        raise ConfigError("corpora: sentences cannot be added to triples. Remove the key `add_sentences_of`.")
    both = zip(pairs["sentence1"].to_pylist(), pairs["sentence2"].to_pylist(), strict=True)
    texts = list(dict.fromkeys(text for pair in both for text in pair if text.strip()))
    if not texts:
        problem = f"add_sentences_of: {added} has no sentences to add, such as a gap"
        raise DataError(
            f"corpora: {problem}. Provide one of its sources, or remove the key `add_sentences_of`."
        )
    document = pc.max(train["document"]).as_py() + 1
    rows = {"sentence": texts, "document": [document] * len(texts), "position": range(len(texts))}
    return pa.concat_tables([train, pa.table(rows, schema=SENTENCES)])


def adjacency_pairs(held_out: pa.Table, seed: int) -> pa.Table:
    """Return scored pairs without human judgements: neighbours in a document score 1, strangers score 0.

    ASSUME: consecutive sentences are closer in meaning than sentences of different documents. Such pairs select a
    checkpoint if no human judgements may be used, as in the demo.

    Args:
        held_out: Columns of ``columns.SENTENCES``.
        seed: Seed for drawing the strangers.

    Returns:
        As many neighbours as strangers, columns of ``columns.PAIRS``; empty if no document has two sentences.
    """
    sentences = np.array(held_out["sentence"].to_pylist(), dtype=object)
    documents, positions = held_out["document"].to_numpy(), held_out["position"].to_numpy()
    first = np.flatnonzero((np.diff(documents) == 0) & (np.diff(positions) == 1))
    strangers = _strangers(documents[first], documents, seed)
    first, strangers = first[strangers >= 0], strangers[strangers >= 0]
    columns = {
        "subset": np.repeat(["neighbours", "strangers"], len(first)),
        "sentence1": np.tile(sentences[first], 2),
        "sentence2": np.concatenate([sentences[first + 1], sentences[strangers]]),
        "score": np.repeat([1.0, 0.0], len(first)),
    }
    return pa.table(columns, schema=PAIRS)


def _strangers(documents: np.ndarray, all_documents: np.ndarray, seed: int) -> np.ndarray:
    """Return for each sentence a row of another document, or -1 if none was found."""
    draw = np.random.default_rng(seed)
    rows = np.full(len(documents), -1)
    for _attempt in range(100):  # draw again if a draw is from the same document
        same = (rows < 0) | (all_documents[rows] == documents)
        if not same.any():
            return rows
        rows[same] = draw.integers(len(all_documents), size=int(same.sum()))
    return np.where(all_documents[rows] == documents, -1, rows)


DEV_SEED = 0  # the development set is the same for every run


def split_corpus(job: Job) -> None:
    """Split one corpus into training text and pairs that select checkpoints (rule split_corpus)."""
    corpus = Corpus.parse(job.settings["corpus"], f"corpora.{job.wildcards['corpus']}")
    train, held_out = split(read_dataset_table(job.input("sentences")), corpus)
    for path in job.inputs("added"):
        train = with_pair_sentences(train, read_dataset_table(path), str(corpus.add_sentences_of))
    job.write({"train": train, "dev": adjacency_pairs(held_out, DEV_SEED)}, labels=corpus.labels)
