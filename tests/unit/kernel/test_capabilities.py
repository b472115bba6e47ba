# SPDX-License-Identifier: Apache-2.0
"""Capabilities are what was seen, and tiers follow from nothing else (I7)."""

from itertools import product

import pytest

from runner.kernel.canonical import canonical_bytes
from runner.kernel.capabilities import (
    UNPROBED,
    Capabilities,
    Facts,
    Fingerprint,
    Mechanism,
    Standing,
    Thinking,
    tiers_for,
)
from runner.kernel.tiers import Tier


def having(tools: Standing, grammar: Standing, *, uses: Mechanism | None = Mechanism.GRAMMAR) -> Capabilities:
    return Capabilities(uses=uses, standings={Mechanism.TOOLS: tools, Mechanism.GRAMMAR: grammar})


@pytest.mark.parametrize(("tools", "grammar"), [*product(Standing, Standing)])
def test_i7_a_tier_is_tried_only_where_its_mechanism_was_enforced_or_nothing_was_found(
    tools: Standing, grammar: Standing
) -> None:
    wanted = [Tier.NATIVE] if tools is Standing.ENFORCED else []
    nothing = tools is grammar is Standing.UNVERIFIED
    wanted += [Tier.CONSTRAINED] if nothing or grammar is Standing.ENFORCED else []
    assert tiers_for(having(tools, grammar)) == (*wanted, Tier.TEXT)


@pytest.mark.parametrize("uses", [None, Mechanism.JSON_SCHEMA, Mechanism.RESPONSE_FORMAT])
def test_i7_what_the_codec_does_not_use_makes_no_tier(uses: Mechanism | None) -> None:
    assert tiers_for(having(Standing.IGNORED, Standing.ENFORCED, uses=uses)) == (Tier.TEXT,)


def test_i7_nothing_is_known_of_a_backend_nobody_asked() -> None:
    assert tiers_for(UNPROBED) == (Tier.CONSTRAINED, Tier.TEXT), "native tools are never guessed"
    assert {UNPROBED[each] for each in Mechanism} == {Standing.UNVERIFIED}
    assert (UNPROBED.thinking, UNPROBED.context) == (Thinking.UNVERIFIED, 0)


def test_what_is_ignored_is_listed_and_nothing_else() -> None:
    found = {
        Mechanism.TOOL_CHOICE: Standing.IGNORED,
        Mechanism.GRAMMAR: Standing.ENFORCED,
        Mechanism.RESPONSE_FORMAT_FLAT: Standing.IGNORED,
        Mechanism.GRAMMAR_BROKEN: Standing.REFUSED,
    }
    capabilities = Capabilities(standings=found)
    assert capabilities.ignores == (Mechanism.RESPONSE_FORMAT_FLAT, Mechanism.TOOL_CHOICE)


@pytest.mark.parametrize("missing", ["build", "model", "template"])
def test_a_fingerprint_is_known_only_when_all_of_it_could_be_read(missing: str) -> None:
    whole = {"build": "b", "model": "m", "template": "t"}
    assert Fingerprint(**whole).known
    assert not Fingerprint(**(whole | {missing: ""})).known


def test_the_json_form_is_canonical_and_says_all_of_it() -> None:
    found = Capabilities(
        uses=Mechanism.GRAMMAR,
        standings={Mechanism.TOOLS: Standing.REFUSED, Mechanism.GRAMMAR: Standing.ENFORCED},
        thinking=Thinking.BESIDE,
        facts=Facts(
            fingerprint=Fingerprint(build="b1", model="d1", template="t1"), context=4096, claims=("tools",)
        ),
    )
    assert canonical_bytes(found.as_json()) == (
        b'{"build":"b1","claims":["tools"],"context":4096,"model":"d1",'
        b'"standings":{"grammar":"enforced","tools":"refused"},'
        b'"template":"t1","thinking":"beside","uses":"grammar"}'
    )
