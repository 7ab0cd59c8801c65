"""The key of a job: one hash of everything that determines its result, known before the job starts.

Two jobs with the same key make the same files. Checkpoints, the cache, ``stale`` and ``verify`` compare only this key.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_LARGEST_EXACT = 2**53  # larger whole numbers may share a float


def job_key(
    rule: str,
    *,
    wildcards: Mapping[str, str],
    settings: Mapping[str, Any],
    inputs: Mapping[str, str | Mapping[str, str]],
    code_hashes: Mapping[str, str],
    packages: Mapping[str, str],
) -> str:
    """Return the hash of everything that determines a job's result, as 64 hexadecimal digits.

    Args:
        rule: Name of the rule.
        wildcards: Values that distinguish the job from others of its rule.
        settings: The slice of the configuration that the job reads.
        inputs: Identities (``artefacts.identity``) by role or, if a role may have several files, by path in order.
        code_hashes: Hashes of the syntax trees of the job's code by file (``closure.code_hashes``).
        packages: Versions of the packages that can change a number (``closure.packages``).
    """
    decides = {
        "rule": rule,
        "wildcards": dict(wildcards),
        "settings": canonical(dict(settings)),
        "inputs": [*_identities(inputs)],
        "meaning": dict(code_hashes),
        "packages": dict(packages),
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def _identities(inputs: Mapping[str, str | Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield a name and the identity of each input, roles in alphabetical order."""
    for role, given in sorted(inputs.items()):
        if isinstance(given, str):
            yield role, given
        else:
            yield from ((f"{role}/{path}", identity) for path, identity in given.items())


def is_key(text: str) -> bool:
    """Return whether a text has the form of a key."""
    return bool(re.fullmatch("[0-9a-f]{64}", text))


def canonical(value: Any) -> Any:
    """Return settings in the form that equal settings share: floats without a fraction become integers (0.0 is 0)."""
    match value:
        case Mapping():
            return {key: canonical(item) for key, item in value.items()}
        case list() | tuple():
            return [canonical(item) for item in value]
        case float() if value.is_integer() and abs(value) < _LARGEST_EXACT:
            return int(value)
        case _:
            return value
