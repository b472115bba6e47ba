# SPDX-License-Identifier: Apache-2.0
"""An engine in a child process, around scripted children: its replies, its deaths, its end. I7, I12, P1.

The real engine is in `tests/integration/test_llama_cpp.py`, in an environment of its own.
"""

import json
import sys
from pathlib import Path

import pytest

from runner.capability.transport.child import ChildEngine, start_llama
from runner.kernel.errors import BackendError, ModelError

CANARY = "RSSMRA80A01F205X"
READY = "import sys, os\nprint('{}', flush=True)\nfor line in sys.stdin:\n"
ECHO = READY + "    print(line.strip(), 'null', sep=chr(10), flush=True)\n"
DIES = READY + "    print('{\"choices\":', flush=True, end='')\n    os.abort()\n"
DIES_ONCE = f"""{READY}    os.path.exists(MARK) or (open(MARK, 'w'), os.abort())
    print('{{}}', 'null', sep=chr(10), flush=True)
"""
ENDLESS = READY + "    if line == 'null\\n': continue\n    while True: print('{}', flush=True)\n"


def child(program: str) -> ChildEngine:
    return ChildEngine([sys.executable, "-I", "-c", program])


def answers(engine: ChildEngine, text: str) -> list[str]:
    taken: list[str] = []

    def take(item: str) -> bool:
        taken.append(item)
        return False

    engine.handle_chat_completions(text, take)
    return taken


def test_p1_the_child_gets_what_was_judged_as_one_line() -> None:
    engine = child(ECHO)
    body = '{"messages":\r\n[],\n"grammar":"root ::= \\"a\\""}'
    [line] = answers(engine, body)
    assert json.loads(line) == json.loads(body)
    assert answers(engine, "{}") == ["{}"]
    engine.close()


def test_i7_a_child_that_dies_is_an_error_and_the_next_request_has_another(tmp_path: Path) -> None:
    engine = child(DIES_ONCE.replace("MARK", repr(str(tmp_path / "died"))))
    with pytest.raises(BackendError, match="died in the middle of a reply") as caught:
        answers(engine, f'{{"messages":"{CANARY}"}}')
    assert CANARY not in str(caught.value)
    assert answers(engine, "{}") == ["{}"]
    engine.close()


def test_i7_half_a_line_is_no_event() -> None:
    with pytest.raises(BackendError, match="died"):
        child(DIES).handle_chat_completions("{}", pytest.fail)


@pytest.mark.parametrize("grammar", ['"root ::= ((("', '"other ::= \\"a\\""', "5", "{}", '""'])
def test_i7_a_grammar_our_reader_cannot_read_never_reaches_the_child(grammar: str) -> None:
    """llama.cpp crashes on some of these."""
    engine = child(DIES)
    with pytest.raises(ValueError, match="cannot be read"):
        answers(engine, f'{{"grammar":{grammar}}}')
    engine.close()


def test_a_child_that_goes_on_after_it_was_stopped_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.capability.transport.child.PATIENCE_S", 0.05)
    engine = child(ENDLESS)
    for _ in range(2):
        engine.handle_chat_completions("{}", lambda _: True)
    engine.close()


@pytest.mark.parametrize("program", ["", "print('not ready', flush=True)\ninput()", "raise SystemExit(1)"])
def test_a_child_that_does_not_get_ready_is_a_model_error(program: str) -> None:
    with pytest.raises(ModelError, match="cannot use the weights"):
        child(program)


def test_the_real_program_without_its_engine_or_weights_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot use the weights"):
        start_llama(tmp_path / "no.gguf", context=512, threads=1, batch=64)
