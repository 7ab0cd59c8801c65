"""Options of reader delimited."""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field

from workflow_scripts.settings.readers import PARTS, ReaderConfig

_REQUIRED = {
    "pairs": {"sentence1", "sentence2", "score"},
    "labelled": {"text1", "label"},
    "triples": {"anchor", "positive"},
}
_OTHER = {"pairs": {"subset"}, "labelled": {"text2", "split"}, "triples": {"negative"}}


class Config(ReaderConfig):
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
