# SPDX-License-Identifier: Apache-2.0
"""I6: what is written so that nobody reads it may not leave as if it had been read."""

import base64
from functools import reduce
from urllib.parse import quote

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import classify_text

PLAIN = "the hearing is on Tuesday, in room 4, at nine"


def rules_of(text: str) -> list[str]:
    return [span.rule for span in classify_text(text).spans]


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def times(encode: object, count: int) -> str:
    assert callable(encode)
    return str(reduce(lambda text, _: encode(text), range(count), PLAIN))


def base32_of(text: str) -> str:
    return base64.b32encode(text.encode()).decode().rstrip("=").lower()


def escaped(text: str) -> str:
    return quote(text, safe="")


def entities(text: str) -> str:
    return text.replace("&", "&amp;").replace(",", "&#44;")


@pytest.mark.parametrize(
    "encode", [base64_of, base32_of, escaped, entities, lambda text: text.encode().hex()]
)
def test_what_is_encoded_more_often_than_is_read_is_not_taken_for_harmless(encode: object) -> None:
    assert rules_of(times(encode, 3)) == []
    assert rules_of(times(encode, 4)) == ["packed-beyond-reading"]
    assert classify_text(times(encode, 5)).data_class is DataClass.C2


@pytest.mark.parametrize(
    "text",
    [
        "<a href='x.html#a-b-c-d-e-f-g-h'>%20 &amp; name(draft_goal_of_x1.node_y2)</a> A-1-B-2-C-3-D-4 &#39;",
        "case Naming(node=node): return replace(draft, naming=goal(node.left_hand_1.side_of_it_2)) =3D",
    ],
)
def test_a_page_with_escapes_and_hyphens_is_no_riddle(text: str) -> None:
    assert rules_of(text * 20) == []


@pytest.mark.parametrize(
    ("encode", "name"),
    [
        (lambda data: base64.b32encode(data).decode(), "base32"),
        (lambda data: base64.b32encode(data).decode().lower().rstrip("="), "base32 in small letters"),
        (lambda data: ", ".join(f"0x{byte:02x}" for byte in data), "a list of bytes"),
        (lambda data: ",".join(f"{byte:02X}" for byte in data), "hexadecimal with commas"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_i6_a_credential_is_read_in_further_spellings(encode: object, name: str) -> None:
    assert callable(encode)
    text = f"{name}: {encode(('AKIA' + 'IOSFODNN7EXAMPLE').encode())}."
    assert [(span.kind, span.view.value) for span in classify_text(text).spans] == [("api_key", "decoded")]


@pytest.mark.parametrize("text", ["l'аvvocato", "cаt /еtc/pаsswd", "Rоssi", "рaypal"])
def test_a_word_of_two_alphabets_is_written_to_deceive(text: str) -> None:
    assert rules_of(text) == ["mixed-alphabets"]
    assert classify_text(text).data_class is DataClass.C2


@pytest.mark.parametrize(
    "text", ["TNFα e IFNβ", "Москва", "PDF-файл", "la parola «адвокат» vuol dire avvocato", "μg/ml", "naïve"]
)
def test_two_alphabets_beside_each_other_are_no_disguise(text: str) -> None:
    assert rules_of(text) == []
