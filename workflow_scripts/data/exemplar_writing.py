"""Exemplars written by a language model, which is queried until its sentences cover the list of words."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from string import Template

import numpy as np
import pyarrow as pa

from workflow_scripts.apis.answer_checks import is_in, items_in, likely_language, sentence_fault
from workflow_scripts.apis.asking import IN_A_ROW, CircuitBreaker, collect_answers, redacted
from workflow_scripts.apis.ledger import Ledger, Row
from workflow_scripts.apis.llm import Llm, usage_by_model
from workflow_scripts.columns import DROPPED, USAGE, WORD_COUNTS
from workflow_scripts.data.exemplars import (
    Candidate,
    Validator,
    greedy_cover,
    lacks,
    pool_table,
    token_counter,
    word_tuple,
)
from workflow_scripts.data.readers import read_text
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.word_lists import top_words
from workflow_scripts.errors import ApiError, ConfigError
from workflow_scripts.progress import progress
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Input
from workflow_scripts.settings.apis import LlmBlock
from workflow_scripts.settings.corpora import LlmPool


class ModelValidator(Validator):
    """Checks that each answer of a model is one plain sentence in the language of the list of words.

    Each call requests other words, so a sentence that answers several calls was written for none of them.
    """

    def without_canned(self, candidates: list[Candidate]) -> list[Candidate]:
        """Return the candidates that answer no later call; others are counted."""
        kept = [
            c for c in candidates if self.repeated_in.get(word_tuple(c.sentence), c.position) == c.position
        ]
        self.refused += Counter({"in several answers": len(candidates) - len(kept)})
        return kept

    def no_sentence(self, sentence: str) -> str | None:
        """Return the reason why a text is not a sentence; None if it is one."""
        if fault := sentence_fault(sentence):
            return fault
        return None if is_in(sentence, self.language) else f"not in {self.language}"

    @cached_property
    def language(self) -> str:
        """Return the language of the list of words."""
        return likely_language(" ".join(self.listed))


def write_pool(
    llm: Llm,
    ledger: Ledger,
    template: str,
    words: list[str],
    validator: ModelValidator,
    pool: LlmPool,
    path: str,
) -> tuple[list[Candidate], list[Row]]:
    """Request sentences until ``pool`` is full and every word is used often enough.

    The number of concurrent calls is the minimum that can give the missing sentences. Answers are used in the order of
    the prompts, so the pool does not depend on their order of arrival.

    Args:
        llm: Language model.
        ledger: Stored answers of the model.
        template: Prompt with ``$sentences``, ``$max_tokens`` and ``$words``.
        words: The list of words, as shown in the prompt.
        validator: Rules of the pool; counts refused sentences.
        pool: Required contents of the pool, and the maximum number of calls.
        path: Dotted path of the block of settings, for messages.

    Returns:
        The sentences of the pool, and the calls from whose answers they were chosen.

    Raises:
        ApiError: if the model cannot be used, or ``max_calls`` calls do not suffice.
    """
    candidates: list[Candidate] = []
    calls: list[Row] = []
    watch = CircuitBreaker(llm.path, pool.max_calls)
    waiting = prompts(template, words, pool, path)
    if llm.asks_json:
        _choose_form(llm, ledger, next(prompts(template, words, pool, path)))
    problem = None
    with progress(pool.max_calls, "exemplars", "call") as bar:
        while batch := [llm.request(prompt) for prompt in islice(waiting, _least_calls(pool, candidates))]:
            rows = collect_answers(batch, ledger, llm, watch)
            for request in batch:
                calls.append(rows[request.key])
                candidates += _usable(rows[request.key], len(calls), validator, pool.sentences_per_call)
                candidates = validator.without_canned(candidates)
                if len(calls) == IN_A_ROW and not candidates:
                    raise _useless(path, calls[-1], validator)
                cover = greedy_cover(candidates, validator.listed, pool)
                bar.set_postfix_str(
                    f"{len(candidates)} sentences, {len(cover.lacking)} words to go", refresh=False
                )
                bar.update()
                problem = lacks(cover, validator.listed, pool)
                if problem is None:
                    return [candidates[index] for index in cover.chosen], calls
    raise ApiError(
        f"{path}: after {pool.max_calls} calls with {len(candidates)} usable sentences, {problem}; "
        f"refused: {dict(validator.refused)}. Increase max_calls; answers are stored."
    )


def _choose_form(llm: Llm, ledger: Ledger, prompt: str) -> None:
    """Send the first prompt, and switch to text answers if the server refuses JSON by a schema, but not text.

    If it refuses both, JSON is not the reason, but perhaps a parameter or address that does not identify the answer.
    Both requests then count as failed, so the next job sends them again.
    """

    def sent() -> Row:
        request = llm.request(prompt)
        return collect_answers([request], ledger, llm, CircuitBreaker(llm.path, 1))[request.key]

    first = sent()
    if first.status != "refused":
        return
    llm.asks_json = False
    second = sent()
    if second.status == "refused":
        llm.asks_json = True
        if not ledger.read_only:
            ledger.save(row._replace(status="failed") for row in (first, second))


def _useless(path: str, last: Row, validator: ModelValidator) -> ApiError:
    """Return the error for a model whose first answers contain no usable sentence."""
    problem = f"{IN_A_ROW} answers without a usable sentence; refused: {dict(validator.refused)}"
    advice = "Correct the prompt, or choose another model; answers are stored."
    return ApiError(f"{path}: {problem}; the last answer: {redacted(last.answer or 'nothing')!r}. {advice}")


def _least_calls(pool: LlmPool, candidates: list[Candidate]) -> int:
    """Return the minimum number of calls for the missing sentences, or a few until one has given a sentence."""
    least = max(1, math.ceil((pool.sentences - len(candidates)) / pool.sentences_per_call))
    return least if candidates else min(least, IN_A_ROW)


def prompts(template: str, words: list[str], pool: LlmPool, path: str) -> Iterator[str]:
    """Yield the prompt of each call, with words drawn with the pool's seed and the number of the call.

    Raises:
        ConfigError: if the prompt has an unknown placeholder, or lacks ``$words``.
    """
    for call in range(1, pool.max_calls + 1):
        draw = np.random.default_rng([pool.seed, call])
        drawn = draw.choice(len(words), size=min(pool.words_per_call, len(words)), replace=False)
        joined = ", ".join(words[number] for number in drawn)
        values = {"sentences": pool.sentences_per_call, "max_tokens": pool.max_tokens, "words": joined}
        try:
            prompt = Template(template.strip()).substitute(values)
        except (KeyError, ValueError) as error:
            known = ", ".join(f"${name}" for name in values)
            raise ConfigError(
                f"{path}: prompt {pool.prompt}: {error}. Choose placeholders from: {known}."
            ) from None
        if joined not in prompt:
            raise ConfigError(f"{path}: prompt {pool.prompt}: no placeholder $words. Add it.")
        yield prompt


def _usable(row: Row, call: int, validator: ModelValidator, count: int) -> list[Candidate]:
    """Return the valid sentences of a completion; an unusable completion is counted."""
    sentences = items_in(row.answer or "", count) if row.status == "usable" else None
    if sentences is None:
        # Other reasons are messages of a server.
        reason = f": {row.reason}" if row.status == "rejected" else ""
        validator.refused[f"completion {row.status}{reason}"] += 1
        return []
    return validator.accept(sentences, row.metadata["model"], [call] * count)


def _source(llm: Llm, block: LlmBlock, calls: list[Row]) -> Input:
    """Return the record's entry for a model: its name, the requested format of answers, and their hash."""
    form = "JSON" if llm.asks_json else "text"
    refused = ", since the server refuses JSON by a schema"
    told = refused if form == "text" and block.response_format == "json_schema" else ""
    digest = hashlib.sha256(json.dumps([row.answer for row in calls]).encode()).hexdigest()
    return Input(path=f"llm:{llm.model} asked for {form}{told}", sha256=digest)


def write_exemplars(job: Job) -> None:
    """Fill one pool of redundant exemplars with sentences of a language model (rule write_exemplars)."""
    path = f"exemplars.{job.wildcards['pool']}"
    pool = LlmPool.parse(job.settings["pool"], path)
    block = LlmBlock.parse(job.operational["service"]["llm"] | job.settings["llm"], f"llms.{pool.llm}")
    counts = job.read("words", WORD_COUNTS)
    words = top_words(counts, pool.word_list_size)
    validator = ModelValidator(pool, words, token_counter(job.input("encoder").parent))
    template = read_text(job.input("prompt"))
    with Ledger(job.workplace.answer_store, read_only=job.workplace.offline) as ledger:
        llm = Llm(block, f"llms.{pool.llm}", ledger, pool.sentences_per_call)
        chosen, calls = write_pool(llm, ledger, template, words, validator, pool, path)
    tables = {
        "exemplars": pool_table(chosen),
        "dropped": table_of(sorted(validator.refused.items()), DROPPED),
        "usage": pa.Table.from_pandas(usage_by_model(calls), USAGE, preserve_index=False),
    }
    job.write(tables, external={"model": _source(llm, block, calls)}, labels=[pool.label])
