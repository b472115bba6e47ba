# SPDX-License-Identifier: Apache-2.0
"""One peer of benchmarks/gate.py, in an interpreter of its own: reads batches of texts, answers findings.

Run by gate.py: PYTHON _gate_peer.py NAME. A line in is a list of [language, text]. A line out holds, for each
text, the seconds of processor time and the findings as [start, end, kind]. The first line out says which
version answers. Needs the peer and the standard library only.
"""

import importlib.metadata
import json
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final

Finding = tuple[int, int, str]
Peer = Callable[[str, str], list[Finding]]

KINDS: Final = {
    "CREDIT_CARD": "card",
    "EMAIL_ADDRESS": "email",
    "IBAN_CODE": "iban",
    "IT_FISCAL_CODE": "codice_fiscale",
    "IT_PASSPORT": "passport",
    "IT_VAT_CODE": "partita_iva",
    "PERSON": "person",
    "PHONE_NUMBER": "phone",
}
"""What the peers call the kinds in the letters. Their other kinds are not counted, for or against."""


def presidio() -> Peer:
    """Return Presidio with its pattern recognisers for Italian and English, and no language model."""
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine

    class NoModel(NlpEngine):  # type: ignore[misc]  # the library is not in the project's environment
        """An engine that knows nothing about a text."""

        def load(self) -> None:
            """There is nothing to load."""

        def is_loaded(self) -> bool:
            return True

        def process_text(self, text: str, language: str) -> Any:  # noqa: ANN401, ARG002 - the library's
            return NlpArtifacts([], [], [], [], self, language)

        def process_batch(self, texts: Any, language: str, **_: Any) -> Any:  # noqa: ANN401 - as above
            return ((text, self.process_text(text, language)) for text in texts)

        def is_stopword(self, word: str, language: str) -> bool:  # noqa: ARG002 - as above
            return False

        def is_punct(self, word: str, language: str) -> bool:  # noqa: ARG002 - as above
            return False

        def get_supported_entities(self) -> list[str]:
            return []

        def get_supported_languages(self) -> list[str]:
            return ["it", "en"]

    registry = RecognizerRegistry(supported_languages=["it", "en"])
    registry.load_predefined_recognizers(languages=["it", "en"])
    engine = AnalyzerEngine(registry=registry, nlp_engine=NoModel(), supported_languages=["it", "en"])
    return lambda language, text: _counted(engine.analyze(text, language=language))


def openai_guardrails() -> Peer:
    """Return the PII check of openai-guardrails: every entity, and the model of spaCy that it asks for."""
    from guardrails.checks.text.pii import PIIConfig, PIIEntity, _detect_pii

    config = PIIConfig(entities=list(PIIEntity))
    return lambda _, text: _counted(_detect_pii(text, config).analyzer_results)


def _counted(results: Any) -> list[Finding]:  # noqa: ANN401 - of the library
    return [(each.start, each.end, KINDS[each.entity_type]) for each in results if each.entity_type in KINDS]


PEERS: Final = {
    "presidio": ("presidio-analyzer", presidio),
    "openai-guardrails": ("openai-guardrails", openai_guardrails),
}


def main() -> None:
    """Answer batches until there are no more."""
    logging.disable(logging.CRITICAL)
    package, make = PEERS[sys.argv[1]]
    detect = make()
    print(json.dumps(f"{package} {importlib.metadata.version(package)}"), flush=True)
    for line in sys.stdin:
        batch = json.loads(line)
        seconds, found = [], []
        for language, text in batch:
            started = time.process_time()
            found.append(detect(language, text))
            seconds.append(time.process_time() - started)
        print(json.dumps({"seconds": seconds, "found": found}), flush=True)


if __name__ == "__main__":
    main()
