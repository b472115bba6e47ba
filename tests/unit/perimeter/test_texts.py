# SPDX-License-Identifier: Apache-2.0
"""P1: every part of a request that can carry a text is judged, read as its server would read it."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.decisions import Allowed, Denied
from runner.kernel.inference import Address, WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.ports import Locality
from runner.perimeter.classify import FRAGMENTS, Classifier, classify_text
from runner.perimeter.hosts import class_of_host
from runner.perimeter.release import BackendTerms, Rules, detect, judge
from runner.perimeter.texts import NotText, texts_of
from runner.testing import FakeClassifier

HERE = Address(scheme="https", host="model.example", port=443)
CANARY = "canary-7"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
FORM = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")


def wire(
    *,
    method: str = "POST",
    host: str = HERE.host,
    path: str = "/v1",
    headers: tuple[tuple[str, str], ...] = (),
    body: bytes = b"",
) -> WireRequest:
    address = Address(scheme="https", host=host, port=443)
    return WireRequest(method=method, address=address, path=path, headers=headers, body=body)


def rules(classifier: Classifier | FakeClassifier | None = None) -> Rules:
    return Rules(
        classifier=FakeClassifier({CANARY: DataClass.C2}) if classifier is None else classifier,
        fault_as_c3=False,
        locality_c2=Locality.L0,
        locality_c3=Locality.L2,
        fragments=Classifier(FRAGMENTS),
    )


@pytest.mark.parametrize(
    "asked",
    [
        wire(method=CANARY),
        wire(path=f"/{CANARY}/v1"),
        wire(path=f"/v1?{CANARY}"),
        wire(path=f"/v1?a=1&q={CANARY}"),
        wire(path="/v1?q=canary%2D7"),
        wire(path="/v1/canary%2d7"),
        wire(headers=(("X", CANARY),)),
        wire(headers=((CANARY, "x"),)),
        wire(body=json.dumps({CANARY: 1}).encode()),
        wire(body=json.dumps([[{"a": CANARY}]]).encode()),
        wire(body=b'{"a": "canary\\u002d7"}'),
        wire(body=b'"canary-7"', headers=(("content-type", "application/problem+json"),)),
        wire(body=f"a={quote(CANARY)}&b=1".encode(), headers=(FORM,)),
        wire(body=CANARY.encode(), headers=(("Content-Type", "text/plain"),)),
        wire(method="GET", body=json.dumps(CANARY).encode()),
    ],
    ids=lambda asked: f"{asked.method} {asked.path} {len(asked.headers)} {len(asked.body)}",
)
def test_p1_a_text_is_judged_wherever_a_request_has_it(asked: WireRequest) -> None:
    assert detect(asked, rules()) is DataClass.C2


@pytest.mark.parametrize(
    "asked",
    [
        wire(path=f"/v1?a={AWS[:8]}&b={AWS[8:]}"),
        wire(path=f"/v1?name={AWS[:8]}&type={AWS[8:]}"),
        wire(path=f"/{AWS[:8]}/{AWS[8:]}"),
        wire(headers=(("X-A", AWS[:8]), ("X-B", AWS[8:]))),
        wire(body=f"a={AWS[:8]}&b={AWS[8:]}".encode(), headers=(FORM,)),
    ],
    ids=["query", "query, under names of frames", "path", "headers", "form"],
)
def test_i6_a_credential_is_not_hidden_by_being_split(asked: WireRequest) -> None:
    assert detect(asked, rules(Classifier())) is DataClass.C3


def test_the_query_is_read_as_clear_text() -> None:
    """A number without a word near it counts in the clear only, and percent signs are no disguise here."""
    iban = "IT60X0542811101000000123456"
    escaped = "".join(f"%{ord(sign):02X}" for sign in iban)
    assert classify_text(escaped).data_class is DataClass.C0
    assert detect(wire(path=f"/v1?q={escaped}"), rules(Classifier())) is DataClass.C2


def test_p1_media_count_as_c3_and_two_content_types_are_refused() -> None:
    image = wire(body=b"\x89PNG", headers=(("Content-Type", "image/png"),))
    assert detect(image, rules()) is DataClass.C3
    with pytest.raises(NotText):
        list(texts_of(image, host=False))
    two = wire(body=b"{}", headers=(("Content-Type", "application/json"), ("content-type", "text/plain")))
    with pytest.raises(ValueError, match="two content types"):
        detect(two, rules())


@given(path=st.text(max_size=60), value=st.text(max_size=60), body=st.binary(max_size=60))
def test_p1_reading_a_request_is_total_and_keeps_every_part(path: str, value: str, body: bytes) -> None:
    asked = wire(path=path, headers=(("X", value), ("Content-Type", "text/plain")), body=body)
    try:
        texts = [each.text for each in texts_of(asked, host=True)]
    except ValueError:
        texts = [each.text for each in texts_of(wire(path=path, headers=(("X", value),)), host=True)]
    assert {path, value, HERE.host} <= set(texts)


# --- hosts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "api.github.com",
        "raw.githubusercontent.com",
        "account.privatelink.blob.core.windows.net",
        "ec2-203-0-113-25.eu-central-1.compute.amazonaws.com",
        "d111111abcdef8.cloudfront.net",
        "www.giustizia.it",
        "documentazionelegislativa.regione.liguria.it",
        "127.0.0.1",
        "::1",
        "localhost",
    ],
)
def test_a_name_of_words_carries_no_data(host: str) -> None:
    assert class_of_host(host) is DataClass.C0


@pytest.mark.parametrize(
    "host",
    [
        "mfrggzdfmztwq2lk.example.com",
        "a.b.c.d.e.example.com",
        "636f6e6669646574.example.com.",
        "x.Y29uZmlkZXR1ci5pbi5zaWxlbnRpbw0.example.com",
    ],
)
def test_p1_a_name_that_carries_data_is_content(host: str) -> None:
    assert class_of_host(host) is DataClass.C2


def test_p1_a_host_is_content_only_where_it_could_be_chosen() -> None:
    host = f"{CANARY}.example.com"
    terms = BackendTerms(
        name="b", local=False, address=Address(scheme="https", host=host, port=443), ceiling=DataClass.C1
    )
    fixed = judge(wire(host=host), Label(), terms=terms, locality=Locality.REMOTE, rules=rules())
    assert isinstance(fixed, Allowed)
    free = BackendTerms(name="b", local=False, address=HERE, ceiling=DataClass.C1, any_host=True)
    chosen = judge(wire(host=host), Label(), terms=free, locality=Locality.REMOTE, rules=rules())
    assert isinstance(chosen, Denied)
    assert chosen.reason == "class-above-ceiling"
    harmless = judge(
        wire(host="www.example.com"), Label(), terms=free, locality=Locality.REMOTE, rules=rules()
    )
    assert isinstance(harmless, Allowed)


def test_i6_a_credential_split_over_the_labels_of_a_host_is_found() -> None:
    host = f"{AWS[:8]}.{AWS[8:14]}.{AWS[14:]}.example.com"
    assert detect(wire(host=host), rules(Classifier()), host=True) is DataClass.C3
