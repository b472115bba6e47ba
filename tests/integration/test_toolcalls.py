# SPDX-License-Identifier: Apache-2.0
"""`akaion eval toolcalls` with the smallest model: each tier is asked, the constrained one keeps its form.

Needs the `embedded` extra and the weights in `AKAION_HOME` (`make models`). Defends P2 and I12.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from runner.capability.home import akaion_home

WEIGHTS = akaion_home() / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(not WEIGHTS.is_file(), reason="no weights: make models"),
]
pytest.importorskip("xllamacpp")
QUESTION = "Set the lamp in the kitchen to 40 percent."
LAMP = {
    "name": "lamp.set",
    "description": "Set the brightness of a lamp.",
    "parameters": {
        "type": "dict",
        "properties": {
            "room": {"type": "string", "enum": ["kitchen", "hall"]},
            "percent": {"type": "integer", "description": "From 0 to 100."},
        },
        "required": ["room", "percent"],
    },
}


def test_a_model_is_asked_in_each_tier_and_nothing_of_question_or_reply_is_kept(tmp_path: Path) -> None:
    question = {"id": "q", "question": [[{"role": "user", "content": QUESTION}]], "function": [LAMP]}
    answer = {"id": "q", "ground_truth": [{"lamp.set": {"room": ["kitchen"], "percent": [40]}}]}
    (tmp_path / "BFCL_lamps.json").write_text(json.dumps(question), encoding="utf-8")
    (tmp_path / "possible_answer_BFCL_lamps.json").write_text(json.dumps(answer), encoding="utf-8")
    results = tmp_path / "r.jsonl"
    words = ["eval", "toolcalls", "--model", "smollm2-135m-instruct", "--dataset", str(tmp_path), "--json"]
    environment = {**os.environ, "AKAION_HOME": str(akaion_home())}
    ran = subprocess.run(
        [sys.executable, "-m", "runner.adapters.cli.main", *words, "--results", str(results)],
        capture_output=True,
        check=False,
        env=environment,
        timeout=600,
    )
    said = json.loads(ran.stdout)
    cells = {cell["tier"]: cell for cell in said["cells"]}
    assert (ran.returncode, list(cells)) == (0, ["native", "constrained", "text"]), ran.stderr
    assert cells["constrained"]["malformed"]["count"] == 0
    assert cells["constrained"]["tokens_mean"] > 0
    kept = results.read_text("ascii")
    assert len(kept.splitlines()) == 4
    assert not any(word in kept for word in ("kitchen", "lamp.set", "lamp_set", "percent"))
