# SPDX-License-Identifier: Apache-2.0
"""Where a text leads: the addresses in what is said to somebody, and whether the user named each. Total.

Owns finding them, as a reader, a mail program or a browser would: links, hosts, mail, numbers of hosts, in
the text as it is and with the escapes of HTML and of URLs carried out. Every pattern begins at one place of a
run, so time is linear. Leaves what is named to `named.py`. Carries I1: a link nobody named is asked about.
"""

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from runner.kernel.shown import is_seen
from runner.perimeter.named import is_named

_DEPTH: Final = 4
"""How many times escapes are carried out."""
_BYTES: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_BIG_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2})"
_REST: Final = r"[^\s<>\"]"
_ADDRESS: Final = re.compile(
    rf"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{{1,15}}:[/\\]{{2}}{_REST}+"
    rf"|(?<!\w)(?:https?|ftps?|wss?|javascript|vbscript):{_REST}+|(?<!\w)(?:file|smb):[/\\]{_REST}+"
    rf"|(?<![\w/\\])[/\\]{{2,}}+(?=[\w\[]){_REST}+"
    rf"|(?<![\w.-])www\.{_REST}+"
    r"|(?<![^\s<>\"@])[^\s<>\"@]++@[^\s<>\"@]+"
    rf"|(?<![\w.-])(?=[\w.-]*?[^\W_]\.[^\W\d_]{{2}})[\w.-]++(?::[0-9]+)?(?:[/?#\\]{_REST}*)?"
    rf"|(?<![\w.-]){_OCTET}(?:\.{_OCTET}){{3}}(?:[/?#\\]{_REST}|:[0-9]){_REST}*"
    rf"|(?<![\w.-])(?=[0-9.]{{0,8}}{_BIG_OCTET}(?![0-9])){_OCTET}(?:\.{_OCTET}){{3}}(?!\.?[\w-])"
    rf"|\[(?=[0-9a-f:.]{{0,45}}::|(?:[0-9a-f]{{1,4}}:){{7}})[0-9a-f:.]{{2,45}}(?:%\w+)?\]{_REST}*",
    re.IGNORECASE,
)
"""In order: a scheme and slashes; one that needs none; slashes alone; `www`; mail; a name; IPv4, with more
behind it, or too large for the number of a clause; IPv6."""


def addresses_in(text: str) -> tuple[str, ...]:
    """Return what in `text` a reader, or a program that makes links, could follow: addresses, hosts, mail."""
    return tuple(dict.fromkeys(address for level in _levels(text) for address in _found(level)))


def leads_where_named(text: str, said: str) -> bool:
    """Return whether `said` names each address in `text`: what escapes hide, as the escapes in `said` do."""
    spoken = _levels_said(said)
    return all(
        any(is_named(address, each) for each in {said, spoken[min(depth, len(spoken) - 1)]})
        for depth, level in enumerate(_levels(text))
        for address in _found(level)
    )


def _levels(text: str) -> Iterator[str]:
    """Yield `text`, and what it is with the escapes in it carried out, again until nothing changes."""
    yield text
    for _ in range(_DEPTH):
        plain = _BYTES.sub(_bytes, html.unescape(text))
        if plain == text:
            return
        yield (text := plain)


def _bytes(escaped: re.Match[str]) -> str:
    return bytes.fromhex(escaped.group().replace("%", "")).decode("utf-8", "replace")


@lru_cache(maxsize=64)
def _levels_said(said: str) -> tuple[str, ...]:
    return tuple(_levels(said))


def _found(text: str) -> Iterator[str]:
    """Yield the addresses in `text` as it is, and as compatibility characters and invisible ones leave it."""
    bare = "".join(char for char in unicodedata.normalize("NFKC", text) if is_seen(char) or char.isspace())
    for each in dict.fromkeys((text, bare.replace("\u3002", "."))):
        for match in _ADDRESS.finditer(each):
            yield match.group().lstrip("([").rstrip(".,;:!?)]}'\"")
