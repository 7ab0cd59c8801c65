"""Rules for the page of any study in a browser."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.support.chromium import dom_of, examine


def check_page(page: Path, folder: Path, width: int, scheme: str) -> dict[str, Any]:
    """Look at a page in a browser; returns what was found there."""
    found = examine(page, folder, width, scheme)
    assert found["width"] == width
    assert found["dark"] == (scheme == "dark")
    assert found["console"] == []
    assert found["sideways"] <= 0
    assert found["reached"]  # score and verdict, without scrolling
    check_figures(found)
    assert found["contrast"] > 4.4  # 4.5 for text, less what rounding of colours takes
    check_links(found, page.parent)
    check_sorting(found)
    check_filters(found)
    return found


def check_figures(found: dict[str, Any]) -> None:
    """On the page's paper and as wide as it; no label on another or on a point, none cut off, none too small to read."""
    assert found["figures"]
    assert all(one["paper"] and one["ink"] > 10 for one in found["figures"])
    assert max(one["right"] for one in found["figures"]) <= found["width"]
    assert found["texts"] > 30
    assert found["overlapping"] == []
    assert found["covering"] == []
    assert found["cut"] == []
    assert found["smallest"] >= 8.5  # pixels, at any width of the window


def check_links(found: dict[str, Any], folder: Path) -> None:
    """Every link leads to a place on the page or to a file beside it, and every footnote is referred to."""
    assert len(found["links"]) > 20
    assert found["missing"] == []
    files = [unquote(link) for link in found["links"] if not link.startswith("#")]
    assert files
    assert [link for link in files if not (folder / link).is_file()] == []
    assert found["unread"] == []


def _number(text: str) -> float | None:
    number = re.match(r"<?([+\N{MINUS SIGN}-]?[\d,]*\.?\d+(e-?\d+)?)", text)
    return float(number[1].replace("\N{MINUS SIGN}", "-").replace(",", "")) if number else None


def check_sorting(found: dict[str, Any]) -> None:
    """A heading sorts its column both ways, by number where it holds numbers, and then puts it back."""
    assert len(found["tables"]) >= 4
    numeric = 0
    for column in (column for table in found["tables"] for column in table):
        assert column["focused"]
        before, *sorted_ones, after = column["turns"]
        assert after == before
        assert sorted(column["ways"]) == ["ascending", "descending", "none"]
        given = [text for text in before if text is not None]
        numbers = [_number(text) for text in given]
        for texts, way in zip(sorted_ones, column["ways"], strict=False):
            assert texts[len(given) :] == [None] * (len(before) - len(given)), "gaps come last"
            if given and None not in numbers:
                numeric += 1
                expected = sorted(numbers, reverse=way == "descending")
                assert [_number(text) for text in texts[: len(given)]] == expected
            else:
                assert sorted(texts[: len(given)]) == sorted(given)
    assert numeric > 10


def check_filters(found: dict[str, Any]) -> None:
    """The rows that hold all words stay, and all are back once nothing is asked for."""
    assert found["filters"]
    for field in found["filters"]:
        assert 0 < len(field["left"]) <= field["rows"] == field["after"]
        assert field["named"] == 1
        wanted = field["words"].lower().split()
        assert all(word in row.lower() for row in field["left"] for word in wanted)
        assert field["status"] == f"{len(field['left'])} of {field['rows']}"
    assert any(len(field["left"]) < field["rows"] for field in found["filters"])


def check_without_scripts(page: Path, folder: Path) -> None:
    """Where its script does not run, everything is there and nothing that would not work."""
    text = page.read_text("utf-8")
    still = folder / "still.html"
    still.write_text(re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL), "utf-8")
    dom, console = dom_of(still, folder)
    assert console == []
    assert "<button" not in dom
    assert "<input" not in dom
    assert "<tr hidden" not in dom
    rows = [len(re.findall(r"<tr\b", shown)) for shown in (dom, text)]
    assert rows[0] == rows[1] > 10
