"""The key of a job: one hash of everything that decides what it makes, known before the job begins.

Two jobs with the same key make the same files. Whoever asks whether something has to be made again compares this key
and nothing else: checkpoints, the cache, and the audit.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

_LARGEST_EXACT = 2**53  # above, not every whole number has a float of its own


def job_key(
    rule: str,
    *,
    wildcards: Mapping[str, str],
    settings: Mapping[str, Any],
    inputs: Mapping[str, str],
    meaning: Mapping[str, str],
    packages: Mapping[str, str],
) -> str:
    """Hash what decides a job's result; 64 hexadecimal digits.

    Args:
        rule: Name of the rule.
        wildcards: What distinguishes the job from others of its rule.
        settings: The slice of the configuration that it reads.
        inputs: Role to the identity of each input (``artefacts.identity``); of files that share a role, which are named
            ``role/path``, the order counts.
        meaning: Each file of its code to the hash of its meaning (``closure.meanings``).
        packages: Versions of the packages that can change a number (``closure.packages``).
    """
    by_role = sorted(inputs.items(), key=lambda given: given[0].partition("/")[0])
    decides = {
        "rule": rule,
        "wildcards": dict(wildcards),
        "settings": canonical(dict(settings)),
        "inputs": by_role,
        "meaning": dict(meaning),
        "packages": dict(packages),
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def canonical(value: Any) -> Any:
    """Settings in the one form that equal ones share: a number without a fraction is whole, so that 0.0 is 0."""
    match value:
        case Mapping():
            return {key: canonical(below) for key, below in value.items()}
        case list() | tuple():
            return [canonical(below) for below in value]
        case float() if value.is_integer() and abs(value) < _LARGEST_EXACT:
            return int(value)
        case _:
            return value
