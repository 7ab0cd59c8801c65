"""The page on wide and narrow screens, light and dark, with scripts and without."""

import pytest

from tests.browser import CHROMIUM, WHY_NOT
from tests.pages import check_page, check_without_scripts

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_can_be_read_and_used(finished, tmp_path, width, scheme):
    check_page(finished / "report.html", tmp_path, width, scheme)


def test_the_page_is_whole_without_scripts(finished, tmp_path):
    check_without_scripts(finished / "report.html", tmp_path)
