# SPDX-License-Identifier: Apache-2.0
"""What a backend does, found out by behaviour: facts, canaries, facts again, each send through the gate.

Owns the order of a probe and when an earlier finding may stand for a new one. Leaves which canary comes next
and what answers say to `canaries`, and the order of one send to `probe`. Carries P1, I4 and I9: a canary is a
send like any other, with no task, no content (C0) and its record before it. Carries I7: a finding is kept
only under facts that stood before and after, and only where all of them could be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, Protocol

from runner.kernel.canonical import canonical_bytes
from runner.kernel.capabilities import Capabilities, Facts, Mechanism, Standing
from runner.kernel.decisions import Denied
from runner.kernel.errors import BackendError
from runner.kernel.inference import Answer, WireRequest
from runner.kernel.messages import JsonObject
from runner.kernel.ports import Endpoint, FindingStore, Probeable
from runner.kernel.probing import Canary, Heard
from runner.perimeter import probe
from runner.perimeter.canaries import Asked, Seen, concluded, is_last, judge, next_canary
from runner.perimeter.client import Registration
from runner.perimeter.release import Checked

CANARY_TIMEOUT_S: Final = 120.0
"""How long one canary may take: a server may have to read its weights first."""
EDITION: Final = 1
"""Counts changes of the canaries and their judgement: what was found by another edition is found again."""


class Gate(probe.Gate, Protocol):
    """The part of the perimeter that a probe passes."""

    async def check_locality(self, backend: Endpoint) -> Checked:
        """Return how local `backend` is, checked now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What came of a probe: what is known now, how many canaries were sent, and what they may have cost.

    `tokens` is what the runtime says it generated, `most_tokens` what it was allowed to. `kept` says that
    nothing was sent: it was known from before. `denied` is the rule that kept a canary from being sent, ""
    where none did. `answered` says that some canary was answered, whatever the answer.
    """

    capabilities: Capabilities
    requests: int = 0
    tokens: int = 0
    most_tokens: int = 0
    kept: bool = False
    denied: str = ""
    answered: bool = False


async def probe_backend(
    gate: Gate,
    backend: Endpoint,
    codec: Probeable,
    way: Registration,
    *,
    store: FindingStore | None,
    forms: bool = False,
    fresh: bool = False,
) -> Probe:
    """Return what `backend`, registered as `way`, does; `codec` knows how it is asked.

    What `store` has of these very facts, which it repeats, stands, unless a `fresh` finding is wanted. With
    `forms`, the other forms of the protocol are tried instead of those the codec uses, and nothing is kept.
    Raises `TraceError` when a send could not be recorded, and then it was not sent.
    """
    before = await _facts(gate, backend, codec, way)
    key = finding_key(backend, codec, before)
    kept = None if forms or fresh or store is None or key is None else store.find(key)
    if kept is not None and kept.uses is _uses(codec) and kept.facts == before:
        return Probe(capabilities=kept, kept=True)
    mechanisms = codec.other_forms if forms else codec.mechanisms
    asked = await _ask_all(gate, backend, codec, way, mechanisms)
    after = await _facts(gate, backend, codec, way) if before.fingerprint.known else before
    if after != before:  # another runtime answered: whose answers these are, nobody knows
        counted: Sequence[Asked] = ()
    else:
        counted = asked
    found = concluded(_uses(codec), counted, after)
    if key is not None and store is not None and not forms and _is_settled(found):
        store.keep(key, found)
    sent = [each for each in asked if not each.denied]
    return Probe(
        capabilities=found,
        requests=len(sent),
        tokens=sum(each.tokens for each in sent),
        most_tokens=sum(each.canary.max_tokens for each in sent if each.seen is not Seen.REFUSED),
        denied=next((each.denied for each in asked if each.denied), ""),
        answered=any(each.answered for each in sent),
    )


def finding_key(backend: Endpoint, codec: Probeable, facts: Facts) -> str | None:
    """Return what a finding about `backend` and a runtime of these `facts` is kept under.

    None when not all of the fingerprint could be read: then nobody could tell whether it still holds (I7).
    """
    seen = facts.fingerprint
    if not seen.known:
        return None
    named: JsonObject = {
        "edition": EDITION,
        "endpoint": str(backend.address),
        "asked_for": backend.model,
        "uses": _uses(codec),
        "build": seen.build,
        "model": seen.model,
        "template": seen.template,
        "context": facts.context,
    }
    return sha256(b"akaion-finding/1\0" + canonical_bytes(named)).hexdigest()


def _uses(codec: Probeable) -> Mechanism | None:
    return next(iter(codec.mechanisms), None)


def _is_settled(found: Capabilities) -> bool:
    """Return whether the mechanism that counts was decided: silence is no finding to go by next time."""
    return found.uses is not None and found[found.uses] is not Standing.UNVERIFIED


async def _facts(gate: Gate, backend: Endpoint, codec: Probeable, way: Registration) -> Facts:
    """Return what the runtime says of itself now; nothing where it cannot be read."""
    questions = codec.facts_asked
    if not questions:
        return Facts()
    checked = await gate.check_locality(backend)
    answers = await probe.ask_server(
        gate, backend, way.transport, questions, checked, credential=way.credential
    )
    try:
        return codec.facts(answers)
    except Exception:  # noqa: BLE001 - a codec is somebody's code: what it cannot read is not known
        return Facts()


async def _ask_all(
    gate: Gate, backend: Endpoint, codec: Probeable, way: Registration, mechanisms: Sequence[Mechanism]
) -> Sequence[Asked]:
    """Send canaries until `mechanisms` are decided or the bounds of a probe are met; return what was seen."""
    seed, asked = gate.trace.mint_id(), list[Asked]()
    while canary := next_canary(mechanisms, asked, seed=seed, wrapped=codec.wrapped):
        asked.append(await _ask(gate, backend, codec, way, canary))
    return asked


async def _ask(gate: Gate, backend: Endpoint, codec: Probeable, way: Registration, canary: Canary) -> Asked:
    try:
        wire: WireRequest = codec.canary(canary)
    except BackendError:
        return Asked(canary=canary, seen=judge(canary, status=0, heard=None))
    checked = await gate.check_locality(backend)
    [answer] = await probe.put(
        gate,
        backend,
        way.transport,
        (wire,),
        checked,
        credential=way.credential,
        timeout_s=min(way.timeout_s, CANARY_TIMEOUT_S),
    )
    if isinstance(answer, Denied):
        nothing = judge(canary, status=0, heard=None)
        return Asked(canary=canary, seen=nothing, last=True, denied=answer.reason, answered=False)
    status, heard = (0, None) if answer is None else (answer.status, _heard(codec, answer))
    seen = judge(canary, status=status, heard=heard)
    if heard is None:
        return Asked(canary=canary, seen=seen, last=is_last(status), answered=answer is not None)
    return Asked(canary=canary, seen=seen, thinking=heard.thinking, tokens=heard.tokens)


def _heard(codec: Probeable, answer: Answer) -> Heard | None:
    """Return what `answer` says; None for an error, and for what is not the protocol."""
    if answer.status != 200:  # noqa: PLR2004 - RFC 9110
        return None
    try:
        return codec.heard(answer.body)
    except Exception:  # noqa: BLE001 - what cannot be read says nothing (I7)
        return None
