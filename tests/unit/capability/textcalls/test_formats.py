# SPDX-License-Identifier: Apache-2.0
"""P2: what a model asked for is read as it was written, in every format, or not at all.

The writers of calls, one per chat template, are the other side of the parser: written from templates alone.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pytest

from runner.capability.textcalls import CallStream, ParsedCalls, parse_calls

Call = tuple[str, dict[str, Any]]
Tools = dict[str, dict[str, Any]]
_BAR, _GAP = "\uff5c", "\u2581"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How one family writes calls. `closed` says that the last thing it writes ends the calls."""

    name: str
    write: Callable[[Sequence[Call]], str]
    closed: bool
    parallel: bool = True
    texts_only: bool = False
    """Whether every value is written as text, so that the schema decides what it is."""
    no_tags: bool = False
    """Whether a text that holds a tag of the format is another text in it."""


def _object(call: Call, names: tuple[str, str] = ("name", "arguments")) -> str:
    return json.dumps({names[0]: call[0], names[1]: call[1]}, ensure_ascii=False)


def _objects(calls: Sequence[Call], between: str, names: tuple[str, str] = ("name", "arguments")) -> str:
    return between.join(_object(call, names) for call in calls)


def _array(calls: Sequence[Call], names: tuple[str, str] = ("name", "arguments")) -> str:
    return f"[{_objects(calls, ', ', names)}]"


def _openai(calls: Sequence[Call]) -> str:
    return json.dumps(
        {
            "tool_calls": [
                {
                    "id": f"call_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for index, (name, arguments) in enumerate(calls)
            ]
        }
    )


def _python(calls: Sequence[Call]) -> str:
    written = [
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for name, arguments in calls
    ]
    return f"[{', '.join(written)}]"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _qwen_xml(calls: Sequence[Call]) -> str:
    def one(call: Call) -> str:
        inside = "".join(
            f"<parameter={key}>\n{_text(value)}\n</parameter>\n" for key, value in call[1].items()
        )
        return f"<tool_call>\n<function={call[0]}>\n{inside}</function>\n</tool_call>"

    return "\n".join(map(one, calls))


def _glm(calls: Sequence[Call]) -> str:
    def one(call: Call) -> str:
        pairs = (
            f"<arg_key>{key}</arg_key>\n<arg_value>{_text(value)}</arg_value>\n"
            for key, value in call[1].items()
        )
        return f"<tool_call>{call[0]}\n{''.join(pairs)}</tool_call>"

    return "\n".join(map(one, calls))


def _invoke(calls: Sequence[Call], prefix: str = "", *, typed: bool = False) -> str:
    def parameter(key: str, value: Any) -> str:
        kind = f' string="{str(isinstance(value, str)).lower()}"' if typed else ""
        return f'<{prefix}parameter name="{key}"{kind}>{_text(value)}</{prefix}parameter>\n'

    def one(call: Call) -> str:
        inside = "".join(parameter(key, value) for key, value in call[1].items())
        return f'<{prefix}invoke name="{call[0]}">\n{inside}</{prefix}invoke>\n'

    return "".join(map(one, calls))


def _deepseek_v3(calls: Sequence[Call]) -> str:
    start, sep, end = (
        f"<{_BAR}tool{_GAP}{word}{_BAR}>" for word in (f"call{_GAP}begin", "sep", f"call{_GAP}end")
    )
    inside = "\n".join(
        f"{start}function{sep}{name}\n```json\n{json.dumps(arguments)}\n```{end}" for name, arguments in calls
    )
    return f"<{_BAR}tool{_GAP}calls{_GAP}begin{_BAR}>{inside}<{_BAR}tool{_GAP}calls{_GAP}end{_BAR}>"


def _deepseek_v31(calls: Sequence[Call]) -> str:
    start, sep, end = (
        f"<{_BAR}tool{_GAP}{word}{_BAR}>" for word in (f"call{_GAP}begin", "sep", f"call{_GAP}end")
    )
    inside = "".join(f"{start}{name}{sep}{json.dumps(arguments)}{end}" for name, arguments in calls)
    return f"<{_BAR}tool{_GAP}calls{_GAP}begin{_BAR}>{inside}<{_BAR}tool{_GAP}calls{_GAP}end{_BAR}>"


def _kimi(calls: Sequence[Call]) -> str:
    inside = "".join(
        f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>{json.dumps(arguments)}"
        "<|tool_call_end|>"
        for index, (name, arguments) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inside}<|tool_calls_section_end|>"


def _harmony(calls: Sequence[Call]) -> str:
    return "<|channel|>analysis<|message|>I need a tool.<|end|>" + "".join(
        f"<|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
        f"{json.dumps(arguments)}<|call|>"
        for name, arguments in calls
    )


def _harmony_role(calls: Sequence[Call]) -> str:
    return "".join(
        f"<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>"
        f"{json.dumps(arguments)}<|call|>"
        for name, arguments in calls
    )


def _gemma(value: Any, quote: str) -> str:
    match value:
        case str():
            return f"{quote}{value}{quote}"
        case dict():
            return "{" + ",".join(f"{key}:{_gemma(each, quote)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ",".join(_gemma(each, quote) for each in value) + "]"
        case _:
            return json.dumps(value)


def _gemma_calls(calls: Sequence[Call], start: str, end: str, quote: str) -> str:
    return "".join(f"{start}call:{name}{_gemma(arguments, quote)}{end}" for name, arguments in calls)


FORMATS: Final = (
    Format(name="hermes", closed=True, write=lambda calls: "\n".join(
        f"<tool_call>\n{_object(call)}\n</tool_call>" for call in calls)),
    Format(name="hermes-one-tag", closed=True, write=lambda calls:
        f"<tool_call>\n{_objects(calls, chr(10))}\n</tool_call>"),
    Format(name="qwen-coder-xml", closed=True, texts_only=True, no_tags=True, write=_qwen_xml),
    Format(name="glm", closed=True, texts_only=True, no_tags=True, write=_glm),
    Format(name="llama-json", closed=False, parallel=False, write=lambda calls:
        _objects(calls, "", ("name", "parameters"))),
    Format(name="llama-python-tag", closed=False, write=lambda calls:
        "<|python_tag|>" + _objects(calls, ";", ("name", "parameters"))),
    Format(name="llama-python-tag-end", closed=True, write=lambda calls:
        "<|python_tag|>" + _objects(calls, "; ", ("name", "parameters")) + "<|eom_id|>"),
    Format(name="llama-function-tag", closed=True, write=lambda calls: "".join(
        f"<function={name}>{json.dumps(arguments)}</function>" for name, arguments in calls)),
    Format(name="llama-pythonic", closed=False, write=_python),
    Format(name="lfm-pythonic", closed=True, write=lambda calls:
        f"<|tool_call_start|>{_python(calls)}<|tool_call_end|>"),
    Format(name="mistral-list", closed=False, write=lambda calls: "[TOOL_CALLS]" + _array(calls)),
    Format(name="mistral-list-end", closed=True, write=lambda calls: f"[TOOL_CALLS] {_array(calls)}</s>"),
    Format(name="mistral-args", closed=False, write=lambda calls: "".join(
        f"[TOOL_CALLS]{name}[ARGS]{json.dumps(arguments)}" for name, arguments in calls)),
    Format(name="mistral-call-id", closed=False, write=lambda calls: "".join(
        f"[TOOL_CALLS]{name}[CALL_ID]a1b2c3d4e[ARGS]{json.dumps(arguments)}" for name, arguments in calls)),
    Format(name="granite", closed=False, write=lambda calls: "<|tool_call|>" + _array(calls)),
    Format(name="granite-tag", closed=True, write=lambda calls: f"<tool_call>{_array(calls)}</tool_call>"),
    Format(name="phi", closed=True, write=lambda calls: f"<|tool_call|>{_array(calls)}<|/tool_call|>"),
    Format(name="nemotron", closed=True, write=lambda calls: f"<TOOLCALL>{_array(calls)}</TOOLCALL>"),
    Format(name="jamba", closed=True, write=lambda calls: f"<tool_calls>{_array(calls)}</tool_calls>"),
    Format(name="command", closed=True, write=lambda calls:
        f"<|START_ACTION|>{_array(calls, ('tool_name', 'parameters'))}<|END_ACTION|>"),
    Format(name="internlm", closed=True, parallel=False, write=lambda calls:
        f"<|action_start|><|plugin|>{_objects(calls, '', ('name', 'parameters'))}<|action_end|>"),
    Format(name="deepseek-v3", closed=True, write=_deepseek_v3),
    Format(name="deepseek-v3.1", closed=True, write=_deepseek_v31),
    Format(name="deepseek-v3.2", closed=True, texts_only=True, no_tags=True, write=lambda calls:
        f"<{_BAR}DSML{_BAR}function_calls>\n" + _invoke(calls, f"{_BAR}DSML{_BAR}", typed=True)
        + f"</{_BAR}DSML{_BAR}function_calls>"),
    Format(name="minimax", closed=True, texts_only=True, no_tags=True, write=lambda calls:
        f"<minimax:tool_call>\n{_invoke(calls)}</minimax:tool_call>"),
    Format(name="kimi", closed=True, write=_kimi),
    Format(name="gpt-oss", closed=True, write=_harmony),
    Format(name="gpt-oss-role", closed=True, write=_harmony_role),
    Format(name="function-gemma", closed=True, write=lambda calls:
        _gemma_calls(calls, "<start_function_call>", "<end_function_call>", "<escape>")),
    Format(name="gemma", closed=True, write=lambda calls:
        _gemma_calls(calls, "<|tool_call>", "<tool_call|>", '<|"|>')),
    Format(name="gemma-tool-code", closed=True, write=lambda calls: f"```tool_code\n{_python(calls)}\n```"),
    Format(name="fenced", closed=True, write=lambda calls: f"The call:\n```json\n{_array(calls)}\n```"),
    Format(name="openai", closed=False, write=_openai),
    Format(name="react", closed=False, parallel=False, write=lambda calls:
        f"Thought: I need a tool.\nAction: {calls[0][0]}\nAction Input: {json.dumps(calls[0][1])}"),
    Format(name="react-observed", closed=True, parallel=False, write=lambda calls:
        f"Action: {calls[0][0]}\nAction Input: {json.dumps(calls[0][1])}\nObservation: made up"),
)  # fmt: skip
"""Every format that is written here."""

ASKED: Final[dict[str, list[Call]]] = {
    "plain": [("find", {"query": "Rossi"})],
    "typed": [("find", {"query": "12", "limit": 7, "exact": True})],
    "accents": [("find", {"query": "perch\u00e9 l'avv. Niccol\u00f2 \u2014 \u20ac 1.200,00"})],
    "nested": [("save", {"path": "a/b.txt", "tags": ["x", "y z"], "meta": {"year": 2026}, "rate": -0.5})],
    "quotes": [("save", {"path": 'He said "yes", then: it\'s {done} [1], a=b'})],
    "lines": [("save", {"path": "one\ntwo\n\tthree"})],
    "tags": [("save", {"path": "</tool_call> ``` </function> [TOOL_CALLS] <|call|> <think> {"})],
    "nothing": [("now", {})],
    "two": [("find", {"query": "a"}), ("save", {"path": "b", "rate": 2})],
    "three": [("now", {}), ("find", {"query": "a", "limit": 0}), ("find", {"query": "a", "limit": 1})],
}
"""What is asked for, by name."""


SHAPES = [
    pytest.param(form, calls, id=f"{form.name}-{name}")
    for form in FORMATS
    for name, calls in ASKED.items()
    if (form.parallel or len(calls) == 1) and not (form.no_tags and name == "tags")
]


def _read(parsed: ParsedCalls) -> list[Call]:
    return [(call.name or "", call.arguments) for call in parsed.calls]


def test_there_are_enough_shapes() -> None:
    assert len(SHAPES) >= 200


@pytest.mark.parametrize(("form", "calls"), SHAPES)
def test_every_format_is_read_as_it_was_written(form: Format, calls: list[Call], tools: Tools) -> None:
    parsed = parse_calls(form.write(calls), tools)
    assert (parsed.status, parsed.reason) == ("ok", None)
    assert _read(parsed) == calls
    assert [type(value) for _, arguments in _read(parsed) for value in arguments.values()] == [
        type(value) for _, arguments in calls for value in arguments.values()
    ]


@pytest.mark.parametrize(("form", "calls"), SHAPES)
def test_a_reply_that_was_cut_off_gives_whole_calls_or_none(
    form: Format, calls: list[Call], tools: Tools
) -> None:
    """P2: whatever is left of a reply, no call comes out that was not in it, nor one with less in it."""
    text = form.write(calls)
    whole = [calls[:count] for count in range(len(calls) + 1)]
    for end in range(len(text)):
        assert _read(parse_calls(text[:end], tools)) in whole, end
        cut = parse_calls(text[:end], tools, finished=False)
        assert _read(cut) in whole, end
        assert form.closed or not cut.calls or len(calls) > 1, end
    assert _read(parse_calls(text, tools, finished=False)) == (calls if form.closed else [])


@pytest.mark.parametrize(("form", "calls"), SHAPES)
def test_where_the_stream_was_cut_changes_nothing(form: Format, calls: list[Call], tools: Tools) -> None:
    text = form.write(calls)
    dice = random.Random(form.name)  # noqa: S311 - cuts, no keys
    cuts = [[0, at, len(text)] for at in range(1, len(text))]
    cuts += [
        sorted({0, len(text), *dice.choices(range(len(text)), k=dice.randint(2, 9))}) for _ in range(100)
    ]
    for cut in cuts:
        stream = CallStream(tools)
        shown = "".join(stream.feed(text[start:end]) for start, end in pairwise(cut))
        assert _read(stream.finish()) == calls
        assert text.startswith(shown)
        assert calls[0][0] not in shown
