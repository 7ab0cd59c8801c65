"""Options of dataset readers, a class a reader: every field is a key of a source's ``options``."""

from collections import Counter
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


class ColumnsConfig(ReaderConfig):
    """Options of a reader of files with columns, of which some are those of a form."""

    forms: ClassVar[tuple[str, ...]] = tuple(_REQUIRED)
    roles: ClassVar[tuple[str, ...]] = PARTS
    all_roles: ClassVar[bool] = False

    columns: dict[str, str] = Field(
        description="Column of the form to column of the file. A split of its own goes before the role of the file."
    )

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
        """Columns that are those of no form."""
        if not self.form:
            forms = (f"{', '.join(sorted(_REQUIRED[form]))} for {form}" for form in self.forms)
            yield f"columns: {', '.join(self.columns)} are of no form. Name {'; or '.join(forms)}."


class Delimited(ColumnsConfig):
    """Cells set off by tabs, commas or spaces: scored pairs, labelled texts or triples."""

    header: list[str] | None = Field(
        default=None,
        description="Names of the columns of a file that does not begin with them. Lines of pairs may have more cells, "
        "as some of STS-B's release do; those without a name are not read.",
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
    between: str = Field(
        default="",
        description="What separates the texts of a cell that several columns of the form name, as a line end those of "
        "STR's release.",
    )
    strip: bool = Field(default=False, description="Take white space off both ends of each cell.")
    remove: str = Field(
        default="", description="Characters to remove from every cell, where parts are formatted differently."
    )
    label_until: str = Field(default="", description="Keep only the part of a label before this.")
    graded: bool = Field(default=False, description="Whether labels are scores; 5.0 is written as 5.")
    otherwise: str | None = Field(default=None, description="The encoding of a file that is not UTF-8.")

    @property
    def open_ended(self) -> bool:
        """Whether lines may have cells without a name; between commas, and of labels, these are parts of a text."""
        return self.form == "pairs" and self.header is not None and (self.quoted or self.separator == "\t")

    @property
    def shared(self) -> list[str]:
        """Columns of the form that name the same column of the file."""
        named = Counter(self.columns.values())
        return [name for name, column in self.columns.items() if named[column] > 1]

    def conflicts(self) -> Iterator[str]:
        """Columns that are those of no form, that the file does not have, or whose texts cannot be told apart."""
        yield from super().conflicts()
        if self.header is not None and (missing := [*{*self.columns.values()} - {*self.header}]):
            yield f"columns: {missing[0]} is not in header. Name it there."
        if bool(self.shared) != bool(self.between) or len({self.columns[name] for name in self.shared}) > 1:
            found = f"{', '.join(self.shared) or 'no two columns'} name the same column of the file"
            yield f"between: {self.between!r}, and {found}. Set it where one cell holds several texts, and only there."


class Records(ColumnsConfig):
    """JSON lines or Parquet: scored pairs, labelled texts or triples."""

    format: Literal["json", "parquet"] = Field(description="json for an object a line, or a list of objects.")


class Lines(ReaderConfig):
    """One sentence per line, plain text or gzip; every line is a document of its own."""

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

    forms: ClassVar[tuple[str, ...]] = ("sentences",)
    roles: ClassVar[tuple[str, ...]] = ("dump",)

    min_words: int = Field(description="Shorter sentences are dropped.")
    max_words: int = Field(description="Longer sentences are dropped.")


class Wikitext(ReaderConfig):
    """Releases of Wikitext: paragraphs are split into sentences, headings are dropped, each paragraph is a document."""

    forms: ClassVar[tuple[str, ...]] = ("sentences",)

    unknown: str | None = Field(description="Replacement for <unk>; null leaves it as it is.")
    min_characters: int = Field(description="Shorter sentences are dropped; the extraction study uses 10.")


READERS: dict[str, type[ReaderConfig]] = {
    "class_files": ClassFiles,
    "delimited": Delimited,
    "lee": Lee,
    "lines": Lines,
    "records": Records,
    "wikipedia_xml": WikipediaXml,
    "wikitext": Wikitext,
}
"""Modules of ``data/readers``, with the classes of their options."""
