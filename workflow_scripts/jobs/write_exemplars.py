"""Have a language model write one pool of redundant exemplars (rule write_exemplars)."""

import pyarrow as pa

from workflow_scripts.apis.ledger import Ledger, is_offline, ledger_path
from workflow_scripts.apis.llm import Llm, usage_of
from workflow_scripts.columns.corpora import DROPPED, USAGE, WORD_COUNTS
from workflow_scripts.data.exemplar_writing import ModelValidator, write_pool
from workflow_scripts.data.exemplars import pool_table, token_counter
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.words import top_words
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.apis import LlmBlock
from workflow_scripts.settings.corpora import LlmPool


def main(job: Job) -> None:
    """Ask until the pool is full, write it together with what was refused and what it cost."""
    place = f"exemplars.{job.wildcards['pool']}"
    pool = LlmPool.parse(job.settings["pool"], place)
    block = LlmBlock.parse(job.operational["service"]["llm"] | job.settings["llm"], f"llms.{pool.llm}")
    counts = job.read("words", WORD_COUNTS)
    words = top_words(counts, pool.list_words, drop_capitalised=pool.drop_capitalised)
    validator = ModelValidator(pool, words, token_counter(job.inputs["encoder"].parent))
    template, offline = job.inputs["prompt"].read_text("utf-8"), is_offline()
    with Ledger(ledger_path(), read_only=offline and ledger_path().exists()) as ledger:
        llm = Llm(block, f"llms.{pool.llm}", ledger)
        written = write_pool(llm, ledger, template, words, validator, pool, place, offline=offline)
    tables = {
        "exemplars": pool_table(written.chosen),
        "dropped": table_of(sorted(validator.refused.items()), DROPPED),
        "usage": pa.Table.from_pylist(usage_of(written.calls), schema=USAGE),
    }
    job.write(tables, labels=[pool.label])
