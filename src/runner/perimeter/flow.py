# SPDX-License-Identifier: Apache-2.0
"""Whether a call carries values only where the user, or the profile, sent them. Pure and total.

Owns two questions about one call: do its arguments keep the limits of the grant, and is somebody better than
the model responsible for each critical one. Leaves the verdict to `policy.py`. This is what stops an obedient
model: it may do what a document says, but not to whom the document says (I1).
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, assert_never

from runner.kernel.labels import Integrity
from runner.kernel.messages import Json, JsonObject
from runner.kernel.web import Place, parse_url, place_of
from runner.perimeter.flows import (
    Case,
    Limits,
    Listed,
    LookedUp,
    NamedSource,
    Sink,
    SinkKind,
    Unread,
    UpTo,
    Vouch,
)
from runner.perimeter.keywords import matches_whole
from runner.perimeter.known import Known, Result, leaves, repeats
from runner.perimeter.links import leads_where_named
from runner.perimeter.named import is_named

_URL: Final = re.compile(
    r"(?i:https?://)?((?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)"
    r"(?::[0-9]{1,5})?(?:[/?#][!-~]*)?"
)
"""An address in ASCII without a user, so that there is one way to read its host."""
_ENDING: Final = re.compile(r"\.[A-Za-z0-9]{1,5}$")
_WORDS: Final = re.compile(r"\w+")
_LEAST_KEY: Final = 4
"""Letters and digits of the shortest key that points to a record."""


def keeps_limits(arguments: JsonObject, limits: Mapping[str, Limits], said: str) -> bool:
    """Return whether each of `arguments` is what `limits` say of it. An argument that is absent is."""
    return all(
        _keeps(leaf, limits[name], said)
        for name, value in arguments.items()
        if name in limits
        for leaf in leaves(value)
    )


def unvouched(sink: Sink, arguments: JsonObject, known: Known) -> tuple[str, ...]:
    """Return the names of the critical arguments that nobody vouches for, in the case with the fewest.

    Of two with as few, it is the one that lacks what is said, and not to whom.
    """
    if sink.kind is SinkKind.DRAFT:
        return ()
    missing = (_missing(sink, case, arguments, known) for case in sink.cases or ({},))
    return min(missing, key=lambda names: (len(names), len({*names} - sink.payload)))


def host_of(address: str) -> str | None:
    """Return the host of `address` in lower case; None for what is no plain address of ASCII."""
    match = _URL.fullmatch(address)
    return match.group(1).lower() if match else None


def is_beneath(path: str, prefix: str) -> bool:
    """Return whether `path` is `prefix` or lies below it, by its spelling: no part is empty or dots."""
    parts = path.removeprefix("/").split("/")
    if any(part in {"", ".", ".."} or "\0" in part or "\\" in part for part in parts):
        return False
    return path == prefix or path.startswith(f"{prefix}/")


def same(one: object, other: object) -> bool:
    """Return whether two leaves are the same value of JSON: the number 1 is no text, and no truth value."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _keeps(leaf: Json, limits: Limits, said: str) -> bool:
    text = leaf if isinstance(leaf, str) else None
    number = leaf if isinstance(leaf, int | float) and not isinstance(leaf, bool) else None
    host = None if text is None else host_of(text)
    kept = (
        limits.enum is None or any(same(leaf, each) for each in limits.enum),
        limits.beneath is None
        or (text is not None and any(is_beneath(text, prefix) for prefix in limits.beneath)),
        limits.hosts is None or (host is not None and host in limits.hosts),
        limits.pattern is None or (text is not None and matches_whole(limits.pattern, text)),
        limits.max_length is None or text is None or len(text) <= limits.max_length,
        limits.minimum is None or (number is not None and number >= limits.minimum),
        limits.maximum is None or (number is not None and number <= limits.maximum),
        not limits.named or is_named(leaf, said),
        limits.places is None or (text is not None and _lies_in(text, limits.places)),
    )
    return all(kept)


def _lies_in(text: str, places: tuple[Place, ...]) -> bool:
    url = parse_url(text)
    return url is not None and place_of(url, places) is not None


def _missing(sink: Sink, case: Case, arguments: JsonObject, known: Known) -> tuple[str, ...]:
    """Return the critical arguments of one case that nobody vouches for.

    A payload is critical where it holds an address that the user did not name: whoever follows it goes there.
    Once a person has not said yes to a call of the task, what goes to somebody else is named, or is missing.
    """
    warned = known.warned and sink.kind is SinkKind.NETWORK

    def holds(name: str, value: Json) -> bool:
        said = name in sink.payload
        if said and name not in case and not warned:
            return _is_plain(value, known)
        return _is_vouched(value, () if said and warned else case.get(name, ()), known)

    return tuple(name for name, value in sorted(arguments.items()) if not holds(name, value))


def _is_plain(value: Json, known: Known) -> bool:
    texts = (leaf for leaf in leaves(value) if isinstance(leaf, str))
    return all(leads_where_named(text, known.said) for text in texts)


def _is_vouched(value: Json, vouches: tuple[Vouch, ...], known: Known) -> bool:
    """Return whether somebody vouches for all that is in `value`, which says nothing twice."""
    return not repeats(value) and all(
        is_named(leaf, known.said) or any(_holds(vouch, leaf, known) for vouch in vouches)
        for leaf in leaves(value)
    )


def _holds(vouch: Vouch, leaf: Json, known: Known) -> bool:
    match vouch:
        case Listed():
            return any(same(leaf, each) for each in vouch.values)
        case UpTo():
            return isinstance(leaf, int | float) and not isinstance(leaf, bool) and 0 <= leaf <= vouch.most
        case LookedUp():
            results = [result for result in known.results if result.tool == vouch.tool]
            return any(same(leaf, each) for each in _looked_up(vouch, results, known.said))
        case NamedSource():
            return any(
                result.tool == vouch.tool and result.by_user and is_named(leaf, result.text)
                for result in known.results
            )
        case Unread():
            return known.mark.integrity is Integrity.USER
        case _:
            assert_never(vouch)


def _looked_up(vouch: LookedUp, results: list[Result], said: str) -> tuple[Json, ...]:
    """Return the values that `vouch` stands for: none where two records answer to what the user named."""
    if vouch.field is None:
        return tuple(item for result in results for item in result.items)
    records = [record for result in results for record in result.records]
    if vouch.key is not None:
        records = _meant(vouch.key, results, said)
    values = [tuple(leaves(record.get(vouch.field))) for record in records]
    if vouch.key is not None and len(set(map(repr, values))) != 1:
        return ()
    if not all(_is_where(record, vouch.where or {}) for record in records):
        return ()
    return tuple(leaf for leaf in (leaf for value in values for leaf in value) if leaf is not None)


def _is_where(record: JsonObject, members: Mapping[str, tuple[Json, ...]]) -> bool:
    return all(any(same(record.get(name), each) for each in values) for name, values in members.items())


def _meant(key: str, results: list[Result], said: str) -> list[JsonObject]:
    """Return the records that the user's words name in full by their `key`.

    Where there is none, those whose `key` holds words of the user's that a search was made for.
    """
    rows = [(record, result) for result in results for record in result.records]
    full = [record for record, _ in rows if _is_meant(record.get(key), said)]
    return full or [record for record, result in rows if _is_sought(record.get(key), result)]


def _is_sought(key: Json, result: Result) -> bool:
    return isinstance(key, str) and result.by_user and any(_is_titled(key, each) for each in result.asked)


def _is_meant(key: Json, said: str) -> bool:
    """Return whether the user's words hold those of `key`, in order, without the ending of a file's name."""
    if not isinstance(key, str):
        return is_named(key, said)
    for text in (key, _ENDING.sub("", key)):
        words = _words_of(text)
        if sum(map(len, words)) >= _LEAST_KEY and f" {' '.join(words)} " in _in_words(said):
            return True
    return False


def _is_titled(key: str, phrase: str) -> bool:
    """Return whether the words of `phrase`, at least two, stand in `key` one after another."""
    words = _words_of(phrase)
    return len(words) > 1 and f" {' '.join(words)} " in _in_words(key)


def _in_words(said: str) -> str:
    return f" {' '.join(_words_of(said))} "


def _words_of(text: str) -> list[str]:
    return _WORDS.findall(unicodedata.normalize("NFC", text).casefold())
