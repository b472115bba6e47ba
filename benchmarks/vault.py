# SPDX-License-Identifier: Apache-2.0
"""How fast the vault indexes, updates and searches, and how well it ranks, beside others, in one run.

Run: python benchmarks/vault.py [--documents N] [--judged N] [--seed N] [--peer-python PYTHON] [--json]

Documents and questions are made up (`_vault_corpus.py`); which documents answer a question follows from the
facts they were made of. Ranking is measured over `--judged` documents: nDCG@10 with gains 2^grade - 1, and
the share of the documents of grade 2 and 3 that are among the first ten. Speed is measured over
`--documents`: times are of the wall clock, with the processor time beside them, since machines are shared.
Each hit of every search is read from its file once more here and compared with what was quoted.

ripgrep, if it is on the path, looks for any word of the question in the same folder; it ranks nothing. Other
libraries rank the same texts in an interpreter of their own, named by --peer-python or VAULT_PEER_PYTHON:
  python -m venv PLACE && PLACE/bin/pip install bm25s PyStemmer tantivy
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from _vault_corpus import Paper, Question, papers, questions

from runner.capability.tools.beneath import identity_of
from runner.capability.transport.clock import SystemEntropy
from runner.capability.vault.searching import Found
from runner.capability.vault.vault import Vault
from runner.kernel.ports import Root

BEST: Final = 10
TOUCHED: Final = 10
PEER: Final = Path(__file__).with_name("_vault_peer.py")


def written(documents: Sequence[Paper], folder: Path) -> Root:
    """Write `documents` into `folder` and return it as a granted root."""
    for paper in documents:
        file = folder / paper.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(paper.text, encoding="utf-8")
    return Root(alias="practice", path=str(folder), identity=identity_of(str(folder)))


def gain(grades: Sequence[int]) -> float:
    """Return the discounted gain of results of these grades, in order."""
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))


def scored(
    asked: Sequence[Question], answers: Sequence[Sequence[Paper]], among: Sequence[Paper]
) -> dict[str, float]:
    """Return nDCG@10 and recall@10 of `answers`, one list of documents for each question."""
    gains, recalls = [], []
    for question, found in zip(asked, answers, strict=True):
        ideal = sorted((question.grade(paper) for paper in among), reverse=True)[:BEST]
        grades = [question.grade(paper) for paper in found[:BEST]]
        gains.append(gain(grades) / gain(ideal))
        recalls.append(sum(grade >= 2 for grade in grades) / sum(grade >= 2 for grade in ideal))
    return {"ndcg": statistics.mean(gains), "recall": statistics.mean(recalls)}


def share(values: Sequence[float], part: float) -> float:
    """Return the value that `part` of `values` do not exceed."""
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def wrong_quotes(found: Found, folder: Path) -> int:
    """Return how many hits do not stand in their file, at their line, word for word."""
    wrong = 0
    for hit in found.hits:
        lines = (folder / hit.file.partition("/")[2]).read_text(encoding="utf-8").splitlines()
        wrong += hit.quote not in lines[hit.line - 1]
    return wrong


def ranking(count: int, seed: int, place: Path, peer: str) -> dict[str, Any]:
    """Return how well the vault and its peers rank `count` documents."""
    documents = list(papers(count, seed))
    asked, by_path = questions(documents, seed), {f"practice/{paper.path}": paper for paper in documents}
    root = written(documents, place / "judged")
    vault = Vault(file=place / "home" / "judged.db", key=place / "home" / "key", entropy=SystemEntropy())
    vault.update([root])
    found = [vault.search([root], question.text, BEST) for question in asked]
    answers = [[by_path[hit.file] for hit in each.hits] for each in found]
    given = {
        "texts": [f"{paper.path}\n{paper.text}" for paper in documents],
        "questions": [question.text for question in asked],
    }
    others = json.loads(
        subprocess.run(
            [peer, str(PEER)], input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    )
    return {
        "documents": count,
        "questions": len(asked),
        "vault": scored(asked, answers, documents),
        **{
            name: scored(asked, [[documents[n] for n in each] for each in other["answers"]], documents)
            for name, other in others.items()
        },
    }


def speed(count: int, place: Path) -> dict[str, Any]:
    """Return how long it takes to index, to update and to search `count` documents."""
    documents = list(papers(count))
    asked, folder = questions(documents), place / "many"
    root = written(documents, folder)
    time.sleep(2.5)  # younger times are not believed
    file = place / "home" / "many.db"
    vault = Vault(file=file, key=place / "home" / "key", entropy=SystemEntropy())
    result: dict[str, Any] = {"documents": count, "characters": sum(len(paper.text) for paper in documents)}
    result["index_s"] = timed(lambda: vault.update([root]))
    result["index_bytes"] = sum(each.stat().st_size for each in file.parent.glob("many.db*"))
    result["nothing_changed_s"] = timed(lambda: vault.update([root]))
    for paper in documents[:TOUCHED]:
        (folder / paper.path).write_text(f"{paper.text}Nota aggiunta.\n", encoding="utf-8")
    result["ten_changed_s"] = timed(lambda: vault.update([root]))
    wall, processor, wrong, hits = [], [], 0, 0
    for question in [*asked, *asked]:
        started, spent = time.perf_counter(), time.process_time()
        found = vault.search([root], question.text, BEST)
        wall.append(1000 * (time.perf_counter() - started))
        processor.append(1000 * (time.process_time() - spent))
        wrong, hits = wrong + wrong_quotes(found, folder), hits + len(found.hits)
    result |= {"searches": len(wall), "hits": hits, "wrong_quotes": wrong, "load": os.getloadavg()[0]}
    for name, values in (("wall", wall), ("processor", processor)):
        result |= {f"search_{name}_p50_ms": share(values, 0.5), f"search_{name}_p95_ms": share(values, 0.95)}
    return result | ripgrep(asked, folder)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that `work` takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def ripgrep(asked: Sequence[Question], folder: Path) -> dict[str, Any]:
    """Return how long ripgrep takes to list the files that hold any word of a question."""
    program = shutil.which("rg")
    if program is None:
        return {"ripgrep": "not on the path"}
    took = []
    for question in asked:
        words = [part for word in question.text.split() for part in ("-e", word.strip(",:"))]
        command = [program, "--ignore-case", "--fixed-strings", "--count", *words, str(folder)]
        took.append(1000 * timed(partial(subprocess.run, command, capture_output=True, check=False)))
    return {"ripgrep_p50_ms": share(took, 0.5), "ripgrep_p95_ms": share(took, 0.95)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--judged", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1, help="which texts and questions are drawn for ranking")
    parser.add_argument("--peer-python", default=os.environ.get("VAULT_PEER_PYTHON", sys.executable))
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        result = {
            "speed": speed(chosen.documents, place),
            "ranking": ranking(chosen.judged, chosen.seed, place, chosen.peer_python),
        }
    if chosen.json:
        print(json.dumps(result, indent=2))
        return
    for name, value in result["speed"].items():
        print(f"{name:28} {value if isinstance(value, str) else f'{value:,.2f}'}")
    for name, value in result["ranking"].items():
        figures = (
            "  ".join(f"{kind} {figure:.3f}" for kind, figure in value.items())
            if isinstance(value, dict)
            else value
        )
        print(f"{name:28} {figures}")


if __name__ == "__main__":
    main()
