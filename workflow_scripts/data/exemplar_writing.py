"""A pool of exemplars written by a language model, which is called until its sentences cover the list."""

from collections.abc import Iterator
from string import Template
from typing import NamedTuple

import numpy as np

from workflow_scripts.apis.calls import Refused
from workflow_scripts.apis.llm import Completion, Llm
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

_IN_A_ROW = 5  # after so many calls without a completion in a row, the server is at fault, not the prompt


class Written(NamedTuple):
    """The sentences of a pool, and the completions that they were chosen from."""

    chosen: list[Candidate]
    completions: list[Completion]


def write_pool(
    llm: Llm, template: str, words: list[str], validator: Validator, pool: LlmPool, place: str
) -> Written:
    """Ask for sentences until ``pool`` is full and every word is used often enough.

    Args:
        llm: Language model, with the store of its answers.
        template: Prompt with ``$sentences``, ``$max_tokens`` and ``$words``.
        words: The list of words, as the prompt shows them.
        validator: Rules of the pool; counts what it refuses.
        pool: What the pool must contain, and after how many calls to give up.
        place: Block of the configuration, for messages.

    Raises:
        ApiError: if the model cannot be used, or ``max_calls`` calls did not suffice.
    """
    candidates: list[Candidate] = []
    completions: list[Completion] = []
    in_a_row = 0
    with Progress(pool.max_calls, "exemplars", "call") as progress:
        for call, prompt in enumerate(prompts(template, words, pool, place), start=1):
            progress.update()
            try:
                completion = llm.complete(prompt)
            except Refused as refusal:
                in_a_row += 1
                validator.refused["call without a completion"] += 1
                if in_a_row == _IN_A_ROW:
                    raise ApiError(
                        f"{place}: {refusal}, {in_a_row} calls in a row. Finished answers are kept; run again later."
                    ) from None
                continue
            in_a_row = 0
            completions.append(completion)
            candidates += _usable(completion, call, validator)
            if len(candidates) >= pool.sentences:
                cover = greedy_cover(candidates, validator.listed, pool)
                progress.update(0, f"{len(candidates)} sentences, {len(cover.lacking)} words to go")
                if lacks(cover, validator.listed, pool) is None:
                    return Written([candidates[place] for place in cover.chosen], completions)
    found = lacks(greedy_cover(candidates, validator.listed, pool), validator.listed, pool)
    raise ApiError(
        f"{place}: after {pool.max_calls} calls with {len(candidates)} usable sentences, {found}; "
        f"refused: {dict(validator.refused)}. Raise max_calls; answers are kept."
    )


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


def _usable(completion: Completion, call: int, validator: Validator) -> list[Candidate]:
    """Sentences of a completion; if it was truncated, filtered or is empty, this is counted and there are none."""
    if completion.finish_reason != "stop":
        validator.refused[f"completion ended by {completion.finish_reason}"] += 1
        return []
    if not completion.text.strip():
        validator.refused["empty completion"] += 1
        return []
    sentences = sentences_in(completion.text)
    return validator.accept(sentences, completion.model, [call] * len(sentences))
