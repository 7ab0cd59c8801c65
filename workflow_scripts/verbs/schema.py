"""Print the JSON Schema of the configuration, of a grid, or of the options of a reader of datasets.

Each key has its type, its range and its description, which an editor shows and checks. The schema of the configuration
is that of each of its files. Because files are merged, no key is required in a file, and a list can be extended
(experiments+). The schema of a reader also has the roles of its files and the rows that it returns. --json prints the
same.

  python -m workflow_scripts schema > .vscode/semblance.schema.json
"""

import json
from typing import Any

from workflow_scripts.columns import FORMS
from workflow_scripts.settings.grids import GridBlock
from workflow_scripts.settings.sources import READERS
from workflow_scripts.settings.study import Configuration
from workflow_scripts.verbs.printing import Answer, argument

_FILES: dict[str, Any] = {"configuration": Configuration, "grid": GridBlock}


def reader_schema(name: str) -> dict[str, Any]:
    """Return the options of a reader, the roles of its files and the columns of its rows."""
    takes = READERS[name]
    rows = {form: FORMS[form].names for form in takes.forms}
    return {**takes.model_json_schema(), "files": list(takes.roles), "rows": rows}


def schema_of(file: str) -> dict[str, Any]:
    """Return the schema of a kind of file."""
    schema: dict[str, Any] = _FILES[file].model_json_schema()
    return of_a_part(schema) if file == "configuration" else schema


def of_a_part(schema: Any) -> Any:
    """Return the schema of one of several merged files: no key is required, and a key with a plus extends a list.

    Several members of a union may then match, so ``oneOf`` becomes ``anyOf``.
    """
    if isinstance(schema, list):
        return [of_a_part(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    relaxed = {"anyOf" if key == "oneOf" else key: of_a_part(value) for key, value in schema.items()}
    if isinstance(relaxed.get("properties"), dict):
        relaxed = {key: value for key, value in relaxed.items() if key not in ("required", "discriminator")}
        lists = {f"{key}+": value for key, value in relaxed["properties"].items() if _may_be_a_list(value)}
        relaxed["properties"] |= lists
    return relaxed


def _may_be_a_list(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "array" or any(map(_may_be_a_list, schema.get("anyOf", ())))


ARGUMENTS = (argument("what", nargs="?", default="configuration", choices=[*_FILES, *READERS]),)


def answer(what: str) -> Answer:
    """Return a schema as JSON."""
    schema = schema_of(what) if what in _FILES else reader_schema(what)
    return Answer(parts=[json.dumps(schema, indent=1, sort_keys=True)], document=schema)
