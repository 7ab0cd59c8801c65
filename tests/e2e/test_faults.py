"""Clocks that disagree."""

import os
import time

from tests.e2e.test_whole_graph import plan, sealed_files


def test_dates_in_the_future_plan_nothing_and_lose_nothing(smoke_copy):
    """Tomorrow's date on every second file, as another host's clock or a changed summer time gives."""
    before = sealed_files(smoke_copy)
    tomorrow = time.time() + 86_400
    files = sorted(path for path in (smoke_copy / "results").rglob("*") if path.is_file())
    assert len(files) > 50
    for path in files[::2]:
        os.utime(path, (tomorrow, tomorrow))
    assert plan(smoke_copy) == {}
    assert sealed_files(smoke_copy) == before
