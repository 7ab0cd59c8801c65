"""A pool of exemplars written by a language model, which is called until its sentences cover the list."""

import json
import math
from collections.abc import Iterator
from itertools import islice
from string import Template
from typing import NamedTuple

import numpy as np

from workflow_scripts.apis.asking import Watch, adopt, settled
from workflow_scripts.apis.ledger import Ledger, Row
from workflow_scripts.apis.llm import Llm
from workflow_scripts.data.exemplars import (
    Candidate,
    LlmPool,
    Validator,
    greedy_cover,
    lacks,
    sentences_in,
)
from workflow_scripts.errors import ApiError, ConfigError
from workflow_scripts.progress import Progress


class Written(NamedTuple):
    """The sentences of a pool, and the calls whose answers they were chosen from."""

    chosen: list[Candidate]
    calls: list[Row]


def write_pool(
    llm: Llm,
    ledger: Ledger,
    template: str,
    words: list[str],
    validator: Validator,
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
    with Progress(pool.max_calls, "exemplars", "call") as progress:
        while batch := [llm.request(prompt) for prompt in islice(waiting, _least_calls(pool, candidates))]:
            adopt(batch, llm.earlier, llm.row_of_earlier, ledger)
            rows = settled(batch, ledger, llm, watch, offline=offline)
            for request in batch:
                progress.update()
                calls.append(rows[request.key])
                candidates += _usable(rows[request.key], len(calls), validator)
                if len(candidates) >= pool.sentences:
                    cover = greedy_cover(candidates, validator.listed, pool)
                    progress.update(0, f"{len(candidates)} sentences, {len(cover.lacking)} words to go")
                    if lacks(cover, validator.listed, pool) is None:
                        return Written([candidates[place] for place in cover.chosen], calls)
    found = lacks(greedy_cover(candidates, validator.listed, pool), validator.listed, pool)
    raise ApiError(
        f"{place}: after {pool.max_calls} calls with {len(candidates)} usable sentences, {found}; "
        f"refused: {dict(validator.refused)}. Raise max_calls; answers are kept."
    )


def _least_calls(pool: LlmPool, candidates: list[Candidate]) -> int:
    return max(1, math.ceil((pool.sentences - len(candidates)) / pool.sentences_per_call))


def prompts(template: str, words: list[str], pool: LlmPool, place: str) -> Iterator[str]:
    """The prompt of each call, with words of the list drawn with the pool's seed and the number of the call.

    Raises:
        ConfigError: if the prompt has an unknown placeholder, or none for the words.
    """
    for call in range(1, pool.max_calls + 1):
        drawn = np.random.default_rng([pool.seed, call]).choice(
            len(words), size=min(pool.words_per_call, len(words)), replace=False
        )
        joined = ", ".join(words[number] for number in drawn)
        values = {"sentences": pool.sentences_per_call, "max_tokens": pool.max_tokens, "words": joined}
        try:
            prompt = Template(template.strip()).substitute(values)
        except (KeyError, ValueError) as error:
            known = ", ".join(f"${name}" for name in values)
            raise ConfigError(f"{place}: prompt {pool.prompt}: {error}; placeholders are {known}.") from None
        if joined not in prompt:
            raise ConfigError(f"{place}: prompt {pool.prompt} has no placeholder $words. Add it.")
        yield prompt


def _usable(row: Row, call: int, validator: Validator) -> list[Candidate]:
    """Sentences of a completion; one that is of no use is counted, and has none."""
    if row.status != "usable" or row.answer is None:
        reason = f": {row.reason}" if row.status == "rejected" else ""  # the others' is what a server said
        validator.refused[f"completion {row.status}{reason}"] += 1
        return []
    noted = json.loads(row.attributes)
    sentences, dropped = sentences_in(row.answer, cut_off=noted["finish_reason"] == "length")
    validator.refused.update(dropped)
    return validator.accept(sentences, noted["model"], [call] * len(sentences))
