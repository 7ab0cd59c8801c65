"""Redundant exemplars of 3R (section 3.1): sentences made mostly of the most frequent words of a corpus.

A pool has a given number of sentences in which every word of the list is used a given number of times. Candidates
come from a language model or, where there is none, from the corpus itself; the same rules apply to both, and the pool
is chosen from them in the same way.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from workflow_scripts.columns.corpora import EXEMPLARS
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.words import cleaned, spoken
from workflow_scripts.errors import DataError
from workflow_scripts.settings.corpora import Pool


class Candidate(NamedTuple):
    """A sentence that qualifies for a pool."""

    sentence: str
    tokens: int
    words: int
    listed: Counter[str]
    """Uses of each listed word."""
    source: str
    place: int


def token_counter(encoder: Path) -> Callable[[list[str]], list[int]]:
    """A function that counts the tokens of sentences with an encoder's tokeniser, including special tokens.

    Raises:
        DataError: if the folder ``encoder`` has no fast tokeniser.
    """
    file = encoder / "tokenizer.json"
    if not file.exists():
        raise DataError(f"{file}: no such file. Choose an encoder with a fast tokeniser.")
    tokenizer = Tokenizer.from_file(str(file))  # without transformers, which takes seconds to import
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda sentences: [len(encoding.ids) for encoding in tokenizer.encode_batch(sentences)]


def words_of(sentence: str) -> tuple[str, ...]:
    """The words of a sentence, whatever their case and the signs around them."""
    return tuple(word for word in map(spoken, sentence.split()) if word)


class Validator:
    """Checks sentences against the rules of a pool, and counts refused sentences by reason."""

    def __init__(
        self, pool: Pool, listed: Iterable[str], tokens_of: Callable[[list[str]], list[int]]
    ) -> None:
        """``listed`` are the words of the pool's list, ``tokens_of`` counts the tokens of sentences."""
        self.listed = cleaned(listed)
        self.refused: Counter[str] = Counter()
        self._pool = pool
        self._known = set(self.listed)
        self._tokens_of = tokens_of
        self._seen: set[tuple[str, ...]] = set()
        self.repeated_in: dict[tuple[str, ...], int] = {}
        """By its words, the place at which a sentence was last repeated."""

    def accept(self, sentences: list[str], source: str, places: Iterable[int]) -> list[Candidate]:
        """Those of ``sentences`` that qualify for the pool, in order."""
        found = []
        for sentence, place, tokens in zip(sentences, places, self._tokens_of(sentences), strict=True):
            words = words_of(sentence)
            reason = self._fault(sentence, words)
            if words in self._seen and reason:
                self.repeated_in[words] = place
            elif not reason:
                self._seen.add(words)
                if tokens > self._pool.max_tokens:
                    reason = f"over {self._pool.max_tokens} tokens"
            if reason:
                self.refused[reason] += 1
                continue
            listed = Counter(word for word in words if word in self._known)
            found.append(Candidate(sentence, tokens, len(words), listed, source, place))
        return found

    def _fault(self, sentence: str, words: tuple[str, ...]) -> str | None:
        if reason := self.no_sentence(sentence):
            return reason
        if words in self._seen:
            return "repeated"
        if not words or sum(word in self._known for word in words) < self._pool.listed_share * len(words):
            return f"under {self._pool.listed_share:.0%} listed words"
        return None

    def no_sentence(self, sentence: str) -> str | None:
        """Why a line is no sentence; None if it is one. Lines of a corpus may be headings."""
        return None if sentence.endswith((".", "!", "?")) else "no end of sentence"


class Cover(NamedTuple):
    """A choice of candidates, by their indices, and how many uses of each word are still missing."""

    chosen: list[int]
    lacking: dict[str, int]


def greedy_cover(candidates: Sequence[Candidate], listed: Sequence[str], pool: Pool) -> Cover:
    """Choose ``pool.sentences`` candidates that use each listed word ``pool.uses`` times.

    Each step takes the candidate with the most uses that are still needed; of equal candidates, the first. A word's
    weight is one over the square root of its uses in all candidates: with equal weights, rare words are left over (4
    of a list of 200 in the Wikipedia extract, and none with these weights). When all words are covered, the pool is
    filled with the candidates that have the largest fraction of listed words.
    """
    counts = [[candidate.listed.get(word, 0) for word in listed] for candidate in candidates]
    uses_CW = np.minimum(np.array(counts, dtype=np.int16).reshape(-1, len(listed)), pool.uses)
    weight_W = 1 / np.sqrt(np.maximum(uses_CW.sum(axis=0), 1))
    need_W = np.full(len(listed), pool.uses, dtype=np.int16)
    free_C = np.ones(len(candidates), dtype=bool)
    chosen: list[int] = []
    while len(chosen) < min(pool.sentences, len(candidates)):
        gain_C = np.where(free_C, np.minimum(uses_CW, need_W) @ weight_W, -1)
        best = int(gain_C.argmax())
        if gain_C[best] == 0:
            break
        chosen.append(best)
        free_C[best] = False
        need_W = np.maximum(need_W - uses_CW[best], 0)
    lacking = {word: int(need) for word, need in zip(listed, need_W, strict=True) if need}
    share_C = np.array([candidate.listed.total() / candidate.words for candidate in candidates])
    rest = [int(place) for place in np.argsort(-share_C, kind="stable") if free_C[place]]
    return Cover(chosen + rest[: pool.sentences - len(chosen)], lacking)


def pool_table(candidates: Iterable[Candidate]) -> pa.Table:
    """Candidates as a table with the columns of ``columns.corpora.EXEMPLARS``."""
    rows = [(c.sentence, c.tokens, c.words, c.listed.total(), c.source, c.place) for c in candidates]
    return table_of(rows, EXEMPLARS)


def lacks(cover: Cover, listed: Sequence[str], pool: Pool) -> str | None:
    """What a pool lacks, as a message; None if it is complete."""
    if len(cover.chosen) >= pool.sentences and not cover.lacking:
        return None
    some = ", ".join(sorted(cover.lacking)[:10])
    covered = len(listed) - len(cover.lacking)
    found = f"{len(cover.chosen)} of {pool.sentences} sentences use {covered} of {len(listed)} words {pool.uses} times"
    return f"{found}{f' (not {some})' if some else ''}"
