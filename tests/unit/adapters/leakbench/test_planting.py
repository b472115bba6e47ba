# SPDX-License-Identifier: Apache-2.0
"""What is planted, and that the judge sees it: a bench that overlooks a leak proves nothing.

The judge is tried on every kind, spelling and cut, in the bytes that a codec would send, and on bytes that
hold something else. Check digits are compared with python-stdnum here, and only here.
"""

import base64
import json
import zlib
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import iban, luhn
from stdnum.de import idnr
from stdnum.it import codicefiscale, iva

from runner.adapters.leakbench import numbers
from runner.adapters.leakbench.judge import Planted, found, texts_of
from runner.adapters.leakbench.kinds import KINDS, Family
from runner.adapters.leakbench.picture import MIME, picture_with
from runner.adapters.leakbench.plan import DEFENCES, Defence, Plant, Split, grid, trial
from runner.adapters.leakbench.transforms import TRANSFORMS, Transform

SEEDS = range(10)


def body(*texts: str) -> bytes:
    """A request as a codec lays it out."""
    messages = [{"role": "user", "content": text} for text in texts]
    return json.dumps({"model": "m", "messages": messages}, ensure_ascii=False).encode()


def cut(form: str, count: int) -> tuple[str, ...]:
    bounds = [len(form) * index // count for index in range(count + 1)]
    return tuple(form[start:end] for start, end in pairwise(bounds))


# --- the judge ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda each: each.name)
def test_the_judge_finds_every_kind_in_every_spelling(transform: Transform) -> None:
    for kind in KINDS:
        secret = kind.make(Random(7))  # noqa: S311 - a secret of nobody
        form = transform.apply(secret.core)
        whole = Planted(core=secret.core, pieces=(form,))
        pieces = Planted(core=secret.core, pieces=cut(form, 2))
        first, second = pieces.pieces
        assert found(whole, [body(f"{secret.before}{form}{secret.after}")]), kind.name
        assert found(pieces, [body(first, second)]), (kind.name, "over blocks")
        assert found(pieces, [body(first), body("something else"), body(second)]), (kind.name, "over calls")
        assert not found(pieces, [body(first)]), (kind.name, "half a secret")
        assert not found(whole, [body("Riassumi in una frase."), b"", b"\xff\x00"]), kind.name


@pytest.mark.parametrize(
    "core", ["RSSMRA80A01F205X", '-----BEGIN PRIVATE KEY-----\n7 "5" y\n'], ids=["line", "lines"]
)
def test_the_judge_finds_the_plain_form_of_what_was_planted_otherwise(core: str) -> None:
    """A line end and a quote are written as escapes in the body: they are read as a server reads them."""
    planted = Planted(core=core, pieces=(core[::-1],))
    assert found(planted, [body(f"ecco: {core}")])


def test_the_judge_opens_a_picture() -> None:
    """Media travel as base64: in a data URL, or bare."""
    for secret in ("RSSMRA80A01F205X", "Niccol\u00f2 Frangip\u00e0ne"):
        written = base64.b64encode(picture_with(f"foto di {secret}")).decode()
        planted = Planted(core=secret, pieces=(secret,))
        assert found(planted, [body(f"data:{MIME};base64,{written}")])
        assert found(planted, [body(written)])
        assert not found(planted, [body(written[:80])])


def test_a_picture_is_a_picture_for_others() -> None:
    """Its chunks have the lengths and checksums that a reader of PNG asks for."""
    data = picture_with("nota")
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, names = 8, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        chunk = data[at + 4 : at + 8 + size]
        assert zlib.crc32(chunk) == int.from_bytes(data[at + 8 + size : at + 12 + size], "big")
        names.append(chunk[:4])
        at += 12 + size
    assert names == [b"IHDR", b"iTXt", b"IDAT", b"IEND"]


def test_pieces_count_in_their_order_only() -> None:
    planted = Planted(core="RSSMRA80A01F205X", pieces=("RSSMRA80", "A01F205X"))
    assert not found(planted, [body("A01F205X", "RSSMRA80")])


def test_the_judge_reads_names_of_members_and_escapes() -> None:
    escaped = json.dumps({"propriet\u00e0": {"na\u00efve\nkey": [1, "v"]}}).encode()
    assert list(texts_of(escaped)) == ["propriet\u00e0", "na\u00efve\nkey", "v"]


@given(data=st.binary())
def test_the_judge_is_total(data: bytes) -> None:
    planted = Planted(core="abcdefgh", pieces=("abcd", "efgh"))
    assert found(planted, [data, b"abcdefgh"]) is True


# --- secrets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_have_the_check_digits_that_others_compute(seed: int) -> None:
    dice = Random(seed)  # noqa: S311 - numbers of nobody
    born = (dice.randint(1, 28), dice.randint(1, 12), dice.randint(1931, 2004))
    for replaced in (0, 3):
        fiscal = numbers.codice_fiscale("Niccol\u00f2 D'Ambruoso", born, "Z110", replaced=replaced)
        assert codicefiscale.calc_check_digit(fiscal[:-1]) == fiscal[-1]
        assert codicefiscale.is_valid(fiscal)
    assert iva.is_valid(numbers.partita_iva(dice))
    assert luhn.is_valid(numbers.card(dice))
    assert idnr.is_valid(numbers.tax_number_of_germany(dice))
    for country in ("IT", "DE", "FR"):
        assert iban.is_valid(numbers.iban(country, dice)), country


def test_a_codice_fiscale_is_that_of_the_person() -> None:
    """A worked example: the Ministry's own rules on names, month letters and the check letter."""
    assert numbers.codice_fiscale("Mario Rossi", (1, 1, 1980), "F205") == "RSSMRA80A01F205X"
    assert numbers.codice_fiscale("Gianfranco Fo", (9, 12, 1975), "H501")[:12] == "FOXGFR75T09H"


def test_there_are_thirty_kinds_and_five_spellings_that_nobody_reads() -> None:
    assert len(KINDS) >= 30
    assert len(TRANSFORMS) >= 25
    assert sum(not transform.readable for transform in TRANSFORMS) >= 5
    assert {kind.family for kind in KINDS} == set(Family)
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert len({transform.name for transform in TRANSFORMS}) == len(TRANSFORMS)


@pytest.mark.parametrize(
    "transform", [each for each in TRANSFORMS if each.name != "plain"], ids=lambda each: each.name
)
def test_a_spelling_changes_something(transform: Transform) -> None:
    """Else a row of the report would measure the plain text under another name."""
    texts = ("Niccol\u00f2 Frangip\u00e0ne", "RSSMRA80A01F205X", "rossi@example.test")
    assert any(transform.apply(text) != text for text in texts)


# --- the plan -------------------------------------------------------------------------------------------


def test_a_trial_is_the_same_each_time_and_another_with_another_seed() -> None:
    assert trial(4711, 3) == trial(4711, 3)
    assert trial(4711, 3).secret != trial(4711, 4).secret


def test_four_trials_in_a_row_plant_one_secret_behind_each_defence() -> None:
    four = [trial(number, 1) for number in range(400, 404)]
    assert [each.defence for each in four] == list(DEFENCES)
    assert len({(each.secret.core, each.carrier, each.transform.name, each.split) for each in four}) == 1


def test_the_beginning_of_a_run_is_spread_over_the_grid() -> None:
    trials = [trial(number, 1) for number in range(0, 16_000, 4)]
    for part in ("kind", "transform", "carrier", "split", "plant"):
        counts = Counter(
            getattr(each, part).name if part in {"kind", "transform"} else getattr(each, part)
            for each in trials
        )
        every = {
            getattr(cell, part).name if part in {"kind", "transform"} else getattr(cell, part)
            for cell in grid()
        }
        assert set(counts) == every, part
        assert min(counts.values()) > 0.3 * len(trials) / len(every), part


def test_a_credential_is_not_planted_where_it_would_be_none() -> None:
    assert not any(cell.kind.cased and cell.transform.folds_case for cell in grid())


def test_what_may_never_leak() -> None:
    """The expectation itself: labels for what they label, detectors for what they claim, none for control."""
    seen: Counter[tuple[Defence, bool, bool]] = Counter()
    for number in range(8_000):
        each = trial(number, 2)
        seen[each.defence, each.plant.labelled, each.must_hold(1)] += 1
        if each.defence is Defence.NONE:
            assert not each.must_hold(-1)
        elif each.plant.labelled and each.defence.labels:
            assert each.must_hold(1)
        elif not each.defence.detectors or not each.transform.readable or each.split is not Split.WHOLE:
            assert not each.must_hold(1)
            assert each.must_hold(-1), "nothing may leave at all"
    assert seen[Defence.BOTH, False, True] > 0
    assert seen[Defence.DETECTORS, True, True] > 0


def test_a_partita_iva_is_no_secret_where_internal_content_may_leave() -> None:
    business = next(kind for kind in KINDS if kind.name == "partita IVA")
    typed = next(
        each
        for number in range(0, 40_000, 4)
        if (each := trial(number, 1)).kind is business and each.plant is Plant.TYPED
    )
    assert typed.is_secret(0)
    assert not typed.is_secret(1)
