# SPDX-License-Identifier: Apache-2.0
"""The loop's own promises: budgets bound it, quotes are checked, every stop has a reason, nothing repeats."""

import json
import threading
from dataclasses import replace
from typing import Any

import anyio
import pytest

from runner.agent.loop import AgentLoop
from runner.agent.steps import Budget, FailedStep, StopReason, ToolStep
from runner.kernel.errors import BackendError, LoopError, ToolError
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import DataClass
from runner.kernel.language import not_whole
from runner.kernel.ports import Effect, Excerpt, ToolOutput
from runner.testing import FakeClassifier, FakeTool, Truncated, first_instance

LINES = (
    Excerpt(file="files/a.txt", line=3, text="The meeting is on Monday."),
    Excerpt(file="files/a.txt", line=4, text="The fee is nine crowns."),
)
QUERY: dict[str, Any] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "path": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}
NOTE: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


def obey(request: InferenceRequest) -> str:
    """Answer any request with the first value its schema allows, and a question over files with "Monday"."""
    assert request.schema is not None
    asked: Any = request.schema
    if set(asked["properties"]) == {"answer"}:
        return json.dumps({"answer": "Monday"})
    return json.dumps(first_instance(request.schema))


def searcher(output: ToolOutput | Exception | None = None, *, name: str = "search_text") -> FakeTool:
    found = ToolOutput(text="found", excerpts=LINES) if output is None else output
    return FakeTool(name=name, output=found, parameters=QUERY)


def noter() -> FakeTool:
    return FakeTool(name="note", parameters=NOTE, effect=Effect.HOST, path_arguments=frozenset())


def loop_over(world: Any, *tools: FakeTool, **options: Any) -> AgentLoop:
    return AgentLoop(client=world.client, tools=world.perimeter.seal_tools(tools), **options)


def test_an_answer_comes_with_a_quote_that_was_read(make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("When is the meeting?")
    assert result.stop is StopReason.ANSWERED
    (evidence,) = result.evidence
    assert (evidence.file, evidence.line, evidence.quote) == ("files/a.txt", 3, "The meeting is on Monday.")
    assert result.answer == "Monday"
    assert result.data_class is DataClass.C1
    assert [step.tool for step in result.steps if isinstance(step, ToolStep)] == ["search_text"]
    assert world.records("task_end")[0]["outcome"] == "done"


def test_a_question_over_files_opens_with_the_search_that_has_an_index(make_world: Any, grant: Any) -> None:
    plain, indexed = searcher(), searcher(name="search_documents")
    grants = {tool.spec.name: grant(tool) for tool in (plain, indexed)}
    result = loop_over(make_world(replies=[obey] * 9, grants=grants), plain, indexed).run("When is it?")
    assert result.stop is StopReason.ANSWERED
    assert (len(plain.calls), len(indexed.calls)) == (0, 1)


def test_the_question_itself_is_among_the_words_searched_for(make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
    loop_over(world, tool).run("When is the meeting?")
    assert "When is the meeting?" in str(tool.calls[0].arguments["query"])


def saying(answer: str) -> Any:
    def reply(request: InferenceRequest) -> str:
        honest = json.loads(obey(request))
        return json.dumps(honest | {"answer": answer} if "answer" in honest else honest)

    return reply


@pytest.mark.parametrize("answer", ["Friday", "ninety crowns", "", "...", "not found", "Not found."])
def test_an_answer_that_no_line_bears_out_is_not_given(answer: str, make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[saying(answer)] * 9, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("When is the meeting?")
    assert (result.stop, result.answer, result.evidence) == (StopReason.NOT_FOUND, "", ())


@pytest.mark.parametrize(
    ("second", "stop"),
    [
        ("Monday", StopReason.ANSWERED),
        ("The meeting", StopReason.ANSWERED),
        ("nine crowns", StopReason.NOT_FOUND),
        ("not found", StopReason.NOT_FOUND),
    ],
)
def test_an_answer_is_given_only_if_the_whole_file_says_the_same(
    second: str, stop: StopReason, make_world: Any, grant: Any
) -> None:
    reader = FakeTool(name="read_file", output=ToolOutput(text="whole", excerpts=LINES))
    tool = searcher()
    script = [{"it": "q", "en": "q"}, {"answer": "Monday"}, {"answer": second}]
    world = make_world(replies=script, grants={"search_text": grant(tool), "read_file": grant(reader)})
    result = loop_over(world, tool, reader).run("When is the meeting?")
    assert [call.arguments for call in reader.calls] == [{"path": "files/a.txt"}]
    assert result.stop is stop
    assert bool(result.evidence) is (stop is StopReason.ANSWERED)


def test_a_line_of_a_document_is_read_again_on_its_page_and_nowhere_else(make_world: Any, grant: Any) -> None:
    """The line stands on page 2; the same number on another page is another line."""
    page = [Excerpt(file="files/a.pdf", page=2, line=3, text="The meeting is on Monday.")]
    properties = {"path": {"type": "string"}, "page": {"type": "integer"}}
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    tool = searcher(ToolOutput(text="found", excerpts=tuple(page)))
    whole = FakeTool(name="read_file", output=ToolOutput(text="whole", excerpts=LINES))
    paged = FakeTool(
        name="read_document", output=ToolOutput(text="p", excerpts=tuple(page)), parameters=parameters
    )
    grants = {each.spec.name: grant(each) for each in (tool, whole, paged)}
    world = make_world(replies=[obey] * 9, grants=grants)
    result = loop_over(world, tool, whole, paged).run("When is the meeting?")
    assert [step.tool for step in result.steps if isinstance(step, ToolStep)] == [
        "search_text",
        "read_document",
    ]
    assert dict(paged.calls[0].arguments) == {"path": "files/a.pdf", "page": 2}
    (evidence,) = result.evidence
    assert (evidence.page, evidence.place, result.confirmed) == (2, "files/a.pdf (page 2):3", True)


def test_nothing_found_is_an_honest_not_found(make_world: Any, grant: Any) -> None:
    tool = searcher(ToolOutput(text="nothing found"))
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("When is the meeting?")
    assert result.stop is StopReason.NOT_FOUND
    assert result.evidence == ()


@pytest.mark.parametrize(
    "bad", ["not json", '{"it": 3}', Truncated(text="{}"), "NaN", '{"it":"x","it":"y","en":"z"}']
)
def test_an_invalid_reply_is_asked_for_once_more_and_counted(bad: Any, make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[bad, *[obey] * 9], grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("When is the meeting?")
    assert result.stop is StopReason.ANSWERED
    assert isinstance(result.steps[0], FailedStep)


def test_replies_that_stay_invalid_end_the_run(make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=["no"] * 9, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("q")
    assert (result.stop, tool.calls) == (StopReason.FAILED, [])
    assert len(world.backend.transport.sent) == 2
    assert world.records("task_end")[0]["outcome"] == "failed"


def test_a_denied_request_ends_the_run_with_the_rule(make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[obey], local=False, ceiling=DataClass.C0, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("q")
    assert result.stop is StopReason.DENIED
    assert "class-above-ceiling" in result.detail
    assert world.backend.transport.sent == []


def test_a_failing_backend_ends_the_run_without_its_text(make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[BackendError("refused")], grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("q")
    assert (result.stop, result.detail) == (StopReason.FAILED, "refused")


def test_i7_a_failing_classifier_ends_the_run(make_world: Any, grant: Any) -> None:
    class Failing(FakeClassifier):
        def classify(self, text: str, *, source: str | None = None) -> Any:
            if text == "found":
                raise RuntimeError("the payload: found")
            return super().classify(text, source=source)

    tool = searcher()
    world = make_world(replies=[obey] * 9, classifier=Failing(), grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("q")
    assert result.stop is StopReason.FAILED
    assert "payload" not in result.detail


def calls_of(result: Any) -> int:
    return sum(isinstance(step, ToolStep) for step in result.steps)


def noting(limit: int) -> Any:
    """Return a model that asks for `limit` different notes, then answers."""
    texts = iter(f"note {number}" for number in range(limit))
    state = {"done": 0}

    def reply(request: InferenceRequest) -> str:
        asked: Any = request.schema
        if "tool" in asked["properties"]:
            return json.dumps({"tool": "note" if state["done"] < limit else "answer"})
        if "text" in asked["properties"]:
            state["done"] += 1
            return json.dumps({"text": next(texts)})
        return obey(request)

    return reply


def test_a_tool_of_the_host_is_chosen_filled_and_answered_from(make_world: Any, grant: Any) -> None:
    tool = noter()
    world = make_world(replies=[noting(2)] * 9, grants={"note": grant(tool, roots=())})
    result = loop_over(world, tool).run("Keep two notes.")
    assert [call.arguments["text"] for call in tool.calls] == ["note 0", "note 1"]
    assert result.stop is StopReason.ANSWERED
    assert result.evidence == ()


@pytest.mark.parametrize(
    ("answer", "stop"), [("Monday", StopReason.ANSWERED), ("Friday", StopReason.NOT_FOUND)]
)
def test_a_mixed_run_that_read_lines_needs_one_that_bears_its_answer_out(
    answer: str, stop: StopReason, make_world: Any, grant: Any
) -> None:
    script = [{"tool": "search_text"}, {"query": "meeting"}, {"tool": "answer"}, {"answer": answer}]
    tool, other = searcher(), noter()
    grants = {"search_text": grant(tool), "note": grant(other, roots=())}
    result = loop_over(make_world(replies=script, grants=grants), tool, other).run("When is the meeting?")
    assert result.stop is stop
    assert [evidence.line for evidence in result.evidence] == ([3] if stop is StopReason.ANSWERED else [])


def test_the_budget_of_steps_bounds_the_run(make_world: Any, grant: Any) -> None:
    tool = noter()
    world = make_world(replies=[noting(99)] * 99, grants={"note": grant(tool, roots=())})
    result = loop_over(world, tool, budget=Budget(steps=3)).run("Keep notes.")
    assert (result.stop, calls_of(result), len(tool.calls)) == (StopReason.STEPS, 3, 3)
    assert world.records("task_end")[0]["outcome"] == "stopped"


def test_the_budget_of_tokens_bounds_the_run(make_world: Any, grant: Any) -> None:
    tool = noter()
    world = make_world(replies=[noting(99)] * 99, grants={"note": grant(tool, roots=())})
    result = loop_over(world, tool, budget=Budget(tokens=10, steps=99)).run("Keep notes.")
    assert result.stop is StopReason.TOKENS
    assert result.tokens >= 10
    assert calls_of(result) < 10


def test_the_budget_of_time_bounds_the_run_even_inside_a_tool(make_world: Any, grant: Any) -> None:
    release = threading.Event()
    tool = noter()
    run = tool.run
    tool.run = lambda call: (release.wait(60), run(call))[1]  # type: ignore[method-assign]
    world = make_world(replies=[noting(1)] * 9, grants={"note": grant(tool, roots=())})
    result = loop_over(world, tool, budget=Budget(seconds=0.3)).run("Keep a note.")
    release.set()
    assert result.stop is StopReason.TIME
    assert world.records("tool_result") == []


def test_the_same_call_is_not_made_twice_and_what_it_returned_is_answered_from(
    make_world: Any, grant: Any
) -> None:
    tool = noter()
    script = [*[{"tool": "note"}, {"text": "again"}] * 2, {"answer": "noted"}]
    world = make_world(replies=script, grants={"note": grant(tool, roots=())})
    result = loop_over(world, tool).run("Keep notes.")
    assert (result.stop, result.answer, len(tool.calls)) == (StopReason.ANSWERED, "noted", 1)


def test_a_call_that_comes_again_after_nothing_came_of_it_ends_the_run(make_world: Any, grant: Any) -> None:
    tool = noter()
    script = [{"tool": "note"}, {"text": "again"}] * 2
    world = make_world(replies=script, grants={"note": grant(tool, roots=(), ask=True)})
    result = loop_over(world, tool).run("Keep notes.")
    assert (result.stop, tool.calls) == (StopReason.NO_PROGRESS, [])
    assert result.detail == "1 call denied: not approved"


def test_a_run_without_progress_says_how_many_calls_were_denied_and_by_which_rule(
    make_world: Any, grant: Any
) -> None:
    """I12: rules, and nothing of the arguments."""
    parameters = {**NOTE, "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = FakeTool(name="look", parameters=parameters)
    asked = [[{"tool": "look"}, {"path": path}] for path in ("elsewhere/a", "elsewhere/b", "elsewhere/a")]
    world = make_world(replies=[each for pair in asked for each in pair], grants={"look": grant(tool)})
    result = loop_over(world, tool).run("Look there.")
    assert (result.stop, tool.calls) == (StopReason.NO_PROGRESS, [])
    assert result.detail == "2 calls denied: path-outside-grant"


def test_a_denied_call_is_told_to_the_model_and_the_run_goes_on(make_world: Any, grant: Any) -> None:
    tool = noter()
    world = make_world(replies=[noting(1)] * 9, grants={"note": grant(tool, roots=(), ask=True)})
    result = loop_over(world, tool).run("Keep a note.")
    assert [step.status for step in result.steps if isinstance(step, ToolStep)] == ["denied"]
    assert tool.calls == []
    assert result.stop is StopReason.ANSWERED


def test_run_inside_an_event_loop_names_arun(make_world: Any) -> None:
    loop = loop_over(make_world())

    async def inside() -> None:
        with pytest.raises(LoopError, match="arun"):
            loop.run("q")

    anyio.run(inside)


def test_p1_what_is_not_sealed_is_refused_by_name(make_world: Any) -> None:
    world = make_world()
    tools = world.perimeter.seal_tools([])
    unsealed: list[tuple[Any, Any]] = [(object(), tools), (world.backend, tools), (world.client, [])]
    for client, given in unsealed:
        with pytest.raises(LoopError, match="sealed objects only"):
            AgentLoop(client=client, tools=given)


def test_client_and_tools_of_two_perimeters_are_refused(make_world: Any) -> None:
    one, other = make_world(), make_world()
    with pytest.raises(LoopError, match="two perimeters"):
        AgentLoop(client=one.client, tools=other.perimeter.seal_tools([]))


def test_events_tell_what_happens_in_order(make_world: Any, grant: Any) -> None:
    tool, told = searcher(), list[str]()
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
    loop_over(world, tool, on_event=lambda event: told.append(event.kind)).run("q")
    order = [kind for kind in told if kind != "text"]
    assert order[:3] == ["thinking", "call", "result"]
    assert "text" in told


def test_i12_reprs_of_results_hold_no_content(make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("When is the meeting?")
    assert "Monday" not in repr(result)
    assert "meeting" not in repr(result)


@pytest.mark.parametrize(
    ("said", "stop", "recorded"),
    [
        (None, StopReason.ANSWERED, "C1"),
        (DataClass.C0, StopReason.ANSWERED, "C0"),
        (DataClass.C2, StopReason.DENIED, "C2"),
        (DataClass.C3, StopReason.DENIED, "C3"),
    ],
)
def test_i8_a_goal_has_the_class_its_user_says_and_goes_no_further(
    said: DataClass | None, stop: StopReason, recorded: str, make_world: Any, grant: Any
) -> None:
    tool = searcher()
    world = make_world(
        replies=[obey] * 9, grants={"search_text": grant(tool)}, local=False, ceiling=DataClass.C1
    )
    result = loop_over(world, tool).run("When is the meeting?", data_class=said)
    assert result.stop is stop
    assert (result.stop is StopReason.DENIED) is (world.backend.transport.sent == [])
    assert world.records("task_start")[0]["class"] == recorded
    assert world.records("classify")[0]["class"] == recorded


def test_i8_what_detectors_find_in_a_goal_counts_whatever_its_user_says(make_world: Any) -> None:
    world = make_world(classifier=FakeClassifier({"Rossi": DataClass.C3}), local=False, ceiling=DataClass.C1)
    result = loop_over(world).run("Write to Rossi.", data_class=DataClass.C0)
    assert (result.stop, result.data_class) == (StopReason.DENIED, DataClass.C3)


def test_i8_redaction_does_not_lower_a_goal_that_its_user_calls_privileged(make_world: Any) -> None:
    classifier = FakeClassifier({"Rossi": DataClass.C2})
    for said, sent in ((None, True), (DataClass.C2, False), (DataClass.C3, False)):
        world = make_world(
            replies=[obey] * 9, classifier=classifier, local=False, ceiling=DataClass.C1, redaction=True
        )
        loop_over(world).run("Write to Rossi.", data_class=said)
        assert bool(world.backend.transport.sent) is sent


@pytest.mark.parametrize("why", ["not granted", "denied", "error"])
def test_an_answer_that_no_second_reading_confirmed_says_so(why: str, make_world: Any, grant: Any) -> None:
    """Neither silence nor `not found`: the line bears the answer out, and it was read once."""
    tool = searcher()
    reader = FakeTool(name="read_file", output=ToolError("gone"))
    grants = {"search_text": grant(tool)}
    if why != "not granted":
        grants["read_file"] = grant(reader, ask=why == "denied")
    world = make_world(replies=[obey] * 9, grants=grants)
    result = loop_over(world, tool, reader).run("When is the meeting?")
    assert (result.stop, result.answer, result.confirmed) == (StopReason.ANSWERED, "Monday", False)
    assert result.notes == ("not confirmed: there was no second reading of the file",)


def test_an_answer_that_a_second_reading_confirmed_has_no_note(make_world: Any, grant: Any) -> None:
    tool, reader = searcher(), FakeTool(name="read_file", output=ToolOutput(text="whole", excerpts=LINES))
    grants = {"search_text": grant(tool), "read_file": grant(reader)}
    world = make_world(replies=[obey] * 9, grants=grants)
    result = loop_over(world, tool, reader).run("When is the meeting?")
    assert (result.stop, result.confirmed, result.notes) == (StopReason.ANSWERED, True, ())


def test_files_that_are_no_text_are_counted_in_the_result(make_world: Any, grant: Any) -> None:
    tool = searcher(ToolOutput(text="nothing found", unread=2))
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("When is the meeting?")
    assert (result.stop, result.unread) == (StopReason.NOT_FOUND, 2)
    assert result.notes == ("2 files could not be read as text",)


def test_documents_that_were_read_in_part_are_counted_in_the_result(make_world: Any, grant: Any) -> None:
    """What is looked for may stand on a page that nothing could read: a person must know, hits or none."""
    for found, count in ((LINES, 1), ((), 3)):
        tool = searcher(ToolOutput(text="Monday", excerpts=found, not_whole=count))
        world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
        result = loop_over(world, tool).run("When is the meeting?")
        partly = not_whole(count)
        assert (result.not_whole, result.notes[-1]) == (count, partly)
        assert partly.startswith("1 document has pages" if count == 1 else "3 documents have pages")


def test_a_document_that_was_read_in_part_is_counted_once_however_often_it_is_read(
    make_world: Any, grant: Any
) -> None:
    """Whoever reads the answer sees that it rests on documents of which a part could not be read."""
    replies: list[dict[str, Any]] = []
    for path in ("files/a.pdf", "files/b.pdf"):
        for page in (1, 2):
            replies += [{"tool": "read_document"}, {"path": path, "page": page}]
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "page": {"type": "integer"}},
    }
    output = ToolOutput(text="a page", not_whole=1)
    tool = FakeTool(name="read_document", output=output, parameters=parameters)
    replies += [{"tool": "answer"}, {"answer": "done"}]
    world = make_world(replies=replies, grants={"read_document": grant(tool)})
    result = loop_over(world, tool).run("What do they say?")
    assert (result.not_whole, result.notes) == (2, (not_whole(2),))


def test_a_denied_search_ends_the_run_and_says_so_once(make_world: Any, grant: Any) -> None:
    tool = searcher()
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool, ask=True)})
    result = loop_over(world, tool).run("When is the meeting?")
    assert (result.stop, result.detail) == (StopReason.DENIED, "not approved")


def test_a_search_that_failed_is_not_taken_for_one_that_found_nothing(make_world: Any, grant: Any) -> None:
    tool = searcher(ToolError("the index cannot be made here. Fix: check the home directory"))
    world = make_world(replies=[obey] * 9, grants={"search_text": grant(tool)})
    result = loop_over(world, tool).run("When is the meeting?")
    detail = "search_text: error: the index cannot be made here. Fix: check the home directory"
    assert (result.stop, result.detail) == (StopReason.FAILED, detail)


def test_i12_a_search_that_the_policy_denies_names_its_rule_and_no_content(
    make_world: Any, grant: Any
) -> None:
    tool = searcher()
    denied = replace(grant(tool), path_arguments=frozenset({"path"}), roots=())
    world = make_world(replies=[obey] * 9, grants={"search_text": denied})
    result = loop_over(world, tool).run("When is the meeting?")
    expected = "no-path-granted: search_text is granted on no folder"
    assert (result.stop, result.detail) == (StopReason.DENIED, expected)
