"""What readers of datasets take, a module a reader, imported by the name in the configuration."""

from collections.abc import Iterator
from typing import ClassVar

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
