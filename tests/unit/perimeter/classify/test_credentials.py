# SPDX-License-Identifier: Apache-2.0
"""I5 and I6: a pasted credential is C3, in the clear or encoded, and no placeholder is one."""

import base64

import pytest

from runner.kernel.labels import DataClass
from runner.perimeter.classify import Classifier, View, classify_text

TAIL = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"  # no real key: the alphabet, counted

SHAPES = {
    "aws-access-key": "AKIA" + "ABCDEFGH234567AB",
    "github-token": "ghp_" + TAIL[:36],
    "github-fine-grained": "github_pat_" + TAIL,
    "gitlab-token": "glpat-" + TAIL[:20],
    "anthropic-key": "sk-ant-" + TAIL,
    "openai-key": "sk-proj-" + TAIL,
    "google-api-key": "AIza" + TAIL[:35],
    "google-oauth": "GOCSPX-" + TAIL[:24],
    "slack-token": "xoxb-" + TAIL,
    "slack-webhook": "hooks.slack.com/services/" + TAIL,
    "stripe-key": "sk_live_" + TAIL[:24],
    "hugging-face-token": "hf_" + TAIL[:34],
    "npm-token": "npm_" + TAIL[:36],
    "pypi-token": "pypi-AgE" + TAIL + TAIL,
    "sendgrid-key": "SG." + TAIL[:22] + "." + TAIL,
    "mistral-or-groq-key": "gsk_" + TAIL,
    "telegram-bot-token": "123456789:AA" + TAIL[:33],
    "age-secret-key": "AGE-SECRET-KEY-1" + "Q2W3" * 14,
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + TAIL,
    "private-key-block": "-----BEGIN RSA PRIVATE KEY-----\nMIIB" + TAIL + "\n-----END RSA PRIVATE KEY-----",
    "bearer-token": "Authorization: Bearer " + TAIL,
    "credentials-in-address": "postgres://studio:Segreta99@db.example.org/atti",
    "named-password": "password: Genova!1958",
    "named-secret": "client_secret: Genova!1958",
}


@pytest.mark.parametrize("rule", SHAPES)
def test_every_shape_is_c3(rule: str) -> None:
    text = f"usa {SHAPES[rule]} per accedere"
    found = classify_text(text)
    assert rule in {span.rule for span in found.spans}
    assert found.data_class is DataClass.C3


@pytest.mark.parametrize("rule", SHAPES)
def test_every_shape_is_found_inside_base64(rule: str) -> None:
    encoded = base64.b64encode(f"ecco: {SHAPES[rule]} fine".encode()).decode()
    found = classify_text(f"blob {encoded}")
    assert (rule, View.DECODED) in {(span.rule, span.view) for span in found.spans}
    assert found.data_class is DataClass.C3


def test_the_table_above_covers_every_credential_rule() -> None:
    from runner.perimeter.classify.credentials import CREDENTIALS  # noqa: PLC0415 - used by this test alone

    assert {rule.name for rule in CREDENTIALS} == {
        *SHAPES,
        "password-under-its-name",
        "secret-under-its-name",
    }


def test_the_span_is_the_secret_and_not_its_name() -> None:
    text = "la password è Genova!1958, non dirla"
    (span,) = classify_text(text).spans
    assert text[span.start : span.end] == "Genova!1958"


def test_the_name_of_the_field_counts_as_a_word() -> None:
    assert classify_text("Genova!1958", source="db_password").data_class is DataClass.C3
    assert classify_text("Genova!1958", source="city").data_class is DataClass.C0
    assert classify_text("5360123456789018", source="card_number").data_class is DataClass.C2


def test_a_span_holds_no_text() -> None:
    """I12: a repr that reaches a log says where and what, never the secret."""
    for secret in SHAPES.values():
        assert secret not in repr(classify_text(secret))
        assert secret[-12:] not in repr(classify_text(f"x {secret} y"))


@pytest.mark.parametrize(
    "value",
    [
        *["********", "<password>", "changeme1!", "${DB_PASSWORD}", "aaaaaa11", "parola", "your_password1"],
        *["YOUR_API_KEY_1", "example1", "redacted123", "sk-...12ab", "your-secret-key-1"],
    ],
)
def test_a_placeholder_is_no_secret(value: str) -> None:
    for name in ("password", "token"):
        assert Classifier().classify(f"{name}: {value}").spans == ()


@pytest.mark.parametrize(
    "value",
    [
        *[
            "${DB_PASS1}",
            "$DB_PASS1",
            "$db_password",
            "$(cat secret1)",
            "{{db_pass1}}",
            "<PASSWORD_1>",
            "%(pass1)s",
        ],
        *["os.environ['DB1']", "get_secret('db1')", "os.getenv(DB1)", "base64.b64decode(x1)", "[your1]"],
    ],
)
def test_where_a_secret_is_kept_is_no_secret(value: str) -> None:
    assert Classifier().classify(f"password={value}").spans == ()


@pytest.mark.parametrize(
    "value",
    ["$ecret99!", "$Luna2024", "%Luna2024", "Xk!9(z77", "Xk9Zq2os.environ", "$uper-9-Luna", "9Ab(x!zz"],
)
def test_i6_a_sign_of_references_in_a_secret_does_not_free_it(value: str) -> None:
    assert Classifier().classify(f"password={value}").data_class is DataClass.C3


NAMES = ["max_tokens2", "k8s-secret", "access_token_2", "API_KEY_1", "client_secret2", "db.secret.ref1"]


@pytest.mark.parametrize("value", NAMES)
def test_the_name_of_a_secret_is_no_secret_but_a_password_may_look_like_it(value: str) -> None:
    for name in ("token", "secret", "api_key"):
        assert Classifier().classify(f"{name}: {value}").spans == ()
        assert Classifier().classify(value, source=name).spans == ()
    for name in ("password", "pwd", "passphrase"):
        assert Classifier().classify(f"{name}: {value}").data_class is DataClass.C3
        assert Classifier().classify(value, source=name).data_class is DataClass.C3


@pytest.mark.parametrize(
    "value",
    [
        *["luna-secret-24", "mario_key_77", "gatto-password-9", "ROSSI_KEY_99", "my-key-9", "k9x-key-a1b"],
        *["a1b-token-c2d", "milan-null-899", "my_secret_2", "correct_horse_key9", "your.dog.name.9"],
        *["none-shall-pass-9!", "null_key_9", "key_12_secret_34", "token9", "example-luna-9"],
    ],
)
@pytest.mark.parametrize("name", ["password", "pwd", "passphrase", "token", "secret", "api_key"])
def test_i6_a_word_of_programs_inside_a_secret_does_not_free_it(name: str, value: str) -> None:
    said = f"ecco {name}: {value} fine"
    entities = "".join(f"&#{ord(letter)};" for letter in said)
    for text in (said, entities, base64.b64encode(said.encode()).decode()):
        assert classify_text(text).data_class is DataClass.C3


@pytest.mark.parametrize(
    "value",
    [
        *["none4Xk9Zq2", "your4Xk9Zq", "Kq77!example", "exampleKq77!zz", "fooxxxBar9!", "redacted9Zk4q2LL"],
        *[
            "placeholder!9xQ2",
            "k4Z...9qLm2Xw",
            "Zq***9kLm2Xw",
            "token1",
            "secret123",
            "password1",
            "Key_9Zk4q",
        ],
    ],
)
def test_a_word_of_placeholders_inside_a_secret_does_not_free_it(value: str) -> None:
    (span,) = Classifier().classify(f"password={value}").spans
    assert (span.data_class, span.rule) == (DataClass.C3, "named-password")
