"""The page as readers see it: on a wide and on a narrow screen, light and dark, with scripts and without."""

import re

import pytest

from tests.browser import CHROMIUM, WHY_NOT, examine
from tests.pages import check_page, check_without_scripts

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_can_be_read_and_used(finished, tmp_path, width, scheme):
    check_page(finished / "report.html", tmp_path, width, scheme)


def test_names_are_sorted_as_readers_count(finished, tmp_path):
    """Table 2 before Table 10, also where every name begins with a digit."""
    text = (finished / "report.html").read_text("utf-8")
    page = tmp_path / "report.html"
    page.write_text(re.sub(r'(<th scope="row">)(?=STS-B, test part|sts16)', r"\g<1>3R, ", text), "utf-8")
    tables = examine(page, tmp_path, 1280, "light")["tables"]
    (kinds,) = (column for table in tables for column in table if column["head"] == "table")
    numbers = [int(shown.split()[1]) for shown in kinds["turns"][1] if re.fullmatch(r"Table \d+", shown)]
    assert numbers == sorted(numbers) and numbers[-1] > 10
    (overlap,) = (table for table in tables if table[-1]["head"] == "rows touched")
    names = ["3R, STS-B, test part", "3R, sts16"]
    assert overlap[0]["turns"][1:3] == [names, names[::-1]]


def test_the_page_is_whole_without_scripts(finished, tmp_path):
    check_without_scripts(finished / "report.html", tmp_path)
