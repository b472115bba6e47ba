# SPDX-License-Identifier: Apache-2.0
"""P1, I8: behind a veil a read tool answers as if what is veiled were all there is.

Two folders differ in one value only, in text and in a file's name: other letters, another length. Whatever is
asked, a right guess included, the answers are the same.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.kernel.errors import ToolError
from runner.kernel.messages import JsonObject
from runner.kernel.ports import GrantedCall, Root, Veil

VALUES: Final = ("Aurelio Boccanegra", "Zoe")
TOOLS: Final = {"list_dir": ListDir(), "read_file": ReadFile(), "search_text": SearchText()}
CALLS: Final[Sequence[tuple[str, JsonObject]]] = (
    ("list_dir", {"path": "files"}),
    ("read_file", {"path": "files/lease.txt"}),
    ("read_file", {"path": "files/lease.txt", "start_line": 3}),
    *(("read_file", {"path": f"files/{value}.txt"}) for value in VALUES),
    *(("search_text", {"query": f"{value} tenant"}) for value in (*VALUES, "aurelio", "zo", "[NAME] tenant")),
    *(("search_text", {"query": "tenant", "path": f"files/{value}.txt"}) for value in VALUES),
    ("search_text", {"query": "rent"}),
    ("search_text", {"query": "others"}),
)


def veil_of(value: str) -> Veil:
    return lambda texts: [text.replace(value, "[NAME]") for text in texts]


def answer(folder: Path, value: str, tool: str, arguments: JsonObject, *, veiled: bool) -> str:
    folder.mkdir(exist_ok=True)
    lines = [f"The tenant is {value}.", *["The rent is due."] * 40, f"{value} pays."]
    (folder / "lease.txt").write_text("\n".join(lines), encoding="utf-8")
    (folder / f"{value}.txt").write_text("The rent of others.", encoding="utf-8")
    (folder / "Middle.txt").write_text("The rent of others.", encoding="utf-8")
    root = Root(alias="files", path=str(folder.resolve()), redactable=True)
    call = GrantedCall(arguments=arguments, roots=(root,), veil=veil_of(value) if veiled else None)
    runner: Any = TOOLS[tool]
    try:
        output = runner.run(call)
    except ToolError as error:
        return str(error)
    return f"{output.text}\n{output.excerpts}"


@pytest.mark.parametrize(("tool", "arguments"), CALLS, ids=lambda value: str(value)[:60])
def test_p1_behind_a_veil_no_answer_depends_on_the_value(
    tool: str, arguments: JsonObject, tmp_path: Path
) -> None:
    one, other = (
        answer(tmp_path / str(number), value, tool, arguments, veiled=True)
        for number, value in enumerate(VALUES)
    )
    assert one == other
    assert not any(value in one for value in VALUES)


def test_without_a_veil_the_answers_are_the_files(tmp_path: Path) -> None:
    """What is veiled above is there: the same calls tell the two folders apart."""
    plain = [
        [answer(tmp_path / str(number), value, tool, arguments, veiled=False) for tool, arguments in CALLS]
        for number, value in enumerate(VALUES)
    ]
    assert sum(one != other for one, other in zip(*plain, strict=True)) >= len(CALLS) - 1
    assert "bytes" in plain[0][0]
