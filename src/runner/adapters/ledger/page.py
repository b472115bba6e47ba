# SPDX-License-Identifier: Apache-2.0
"""A pack of evidence as one page: statements, and the lines they rest on.

Owns the page. It holds no script, fetches nothing, and forbids both by its own policy; every word that comes
in is escaped, and what cannot be seen is written as its number. Made to be printed. Pure: the same material
gives the same bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from runner.adapters.ledger.account import Account, Ref, Statement
from runner.adapters.ledger.book import Entry
from runner.adapters.ledger.content import Disclosure
from runner.adapters.ledger.proofs import leaf_of, proof_name
from runner.adapters.ledger.words import Language, said, sentence
from runner.kernel.shown import is_seen, number_of

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem;margin-bottom:.2rem}
p.input{border:2px solid #c9862b;padding:.6rem .8rem}.hand{color:#8a5a00;font-style:italic}
.refs{font-size:.8rem;color:#52606d}a{color:#2b5c8a}code,pre{font:12px/1.45 ui-monospace,monospace}
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f3f4f6;padding:.4rem;margin:.2rem 0 .8rem}
.FAIL,.UNTRUSTED{color:#b3261e}.PASS{color:#2f6f4f}
@media print{body{margin:0;max-width:none;font-size:11px}section{break-before:page}
a{color:inherit;text-decoration:none}h2,h3,h4{break-after:avoid}li,pre{break-inside:avoid}}
"""
_SHOWN = 12
"""References that a statement shows; the others are in `evidence.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands around the statements: the `verdict` on the whole book, and `how` to check the pack.

    `policy_logs` are those in which the enclosed policy was in force, `unproved` the lines left out.
    """

    verdict: Mapping[str, Any]
    how: str
    policy_logs: Sequence[int]
    unproved: Sequence[Ref]
    disclosed: Sequence[Disclosure]


def page(frame: Frame, told: Account, lines: Sequence[Entry], languages: Sequence[Language]) -> str:
    """Return the whole page, one part for each language and the lines once at its end."""
    parts = (_part(frame, told, language) for language in languages)
    first = languages[0]
    return (
        f'<!doctype html>\n<html lang="{first}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(said('frame', 'title', first))}</title><style>{_STYLE}</style></head><body>\n"
        f"{''.join(parts)}{''.join(_lines(lines, languages))}</body></html>\n"
    )


def _part(frame: Frame, told: Account, language: Language) -> str:
    sections = (_section(name, each, language) for name, each in told.items())
    return (
        f'<section lang="{language}">{"".join(_head(frame, language))}{"".join(sections)}'
        f"{''.join(_disclosed(frame.disclosed, language))}{''.join(_tail(frame, language))}</section>\n"
    )


def _head(frame: Frame, language: Language) -> Iterator[str]:
    verdict = frame.verdict
    yield f"<h1>{_said('title', language)}</h1><p>{inert(str(verdict['book']))}</p>"
    yield f'<p class="input"><strong>{_said("not_advice", language)}</strong></p>'
    word, status = str(verdict["verdict"]), str(verdict["exit"])
    yield f'<p>{_said("verdict", language)}: <strong class="{inert(word)}">{inert(word)}</strong> '
    yield f"({inert(status)}). "
    yield "; ".join(inert(f"{each['code']} ({each['log']}, {each['seq']})") for each in verdict["reasons"])
    yield f"</p><p>{_said('how', language)}</p><pre>{escape(frame.how)}</pre>"
    yield f"<p>{_said('derived', language)}</p>"
    policy = "policy_yes" if frame.policy_logs else "policy_no"
    logs = ", ".join(map(str, frame.policy_logs))
    yield f"<p>{_said(policy, language)} {logs}</p>"
    if frame.unproved:
        left_out = ", ".join(f"{log}:{seq}" for log, seq in frame.unproved)
        yield f"<p>{_said('unproved', language)}: {left_out}</p>"


def _section(name: str, statements: Sequence[Statement], language: Language) -> str:
    items = "".join(_item(each, language) for each in statements)
    empty = f"<p>{_said('empty', language)}</p>"
    return f"<h2>{escape(said('sections', name, language))}</h2>" + (f"<ul>{items}</ul>" if items else empty)


def _item(statement: Statement, language: Language) -> str:
    text = inert(sentence(statement, language))
    if not statement.refs:
        return f'<li class="hand">{text}</li>\n'
    shown = ", ".join(map(_link, statement.refs[:_SHOWN]))
    more = len(statement.refs) - _SHOWN
    return f'<li>{text} <span class="refs">[{shown}{f" +{more}" if more > 0 else ""}]</span></li>\n'


def _link(place: Ref) -> str:
    log, seq = place
    return f'<a href="#l{log}-{seq}">log {log}, seq {seq}</a>'


def _disclosed(disclosed: Sequence[Disclosure], language: Language) -> Iterator[str]:
    yield f"<h2>{_said('disclosed', language)}</h2>"
    if not disclosed:
        yield f"<p>{_said('not_disclosed', language)}</p>"
    for each in disclosed:
        text = each.payload.decode("utf-8", "replace")
        yield f"<p>{_link((each.log, each.seq))}: <code>{inert(each.member)}</code></p>"
        yield f"<pre>{inert(text)}</pre>"


def _tail(frame: Frame, language: Language) -> Iterator[str]:
    claims = "".join(f'<li lang="en">{inert(str(each))}</li>' for each in frame.verdict["claims_not_made"])
    yield f"<h2>{_said('claims', language)}</h2><ul>{claims}</ul>"


def _lines(lines: Sequence[Entry], languages: Sequence[Language]) -> Iterator[str]:
    heading = " / ".join(said("frame", "lines", each) for each in languages)
    proof = " / ".join(said("frame", "proof", each) for each in languages)
    yield f"<section><h2>{escape(heading)}</h2>"
    for each in lines:
        href = proof_name((each.log, each.seq))
        yield (
            f'<h4 id="l{each.log}-{each.seq}">log {each.log}, seq {each.seq}, {inert(each.kind)} '
            f'(<a href="{href}">{escape(proof)}</a>)</h4><p class="refs">SHA-256 {leaf_of(each)}</p>'
            f"<pre>{inert(each.line.decode('utf-8', 'replace'))}</pre>\n"
        )
    yield "</section>\n"


def _said(code: str, language: Language) -> str:
    return escape(said("frame", code, language))


def inert(text: str) -> str:
    """Return foreign text for a page: escaped, and what is not seen as its number."""
    return escape("".join(each if is_seen(each) or each in " \n" else number_of(each) for each in text))
