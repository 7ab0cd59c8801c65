"""Exemplars picked from the corpus itself, instead of a language model's."""

from workflow_scripts.columns import DROPPED, SENTENCES, WORD_COUNTS
from workflow_scripts.data.exemplars import Validator, greedy_cover, lacks, pool_table, token_counter
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.word_lists import top_words
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.corpora import ExtractivePool

_BATCH = 2000  # sentences checked at once


def pick_exemplars(job: Job) -> None:
    """Pick one pool of redundant exemplars from the first sentences of a corpus that qualify (rule pick_exemplars)."""
    path = f"exemplars.{job.wildcards['pool']}"
    pool = ExtractivePool.parse(job.settings["pool"], path)
    counts = job.read("words", WORD_COUNTS)
    words = top_words(counts, pool.word_list_size)
    validator = Validator(pool, words, token_counter(job.input("encoder").parent))
    sentences = job.read("sentences", SENTENCES, ["sentence"])["sentence"]
    candidates = []
    for start in range(0, len(sentences), _BATCH):
        batch = sentences.slice(start, _BATCH).to_pylist()
        candidates += validator.accept(batch, pool.corpus, range(start, start + len(batch)))
        if len(candidates) >= pool.max_candidates:
            break
    cover = greedy_cover(candidates, validator.listed, pool)
    if problem := lacks(cover, validator.listed, pool):
        scarce = len(candidates) < pool.max_candidates  # no further ones exist in the corpus
        advice = (
            f"{'Choose a larger corpus' if scarce else 'Increase max_candidates'}, or reduce word_list_size"
        )
        raise DataError(f"{path}: of {len(candidates)} usable sentences, {problem}. {advice}.")
    tables = {
        "exemplars": pool_table([candidates[number] for number in cover.chosen]),
        "dropped": table_of(sorted(validator.refused.items()), DROPPED),
    }
    job.write(
        tables, labels=[f"sentences of the corpus {pool.corpus} stand in for exemplars of a language model"]
    )
