"""Options of dataset readers, a class a reader: every field is a key of a source's ``options``."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.config import Settings

PARTS = ("train", "dev", "test", "all")
"""Roles of the parts of a task; ``all`` is the one part of a task without splits."""

_REQUIRED = {
    "pairs": {"sentence1", "sentence2", "score"},
    "labelled": {"text1", "label"},
    "triples": {"anchor", "positive"},
}
_OTHER = {"pairs": {"subset"}, "labelled": {"text2", "split"}, "triples": {"negative"}}


class ReaderConfig(Settings):
    """Options of a reader: every field is a key of ``options`` of a source."""

    module: ClassVar[str] = "rows"
    """Module of ``data/readers`` with the function that reads."""
    forms: ClassVar[tuple[str, ...]]
    """Forms of the rows that it returns."""
    roles: ClassVar[tuple[str, ...]] = ()
    """Roles of files; none if any name will do."""
    all_roles: ClassVar[bool] = True
    """Whether each role must have a file."""

    @property
    def returns(self) -> tuple[str, ...]:
        """The forms of the rows that these options give."""
        return self.forms


class Delimited(ReaderConfig):
    """Cells set off by tabs, commas or spaces: scored pairs, labelled texts or triples."""

    forms: ClassVar[tuple[str, ...]] = tuple(_REQUIRED)
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    columns: dict[str, str] = Field(
        description="Column of the form to column of the file. A split of its own goes before the role of the file."
    )
    header: list[str] | None = Field(
        default=None, description="Names of the columns of a file that does not begin with them."
    )
    separator: str = Field(
        default="\t",
        min_length=1,
        max_length=1,
        description="Character between cells. After spaces, the last column of header holds the rest of its line.",
    )
    quoted: bool = Field(
        default=False,
        description="Whether cells may stand in quotation marks, as in CSV, and then hold separators and line ends.",
    )
    strip: bool = Field(default=False, description="Take white space off both ends of each cell.")
    remove: str = Field(
        default="", description="Characters to remove from every cell, where parts are formatted differently."
    )
    label_until: str = Field(default="", description="Keep only the part of a label before this.")
    graded: bool = Field(default=False, description="Whether labels are scores; 5.0 is written as 5.")
    otherwise: str | None = Field(default=None, description="The encoding of a file that is not UTF-8.")

    @property
    def form(self) -> str | None:
        """The form that has these columns; None if there is none."""
        given = self.columns.keys()
        return next(
            (form for form in self.forms if _REQUIRED[form] <= given <= _REQUIRED[form] | _OTHER[form]), None
        )

    @property
    def returns(self) -> tuple[str, ...]:
        """The one form of these columns."""
        return (self.form,) if self.form else ()

    def conflicts(self) -> Iterator[str]:
        """Columns that are those of no form, or that the file does not have."""
        if not self.form:
            forms = (f"{', '.join(sorted(_REQUIRED[form]))} for {form}" for form in self.forms)
            yield f"columns: {', '.join(self.columns)} are of no form. Name {'; or '.join(forms)}."
        if self.header is not None and (missing := [*{*self.columns.values()} - {*self.header}]):
            yield f"columns: {missing[0]} is not in header. Name it there."


class Lines(ReaderConfig):
    """One sentence per line, plain text or gzip; every line is a document of its own."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("text",)

    cleaning: Literal["none", "sentences"] = Field(
        default="sentences",
        description="none keeps every line as it is; sentences normalises white space, and drops blank lines, "
        "repeated ones, and those that are too short or too long.",
    )
    min_words: int = Field(default=1, description="Shorter lines are dropped, where lines are cleaned.")
    max_words: int = Field(default=1000, description="Longer lines are dropped, where lines are cleaned.")


class ClassFiles(ReaderConfig):
    """One file per class, one text per line: MR, CR, SUBJ and MPQA as distributed with SentEval."""

    forms: ClassVar[tuple[str, ...]] = ("labelled",)


class Lee(ReaderConfig):
    """Lee and Pincombe's 50 news documents with the mean human rating of each of 1,225 pairs."""

    forms: ClassVar[tuple[str, ...]] = ("pairs",)
    roles: ClassVar[tuple[str, ...]] = ("documents", "ratings")


class WikipediaXml(ReaderConfig):
    """Sentences of a MediaWiki XML dump, without markup."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("dump",)

    min_words: int = Field(description="Shorter sentences are dropped.")
    max_words: int = Field(description="Longer sentences are dropped.")


class Wikitext(ReaderConfig):
    """Releases of Wikitext: paragraphs are split into sentences, headings are dropped, each paragraph is a document."""

    module: ClassVar[str] = "sentences"
    forms: ClassVar[tuple[str, ...]] = ("sentences",)

    unknown: str | None = Field(description="Replacement for <unk>; null leaves it as it is.")
    min_characters: int = Field(description="Shorter sentences are dropped; the extraction study uses 10.")


READERS: dict[str, type[ReaderConfig]] = {
    "class_files": ClassFiles,
    "delimited": Delimited,
    "lee": Lee,
    "lines": Lines,
    "wikipedia_xml": WikipediaXml,
    "wikitext": Wikitext,
}
"""Readers, which are functions of these names in ``data/readers``, with the classes of their options."""
