# SPDX-License-Identifier: Apache-2.0
"""P1, I6: a public set of egress attacks, judged by the rules of any remote send under a ceiling of C1.

Every host may be named, so that no list of hosts can win: what is blocked is blocked for what it says. The
cases about the destination itself are judged with the profile's one address instead. What this runner has no
door for is listed with the reason; that list must be complete, so that a new case is looked at by a person.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from runner.kernel.decisions import Allowed, Denied, Release
from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.ports import Locality
from runner.kernel.registers import Listed
from runner.kernel.web import parse_url
from runner.perimeter.classify import FRAGMENTS, Classifier, compile_registers
from runner.perimeter.release import BackendTerms, Rules, judge

FILE: Final = Path(__file__).parents[3] / "shared" / "vectors" / "egress" / "agent_egress_bench_a.json"
CASES: Final[dict[str, Any]] = (
    {case["id"]: case for case in json.loads(FILE.read_text(encoding="utf-8"))} if FILE.is_file() else {}
)
OURS: Final = {"url", "headers", "request_body", "encoding_evasion", "hostname_exfiltration"}
"""The categories that a gate over requests must win: each of their cases is judged."""
DESTINATION: Final = {"url-domain-blocklist-001", "url-ssrf-ipv6-mapped-010", "url-ssrf-metadata-009"}
"""Cases that say nothing, and are wrong for where they go."""
NUMBERS: Final = {"ssrf-octal-ip-005", "ssrf-zero-ip-008"}
"""Cases that spell an inner address as `web_fetch` reads none; two of the three before do so, too."""
OFFICE: Final = {"body-benign-api-call-003"}
"""A calendar entry with two addresses of mail: C2, until the practice's register says they are its own."""
INBOUND: Final = "a reply that comes in: it is untrusted content with a label, and is not stopped"
AGENT_CARD: Final = "no agents of others are called (A2A)"
ORDERS: Final = "orders in a text: the model has no authority, so they are not looked for"
TOOL_SERVER: Final = "no tool servers (MCP): policy and approvals are what would judge the call"
WALLETS: Final = "keys of wallets are no identifiers that this release looks for"
ELSEWHERE: Final = {
    "a2a_agent_card": AGENT_CARD,
    "response_fetch": INBOUND,
    "response_mitm": INBOUND,
    "mcp_chain": TOOL_SERVER,
    "mcp_tool": TOOL_SERVER,
    "shell_obfuscation": "the shell tool has no shell: see tests/adversarial/test_shell_commands.py",
    "websocket_dlp": "no transport speaks WebSocket",
    "a2a-msg-injection-hijack-004": ORDERS,
    "a2a-msg-injection-system-005": ORDERS,
    "a2a-msg-stream-injection-007": ORDERS,
    "crypto-btc-bech32-002": WALLETS,
    "crypto-eth-address-003": WALLETS,
    "crypto-seed-phrase-004": WALLETS,
    "crypto-wif-private-key-005": WALLETS,
    "fp-code-snippet-env-007": INBOUND,
    "fp-crypto-tutorial-text-011": INBOUND,
    "fp-error-message-token-expired-009": INBOUND,
    "fp-example-aws-key-003": INBOUND,
    "fp-quoted-injection-docs-002": INBOUND,
}
"""What is not judged here, by category or case, and why."""
JUDGED: Final = [
    name
    for name, case in CASES.items()
    if not {name, case["category"]} & (ELSEWHERE.keys() | DESTINATION | NUMBERS)
]
HOME: Final = Address(scheme="https", host="model.example", port=443)
OWN: Final = Listed(file="own", line=1, names=("@example.com",))

pytestmark = pytest.mark.skipif(not CASES, reason="the shared vectors are not here")


def rules(*own: Listed) -> Rules:
    registers = compile_registers(clients=[], own=own, public=[], key=b"k" * 16)
    return Rules(
        classifier=Classifier(registers=registers),
        fault_as_c3=False,
        locality_c2=Locality.L0,
        locality_c3=Locality.L2,
        fragments=Classifier(FRAGMENTS, registers),
    )


def wire(case: dict[str, Any]) -> WireRequest:
    """The request of a case; messages of a tool protocol as the body in which they would leave."""
    said = case["payload"]
    if "jsonrpc_messages" in said:
        body = json.dumps(said["jsonrpc_messages"], ensure_ascii=False).encode()
        return WireRequest(method="POST", address=HOME, path="/", headers=(), body=body)
    url = urlsplit(said["url"])
    host = url.netloc.partition(":")[0] if "[" not in url.netloc else str(url.hostname)  # in its own case
    kind = [("Content-Type", said["content_type"])] if "content_type" in said else []
    return WireRequest(
        method=said["method"],
        address=Address(scheme=url.scheme, host=host, port=url.port or 443),
        path=f"{url.path or '/'}?{url.query}".removesuffix("?"),
        headers=(*said.get("headers", {}).items(), *kind),
        body=said.get("body", "").encode(),
    )


def release(case: dict[str, Any], *own: Listed, any_host: bool = True) -> Release:
    terms = BackendTerms(name="web", local=False, address=HOME, ceiling=DataClass.C1, any_host=any_host)
    return judge(wire(case), Label(), terms=terms, locality=Locality.REMOTE, rules=rules(*own))


def reason(decision: Release) -> str:
    return decision.reason if isinstance(decision, Denied) else "allowed"


@pytest.mark.parametrize("name", [name for name in JUDGED if CASES[name]["expected_verdict"] == "block"])
def test_p1_what_should_not_leave_is_blocked_for_what_it_says(name: str) -> None:
    assert reason(release(CASES[name])) in {"c3-never-leaves", "class-above-ceiling"}


@pytest.mark.parametrize("name", [name for name in JUDGED if CASES[name]["expected_verdict"] == "allow"])
def test_what_may_leave_passes(name: str) -> None:
    own = [OWN] if name in OFFICE else []
    assert isinstance(release(CASES[name], *own), Allowed)


@pytest.mark.parametrize("name", sorted(OFFICE))
def test_an_address_of_mail_is_personal_until_the_practice_says_that_it_is_its_own(name: str) -> None:
    assert reason(release(CASES[name])) == "class-above-ceiling"


@pytest.mark.parametrize("name", sorted(DESTINATION))
def test_a_place_that_is_not_the_profiles_is_refused_whatever_is_said(name: str) -> None:
    assert CASES[name]["expected_verdict"] == "block"
    assert reason(release(CASES[name], any_host=False)) == "address-not-registered"


@pytest.mark.parametrize("name", sorted(NUMBERS | {"url-ssrf-ipv6-mapped-010", "url-ssrf-metadata-009"}))
def test_i1_no_spelling_of_an_inner_address_is_one_that_a_page_is_asked_at(name: str) -> None:
    assert CASES[name]["expected_verdict"] == "block"
    for scheme in ("http", "https"):
        assert parse_url(CASES[name]["payload"]["url"].replace("http:", f"{scheme}:")) is None


def test_every_case_is_judged_or_listed_with_its_reason() -> None:
    listed = [name for name, case in CASES.items() if {name, case["category"]} & ELSEWHERE.keys()]
    assert sorted([*JUDGED, *DESTINATION, *NUMBERS, *listed]) == sorted(CASES)
    assert not [name for name in listed if CASES[name]["category"] in OURS]
    assert {CASES[name]["category"] for name in [*JUDGED, *DESTINATION]} >= OURS
    verdicts = Counter(CASES[name]["expected_verdict"] for name in JUDGED)
    assert (verdicts["block"], verdicts["allow"], len(DESTINATION), len(listed)) == (25, 9, 3, 35)
