"""Sentences in SentEval's form: tokenised by Moses, lower-cased, joined by blanks.

Conneau and Kiela 2018, https://aclanthology.org/L18-1269. SentEval's STS files were made from the released ones in this
way; SICK's are tokenised and keep their case. SimCSE and its successors report numbers on these files. With an uncased
tokeniser, which splits off punctuation itself, one sentence in a thousand gets other ids; with a cased one, such as
RoBERTa's, most do. For bags of tokens, on STS12 to STS15, the difference is up to .02 points of Spearman with BERT's
WordPiece, and 2.1, 5.4, 2.5 and 3.4 points more with a cased byte-level BPE of 30,000 (trained on Wikipedia).

This module implements the rules that English needs. Of the 22,716 sentences of STS12 to STS15, all but 4 are the same
as in SentEval's files.
"""

import re

_OTHER = re.compile(r"([^\w\s.'`,\-]|_)")
_DOTS = re.compile(r"\.{2,}")
_COMMA = re.compile(r"(?<!\d),|,(?!\d)")
_APOSTROPHE = re.compile(r"(?<=.)'(?=.)")  # not at the ends of a sentence
_TITLES = frozenset(
    "adm brig bros capt cmdr col dr gen gov hon lt maj messrs mr mrs ms prof rep reps rev sen sens sgt sr st v vs"  # noqa: SIM905
    .split()
)  # fmt: skip


def as_fed(sentence: str, *, lower: bool) -> str:
    """Return a released sentence in SentEval's form."""
    text = _OTHER.sub(r" \1 ", " ".join(sentence.split()))
    text = _DOTS.sub(lambda dots: f" {dots.group()} ", text)
    text = _APOSTROPHE.sub(" ' ", _COMMA.sub(" , ", text))
    words = text.split()
    fed = " ".join(
        _without_stop(word, following) for word, following in zip(words, [*words[1:], ""], strict=True)
    )
    return fed.lower() if lower else fed


def _without_stop(word: str, following: str) -> str:
    """Return a word with its full stop split off, unless part of the word (U.S., Mr., W.) or the sentence goes on."""
    stem = word.removesuffix(".")
    if stem == word or not stem.strip("."):
        return word
    goes_on = following[:1].islower()
    dotted = "." in stem and any(letter.isalpha() for letter in stem)
    short = (len(stem) == 1 and stem.isalpha()) or stem.lower() in _TITLES
    kept = bool(following) and (goes_on or dotted or (short and following[0].isalnum()))
    return word if kept else f"{stem} ."
