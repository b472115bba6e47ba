# SPDX-License-Identifier: Apache-2.0
"""The table of credentials: key and token shapes, private keys, secrets given by their name.

Owns one line per shape. Every one is C3: a credential opens more than the text it stands in.
Leaves the secrets the perimeter itself holds to the vault (I5): those never enter a text.
Carries I6: a credential that was pasted does not leave, in the clear or encoded.
"""

import re
from typing import Final

from runner.kernel.labels import DataClass
from runner.perimeter.classify import passwords
from runner.perimeter.classify.model import Check, Rule, whole

_EDGE: Final = r"(?:^|[^0-9A-Za-z])"
_END: Final = re.compile(r"(?<=[0-9]),\}")
"""What follows a number of repetitions that has no bound, in a pattern that ends with them."""


def _shape(name: str, shape: str, *, kind: str = "api_key", check: Check = whole, trigger: str = "") -> Rule:
    """Return a rule for a credential whose shape cannot arise by chance."""
    return Rule(
        name=name,
        kind=kind,
        data_class=DataClass.C3,
        pattern=f"{_EDGE}({shape})",
        check=check,
        distinctive=True,
        trigger=trigger or f"{_EDGE}(?:{_END.sub('}', shape)})",
        trigger_leads=True,
    )


def _named(name: str, words: str, check: Check) -> tuple[Rule, Rule]:
    """Return the rules for what stands behind one of `words`, and for a field whose name ends with one."""
    behind = Rule(
        name=f"named-{name}",
        kind="password",
        data_class=DataClass.C3,
        pattern=rf"(?i){words}[\"']?\s{{0,3}}(?::=|=>|:|=|e'? |is )\s{{0,3}}[\"']?([^\s\"'<>]{{6,200}})",
        check=check,
        distinctive=True,
        trigger=rf"(?i){words}[\"'\s]{{0,4}}(?::|=|e|is )",
    )
    below = Rule(
        name=f"{name}-under-its-name",
        kind="password",
        data_class=DataClass.C3,
        pattern=r"^\s{0,3}([^\s\"'<>]{6,200})\s{0,3}$",
        check=check,
        context=rf"(?i){words}$",
        needs_context=True,
        of_a_line=True,
    )
    return behind, below


_PASSWORDS: Final = r"(?:pass(?:word|wd|phrase|code)?|pwd|parola d'ordine|credenziali?)"
_TOKENS: Final = (
    r"(?:secret|segreto|(?:api|access|secret|private|auth|encryption|signing)[ _\-]?(?:key|token)|token|"
    r"client[ _\-]?secret|chiave (?:di accesso|segreta|privata|api))"
)

CREDENTIALS: Final = (
    _shape("aws-access-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    _shape("github-token", r"gh[pousr]_[0-9A-Za-z]{36,}"),
    _shape("github-fine-grained", r"github_pat_[0-9A-Za-z_]{40,}"),
    _shape("gitlab-token", r"gl(?:pat|dt|ptt|rt|cbt)-[0-9A-Za-z_\-]{20,}"),
    _shape("anthropic-key", r"sk-ant-[0-9A-Za-z_\-]{20,}"),
    _shape("openai-key", r"sk-(?:proj-|svcacct-|admin-|or-v1-)?[0-9A-Za-z_\-]{32,}"),
    _shape("google-api-key", r"AIza[0-9A-Za-z_\-]{35}"),
    _shape("google-oauth", r"(?:ya29\.[0-9A-Za-z_\-]{20,}|GOCSPX-[0-9A-Za-z_\-]{20,})"),
    _shape("slack-token", r"xox[abeoprs]-[0-9A-Za-z\-]{10,}"),
    _shape("slack-webhook", r"hooks\.slack\.com/services/[0-9A-Za-z/]{20,}"),
    _shape("stripe-key", r"(?:sk|rk|whsec)_(?:live_|test_)?[0-9A-Za-z]{24,}"),
    _shape("hugging-face-token", r"hf_[0-9A-Za-z]{30,}"),
    _shape("npm-token", r"npm_[0-9A-Za-z]{36}"),
    _shape("pypi-token", r"pypi-AgE[0-9A-Za-z_\-]{40,}"),
    _shape(
        "sendgrid-key",
        r"SG\.[0-9A-Za-z_\-]{16,}\.[0-9A-Za-z_\-]{16,}",
        trigger=rf"{_EDGE}SG\.[0-9A-Za-z_\-]{{16}}",
    ),
    _shape("mistral-or-groq-key", r"(?:gsk_[0-9A-Za-z]{40,}|r8_[0-9A-Za-z]{30,}|pplx-[0-9A-Za-z]{40,})"),
    _shape(
        "telegram-bot-token",
        r"[0-9]{8,10}:AA[0-9A-Za-z_\-]{33}",
        trigger=rf"{_EDGE}[0-9]{{8,10}}:AA[0-9A-Za-z_\-]",
    ),
    _shape("age-secret-key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _shape(
        "jwt",
        r"eyJ[0-9A-Za-z_\-]{8,}\.eyJ[0-9A-Za-z_\-]{8,}(?:\.[0-9A-Za-z_\-]*)?",
        kind="jwt",
        trigger=rf"{_EDGE}eyJ[0-9A-Za-z_\-]{{8}}",
    ),
    Rule(
        name="private-key-block",
        kind="private_key",
        data_class=DataClass.C3,
        pattern=r"-----BEGIN [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:[0-9A-Za-z+/=\s:,\\]|-[0-9A-Za-z])*(?:-----END [0-9A-Z ]{0,40}-----)?",
        distinctive=True,
        trigger="PRIVATE KEY",
    ),
    Rule(
        name="bearer-token",
        kind="bearer_token",
        data_class=DataClass.C3,
        pattern=rf"(?i){_EDGE}(?:bearer|authorization: ?(?:basic|token)) ([0-9A-Za-z._~+/\-]{{16,200}}=*)",
        check=passwords.secret_value,
        distinctive=True,
        trigger=r"(?i)(?:bearer|basic|token) [0-9A-Za-z._~+/\-]",
    ),
    Rule(
        name="credentials-in-address",
        kind="password",
        data_class=DataClass.C3,
        pattern=r"[A-Za-z][0-9A-Za-z+.\-]{1,20}://[^\s/:@]{1,64}:([^\s/@]{1,128})@[0-9A-Za-z]",
        distinctive=True,
        trigger=r"://[^\s/@]+@",
    ),
    *_named("password", _PASSWORDS, passwords.password_value),
    *_named("secret", _TOKENS, passwords.secret_value),
)
"""Every credential rule. Those under a name hit a text that is one word and whose `source` names a secret."""
