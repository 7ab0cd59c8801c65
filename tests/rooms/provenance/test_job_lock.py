"""A job runs once at a time, possibly in several processes."""

import os
from functools import partial

from tests.support.training_jobs import in_child
from workflow_scripts.provenance.running import acquire_lock


def test_a_second_start_is_refused(tmp_path):
    """A second start is refused but not other processes of a training."""
    log = tmp_path / "job.log"

    def begin(rank):
        os.environ["RANK"] = rank
        acquire_lock()

    def hold():
        begin("0")
        assert [in_child(partial(begin, rank), log) for rank in ("0", "1")] == [1, 0]

    assert in_child(hold, log) == 0
    assert log.read_text().count("this job is already running") == 1
