"""A pool of exemplars from a language model: call after call, until its sentences cover the list."""

from collections.abc import Iterator
from string import Template
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

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

_IN_A_ROW = 5  # calls without a completion: it is the server, not the prompt


class Written(NamedTuple):
    """The sentences of a pool, and every completion they were chosen from."""

    chosen: list[Candidate]
    completions: list[Completion]


def write_pool(
    llm: Llm, template: str, words: list[str], validator: Validator, pool: LlmPool, place: str
) -> Written:
    """Ask for sentences until ``pool`` is full and every word is used.

    Args:
        llm: Language model, with the store of its answers.
        template: Prompt with ``$sentences``, ``$max_tokens`` and ``$words``.
        words: The list, as the prompt shows it.
        validator: Rules of the pool; counts what it refuses.
        pool: What to reach, and after how many calls to give up.
        place: Block of the configuration that messages name.

    Raises:
        ApiError: if the model cannot be asked, or the calls were not enough.
    """
    candidates: list[Candidate] = []
    completions: list[Completion] = []
    in_a_row = 0
    with tqdm(total=pool.max_calls, desc="exemplars", unit="call") as bar:
        for call, prompt in enumerate(prompts(template, words, pool, place), start=1):
            bar.update()
            try:
                completion = llm.complete(prompt)
            except Refused as refusal:
                in_a_row += 1
                validator.refused["call without a completion"] += 1
                if in_a_row == _IN_A_ROW:
                    raise ApiError(
                        f"{place}: {refusal}, {in_a_row} calls in a row. Finished ones are kept."
                    ) from None
                continue
            in_a_row = 0
            completions.append(completion)
            candidates += _usable(completion, call, validator)
            if len(candidates) >= pool.sentences:
                cover = greedy_cover(candidates, validator.listed, pool)
                bar.set_postfix_str(f"{len(candidates)} sentences, {len(cover.lacking)} words to go")
                if lacks(cover, validator.listed, pool) is None:
                    return Written([candidates[place] for place in cover.chosen], completions)
    found = lacks(greedy_cover(candidates, validator.listed, pool), validator.listed, pool)
    raise ApiError(
        f"{place}: after {pool.max_calls} calls with {len(candidates)} usable sentences, {found}; "
        f"refused: {dict(validator.refused)}. Raise max_calls; answers are kept."
    )


def prompts(template: str, words: list[str], pool: LlmPool, place: str) -> Iterator[str]:
    """The prompt of each call: other words of the list, drawn from the pool's seed and the call's number.

    Raises:
        ConfigError: if the prompt has a placeholder that is not known, or lacks that of the words.
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
    """Sentences of a completion; one that was cut, filtered or left empty is counted and gives none."""
    if completion.finish_reason != "stop":
        validator.refused[f"completion ended by {completion.finish_reason}"] += 1
        return []
    if not completion.text.strip():
        validator.refused["empty completion"] += 1
        return []
    sentences = sentences_in(completion.text)
    return validator.accept(sentences, completion.model, [call] * len(sentences))
