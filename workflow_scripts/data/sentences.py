"""Split running text into sentences, and select sentences for training."""

import re
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from workflow_scripts.columns import SENTENCES
from workflow_scripts.data.tables import table_of

# A full stop after one of these, or after a single capital letter, does not end a sentence.
_ABBREVIATIONS = {
    "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Gen", "Col", "Sgt", "Lt", "Capt", "Rev", "Hon", "Sen", "Rep",
    "Gov", "Jr", "Sr", "Inc", "Ltd", "Co", "Corp", "vs", "etc", "al", "cf", "ca", "c", "fl", "approx",
    "No", "Nos", "Vol", "vol", "pp", "p", "ed", "eds", "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug",
    "Sep", "Sept", "Oct", "Nov", "Dec", "Fig", "fig", "Mt", "Ft", "e.g", "i.e", "U.S", "U.K",
}  # fmt: skip
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
_LAST_WORD = re.compile(r"([\w.]+)\.$")
_INITIALS = re.compile(r"[A-Z]|([A-Za-z]\.)+[A-Za-z]")


def split_sentences(paragraph: str) -> list[str]:
    """Split one paragraph into sentences; white space is normalised."""
    sentences: list[str] = []
    start = 0
    text = " ".join(paragraph.split())
    for end in _END.finditer(text):
        piece = text[start : end.start()]
        if not _is_abbreviated(piece):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_abbreviated(piece: str) -> bool:
    last = _LAST_WORD.search(piece)
    return last is not None and (last[1] in _ABBREVIATIONS or _INITIALS.fullmatch(last[1]) is not None)


def keep_sentences(
    documents: Iterable[Iterable[str]], min_words: int, max_words: int
) -> tuple[pa.Table, Counter[str]]:
    """Keep each distinct sentence of ``min_words`` to ``max_words`` words once, in order.

    Args:
        documents: The sentences of each document.
        min_words: Smallest number of words, separated by white space.
        max_words: Largest number; ASSUME: longer ones are lists that lost their markup, not sentences.

    Returns:
        Columns of ``columns.SENTENCES``, and the number of sentences that each rule dropped.
    """
    dropped: Counter[str] = Counter()
    kept: dict[str, tuple[int, int]] = {}
    for document, sentences in enumerate(documents):
        for position, sentence in enumerate(sentences):
            words = len(sentence.split())
            if words < min_words:
                dropped[f"under {min_words} words"] += 1
            elif words > max_words:
                dropped[f"over {max_words} words"] += 1
            elif sentence in kept:
                dropped["repeated"] += 1
            else:
                kept[sentence] = (document, position)
    return table_of([(sentence, *place) for sentence, place in kept.items()], SENTENCES), dropped
