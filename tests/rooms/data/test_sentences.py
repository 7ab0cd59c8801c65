import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.columns import SENTENCES
from workflow_scripts.data.readers.sentences import keep_sentences, split_sentences


@pytest.mark.parametrize(
    ("paragraph", "sentences"),
    [
        ("One ends. Two begins! Does three? Yes.", ["One ends.", "Two begins!", "Does three?", "Yes."]),
        # abbreviations
        ("He met Dr. Smith and Mr. Jones. They left.", ["He met Dr. Smith and Mr. Jones.", "They left."]),
        ("See Fig. 3 and vol. 2. It is there.", ["See Fig. 3 and vol. 2.", "It is there."]),
        ("Cats, dogs, etc. They eat.", ["Cats, dogs, etc. They eat."]),  # cannot be told from "etc. Smith"
        ("It was sent on Jan. 5. He read it.", ["It was sent on Jan. 5.", "He read it."]),
        ("Many fruits (e.g. Apples) are red. So it is.", ["Many fruits (e.g. Apples) are red.", "So it is."]),
        # initials
        (
            "J. R. R. Tolkien wrote it. C. S. Lewis read it.",
            ["J. R. R. Tolkien wrote it.", "C. S. Lewis read it."],
        ),
        ("The U.S. Army came. The U.S.A. Team won.", ["The U.S. Army came.", "The U.S.A. Team won."]),
        # numbers
        ("Pi is 3.14159 or so. Then 2.5 million came.", ["Pi is 3.14159 or so.", "Then 2.5 million came."]),
        ("It costs $4.50. 20 people paid.", ["It costs $4.50.", "20 people paid."]),
        # quotation marks and brackets
        ('He said "Go." Then he went.', ['He said "Go."', "Then he went."]),
        ("It was 'done.' She left.", ["It was 'done.'", "She left."]),
        ('She left. "Why?" he asked.', ["She left.", '"Why?" he asked.']),
        ("It ended (at last.) Then it began.", ["It ended (at last.)", "Then it began."]),
        ("It ended. (Not for long.) It began.", ["It ended.", "(Not for long.)", "It began."]),
        ('"Is it?" "It is."', ['"Is it?"', '"It is."']),
        # marks that end no sentence
        ("Version 2.0 of node.js runs. It is fast.", ["Version 2.0 of node.js runs.", "It is fast."]),
        ("The band Yahoo! plays here... and there.", ["The band Yahoo! plays here... and there."]),
        ("No end in sight", ["No end in sight"]),
        # white space
        ("  Two\twords.\n\nNext   line.\u00a0Last one. ", ["Two words.", "Next line.", "Last one."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_a_paragraph_is_split_at_ends_of_sentences(paragraph, sentences):
    assert split_sentences(paragraph) == sentences


@given(st.text(alphabet="aB3 .!?\"')(\n", max_size=60))
def test_nothing_but_white_space_is_lost_or_added(paragraph):
    pieces = split_sentences(paragraph)
    assert " ".join(pieces).split() == paragraph.split()
    assert all(piece == piece.strip() and piece for piece in pieces)


def test_each_sentence_is_kept_once_and_drops_are_counted():
    """Each sentence is kept once with its place and drops are counted."""
    documents = [["one", "one two", "a b c d"], [], ["one two", "a b c d e", "x  y", "one two"]]
    table, dropped = keep_sentences(documents, min_words=2, max_words=4)
    assert table.schema == SENTENCES
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("one two", 0, 1),
        ("a b c d", 0, 2),
        ("x  y", 2, 2),
    ]
    assert dropped == {"under 2 words": 1, "over 4 words": 1, "repeated": 2}
