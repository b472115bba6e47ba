# SPDX-License-Identifier: Apache-2.0
"""Which credential a page is asked for with, and whether something holds one. Pure.

Owns both questions. A credential goes with a request to the one host and port of its place, by https, and
with no other; and nothing that a server said is shown, or sent, while one stands in it. Leaves where pages
may be asked for to the policy, and adding the header to the transport. Carries I5.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from runner.kernel.ports import Credential
from runner.kernel.web import Place, Url
from runner.perimeter.classify.readings import every_reading, forget_readings

_BLANKS: Final = {ord(each): None for each in " \t\r\n\\"}
"""What stands within a long word that was wrapped, or written into JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logins:
    """The credentials of pages, each by the place it is for. No repr shows one."""

    by_place: Mapping[Place, Credential] = field(default_factory=dict)

    def credential_for(self, url: Url) -> Credential | None:
        """Return the credential that `url` is asked for with; None for none, and for what is not https."""
        if url.scheme != "https":
            return None
        held = (each for place, each in self.by_place.items() if not place.is_open and place.holds(url))
        return next(held, None)

    def stand_in(self, *texts: str, whole: str = "") -> bool:
        """Return whether a credential stands in `texts`, however it is spelled there, or plainly in `whole`.

        Spelled is: with escapes, encoded, or written apart, as far as the classifier reads on.
        """
        secrets = {secret for each in self.by_place.values() for secret in _secrets_of(each)}
        if not secrets:
            return False
        try:
            readings = [reading.data.decode("latin-1") for text in texts for reading in every_reading(text)]
        finally:
            forget_readings()
        plain = [each.translate(_BLANKS) for each in (*texts, *readings, whole)]
        return any(secret in each for secret in secrets for each in plain)


NOBODY: Final = Logins()
"""No credential for any page."""


def _secrets_of(credential: Credential) -> Iterator[str]:
    """Yield what of `credential` nobody may read, without blanks: of a basic one its password (RFC 7617)."""
    scheme, _, rest = credential.value.partition(" ")
    yield (rest or scheme).translate(_BLANKS)
    if scheme.lower() == "basic":
        try:
            user, _, password = base64.b64decode(rest, validate=True).decode("utf-8").partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return
        if secret := (password or user).translate(_BLANKS):
            yield secret
