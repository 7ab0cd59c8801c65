"""An old key of the configuration is refused by one line that names the new one."""

import pytest

from tests.support.snakemake_plans import DEMO, merged_config
from tests.support.written_mistakes import laid_over, printed_of, sound_study
from workflow_scripts.settings.renamed import RENAMED

PLACES = {
    ("answers", "answer_store"): "",
    ("rate_at_end", "min_lr_ratio"): "training",
    ("also", "add_sentences_of"): "corpora.wiki1m_sick_r",
    ("via", "pivot_language"): "corpora.wiki1m_fr.round_trip",
    ("list_words", "word_list_size"): "exemplars.wiki_extract_extractive",
    ("uses", "min_uses_per_word"): "exemplars.wiki_extract_extractive",
    ("answers_as", "model_ids"): "llms.local",
    ("where", "filter"): "datasets.sts17.sources.1",
    ("otherwise", "fallback_encoding"): "datasets.trec.sources.0.options",
    ("between", "sentence_separator"): "datasets.str.sources.0.options",
    ("remove", "remove_characters"): "datasets.trec.sources.0.options",
    ("cut", "truncate"): "methods.promptbert",
    ("chosen_by", "select_checkpoint_with"): "methods.promptbert",
    ("where", "position"): "methods.simcse_3r",
    ("travel", "lr_budget"): "methods.simcse_3r.threshold",
    ("keeps_prompt", "keep_prompt"): "methods.pooled_cls",
    ("first_state", "first_layer"): "methods.simcse_layerattpooler.readout",
    ("form", "fusion"): "methods.simcse_s2sent.readout",
    ("form", "training_text"): "corpora.wiki1m_fr.round_trip",
    ("shows", "can_show"): "report.page",
    ("text", "document_text"): "extraction.weightings.idf_task",
    ("text", "corpus"): "methods.frozen_whitened.whitening",
    ("text", "text_version"): "suites.sts.lee",
}
"""Old and new key to the block that has it."""


def block_at(config, path):
    for key in filter(None, path.split(".")):
        config = config[int(key) if isinstance(config, list) else key]
    return config


@pytest.mark.parametrize(("old", "new"), PLACES)
def test_an_old_key_is_refused_by_its_new_name(old, new):
    path, config = PLACES[old, new], merged_config(DEMO)
    block = block_at(config, path)
    block[old] = block.pop(new, None)
    line = f"{path}.{old}".lstrip(".")
    printed = printed_of(config, sound_study()[1])
    found = [one for one in printed if one.partition(" renamed")[0].endswith(f"{old}:")]
    assert f"{line}: renamed to {new}. Write `{new}`." in found
    assert all(one.endswith(f"renamed to {new}. Write `{new}`.") for one in found)


@pytest.mark.parametrize(("old", "new"), [("of_seeds", "per_seed"), ("at", "values")])
def test_an_old_key_of_a_run_is_refused_by_its_new_name(old, new):
    config, grids = sound_study()
    grid = laid_over(grids["demo"], {"runs": {0: {old: {}}}})
    assert [one for one in printed_of(config, grids | {"demo": grid}) if old in one] == [
        f"config/experiments/demo.yaml: runs.0.{old}: renamed to {new}. Write `{new}`."
    ]


def test_every_renamed_key_is_tried():
    tried = {*PLACES, ("of_seeds", "per_seed"), ("at", "values")}
    assert tried == {(old, new) for old, names in RENAMED.items() for new in names}
