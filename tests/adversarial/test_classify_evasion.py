# SPDX-License-Identifier: Apache-2.0
"""I6 under attack: decoys, look-alikes, broken lines, overlaps, packing, and texts made to be slow."""

import base64
import gzip
import zlib
from time import process_time

import pytest

from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed
from runner.perimeter.classify import Classifier, EchoIndex, classify_text, compile_registers

KEY = b"k" * 32
CODE = "VRDGPP58T13D969W"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
NAMES = ("Elena Rossi", "Mario Rossi", "Officine Marassi S.r.l.", "Condominio Via Garibaldi 12", "Nina Ng")
CLIENTS = Classifier(
    registers=compile_registers(
        clients=[Listed(file="r", line=line, names=(name,)) for line, name in enumerate(NAMES, start=1)],
        own=[],
        public=[],
        key=KEY,
    )
)


def clients(text: str) -> list[str]:
    return [text[span.start : span.end] for span in CLIENTS.classify(text).spans if span.kind == "client"]


@pytest.mark.parametrize(
    "text",
    [
        "Mario Verdi Mario Rossi Rossi",  # decoys of the same words around it
        "Mario Mario Mario Rossi",
        "Rossi Rossi Mario",
        "Officine Officine Marassi",
        "Condominio Via Condominio Via Garibaldi 12",
        "Mаrіо Rоѕѕі",  # Cyrillic and Ukrainian letters
        "Μario Rossi",  # a Greek M
        "𝓜𝓪𝓻𝓲𝓸 𝓡𝓸𝓼𝓼𝓲",
        "Mario\u2028Rossi",
        "Mario\x00Rossi",
        "Mario\u202eRossi",
        "Mario_Rossi.pdf",
        "../Rossi%20Mario/atti",
        "Màrìó Rössí",
        "Mario (detto il Grande) M. Rossi",
    ],
)
def test_a_clients_name_is_not_hidden_by_what_stands_around_it(text: str) -> None:
    assert clients(text) != []


@pytest.mark.parametrize(
    "text", ["pomodori e rossi", "il tono e. rossi", "M rossi", "a m. rossi bordi", "ng Nino"]
)
def test_a_small_letter_is_no_initial(text: str) -> None:
    assert clients(text) == []


def test_a_squeezed_reading_reports_only_what_was_squeezed() -> None:
    """A number cut off at the edge of its margin must not become another number."""
    margin = 120
    cut = ("4111111111111111 carta di credito " + "x" * margin)[: margin - 1]
    text = f"{'9' * 200}{cut} a-b-c-d-e-f-g"
    assert text.index("a-b") - text.index("4111") == margin
    assert classify_text(text).spans == ()
    beside = f"C.F. {CODE}: {'x ' * 30}A-K-I-A-I-O-S-F-O-D-N-N-7-E-X-A-M-P-L-E."
    kinds = [(span.kind, span.view.value) for span in classify_text(beside).spans]
    assert kinds == [("codice_fiscale", "text"), ("api_key", "squeezed")]


def packed(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    "run",
    [
        packed(gzip.compress(f"key {AWS} ".encode() * 5, mtime=0)),
        packed(gzip.compress(f"key {AWS} ".encode() * 5, mtime=0)[:-8]),  # the checksum cut off
        packed(gzip.compress(f"key {AWS} ".encode() * 5, mtime=0)[:-8] + b"\0" * 8),  # or wrong
        packed(zlib.compress(f"key {AWS} ".encode() * 5)),
        packed(zlib.compress(f"key {AWS} ".encode() * 5, level=1)[:-4]),
        packed(base64.b64encode(gzip.compress(f"key {AWS} ".encode() * 5, mtime=0))),
        gzip.compress(f"key {AWS} ".encode() * 5, mtime=0).hex(),
        packed(gzip.compress(packed(f"key {AWS} here".encode()).encode(), mtime=0)),
    ],
)
def test_packing_hides_no_credential(run: str) -> None:
    assert classify_text(f"data: {run}").data_class is DataClass.C3


def test_what_unpacks_to_more_than_is_read_is_itself_a_finding() -> None:
    bomb = packed(gzip.compress(b" " * 50_000_000 + AWS.encode(), mtime=0))
    start = process_time()
    (span,) = classify_text(bomb).spans
    assert (span.rule, span.data_class) == ("packed-beyond-reading", DataClass.C2)
    assert process_time() - start < 5
    honest = packed(gzip.compress(b"il termine decorre dalla notificazione della sentenza " * 8, mtime=0))
    assert classify_text(honest).spans == ()


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_encodings_are_opened_to_a_fixed_depth(depth: int) -> None:
    text = f"il codice fiscale e' {CODE} ecco"
    for _ in range(depth):
        text = packed(text.encode())
    assert classify_text(text).data_class is DataClass.C2


@pytest.mark.parametrize(
    "unit",
    [
        "mario ",
        "mario rossi ",
        "mario rosso ",
        "condominio via ",
        "m. rossi ",
        "a b c d e f ",
        "a-b-c-d-e-f-",
        "ab1-cd2.",
        "ros-\nsi ",
        "=4D=61",
        "%D0%9C",
        "\\ud835\\udc00",
        "H4sIAAAAAAAA",
        "eJwAAAAA//8x",
    ],
)
def test_registers_echoes_and_derived_readings_stay_linear(unit: str) -> None:
    """Sixteen times the text may take forty times the time; a square law would take 256 times."""
    echo = EchoIndex(KEY)
    echo.remember("mario rossi via condominio " * 50, DataClass.C3)

    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            start = process_time()
            CLIENTS.classify(text)
            echo.class_of(text)
            best = min(best, process_time() - start)
        return best

    assert seconds(32_768) < 40 * seconds(2_048) + 0.05
