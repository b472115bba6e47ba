# SPDX-License-Identifier: Apache-2.0
"""Rank the same texts for the same questions with other libraries: JSON in on standard input, JSON out.

Run by `vault.py` with a Python that has `bm25s`, `PyStemmer` and `tantivy`; what is not there is left out. In
comes `{"texts": [...], "questions": [...]}`, out goes, for each library, the numbers of the ten best texts of
each question and the milliseconds it took, and the seconds to index.
"""

import json
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

BEST = 10
Ask: TypeAlias = Callable[[str], list[int]]
Build: TypeAlias = Callable[[], Ask]


def measured(build: Build, questions: Sequence[str]) -> dict[str, Any]:
    """Return what a library answers, and how long it took."""
    started = time.perf_counter()
    ask = build()
    indexed = time.perf_counter() - started
    answers, took = [], []
    for question in questions:
        started = time.perf_counter()
        answers.append(ask(question))
        took.append(1000 * (time.perf_counter() - started))
    return {"index_s": indexed, "answers": answers, "ms": took}


def bm25s_of(texts: Sequence[str], language: str) -> Build:
    """Return a maker of bm25s with the Snowball stemmer of `language`."""
    import bm25s
    import Stemmer

    def build() -> Ask:
        stemmer = Stemmer.Stemmer(language)
        index = bm25s.BM25()
        index.index(
            bm25s.tokenize(list(texts), stemmer=stemmer, stopwords=None, show_progress=False),
            show_progress=False,
        )

        def ask(question: str) -> list[int]:
            words = bm25s.tokenize([question], stemmer=stemmer, stopwords=None, show_progress=False)
            found, _ = index.retrieve(words, k=BEST, show_progress=False)
            return [int(number) for number in found[0]]

        return ask

    return build


def tantivy_of(texts: Sequence[str], language: str) -> Build:
    """Return a maker of a tantivy index on disk with the stemmer of `language`."""
    import tantivy

    def build() -> Ask:
        analyzer = (
            tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
            .filter(tantivy.Filter.lowercase())
            .filter(tantivy.Filter.stemmer(language))
            .build()
        )
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("number", stored=True)
        schema.add_text_field("text", tokenizer_name="stemmed")
        index = tantivy.Index(schema.build(), path=tempfile.mkdtemp())
        index.register_tokenizer("stemmed", analyzer)
        writer = index.writer()
        for number, text in enumerate(texts):
            writer.add_document(tantivy.Document(number=number, text=text))
        writer.commit()
        index.reload()
        searcher = index.searcher()

        def ask(question: str) -> list[int]:
            query = index.parse_query(" ".join(re.findall(r"\w+", question)).lower(), ["text"])
            hits = searcher.search(query, BEST).hits
            return [int(searcher.doc(address)["number"][0]) for _, address in hits]

        return ask

    return build


def main() -> None:
    """Measure every library that is here."""
    given = json.load(sys.stdin)
    texts, questions = given["texts"], given["questions"]
    makers: dict[str, Callable[[], Build]] = {
        "bm25s, Italian Snowball": lambda: bm25s_of(texts, "italian"),
        "bm25s, English Snowball": lambda: bm25s_of(texts, "english"),
        "tantivy, Italian Snowball": lambda: tantivy_of(texts, "italian"),
        "tantivy, English Snowball": lambda: tantivy_of(texts, "english"),
    }
    found = {}
    for name, maker in makers.items():
        with suppress(ImportError):
            found[name] = measured(maker(), questions)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
