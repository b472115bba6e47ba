# SPDX-License-Identifier: Apache-2.0
"""P1, I6, I8, I12: media are bytes with a label, and what can be read in them is read at the gate."""

import base64
import hmac
import json
import struct
import zlib
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.kernel.errors import EgressDenied, MediaError, SealError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass, Integrity
from runner.kernel.messages import MAX_MEDIA_BYTES, Block, Media, Message, Role
from runner.kernel.ports import Locality
from runner.perimeter.classify import (
    FRAGMENTS,
    Classifier,
    EchoIndex,
    carried,
    classify_text,
    is_picture,
    texts_in,
)
from runner.perimeter.release import Rules
from runner.testing import FakeClassifier


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


CODE = "RSSMRA80A01F205X"
CANARY = "the secret of the client"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*notes: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    points = chunk(b"IDAT", zlib.compress(bytes(4)))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(notes) + points + chunk(b"IEND", b"")


def jpeg(*segments: tuple[int, bytes]) -> bytes:
    told = b"".join(
        b"\xff" + bytes([kind]) + struct.pack(">H", len(body) + 2) + body for kind, body in segments
    )
    return b"\xff\xd8" + told + b"\xff\xda\x00\x02" + bytes(range(256)) + b"\xff\xd9"


def gzipped(data: bytes, *, name: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return (
        b"\x1f\x8b\x08\x08" + bytes(6) + name + b"\0" + packer.compress(data) + packer.flush() + b"bad sum!"
    )


def pdf(stream: bytes, words: bytes = b"/Filter /FlateDecode") -> bytes:
    body = zlib.compress(stream)
    return (
        b"%PDF-1.7\n1 0 obj << /Length 9 "
        + words
        + b" >>\nstream\r\n"
        + body
        + b"\r\nendstream\nendobj\n%%EOF"
    )


def asking(*blocks: Block) -> InferenceRequest:
    return InferenceRequest(messages=(Message(role=Role.USER, blocks=blocks),))


CLEAN = png()
HIDDEN = {
    "a PNG note": png(chunk(b"tEXt", b"Comment\0" + CODE.encode())),
    "a packed PNG note": png(chunk(b"zTXt", b"Comment\0\0" + zlib.compress(CODE.encode()))),
    "a packed international note": png(chunk(b"iTXt", b"C\0\1\0it\0\0" + zlib.compress(CODE.encode()))),
    "Exif in UTF-16": jpeg((0xE1, b"Exif\0\0MM\0*" + CODE.encode("utf-16-be"))),
    "XMP": jpeg((0xE1, f"http://ns.adobe.com/xap/1.0/\0<dc:creator>{CODE}</dc:creator>".encode())),
    "a JPEG comment": jpeg((0xFE, CODE.encode())),
    "behind the picture": CLEAN + CODE.encode(),
    "among the points": CLEAN.replace(b"IEND", b"IDAT\x90\x01" + CODE.encode() + b"\xff"),
    "a drawing": f"<svg><text>{CODE}</text></svg>".encode(),
    "a drawing in pieces": b'<svg><text><tspan>RSSMRA</tspan><tspan x="9">80A01F205X</tspan></text></svg>',
    "a drawing, packed": gzipped(f"<svg>{CODE}</svg>".encode(), name=b"a.svg"),
    "a page": f"<p>codice <b>{CODE[:6]}</b>{CODE[6:]}</p>".encode(),
    "a table": f"nome;codice\r\nRossi;{CODE}\r\n".encode("cp1252"),
    "a table in UTF-16": f"nome;codice\r\nRossi;{CODE}\r\n".encode("utf-16"),
    "a page of a PDF": pdf(b"BT [(RSSMRA) -20.5 (80A01) 3(F205X)] TJ ET"),
    "a picture in a drawing": b'<svg><image href="data:image/png;base64,'
    + base64.b64encode(png(chunk(b"tEXt", b"C\0" + CODE.encode())))
    + b'"/></svg>',
}


def found(texts: Any) -> DataClass:
    classifier = Classifier()
    return max((classifier.classify(text).data_class for text in texts), default=DataClass.C0)


@pytest.mark.parametrize("place", HIDDEN)
def test_i6_what_can_be_read_in_media_is_found(place: str) -> None:
    """In the bytes themselves, and in the base64 by which they travel, whatever their type is said to be."""
    data = HIDDEN[place]
    assert found(texts_in(data)) is DataClass.C2
    assert found(carried(f"data:image/png;base64,{base64.b64encode(data).decode()}")) is DataClass.C2
    assert found(carried(base64.urlsafe_b64encode(data).decode().rstrip("="))) is DataClass.C2


def test_i6_a_short_name_in_a_note_is_read() -> None:
    """Where pictures keep their notes a few letters count; among the points they are noise."""
    assert any("Ugo" in text for text in texts_in(png(chunk(b"tEXt", b"Author\0Ugo"))))
    assert any("Ugo" in text for text in texts_in(jpeg((0xE1, b"\0\0Ugo\0\0"))))


def test_a_picture_without_words_says_nothing() -> None:
    noise = b"".join(sha256(bytes([index % 256, index // 256])).digest() for index in range(30_000))
    assert found(texts_in(CLEAN)) is DataClass.C0
    assert found(texts_in(png(chunk(b"IDAT", noise)))) is DataClass.C0
    assert found(texts_in(png(chunk(b"zTXt", b"profile\0\0\x78\x9c" + noise)))) is DataClass.C0
    assert found(carried(base64.b64encode(noise).decode())) is DataClass.C0


LOOK_ALIKE = "AA+/" + CODE + "/+AA"
"""Base64 of bytes that say nothing: only its letters spell an identifier."""
WHOLE = {
    "png": png(chunk(b"teXt", b"x" + base64.b64decode(LOOK_ALIKE) * 3)),
    "jpeg": jpeg((0xDB, base64.b64decode(LOOK_ALIKE) * 3)),
    "gif": b"GIF89a" + base64.b64decode(LOOK_ALIKE) * 3 + b"\x3b",
    "webp": b"RIFF" + struct.pack("<I", 64) + b"WEBP" + base64.b64decode(LOOK_ALIKE) * 3 + b"ABCDEF",
}


@pytest.mark.parametrize("kind", WHOLE)
def test_the_letters_of_a_picture_are_no_text_where_pictures_stand(kind: str) -> None:
    """In megabytes of base64 identifiers arise by chance. Elsewhere, or with anything beside, they count."""
    spelled = base64.b64encode(WHOLE[kind]).decode()
    rules = Rules(
        classifier=Classifier(),
        fault_as_c3=False,
        locality_c2=Locality.L0,
        locality_c3=Locality.L2,
        fragments=Classifier(FRAGMENTS),
    )
    assert is_picture(spelled, "data")
    assert is_picture(f"data:image/{kind};base64,{spelled}", "url")
    for name in ("text", "content", "input", None):
        assert not is_picture(spelled, name)
    for beside in (
        f"{spelled} x",
        f"x{spelled}",
        f"data:image/x;base64,{spelled}",
        spelled[:-4],
        spelled[4:],
    ):
        assert not is_picture(beside, "data")
    if spelled.endswith("=="):
        another = spelled[:-3] + chr(ord(spelled[-3]) + 1) + "=="
        assert base64.b64decode(another) == WHOLE[kind]
        assert not is_picture(another, "data"), "one of several spellings: the rest could say something"
    damaged = [WHOLE[kind][:-1], WHOLE[kind] + b"x", WHOLE[kind][1:]]
    assert not any(is_picture(base64.b64encode(each).decode(), "data") for each in damaged)
    assert CODE in spelled
    assert rules.class_of(spelled, "data") is DataClass.C0
    assert rules.class_of(spelled, "text") is DataClass.C2
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    assert rules.class_of(f"{spelled[:44]}/{key}/{spelled[44:]}", "text") is DataClass.C3


def test_i6_what_unpacks_to_more_than_is_read_counts_as_found() -> None:
    bomb = png(chunk(b"zTXt", b"C\0\0" + zlib.compress(bytes(16 << 20))))
    assert found(texts_in(bomb)) is DataClass.C2
    assert found(texts_in(pdf(bytes(16 << 20)))) is DataClass.C2


def test_the_points_of_a_picture_in_a_pdf_are_no_bomb() -> None:
    """A white page packs a thousand to one, and nobody reads it as text."""
    assert found(texts_in(pdf(b"\xff" * (4 << 20), b"/Subtype /Image /Filter /FlateDecode"))) is DataClass.C0


@given(data=st.binary(max_size=400), head=st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8", b"%PDF-"]))
def test_i7_reading_is_total_on_any_bytes(data: bytes, head: bytes) -> None:
    assert all(isinstance(text, str) for text in texts_in(head + data))
    assert all(isinstance(text, str) for text in carried(base64.b64encode(head + data).decode()))


# --- media in a task ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "found_in_it", "counts"),
    [
        (None, False, DataClass.C3),
        (DataClass.C1, False, DataClass.C1),
        (DataClass.C0, True, DataClass.C2),
        (DataClass.C3, True, DataClass.C3),
    ],
)
def test_i8_media_are_c3_unless_somebody_says_otherwise(
    declared: DataClass | None, found_in_it: bool, counts: DataClass, make_world: Any
) -> None:
    world = make_world(classifier=Classifier())
    data = HIDDEN["a PNG note"] if found_in_it else CLEAN
    with world.perimeter.task("q") as task:
        block = task.media(data, "image/png", data_class=declared)
        assert task.owns(block)
        assert task.mark.data_class is max(counts, DataClass.C1)
        assert task.residue.data_class is task.mark.data_class, "no redaction takes anything out of media"
    assert (block.label.data_class, block.label.integrity) == (counts, Integrity.UNTRUSTED)
    assert block.label.default is (DataClass.C3 if declared is None else DataClass.C0)
    (record,) = [each for each in world.records("classify") if each["block"] == block.id]
    assert record["class"] == counts.name


def test_i12_the_record_commits_to_the_bytes_and_no_repr_shows_them(make_world: Any) -> None:
    world = make_world()
    with world.perimeter.task("q") as task:
        block = task.media(CANARY.encode(), "image/png")
    (record,) = [each for each in world.records("classify") if each["block"] == block.id]
    salts = world.perimeter.trace._salts.salts
    salt = salts[record["commit"]]
    assert record["commit"] == hmac.new(salt, b"akaion-commit/1\0" + CANARY.encode(), sha256).hexdigest()
    assert CANARY not in repr(block)
    assert CANARY not in repr(block.media)
    assert repr(block.media) == f"<Media {len(CANARY)} bytes>"


@pytest.mark.parametrize(
    ("data", "mime", "problem"),
    [
        ("scan.png", "image/png", "media are bytes"),
        (b"", "image/png", "1 to"),
        (bytes(MAX_MEDIA_BYTES + 1), "image/png", "1 to"),
        (CLEAN, "image/png; name=Rossi", "media type"),
        (CLEAN, "IMAGE/PNG", "media type"),
        (CLEAN, "image", "media type"),
    ],
    ids=["a path", "empty", "too large", "a parameter", "capitals", "no subtype"],
)
def test_p1_media_are_bytes_of_a_plain_type(data: Any, mime: str, problem: str) -> None:
    with pytest.raises(MediaError, match=problem) as caught:
        Media(mime=mime, data=data)
    assert "Rossi" not in str(caught.value)


@pytest.mark.anyio
async def test_p1_the_gate_reads_the_bytes_and_not_the_label(make_world: Any) -> None:
    """Media declared public whose note names a client: denied for what stands in the wire."""
    world = make_world(replies=["never"], local=False, ceiling=DataClass.C1, classifier=Classifier())
    with world.perimeter.task("q") as task:
        block = task.media(HIDDEN["a packed PNG note"], "image/png", data_class=DataClass.C0)
        with pytest.raises(EgressDenied) as caught:
            await world.client.infer(asking(task.goal, block), task=task)
    assert (caught.value.reason, caught.value.data_class) == ("class-above-ceiling", DataClass.C2)
    wire = world.backend.encode(asking(block))
    checked = world.perimeter._finished["scripted"]
    denied = world.perimeter.release(
        wire, replace(block.label, detected=DataClass.C0), "scripted", checked=checked
    )
    assert (denied.reason, denied.data_class) == ("class-above-ceiling", DataClass.C2)
    assert world.backend.transport.sent == []


@pytest.mark.anyio
async def test_p1_a_declared_picture_leaves_and_its_bytes_are_in_the_wire(make_world: Any) -> None:
    world = make_world(replies=["a dot"], local=False, ceiling=DataClass.C1, classifier=Classifier())
    with world.perimeter.task("what is this?") as task:
        block = task.media(CLEAN, "image/png", data_class=DataClass.C1)
        reply = await world.client.infer(asking(task.goal, block), task=task)
    (wire,) = world.backend.transport.sent
    assert json.loads(wire.body)["messages"][0]["content"][1]["data"] == base64.b64encode(CLEAN).decode()
    assert reply.block.label.data_class is DataClass.C1
    assert world.records("egress")[0]["inputs"] == [task.goal.id, block.id]


@pytest.mark.anyio
async def test_i8_media_are_never_redacted(make_world: Any) -> None:
    """Nor is a text beside them: the task has seen what nothing takes away."""
    world = make_world(
        replies=["never"], local=False, ceiling=DataClass.C1, classifier=Classifier(), redaction=True
    )
    with world.perimeter.task(f"who is {CODE}?") as task:
        block = task.media(HIDDEN["a drawing"], "image/svg+xml", data_class=DataClass.C0)
        with pytest.raises(EgressDenied):
            await world.client.infer(asking(task.goal, block), task=task)
    assert world.records("declassify") == []


@pytest.mark.anyio
async def test_p1_a_block_whose_media_were_exchanged_is_refused(make_world: Any) -> None:
    world = make_world(replies=["never"])
    with world.perimeter.task("q") as task:
        block = task.media(CLEAN, "image/png", data_class=DataClass.C0)
        forged = replace(block, media=Media(mime="image/png", data=HIDDEN["a drawing"]))
        with pytest.raises(SealError):
            await world.client.infer(asking(forged), task=task)


def test_i6_media_that_repeat_a_labelled_source_take_its_class(make_world: Any) -> None:
    letter = "the parties agree that the settlement of all claims remains strictly between them until spring"
    echo = EchoIndex(b"0" * 16)
    echo.remember(letter, DataClass.C3)
    world = make_world(classifier=FakeClassifier(), echo=echo)
    with world.perimeter.task("q") as task:
        block = task.media(
            png(chunk(b"tEXt", b"C\0" + letter.encode())), "image/png", data_class=DataClass.C0
        )
    assert block.label.data_class is DataClass.C3


@pytest.mark.parametrize(
    "chance",
    [
        *["y8GcU@O.SJ", "WF_@3.bC>a#", ",i_@yqO.NA", "#5{&r@I.UW", "|?e?5I@9.eiT", "hQ{abC@d.it"],
        *["kXyzW@a.Zq", "pwd Xk9Zq2#", "token#aZ3$kk"],
    ],
)
def test_chance_in_the_points_of_a_picture_is_no_text(chance: str) -> None:
    assert "".join(texts_in(b"\xff\x80\x01" * 9 + chance.encode() + b"\xff\x80\x01" * 9)) == ""


@pytest.mark.parametrize(
    "said",
    [
        *["info@abc.it", "Mario Rossi", "333 1234567", "ROSSI MARIO", "y8GcU@O.SJ is written"],
        *[
            "targa AB123CD",
            "DNI 12345678Z",
            '"Mario Rossi"',
            "Ugo McDonald",
            "<Mario Rossi>",
            "*Mario Rossi!",
        ],
    ],
)
def test_i6_what_is_made_like_words_is_read_wherever_it_stands(said: str) -> None:
    assert said in list(texts_in(b"\xff\x80\x01" * 9 + said.encode() + b"\xff\x80\x01" * 9))


@pytest.mark.parametrize(
    ("said", "data_class"),
    [
        *[
            (said, DataClass.C3)
            for said in ("password:Xk9Zq2", "pwd:Luna2024!", "token=aZ3$kk9Q", "pwd is Lu4na!x9")
        ],
        *[
            (said, DataClass.C2)
            for said in ("mRossi@pec.it", "McDonald@a.it", "MRossi85@pec.it", "mario_r@a.it")
        ],
    ],
)
def test_i6_what_chance_does_not_make_counts_in_the_points_of_a_picture(
    said: str, data_class: DataClass
) -> None:
    points = b"\x90\x81\x9f" * 9 + said.encode() + b"\x90\x81\x9f" * 9
    drawn = png(chunk(b"IDAT", zlib.compress(points, 0)))
    frame = bytes.fromhex("ffd8ffc0000b080004000401011100ffda0008010100003f00") + points + b"\xff\xd9"
    for picture in (drawn, frame):
        assert max(classify_text(text).data_class for text in texts_in(picture)) is data_class
