# SPDX-License-Identifier: Apache-2.0
"""I1: whoever signs a changed profile reads what it newly permits; one that only narrows permits nothing."""

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Final, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.tools.web import WebFetch
from runner.kernel.config import Config, PerimeterConfig, parse_config
from runner.kernel.decisions import Deny
from runner.kernel.errors import Mistake
from runner.kernel.labels import Label
from runner.kernel.messages import Block, BlockKind, ToolCall
from runner.kernel.ports import Effect, Tool
from runner.kernel.sections import Section
from runner.perimeter.grants import compile_policy
from runner.perimeter.lint import lint
from runner.perimeter.policy import decide, narrow
from runner.perimeter.widening import Permissions, newly_permitted, no_longer_permitted
from runner.testing import FakeTool

FILE_TOOLS = {name: FakeTool(name=name, veils=True) for name in ("read_file", "search_text", "list_dir")}
TOOLS: dict[str, Tool] = {**FILE_TOOLS, "web_fetch": WebFetch()}
BASE: dict[str, Any] = {
    "profile": "attached",
    "perimeter": {"max_egress_class": "C0", "classifier": "local:second"},
    "policy": {"grants": [{"tool": "read_file", "paths": ["/s/rossi"]}]},
    "inference": {
        "prefer": "local",
        "local": {"runtime": "embedded", "model": "small", "context": 8192},
        "remote": {
            "backend": "akaion",
            "endpoint": "https://a.example",
            "model": "large",
            "max_class": "C0",
        },
    },
    "budget": {"steps": 8, "tokens": 1000, "seconds": 60},
}


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with `change` laid over it."""
    out = dict(base)
    for key, value in change.items():
        inner = out.get(key)
        out[key] = (
            merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
        )
    return out


def plain(value: Any) -> Any:
    """Return `value` as the reader of profiles hands it over: sequences are tuples."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return tuple(map(plain, value)) if isinstance(value, list) else value


def permissions(change: Mapping[str, Any], *, host: frozenset[str] = frozenset()) -> Permissions:
    config = parse_config(plain(merged(BASE, change)), file="test", locate=lambda _: 0)
    policy = compile_policy(
        config.policy.grants,
        TOOLS,
        host_tools=host,
        resolve=lambda path, _: path,
        unwritable=tuple,
        untouchable={},
        blame=lambda where, problem, fix: Mistake(
            file="test", line=0, where=str(where), problem=problem, fix=fix
        ),
    )
    return Permissions(config=config, policy=policy)


def grant(**more: Any) -> dict[str, Any]:
    return {"policy": {"grants": [{"tool": "read_file", "paths": ["/s/rossi"], **more}]}}


WIDER: dict[str, tuple[dict[str, Any], str]] = {
    "ceiling": ({"perimeter": {"max_egress_class": "C1"}}, "content up to class C1 may leave; before: C0"),
    "redaction": ({"perimeter": {"redaction": "on"}}, "C2 content may leave once what detectors find"),
    "declassification": (
        {"perimeter": {"declassification": "ask"}},
        "a person may let C2 content of a task go",
    ),
    "fault": ({"perimeter": {"classifier_fault": "as_c3"}}, "a step goes on, with its content as C3"),
    "opinion": (
        {"perimeter": {"classifier": "rules-only"}},
        "content may leave without the second opinion of local:second",
    ),
    "grade": (
        {"perimeter": {"locality_required": {"C3": "L1"}}},
        "C3 content may reach a local model of grade L1; before: from L2 on",
    ),
    "endpoint": (
        {"inference": {"remote": {"endpoint": "https://b.example"}}},
        "large at https://b.example may be asked; before: large at https://a.example",
    ),
    "its class": (
        {"inference": {"remote": {"max_class": "C1"}}},
        "it may be sent content up to class C1; before: C0",
    ),
    "embeddings": (
        {"inference": {"remote": {"embeddings": "vectors"}}},
        "texts may be sent to its embedding model vectors",
    ),
    "credential": (
        {"inference": {"remote": {"credential": "file:/k/token"}}},
        "it is sent the credential file:/k/token; before: none",
    ),
    "server": (
        {"inference": {"local": {"runtime": "vllm", "endpoint": "http://127.0.0.1:1"}}},
        "the server at http://127.0.0.1:1 gets what a local model gets; before: no server",
    ),
    "first": ({"inference": {"prefer": "remote"}}, "tasks ask the remote model; before: the local one"),
    "own identity": (
        {"perimeter": {"registers": {"own_identity": "me.yaml"}}},
        "what the register me.yaml lists counts as no secret",
    ),
    "public texts": (
        {"perimeter": {"public_texts": "law"}},
        "what repeats the texts at law may leave, whatever else quotes it; before: none",
    ),
    "tool": (
        {"policy": {"grants": [*BASE["policy"]["grants"], {"tool": "list_dir", "paths": ["/s/rossi"]}]}},
        "list_dir may be called: /s/rossi (C2 by default)",
    ),
    "path": (grant(paths=["/s/rossi", "/s/bianchi"]), "read_file may reach /s/bianchi (C2 by default)"),
    "path that is redactable": (
        grant(paths=["/s/rossi", {"path": "/s/bianchi", "redactable": True}]),
        "read_file may reach /s/bianchi (C2 by default, and may leave as C1 once nothing is found in it)",
    ),
    "parent": (grant(paths=["/s"]), "read_file may reach /s (C2 by default)"),
    "class": (
        grant(paths=[{"path": "/s/rossi", "class": "C1"}]),
        "/s/rossi counts as class C1 for read_file; before: C2 by default",
    ),
    "redactable": (
        grant(paths=[{"path": "/s/rossi", "redactable": True}]),
        "/s/rossi may leave as C1 for read_file once nothing is found in it",
    ),
}


@pytest.mark.parametrize("name", sorted(WIDER))
def test_i1_what_a_change_opens_is_said_and_its_reverse_opens_nothing_of_it(name: str) -> None:
    change, sentence = WIDER[name]
    said = newly_permitted(permissions({}), permissions(change))
    assert [sentence in each for each in said] == [True]
    back = newly_permitted(permissions(change), permissions({}))
    assert not any(sentence in each for each in back)
    assert newly_permitted(permissions(change), permissions(change)) == ()
    lost = no_longer_permitted(permissions(change), permissions({}))
    assert lost == tuple(each.replace("; before: ", "; now: ") for each in said)


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("embeddings", "texts may be sent to its embedding model {new}; before: {old}"),
        ("credential", "it is sent the credential {new}; before: {old}"),
    ],
)
def test_i1_another_embedding_model_and_another_credential_are_said(key: str, sentence: str) -> None:
    old, new = ("env:OLD", "env:NEW") if key == "credential" else ("e1", "e2")
    before, after = (permissions({"inference": {"remote": {key: word}}}) for word in (old, new))
    assert newly_permitted(before, after) == (sentence.format(new=new, old=old),)
    assert newly_permitted(after, before) == (sentence.format(new=old, old=new),)


def test_i1_a_new_remote_model_is_said_with_what_it_gets() -> None:
    gets = {"embeddings": "e1", "credential": "env:TOKEN"}
    remote = permissions({"inference": {"remote": gets}})
    none = permissions({"inference": {"remote": None}})
    assert newly_permitted(none, remote) == (
        "the model large at https://a.example may be asked; before: no remote model",
        "texts may be sent to its embedding model e1",
        "it is sent the credential env:TOKEN; before: none",
    )


def test_i1_a_new_tool_is_said_with_what_its_results_count_for_and_what_may_leave() -> None:
    new = {
        "tool": "list_dir",
        "paths": ["/s/rossi"],
        "reads": {"class": "C0", "integrity": "practice"},
    }
    host = frozenset({"list_dir"})
    added = permissions({"policy": {"grants": [new]}}, host=host)
    assert newly_permitted(permissions({"policy": {"grants": []}}), added) == (
        "list_dir may be called: /s/rossi (C2 by default)",
        "what list_dir returns counts as class C0",
        "what list_dir returns may vouch for values",
    )
    open_ = {"tool": "list_dir", "paths": [{"path": "/s/rossi", "redactable": True}]}
    none, some = (permissions({"policy": {"grants": grants}}) for grants in ([], [open_]))
    assert newly_permitted(none, some) == (
        "list_dir may be called: /s/rossi (C2 by default, and may leave as C1 once nothing is found in it)",
    )


# --- every key of a profile is compared, or cannot widen ----------------------------------------------

COMPARED: Final[Mapping[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "perimeter.max_egress_class": ({}, WIDER["ceiling"][0]),
    "perimeter.classifier": ({}, WIDER["opinion"][0]),
    "perimeter.classifier_fault": ({}, WIDER["fault"][0]),
    "perimeter.redaction": ({}, WIDER["redaction"][0]),
    "perimeter.declassification": ({}, WIDER["declassification"][0]),
    "perimeter.locality_required.C2": (
        {"perimeter": {"locality_required": {"C2": "L1"}}},
        {"perimeter": {"locality_required": {"C2": "L0"}}},
    ),
    "perimeter.locality_required.C3": ({}, WIDER["grade"][0]),
    "perimeter.registers.clients": (
        {"perimeter": {"registers": {"clients": "a.csv"}}},
        {"perimeter": {"registers": {"clients": "b.csv"}}},
    ),
    "perimeter.registers.own_identity": ({}, WIDER["own identity"][0]),
    "perimeter.public_texts": ({}, WIDER["public texts"][0]),
    "perimeter.registers.public": ({}, {"perimeter": {"registers": {"public": "p.csv"}}}),
    "policy.grants.tool": ({}, WIDER["tool"][0]),
    "policy.grants.paths.path": ({}, WIDER["path"][0]),
    "policy.grants.paths.class": ({}, WIDER["class"][0]),
    "policy.grants.paths.matter": (grant(paths=[{"path": "/s/rossi", "matter": "rossi"}]), grant()),
    "policy.grants.paths.redactable": ({}, WIDER["redactable"][0]),
    "policy.grants.approval": (grant(approval="ask"), grant()),
    "policy.grants.calls": (grant(calls=2), grant(calls=3)),
    "policy.grants.arguments": (grant(arguments={"path": {"max_length": 9}}), grant()),
    "policy.grants.sink": (grant(sink={"to": "network", "max_class": "C1"}), grant()),
    "inference.prefer": ({}, WIDER["first"][0]),
    "inference.local.endpoint": ({}, WIDER["server"][0]),
    "inference.local.embeddings_endpoint": (
        {"inference": {"local": {"runtime": "vllm", "endpoint": "http://127.0.0.1:1", "embeddings": "e"}}},
        {"inference": {"local": {"embeddings_endpoint": "http://127.0.0.1:2"}}},
    ),
    "inference.remote.backend": ({}, {"inference": {"remote": {"backend": "openai"}}}),
    "inference.remote.endpoint": ({}, WIDER["endpoint"][0]),
    "inference.remote.model": ({}, {"inference": {"remote": {"model": "larger"}}}),
    "inference.remote.max_class": ({}, WIDER["its class"][0]),
    "inference.remote.credential": ({}, WIDER["credential"][0]),
    "inference.remote.embeddings": ({}, WIDER["embeddings"][0]),
}
"""Keys that can widen, each with a change of it that does: laid over the base, and over that."""
COMPARED_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (f"policy.grants.hosts.{key}" for key in ("host", "paths", "port", "unsafe_plain_http")),
        "test_i1_where_more_pages_may_be_asked_for_is_said",
    ),
    **dict.fromkeys(
        (f"policy.grants.hosts.{key}" for key in ("credential", "header")),
        "test_i5_where_a_tool_newly_logs_in_is_said",
    ),
    "policy.grants.commands": "programs are compared in tests/integration/test_shell.py",
    "policy.grants.sandbox": "is the effect of the shell, RUN_FREE without one",
    "policy.grants.reads": "test_i1_a_new_tool_is_said_with_what_its_results_count_for_and_what_may_leave",
}
NOT_WIDENING: Final[Mapping[str, str]] = {
    "profile": "says which keys a file inherits; what it inherits is compared",
    "perimeter.fail_closed": "has one value",
    "perimeter.enforcement": "has one value",
    "policy.default": "has one value",
    "policy.grants.access": "read only narrows: what a tool can do is its effect, which is compared",
    "policy.grants.network": "has one value, and no sandbox of the runner has a network",
    "policy.grants.trusted": "the verdict names the tool either way; the tool may do the same",
    "inference.local.runtime": "a model of this machine; its server's address is compared",
    "inference.local.model": "a model of this machine",
    "inference.local.weights": "a model of this machine",
    "inference.local.context": "how much a model reads at once",
    "inference.local.threads": "how fast",
    "inference.local.tier": "how calls are asked for; each is judged all the same",
    "inference.local.embeddings": "a model of this machine; its server's address is compared",
    "inference.remote.tier": "how calls are asked for; each is judged all the same",
    "inference.timeout_s": "how long",
    "budget.steps": "how long",
    "budget.tokens": "how long",
    "budget.seconds": "how long",
    "trace.path": "where the record lies; there is always one",
    "trace.keys": "who signs the record; a verifier pins the key",
    "trace.custody": "who signs the record; a verifier pins the key",
    "trace.sign": "has one value",
    "trace.seal_every": "how often the record is sealed, 256 lines at most",
}
"""Keys that open nothing, each with why."""
_OF_FLOWS: Final = {"policy.grants.arguments", "policy.grants.reads", "policy.grants.sink"}
"""Sections whose keys `test_flow.py` compares by a property."""


def keys_of(section: type[Section], above: str = "") -> set[str]:
    """Return the dotted keys that a profile may write in `section`."""
    found: set[str] = set()
    for name, field in section.model_fields.items():
        key = f"{above}{field.alias or name}"
        inner = None if key in _OF_FLOWS else section_in(field.annotation)
        found |= {key} if inner is None else keys_of(inner, f"{key}.")
    return found


def section_in(annotation: Any) -> type[Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    return next(filter(None, map(section_in, get_args(annotation))), None)


def test_i1_every_key_of_a_profile_is_compared_or_said_not_to_widen() -> None:
    """A key that is new fails here until somebody has thought of what it opens."""
    listed = [*COMPARED, *COMPARED_ELSEWHERE, *NOT_WIDENING]
    assert sorted(listed) == sorted(keys_of(Config))


@pytest.mark.parametrize("key", sorted(COMPARED))
def test_i1_a_key_that_can_widen_is_said_when_it_does(key: str) -> None:
    base, change = COMPARED[key]
    assert newly_permitted(permissions(base), permissions(merged(base, change)))


def test_what_a_narrower_profile_has_instead_is_said_as_what_is_now() -> None:
    wider = permissions({"perimeter": {"max_egress_class": "C1"}})
    assert no_longer_permitted(wider, permissions({})) == ("content up to class C1 may leave; now: C0",)


def test_i1_an_approval_that_is_no_longer_asked_for_and_a_matter_that_is_gone_are_said() -> None:
    asked, free = permissions(grant(approval="ask")), permissions(grant())
    assert newly_permitted(asked, free) == ("read_file may be called without asking",)
    assert newly_permitted(free, asked) == ()
    kept = permissions(grant(paths=[{"path": "/s/rossi", "matter": "rossi"}]))
    assert newly_permitted(kept, free) == (
        "/s/rossi belongs to no matter for read_file; before: the matter rossi",
    )
    assert no_longer_permitted(free, kept) == (
        "/s/rossi belongs to no matter for read_file; now: the matter rossi",
    )
    assert newly_permitted(free, kept) == ()


def test_i1_a_folder_below_a_granted_one_is_not_new_and_a_namesake_beside_it_is() -> None:
    old = permissions(grant(paths=["/s/rossi"]))
    assert newly_permitted(old, permissions(grant(paths=["/s/rossi/2024"]))) == ()
    assert newly_permitted(old, permissions(grant(paths=["/s/rossi-bis"]))) == (
        "read_file may reach /s/rossi-bis (C2 by default)",
    )


SINK = {"to": "network", "max_class": "C1"}
HELD = {"calls": 2, "arguments": {"path": {"max_length": 20, "hosts": ["a.example"]}}, "sink": SINK}
LOOSER: dict[str, tuple[dict[str, Any], str]] = {
    "calls": ({"calls": 5}, "read_file may be called 5 times in a task; before: 2 times"),
    "limit": (
        {"arguments": {"path": {"max_length": 21, "hosts": ["a.example"]}}},
        "read_file may be given path longer than 20; before: a limit on it",
    ),
    "host": (
        {"arguments": {"path": {"max_length": 20, "hosts": ["a.example", "b.example"]}}},
        "read_file may be given path at other hosts than a.example; before: a limit on it",
    ),
    "class": (
        {"sink": {**SINK, "max_class": "C2"}},
        "read_file may carry content up to class C2; before: C1",
    ),
    "payload": (
        {"sink": {**SINK, "payload": ["path"]}},
        "read_file may be given path that the model chose; before: the user had to name it",
    ),
    "vouch": (
        {"sink": {**SINK, "cases": [{"path": [{"values": ["x"]}, {"source": "read_file"}]}]}},
        (
            "read_file may be given path that the user named or one of x or what read_file returned for what "
            "the user named; before: the user had to name it"
        ),
    ),
    "no sink": ({"sink": None}, "read_file may be given anything, by anybody; before: it was a sink"),
}


@pytest.mark.parametrize("name", sorted(LOOSER))
def test_i1_what_a_looser_argument_opens_is_said(name: str) -> None:
    """`akaion policy diff` says it; that nothing goes unsaid is a property in `test_flow.py`."""
    change, sentence = LOOSER[name]
    old, new = permissions(grant(**HELD)), permissions(grant(**{**HELD, **change}))
    assert newly_permitted(old, new) == (sentence,)
    assert newly_permitted(new, old) == ()


def test_a_new_tool_is_said_with_where_it_carries_things() -> None:
    new = {"tool": "list_dir", "paths": ["/s/rossi"], "sink": {**SINK, "payload": ["path"]}}
    added = permissions({"policy": {"grants": [*BASE["policy"]["grants"], new]}})
    assert newly_permitted(permissions({}), added) == (
        (
            "list_dir may be called: /s/rossi (C2 by default); it carries content up to class C1 to network, "
            "the model choosing path"
        ),
    )


HOSTS: Final[dict[str, tuple[list[Any], str]]] = {
    "host": (["a.example.org", "b.example.org"], "at b.example.org"),
    "ending": (["*.example.org"], "at every host below example.org"),
    "path": ([{"host": "a.example.org", "paths": ["/x", "/y"]}], "at a.example.org below /x, /y"),
    "port": ([{"host": "a.example.org", "port": 8443}], "at a.example.org port 8443"),
    "plain": (
        [{"host": "a.example.org", "unsafe_plain_http": True}],
        "at a.example.org, without encryption too",
    ),
}
NARROW_HOST: Final[dict[str, list[Any]]] = {
    **{name: ["a.example.org"] for name in ("host", "port", "plain")},
    "ending": ["a.example.org", "*.b.example.org"],
    "path": [{"host": "a.example.org", "paths": ["/x"]}],
}


def asking_for_pages(hosts: list[Any], **more: Any) -> Permissions:
    web = {"tool": "web_fetch", "hosts": hosts, "sink": {"to": "network", "max_class": "C1"}, **more}
    return permissions({"policy": {"grants": [web]}})


def logging_in(host: Any) -> Permissions:
    return asking_for_pages([host], reads={"class": "C1"})


@pytest.mark.parametrize("name", HOSTS)
def test_i1_where_more_pages_may_be_asked_for_is_said(name: str) -> None:
    hosts, words = HOSTS[name]
    old, new = asking_for_pages(NARROW_HOST[name]), asking_for_pages(hosts)
    assert newly_permitted(old, new) == (f"web_fetch may be given url {words}; before: a limit on it",)
    assert (newly_permitted(new, old) == ()) is (name != "port")
    assert newly_permitted(asking_for_pages([]), new)


def test_i1_a_new_tool_that_asks_for_pages_is_said_with_where() -> None:
    said = newly_permitted(permissions({"policy": {"grants": []}}), asking_for_pages(["*.example.org"]))
    assert said == (
        (
            "web_fetch may be called: it asks for pages at every host below example.org; it carries content "
            "up to class C1 to network"
        ),
    )


def at(host: str = "a.example.org", **more: Any) -> dict[str, Any]:
    return {"host": host, "credential": "env:ONE", **more}


LOGINS: Final[dict[str, tuple[Any, Any, str]]] = {
    "new": ("a.example.org", at(), "a.example.org with the credential env:ONE; before: without a credential"),
    "another": (
        at(),
        at(credential="file:/k/two"),
        "a.example.org with the credential file:/k/two; before: a.example.org with the credential env:ONE",
    ),
    "another header": (
        at(),
        at(header="X-Key"),
        (
            "a.example.org with the credential env:ONE in the header X-Key; "
            "before: a.example.org with the credential env:ONE"
        ),
    ),
    "more paths": (
        at(paths=["/x"]),
        at(paths=["/x", "/y"]),
        (
            "a.example.org below /x, /y with the credential env:ONE; "
            "before: a.example.org below /x with the credential env:ONE"
        ),
    ),
    "another port": (
        at(),
        at(port=8443),
        "a.example.org port 8443 with the credential env:ONE; before: without a credential",
    ),
}


@pytest.mark.parametrize("name", LOGINS)
def test_i5_where_a_tool_newly_logs_in_is_said(name: str) -> None:
    before, after, words = LOGINS[name]
    old, new = logging_in(before), logging_in(after)
    assert f"web_fetch may log in to {words}" in newly_permitted(old, new)
    assert not [each for each in newly_permitted(new, new) if "log in" in each]


def test_i8_what_pages_count_for_is_compared_with_what_they_do_where_the_grant_says_nothing() -> None:
    """Pages are C0 then, and not C2 as what any other tool returns."""
    bare, said = (
        asking_for_pages(["a.example.org"]),
        asking_for_pages(["a.example.org"], reads={"class": "C2"}),
    )
    assert newly_permitted(said, bare) == ("what web_fetch returns counts as class C0; before: C2",)
    assert newly_permitted(bare, said) == ()
    assert no_longer_permitted(bare, said) == ("what web_fetch returns counts as class C0; now: C2",)


def test_i5_a_login_that_is_gone_or_covers_less_permits_nothing() -> None:
    wide, narrow = logging_in(at()), logging_in(at(paths=["/x"]))
    assert newly_permitted(wide, narrow) == ()
    assert newly_permitted(wide, logging_in("a.example.org")) == ()
    assert no_longer_permitted(wide, logging_in("a.example.org")) == (
        "web_fetch may log in to a.example.org with the credential env:ONE; now: without a credential",
    )


def test_i5_a_new_tool_is_said_with_where_it_logs_in() -> None:
    said = newly_permitted(permissions({"policy": {"grants": []}}), logging_in(at()))
    assert "web_fetch may log in to a.example.org with the credential env:ONE" in said


_PATHS = st.lists(st.sampled_from(["/s", "/s/a", "/s/a/b", "/s/ab", "/t"]), max_size=3, unique=True)
_GRANTS = st.dictionaries(st.sampled_from(sorted(FILE_TOOLS)), st.tuples(_PATHS, st.booleans()), max_size=3)


def granting(grants: Mapping[str, tuple[list[str], bool]]) -> Permissions:
    data = [
        {"tool": tool, "paths": paths, "approval": "ask" if ask else "never"}
        for tool, (paths, ask) in grants.items()
    ]
    return permissions({"policy": {"grants": data}})


@given(old=_GRANTS, new=_GRANTS, tool=st.sampled_from(sorted(FILE_TOOLS)))
def test_i1_a_call_that_only_the_new_profile_lets_pass_never_goes_unsaid(
    old: Mapping[str, tuple[list[str], bool]], new: Mapping[str, tuple[list[str], bool]], tool: str
) -> None:
    """Against the policy kernel itself: what the new one reaches and the old did not is in the words."""
    before, after = granting(old), granting(new)
    said = " ".join(newly_permitted(before, after))
    origin = Block(id="b0", kind=BlockKind.GOAL, text="", label=Label())
    call = ToolCall(tool=tool, arguments={"path": "."}, origin=origin)
    if isinstance(decide(after.policy, call), Deny):
        return
    reached = narrow(after.policy, call).roots
    known = () if isinstance(decide(before.policy, call), Deny) else narrow(before.policy, call).roots
    for root in reached:
        if not any(PurePath(root.path).is_relative_to(other.path) for other in known):
            assert tool in said
            assert root.path in said


def findings(change: Mapping[str, Any], *, host: frozenset[str] = frozenset()) -> set[str]:
    judged = permissions(change, host=host)
    return {
        ".".join(map(str, each.where)) for each in lint(judged.config, judged.policy, homes=["/people/anna"])
    }


REGISTER = {"perimeter": {"registers": {"clients": "clients.yaml"}}}


def test_a_folder_inside_the_folder_of_another_tool_is_a_finding_and_the_same_folder_is_none() -> None:
    """One file would have two names: what one tool finds, the other could not read back."""

    def found(path: str) -> set[str]:
        grants = [{"tool": "search_text", "paths": ["/s/a"]}, {"tool": "read_file", "paths": [path]}]
        return findings({**REGISTER, "policy": {"grants": grants}})

    assert found("/s/a/rossi") == {"policy.grants.1.paths.0"}
    assert found("/s/a") == found("/s/b") == set()


@pytest.mark.parametrize("search", ["search_text", ""], ids=["with", "without"])
def test_looking_for_files_without_a_search_is_a_finding(search: str) -> None:
    """A small model that can only list guesses at names until it gives up."""
    tools = [tool for tool in ("read_file", "list_dir", search) if tool]
    grants = [{"tool": tool, "paths": ["/s/a"]} for tool in tools]
    found = findings({**REGISTER, "policy": {"grants": grants}})
    assert found == (set() if search else {"policy.grants.1"})


def test_a_profile_that_says_what_it_means_has_no_finding() -> None:
    assert findings(REGISTER) == set()


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({}, "perimeter.registers.clients"),
        (merged(REGISTER, {"policy": {"grants": []}}), "policy.grants"),
        (merged(REGISTER, grant(paths=[])), "policy.grants.0"),
        (merged(REGISTER, grant(paths=["/"])), "policy.grants.0.paths.0"),
        (merged(REGISTER, grant(paths=["/people"])), "policy.grants.0.paths.0"),
        (merged(REGISTER, grant(paths=["/people/anna"])), "policy.grants.0.paths.0"),
        (merged(REGISTER, grant(paths=["/s/rossi", "/s/rossi/2024"])), "policy.grants.0.paths.1"),
        (
            merged(REGISTER, grant(paths=[{"path": "/s/rossi", "redactable": True}])),
            "perimeter.redaction",
        ),
    ],
    ids=["register", "none", "no folder", "root", "homes", "home", "inside", "redactable"],
)
def test_i1_what_is_hardly_meant_is_found_at_its_field(change: Mapping[str, Any], where: str) -> None:
    assert findings(change) == {where}


def perimeter_of(ceiling: str) -> PerimeterConfig:
    perimeter = parse_config(plain(merged(BASE, REGISTER)), file="t", locate=lambda _: 0).perimeter
    return perimeter.model_copy(update={"max_egress_class": ceiling})


@pytest.mark.parametrize(
    ("ceiling", "means"),
    [
        (
            "none",
            ["nothing may leave, and what a person types counts as C1: every page of web_fetch is denied"],
        ),
        (
            "C0",
            ["at most C0 may leave, and what a person types counts as C1: every page of web_fetch is denied"],
        ),
        ("C1", []),
    ],
    ids=["nothing", "public", "internal"],
)
def test_hosts_that_no_task_can_ask_for_a_page_are_found(ceiling: str, means: list[str]) -> None:
    judged = asking_for_pages(["a.example.org"])
    config = judged.config.model_copy(update={"perimeter": perimeter_of(ceiling)})
    assert [each.means for each in lint(config, judged.policy, homes=["/people/anna"])] == means


@pytest.mark.parametrize(
    ("hosts", "where"),
    [
        ([], {"hosts"}),
        (["a.example.org", "*.example.org", "*.example.it", "*.comune.example.it"], set()),
        (["*.com"], {"hosts.0.host"}),
        (["a.example.org", "*.co.uk"], {"hosts.1.host"}),
        (["*.github.io", "*.s3.amazonaws.com"], {"hosts.0.host", "hosts.1.host"}),
        ([{"host": "a.example.org", "unsafe_plain_http": True}], {"hosts.0.unsafe_plain_http"}),
    ],
    ids=["none", "right", "an ending of many", "a country", "a provider", "plain"],
)
def test_i1_where_pages_are_hardly_meant_to_be_asked_for_is_found(hosts: list[Any], where: set[str]) -> None:
    judged = asking_for_pages(hosts)
    config = judged.config.model_copy(update={"perimeter": perimeter_of("C1")})
    found = {".".join(map(str, each.where)) for each in lint(config, judged.policy, homes=["/people/anna"])}
    assert found == {f"policy.grants.0.{each}" for each in where}


def test_p3_a_tool_of_the_program_is_a_finding_until_somebody_vouches_for_it() -> None:
    host = frozenset({"read_file"})
    assert permissions(REGISTER, host=host).policy.grants["read_file"].effect is Effect.HOST
    assert findings(REGISTER, host=host) == {"policy.grants.0", "policy.grants.0.sink"}
    assert findings(merged(REGISTER, grant(trusted=True)), host=host) == {"policy.grants.0.sink"}
    said = {"trusted": True, "reads": {"class": "C2"}}
    assert findings(merged(REGISTER, grant(**said)), host=host) == set()
    assert findings(merged(REGISTER, grant(trusted=True, sink=SINK)), host=host) == set()
    promised = merged(REGISTER, grant(**said, network=False))
    assert findings(promised, host=host) == {"policy.grants.0.network"}
