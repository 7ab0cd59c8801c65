"""BibTeX of this software and of the papers of methods, from the references of ``CITATION.cff``."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

OF_METHODS: Mapping[str, Sequence[str]] = {
    "diffcse": ("DiffCSE",),
    "distil": ("JTCSE",),
    "ensemble": ("JTCSE",),
    "frozen": (),
    "informin_cl": ("InforMin-CL",),
    "jtcse": ("JTCSE",),
    "llm2vec": ("LLM2Vec",),
    "promptbert": ("PromptBERT",),
    "repooled": (),
    "simcse": ("SimCSE",),
    "sscl": ("SSCL",),
    "supervised_simcse": ("SimCSE",),
    "three_r": ("3R",),
}
"""Papers to cite for a method, by its module, as abbreviations of references."""
OF_READOUTS: Mapping[str, Sequence[str]] = {"s2sent": ("S2Sent",), "layer_attention": ("LayerAttPooler",)}
"""Papers to cite for a readout, by its kind."""


def papers_of(method: Mapping[str, Any]) -> list[str]:
    """Return the papers to cite for the settings of a method: its own, its readout's and those of its base."""
    readout = method.get("readout") or {}
    cited = [*OF_METHODS[method["module"]], *OF_READOUTS.get(readout.get("kind", ""), ())]
    base = papers_of(method["base"]) if method.get("base") else []
    return [*dict.fromkeys([*cited, *base])]


def bibtex(citation: Mapping[str, Any], papers: Sequence[str]) -> str:
    """Return BibTeX entries of some papers and of the software.

    Args:
        citation: The contents of ``CITATION.cff``.
        papers: Abbreviations of its references.
    """
    by_name = {
        reference["abbreviation"]: reference
        for reference in citation["references"]
        if "abbreviation" in reference
    }
    entries = [_entry("misc", name, by_name[name], str(by_name[name]["year"])) for name in papers]
    year = str(citation["date-released"])[:4]
    return "\n\n".join([*entries, _entry("software", "Semblance", citation, year)])


def _entry(kind: str, name: str, cited: Mapping[str, Any], year: str) -> str:
    """Return one entry; a name in two braces is an organisation's."""
    authors = " and ".join(
        f"{author['family-names']}, {author['given-names']}"
        if "family-names" in author
        else f"{{{author['name']}}}"
        for author in cited["authors"]
    )
    fields = {"title": f"{{{cited['title']}}}", "author": authors, "year": year}
    fields |= {"version": str(cited["version"])} if "version" in cited else {}
    fields |= {"url": link} if (link := cited.get("url") or cited.get("repository-code")) else {}
    lines = ",\n".join(f"  {field} = {{{value}}}" for field, value in fields.items())
    return f"@{kind}{{{re.sub(r'[^a-z0-9]', '', name.lower())}{year},\n{lines}\n}}"
