# SPDX-License-Identifier: Apache-2.0
"""A pack of evidence as one page: statements, and the lines they rest on.

Owns the page. It holds no script, fetches nothing and sends nothing, and forbids all three by its own policy.
Every text and every attribute goes through `_tag`: what is no markup made there is escaped, and what cannot
be seen is written as its number. Made to be printed. Pure: the same material gives the same bytes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

from runner.adapters.ledger.book import Entry
from runner.adapters.ledger.content import Disclosure
from runner.adapters.ledger.proofs import leaf_of, proof_name
from runner.adapters.ledger.statements import Account, Ref, Statement
from runner.adapters.ledger.words import Language, claim, said, sentence, terms, value
from runner.kernel.shown import is_seen, number_of

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'"
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


@dataclass(frozen=True, slots=True)
class _Markup:
    """What `_tag` made: the only text that is not escaped again."""

    html: str


_Part: TypeAlias = _Markup | str | int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands around the statements: the `verdict` on the whole book, and `how` to check the pack.

    `policy_logs` are those in which an enclosed policy was in force, `unproved` the lines left out.
    """

    verdict: Mapping[str, Any]
    how: str
    policy_logs: Sequence[int]
    unproved: Sequence[Ref]
    disclosed: Sequence[Disclosure]


def page(frame: Frame, told: Account, lines: Sequence[Entry], languages: Sequence[Language]) -> str:
    """Return the whole page, one part for each language and the lines once at its end."""
    parts = [_part(frame, told, language) for language in languages]
    first = languages[0]
    title = _tag("title", said("frame", "title", first))
    body = _tag("body", "\n", *parts, _tag("section", *_lines(lines, languages)), "\n")
    return (
        f'<!doctype html>\n<html lang="{inert(first)}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"{title.html}<style>{_STYLE}</style></head>{body.html}</html>\n"
    )


def _part(frame: Frame, told: Account, language: Language) -> _Markup:
    sections = (each for name, items in told.items() for each in _section(name, items, language))
    head, disclosed = _head(frame, language), _disclosed(frame.disclosed, language)
    return _tag("section", *head, *sections, *disclosed, *_tail(frame, language), "\n", lang=language)


def _head(frame: Frame, language: Language) -> Iterator[_Markup]:
    yield _tag("h1", _frame("title", language))
    yield _tag("p", str(frame.verdict["book"]))
    yield _tag("p", _tag("strong", _frame("not_advice", language)), class_="input")
    yield _verdict(frame.verdict, language)
    yield _tag("p", _frame("how", language))
    yield _tag("pre", frame.how)
    yield _tag("p", _frame("derived", language))
    policy = {0: "policy_no", 1: "policy_one"}.get(len(frame.policy_logs), "policy_more")
    yield _tag("p", _frame(policy, language), " ", ", ".join(map(str, frame.policy_logs)))
    if frame.unproved:
        left_out = ", ".join(f"{log}:{seq}" for log, seq in frame.unproved)
        yield _tag("p", _frame("unproved", language), ": ", left_out)
    yield _tag("h2", _frame("words", language))
    yield _tag("ul", *(_tag("li", each) for each in terms(language)))


def _verdict(verdict: Mapping[str, Any], language: Language) -> _Markup:
    word, status = str(verdict["verdict"]), f"({_frame('exit', language)} {verdict['exit']})"
    reasons = "; ".join(map(_reason, verdict["reasons"]))
    strong, meaning = _tag("strong", word, class_=word), value("verdict", word, language)
    said_of = f": {meaning}. " if meaning != word else ". "
    return _tag("p", _frame("verdict", language), ": ", strong, f" {status}{said_of}{reasons}")


def _reason(reason: Mapping[str, Any]) -> str:
    places = ", ".join(f"{name} {reason[name]}" for name in ("log", "seq") if reason[name] is not None)
    return f"{reason['code']} ({places})" if places else str(reason["code"])


def _section(name: str, statements: Sequence[Statement], language: Language) -> Iterator[_Markup]:
    yield _tag("h2", said("sections", name, language))
    if statements:
        yield _tag("ul", *(_item(each, language) for each in statements))
    else:
        yield _tag("p", _frame("empty", language))


def _item(statement: Statement, language: Language) -> _Markup:
    text = sentence(statement, language)
    if not statement.refs:
        return _tag("li", text, "\n", class_="hand")
    shown = _separated(map(_link, statement.refs[:_SHOWN]))
    more = len(statement.refs) - _SHOWN
    rest = f" +{more}]" if more > 0 else "]"
    return _tag("li", text, " ", _tag("span", "[", *shown, rest, class_="refs"), "\n")


def _separated(links: Iterable[_Markup]) -> Iterator[_Part]:
    for number, each in enumerate(links):
        yield from (", ", each) if number else (each,)


def _link(place: Ref) -> _Markup:
    log, seq = place
    return _tag("a", f"log {log}, seq {seq}", href=f"#l{log}-{seq}")


def _disclosed(disclosed: Sequence[Disclosure], language: Language) -> Iterator[_Markup]:
    yield _tag("h2", _frame("disclosed", language))
    if not disclosed:
        yield _tag("p", _frame("not_disclosed", language))
    for each in disclosed:
        yield _tag("p", _link((each.log, each.seq)), ": ", _tag("code", each.member))
        yield _tag("pre", each.payload.decode("utf-8", "replace"))


def _tail(frame: Frame, language: Language) -> Iterator[_Markup]:
    yield _tag("h2", _frame("claims", language))
    claims = [_claim(str(each), language) for each in frame.verdict["claims_not_made"]]
    said_of = ["anchors_said"] * bool(frame.verdict["anchors"])
    yield _tag("ul", *claims, *(_tag("li", _frame(code, language)) for code in (*said_of, "not_all")))


def _claim(text: str, language: Language) -> _Markup:
    known = claim(text, language)
    return _tag("li", text, lang="en") if known is None else _tag("li", known)


def _lines(lines: Sequence[Entry], languages: Sequence[Language]) -> Iterator[_Part]:
    yield _tag("h2", " / ".join(_frame("lines", each) for each in languages))
    proof = " / ".join(_frame("proof", each) for each in languages)
    for each in lines:
        link = _tag("a", proof, href=proof_name((each.log, each.seq)))
        place = f"log {each.log}, seq {each.seq}, {each.kind} ("
        yield _tag("h4", place, link, ")", id=f"l{each.log}-{each.seq}")
        yield _tag("p", f"SHA-256 {leaf_of(each)}", class_="refs")
        yield _tag("pre", each.line.decode("utf-8", "replace"))
        yield "\n"


def _frame(code: str, language: Language) -> str:
    return said("frame", code, language)


def _tag(name: str, *inside: _Part, **attributes: str) -> _Markup:
    """Return an element around markup and texts; `class_` is the attribute `class`."""
    given = "".join(f' {key.rstrip("_")}="{inert(value)}"' for key, value in attributes.items())
    parts = (each.html if isinstance(each, _Markup) else inert(str(each)) for each in inside)
    return _Markup(f"<{name}{given}>{''.join(parts)}</{name}>")


def inert(text: str) -> str:
    """Return foreign text for a page: escaped, and what is not seen as its number."""
    return escape("".join(each if is_seen(each) or each in " \n" else number_of(each) for each in text))
