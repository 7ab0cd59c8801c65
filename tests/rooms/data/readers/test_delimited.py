"""The formats that differ in separator, quotes, header and columns alone."""

import gzip

import pytest

from workflow_scripts.columns import FORMS
from workflow_scripts.data.readers.rows import delimited
from workflow_scripts.errors import DataError
from workflow_scripts.settings.sources import Delimited

SCORED = {"columns": {"sentence1": "sentence1", "sentence2": "sentence2", "score": "score"}}
WITH_SUBSETS = {"columns": SCORED["columns"] | {"subset": "subset"}}
CSV = {"separator": ",", "quoted": True}
STSB = CSV | {"header": ["sentence1", "sentence2", "score"]}
TRIPLES = CSV | {"columns": {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"}}
SST2 = {"header": ["text", "label"], "columns": {"text1": "text", "label": "label"}, "strip": True}
SST5 = SST2 | {"header": ["label", "text"], "separator": " "}
STSB_RELEASE = WITH_SUBSETS | {"header": ["genre", "file", "score", "sentence1", "sentence2"]}
STSB_RELEASE |= {"columns": WITH_SUBSETS["columns"] | {"subset": "file"}}
STR = CSV | {
    "columns": {"sentence1": "Text", "sentence2": "Text", "score": "Score"},
    "sentence_separator": "\n",
}
LONG = "long " * 40_000
TREC = SST5 | {"label_until": ":", "remove_characters": "`'", "fallback_encoding": "latin-1"}
QUALITY = {"columns": {"label": "Quality", "text1": "#1 String", "text2": "#2 String"}}
QUORA = {"columns": {"label": "dup", "text1": "q1", "text2": "q2", "split": "split"}}


@pytest.fixture
def parsed(tmp_path):
    """A function that reads contents by their roles."""

    def of(options, suffix="", **contents):
        for role, content in contents.items():
            (tmp_path / f"{role}{suffix}").write_bytes(
                content.encode() if isinstance(content, str) else content
            )
        settings = Delimited(**options)
        found = delimited({role: tmp_path / f"{role}{suffix}" for role in contents}, settings)
        assert found.table.schema == FORMS[settings.form]
        assert not found.dropped
        return [tuple(row.values()) for row in found.table.to_pylist()]

    return of


@pytest.mark.parametrize(
    ("options", "content", "row"),
    [
        (SCORED, "part\tscore\tsentence1\tsentence2\ndev\t1\ta\tb\n", ("", "a", "b", 1.0)),
        (QUALITY, 'Quality\t#1 ID\t#1 String\t#2 String\n1\t7\t" so\the said "\n', ("", '" so', 'he said "', "1")),
        (SST2, "a charming journey . \t1\n", ("", "a charming journey .", None, "1")),
        (SST5, "4 a stirring film : good\n", ("", "a stirring film : good", None, "4")),
        (TREC, "ENTY:plant What is Australia 's `` flower '' : which ?\n",
         ("", "What is Australia s  flower  : which ?", None, "ENTY")),
        (STSB | SCORED, '"He said ""no"", twice.","Two\nlines.",2.6\r\n', ("", 'He said "no", twice.', "Two\nlines.", 2.6)),
        (TRIPLES, 'sent0,sent1,hard_neg\n"a, b","says ""no""",NA\n', ("a, b", 'says "no"', "NA")),
        (CSV | {"columns": {"anchor": "sent0", "positive": "sent1"}}, "source,sent1,sent0\nsnli,null,a\n", ("a", "null", None)),
    ],
    ids=["scored pairs", "MRPC", "SST-2", "SST-5", "TREC", "STS-B", "triples", "pairs without negatives"],
)  # fmt: skip
def test_one_row_of_each_format(parsed, options, content, row):
    assert parsed(options, all=content) == [row]
    assert parsed(options, ".gz", all=gzip.compress(b"\xef\xbb\xbf" + content.encode())) == [row]


@pytest.mark.parametrize(
    ("options", "content", "rows"),
    [
        (WITH_SUBSETS, "subset\tscore\tsentence1\tsentence2\nA\t4.4\ta\tb\nA\t\tc\td\nB\t0\te\tf\n",
         [("A", "a", "b", 4.4), ("A", "c", "d", None), ("B", "e", "f", 0.0)]),
        (QUORA, "split\tdup\tq1\tq2\ndev\t1\ta\tb\ntest\t0\tc\td\n", [("dev", "a", "b", "1"), ("test", "c", "d", "0")]),
        (STSB_RELEASE, "news\tMSRpar\t4.5\ta\tb\thttp://a\tLDC\nnews\tOnWN\t3\tc\td\n",
         [("MSRpar", "a", "b", 4.5), ("OnWN", "c", "d", 3.0)]),
        (STR, 'DocID,Text,Score\n1,"It rains, today.\nShowers fall.",0.9\n2,"A ""b""\nc",0\n',
         [("", "It rains, today.", "Showers fall.", 0.9), ("", 'A "b"', "c", 0.0)]),
        (CSV | SCORED, f'score,sentence1,sentence2\n1,"{LONG}",b\n', [("", LONG, "b", 1.0)]),
    ],
    ids=["never judged", "a split column", "release of STS-B", "release of STR", "beyond the limit of csv"],
)  # fmt: skip
def test_several_rows_and_the_same_with_line_ends_of_windows(parsed, options, content, rows):
    assert parsed(options, all=content) == rows
    assert parsed(options, all=content.replace("\n", "\r\n")) == rows
    assert parsed(options, all=content.replace("\n", "\r\r\n")) == rows


def test_parts_are_splits_in_their_order(parsed):
    """Parts are splits in their order and scores may be labels."""
    columns = {"text1": "sentence1", "text2": "sentence2", "label": "score"}
    test, train = "c,d,2.615\ne,f,3.333333333333\n", "a,b,5.0\n"
    rows = parsed(STSB | {"columns": columns, "graded": True}, test=test, train=train)
    assert rows == [
        ("train", "a", "b", "5"),
        ("test", "c", "d", "2.615"),
        ("test", "e", "f", "3.333333333333"),
    ]


def test_sentevals_copy_of_trec_and_the_release_are_read_alike(parsed):
    """SentEval took quotes out; one letter of both is in Latin-1, which somebody's copy has in UTF-8."""
    release = "LOC:city Which city is the ``sisterðcity '' of Athens ?\n"
    senteval = release.replace("`", "").replace("'", "")
    for content in (release.encode("latin-1"), senteval.encode("latin-1"), senteval.encode()):
        assert parsed(TREC, train=content) == [
            ("train", "Which city is the sisterðcity  of Athens ?", None, "LOC")
        ]
    with pytest.raises(DataError, match="train:2: byte 0xf0 is not UTF-8"):
        parsed(SST5, train=b"4 fine\n" + release.encode("latin-1"))


TSV = "score\tsentence1\tsentence2\n"


@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        (SCORED, TSV + "1\ta\tb\nx\ta\tb\n", "all:3: score 'x' is not a number"),
        (SCORED, TSV + "inf\ta\tb\n", "all:2: score 'inf' is not a number"),
        (SCORED, TSV + "1\ta\n", "all:2: 2 columns instead of 3"),
        (SCORED, TSV + "1\ta\tb\tc\n", "all:2: 4 columns"),
        (SCORED, "", "all:1: no column 'sentence1'"),
        (SCORED, TSV.replace("\t", ","), r"all:1: no column 'sentence1'.*separator"),
        (STR, 'Text,Score\n"a\nb",1\n"a\nb\nc",1\n', "all:6: 3 texts in one cell instead of 2. Correct the line, or the option sentence_separator"),
        (SCORED, TSV.replace("2", "1"), "all:1: column 'sentence1' occurs twice"),
        (SST2, "fine\t1\nno label\n", "all:2: 1 columns"),
        (SST2, "fine\t1\ntwo\ttabs\t1\n", "all:2: 3 columns"),
        (SST2, "text\t \n", "all:1: no label"),
        (SST5, "4\n", "all:1: 1 columns"),
        (SST5, " text\n", "all:1: no label"),
        (STSB | SCORED, "a,b,1\na,b\n", "all:2: 2 columns"),
        (STSB | SCORED, "a,b,high\n", "all:1: score 'high' is not a number"),
        (STSB | SCORED, 'a,b,1\n"open,b,1\n', "all:2: unexpected end of data"),
        (TRIPLES, "sent0,sent1\na,b\n", "all:1: no column 'hard_neg'"),
    ],
)  # fmt: skip
def test_a_misfit_is_named_by_its_line(parsed, options, content, message):
    with pytest.raises(DataError, match=message) as stopped:
        parsed(options, all=content)
    assert "\n" not in str(stopped.value)


TOPICS = {"columns": {"text1": "text", "label": "label"}}
NAMED = TOPICS | {"header": ["text", "label"]}
TOPIC = "text\tlabel\n"
ROWS = "The team won it.\tsport\nThe soup was hot.\tfood\n"
SAID = '"He said ""no"" twice."\tsport\nThe soup was hot.\tfood\n'
PAIRED = TSV + "4.5\tA dog ran.\tA cat sat.\n"


@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        (TOPICS, TOPIC + SAID, """all:2: '"He said ""no"" twice."' is 'He said "no" twice.' if .* Set quoted: true; or quoted: false"""),
        (TOPICS, TOPIC + SAID.replace('""no""', r"\"no\""), """all:2: .* is 'He said "no" twice.' if .* Double marks inside cells"""),
        (TOPICS, '"text"\t"label"\n"The team."\t"sport"\n', "all:1: '\"text\"' is 'text' if"),
        (TOPICS | {"separator": ","}, 'text,label\n"The team, ours.",sport\n', "all:2: .* is 'The team, ours.' if"),
        (STSB_RELEASE, 'news\tOnWN\t3\t"a\tb"\tc\td\n', "all:1: '\"a' is 'a.tb' if"),
        (TOPICS | {"quoted": True}, TOPIC + '"No, he said.\tsport\nThe soup"\tfood\n', "all:3: 2 lines that end here are one row, or one row each"),
        (NAMED, TOPIC + ROWS, "all:1: the line contains the names of the columns. Remove the option"),
        (NAMED, "Text \t Label\n" + ROWS, "all:1: the line contains the names of the columns"),
        (NAMED, "review\tstars\n" + ROWS, r"all:1: \['review', 'stars'\] look like names of columns"),
        (TOPICS, TOPIC + ROWS + TOPIC, "all:4: the line contains the names of the columns. Remove the line"),
        (TRIPLES | {"header": ["sent0", "sent1", "hard_neg"]}, "anchor,positive,negative\nA dog ran.,It ran.,It sat.\n", "all:1: .* look like"),
        (TOPICS | {"header": ["text", "text", "label"]}, "", "header: text occurs twice"),
        (TOPICS, (TOPIC + ROWS).replace("\n", "\r"), "all:1: a carriage return without a line feed: the file has 0 or 3 line ends"),
        (TOPICS, (TOPIC + ROWS).replace("\n", "\u2028"), r"all:1: U\+2028 and no line feed: the file has 1 line or 3"),
        (TOPICS, TOPIC + ROWS.replace("was hot", "was\rhot"), "all:3: a carriage return without a line feed: the file has 3 or 4"),
        *((SCORED, PAIRED.replace("4.5", text), f"all:2: score '{text}' is not a number") for text in
          ("1_0", "4,5", "1,000.5", "\uff14.\uff15", "\u0664", "1e999", "nan", "N/A", "-inf", "85%", "3/5", "0x1", "4.5.")),
        (TOPICS | {"fallback_encoding": "latin-1"}, (TOPIC + ROWS).encode().replace(b"hot", b"hot\x92"), "all:3: byte 0x92 .* latin-1, and \u2019 in cp1252. Set fallback_encoding: cp1252"),
        (TOPICS | {"fallback_encoding": "latin-1"}, (TOPIC + ROWS).encode().replace(b"hot", b"hot\x81"), "all:3: byte 0x81 is a control character in latin-1. Convert"),
        (TOPICS | {"fallback_encoding": "latin-1"}, (TOPIC + ROWS).encode().replace(b"hot", b"h\xf6t") + "Caf\xe9\tfood\n".encode(), "all:4: line 4 is UTF-8, but other lines are not"),
        (TOPICS | {"fallback_encoding": "cp1252"}, (TOPIC + ROWS).encode().replace(b"hot", b"hot\x81"), "all: neither UTF-8 nor cp1252"),
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_is_refused(parsed, options, content, message):
    with pytest.raises((DataError, ValueError), match=message) as stopped:
        parsed(options, all=content)
    assert "\n" not in str(stopped.value) or "header" in options


CSV_OF = {form: CSV | {"columns": {name: name for name in columns}} for form, columns in {
    "pairs": ("sentence1", "sentence2", "score"), "labelled": ("text1", "label"), "triples": ("anchor", "positive", "negative"),
}.items()}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("pairs", 'sentence1,sentence2,score\n"Start,foo,1.0\nends quote",bar,2.0\n'),
        ("pairs", 'sentence1,sentence2,score\nfoo,"Start,\nmid,mid,3\nbar,ends quote",2.0\n'),
        ("pairs", 'sentence1,sentence2,score\n"Start, foo, 1.0\nends quote", bar, 2.0\n'),
        ("labelled", 'text1,label\n"Start here,sport\nends here",food\n'),
        ("labelled", 'text1,label\n"Start here, sport\nends here", food\n'),
        ("triples", 'anchor,positive,negative\n"Start,foo,x\nends quote",bar,y\n'),
    ],
)
def test_a_stray_quotation_mark_swallows_no_line(parsed, form, content):
    with pytest.raises(DataError, match=r"all:\d: [23] lines that end here are one row, or one row each"):
        parsed(CSV_OF[form], all=content)


@pytest.mark.parametrize(
    ("form", "content", "text"),
    [
        ("pairs", 'sentence1,sentence2,score\na,"It rains, today.\nb, and later.",2.0\n', "It rains, today.\nb, and later."),
        ("labelled", 'label,text1\nsport,"Hello, world\nagain, here"\n', "Hello, world\nagain, here"),
        ("triples", 'anchor,negative,positive\na,b,"One, two\nthree"\n', "One, two\nthree"),
    ],
)  # fmt: skip
def test_cells_may_have_lines_with_commas(parsed, form, content, text):
    """Lines of a text look like rows by their number of commas only."""
    (row,) = parsed(CSV_OF[form], all=content)
    assert text in row
    score = {
        "sentence_separator": "\n",
        "columns": {"sentence1": "Text", "sentence2": "Text", "score": "Score"},
    }
    release = 'PairID,Text,Score\n1,"It rains, today.\nShowers fall, today.",0.9\n'
    assert parsed(CSV | score, all=release) == [("", "It rains, today.", "Showers fall, today.", 0.9)]


def test_what_was_said_decides_how_quotation_marks_are_read(parsed):
    said = [row[1] for row in parsed(TOPICS | {"quoted": True}, all=TOPIC + SAID)]
    assert said == ['He said "no" twice.', "The soup was hot."]
    text = [row[1] for row in parsed(TOPICS | {"quoted": False}, all=TOPIC + SAID)]
    assert text == ['"He said ""no"" twice."', "The soup was hot."]


@pytest.mark.parametrize(
    "text", ['"No," he said.', 'A "word" here.', '" so', 'he said "', "'So'", '"A" and "B"']
)
def test_quotation_marks_that_stand_around_no_cell_are_text(parsed, text):
    assert [row[1] for row in parsed(TOPICS, all=f"{TOPIC}{text}\tsport\n")] == [text]
    twice = QUALITY | {"columns": {"label": "label", "text1": "text", "text2": "more"}}
    assert parsed(twice, all=f"label\ttext\tmore\n1\t{text}\t{text}\n") == [("", text, text, "1")]


@pytest.mark.parametrize("quoted", [None, False, True])
@pytest.mark.parametrize("ends", ["\n\n", "\n\n\n", "\r\n\r\n", "\n"])
def test_blank_lines_are_no_rows(parsed, quoted, ends):
    rows = parsed(TOPICS | {"quoted": quoted}, all=f"{TOPIC}The team.\tsport{ends}")
    assert rows == [("", "The team.", None, "sport")]
    with pytest.raises(DataError, match="all:3: 1 columns instead of 2"):
        parsed(TOPICS | {"quoted": quoted}, all=f"{TOPIC}The team.\tsport\n \n")


def test_numbers_have_a_point_and_may_have_an_exponent(parsed):
    """Numbers are written with a point and may have an exponent."""
    numbers = {"4.5": 4.5, " 4. ": 4.0, ".5": 0.5, "-1": -1.0, "+2": 2.0, "1e-05": 1e-5, "2.5E+0": 2.5}
    for text, value in numbers.items():
        assert parsed(SCORED, all=PAIRED.replace("4.5", text)) == [("", "A dog ran.", "A cat sat.", value)]


def test_texts_of_one_word_each_are_no_header(parsed):
    assert len(parsed(NAMED, all="Good\t1\nBad\t0\nNot so good.\t0\n")) == 3
