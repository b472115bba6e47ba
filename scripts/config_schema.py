# SPDX-License-Identifier: Apache-2.0
"""Write contracts/config.schema.json: the shape of a whole profile, for editors and for other programs.

Generated from `runner.kernel.config.Config`, so it cannot say anything else. A test compares the bytes.
What no single field can know (a detached profile has no remote backend) is judged by `parse_config` only.

    python scripts/config_schema.py
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SCHEMA: Final = ROOT / "contracts" / "config.schema.json"

sys.path.insert(0, str(ROOT / "src"))

from runner.kernel.config import Config  # noqa: E402 - the tree beside this script, installed or not


def schema_text() -> str:
    """Return the text of the schema (JSON Schema 2020-12, two spaces, one newline at the end)."""
    schema: dict[str, Any] = Config.model_json_schema(by_alias=True, mode="validation")
    grant = schema["$defs"]["Grant"]["properties"]
    for entries in (grant["paths"], grant["hosts"]["anyOf"][0]):  # a path and a host may stand alone
        entries["items"] = {"anyOf": [{"type": "string", "minLength": 1}, entries["items"]]}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Akaion Runner profile",
        "description": "A whole profile, as it is after a practice's file was merged over the shipped one.",
    }
    return json.dumps(head | {key: schema[key] for key in schema if key not in head}, indent=2) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    print(SCHEMA.relative_to(ROOT))
