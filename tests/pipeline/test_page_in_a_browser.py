"""The demo's page, with every kind of figure that it has, in a browser."""

import pytest

from tests.support.chromium import CHROMIUM, WHY_NOT
from tests.support.page_checks import check_page, check_without_scripts

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_demos_page_can_be_read_and_used(smoke, tmp_path, width, scheme):
    found = check_page(smoke / "results/demo/report.html", tmp_path, width, scheme)
    assert found["texts"] > 300


def test_the_page_is_whole_without_scripts(smoke, tmp_path):
    check_without_scripts(smoke / "results/demo/report.html", tmp_path)
