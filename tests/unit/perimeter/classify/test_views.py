# SPDX-License-Identifier: Apache-2.0
"""I6: look-alikes, invisible characters and encodings do not hide an identifier.

Also the rule that keeps this precise: inside an encoding a check digit needs a word beside it.
"""

import base64
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.perimeter.classify import View, classify_text
from runner.perimeter.classify.decode import _unbase32
from runner.perimeter.classify.escapes import unescape
from runner.perimeter.classify.views import fold, join

CODE = "VRDGPP58T13D969W"


def places(text: str) -> set[tuple[str, str, View]]:
    return {(span.kind, text[span.start : span.end], span.view) for span in classify_text(text).spans}


@pytest.mark.parametrize(
    ("disguised", "view"),
    [
        ("VRDGРР58Т13D969W", View.TEXT),  # Cyrillic letters
        ("ＶＲＤＧＰＰ５８Ｔ１３Ｄ９６９Ｗ", View.TEXT),  # full width
        ("𝐕𝐑𝐃𝐆𝐏𝐏𝟓𝟖𝐓𝟏𝟑𝐃𝟗𝟔𝟗𝐖", View.TEXT),  # mathematical, outside the BMP
        ("VRDGPP٥٨T١٣D٩٦٩W", View.TEXT),  # Arabic digits
        ("VRDGPP\u200b58T13\u2060D969W", View.JOINED),
        ("V\xadR\xadD\xadG\xadPP58T13D969W", View.JOINED),
        ("VRDG\U000e0041PP58T13D969W", View.JOINED),  # tag characters
        ("V\u0336R\u0336DGPP58T13D969W", View.JOINED),  # struck through
        ("VRDG\x00PP58T13D969W", View.JOINED),
        ("%56RDGPP%35%38T13D969W", View.UNESCAPED),
        ("\\u0056RDGPP58T13D969W", View.UNESCAPED),
        ("\\ud835\\udd4dRDGPP58T13D969W", View.UNESCAPED),  # two halves of one letter outside the BMP
        ("%F0%9D%95%8DRDGPP58T13D969W", View.UNESCAPED),
        ("VRDGP\\xd0\\xa058T13D969W", View.UNESCAPED),  # a Cyrillic R in UTF-8
        ("=56RDGPP58T13=44969W", View.UNESCAPED),
        ("&#86;RDGPP58T13&#x44;969W", View.UNESCAPED),
        ("VRDGPP58T13\\u0044969W", View.UNESCAPED),  # four digits and no more, though more follow
        ("VRDGPP58T13\\u{44}969W", View.UNESCAPED),
        ("VRDGPP58T13\\u{000044}969W", View.UNESCAPED),
        ("VRDGPP58T13\\U00000044969W", View.UNESCAPED),
        ("VRDGPP58T13&#0000000068;969W", View.UNESCAPED),
        ("VRDGPP58T13&#x00000044;969W", View.UNESCAPED),
        ("VRDG&ZeroWidthSpace;PP58&zwnj;T13&shy;D969W", View.UNESCAPED),
        ("VRDGPP58T13&Dfr;969W", View.UNESCAPED),  # a letter of another alphabet, by its name
    ],
)
def test_a_disguised_code_is_found_at_its_place(disguised: str, view: View) -> None:
    text = f"😀 C.F. {disguised} — è allegato"
    assert {place for place in places(text) if place[0] != "opaque"} == {("codice_fiscale", disguised, view)}


def test_a_decoded_hit_marks_the_whole_run() -> None:
    run = base64.b64encode(f"paziente {CODE}.".encode()).decode().rstrip("=")
    assert ("codice_fiscale", run, View.DECODED) in places(f"allegato: {run}")


def dump(text: str, form: str, width: int) -> str:
    data = text.encode()
    return "\n".join(
        form.format(at=at, data=data[at : at + 16].hex(" ", width), clear=text[at : at + 16])
        for at in range(0, len(data), 16)
    )


@pytest.mark.parametrize(
    "encode",
    [
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
        lambda text: "xyz" + base64.b64encode(text.encode()).decode(),  # glued: another alignment
        lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
        lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
        lambda text: base64.encodebytes((text * 3).encode()).decode(),
        lambda text: text.encode().hex(),
        lambda text: text.encode().hex(" "),
        lambda text: "\n".join(textwrap.wrap(text.encode().hex(), 60)),  # xxd -p
        lambda text: "\r\n  ".join(textwrap.wrap(text.encode().hex(), 20)),
        lambda text: dump(text, "{at:08x}: {data:39}  {clear}", 2),  # xxd
        lambda text: dump(text, "{at:08x}  {data:48} |{clear}|", 1),  # hexdump -C
        lambda text: ",\n".join(textwrap.wrap(", ".join(map(hex, text.encode())), 70)).replace(",,", ","),
        lambda text: "\n".join(textwrap.wrap(base64.b32encode(text.encode()).decode(), 76)),  # base32
        lambda text: "\n".join(textwrap.wrap(base64.b32encode(text.encode()).decode().lower(), 20)),
        lambda text: text.encode().hex() + "\n" + "ff" * 200,  # a line that is no text hides none that is
        lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
        lambda text: base64.b64encode(text.encode().hex().encode()).decode(),
        lambda text: "".join(f"%25{byte:02x}" for byte in text.encode()),
    ],
)
def test_encodings_are_opened_also_inside_each_other(encode: object) -> None:
    assert callable(encode)
    text = encode(f"il codice fiscale e' {CODE} ecco")
    assert "codice_fiscale" in {span.kind for span in classify_text(text).spans}


@given(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", max_size=80))
def test_base32_is_read_as_rfc_4648_has_it_in_either_case(symbols: str) -> None:
    """Against the standard library, which takes ten times as long; a length that no bytes give is none."""
    padded = symbols + "=" * (-len(symbols) % 8)
    expected = base64.b32decode(padded) if padded.count("=") in {0, 1, 3, 4, 6} else b""
    assert _unbase32(symbols.encode()) == _unbase32(f"{symbols.lower()}\r\n".encode()) == expected


def test_inside_an_encoding_a_check_digit_needs_a_word_inside_or_beside() -> None:
    bare = base64.b64encode(f"alfa beta {CODE} gamma".encode()).decode()
    assert classify_text(f"blob {bare}").spans == ()
    assert {span.kind for span in classify_text(f"codice fiscale {bare}").spans} == {"codice_fiscale"}


def test_folding_keeps_one_byte_for_each_code_point() -> None:
    text = "aé😀\ud800ﬁ№’\u200bЖ"
    assert len(fold(text).data) == len(text)
    assert fold("Però “così” – n° 5").data == b'Pero "cosi" - no 5'


def test_joining_maps_back_through_removals_and_expansions() -> None:
    reading = join("a\u200bﬁn")
    assert reading is not None
    assert reading.data == b"afin"
    assert [reading.original_span(index, index + 1) for index in range(4)] == [(0, 1), (2, 3), (2, 3), (3, 4)]
    assert join("niente da togliere, però") is None


def test_unescaping_maps_back_to_the_escapes() -> None:
    reading = unescape(fold("x%41&#66;z"))
    assert reading.data == b"xABz"
    assert reading.original_span(1, 3) == (1, 9)


@given(st.text(st.sampled_from("ab \u00e0\u20ac\u200b\0"), max_size=12), st.sampled_from(("%", "=", "\\x")))
def test_every_character_of_a_run_of_escapes_is_at_its_own_escapes(text: str, sign: str) -> None:
    """I12: what is replaced for redaction is what was found, and no more."""
    written = [
        "".join(f"{sign}{byte:02X}" for byte in character.encode("utf-8"))
        for character in text
        if character not in "\u200b\0"
    ]
    encoded = "".join(f"{sign}{byte:02X}" for byte in text.encode("utf-8"))
    source = f"x{encoded}y"
    reading = unescape(fold(source))
    assert reading.data == fold(f"x{text}y".replace("\u200b", "").replace("\0", "")).data
    spans = [reading.original_span(index, index + 1) for index in range(1, len(written) + 1)]
    assert [source[start:end] for start, end in spans] == written


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (r'{"nota": "IBAN:\u00a0DE89370400440532013000"}', "iban"),
        (r'{"key": "\u00a0AKIA' + 'IOSFODNN7EXAMPLE"}', "api_key"),
        (r'{"nota": "carta di credito\u00a04111111111111111"}', "card"),
        ("IBAN:&nbsp;DE89370400440532013000", "iban"),
        ("AKIA&NoBreak;" + "IOSFODNN7EXAMPLE", "api_key"),
    ],
)
def test_an_escape_takes_nothing_of_what_stands_behind_it(text: str, kind: str) -> None:
    assert kind in {span.kind for span in classify_text(text).spans}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("&lt;a&gt; &quot;b&quot; &apos;c&apos; &amp;", b"<a> \"b\" 'c' &"),
        ("&#" + "0" * 5_000 + "65;", b"A"),  # more digits than int() takes
        ("&#x110000;\\U00110000", b"??"),  # beyond the last code point
        ("?a=1&copy=2&lt=3 R&D; &nessuna;", b"?a=1&copy=2&lt=3 R&D; &nessuna;"),
        ("\\u{} \\u12 \\U0041", b"\\u{} \\u12 \\U0041"),
    ],
)
def test_an_escape_stands_for_one_character_or_is_none(text: str, data: bytes) -> None:
    assert unescape(fold(text)).data == data
