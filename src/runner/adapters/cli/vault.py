# SPDX-License-Identifier: Apache-2.0
"""`akaion index` and `akaion search`: the vault, for a person.

Owns the words and the JSON. Leaves reading and finding to the library of the profile. No model is
asked, nothing is sent or recorded. Carries I12: standard error has counts only, and what stands in a file is
printed inert.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Final

import typer
from rich.console import Console

from runner.adapters.cli.exits import Status
from runner.adapters.cli.profiles import DEFAULT, JsonOption, MatterOption, ProfileOption, check_matter
from runner.adapters.cli.screen import errors, output, print_block, print_facts, print_json, print_line
from runner.adapters.cli.work import busy, meter
from runner.assembly.library import BY_NAME, Hit, Library, Unread, Updated, notes_on, open_library
from runner.kernel.errors import ConfigError
from runner.kernel.language import how_many

MOST: Final = 50
"""Hits that are shown at most."""
MOST_NAMED: Final = 10
"""Unread files that are named on a screen."""


def index(*, profile: ProfileOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Bring the index of the granted folders up to date: what is new, changed or gone, and nothing else.

    The folders are those that the profile grants to search_documents. A file that could not be read is tried
    again. The index lies in the home directory and holds no readable text; an index that is not whole is made
    anew.
    """
    library = _library(profile)
    with meter(errors(), "indexing") as tell:
        done = library.index(tell)
    unread = library.unread()
    if as_json:
        print_json(_index_data(done, unread))
        return
    print_facts(output(), _index_facts(done, unread))


def search(
    words: Annotated[list[str], typer.Argument(help='Words, or a "phrase in quotes".', show_default=False)],
    *,
    profile: ProfileOption = DEFAULT,
    matter: MatterOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=MOST, help="Files to show.")] = 10,
    as_json: JsonOption = False,
) -> None:
    """Find words in the granted folders: file, page, line and the exact text, best first.

    What is new or changed is indexed first. Each line is read from its file at that moment. With --matter it
    looks into the folders of that matter and those of none. No model is asked, and nothing is sent or
    recorded. Ends with 3 when nothing was found.
    """
    query = " ".join(words)
    library = _library(profile)
    check_matter(matter, library.matters)
    with busy(errors(), "searching"):
        found, done = library.search(query, limit, matter)
    notes = notes_on(found, done)
    if as_json:
        hits = [_hit_data(hit) for hit in found.hits]
        print_json(
            {
                "query": query,
                "hits": hits,
                "files": found.files,
                "unread": found.unread,
                "not_whole": found.not_whole,
                "notes": notes,
            }
        )
    else:
        for hit in found.hits:
            _print_hit(output(), hit)
        for note in notes:
            print_line(output(), f"({note})", "dim")
        if not found.hits:
            print_line(output(), f"Nothing found in {how_many(found.files, 'file')}.")
    if not found.hits:
        raise typer.Exit(Status.NOT_FOUND)


def _library(named: str) -> Library:
    """Return the library of `named`; raise `ConfigError`, of the default profile with a likely fix."""
    try:
        return open_library(named)
    except ConfigError as error:
        if named != DEFAULT:
            raise
        hint = "or name yours with --profile"
        raise ConfigError([replace(each, fix=f"{each.fix}, {hint}") for each in error.mistakes]) from None


def _print_hit(console: Console, hit: Hit) -> None:
    page = "" if hit.page is None else f", page {hit.page}"
    print_line(console, f"{hit.file}{page}, line {hit.line}", "bold")
    if hit.by_name:
        print_line(console, f"  ({BY_NAME})", "dim")
    print_block(console, hit.quote)
    if hit.also:
        print_line(console, f"  the same text: {', '.join(hit.also)}", "dim")


def _hit_data(hit: Hit) -> dict[str, object]:
    return {
        "file": hit.file,
        "page": hit.page,
        "line": hit.line,
        "quote": hit.quote,
        "lines": [{"line": each.excerpt.line, "text": each.excerpt.text} for each in hit.pieces],
        "score": round(hit.score, 3),
        "also": list(hit.also),
        "by_name": hit.by_name,
    }


def _index_data(done: Updated, unread: Sequence[Unread]) -> dict[str, object]:
    counts = {"new": done.new, "changed": done.changed, "gone": done.gone, "same": done.same}
    return counts | {
        "unread": dict(done.unread),
        "unread_files": [_unread_data(each) for each in unread if not each.partly],
        "not_whole": done.not_whole,
        "not_whole_files": [_unread_data(each) for each in unread if each.partly],
        "skipped": done.skipped,
        "cut": done.cut,
    }


def _unread_data(unread: Unread) -> dict[str, str]:
    return {"file": unread.file, "why": unread.why}


def _index_facts(done: Updated, unread: Sequence[Unread]) -> Iterator[tuple[str, str]]:
    yield "New", str(done.new)
    yield "Changed", str(done.changed)
    yield "Gone", str(done.gone)
    yield "Same", str(done.same)
    for reason, count in sorted(done.unread.items(), key=lambda each: (-each[1], each[0])):
        yield "Unread", f"{count}: {reason}"
    yield from _names([each.file for each in unread if not each.partly])
    if done.not_whole:
        yield "Not whole", f"{done.not_whole}: pages or attachments of these documents could not be read"
    yield from _names([f"{each.file} ({each.why})" for each in unread if each.partly])
    if done.skipped:
        yield "Left out", f"links and what is no regular file: {done.skipped}"
    if done.cut:
        yield "Left out", "a folder holds more files than are indexed"


def _names(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the first of `files`, and how many more there are."""
    for file in files[:MOST_NAMED]:
        yield "  file", file
    if len(files) > MOST_NAMED:
        yield "  and", f"{len(files) - MOST_NAMED} more: --json names all"
