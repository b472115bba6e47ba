# SPDX-License-Identifier: Apache-2.0
"""Configuration (I6): every mistake at once, with its line and its fix; nothing opens the perimeter (I7).

Profiles are read with `read_profile` and judged with `parse_config`, as assembly does it.
"""

import json
from collections.abc import Callable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.capability.profile import SHIPPED, read_profile
from runner.kernel.config import Config, parse_config
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass

Judged: TypeAlias = Callable[..., Config]
Mistakes: TypeAlias = Callable[..., list[Mistake]]

REMOTE = """inference:
  remote:
    backend: openai
    endpoint: https://models.example
    model: large
"""
SMALL = "inference:\n  local: {runtime: embedded, model: m, context: 1024}\n"
SERVER = "inference:\n  local: {runtime: llamacpp, endpoint: http://127.0.0.1:1, model: small}\n"
OLLAMA = "{runtime: ollama, endpoint: http://127.0.0.1:1, embeddings_endpoint: http://127.0.0.1:2}"
ANTHROPIC = "{backend: anthropic, endpoint: https://models.example, model: large, embeddings: e5}"


# --- what is shipped --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
def test_i6_the_shipped_profiles_are_judged_without_a_mistake(name: str) -> None:
    source = read_profile(name, {})
    config = parse_config(source.data, file=source.file, locate=source.line)
    assert config.profile == name
    assert config.perimeter.fail_closed
    assert config.policy.default == "deny"
    assert config.trace.sign


def test_the_detached_profile_lets_nothing_leave(judged: Judged) -> None:
    config = judged("profile: detached\n")
    assert config.perimeter.ceiling is None
    assert config.inference.remote is None


@pytest.mark.parametrize(("word", "ceiling"), [("none", None), ("C0", DataClass.C0), ("C1", DataClass.C1)])
def test_the_ceiling_is_the_configured_class(judged: Judged, word: str, ceiling: DataClass | None) -> None:
    config = judged(f"profile: attached\nperimeter:\n  max_egress_class: {word}\n")
    assert config.perimeter.ceiling == ceiling


def test_i1_i7_what_a_profile_leaves_out_is_denied() -> None:
    bare = {"profile": "detached", "inference": {"local": {"runtime": "embedded", "model": "m"}}}
    config = parse_config(bare, file="p", locate=lambda _: 0)
    assert config.policy.grants == ()
    assert config.perimeter.max_egress_class == "none"
    assert config.perimeter.classifier_fault == "deny"
    assert config.perimeter.locality_required.c3 == "L2"


# --- mistakes ---------------------------------------------------------------------------------------------

EVERYTHING_WRONG = """\
profile: attached
perimeter:
  max_egress_class: C2
  fail_closed: false
  classifier_falt: deny
policy:
  default: allow
  grants:
    - tool: Read File
      access: everything
    - paths: [~/Studio]
inference:
  timeout_s: 0
  local:
    context: many
  remote:
    backend: openai
    credential: sk-0123456789
budget:
  steps: 2.5
trace:
  sign: false
"""


def test_every_mistake_is_reported_at_once_with_its_line_and_a_fix(mistakes: Mistakes) -> None:
    found = mistakes(EVERYTHING_WRONG)
    assert {(mistake.where, mistake.line) for mistake in found} == {
        ("perimeter.max_egress_class", 3),
        ("perimeter.fail_closed", 4),
        ("perimeter.classifier_falt", 5),
        ("policy.default", 7),
        ("policy.grants.0.tool", 9),
        ("policy.grants.0.access", 10),
        ("policy.grants.1.tool", 11),  # the key is missing: the line of its grant
        ("inference.timeout_s", 13),
        ("inference.local.context", 15),
        ("inference.remote.endpoint", 16),
        ("inference.remote.model", 16),
        ("inference.remote.credential", 18),
        ("budget.steps", 20),
        ("trace.sign", 22),
    }
    assert all(mistake.file == "mine.yaml" and mistake.problem and mistake.fix for mistake in found)


_NOTHING = "write text here; no value, and a ~ alone, is YAML's nothing: a ~ that is meant wants quotes"


@pytest.mark.parametrize(
    ("text", "where", "fix"),
    [
        (
            "perimeter:\n  max_egress_class: C3\n",
            "perimeter.max_egress_class",
            "use one of: 'none', 'C0' or 'C1'",
        ),
        ("budgte: {}\n", "budgte", "did you mean budget? If not, remove this key"),
        ("colour: {}\n", "colour", "remove this key or correct its spelling"),
        ("policy:\n  grants:\n    - access: read\n", "policy.grants.0.tool", "add this key"),
        ("budget:\n  steps: eight\n", "budget.steps", "write a whole number here"),
        ("inference:\n  local:\n    model: 7\n", "inference.local.model", "write text here"),
        (
            "policy:\n  grants:\n    - {tool: a, trusted: 'no'}\n",
            "policy.grants.0.trusted",
            "write true or false here",
        ),
        (
            "inference:\n  local: {model: my model}\n",
            "inference.local.model",
            "use letters, digits and . _ : @ / + -, a letter or digit first, at most 128 and no spaces",
        ),
        (
            "perimeter: {classifier: small}\n",
            "perimeter.classifier",
            "write rules-only, or local:NAME with the name of a model",
        ),
        (
            "policy:\n  grants: [{tool: Read File}]\n",
            "policy.grants.0.tool",
            "use lower-case letters, digits, '-' and '_', a letter first, at most 64",
        ),
        ("trace: {sign: false}\n", "trace.sign", "write true, or leave this key out"),
        (
            "policy:\n  grants: [{tool: a, network: true}]\n",
            "policy.grants.0.network",
            "write false, or leave this key out",
        ),
        ("policy:\n  grants: [{tool: a, paths: files}]\n", "policy.grants.0.paths", "write a list here"),
        ("budget: {tokens: 0}\n", "budget.tokens", "write 1 or more"),
        ("trace: {seal_every: 1000}\n", "trace.seal_every", "write 256 or less"),
        (
            "policy:\n  grants: [{tool: a, paths: [{path: b, clas: C3}]}]\n",
            "policy.grants.0.paths.0.clas",
            "did you mean class? If not, remove this key",
        ),
        (
            "perimeter: {redactions: on}\n",
            "perimeter.redactions",
            "did you mean redaction? If not, remove this key",
        ),
        ("policy:\n  grants: [{tool: a, paths: [{path: ~}]}]\n", "policy.grants.0.paths.0.path", _NOTHING),
        ("policy:\n  grants: [{tool: a, paths: [~]}]\n", "policy.grants.0.paths.0", _NOTHING),
        (
            "inference:\n  local: {runtime: vllm, model: m}\n",
            "inference.local",
            "add endpoint: http://127.0.0.1:8000 below it, with the port that your server has",
        ),
        ("polcy: {}\n", "polcy", "did you mean policy? If not, remove this key"),
        (
            "inference:\n  local: {treads: 2}\n",
            "inference.local.treads",
            "did you mean threads? If not, remove this key",
        ),
    ],
)
def test_a_fix_says_what_to_write(mistakes: Mistakes, text: str, where: str, fix: str) -> None:
    [mistake] = mistakes(f"profile: detached\n{text}")
    assert (mistake.where, mistake.fix) == (where, fix)


@pytest.mark.parametrize(
    "text",
    [
        "perimeter:\n  fail_closed: false\n",
        "perimeter:\n  fail_closed: 'true'\n",
        "perimeter:\n  max_egress_class: C2\n",
        "perimeter:\n  classifier_fault: allow\n",
        "perimeter:\n  classifier: none\n",
        "perimeter:\n  locality_required:\n    C3: none\n",
        "policy:\n  default: allow\n",
        "policy:\n  grants:\n    - {tool: a, network: true}\n",
        "trace:\n  sign: false\n",
        "trace:\n  seal_every: 257\n",
    ],
)
def test_i7_no_setting_opens_the_perimeter(mistakes: Mistakes, text: str) -> None:
    [mistake] = mistakes(f"profile: attached\n{text}")
    assert mistake.line > 1


HOSTS = "policy:\n  grants:\n    - tool: web_fetch\n      hosts: "
TWICE = "{host: a.example, port: 443, credential: 'env:U'}"


def test_a_detached_profile_with_a_remote_backend_is_refused(mistakes: Mistakes) -> None:
    [mistake] = mistakes(f"profile: detached\n{REMOTE}")
    assert (mistake.where, mistake.line) == ("inference.remote", 3)
    assert mistake.problem == "the detached profile has no remote backend"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("profile: detached\nperimeter:\n  max_egress_class: C0\n", "perimeter.max_egress_class"),
        (f"profile: attached\nperimeter:\n  max_egress_class: none\n{REMOTE}", "perimeter.max_egress_class"),
        ("profile: attached\ninference:\n  prefer: remote\n", "inference.prefer"),
        (f"profile: attached\n{REMOTE}  local: null\n", "inference.prefer"),
        ("profile: detached\ninference:\n  local: null\n", "inference"),
        ("profile: detached\npolicy:\n  grants:\n    - tool: a\n    - tool: a\n", "policy.grants.1.tool"),
        (f"profile: detached\n{HOSTS}[a.example.org]\n", "policy.grants.0.hosts"),
        (f"profile: attached\n{HOSTS}[a.example.org, B.example.org]\n", "policy.grants.0.hosts.1.host"),
        (f"profile: attached\n{HOSTS}[127.0.0.1]\n", "policy.grants.0.hosts.0.host"),
        (f"profile: attached\n{HOSTS}['*']\n", "policy.grants.0.hosts.0.host"),
        (
            f"profile: attached\n{HOSTS}[{{host: a.example.org, paths: [/a/../b]}}]\n",
            "policy.grants.0.hosts.0.paths",
        ),
        (f"profile: attached\n{HOSTS}[{{host: a.example.org, port: 0}}]\n", "policy.grants.0.hosts.0.port"),
        (
            f"profile: attached\n{HOSTS}[{{host: '*.example.org', credential: 'env:T'}}]\n",
            "policy.grants.0.hosts.0.credential",
        ),
        (
            f"profile: attached\n{HOSTS}[{{host: a.example.org, credential: 'keyring:T'}}]\n",
            "policy.grants.0.hosts.0.credential",
        ),
        (
            f"profile: attached\n{HOSTS}[{{host: a.example, unsafe_plain_http: true, credential: env:T}}]\n",
            "policy.grants.0.hosts.0.unsafe_plain_http",
        ),
        (
            f"profile: attached\n{HOSTS}[{{host: a.example.org, header: X-Key}}]\n",
            "policy.grants.0.hosts.0.header",
        ),
        (
            f"profile: attached\n{HOSTS}[{{host: a.example.org, credential: 'env:T', header: 'X Key'}}]\n",
            "policy.grants.0.hosts.0.header",
        ),
        (
            f"profile: attached\n{HOSTS}[{{host: a.example.org, credential: 'env:T', header: HOST}}]\n",
            "policy.grants.0.hosts.0.header",
        ),
        (
            f"profile: attached\n{HOSTS}[{{host: a.example, credential: 'env:T'}}, b.example, {TWICE}]\n",
            "policy.grants.0.hosts.2.credential",
        ),
        ("profile: detached\ninference:\n  local:\n    endpoint: http://127.0.0.1:1\n", "inference.local"),
        ("profile: detached\ninference:\n  local:\n    runtime: llamacpp\n", "inference.local"),
        (f"profile: detached\nperimeter:\n  classifier: local:small\n{SERVER}", "perimeter.classifier"),
        (
            f"profile: detached\nperimeter:\n  classifier: local:m\n{SMALL}",
            "perimeter.classifier",
        ),
        (
            "profile: detached\ninference:\n  local:\n    embeddings: e5\n",
            "inference.local",
        ),
        (
            f"profile: detached\ninference:\n  local: {OLLAMA}\n",
            "inference.local",
        ),
        (
            f"profile: attached\ninference:\n  remote: {ANTHROPIC}\n",
            "inference.remote",
        ),
        (
            "profile: detached\npolicy:\n  grants:\n    - {tool: a, network: false, sandbox: unrestricted}\n",
            "policy.grants.0.network",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(mistakes: Mistakes, text: str, where: str) -> None:
    [mistake] = mistakes(text)
    assert mistake.where == where
    assert mistake.line > 0


def test_a_host_has_a_credential_at_several_paths_and_another_at_another_port(judged: Judged) -> None:
    entries = "{host: a.example.org, paths: [/x], credential: 'env:T'}, {host: a.example.org, paths: [/y]}"
    entries += ", {host: a.example.org, paths: [/z], credential: 'env:T'}"
    entries += ", {host: a.example.org, port: 8443, credential: 'file:~/token', header: X-Key}"
    hosts = judged(f"profile: attached\n{HOSTS}[{entries}]\n").policy.grants[-1].hosts
    assert hosts is not None
    assert [each.credential for each in hosts] == ["env:T", None, "env:T", "file:~/token"]


def test_a_second_opinion_is_rules_only_unless_a_profile_names_a_model(judged: Judged) -> None:
    config = judged("profile: detached\n")
    assert (config.perimeter.classifier, config.opinion) == ("rules-only", None)


def test_i10_a_second_opinion_is_a_model_in_this_process_unless_the_local_one_has_its_name(
    judged: Judged,
) -> None:
    other = judged("profile: detached\nperimeter:\n  classifier: local:tiny-1.5b\n").opinion
    assert other is not None
    assert (other.runtime, other.model, other.endpoint) == ("embedded", "tiny-1.5b", None)
    config = judged(
        "profile: detached\nperimeter:\n  classifier: local:small\n  locality_required: {C3: L1}\n" + SERVER
    )
    assert config.opinion is config.inference.local


@pytest.mark.parametrize("name", ["local:", "local:a+b", "local:a b", "remote:a", "local", "local:.a"])
def test_a_second_opinion_has_a_name_the_record_can_hold(mistakes: Mistakes, name: str) -> None:
    [mistake] = mistakes(f"profile: detached\nperimeter:\n  classifier: '{name}'\n")
    assert mistake.where == "perimeter.classifier"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("profile: detached\nbudget:\n  steps: 1\n  steps: 2\n", 4),
        ("profile: detached\nprofile: attached\n", 2),
        ("profile: detached\npolicy: {default: deny, default: deny}\n", 2),
    ],
)
def test_a_key_that_stands_twice_is_refused(mistakes: Mistakes, text: str, line: int) -> None:
    [mistake] = mistakes(text)
    assert (mistake.line, mistake.problem) == (line, "a key stands twice")


@pytest.mark.parametrize(
    "text",
    ["", "- a\n", "budget: {}\n", "profile: cloud\n", "profile: [detached]\n", "a: b: c\n", "just text\n"],
)
def test_what_is_no_profile_is_refused_with_one_mistake(mistakes: Mistakes, text: str) -> None:
    assert len(mistakes(text)) == 1


def test_i12_a_key_written_where_its_place_belongs_is_not_quoted(mistakes: Mistakes) -> None:
    [mistake] = mistakes(f"profile: attached\n{REMOTE}    credential: sk-12345\n")
    assert (mistake.where, mistake.fix) == (
        "inference.remote.credential",
        "write env:NAME, a variable's name in capitals, or file:PATH, never the key itself",
    )
    assert "sk-12345" not in str(mistake)


@pytest.mark.parametrize("key", ["ghp_aB3dE5fG7hJ9kL1m", "sk-12345", "0A1B", "A B", "A=B", "", "A\nB"])
def test_i12_what_is_no_name_of_a_variable_is_not_quoted(key: str, mistakes: Mistakes) -> None:
    """A key that was pasted behind `env:` stood in the error that said that no such variable is set."""
    [mistake] = mistakes(f"profile: attached\n{REMOTE}    credential: {json.dumps('env:' + key)}\n")
    assert mistake.where == "inference.remote.credential"
    assert not key or key not in str(mistake)


def test_a_variable_has_a_name_in_capitals(judged: Callable[..., Config]) -> None:
    assert judged(f"profile: attached\n{REMOTE}    credential: env:_MY_KEY2\n").inference.remote is not None


def test_no_mistake_speaks_python(mistakes: Mistakes) -> None:
    said = " ".join(f"{each.problem} {each.fix}" for each in mistakes(EVERYTHING_WRONG))
    assert [word for word in ("True", "False", "None", "tuple", "'^", "Input should") if word in said] == []


def test_i12_no_mistake_quotes_a_value(mistakes: Mistakes) -> None:
    assert "sk-0123456789" not in "".join(str(each) for each in mistakes(EVERYTHING_WRONG))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text() | st.sampled_from(list(Config.model_fields)), inner)
        ),
        max_leaves=10,
    )
)
def test_judging_is_total(data: object) -> None:
    """Whatever the data is, the answer is a configuration or a `ConfigError`."""
    assert verdict(data)


def verdict(data: object) -> Config | tuple[Mistake, ...]:
    try:
        return parse_config(data, file="p", locate=lambda _: 0)
    except ConfigError as error:
        return error.mistakes


def test_yaml_1_2_words_stay_words(mistakes: Mistakes) -> None:
    """`no` and `on` are text in YAML 1.2: nothing becomes true or false by its spelling."""
    [mistake] = mistakes("profile: detached\npolicy:\n  grants:\n    - {tool: a, trusted: on}\n")
    assert mistake.where == "policy.grants.0.trusted"


def test_a_configuration_cannot_be_changed() -> None:
    source = read_profile("detached", {})
    config = parse_config(source.data, file="p", locate=source.line)
    with pytest.raises(ValueError, match="frozen"):
        config.perimeter.max_egress_class = "C1"  # type: ignore[misc] # the attempt is the test


def test_i8_a_declared_class_cannot_be_called_redactable(mistakes: Mistakes) -> None:
    path = "{path: ~/Studio, class: C2, redactable: true}"
    text = f"profile: detached\npolicy:\n  grants:\n    - tool: read_file\n      paths: [{path}]\n"
    [mistake] = mistakes(text)
    assert mistake.where == "policy.grants.0.paths.0.redactable"
    assert "never lowers a declared class" in mistake.problem


def test_nobody_is_asked_to_let_content_go_unless_the_profile_says_ask(judged: Judged) -> None:
    assert judged("profile: attached\n").perimeter.declassification == "off"
    asked = judged("profile: attached\nperimeter:\n  declassification: ask\n")
    assert asked.perimeter.declassification == "ask"


def test_redaction_is_off_unless_the_profile_says_on(judged: Judged) -> None:
    assert judged("profile: attached\n").perimeter.redaction == "off"
    assert judged("profile: attached\nperimeter:\n  redaction: on\n").perimeter.redaction == "on"
