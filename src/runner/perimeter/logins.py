# SPDX-License-Identifier: Apache-2.0
"""Which credential a page is asked for with, and whether something holds one. Pure.

Owns both questions. A credential goes with a request to the one host and port of its place, by https, and
with no other; and nothing that a server said is shown, or sent, while one stands in it that the server had.
Leaves where pages may be asked for to the policy, and adding the header to the transport. Carries I5.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.kernel.ports import Credential
from runner.kernel.web import Place, Url
from runner.perimeter.classify.decode import UNPACKABLE
from runner.perimeter.classify.readings import UNREAD, every_reading, forget_readings
from runner.perimeter.classify.views import fold

SHORTEST: Final = 8
"""Characters of the shortest last part, or password, that is told from a word of a page."""
_MARKED: Final = 12
"""Characters from which another part is no name of a scheme, a parameter or a user, if it has a digit."""
_BETWEEN: Final = re.compile(r"[\s:,;=\"']+")
"""What stands between the parts of a credential."""
_LOOSE: Final = b" \t\r\n\\-"
"""What stands within a long word that was wrapped, written into JSON, or written with or without dashes."""
_ROOM: Final = 2048
_SPELLED: Final = 8
"""How much longer a credential is in a usual encoding, at most; it is looked for with `_ROOM` beside it."""
_PIECES: Final = 4
"""How often what two neighbouring pieces of a text share fits into one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """The credentials of pages, each by the place it is for. No repr shows one."""

    by_place: Mapping[Place, Credential] = field(default_factory=dict)

    @property
    def every(self) -> tuple[Credential, ...]:
        """All of them."""
        return tuple(self.by_place.values())

    def credential_for(self, url: Url) -> Credential | None:
        """Return the credential that `url` is asked for with; None for none."""
        place = login_place(self.by_place, url)
        return None if place is None else self.by_place[place]


NOBODY: Final = Logins()
"""No credential for any page."""


def login_place(places: Iterable[Place], url: Url) -> Place | None:
    """Return which of `places`, each with a credential, `url` lies in; None for none, and without https."""
    if url.scheme != "https":
        return None
    return next((place for place in places if not place.is_open and place.holds(url)), None)


def stand_in(credentials: Iterable[Credential], *texts: str, unread: bool = False) -> bool:
    """Return whether one of `credentials` stands in `texts`, however it is spelled there.

    Spelled is: in capitals or none, with or without dashes, with escapes, encoded, or written apart, as far
    as the classifier reads on; where it does not, the answer is `unread`. A text is read whole, in pieces
    that overlap by more than what a credential takes in a usual encoding.
    """
    secrets = {_plain(fold(secret).data) for each in credentials for secret in _secrets(each.value)} - {b""}
    if not secrets:
        return False
    overlap = _SPELLED * (_ROOM + max(map(len, secrets)))
    try:
        return any(_holds(text, secrets, overlap, unread=unread) for text in texts)
    finally:
        forget_readings()


def is_told_apart(token: str) -> bool:
    """Return whether `token` is long enough that a page which holds it repeats it, and no common word.

    Of a basic login (RFC 7617) that is its password.
    """
    as_it_is, *inside = _in_parts(token)
    judged = (as_it_is, *inside) if token.lower().startswith("basic ") else (as_it_is,)
    return all(any(_counting(parts)) for parts in judged)


def _holds(text: str, secrets: set[bytes], overlap: int, *, unread: bool) -> bool:
    plain = _plain(fold(text).data)
    if any(secret in plain for secret in secrets):
        return True
    for at in range(0, max(1, len(text) - overlap), (_PIECES - 1) * overlap):
        for reading in every_reading(text[at : at + _PIECES * overlap]):
            if unread and (reading.data == UNREAD or UNPACKABLE in reading.data):
                return True
            plain = _plain(reading.data)
            if any(secret in plain for secret in secrets):
                return True
    return False


def _plain(data: bytes) -> bytes:
    return data.translate(None, _LOOSE).lower()


def _secrets(value: str) -> Iterator[str]:
    """Yield what of a credential nobody may read: all of it, and what counts of its parts."""
    yield value
    for parts in _in_parts(value):
        yield from _counting(parts)


def _counting(parts: Sequence[str]) -> Iterator[str]:
    """Yield the last of `parts` if it is long, and each other that is longer and has a digit.

    So the name of a scheme, of a parameter or of a user is no secret.
    """
    for part in parts[:-1]:
        if len(part) >= _MARKED and any(map(str.isdecimal, part)):
            yield part
    yield from (part for part in parts[-1:] if len(part) >= SHORTEST)


def _in_parts(value: str) -> Iterator[Sequence[str]]:
    """Yield the parts of `value`, and those of each text that one of them is in base64.

    The last part of such a text is all behind its first colon, as the password of a basic login is.
    """
    parts = _parts(value)
    yield parts
    for part in parts:
        if text := _decoded(part):
            user, _, password = text.partition(":")
            yield [*_parts(text), password or user]


def _parts(text: str) -> Sequence[str]:
    return [part for part in _BETWEEN.split(text) if part]


def _decoded(part: str) -> str | None:
    """Return the text that `part` is in base64, in UTF-8 or else in Latin-1; None where it is none."""
    standard = part.replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(standard + "=" * (-len(part) % 4), validate=True)
    except binascii.Error:
        return None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text if text.isprintable() else None
