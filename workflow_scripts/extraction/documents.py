"""Tables of document frequencies: in how many of Wikitext's sentences each token occurs."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workflow_scripts.columns import SENTENCES, TOKEN_DOCUMENTS, WORD_VECTORS
from workflow_scripts.extraction.vocabulary import Counts, count_documents, read_vocabulary, split_into_words
from workflow_scripts.models.encoder import load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.extraction import Wikitext


def counts_table(counts: Counts, tokens: Sequence[str]) -> pa.Table:
    """Document frequencies as a table with the columns of ``columns.TOKEN_DOCUMENTS``."""
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
    """Count in how many of Wikitext's sentences each token or known word occurs (rule count_tokens)."""
    settings = Wikitext.parse(job.settings["wikitext"], "extraction.wikitext")
    table = job.read("sentences", SENTENCES).slice(0, settings.max_sentences)
    sentences = list(dict.fromkeys(table["sentence"].to_pylist()))
    if words := job.many("words"):
        known = read_table(words[0], WORD_VECTORS, ["word"])["word"].to_pylist()
        tokens = ["", *known]
        text = split_into_words(known, sentences, settings.max_tokens)
    else:
        tokenizer = load_tokenizer(job.many("encoder")[0].parent)
        text = tokenise(tokenizer, sentences, settings.max_tokens)
        tokens = list(read_vocabulary(tokenizer, [], []).tokens)
    documents = counts_table(count_documents(text, len(tokens)), tokens)
    job.write({"documents": documents}, labels=[settings.label])
