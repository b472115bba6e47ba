# SPDX-License-Identifier: Apache-2.0
"""P1, I7, I10: what `release()` allows, and that nothing else passes."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.decisions import Allowed, Denied
from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.ports import Locality
from runner.perimeter.classify import Classifier, EchoIndex
from runner.perimeter.release import BackendTerms, Rules, judge
from runner.testing import FakeClassifier

HERE = Address(scheme="https", host="model.example", port=443)
CANARY = "canary-7"


def wire(
    body: object = None, *, raw: bytes | None = None, address: Address = HERE, path: str = "/v1"
) -> WireRequest:
    data = json.dumps(body if body is not None else {"text": "hello"}).encode() if raw is None else raw
    return WireRequest(method="POST", address=address, path=path, headers=(("Accept", "*/*"),), body=data)


def rules(fault: Exception | None = None, *, as_c3: bool = False) -> Rules:
    return Rules(
        classifier=FakeClassifier({CANARY: DataClass.C2}, fault=fault),
        fault_as_c3=as_c3,
        locality_c2=Locality.L1,
        locality_c3=Locality.L2,
    )


def terms(*, local: bool = False, ceiling: DataClass | None = DataClass.C1) -> BackendTerms:
    return BackendTerms(name="b", local=local, address=HERE, ceiling=ceiling)


def reason(decision: object) -> str:
    assert isinstance(decision, Denied)
    return decision.reason


@pytest.mark.parametrize("found", list(DataClass))
@pytest.mark.parametrize("ceiling", [None, DataClass.C0, DataClass.C1])
def test_p1_only_a_class_at_or_below_the_ceiling_leaves(found: DataClass, ceiling: DataClass | None) -> None:
    decision = judge(
        wire(),
        Label(declared=found),
        terms=terms(ceiling=ceiling),
        locality=Locality.REMOTE,
        rules=rules(),
    )
    if ceiling is not None and found <= ceiling:
        assert isinstance(decision, Allowed)
        assert decision.label.data_class is found
    else:
        assert isinstance(decision, Denied)
        assert decision.data_class is found


@pytest.mark.parametrize("ceiling", [DataClass.C2, DataClass.C3])
def test_p1_c3_never_leaves_whatever_the_ceiling_says(ceiling: DataClass) -> None:
    decision = judge(
        wire(),
        Label(declared=DataClass.C3),
        terms=terms(ceiling=ceiling),
        locality=Locality.REMOTE,
        rules=rules(),
    )
    assert reason(decision) == "c3-never-leaves"


@pytest.mark.parametrize(
    "hidden",
    [
        {"text": CANARY},
        {CANARY: 1},
        {"a": [{"b": [CANARY]}]},
        {"tools": [{"parameters": {"default": CANARY}}]},
        {"description": f"x {CANARY} y"},
        {"grammar": f'root ::= "{CANARY}"'},
    ],
)
def test_p1_detectors_see_every_leaf_and_key(hidden: object) -> None:
    decision = judge(wire(hidden), Label(), terms=terms(), locality=Locality.REMOTE, rules=rules())
    assert reason(decision) == "class-above-ceiling"


def test_p1_a_repeated_member_hides_nothing() -> None:
    raw = f'{{"text": "{CANARY}", "text": "harmless"}}'.encode()
    decision = judge(wire(raw=raw), Label(), terms=terms(), locality=Locality.REMOTE, rules=rules())
    assert reason(decision) == "class-above-ceiling"


def test_p1_detectors_see_path_and_headers() -> None:
    in_path = judge(
        wire(path=f"/v1?q={CANARY}"), Label(), terms=terms(), locality=Locality.REMOTE, rules=rules()
    )
    assert reason(in_path) == "class-above-ceiling"
    headed = WireRequest(method="POST", address=HERE, path="/", headers=(("X-Note", CANARY),), body=b"{}")
    in_header = judge(headed, Label(), terms=terms(), locality=Locality.REMOTE, rules=rules())
    assert reason(in_header) == "class-above-ceiling"


def test_p1_bytes_for_another_address_are_denied() -> None:
    elsewhere = Address(scheme="https", host="other.example", port=443)
    for local in (True, False):
        decision = judge(
            wire(address=elsewhere),
            Label(),
            terms=terms(local=local),
            locality=Locality.L2,
            rules=rules(),
        )
        assert reason(decision) == "address-not-registered"


@pytest.mark.parametrize(
    ("found", "grade", "passes"),
    [
        (DataClass.C1, Locality.L0, True),
        (DataClass.C0, Locality.REMOTE, False),
        (DataClass.C2, Locality.L0, False),
        (DataClass.C2, Locality.L1, True),
        (DataClass.C3, Locality.L1, False),
        (DataClass.C3, Locality.L2, True),
    ],
)
def test_i10_a_local_backend_needs_the_grade_its_class_asks_for(
    found: DataClass,
    grade: Locality,
    passes: bool,
) -> None:
    decision = judge(
        wire(), Label(declared=found), terms=terms(local=True, ceiling=None), locality=grade, rules=rules()
    )
    assert isinstance(decision, Allowed) is passes


@pytest.mark.parametrize("found", list(DataClass))
def test_i10_a_local_backend_that_is_found_remote_gets_nothing(found: DataClass) -> None:
    """The profile permits no way out under that name, whatever its ceiling for a remote one."""
    decision = judge(
        wire(), Label(declared=found), terms=terms(local=True), locality=Locality.REMOTE, rules=rules()
    )
    assert reason(decision) == "not-local"


def test_p1_a_get_without_a_body_is_judged_by_its_path_and_headers() -> None:
    def get(path: str, body: bytes = b"") -> WireRequest:
        return WireRequest(method="GET", address=HERE, path=path, headers=(), body=body)

    def judged(asked: WireRequest) -> object:
        return judge(asked, Label(), terms=terms(), locality=Locality.REMOTE, rules=rules())

    assert isinstance(judged(get("/api/tags")), Allowed)
    assert reason(judged(get(f"/api/{CANARY}"))) == "class-above-ceiling"
    assert reason(judged(get("/api/tags", b"not json"))) == "fault.release"


@pytest.mark.parametrize("raw", [b" ", b"\xff\xfe", b"not json", b"{", b"[" * 100_000])
@pytest.mark.parametrize("local", [True, False])
def test_i7_a_body_that_cannot_be_judged_is_denied(raw: bytes, local: bool) -> None:
    decision = judge(wire(raw=raw), Label(), terms=terms(local=local), locality=Locality.L2, rules=rules())
    assert reason(decision) == "fault.release"


def test_i7_a_classifier_fault_denies_or_counts_as_c3() -> None:
    fault = RuntimeError("down")
    closed = judge(wire(), Label(), terms=terms(), locality=Locality.REMOTE, rules=rules(fault))
    assert reason(closed) == "fault.release"
    remote = judge(wire(), Label(), terms=terms(), locality=Locality.REMOTE, rules=rules(fault, as_c3=True))
    assert reason(remote) == "c3-never-leaves"
    local = judge(
        wire(), Label(), terms=terms(local=True), locality=Locality.L2, rules=rules(fault, as_c3=True)
    )
    assert isinstance(local, Allowed)
    assert local.label.data_class is DataClass.C3


@given(
    raw=st.binary(max_size=200) | st.text(max_size=50).map(lambda text: json.dumps({"t": text}).encode()),
    declared=st.sampled_from(DataClass),
    local=st.booleans(),
    ceiling=st.sampled_from([None, DataClass.C0, DataClass.C1]),
    grade=st.sampled_from(list(Locality)),
)
def test_p1_judge_is_total_and_never_allows_too_much(
    raw: bytes,
    declared: DataClass,
    local: bool,
    ceiling: DataClass | None,
    grade: Locality,
) -> None:
    decision = judge(
        wire(raw=raw),
        Label(declared=declared),
        terms=terms(local=local, ceiling=ceiling),
        locality=grade,
        rules=rules(),
    )
    assert isinstance(decision, Allowed | Denied)
    if isinstance(decision, Allowed):
        assert decision.wire.body == raw
        assert decision.label.data_class >= declared
        if local:
            assert grade is not Locality.REMOTE
        else:
            assert ceiling is not None
            assert decision.label.data_class <= ceiling


UNREAD = ("A-B-C-D-E-F|*-a*b*c*d*e*f%2eA\\x41A-B-C-D-E-F%2a\na~b~c~d~e~f\\x41&#46;A%7ca.b.c.d.e.f%2a_" * 200)[
    :9000
]
SECRET = "-----BEGIN RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("label", "texts", "why"),
    [
        (Label(), [UNREAD], "more-than-is-read"),
        (Label(), ["hello", UNREAD, UNREAD[::-1]], "more-than-is-read"),
        (Label(declared=DataClass.C3), [UNREAD], "c3-never-leaves"),
        (Label(), [SECRET], "c3-never-leaves"),
        (Label(), [UNREAD, SECRET], "c3-never-leaves"),
        (Label(), [SECRET + UNREAD], "c3-never-leaves"),
    ],
    ids=["one text", "three texts", "declared", "a key", "a key in another text", "a key in the same text"],
)
def test_the_record_names_the_reading_budget_when_nothing_else_is_c3(
    label: Label, texts: list[str], why: str
) -> None:
    """P3: who reads the record is not told of a C3 that nobody has found."""
    real = replace(rules(), classifier=Classifier())
    decision = judge(wire({"texts": texts}), label, terms=terms(), locality=Locality.REMOTE, rules=real)
    assert reason(decision) == why
    assert isinstance(decision, Denied)
    assert decision.data_class is DataClass.C3


def test_an_echo_in_a_text_that_is_not_read_is_the_reason() -> None:
    echo = EchoIndex(b"k" * 16)
    passage = "the crew will never know what the owner paid for the second hull"
    echo.remember(passage, DataClass.C3)
    real = replace(rules(), classifier=Classifier(), echo=echo)
    for text, why in ((UNREAD, "more-than-is-read"), (passage + "\n" + UNREAD, "c3-never-leaves")):
        decision = judge(wire({"t": text}), Label(), terms=terms(), locality=Locality.REMOTE, rules=real)
        assert reason(decision) == why
