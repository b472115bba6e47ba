# SPDX-License-Identifier: Apache-2.0
"""Ranking: the right lines first, for reasons that can be stated."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.capability.tools.ranking import Document, Tuning, bm25, closeness, cut, names, rank, relate

SHOP = (
    Document(
        name="d/verdi/lettera.txt", lines=("Gentile signora Verdi,", "", "la merce è pronta.", "Saluti")
    ),
    Document(
        name="d/neri/ordine.txt",
        lines=(
            "Ordine del signor Neri",
            "Consegna prevista: 3 maggio 2025",
            "Totale: € 2.400,00",
            "Il pagamento avviene alla consegna.",
        ),
    ),
    Document(name="d/neri/garanzia.txt", lines=("Garanzia", "Durata: ventiquattro mesi dalla consegna.")),
    Document(name="d/note.md", lines=("# Notes", "The warranty document is in the Neri folder.")),
)


def best(query: str, documents: tuple[Document, ...] = SHOP) -> tuple[str, int] | None:
    """Return the name and line (from 1) of the best passage."""
    passages = rank(query, documents).passages
    return (documents[passages[0].document].name, passages[0].centre + 1) if passages else None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("consegna 03/05/2025", ("d/neri/ordine.txt", 2)),
        ("maggio 2025", ("d/neri/ordine.txt", 2)),
        ("2400 euro", ("d/neri/ordine.txt", 3)),
        ("come avvengono i pagamenti?", ("d/neri/ordine.txt", 4)),
        ("ventiquattro mesi", ("d/neri/garanzia.txt", 2)),
        ("GARANZIA NERI", ("d/neri/garanzia.txt", 1)),
        ("warranty", ("d/note.md", 2)),
        ("verdi", ("d/verdi/lettera.txt", 1)),
        ("garnazia", ("d/neri/garanzia.txt", 1)),
        ("ordine", ("d/neri/ordine.txt", 1)),
        ("folders", ("d/note.md", 2)),
        ("zzz", None),
        ("?", None),
        ("", None),
    ],
)
def test_the_best_line_is_the_one_a_reader_would_point_at(
    query: str, expected: tuple[str, int] | None
) -> None:
    assert best(query) == expected


def test_a_word_in_the_path_alone_finds_the_file_and_shows_its_first_full_lines() -> None:
    passages = rank("lettera", SHOP).passages
    assert [(p.document, p.lines) for p in passages] == [(0, (0, 2, 3))]


def test_a_word_in_the_path_lifts_a_file_above_its_equals() -> None:
    twins = (Document(name="a.txt", lines=("saldo",)), Document(name="rossi.txt", lines=("saldo",)))
    assert best("saldo rossi", twins) == ("rossi.txt", 1)


def test_of_equal_lines_the_one_in_the_better_file_comes_first() -> None:
    about = ("saldo", "affitto", "affitto", "affitto")
    pair = (Document(name="a", lines=("saldo", "altro", "altro", "altro")), Document(name="b", lines=about))
    alone = Tuning(file_weight=0.0, context_weight=0.0)
    ranked = [(p.document, p.centre) for p in rank("saldo affitto", pair, alone).passages]
    assert ranked[:2] == [(0, 0), (1, 0)]
    ranked = [
        (p.document, p.centre) for p in rank("saldo affitto", pair, Tuning(context_weight=0.0)).passages
    ]
    assert ranked[0] == (1, 0)


def test_a_word_in_the_line_beats_the_word_beside_it() -> None:
    lines = ("x", "mora penale", "x", "x", "mora x", "penale x", "x")
    [first, *others] = rank("mora penale", (Document(name="a", lines=lines),)).passages
    assert first.centre == 1
    assert all(other.score < first.score for other in others)


def test_the_same_spelling_beats_the_same_stem() -> None:
    names = (Document(name="a", lines=("Ferrari",)), Document(name="b", lines=("Ferri",)))
    assert best("Ferri", names) == ("b", 1)
    assert best("Ferrari", names) == ("a", 1)


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    lines = ("saldo", "saldo", "saldo", "saldo", "fideiussione")
    assert best("saldo fideiussione", (Document(name="a", lines=lines),)) == ("a", 5)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Quando arriva la merce di Verdi?", {"verdi"}),
        ("Il saldo dell'Orsini. Chi paga? Gli altri", {"orsini"}),
        ("What did Mrs Neri order in March?", {"mrs", "neri"}),
        ("Verdi", set()),
        ("SALDO", set()),
        ("", set()),
    ],
)
def test_a_name_is_a_capital_inside_a_sentence(query: str, found: set[str]) -> None:
    assert names(query) == found


def test_a_name_in_the_query_keeps_out_files_about_somebody_else() -> None:
    pair = (
        Document(name="a", lines=("consegna della merce pronta",)),
        Document(name="b", lines=("Signora Verdi", "la consegna")),
    )
    assert {p.document for p in rank("consegna della merce pronta", pair).passages} == {0, 1}
    assert {p.document for p in rank("consegna della merce pronta a Verdi", pair).passages} == {1}
    assert {p.document for p in rank("consegna della merce pronta a Orsini", pair).passages} == {0, 1}


def test_a_name_past_the_words_that_are_used_rules_nothing_out() -> None:
    documents = (Document(name="a", lines=("alfa beta",)), Document(name="b", lines=("Bianchi",)))
    found = rank("alfa beta e Bianchi", documents, Tuning(query_words=2))
    assert [each.document for each in found.passages] == [0]


def test_a_near_word_counts_only_when_no_text_has_the_word() -> None:
    assert relate(["contract"], ["contract", "contratto"]) == {"contract": ((0, 1.0),)}
    alone = relate(["contract"], ["contratto", "contrabbando", "tratto"])
    assert set(alone) == {"contratto"}
    assert 0 < alone["contratto"][0][1] < 0.6


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("contrat", "contract", True),
        ("udeinz", "udienz", True),
        ("sentenz", "sentenc", True),
        ("locat", "locatar", True),
        ("azion", "nazion", False),
        ("udienz", "hear", False),
        ("ven", "vend", False),
        ("1234", "1235", False),
    ],
)
def test_closeness_takes_slips_and_cognates(one: str, other: str, near: bool) -> None:
    assert (closeness(one, other) >= Tuning().near_ratio) is near
    assert closeness(one, other) == closeness(other, one)


def test_bm25_gives_the_published_value() -> None:
    # One word, in one of two texts, twice in 3 tokens; the other has 1 token: rarity ln(1 + 1.5/1.5).
    scores = bm25([[2.0], [0.0]], [3, 1], population=2, k1=1.2, b=0.75)
    assert scores[0] == pytest.approx(math.log(2) * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)))
    assert scores[1] == 0
    assert bm25([], [], population=0, k1=1.2, b=0.75) == []


def test_a_long_line_is_cut_around_what_was_asked() -> None:
    line = "inizio " * 60 + "la penale è di cento euro " + "fine " * 60
    relevance = relate(["penale", "cento"], line.split())
    start, end = cut(line, relevance, 80)
    assert end - start <= 80
    assert "penale è di cento" in line[start:end]
    assert line[start - 1] == " "
    assert cut(line, {}, 80)[0] == 0
    assert cut("short", relevance, 80) == (0, 5)


def test_a_passage_is_a_line_with_its_neighbours_blank_lines_left_out() -> None:
    lines = ("uno", "", "due", "  ", "tre bersaglio", "", "quattro", "cinque")
    [passage] = rank("bersaglio", (Document(name="a", lines=lines),), Tuning(context_lines=1)).passages
    assert passage.lines == (2, 4, 6)


def test_lines_scored_in_one_file_are_bounded() -> None:
    document = Document(name="a", lines=("parola",) * 50)
    assert len(rank("parola", (document,), Tuning(lines_per_file=7)).passages) == 7


text = st.text(alphabet="ab eè12/\u0301'", max_size=30)


@settings(deadline=None)
@given(query=text, bodies=st.lists(st.lists(text, max_size=6), max_size=4), width=st.integers(1, 12))
def test_rank_and_cut_are_total_sorted_and_repeatable(
    query: str, bodies: list[list[str]], width: int
) -> None:
    documents = tuple(Document(name=f"n{i}", lines=tuple(body)) for i, body in enumerate(bodies))
    ranking = rank(query, documents)
    assert ranking == rank(query, documents)
    scores = [passage.score for passage in ranking.passages]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    for passage in ranking.passages:
        assert passage.centre in passage.lines
        line = documents[passage.document].lines[passage.centre]
        start, end = cut(line, ranking.relevance, width)
        assert 0 <= start <= end <= len(line)
        assert end - start <= max(width, 0) or len(line) <= width
