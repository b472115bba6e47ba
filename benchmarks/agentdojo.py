# SPDX-License-Identifier: Apache-2.0
"""What the policy kernel holds back, and what it lets through, on AgentDojo: the worst case, without a model.

Every user task is replayed with every injection task of its suite obeyed at once: see `_dojo_replay.py`. A
folder of `agentdojo_policies/` has a policy for each suite. Those of `first`, `second` and `third` were
written blind: from the tools and the user tasks, without an injection or a figure in sight. Prints one JSON
object, and what it is at beside it. Method, and how the folders came about: docs/explanation/agentdojo.md.

Run: PYTHONPATH=src PYTHON benchmarks/agentdojo.py [--policies NAME] [--suite NAME] [--only VARIANT]

PYTHON is one that has this project's packages and `agentdojo`, which is no dependency of this project:

    python -m venv --system-site-packages dojo && dojo/bin/pip install agentdojo==0.1.35
"""

import argparse
import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
POLICIES: Final = HERE / "agentdojo_policies"
if str(HERE) in sys.path:
    sys.path.remove(str(HERE))
sys.path.append(str(HERE))  # behind the packages: this file has the name of one


def main() -> None:
    """Measure the named variant, or each, over the named suite, or all."""
    import anyio
    from _dojo_replay import policy_of
    from _dojo_score import VARIANTS, Score, measure
    from _dojo_suites import VERSION, suites

    from runner.perimeter.classify import Classifier
    from runner.testing import FakeClassifier

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--policies", default="third", choices=sorted(each.name for each in POLICIES.iterdir())
    )
    parser.add_argument("--suite", action="append", help="workspace, travel, banking or slack")
    parser.add_argument("--only", action="append", choices=VARIANTS)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", "Pydantic serializer warnings")  # of their models
    report: dict[str, Any] = {}
    for name in options.only or VARIANTS:
        change, looks = VARIANTS[name]
        total, parts = Score(), dict[str, Any]()
        for suite in suites():
            if options.suite and suite.name not in options.suite:
                continue
            policy = change(policy_of(POLICIES / options.policies / f"{suite.name}.yaml", suite))
            score = anyio.run(measure, suite, policy, Classifier() if looks else FakeClassifier())
            total.add(score)
            parts[suite.name] = asdict(score)
            print(f"{name} {suite.name}: {json.dumps(parts[suite.name])}", file=sys.stderr, flush=True)
        report[name] = {**asdict(total), "suites": parts}
    first = report.pop("policies", {})
    print(json.dumps({"version": VERSION, **first, **report}))


if __name__ == "__main__":
    main()
