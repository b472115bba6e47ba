# SPDX-License-Identifier: Apache-2.0
"""The credentials of a profile: which file or variable holds each, and for whom it is (I5).

Owns that each reference is read once, since a variable is gone then. Leaves reading to
`capability.credentials`, and what one is sent with to the perimeter.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runner.assembly.blame import blame_of
from runner.assembly.places import Places, read_from
from runner.capability.credentials import credential_file, credential_of, read_token
from runner.capability.profile import ProfileSource
from runner.kernel.config import Config
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.ports import Credential
from runner.perimeter.grants import Where
from runner.perimeter.logins import NOBODY, SHORTEST, Logins, is_told_apart
from runner.perimeter.policy import Policy

_TOO_SHORT: Final = "it is too short to be told from a word of a page that repeats it"
_LONGER: Final = f"let its token, or the password at its end, be {SHORTEST} characters or longer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a profile sends to whom: that of the `remote` backend, and those of pages."""

    remote: Credential | None = None
    pages: Logins = NOBODY


def credentials_of(config: Config, policy: Policy, source: ProfileSource, places: Places) -> Credentials:
    """Return the credentials of `config`, whose grants are `policy`.

    Raises `ConfigError` with every mistake.
    """
    tokens = _tokens(config, source, places)
    remote = config.inference.remote
    own = None
    if remote is not None and remote.credential is not None:
        own = credential_of(tokens[remote.credential], "x-api-key" if remote.backend == "anthropic" else None)
    pages = {
        place: credential_of(tokens[place.login.credential], place.login.header)
        for grant in policy.grants.values()
        for place in grant.places
        if place.login is not None
    }
    return Credentials(remote=own, pages=Logins(by_place=pages))


def credential_files(config: Config, source: ProfileSource, places: Places) -> dict[Path, Where]:
    """Return the files that hold the credentials of `config`, each with the key that names it.

    Raises `ConfigError`.
    """
    found = (
        (credential_file(reference, _finder(where, source, places)), where)
        for where, reference in _references(config)
    )
    return {file: where for file, where in found if file is not None}


def bare_logins(config: Config, policy: Policy, pages: Logins, source: ProfileSource) -> Iterator[Mistake]:
    """Yield where `Authorization` would be sent without a scheme, which few hosts take (RFC 9110, 11.6.2)."""
    for index, grant in enumerate(config.policy.grants):
        for number, place in enumerate(policy.grants[grant.tool].places):
            held = pages.by_place.get(place)
            if held is not None and held.header.lower() == "authorization" and " " not in held.value:
                where = ("policy", "grants", index, "hosts", number, "header")
                fix = "remove this key for a bearer token, or write the scheme before the token"
                yield blame_of(source)(where, "the token is sent as it is, with no scheme before it", fix)


def _tokens(config: Config, source: ProfileSource, places: Places) -> dict[str, str]:
    """Return each token by its reference; raise `ConfigError` with every mistake."""
    tokens: dict[str, str] = {}
    mistakes: list[Mistake] = []
    for where, reference in _references(config):
        try:
            if reference not in tokens:
                tokens[reference] = _token(reference, where, source, places)
        except ConfigError as error:
            mistakes += error.mistakes
            continue
        if where[0] == "policy" and not is_told_apart(tokens[reference]):
            mistakes.append(blame_of(source)(where, _TOO_SHORT, _LONGER))
    if mistakes:
        raise ConfigError(mistakes)
    return tokens


def _token(reference: str, where: Where, source: ProfileSource, places: Places) -> str:
    return read_token(
        reference,
        resolve=_finder(where, source, places),
        refuse=lambda problem, fix: ConfigError([blame_of(source)(where, problem, fix)]),
    )


def _finder(where: Where, source: ProfileSource, places: Places) -> Callable[[str], Path]:
    def find(path: str) -> Path:
        found = read_from(path, where, source, places)
        if (source.folder / Path(path).expanduser()).is_symlink():
            fix = "name the file itself: whoever changes a link chooses what is sent"
            raise ConfigError([blame_of(source)(where, "the credential file is a link", fix)])
        return found

    return find


def _references(config: Config) -> Iterator[tuple[Where, str]]:
    """Yield each place in `config` that names a credential, and the reference that stands there."""
    remote = config.inference.remote
    if remote is not None and remote.credential is not None:
        yield ("inference", "remote", "credential"), remote.credential
    for index, grant in enumerate(config.policy.grants):
        for number, host in enumerate(grant.hosts or ()):
            if host.credential is not None:
                yield ("policy", "grants", index, "hosts", number, "credential"), host.credential
