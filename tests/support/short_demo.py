"""The demo cut short: its files of configuration, and what Snakemake plans of it."""

from pathlib import Path

from tests.support.snakemake_plans import DEMO, planned_jobs

CONFIGS = (DEMO, "config/smoke.yaml")
SMOKE = """
name: demo
training: {epochs: null, max_steps: 2, batch_size: 8, cpu_threads: 1}
development: {dataset: null, every: 2, max_tokens: 6}
corpora: {wiki_extract: {dev_sentences: 250, max_sentences: 200}}
continue_mlm: {training: {epochs: null, max_steps: 2, batch_size: 8, warmup_steps: 0, cpu_threads: 1}}
encoders: {minilm_mlm: {adapt: {training: {warmup_steps: 0}}}}
methods:
  simcse: {readings: {more_dropout: {training: {max_steps: 2}}}}
  simcse_s2sent: {training: {max_steps: 2, batch_size: 8}}
  simcse_layerattpooler: {training: {max_steps: 2}}
  simcse_3r: {training: {max_steps: 2}}
  jtcse: {training: {max_steps: 2, batch_size: 8}}
exemplars: {wiki_extract_extractive: {word_list_size: 8, sentences: 12, min_uses_per_word: 1, listed_share: 0.2}}
suites: {sts: {lee: {max_tokens: 16}}}
extraction: {wikitext: {max_sentences: 20}, averages: {max_sentences: 20}, representations: {random: {width: 64, draws: 2}}}
"""


def plan(folder: Path, *files: str) -> dict[str, int]:
    """Jobs that remain in the shortened demo, with more files laid over it."""
    return planned_jobs(folder, *CONFIGS[1:], *files, configfile=CONFIGS[0])
