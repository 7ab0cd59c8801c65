import os

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy import stats

from tests.support import toys
from tests.support.toys import training as settings
from workflow_scripts.columns import PAIRS
from workflow_scripts.errors import EXIT_TRY_AGAIN, DataError, one_line_errors
from workflow_scripts.training.loop import (
    Preempted,
    development_score,
    prepare,
    try_again_when_stopped,
)


def pairs(count=12):
    texts = toys.sentences(2 * count, seed=2)
    scores = np.random.default_rng(0).random(count)
    columns = [[""] * count, texts[:count], texts[count - 1 : -1], scores]
    return pa.table([pa.array(c) for c in columns], schema=PAIRS)


def test_the_development_score_is_spearmans_of_the_cosines(tiny_bert):
    encoder, table = toys.encoder(tiny_bert), pairs()
    left, right = (encoder.encode(table[side].to_pylist(), 32) for side in ("sentence1", "sentence2"))
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    expected = stats.spearmanr(table["score"], (left * right).sum(axis=1) / norms).statistic
    encoder.train()  # as in the middle of a training: dropout is off all the same
    score = development_score(encoder, table, 32)
    before = torch.get_rng_state()
    assert score() == pytest.approx(expected, abs=1e-9)
    assert score() == score()
    # Else how often a training looks would change how it goes on.
    assert torch.equal(torch.get_rng_state(), before)


ALIKE = pa.concat_tables([pairs().slice(0, 1)] * 3)
BY_NOTHING = "development set: all 3 judgements are 0.636962, so no checkpoint"


@pytest.mark.parametrize(
    ("table", "complaint"),
    [(PAIRS.empty_table(), "development set: no pairs.*dev_sentences"), (ALIKE, BY_NOTHING)],
)
def test_a_development_set_that_tells_nothing_is_refused(tiny_bert, table, complaint):
    with pytest.raises(DataError, match=complaint):
        development_score(toys.encoder(tiny_bert), table, 32)


def test_preparing_fixes_threads_algorithms_and_random_numbers(torch_settings):
    prepare(settings(cpu_threads=1), seed=4)
    first = torch.rand(3)
    assert torch.get_num_threads() == 1
    assert torch.are_deterministic_algorithms_enabled()
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"]
    prepare(settings(cpu_threads=1), seed=4)
    assert torch.equal(torch.rand(3), first)


STOPS = [
    (Preempted("stopped after step 3 of 9; run the job again to go on"), "stopped after step 3 of 9"),
    (KeyboardInterrupt(), "stopped outside the training's steps"),
]


@pytest.mark.parametrize(("stop", "said"), STOPS, ids=["asked", "Ctrl-C"])
def test_a_stopped_job_leaves_with_the_code_for_another_try(capsys, stop, said):
    """A stopped job leaves with the code that asks for another try."""
    with pytest.raises(SystemExit) as left, one_line_errors(), try_again_when_stopped():
        raise stop
    assert left.value.code == EXIT_TRY_AGAIN == 75
    assert capsys.readouterr().err == f"Preempted: {said}; run the job again to go on.\n"
