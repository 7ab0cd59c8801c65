import pytest

from tests.support.snakemake_plans import settings_with
from workflow_scripts.extraction.study import plan
from workflow_scripts.graph.extraction import (
    job_settings,
    score_files,
    tasks_of,
    wikitext_settings,
)

SETTINGS = settings_with("config/config.yaml")
EXTRACTION = SETTINGS.extraction


def planned(kind, representation, depth):
    return plan(job_settings(EXTRACTION, kind, representation), depth)


@pytest.mark.parametrize("representation", EXTRACTION.representations)
def test_every_job_of_the_paper_scale_is_what_the_classes_read(representation):
    kinds = ("sts", "clustering", "transfer", "geometry")
    assert sum(len(planned(kind, representation, 12)) for kind in kinds)
    assert wikitext_settings(EXTRACTION, representation)["learnt"].representation


def test_the_papers_grid_has_its_cells():
    """Tables 6 to 19: five weightings and seven post-processings of the templates, four of the other models."""
    cells = planned("clustering", "t4", 12)
    own = {
        key: variants
        for key, variants in cells.items()
        if key.layers == "last" and key.weighting != "avg_without_mask"
    }
    assert {key.weighting: len(variants) for key, variants in own.items()} == {
        "avg": 8, "idf_wikitext": 7, "idf_task": 7, "unbiased": 7, "masks": 7
    }  # fmt: skip
    plain = planned("clustering", "plain", 12)
    assert {key.mixing_weight for key in plain if key.weighting == "unbiased"} == {0, 0.5, 1}
    assert len({key.layers for key in plain}) == 17  # -1 to 12, and three sums
    assert {key.draw for key in planned("sts", "random", 0)} == set(range(5))


def test_the_paper_scale_scores_every_task():
    tasks = {kind: len(tasks_of(SETTINGS, kind)) for kind in ("sts", "clustering", "transfer", "geometry")}
    assert tasks == {"sts": 8, "clustering": 6, "transfer": 12, "geometry": 1}
    assert tasks_of(SETTINGS, "geometry") == {"stsb_train_space": "stsb_train"}
    files = score_files(SETTINGS, dict.fromkeys([*tasks, "isotropy"]), EXTRACTION.representations)
    assert len(files) == len(set(files))
    assert "extraction/scores/transfer/t3/stsb_graded.parquet" in files
    assert "extraction/scores/isotropy/plain/wikitext.parquet" in files
