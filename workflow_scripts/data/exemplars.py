"""Redundant exemplars of 3R (section 3.1): sentences made mostly of the most frequent words of a corpus.

A pool has a given number of sentences that use every word of the list a given number of times. Candidates come from a
language model or from the corpus itself; the same rules and the same choice apply to both.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from workflow_scripts.columns import EXEMPLARS
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.word_lists import cleaned, spoken
from workflow_scripts.errors import DataError
from workflow_scripts.settings.corpora import Pool


class Candidate(NamedTuple):
    """A sentence that meets the rules of a pool."""

    sentence: str
    tokens: int
    words: int
    listed: Counter[str]
    """Uses of each listed word."""
    source: str
    position: int
    """Number of its call, or its row in the corpus."""


def token_counter(encoder: Path) -> Callable[[list[str]], list[int]]:
    """Return a function that counts the tokens of sentences, including special ones, with an encoder's tokeniser.

    Raises:
        DataError: if the folder has no fast tokeniser.
    """
    file = encoder / "tokenizer.json"
    if not file.exists():
        raise DataError(f"{file}: no such file. Choose an encoder with a fast tokeniser.")
    tokenizer = Tokenizer.from_file(str(file))  # without transformers, which takes seconds to import
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda sentences: [len(encoding.ids) for encoding in tokenizer.encode_batch(sentences)]


def word_tuple(sentence: str) -> tuple[str, ...]:
    """Return the words of a sentence in lower case, without punctuation around them."""
    return tuple(word for word in map(spoken, sentence.split()) if word)


class Validator:
    """A check of sentences against the rules of a pool, which counts refused sentences by reason."""

    def __init__(
        self, pool: Pool, listed: Iterable[str], tokens_of: Callable[[list[str]], list[int]]
    ) -> None:
        """Make the check for a pool, its list of words, and a function that counts the tokens of sentences."""
        self.listed = cleaned(listed)
        self.refused: Counter[str] = Counter()
        self._pool = pool
        self._known = set(self.listed)
        self._tokens_of = tokens_of
        self._seen: set[tuple[str, ...]] = set()
        self.repeated_in: dict[tuple[str, ...], int] = {}
        """Position of the last repetition of each repeated sentence, by its words."""

    def accept(self, sentences: list[str], source: str, positions: Iterable[int]) -> list[Candidate]:
        """Return the sentences that meet the rules of the pool, in order."""
        accepted = []
        for sentence, position, tokens in zip(sentences, positions, self._tokens_of(sentences), strict=True):
            words = word_tuple(sentence)
            reason = self._fault(sentence, words)
            if words in self._seen and reason:
                self.repeated_in[words] = position
            elif not reason:
                self._seen.add(words)
                if tokens > self._pool.max_tokens:
                    reason = f"over {self._pool.max_tokens} tokens"
            if reason:
                self.refused[reason] += 1
                continue
            listed = Counter(word for word in words if word in self._known)
            accepted.append(Candidate(sentence, tokens, len(words), listed, source, position))
        return accepted

    def _fault(self, sentence: str, words: tuple[str, ...]) -> str | None:
        if reason := self.no_sentence(sentence):
            return reason
        if words in self._seen:
            return "repeated"
        if not words or sum(word in self._known for word in words) < self._pool.listed_share * len(words):
            return f"under {self._pool.listed_share:.0%} listed words"
        return None

    def no_sentence(self, sentence: str) -> str | None:
        """Return the reason why a line, such as a heading, is not a sentence; None if it is one."""
        return None if sentence.endswith((".", "!", "?")) else "no end of sentence"


class Cover(NamedTuple):
    """Indices of the chosen candidates, and the number of missing uses of each word."""

    chosen: list[int]
    lacking: dict[str, int]


def greedy_cover(candidates: Sequence[Candidate], listed: Sequence[str], pool: Pool) -> Cover:
    """Return ``pool.sentences`` candidates that use each listed word ``pool.min_uses_per_word`` times, if possible.

    Each step takes the first candidate with the maximum weighted number of uses that are still needed. The weight of a
    word is one over the square root of its uses in all candidates. With equal weights, rare words remain uncovered (4
    of a list of 200 in the Wikipedia extract, and none with these weights). When all words are covered, the candidates
    with the largest fraction of listed words fill the pool.
    """
    counts = [[candidate.listed.get(word, 0) for word in listed] for candidate in candidates]
    uses_CW = np.minimum(np.array(counts, dtype=np.int16).reshape(-1, len(listed)), pool.min_uses_per_word)
    weight_W = 1 / np.sqrt(np.maximum(uses_CW.sum(axis=0), 1))
    need_W = np.full(len(listed), pool.min_uses_per_word, dtype=np.int16)
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
    rest = [int(index) for index in np.argsort(-share_C, kind="stable") if free_C[index]]
    return Cover(chosen + rest[: pool.sentences - len(chosen)], lacking)


def pool_table(candidates: Iterable[Candidate]) -> pa.Table:
    """Return candidates as a table with the columns of ``columns.EXEMPLARS``."""
    rows = [(c.sentence, c.tokens, c.words, c.listed.total(), c.source, c.position) for c in candidates]
    return table_of(rows, EXEMPLARS)


def lacks(cover: Cover, listed: Sequence[str], pool: Pool) -> str | None:
    """Return a message about missing sentences or uses of words; None if the pool is complete."""
    if len(cover.chosen) >= pool.sentences and not cover.lacking:
        return None
    some = ", ".join(sorted(cover.lacking)[:10])
    covered = len(listed) - len(cover.lacking)
    chosen, times = f"{len(cover.chosen)} of {pool.sentences} sentences", pool.min_uses_per_word
    use = f"{chosen} use {covered} of {len(listed)} words {times} times"
    return f"{use}{f' (not {some})' if some else ''}"
