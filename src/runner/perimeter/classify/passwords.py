# SPDX-License-Identifier: Apache-2.0
"""What a secret looks like that stands behind its name.

Owns the two checks for it and the words of programs that are no secrets. Leaves the shapes of keys and tokens
to `credentials`. Each check is pure and total over ASCII strings of bounded length.
Carries I6 in part, and its price: an example, a template or the name of a variable is no password.
"""

import re
from typing import Final

_PLACEHOLDER: Final = re.compile("x{3,}|example|changeme|placeholder|your|redacted")
"""A word that stands for a value. Beside other letters, or words of people, it may be part of one."""
_NOTHING: Final = frozenset({"none", "null"})
_SECRET: Final = re.compile("(?:token|secret|key|credential)s?")
_PROGRAM: Final = re.compile(
    f"{_SECRET.pattern}|access|api|auth|aws|bit|cached|client|completion|config|context|count|csrf|db|env|file|id|"
    "input|jwt|k8s|limit|max|min|name|num|oauth|output|passwd|password|path|prompt|ref|refresh|s3|size|type|url|"
    "value"
)
"""Words that names in programs are made of: closed, and none that people choose. One more frees passwords."""
_PART: Final = re.compile("(k8s|s3|[a-z]+)?([0-9]{0,3})")
"""A word of a name that programmers give: `max`, `tokens2`, `k8s`; or a short number."""
_MASK: Final = re.compile(r"\*{3,}|\.{3,}")
_SHOWN: Final = 6
"""Letters and digits that a masked secret may still show."""


_REFERENCE: Final = re.compile(
    r"[<{(\[]|\$(?:[{(]|(?:[A-Z_][0-9A-Z_]*|[a-z_]+)$)|%(?:\(|[0-9A-Z_a-z]+%)|[A-Za-z_][0-9A-Z_a-z.:]*\(|os\.environ"
)
"""A template (`<password>`, `${VAR}`, `%VAR%`), a variable of a shell, a call or attribute of a program."""


def _words_of(value: str) -> list[str]:
    """Return the words of a name, in one case and with one short number at most; none for what is no name."""
    plain = value.strip("!?#").replace("-", "_").replace(".", "_")
    if plain not in (plain.lower(), plain.upper()):
        return []  # a name is not written in both; what is generated is
    found = [_PART.fullmatch(part) for part in plain.lower().split("_") if part]
    parts = [(match[1] or "", match[2]) for match in found if match is not None]
    if len(parts) < len(found) or sum(number != "" for _, number in parts) > 1:
        return []
    return [word for word, _ in parts if word]


def _is_placeholder(value: str) -> bool:
    """Say whether `value` is a placeholder and nothing else (`your_api_key`, `none`), or masked."""
    if _MASK.search(value):
        return sum(map(str.isalnum, value)) <= _SHOWN
    words = _words_of(value)
    others = [word for word in words if not _PLACEHOLDER.fullmatch(word)]
    if len(others) == len(words):
        return len(words) == 1 and words[0] in _NOTHING
    return all(map(_PROGRAM.fullmatch, others))


def _names_a_secret(value: str) -> bool:
    """Say whether `value` is what programs call a secret, every word of it: `max_tokens2`, `k8s-secret`."""
    words = _words_of(value)
    return len(words) > 1 and all(map(_PROGRAM.fullmatch, words)) and any(map(_SECRET.fullmatch, words))


def secret_value(candidate: str) -> int:
    """Accept what follows `token=` as `password_value` does, unless it is the name of a secret."""
    return 0 if _names_a_secret(candidate.rstrip(".,;:)!?")) else password_value(candidate)


def password_value(candidate: str) -> int:
    """Accept what follows `password=` when it looks chosen or generated, not like a word or a variable.

    At least six characters, of two kinds out of letters, digits and signs; no placeholder, no template
    (`${VAR}`, `<password>`), no call or attribute of a program. A password may look like any name.
    """
    value = candidate.rstrip(".,;:)!?")
    if len(value) < 6 or _is_placeholder(value) or _REFERENCE.match(value):  # noqa: PLR2004 - shortest secret
        return 0
    if len(set(value)) < 4:  # noqa: PLR2004 - "aaaa", "1212"
        return 0
    letters = any(character.isalpha() for character in value)
    digits = any(character.isdigit() for character in value)
    signs = any(not character.isalnum() and character not in "._-/'" for character in value)
    return len(value) if digits + letters + signs > 1 else 0
