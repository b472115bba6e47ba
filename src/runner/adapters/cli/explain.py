# SPDX-License-Identifier: Apache-2.0
"""`akaion explain`: what the rules find in a text, where, and why; and what a second opinion says of it.

Owns the words for rules and views. Judges nothing: the classifier of the profile does. Without `--second`
nothing is sent and nothing is kept; with it, the model of the profile is asked through its perimeter, on
record. Carries I12: what was found is shown on the user's own terminal, inert, and nowhere else; a pipe and
JSON get places and names of rules.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, assert_never

import anyio
import typer

from runner.adapters.cli.codes import CLASSES, class_words
from runner.adapters.cli.profiles import DEFAULT, JsonOption, ProfileOption, inspect
from runner.adapters.cli.screen import output, print_block, print_facts, print_json, print_line
from runner.assembly import classifier_of, open_profile
from runner.capability.documents.kinds import PACKED, family_of
from runner.capability.documents.words import Reason
from runner.kernel.config import Config
from runner.kernel.labels import DataClass
from runner.kernel.opinions import Opinion
from runner.perimeter.classify import RULES, Classification, Role, Span, View
from runner.perimeter.classify.model import is_clear, whole

STDIN: Final = "-"
_NO_TEXT: Final = (
    "it is not text (UTF-8 or Windows-1252). What a document says, the tool read_document reads, and akaion"
    " search finds; save it as text to explain it"
)
_SHOWN: Final = 120
"""Characters of a finding that are shown."""
_RULES: Final = {rule.name: rule for rule in RULES}
_PERSON: Final = {
    "person-introduced": "a word before it introduces a person",
    "person-followed": "what follows is said of a person",
    "person-signing": "it stands where a letter is signed",
    "person-greeted": "it is greeted",
    "person-labelled": "its field is one for a name",
    "person-of-the-lexicon": "it begins or ends with a common given name",
}
_REGISTER: Final = {
    "client-register": "this name stands in the client register",
    "client-register-initial": "an initial and a name that stands in the client register",
    "client-register-slip": "a name of the client register, but for one letter",
}


def explain(
    file: Annotated[str, typer.Argument(help="A text file; - reads standard input.", show_default=False)],
    *,
    profile: ProfileOption = DEFAULT,
    second: Annotated[
        bool, typer.Option("--second", help="Ask the profile's second opinion too. That goes on record.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Say what the rules find in a text, where, and why; with --second, what the local model says of it.

    Uses the registers of the profile. What was found is shown on a terminal only. The class of a folder's
    grant, and echoes of what was read before, are not known here: this is what the text says by itself, and
    where nothing is found it counts as C1, as what a person types does.
    """
    found = inspect(profile)
    text = _read(file)
    named = found.config.perimeter.classifier
    if second and found.config.opinion is None:
        raise typer.BadParameter(f"the profile has no second opinion ({named})", param_hint="--second")
    result = classifier_of(found.config, found.source).classify(text)
    said = _asked(profile, text) if second else None
    added = _class_of(said) if second else None
    if as_json:
        spans = [_span_data(text, span) for span in result.spans]
        data = {"file": file, "class": result.data_class.name, "version": result.version, "spans": spans}
        data |= _counted_data(found.config, _counted(result, added))
        print_json(data | ({"second": {"by": named, **_opinion_data(said)}} if second else {}))
        return
    _print_spans(text, result)
    print_facts(output(), _summary(found.config, result, added))
    if found.config.opinion is not None:
        words = _opinion_words(said) if second else "not asked; --second asks it"
        print_facts(output(), (("Second opinion", f"{named}: {words}"),))


def _asked(profile: str, text: str) -> Opinion | None:
    """Return what the profile's second opinion says of `text`; None for no opinion, which counts as C3."""
    with open_profile(profile) as runtime:
        return anyio.run(runtime.perimeter.opinion_on, text)


def _class_of(said: Opinion | None) -> DataClass:
    """Return the class that an opinion, or that none could be had, gives the text."""
    return DataClass.C3 if said is None else said.data_class


def _counted(result: Classification, added: DataClass | None) -> DataClass:
    """Return what the text counts as when a person types it: C1 at least, since nobody called it public.

    `added` is the class that the second opinion gives it, None when it was not asked.
    """
    return max(DataClass.C1, result.data_class, DataClass.C0 if added is None else added)


def _summary(config: Config, result: Classification, added: DataClass | None) -> Iterator[tuple[str, str]]:
    """Yield what the text counts as, why, and whether this profile would send it."""
    counted, found = _counted(result, added), len(result.spans)
    count = f"{found} found" if found else "nothing was found"
    if counted > max(DataClass.C1, result.data_class):
        yield "Class", f"{CLASSES[counted]}, by the second opinion; {count} by the rules"
    elif result.data_class < counted:
        yield "Class", f"{count}; typed text counts as {CLASSES[counted]}"
    else:
        yield "Class", f"{CLASSES[counted]}; {count}"
    yield "Leaves", _leaving_words(config, counted, unasked=added is None and config.opinion is not None)
    yield "Rules", result.version


def _leaving_words(config: Config, counted: DataClass, *, unasked: bool) -> str:
    """Return whether text of class `counted` would go to the remote backend of this profile."""
    remote, limit = config.inference.remote, _limit(config)
    if remote is None or limit is None:
        return "no: this profile has no remote backend"
    if counted <= limit:
        condition = ", if the second opinion adds nothing" if unasked else ""
        return (
            f"yes, to {remote.model} at {remote.endpoint}, which gets up to {class_words(limit)}{condition}"
        )
    ways = []
    if counted is DataClass.C2 and config.perimeter.redaction == "on":
        ways.append("redaction replaces what was found and nothing else is C2")
    if counted is DataClass.C2 and config.perimeter.declassification == "ask":
        ways.append("a person lets it go")
    unless = f", unless {', or '.join(ways)}" if ways else ""
    return f"no: the remote backend gets up to {class_words(limit)}{unless}"


def _limit(config: Config) -> DataClass | None:
    """Return the highest class that the remote backend may get; None where nothing may leave."""
    remote, ceiling = config.inference.remote, config.perimeter.ceiling
    if remote is None or ceiling is None or remote.max_class is None:
        return ceiling
    return min(ceiling, DataClass.parse(remote.max_class))


def _counted_data(config: Config, counted: DataClass) -> dict[str, Any]:
    limit = _limit(config)
    leaves = config.inference.remote is not None and limit is not None and counted <= limit
    return {"counts_as": counted.name, "may_leave": leaves}


def _opinion_words(said: Opinion | None) -> str:
    if said is None:
        return "none could be had, so the text counts as C3, privileged"
    return f"{said}, {CLASSES[said.data_class]}" if said.data_class else f"{said}, nothing to add"


def _opinion_data(said: Opinion | None) -> dict[str, str]:
    if said is None:
        return {"opinion": "fault", "class": "C3"}
    return {"opinion": said.value, "class": said.data_class.name}


def _read(file: str) -> str:
    """Return the text of `file` or of standard input. Raises `typer.BadParameter` for what is no text."""
    named = Path(file)
    if file != STDIN and named.exists() and not (named.is_file() or named.is_dir()):
        raise typer.BadParameter("is no regular file. Fix: pipe it in, and name -", param_hint="FILE")
    try:
        data = sys.stdin.buffer.read() if file == STDIN else named.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot be read ({error.strerror})", param_hint="FILE") from None
    family = family_of(data)
    packed = family in PACKED or isinstance(family, Reason)
    for encoding in () if packed or b"\0" in data else ("utf-8-sig", "cp1252"):
        with suppress(UnicodeDecodeError):
            return data.decode(encoding)
    raise typer.BadParameter(_NO_TEXT, param_hint="FILE")


def _print_spans(text: str, result: Classification) -> None:
    console = output()
    for span in result.spans:
        line, column = _place(text, span.start)
        print_line(console, f"{line}:{column} {span.kind}, {CLASSES[span.data_class]}", "bold")
        if console.is_terminal:
            print_block(console, text[span.start : span.end][:_SHOWN].replace("\n", " "))
        print_facts(console, (("  rule", span.rule), ("  why", why(span)), ("  seen", seen(span.view))))


def _span_data(text: str, span: Span) -> dict[str, Any]:
    line, column = _place(text, span.start)
    return {
        "start": span.start,
        "end": span.end,
        "line": line,
        "column": column,
        "kind": span.kind,
        "rule": span.rule,
        "class": span.data_class.name,
        "view": span.view.value,
        "why": why(span),
    }


def _place(text: str, offset: int) -> tuple[int, int]:
    """Return line and column of `offset`, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def why(span: Span) -> str:
    """Return why the rule of `span` counted, in our own words."""
    return _REGISTER.get(span.rule) or "; ".join(_reasons(span)) or "its shape"


def _reasons(span: Span) -> Iterator[str]:
    rule = _RULES.get(span.rule)
    if rule is None:
        return
    if rule.role is Role.TOPIC:
        yield "a sensitive subject, and a person within a page of it"
        return
    if rule.distinctive:
        yield "a shape that does not arise by chance"
    if rule.name in _PERSON:
        yield _PERSON[rule.name]
        return
    if rule.kind == "address" and rule.data_class < span.data_class:
        yield "an address, and a person within a page of it"
        return
    if rule.check is not whole:
        yield "its check accepts it"
    if rule.needs_context or (not is_clear(span.view) and not rule.distinctive):
        yield "a word that speaks of it stands near"


def seen(view: View) -> str:
    """Return how the text was read where something was found."""
    match view:
        case View.TEXT:
            return "as it is written"
        case View.JOINED:
            return "without characters that do not show"
        case View.SPACED:
            return "with each line end, tab or run of blanks read as one space"
        case View.UNESCAPED:
            return "with escapes (percent, =XX, HTML, \\u) replaced"
        case View.SQUEEZED:
            return "with what was written apart closed up"
        case View.DECODED:
            return "inside an encoding (base64, hexadecimal, packed or not)"
        case _:
            assert_never(view)
