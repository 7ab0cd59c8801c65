"""A pool of exemplars written by a language model, which is called until its sentences cover the list."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from workflow_scripts.apis.answer_checks import broken_off, is_in, language_of, service_fault, text_fault
from workflow_scripts.apis.asking import IN_A_ROW, Watch, collect_answers
from workflow_scripts.apis.calls import redacted
from workflow_scripts.apis.ledger import Ledger, Row
from workflow_scripts.apis.llm import Llm, fill_prompt
from workflow_scripts.apis.wrappers import items_in, leftover
from workflow_scripts.data.exemplars import Candidate, Validator, greedy_cover, lacks, words_of
from workflow_scripts.errors import ApiError
from workflow_scripts.progress import Progress
from workflow_scripts.settings.exemplars import LlmPool

_CHATTER = re.compile(
    r":\s*$|^\W*(?:sure\b|certainly\b|of course\b|okay[,.!]|here (?:are|is)\b|below (?:are|is)\b|i hope\b|let me know\b"
    r"|note\b[^.]*:|these sentences\b|each sentence\b|feel free\b|please let\b)",
    re.IGNORECASE,
)
_CUT = re.compile(r"(?:[,;:(\-\u2013\u2014…]|\.\.\.)$")


class ModelValidator(Validator):
    """Checks what a model wrote: it may leave out full stops, break off, or change the language.

    Each call asks for other words, so what comes in answer to several of them was written for none.
    """

    def without_canned(self, candidates: list[Candidate]) -> list[Candidate]:
        """Those that no later call was given as well; the others are counted."""
        kept = [c for c in candidates if self.repeated_in.get(words_of(c.sentence), c.place) == c.place]
        self.refused += Counter({"in several answers": len(candidates) - len(kept)})
        return kept

    def no_sentence(self, sentence: str) -> str | None:
        """Why a line is no sentence; None if it is one."""
        if _CUT.search(sentence):
            return "cut end"
        if fault := text_fault(sentence, "") or service_fault(sentence) or leftover(sentence, ""):
            return fault
        language = language_of(" ".join(self.listed))
        return None if is_in(sentence, language) else f"not in {language}"


class Written(NamedTuple):
    """The sentences of a pool, and the calls whose answers they were chosen from."""

    chosen: list[Candidate]
    calls: list[Row]


def write_pool(
    llm: Llm,
    ledger: Ledger,
    template: str,
    words: list[str],
    validator: ModelValidator,
    pool: LlmPool,
    place: str,
    *,
    offline: bool,
) -> Written:
    """Ask for sentences until ``pool`` is full and every word is used often enough.

    As many calls are made at once as the missing sentences take at least. Answers count in the order of the prompts, so
    that the pool does not depend on who answers first.

    Args:
        llm: Language model.
        ledger: Its answers.
        template: Prompt with ``$sentences``, ``$max_tokens`` and ``$words``.
        words: The list of words, as the prompt shows them.
        validator: Rules of the pool; counts what it refuses.
        pool: What the pool must contain, and after how many calls to give up.
        place: Block of the configuration, for messages.
        offline: Use kept answers alone.

    Raises:
        ApiError: if the model cannot be used, or ``max_calls`` calls did not suffice.
    """
    candidates: list[Candidate] = []
    calls: list[Row] = []
    watch = Watch(llm.place, pool.max_calls)
    waiting = prompts(template, words, pool, place)
    found = None
    barren: list[Row] = []
    with Progress(pool.max_calls, "exemplars", "call") as progress:
        while batch := [llm.request(prompt) for prompt in islice(waiting, _least_calls(pool, candidates))]:
            rows = collect_answers(batch, ledger, llm, watch, offline=offline)
            for request in batch:
                calls.append(rows[request.key])
                new = _usable(rows[request.key], len(calls), validator, pool.sentences_per_call)
                barren = [] if new else [*barren, rows[request.key]]
                if len(barren) == IN_A_ROW:
                    raise _useless(place, barren[-1], validator)
                candidates += new
                candidates = validator.without_canned(candidates)
                cover = greedy_cover(candidates, validator.listed, pool)
                progress.update(1, f"{len(candidates)} sentences, {len(cover.lacking)} words to go")
                found = lacks(cover, validator.listed, pool)
                if found is None:
                    return Written([candidates[place] for place in cover.chosen], calls)
    raise ApiError(
        f"{place}: after {pool.max_calls} calls with {len(candidates)} usable sentences, {found}; "
        f"refused: {dict(validator.refused)}. Raise max_calls; answers are kept."
    )


def _useless(place: str, last: Row, validator: ModelValidator) -> ApiError:
    """The error about a model whose answers have no usable sentence."""
    found = f"{IN_A_ROW} answers in a row without a usable sentence; refused: {dict(validator.refused)}"
    advice = "Answers are kept; correct the prompt, or name another model."
    return ApiError(f"{place}: {found}; the last answer: {redacted(last.answer or 'nothing')!r}. {advice}")


def _least_calls(pool: LlmPool, candidates: list[Candidate]) -> int:
    """Calls that the missing sentences take at least; a few, until one has given a sentence."""
    least = max(1, math.ceil((pool.sentences - len(candidates)) / pool.sentences_per_call))
    return least if candidates else min(least, IN_A_ROW)


def sentences_in(completion: str, *, cut_off: bool = False) -> tuple[list[str], Counter[str]]:
    """The sentences of a completion, and how many lines are not sentences, by reason.

    Args:
        completion: What a model wrote.
        cut_off: The model was stopped, so that its last line has no end.
    """
    items, others = items_in(completion, cut_off=cut_off)
    kept = [item for item in items if item and not _CHATTER.search(item)]
    return kept, +Counter(
        {"cut off": int(cut_off and bool(completion.strip())), "chatter": len(items) - len(kept) + others}
    )


def prompts(template: str, words: list[str], pool: LlmPool, place: str) -> Iterator[str]:
    """The prompt of each call, with words of the list drawn with the pool's seed and the number of the call.

    Raises:
        ConfigError: if the prompt has an unknown placeholder, or none for the words.
    """
    for call in range(1, pool.max_calls + 1):
        draw = np.random.default_rng([pool.seed, call])
        drawn = draw.choice(len(words), size=min(pool.words_per_call, len(words)), replace=False)
        joined = ", ".join(words[number] for number in drawn)
        values = {"sentences": pool.sentences_per_call, "max_tokens": pool.max_tokens, "words": joined}
        yield fill_prompt(template, values, "words", f"{place}: prompt {pool.prompt}")


def _usable(row: Row, call: int, validator: ModelValidator, most: int) -> list[Candidate]:
    """The sentences of a completion; none if it is of no use, which is counted."""
    if row.status != "usable" or row.answer is None:
        reason = f": {row.reason}" if row.status == "rejected" else ""  # the others' is what a server said
        validator.refused[f"completion {row.status}{reason}"] += 1
        return []
    sentences, dropped = sentences_in(row.answer, cut_off=broken_off(row.noted["finish_reason"]))
    dropped["more than asked for"] = max(0, len(sentences) - most)
    validator.refused += dropped
    return validator.accept(sentences[:most], row.noted["model"], [call] * len(sentences[:most]))
