# SPDX-License-Identifier: Apache-2.0
"""I6: the identifier battery, a seeded sample of benchmarks/identifiers.py, which runs tens of thousands."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from runner.perimeter.classify import names

BENCHMARKS: Final = Path(__file__).resolve().parents[4] / "benchmarks"
RECALL: Final = 0.999
PRECISION: Final = 0.98
PARTICLES: Final = frozenset(re.findall(r"\w+", "al d dall dalla de del della di el la lo o st van den"))
LEAST_ALONE: Final = {"person": 0.90, "address": 0.90, "organisation": 0.95}
LEAST_KNOWN: Final = 0.98
LISTS: Final = {
    "G": {"given": 80, "surname": 150, "street": 60, "organisation": 60},
    "H": {"given": 80, "surname": 150, "street": 30, "organisation": 60},
}
ACCUSED_AT_MOST: Final = {"E": 0.05, "F": 0.10, "H": 0.05}


@pytest.fixture(scope="module")
def battery() -> dict[str, Any]:
    """The names of the benchmark; its neighbours are imported from beside it."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return runpy.run_path(str(BENCHMARKS / "identifiers.py"))
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("half", ["A", "B"])
def test_identifiers_with_check_digits(battery: dict[str, Any], half: str) -> None:
    cases = list(battery["Generator"](2026, half).cases(2000))
    assert sum(not case.value for case in cases) == 1000
    tallies = battery["measure"](iter(cases))
    wrong = [text for tally in tallies.values() for text in tally.wrong]
    assert tallies["all"].recall >= RECALL, wrong
    assert tallies["all"].precision >= PRECISION, wrong
    assert len(tallies) == len(battery["checkdigits"].MAKERS) + 1


def test_the_makers_make_what_their_algorithm_accepts_and_no_two_alike(battery: dict[str, Any]) -> None:
    """A generator of wrong numbers would prove nothing: known pairs hold it to the published algorithms."""
    made = battery["checkdigits"]
    assert made.fiscal_letter("RSSMRA80A01F205") == "X"
    assert made.luhn("411111111111111") == "1"
    assert made.luhn("0764352056") == "7"
    dice = battery["random"].Random(5)
    for make in made.MAKERS.values():
        assert len({make(dice) for _ in range(20)}) > 15


def test_the_generator_shares_no_code_with_the_detectors(battery: dict[str, Any]) -> None:
    source = Path(battery["checkdigits"].__file__).read_text(encoding="utf-8")
    assert "runner" not in source
    assert "stdnum" not in source


@pytest.mark.parametrize("half", ["A", "B"])
def test_persons_addresses_and_organisations_without_and_with_a_register(
    battery: dict[str, Any], half: str
) -> None:
    people = battery["people"]
    documents = list(people.Generator(2026, half).documents(300))
    for register, least in ((False, 0.90), (True, 0.99)):
        tallies = people.measure(documents, register=register)
        assert {kind: tally.recall for kind, tally in tallies.items() if tally.recall < least} == {}
        assert all(tally.documents > 50 for tally in tallies.values())


@pytest.mark.parametrize(("part", "names_of"), [("D", ""), ("E", "_more"), ("F", "_more")])
def test_prose_that_introduces_nobody(battery: dict[str, Any], part: str, names_of: str) -> None:
    """I6: somebody is found by the shape of the name and by the register, in letters, acts and prose."""
    people = battery["people"]
    documents = list(
        people.Generator(2026, part, given=f"given{names_of}", surname=f"surname{names_of}").documents(152)
    )
    assert people.measure(documents, register=False)["person"].recall >= 0.9
    assert people.measure(documents[:76], register=True)["person"].recall >= 0.99


@pytest.mark.parametrize("part", ["G", "H"])
def test_texts_of_a_practice_that_introduce_nobody(battery: dict[str, Any], part: str) -> None:
    """I6: the floors of parts G and H, half of it without any cue; with the register a surname is enough."""
    people = battery["people"]
    made = people.Generator(2026, part, given=f"given_{part}", surname=f"surname_{part}")
    documents = list(made.documents(100))
    alone = people.measure(documents, register=False)
    known = people.measure(documents[::4] + documents[1::4], register=True)
    assert {kind: alone[kind].recall for kind in people.KINDS if alone[kind].recall < LEAST_ALONE[kind]} == {}
    assert {kind: known[kind].recall for kind in people.KINDS if known[kind].recall < LEAST_KNOWN} == {}
    assert alone["person"].documents > 80
    assert known["person"].documents > 40


@pytest.mark.parametrize("part", ACCUSED_AT_MOST)
def test_texts_that_hold_nobody_accuse_few(battery: dict[str, Any], part: str) -> None:
    """Courts, laws, streets, brands, saints and places are nobody: what finding by shape costs."""
    people = battery["people"]
    documents = list(people.Generator(2026, f"{part}_none").documents(76))
    assert len(people.measure_nobody(documents).accused) <= len(documents) * ACCUSED_AT_MOST[part]


def test_no_name_of_the_generator_is_in_a_lexicon_of_the_detectors(battery: dict[str, Any]) -> None:
    """Else the figures would say that a list was copied, not that anything is recognised."""
    pieces = battery["people"].read_pieces()
    given = {word.lower() for name in pieces["given"] + pieces["given_more"] for word in name.split()}
    assert given.isdisjoint(names.GIVEN | names.SURNAMES)
    surnames = {name.lower() for name in pieces["surname"] + pieces["surname_more"]}
    assert surnames.isdisjoint(names.GIVEN | names.SURNAMES)


@pytest.mark.parametrize("of", LISTS)
def test_the_lists_of_a_part_are_in_no_data_file_of_the_detectors(battery: dict[str, Any], of: str) -> None:
    """The files are read as mere words: no word of a name, none that tells a street or a firm."""
    files = sorted(Path(names.__file__).parent.glob("*.txt"))
    assert len(files) >= 6
    known = {word for file in files for word in _words(file.read_text(encoding="utf-8"))}
    pieces = battery["people"].read_pieces()
    assert {part for part, least in LISTS[of].items() if len(set(pieces[f"{part}_{of}"])) < least} == set()
    for name in pieces[f"given_{of}"] + pieces[f"surname_{of}"]:
        assert not {word for word in _words(name) if word not in PARTICLES} & known, name
    for name in (name for kind in ("street", "street_en", "organisation") for name in pieces[f"{kind}_{of}"]):
        assert {word for word in _words(name) if len(word) > 4} - known, name


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", text.lower())
