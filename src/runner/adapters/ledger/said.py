# SPDX-License-Identifier: Apache-2.0
"""What a pack of evidence says by itself, read strictly.

Owns the reading of `evidence.json` as what its maker gave: each member of the type and form it must have, the
verdict in words of the verifier, the book as the headers name it. What follows from the lines is not read but
derived again. Leaves comparing to `checking.py`. Carries I4: nothing free stands where a fixed word belongs.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from runner.adapters.ledger.book import Entry
from runner.adapters.ledger.content import Disclosure
from runner.adapters.ledger.material import POLICIES, SUMMARY, Given, Selection, kept_of
from runner.adapters.ledger.statements import Ref
from runner.adapters.ledger.words import LANGUAGES, Language

NOT_CLAIMED: Final = (
    "that the labels and classes were true",
    "that no other log or book exists, or that none follows the last one seen",
    "that an allowed send without a result was not delivered",
    "that records and the clock say what happened: they say what the runner recorded",
)
"""What the verifier never claims, word for word; a test compares these with its own."""
NOT_ANCHORED: Final = (
    "not protected against a holder of the device key: there is no anchor and no auditor state"
)
ANCHORED: Final = "what follows the last anchor is not protected against a holder of the device key"
WITNESSED: Final = "that what a witness cosigned was not written anew before the time of its cosignature"
EXITS: Final = {"PASS": 0, "INCOMPLETE": 2, "UNVERIFIABLE": 4, "PARTIAL": 5}
"""The verdicts on a book of which a pack is made, and the exit code of each."""
_CODE: Final = re.compile(r"[a-z0-9-]{1,60}")
_HEX: Final = re.compile(r"([0-9a-f]{2})*")
_TASK: Final = re.compile(r"[0-9a-f]{32}")
_COMMIT: Final = re.compile(r"[0-9a-f]{64}")
_WORD: Final = re.compile(r"[!-~]{1,400}")
_LOG: Final = re.compile(r"[0-9]{6,15}-[0-9a-f]{32}\.(jsonl|witness)")
_CUSTODY: Final = ("file", "keyring", "process", "hardware")
_ENFORCEMENT: Final = ("cooperative", "isolated")


def parse_given(files: Mapping[str, bytes], headers: Sequence[Entry]) -> Given:
    """Return what a pack says by itself, and what lies beside its lines; `headers` are those it shows.

    Raises `ValueError` for what no pack holds, naming the member; `LookupError` or `TypeError` where one is
    not there at all.
    """
    summary = json.loads(files[SUMMARY])
    languages = _languages(summary["languages"])
    return Given(
        verdict=_verdict(summary["verdict"], headers),
        selection=_selection(summary["selection"]),
        languages=languages,
        unproved=tuple(_place(each) for each in _list(summary["unproved"], "unproved")),
        logs=tuple(_text(each, "logs", _LOG) for each in _list(summary["logs"], "logs")),
        policies=tuple(files[name] for name in sorted(files) if name.startswith(POLICIES)),
        disclosed=tuple(_disclosure(each, files) for each in _list(summary["disclosed"], "disclosed")),
    )


def _languages(told: object) -> tuple[Language, ...]:
    found = tuple(each for each in LANGUAGES if each in _list(told, "languages"))
    _require(found != () and list(found) == told, "languages")
    return found


def _selection(told: Mapping[str, Any]) -> Selection:
    since, until = told["since_us"], told["until_us"]
    _require(all(each is None or type(each) is int for each in (since, until)), "selection")
    tasks = tuple(_text(each, "selection", _TASK) for each in _list(told["tasks"], "selection"))
    return Selection(tasks=tasks, since_us=since, until_us=until)


def _place(told: Mapping[str, Any]) -> Ref:
    return _count(told["log"], "unproved"), _count(told["seq"], "unproved")


def _disclosure(told: Mapping[str, Any], files: Mapping[str, bytes]) -> Disclosure:
    return Disclosure(
        log=_count(told["log"], "disclosed"),
        seq=_count(told["seq"], "disclosed"),
        member=_text(told["member"], "disclosed", _WORD),
        commit=_text(told["commit"], "disclosed", _COMMIT),
        salt=bytes.fromhex(_text(told["salt"], "disclosed", _HEX)),
        payload=files[told["file"]],
    )


def _verdict(told: Mapping[str, Any], headers: Sequence[Entry]) -> Mapping[str, Any]:
    """Return the verdict on the whole book, which only its maker saw: in the verifier's words at least."""
    kept = kept_of(told)
    _require(kept == told, "verdict")
    word, reasons = kept["verdict"], _list(kept["reasons"], "reasons")
    _require(word in EXITS and type(kept["exit"]) is int and kept["exit"] == EXITS[word], "verdict")
    _require(all(map(_is_reason, reasons)) and bool(reasons) is (word != "PASS"), "reasons")
    books = {header.word("origin").rpartition("/")[0] for header in headers}
    _require(books == {kept["book"]}, "book")
    _require(kept["claims_not_made"] in _claims(_list(kept["anchors"], "anchors")), "claims_not_made")
    _check_facts(kept, headers)
    return kept


def _is_reason(told: Mapping[str, Any]) -> bool:
    is_code = isinstance(told["code"], str) and _CODE.fullmatch(told["code"]) is not None
    is_place = _is_count_or_none(told["log"]) and _is_count_or_none(told["seq"])
    return set(told) == {"code", "log", "seq"} and is_code and is_place


def _claims(anchors: Sequence[Any]) -> tuple[list[str], ...]:
    """Return what the verifier can say that it does not claim, of a book with these anchors."""
    if not anchors:
        return ([*NOT_CLAIMED, NOT_ANCHORED],)
    witnessed = [WITNESSED] * any(each["kind"] == "witness" for each in anchors)
    return [*NOT_CLAIMED, *witnessed], [*NOT_CLAIMED, ANCHORED, *witnessed]


def _check_facts(kept: Mapping[str, Any], headers: Sequence[Entry]) -> None:
    """Hold the other facts of a verdict to their forms, and to what the shown headers declare."""
    through = kept["verified_through"]
    _require(through is None or _is_flat(through), "verified_through")
    _require(all(map(_is_flat, kept["anchors"])), "anchors")
    for key in _list(kept["device_keys"], "device_keys"):
        _text(key, "device_keys", _WORD)
    _require(kept["pinned"] is True, "pinned")
    _require(kept["custody"] in _CUSTODY, "custody")
    _require(kept["enforcement"] in _ENFORCEMENT, "enforcement")
    classifiers = {_text(each, "classifiers", _WORD) for each in _list(kept["classifiers"], "classifiers")}
    _require({header.word("classifier") for header in headers} <= classifiers, "classifiers")
    declared = all(header.is_set("verifiable") for header in headers)
    _require(kept["verifiable"] is False or (kept["verifiable"] is True and declared), "verifiable")
    for number in _list(kept["interrupted"], "interrupted"):
        _count(number, "interrupted")


def _is_flat(value: object) -> bool:
    kinds = {str, int, bool, type(None)}
    return isinstance(value, dict) and all(type(each) in kinds for each in value.values())


def _is_count_or_none(value: object) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _list(value: object, member: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(member)  # noqa: TRY004 - one kind of error for all that a file holds
    return value


def _count(value: object, member: str) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(member)
    return value


def _text(value: object, member: str, form: re.Pattern[str]) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise ValueError(member)
    return value


def _require(holds: bool, member: str) -> None:  # noqa: FBT001 - what is required
    if not holds:
        raise ValueError(member)
