# SPDX-License-Identifier: Apache-2.0
"""What may still refuse a call that the policy grants: the address of a page, and the name of a written file.

Owns both questions for `akaion policy explain`, which runs nothing. Leaves judging an address to the gate's
own rules, and a name to the tool's. Serves I1: what is said of a call is what would become of it.
"""

from runner.capability.tools.names import check_written
from runner.kernel.decisions import Denied
from runner.kernel.errors import ToolError
from runner.kernel.inference import WireRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import ToolCall
from runner.kernel.ports import Effect, Locality
from runner.kernel.web import Url, parse_url
from runner.perimeter.fetching import page_terms
from runner.perimeter.policy import ToolGrant
from runner.perimeter.release import Rules, judge
from runner.perimeter.texts import values_of


def refusal(
    grant: ToolGrant, call: ToolCall, ceiling: DataClass | None, rules: Rules
) -> tuple[str, str] | None:
    """Return by which rule, and why, `call` of a granted tool is refused in a run; None if nothing does.

    `ceiling` is the class up to which content may leave, None for nothing. An address is judged as one that a
    person typed: what a task has read, or asked for before, may deny more.
    """
    if grant.url_argument is not None:
        url = parse_url(str(call.arguments.get(grant.url_argument)))
        return None if url is None else _of_address(grant, url, ceiling, rules)
    return _of_name(grant, call) if grant.effect is Effect.WRITE else None


def _of_address(
    grant: ToolGrant, url: Url, ceiling: DataClass | None, rules: Rules
) -> tuple[str, str] | None:
    terms = page_terms(grant, url, ceiling)
    if terms is None:
        return None
    wire = WireRequest(method="GET", address=url.address, path=url.target, headers=(), body=b"")
    typed = Label().with_detected(DataClass.C1)
    decision = judge(
        wire, typed, terms=terms, locality=Locality.REMOTE, rules=rules, parts=tuple(values_of(wire))
    )
    if not isinstance(decision, Denied):
        return None
    limit = "nothing" if terms.ceiling is None else f"up to {terms.ceiling.name}"
    return decision.reason, f"the address counts as {decision.data_class.name}, and what may leave is {limit}"


def _of_name(grant: ToolGrant, call: ToolCall) -> tuple[str, str] | None:
    """Return the refusal of a path that a tool which writes takes no name of."""
    for name in sorted(grant.path_arguments & set(call.arguments)):
        _, *parts = str(call.arguments[name]).removesuffix("/").split("/")
        try:
            check_written(parts)
        except ToolError as error:
            return "refused-by-tool", str(error)
    return None
