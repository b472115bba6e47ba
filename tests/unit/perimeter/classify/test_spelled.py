# SPDX-License-Identifier: Apache-2.0
"""What the leak bench found to get through (I6): keys spelled out, accents in an encoding, short base64."""

import base64

import pytest

from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, classify_text, compile_registers
from runner.perimeter.classify.readings import every_reading

KEYS = {
    "cloud": "AKIAXYIMCFIPNZB575Y7",
    "provider": "sk-proj-3J27XDCG2LmlZGEONYlgCtjfIZ4SOcMz9CPVNPkNa1He",
    "code": "ghp_3J27XDCG2LmlZGEONYlgCtjfIZ4SOcMz9CPV",
    "chat": "xoxb-877893287921-CtjfIZ4SOcMz9CPVNPkNa1He",
    "web": "eyJhbGciOiAiSFMyNTYifQ.eyJzdWIiOiAiODc3ODkzMjg3In0.CtjfIZ4SOcMz9CPVNPkNa1He",
    "block": "-----BEGIN PRIVATE KEY-----",
}
CLIENT = "Niccol\u00f2 Frangip\u00e0ne"


def spelled(text: str, sign: str) -> str:
    """Put `sign` between the characters of each word, and three between words."""
    return (sign * 3).join(sign.join(word) for word in text.split(" "))


@pytest.fixture(scope="module")
def practice() -> Classifier:
    clients = [Listed(file="clients", line=1, names=(CLIENT,))]
    return Classifier(registers=compile_registers(clients=clients, own=(), public=(), key=b"k" * 16))


@pytest.mark.parametrize("before", ["", "la chiave \u00e8 ", "usa questa: "])
@pytest.mark.parametrize("sign", [" ", ".", "-"])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_that_is_spelled_out_is_a_key(key: str, sign: str, before: str) -> None:
    found = classify_text(f"{before}{spelled(key, sign)}")
    assert found.data_class is DataClass.C3
    assert found.spans[0].end - found.spans[0].start >= len(spelled(key, sign)) - 2


@pytest.mark.parametrize(
    "text", ["a - b - c - d - e - f - g - h - i - j", "x" + " ." * 40, "- " * 40, "1.1.1.1.1.1.1"]
)
def test_rules_and_lists_are_no_key(text: str) -> None:
    assert classify_text(text).data_class is DataClass.C0


def test_a_name_with_accents_is_found_in_an_encoding(practice: Classifier) -> None:
    """Each accent is two bytes that are no ASCII: they count as one readable character."""
    for encoded in (CLIENT.encode().hex(), base64.b64encode(CLIENT.encode()).decode()):
        assert practice.classify(f"la pratica di {encoded}").data_class is DataClass.C2
    assert practice.classify(f"la pratica di {spelled(CLIENT, '.')}").data_class is DataClass.C2


def test_eleven_digits_in_base64_are_read() -> None:
    """Their base64 has fifteen symbols, and a sign that fills up to sixteen."""
    for encoded in ("NjUxODIzNDc5ODI=", "NjUxODIzNDc5ODI"):
        assert classify_text(f"Steuer-Identifikationsnummer: {encoded}").data_class is DataClass.C2


def test_base64_of_a_number_may_have_no_small_letter() -> None:
    assert base64.b64decode("MDQ2ODU2MTA5MDE=") == b"04685610901"
    assert classify_text("codice fiscale provvisorio: MDQ2ODU2MTA5MDE=").data_class is DataClass.C2


def test_noise_is_no_text() -> None:
    noise = bytes((index * 167 + 13) % 256 for index in range(600))
    assert classify_text(base64.b64encode(noise).decode()).spans == ()


@pytest.mark.parametrize(
    ("text", "readings"), [("molto-lunga-davvero-parola", 1), ("molto1-lunga-davvero-parola", 2)]
)
def test_chunks_are_closed_up_only_with_a_digit_among_them(text: str, readings: int) -> None:
    """Words with hyphens are in every text: another reading of it would cost as much as the first."""
    assert len(every_reading(f"una {text} qui")) == readings
