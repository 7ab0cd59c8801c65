import bz2
from xml.sax.saxutils import escape

from workflow_scripts.data.readers.sentences import wikipedia_xml
from workflow_scripts.settings.sources import WikipediaXml

RIVER = """{{Infobox river
| name = Great River
| length = {{convert|300|km}} long and not a sentence.
}}
[[File:River.jpg|thumb|upright|A caption of the ''river'' that should not be here.]]
The '''Great River''' is a [[river]] in the [[North (region)|north of the country]].<ref name="a">A \
reference that should not be here.</ref> It flows to the [[Sea|sea]]{{citation needed|date=2013}} in summer.
<!-- A comment that should not be here. -->
Its water is &quot;cold&quot; &amp; clear; 5&nbsp;km of it are frozen.<ref>{{cite web|url=http://example.org}}</ref>

== A heading that should not be here. ==
* An item of a list that should not be here.
# Another item that should not be here.
: An indented line that should not be here.
{| class="wikitable"
! A head of a table that should not be here.
|-
| A cell of a table that should not be here. || Another cell that should not be here.
|}
Dr. J. R. Smith ({{lang|de|Schmidt}}) measured it in 1901. He found <math>x^2 + y</math> of it. \
[http://example.org A site] says so too.

Short one.

This line has no end of a sentence

The '''Great River''' is a [[river]] in the [[North (region)|north of the country]].

See http://example.org/page for the rest of it.

The last <small>words</small> of the ''article'' stand here (; ).
[[Category:Rivers that should not be here]]
[[de:Fluss]]"""

TOWN = "The town of Alba has one church. " + "It " + "is old and " * 20 + "old."


def page(title, text, namespace="0"):
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>1</id>"
        f"<revision><id>2</id><text>{escape(text)}</text></revision></page>"
    )


def write(folder, *pages):
    xml = f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">{"".join(pages)}</mediawiki>'
    (folder / "dump.bz2").write_bytes(bz2.compress(xml.encode()))
    return {"dump": folder / "dump.bz2"}


def test_running_text_is_kept_and_dropped_parts_are_counted(tmp_path):
    """Positions count every sentence of a document: sentences that followed each other are known."""
    files = write(
        tmp_path,
        page("Talk:River", "A sentence of a talk page that should not be here.", namespace="1"),
        page("Great River", RIVER),
        page("Big River", "#REDIRECT [[Great River]]"),
        page("Small River", "\n #redirect [[Great River]] A redirect that should not be here."),
        page("Nothing", ""),
        page("Alba", TOWN),
    )
    parsed = wikipedia_xml(files, WikipediaXml(min_words=4, max_words=50))
    assert [tuple(row.values()) for row in parsed.table.to_pylist()] == [
        ("The Great River is a river in the north of the country.", 0, 0),
        ("It flows to the sea in summer.", 0, 1),
        ('Its water is "cold" & clear; 5 km of it are frozen.', 0, 2),
        ("Dr. J. R. Smith measured it in 1901.", 0, 3),
        ("He found of it.", 0, 4),
        ("A site says so too.", 0, 5),
        ("The last words of the article stand here.", 0, 8),
        ("The town of Alba has one church.", 1, 0),
    ]
    assert parsed.dropped == {
        "redirect, empty or no article": 4, "paragraph of list, table or heading": 4, "no end of sentence": 1,
        "left-over markup": 1, "under 4 words": 1, "over 50 words": 1, "repeated": 1,
    }  # fmt: skip


def test_nested_tables_and_captions_are_removed(tmp_path):
    text = (
        "[[Image:a.jpg|thumb|A caption with [[a link|links]] and [http://a.org more] of it. And more.]]"
        "Rivers run.\n"
        "{| class=x\n| A cell of it.\n{|\n| An inner cell of it.\n|}\n| A last cell of it.\n|}\nTowns stand."
    )
    parsed = wikipedia_xml(write(tmp_path, page("River", text)), WikipediaXml(min_words=1, max_words=50))
    assert parsed.table["sentence"].to_pylist() == ["Rivers run.", "Towns stand."]
