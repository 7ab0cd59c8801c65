"""The page about a study: complete, self-contained, and safe from text in the data."""

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.rooms.reporting import conftest
from tests.rooms.reporting.conftest import finish
from tests.support.chromium import CHROMIUM, WHY_NOT, dom_of
from workflow_scripts.columns import TABLE
from workflow_scripts.provenance.record import gap_label
from workflow_scripts.reporting.page import compare_runs
from workflow_scripts.reporting.records import Labels
from workflow_scripts.reporting.sheets import Sheet

HOSTILE = (
    "</style></svg></script><script>document.documentElement.dataset.owned = 1</script>"
    "<img src=x onerror='document.documentElement.dataset.owned = 2'>{{ 7*7 }}--><b>"
)
VOID = {"meta", "img", "br", "wbr", "link", "input", "source"}


def words_of(folder):
    """The text of a study's page, with single spaces."""
    return " ".join(Page((folder / "report.html").read_text()).text.split())


class Page(HTMLParser):
    """Tags with attributes, text, and whether every tag is closed in order."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.stack, self.scripts = [], "", [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if not self.stack or self.stack[-1] not in ("style", "script"):
            self.text += data
        if self.stack and self.stack[-1] == "script":
            self.scripts.append(data)

    def all(self, *names):
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.fixture(scope="module")
def page(finished):
    return Page((finished / "report.html").read_text())


def test_the_page_fetches_nothing_and_runs_its_own_script_alone(page, finished):
    text = (finished / "report.html").read_text()
    assert page.stack == []
    assert text.count("<!--") == 1
    links = [a[key] for _, a in page.tags for key in ("href", "src", "srcset", "action") if key in a]
    fetched = [link for link in links if not link.startswith("data:image/svg+xml;base64,")]
    assert len(fetched) > 10
    assert len(links) == len(fetched) + 2 * 4
    assert not [link for link in fetched if re.match(r"\w+:|//|/", link)]
    assert not page.all("link", "iframe", "object", "embed", "svg")
    assert page.all("script") == [{}]
    (script,), digest = page.scripts, hashlib.sha256(page.scripts[0].encode()).digest()
    assert not re.search(
        r"fetch|XMLHttp|WebSocket|eval|import|Function|innerHTML|document\.write|https?:", script
    )
    policy = next(tag["content"] for tag in page.all("meta") if "http-equiv" in tag)
    assert "default-src 'none'" in policy
    assert policy.endswith(f"script-src 'sha256-{b64encode(digest).decode()}'")
    assert not [a for _, a in page.tags if any(name.startswith("on") for name in a)]
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_links_lead_to_files_or_places_on_the_page(page, finished):
    """Links lead to files of the study or to places on the page."""
    links = {a["href"] for a in page.all("a") if not a["href"].startswith("#")}
    assert {"tables/lab.parquet", "figures/lab/cosine_density.parquet"} <= links
    assert all((finished / link).is_file() for link in links)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids)) > 15
    named = [a["href"][1:] for a in page.all("a") if a["href"].startswith("#")]
    named += [name for _, a in page.tags for name in a.get("aria-labelledby", "").split()]
    assert set(named) <= set(ids)


def test_each_figure_links_to_its_file_and_says_its_format(finished):
    text = (finished / "report.html").read_text()
    captions = re.findall(r"<figcaption>.*?</figcaption>", text, re.DOTALL)
    assert captions
    links = [re.findall(r'<a href="([^"]*)">This figure as an SVG file</a>', caption) for caption in captions]
    assert [len(found) for found in links] == [1] * len(captions)
    assert all((finished / link).suffix == ".svg" for (link,) in links)
    assert all((finished / link).is_file() for (link,) in links)


def test_the_page_shows_scores_data_and_substitutions(finished):
    """The page shows scores, differences, data and substitutions."""
    text = words_of(finished)
    for part in (
        "Study demo",
        "14,902 sentences to train on",
        "Of 15,402 round trips, these are not trained on: rejected: not in en 20 (0.13%), unchanged 480 (3.12%).",
        "all-MiniLM-L6-v2 stands in for BERT-base",
        "73.61 ± 0.26*",
        "+10.57p < .001detectable 0.86",
        "no source of the dataset is available",
        "spearman of stsb_test (all), times 100, n 1,379",
        "fewer than 5 words: 5,210; more than 50 words: 811; seen before: 95",
        "15,4026,116",
        "stsb_test2,5521251 (2.00%)3357",
        "sts16no source of the dataset is available",
        "4 pairs, by which runs choose their checkpoints.",
        "2 substitutions: not what the papers used",
        "It shows: That it runs. It cannot show: Which method is better.",
        "simcse.minilm_mlm.wiki_extracta b",
        "differs from frozen_cls.minilm_mlm with p < .05",
        "15064323e-05seed 1: step 125 (0.744), seed 2:",
        "How to read the numbers",
        "SimCSE is better than nothing.aJTCSE, Table Isupported76.25 against not printed"
        "2.50 higher (2.25 to 2.75) over 3 seeds<.001 / .012",
        "Claims that this study does not compare, and why: 1",
        "JTCSE, Table I: It is fast, too. no source of the dataset is available",
        "Losses of different methods are different quantities",
        "STS12: spearman of sts12 (all), times 100, n 3,108.",
    ):
        assert part in text, part


def test_with_two_seeds_the_page_promises_no_p(finished, tmp_path_factory, monkeypatch):
    """With two seeds, the page says that nothing is tested and promises no p."""
    few = [(run, seed) for run, seed in conftest.RUNS if seed < 3]
    monkeypatch.setitem(conftest.GRID, "seeds", [1, 2])
    monkeypatch.setattr(conftest, "TRAINED", [(run, seed) for run, seed in few if seed])
    monkeypatch.setattr(conftest.Study.per_run, "__defaults__", (few,))
    of_two = words_of(finish(tmp_path_factory.mktemp("two"), drawn=("learning_curves",), claim_p=None))
    said = "o difference is tested: runs have 1 or 2 seeds, a test needs 3."
    assert f"N{said}" in of_two
    assert f"n{said}" in of_two
    assert said not in words_of(finished)
    for promise in ("p of the two-sided t-test over seeds", "p of the claim by itself", "p / corrected"):
        assert promise not in of_two, promise
        assert promise in words_of(finished), promise


def test_the_contents_lead_to_every_part_of_the_page(page, finished):
    text = (finished / "report.html").read_text()
    contents = text[text.index("<nav") : text.index("</nav>")]
    assert text.index("</nav>") < text.index("<main")
    linked = set(re.findall(r'href="#([^"]+)"', contents))
    parts = {tag["id"] for tag in page.all("section", "figure")}
    parts |= {
        tag["aria-labelledby"]
        for tag in page.all("div")
        if tag.get("aria-labelledby", "").startswith("training")
    }
    assert len(parts) == 11
    assert parts <= linked
    assert {"datasets", "corpora", "pools", "development"} <= linked


def test_labels_of_a_grid_stand_once_and_not_under_each_figure(finished):
    text = (finished / "report.html").read_text()
    captions = "".join(re.findall(r"<figcaption>.*?</figcaption>", text, re.DOTALL))
    assert "Losses of different methods" in captions
    for label in (conftest.ADAPTED, conftest.STAND_IN):
        assert label in text
        assert label not in captions


def test_a_label_that_the_table_lacks_stands_under_its_figure(tmp_path, monkeypatch):
    own = Labels(("another encoder stands in",), ())
    monkeypatch.setattr("workflow_scripts.figures.drawing.split_labels", lambda _: own)
    text = words_of(finish(tmp_path, drawn=("learning_curves",)))
    assert text.count("This figure only: another encoder stands in.") == 2  # the curves and the gains


def test_the_interval_of_two_seeds_is_explained_beside_it(finished, tmp_path, monkeypatch):
    """Student's quantile of one degree of freedom is 12.706, over the root of 2: 8.98."""
    said = "An interval of two seeds reaches 9.0 standard deviations to either side of the mean"
    assert said not in words_of(finished)
    few = [(run, seed) for run, seed in conftest.RUNS if seed < 3]
    monkeypatch.setitem(conftest.GRID, "seeds", [1, 2])
    monkeypatch.setattr(conftest, "TRAINED", [(run, seed) for run, seed in few if seed])
    monkeypatch.setattr(conftest.Study.per_run, "__defaults__", (few,))
    text = (finish(tmp_path, drawn=("learning_curves",), claim_p=None) / "report.html").read_text()
    comparison = text[text.index('id="comparison"') : text.index('id="substitutions"')]
    assert said in comparison


def test_missing_data_is_listed_on_the_page_and_below_figures(finished, tmp_path_factory):
    labels = (gap_label("datasets.sts16: no source is available"),)
    other = finish(tmp_path_factory.mktemp("other"), labels=labels, drawn=("learning_curves",))
    text = words_of(other)
    assert "No substitutions" in text
    assert "Missing, so that what needs it is a gap: datasets.sts16: no source is available" in text
    drawn = (other / "figures/lab/learning_curves.svg").read_text()
    assert "Gap: datasets.sts16: no source is available." in " ".join(drawn.split())


def test_gains_are_drawn_below_the_claims(page):
    assert "figure-claims-gains" in {one.get("id") for one in page.all("figure")}
    assert "#figure-claims-gains" in {one.get("href") for one in page.all("a")}
    below = page.text.partition("What the papers claim")[2].partition("Data: claims.parquet")[0]
    assert "A bar is the 95% interval of its claim" in below


def test_a_claim_has_the_letters_of_its_substitutions(page):
    claims = page.text.partition("What the papers claim")[2].partition("Data: claims.parquet")[0]
    assert " ".join(claims.split()).count("SimCSE is better than nothing.aJTCSE") == 1
    assert "Letters mark substitutions: 1 a a stand-in" in " ".join(claims.split())
    assert "#substitution-claims-a" in {one.get("href") for one in page.all("a")}
    assert "substitution-claims-a" in {one.get("id") for one in page.all("li")}


def test_tables_and_figures_can_be_read_aloud(page):
    assert len(page.all("table")) == len(page.all("caption")) == 7
    assert all(cell.get("scope") in ("col", "row") or "aria-hidden" in cell for cell in page.all("th"))
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("figcaption")) == len(page.all("img")) == 4
    spoken = ("A panel per run", "point per run", "Lines", "A row per claim")
    assert all(any(words in image["alt"] for words in spoken) for image in page.all("img"))
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(a.get("tabindex") == "0" for a in page.all("div") if a.get("class") == "wide")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The page of a study whose labels and reasons would act, were they not escaped."""
    changes = {"labels": (HOSTILE,), "gap_reason": f"no {HOSTILE}"}
    return finish(tmp_path_factory.mktemp("hostile"), **changes) / "report.html"


def test_hostile_data_stays_text(page, hostile):
    found = Page(hostile.read_text())
    assert found.stack == []
    assert found.all("b") == []
    assert found.scripts == page.scripts
    assert len(found.all("script")) == 1
    assert not [a for _, a in found.tags if any(name.startswith("on") for name in a)]
    assert len(found.all("img")) == 4
    assert len(found.all("style")) == len(page.all("style"))
    assert found.text.count(HOSTILE) >= 3  # substitutions, their footnote, the gap's note


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)
def test_runs_are_sorted_by_all_parts_of_their_names(finished, tmp_path):
    """A page breaks an identifier after its dots; here, two runs differ in the second part only."""
    text = (finished / "report.html").read_text().replace("s2sent.<wbr>minilm_mlm", "simcse.<wbr>another_mlm")
    click = "document.querySelector('#experiment-lab table.sorts button').click();"
    hashed = b64encode(hashlib.sha256(click.encode()).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{hashed}' ", 1)
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", f"<script>{click}</script></body>"))
    dom, console = dom_of(page, tmp_path)
    assert console == []
    section = dom.partition('id="experiment-lab"')[2].partition("</table>")[0]
    runs = re.findall(r'<th scope="row">(.*?)<(?:sup|span|/th)', section)
    assert [run.replace("<wbr>", "") for run in runs] == [
        "frozen_avg.minilm_mlm", "frozen_cls.minilm_mlm",
        "simcse.another_mlm.wiki_extract", "simcse.minilm_mlm.wiki_extract",
    ]  # fmt: skip


def test_runs_are_drawn_with_interval_and_baseline():
    """With 5 seeds, t(.975, 4) is 2.776: the interval is 40 -+ 2.776 * 2 / sqrt(5)."""
    shown = {"a": (30.0, None, None), "b": (None, None, 50.0), "c": (40.0, 2.0, None)}
    rows = [
        dict.fromkeys(TABLE.names)
        | {"run": run, "heading": heading, "mean": mean, "sd": sd, "seeds": 5, "published": published}
        | {"metric": "m", "aggregation": "", "task": heading, "n": 1, "digits": 2, "labels": []}
        | {"baseline": None if run == "a" else "a"}
        for run, (mean, sd, published) in shown.items()
        for heading in ("x", "STS")
    ]
    drawn = compare_runs(Sheet("t", "", "", 0.05, "", rows, ["x", "STS"]), "STS")
    _lines, cells, (first, second, third) = zip(*drawn["runs"], strict=True)
    assert first == dict.fromkeys(("low", "mean", "high"), drawn["base"])
    assert drawn["base"] == 4.55
    assert second == {"published": 95.45}
    assert [third["low"], third["high"]] == pytest.approx(
        [50 - 100 * 2.483 / 22, 50 + 100 * 2.483 / 22], abs=0.01
    )
    assert drawn["printed"]
    assert [cell["task"] for cell in cells] == ["STS"] * 3
    assert drawn["head"]["measure"] == "m of STS, n 1"
    assert drawn["level"] == "95%"
    assert compare_runs(Sheet("t", "", "", 0.001, "", rows, ["x", "STS"]), "STS")["level"] == "99.9%"
    nothing = [row | {"mean": None, "published": None} for row in rows]
    assert compare_runs(Sheet("t", "", "", 0.05, "", nothing, ["x", "STS"]), "STS") == {}
