# SPDX-License-Identifier: Apache-2.0
"""I6, I8, I12: the map of a task, its tokens, and the rewriting of a request."""

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, Json, Message, Role
from runner.perimeter.classify import Classifier
from runner.perimeter.redact import TOKEN, Redactor, StreamRestorer, Unredactable
from runner.perimeter.rewrite import redact_request
from runner.testing import FakeClassifier, FakeHit

SECRET = "Mario Rossi"
C1, C2 = DataClass.C1, DataClass.C2


def redactor() -> Redactor:
    return Redactor(lambda: secrets.token_hex(16))


def hits(text: str, *values: str, kind: str = "persona", redactable: bool = True) -> list[FakeHit]:
    return [
        FakeHit(
            start=text.index(value),
            end=text.index(value) + len(value),
            data_class=C2,
            kind=kind,
            redactable=redactable,
        )
        for value in values
    ]


def redact(made: Redactor, text: str, *values: str, kind: str = "persona") -> str:
    """Redact and mark as sent."""
    redacted, removals = made.take_out(text, hits(text, *values, kind=kind), above=C1)
    made.mark_sent(removal.entry for removal in removals)
    return redacted


# --- tokens -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("persona", "PERSONA"),
        ("codice_fiscale", "CODICE_FISCALE"),
        ("health-data 2", "HEALTH_DATA"),
        ("età", "ET"),
        ("", "X"),
        ("12", "X"),
        ("k" * 100, "K" * 40),
    ],
)
def test_a_token_says_what_kind_of_thing_was_removed(kind: str, word: str) -> None:
    redacted = redact(redactor(), f"for {SECRET}", SECRET, kind=kind)
    assert redacted.startswith(f"for [{word}_")
    assert TOKEN.fullmatch(redacted.removeprefix("for "))


def test_the_same_value_has_the_same_token_and_others_have_others() -> None:
    made = redactor()
    one = redact(made, SECRET, SECRET)
    assert redact(made, f"{SECRET}, again {SECRET}", SECRET) == f"{one}, again {one}"
    assert redact(made, "Anna Verdi", "Anna Verdi") != one


def test_a_token_that_was_seen_or_taken_is_never_made() -> None:
    """Collisions: the first two draws are taken, one by an entry and one by the input itself."""
    draws = iter(["0", "0", "1", "2", "2", "3"])
    made = Redactor(lambda: next(draws))
    first = redact(made, SECRET, SECRET)
    assert first == "[PERSONA_bbbbbb]"
    text = "Anna Verdi, not [PERSONA_cbbbbb]"
    redacted = redact(made, text, "Anna Verdi")
    assert redacted == "[PERSONA_dbbbbb], not [LITERAL_dbbbbb]"
    assert made.restore(redacted) == text


def test_i7_when_no_token_is_free_nothing_is_redacted() -> None:
    made = Redactor(lambda: "0")
    redact(made, SECRET, SECRET)
    with pytest.raises(Unredactable, match="no free token"):
        redact(made, "Anna Verdi", "Anna Verdi")


# --- restoring ----------------------------------------------------------------------------------------


def test_only_tokens_that_were_sent_are_restored() -> None:
    made = redactor()
    redacted, removals = made.take_out(SECRET, hits(SECRET, SECRET), above=C1)
    assert made.restore(redacted) == redacted
    made.mark_sent(removal.entry for removal in removals)
    assert made.restore(redacted) == SECRET


def test_what_looked_like_a_token_in_the_input_comes_back_as_it_was() -> None:
    """Otherwise a document could write down a token and have it turned into a value."""
    made = redactor()
    token = redact(made, SECRET, SECRET)
    page = f"a page that says {token}"
    redacted = redact(made, page)
    assert token not in redacted
    assert made.restore(redacted) == page
    assert made.restore(f"{token} and {redacted}") == f"{SECRET} and {page}", "restored once, not twice"


def test_only_leaves_of_parsed_json_are_restored() -> None:
    made = redactor()
    token = redact(made, 'O"Rossi\\', 'O"Rossi\\')
    value: Json = {"a": [f"<{token}>", 1, None, True, 1.5], token: {"b": token}}
    assert made.restore(value) == {"a": ['<O"Rossi\\>', 1, None, True, 1.5], token: {"b": 'O"Rossi\\'}}


def test_a_token_that_a_model_altered_stays_as_it_is() -> None:
    made = redactor()
    token = redact(made, SECRET, SECRET)
    for altered in (token.lower(), token[:-1], token[1:], token.replace("_", "-"), f"[ {token[1:]}"):
        assert made.restore(altered) == altered


def test_a_stream_shows_no_token_cut() -> None:
    made = redactor()
    token = redact(made, SECRET, SECRET)
    restorer = StreamRestorer(made)
    assert [restorer.feed(piece) for piece in ("of ", token[:1], token[1:9], token[9:], " [x")] == [
        "of ",
        "",
        "",
        SECRET,
        " [x",
    ]
    assert restorer.finish() == ""


def test_a_map_that_was_forgotten_restores_nothing() -> None:
    made = redactor()
    token = redact(made, SECRET, SECRET)
    made.forget()
    assert made.restore(token) == token
    assert made.holds({"a": SECRET}, sent=False) is DataClass.C0


def test_i12_no_repr_shows_a_value() -> None:
    made = redactor()
    redacted, removals = made.take_out(SECRET, hits(SECRET, SECRET), above=C1)
    assert SECRET not in f"{made!r}{removals!r}"
    assert redacted not in repr(made)


# --- what is removed ----------------------------------------------------------------------------------


def test_a_known_value_is_removed_where_no_detector_sees_it() -> None:
    made = redactor()
    made.learn(f"Sig. {SECRET}", hits(f"Sig. {SECRET}", SECRET))
    for text in (f"x{SECRET}y", f"mr {SECRET.lower()} came", f"{SECRET.upper()}", f'{{"name":"{SECRET}"}}'):
        assert SECRET.lower() not in redact(made, text).lower()


def test_another_case_inside_a_longer_word_is_left_alone() -> None:
    made = redactor()
    made.learn("Sig. Bianchi", hits("Sig. Bianchi", "Bianchi"))
    assert redact(made, "imbianchino, sbianchi") == "imbianchino, sbianchi"


def test_a_value_is_removed_as_json_text_spells_it() -> None:
    made = redactor()
    value = 'Via "Roma"\n12'
    made.learn(value, hits(value, value))
    assert "Roma" not in redact(made, '{"address":"Via \\"Roma\\"\\n12"}')


@pytest.mark.parametrize(
    "text", ["the code is RSSMRA80", "A01H501U is the code", "RSSM", "codeRSSMRA80", "the code is rssmra80"]
)
def test_a_value_cut_off_at_the_edge_of_a_text_is_removed(text: str) -> None:
    """A context that is cut to length cuts identifiers too, and half of one says enough."""
    made = redactor()
    code = "RSSMRA80A01H501U"
    made.learn(code, hits(code, code, kind="codice_fiscale"))
    redacted = redact(made, text)
    assert not any(part in redacted.upper() for part in ("RSSM", "501U"))
    assert made.restore(redacted) == text
    again = redact(made, f"inside {made.restore(redacted)} now")
    assert not any(part in again for part in ("RSSMRA80", "A01H501U"))


def test_overlapping_hits_become_one_token_of_the_more_sensitive_kind() -> None:
    made = redactor()
    text = "tel. 06 1234567 int. 8"
    phone = FakeHit(start=5, end=15, data_class=C2, kind="phone")
    other = FakeHit(start=8, end=22, data_class=DataClass.C3, kind="other")
    redacted, (removal,) = made.take_out(text, [phone, other], above=C1)
    assert (removal.start, removal.end, removal.entry.kind) == (5, 22, "other")
    assert redacted == f"tel. {removal.entry.token}"


def test_only_what_is_above_the_ceiling_is_removed() -> None:
    text = "P.IVA 12345678901"
    vat = FakeHit(start=6, end=17, data_class=C1, kind="partita_iva")
    assert redactor().take_out(text, [vat], above=C1) == (text, ())
    assert "12345678901" not in redactor().take_out(text, [vat], above=DataClass.C0)[0]


def test_p1_what_lies_inside_an_encoding_is_not_redacted_but_denied() -> None:
    text = f"base64 {SECRET}"
    with pytest.raises(Unredactable, match="inside an encoding"):
        redactor().take_out(text, hits(text, SECRET, redactable=False), above=C1)


def test_an_encoding_that_was_seen_is_removed_where_nobody_opens_it() -> None:
    made = redactor()
    made.learn(f"codice fiscale {SECRET}", hits(f"codice fiscale {SECRET}", SECRET, redactable=False))
    assert SECRET not in redact(made, f"x {SECRET} y")


def test_p1_the_shipped_classifier_says_what_lies_inside_an_encoding() -> None:
    import base64  # noqa: PLC0415 - one use

    run = base64.b64encode(b"codice fiscale RSSMRA80A01H501U").decode()
    found = Classifier().classify(f"codice fiscale: {run}").spans
    assert [span.redactable for span in found] == [False]


@pytest.mark.parametrize(
    "text", ["📎 Größe İstanbul Mario Rossi ß", "Mario Rossi\ud800", "\u200bMario Rossi\u0301"]
)
def test_unicode_around_a_value_survives(text: str) -> None:
    made = redactor()
    redacted = redact(made, text, SECRET)
    assert SECRET not in redacted
    assert made.restore(redacted) == text


def test_characters_that_grow_in_lower_case_do_not_shift_what_is_removed() -> None:
    made = redactor()
    made.learn(SECRET, hits(SECRET, SECRET))
    text = "İİİİ ΟΔΟΣ and MARIO ROSSI, owner"
    redacted = redact(made, text)
    assert redacted.startswith("İİİİ ΟΔΟΣ and [PERSONA_")
    assert redacted.endswith("], owner")
    assert made.restore(redacted) == text


def test_a_huge_text_with_many_values_takes_seconds_at_most() -> None:
    made = redactor()
    values = [f"{number:011d}" for number in range(1000)]
    text = " and some words between, as letters have them, ".join(values * 20)
    found = [FakeHit(start=at * 58, end=at * 58 + 11, data_class=C2, kind="n") for at in range(20_000)]
    assert text[58 : 58 + 11] == values[1]
    began = time.monotonic()
    redacted = made.take_out(text, found, above=C1)[0]
    assert time.monotonic() - began < 120
    assert len(TOKEN.findall(redacted)) == 20_000


def test_threads_that_share_a_map_agree_on_every_token() -> None:
    made = redactor()
    names = [f"Nome{number:03d} Cognome" for number in range(200)]

    def work(_: int) -> list[str]:
        return [redact(made, name, name) for name in names]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    assert all(result == results[0] for result in results)
    assert len(set(results[0])) == len(names)
    assert [made.restore(token) for token in results[0]] == names


# --- what a value is held by --------------------------------------------------------------------------


def test_i8_arguments_that_hold_a_sent_value_are_known_by_its_class() -> None:
    made = redactor()
    made.learn("Anna Verdi", hits("Anna Verdi", "Anna Verdi"))
    redact(made, SECRET, SECRET)
    made.take_out("Anna Verdi", (), above=C1)  # a request that was denied in the end
    assert made.holds({"a": [{"b": f"about {SECRET.upper()}x"}]}, sent=True) is C2
    assert made.holds({SECRET: 1}, sent=True) is C2
    assert made.holds({"a": "Anna Verdi"}, sent=True) is DataClass.C0
    assert made.holds({"a": "Anna Verdi"}, sent=False) is C2
    assert made.holds({"a": "nobody", "b": None}, sent=False) is DataClass.C0


# --- a request ----------------------------------------------------------------------------------------


def request(*texts: str, schema: Any = None) -> InferenceRequest:
    blocks = tuple(
        Block(id=f"b{number}", kind=BlockKind.GOAL, text=text, label=Label())
        for number, text in enumerate(texts)
    )
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=blocks),), schema=schema, seed=7)


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in strings(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in strings(item))


def test_p1_blocks_and_schema_strings_are_rewritten_with_one_map() -> None:
    schema = {
        "type": "object",
        "properties": {
            "quote": {"enum": [f"line of {SECRET}", "another line"], "description": f"about {SECRET}"},
            "a/b~c": {"const": SECRET},
        },
    }
    asked = request(f"Who is {SECRET}?", "nothing", schema=schema)
    made = redactor()
    result = redact_request(asked, made, FakeClassifier({SECRET: C2}), above=C1)
    (entry,) = result.entries
    token = entry.token
    (message,) = result.request.messages
    assert [block.text for block in message.blocks] == [f"Who is {token}?", "nothing"]
    rewritten: Any = result.request.schema
    assert rewritten["properties"]["quote"]["enum"] == [f"line of {token}", "another line"]
    assert SECRET not in "".join(strings(rewritten))
    assert {span.pointer for span in result.spans} == {
        "/messages/0/blocks/0",
        "/schema/properties/quote/enum/0",
        "/schema/properties/quote/description",
        "/schema/properties/a~1b~0c/const",
    }
    assert (result.request.seed, asked.schema) == (7, schema), "the original is not touched"


def test_a_request_without_anything_to_remove_is_the_same_request() -> None:
    asked = request("hello", schema={"type": "object", "properties": {"n": {"pattern": "[PERSONA_bcdfgh]"}}})
    result = redact_request(asked, redactor(), FakeClassifier(), above=C1)
    assert (result.request, result.spans, result.entries) == (asked, (), ())


def test_a_value_seen_in_the_last_block_is_removed_from_the_first() -> None:
    context = Classifier()
    asked = request("Rossi Mario owes rent", "the tenant is sig. Rossi Mario")
    result = redact_request(asked, redactor(), context, above=C1)
    assert "Rossi" not in "".join(block.text for block in result.request.messages[0].blocks)


def test_member_names_are_not_rewritten() -> None:
    """So what is found in one is still there when the bytes are judged again, and denies."""
    schema = {"type": "object", "properties": {SECRET: {"type": "string"}}}
    result = redact_request(request("x", schema=schema), redactor(), FakeClassifier({SECRET: C2}), above=C1)
    assert result.request.schema == schema


# --- white space ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["\n", "  ", "\t", "\r\n", " \n    ", "\n> ", "\n> > ", "\u00a0", "\u2028"])
def test_i6_a_value_in_other_white_space_has_the_same_token(run: str) -> None:
    made = redactor()
    text = f"Il sig. Mario Rossi vende; con Mario{run}Rossi, poi MARIO{run}ROSSI, e mario-rossi."
    redacted = redact(made, text, SECRET)
    (token, other, *more) = TOKEN.findall(redacted)
    assert (token, more) == (other, TOKEN.findall(redacted)[2:])
    assert redacted.startswith(f"Il sig. {token} vende; con {token}, poi [")
    assert redacted.endswith("], e mario-rossi.")
    assert made.restore(f"{token}!") == "Mario Rossi!"


def test_i6_a_value_that_was_wrapped_when_it_was_found_is_taken_out_in_one_line() -> None:
    made = redactor()
    redacted = redact(made, "Con Mario\n> Rossi: scrivi a Mario Rossi.", "Mario\n> Rossi")
    assert TOKEN.sub("[]", redacted) == "Con []: scrivi a []."
    assert len(set(TOKEN.findall(redacted))) == 1


def test_i8_what_stands_around_longer_white_space_keeps_its_place() -> None:
    made = redactor()
    text = "a  b\n\n\nc \t d Mario   Rossi\n\n> e  f MARIO\nROSSI  g"
    redacted = redact(made, text, "Mario   Rossi")
    assert TOKEN.sub("[]", redacted) == "a  b\n\n\nc \t d []\n\n> e  f []  g"


@pytest.mark.parametrize("sent", [True, False])
def test_i8_a_value_is_held_whatever_its_white_space(*, sent: bool) -> None:
    made = redactor()
    redact(made, "Mario Rossi", SECRET)
    assert made.holds({"to": "mario\nrossi"}, sent=sent) is C2
    assert made.holds({"to": "mariorossi"}, sent=sent) is DataClass.C0


def test_i6_time_is_linear_in_a_text_of_white_space() -> None:
    made = redactor()
    redact(made, "Mario Rossi", SECRET)
    started = time.process_time()
    for sign in (" ", "\n", "\n> ", " \n"):
        made.take_out(sign * 100_000, [], above=C1)
    assert time.process_time() - started < 5
