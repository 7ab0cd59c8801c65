"""How a saved model is loaded and used, as its folder and its card say."""

import json
from pathlib import Path

FRONT_MATTER = "---\nlibrary_name: sentence-transformers\npipeline_tag: sentence-similarity\n---\n"
README_FILE = "README.md"
_REASONS = {
    "encoder_sum": "adds up the vectors of several encoders",
    "prompted_transformer": "puts each sentence into a prompt",
}


def usage(folder: Path) -> str:
    """The section of a card that says how to load the model of ``folder``, in Markdown."""
    types = [module["type"] for module in json.loads((folder / "modules.json").read_text("utf-8"))]
    own = [name.split(".")[0] for name in types if not name.startswith("sentence_transformers.")]
    trust = ", trust_remote_code=True" if own else ""
    lines = [
        "## Use",
        "",
        "```python",
        "from sentence_transformers import SentenceTransformer",
        "",
        f'model = SentenceTransformer("path/to/this/folder"{trust})',
        'vectors = model.encode(["A sentence.", "Another one."])',
        "print(model.similarity(vectors, vectors))",
        "```",
        "",
    ]
    if own:
        reasons = " and ".join(
            _REASONS.get(name, "reads the hidden states of several layers") for name in own
        )
        lines += [
            f"This model {reasons}, for which sentence-transformers has no module of its own. The `.py` files in "
            "this folder do it, and run only with `trust_remote_code=True`. They are copies of files of Semblance, "
            "and `record.json` lists their hashes.",
            "",
        ]
    lines.append(_of_auto_model(folder, types))
    return "\n".join(lines) + "\n"


def _of_auto_model(folder: Path, types: list[str]) -> str:
    if "architectures" in json.loads((folder / "config.json").read_text("utf-8")):
        steps = " and ".join(f"`{name}`" for name in types[1:])
        return f"`transformers.AutoModel` loads the encoder alone; {steps} in `modules.json` say how it is pooled."
    return "`transformers.AutoModel` refuses this folder: the encoder in it is only a part of the model."


def readme(folder: Path) -> str:
    """The card of a model that nobody has evaluated yet."""
    start = "# A sentence encoder\n\nMade by Semblance; `record.json` says from what, by which settings and code.\n\n"
    return f"{FRONT_MATTER}\n{start}{usage(folder)}"
