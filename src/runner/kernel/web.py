# SPDX-License-Identifier: Apache-2.0
"""Addresses of pages: one strict reading of a URL, and the places that a grant names. Pure and total.

Owns the only parser of URLs that decides anything: policy, gate and tool judge, record and send the parts it
finds, and never read the text again. So there are no two readers to disagree. It refuses what is unusual: a
user, a backslash, white space, letters beyond ASCII, a number for a host, a dot at its end, capitals in it,
and a path that hides a dot or a slash. Leaves what a name means to the transport. Serves I1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from runner.kernel.inference import Address

LONGEST_URL: Final = 2048
"""Characters of the longest address that is read."""
USUAL_PORTS: Final = {"https": 443, "http": 80}
"""The port of a scheme when an address names none."""
_MOST_PORT: Final = 0xFFFF
_MOST_HOST: Final = 253
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LAST: Final = r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
_NAME: Final = rf"(?:{_LABEL}\.)+{_LAST}"
"""A host's name of two labels or more, the last of which begins with a letter: so it is never a number."""
_CHAR: Final = r"[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2}"
_URL: Final = re.compile(
    rf"(https?)://({_NAME})(?::([1-9][0-9]{{0,4}}))?((?:{_CHAR})*)(\?(?:{_CHAR}|\?)*)?(?:#(?:{_CHAR}|\?)*)?"
)
_HOST: Final = re.compile(rf"{_NAME}|\*\.(?:{_LABEL}\.)*{_LAST}")
_HIDING: Final = re.compile(
    r"%(?:[01][0-9a-f]|25|2e|2f|5c|7f|c[01]|e0%[89]|f0%8|f[5-9a-f]|ef%bc%(?:8[ef]|bc))", re.IGNORECASE
)
"""Escapes that write a dot, a slash, a backslash, a control or an escape in another way: in too many bytes of
UTF-8, and in full width, too."""
_DOTS: Final = re.compile(r"\.\.?(?:(?:;|%3b|%20).*)?", re.IGNORECASE)
"""A segment of dots; what follows a semicolon or a space is dropped by some servers."""
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_TAIL: Final = re.compile(r"[?#]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """An address of a page: `path` begins with a slash, `query` is empty or begins with a question mark."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @property
    def address(self) -> Address:
        """Where a request for it goes."""
        return Address(scheme=self.scheme, host=self.host, port=self.port)

    @property
    def target(self) -> str:
        """What a request for it asks that host for."""
        return self.path + self.query

    @property
    def origin(self) -> str:
        """Scheme, host and port, as in a URL."""
        port = "" if self.port == USUAL_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"

    def __str__(self) -> str:
        """Return the one spelling of this address."""
        return self.origin + self.target

    @property
    def spellings(self) -> tuple[str, ...]:
        """How people write it: whole, without `https://`, and without the slash of an empty path."""
        texts = [str(self), *([str(self).removesuffix("/")] if self.target == "/" else [])]
        return (*texts, *(text.removeprefix("https://") for text in texts if text.startswith("https://")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """As whom pages are asked for: the reference of a `credential`, never the credential itself (I5).

    It is sent in `header` as it is; None sends it as a bearer token.
    """

    credential: str
    header: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a grant lets pages be asked for: `host` is one name, or `*.` and the end of many.

    `paths` are prefixes by whole segments; "/" is every path. `port` None is the usual one. `plain` says that
    http will do as well as https. `login` None asks as nobody.
    """

    host: str
    paths: tuple[str, ...] = ("/",)
    port: int | None = None
    plain: bool = False
    login: Login | None = None

    @property
    def is_open(self) -> bool:
        """Whether it names no host, but an ending: then part of the name is whoever writes it to choose."""
        return self.host.startswith("*.")

    def holds(self, url: Url) -> bool:
        """Return whether `url` lies here."""
        named = url.host.endswith(self.host[1:]) if self.is_open else url.host == self.host
        scheme = url.scheme == "https" or self.plain
        port = url.port == (USUAL_PORTS[url.scheme] if self.port is None else self.port)
        return named and scheme and port and any(is_prefix(url.path, prefix) for prefix in self.paths)


def place_of(url: Url, places: Sequence[Place]) -> Place | None:
    """Return the place that `url` lies in, one that names its host rather than an ending; None for none."""
    holding = [place for place in places if place.holds(url)]
    return min(holding, key=lambda place: place.is_open, default=None)


def parse_url(text: str) -> Url | None:
    """Return the address that `text` is; None for what is none, and for what is unusual. Drops a fragment."""
    match = _URL.fullmatch(text) if len(text) <= LONGEST_URL else None
    if match is None:
        return None
    scheme, host, port, path, query = match.groups()
    number = int(port or USUAL_PORTS[scheme])
    if number > _MOST_PORT or not is_host(host) or not is_plain_path(path or "/"):
        return None
    return Url(scheme=scheme, host=host, port=number, path=path or "/", query=query or "")


def is_host(text: str) -> bool:
    """Return whether `text` is a host's name as a grant writes it, or `*.` and the end of one."""
    return len(text) <= _MOST_HOST and _HOST.fullmatch(text) is not None


def is_plain_path(path: str) -> bool:
    """Return whether `path` begins with one slash, has no segment of dots and hides nothing in escapes."""
    dots = any(_DOTS.fullmatch(segment) for segment in path.split("/"))
    return path.startswith("/") and not path.startswith("//") and not dots and not _HIDING.search(path)


def follow(base: Url, reference: str) -> Url | None:
    """Return the address that `reference`, found at `base`, is; None as `parse_url`.

    Resolved as RFC 3986, section 5.3, without the forms that hardly anybody writes.
    """
    if len(reference) > LONGEST_URL:
        return None
    if _SCHEME.match(reference):
        return parse_url(reference)
    if reference.startswith("//"):
        return parse_url(f"{base.scheme}:{reference}")
    if not reference or reference.startswith("#"):
        return base
    if reference.startswith("?"):
        return parse_url(f"{base.origin}{base.path}{reference}")
    path = _TAIL.split(reference, maxsplit=1)[0]
    whole = path if path.startswith("/") else base.path.rpartition("/")[0] + "/" + path
    return parse_url(base.origin + _without_dots(whole) + reference[len(path) :])


def is_prefix(path: str, prefix: str) -> bool:
    """Return whether `path` is `prefix`, or lies below it by whole segments."""
    return path == prefix or path.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def _without_dots(path: str) -> str:
    """Return `path` with its segments of dots carried out (RFC 3986, section 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            kept = kept[:-1]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)
