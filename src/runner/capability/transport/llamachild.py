# SPDX-License-Identifier: Apache-2.0
"""The program of a child process that runs llama.cpp by way of `llama-cpp-python`.

Owns loading weights and making tokens: `python -I llamachild.py WEIGHTS CONTEXT THREADS BATCH`. A request is
one line of standard input, the JSON that llama-server would get; its reply is lines of standard output, each
one event of llama-server's stream, and then `null`. A line `null` in the middle of a reply stops it. Twice a
second an event comes that says nothing, so that whoever reads can stop reading.

Leaves everything else to `child`, in the process that started it. Imports nothing of the runner, opens no
socket, and says nothing on standard error (I12). It ends when its input does, and so with its parent.
"""

import codecs
import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any, Final, TextIO

_PULSE_S: Final = 0.5
_NOTHING: Final[dict[str, Any]] = {"choices": []}


class Voice:
    """Standard output, one JSON text a line, from two threads."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._lock = threading.Lock()

    def say(self, item: object) -> None:
        """Write `item`."""
        with self._lock:
            self._out.write(f"{json.dumps(item)}\n")
            self._out.flush()


class Ears:
    """Standard input: the requests, and whether the one at work was called off."""

    def __init__(self, lines: TextIO) -> None:
        self.requests: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.stopped = threading.Event()
        threading.Thread(target=self._listen, args=(lines,), daemon=True).start()

    def _listen(self, lines: TextIO) -> None:
        for line in lines:
            if line.strip() == "null":
                self.stopped.set()
            else:
                self.requests.put(line)
        os._exit(0)  # the parent is gone, perhaps in the middle of a reply


class Model:
    """The weights and their chat template."""

    def __init__(self, weights: str, context: int, threads: int, batch: int) -> None:
        import llama_cpp  # noqa: PLC0415 - nothing may be printed while it loads
        from llama_cpp import llama_chat_format  # noqa: PLC0415 - as above

        self._api = llama_cpp
        self._context = context
        self._llama = llama_cpp.Llama(
            weights,
            n_ctx=context,
            n_threads=threads,
            n_threads_batch=threads,
            n_batch=batch,
            n_ubatch=batch,
            verbose=False,
        )
        self._template = llama_chat_format.Jinja2ChatFormatter(
            template=self._llama.metadata["tokenizer.chat_template"],
            bos_token=self._special(self._llama.token_bos()),
            eos_token=self._special(self._llama.token_eos()),
        )

    def _special(self, token: int) -> str:
        return "" if token < 0 else str(self._llama._model.token_get_text(token))  # noqa: SLF001 - no other name

    def _ends(self, token: int) -> bool:
        return bool(self._api.llama_vocab_is_eog(self._llama._model.vocab, token))  # noqa: SLF001 - as above

    def events(self, asked: dict[str, Any], stopped: threading.Event) -> Iterator[dict[str, Any]]:
        """Yield the events of a reply to `asked`, an error alone when the prompt does not fit."""
        prompt = self._template(messages=asked["messages"]).prompt
        tokens = self._llama.tokenize(prompt.encode(), add_bos=False, special=True)
        if len(tokens) >= self._context:
            yield {"error": {"code": 400}}
            return
        budget = min(asked["max_tokens"], self._context - len(tokens))
        made, text, finish = 0, codecs.getincrementaldecoder("utf-8")("replace"), "length"
        for token in self._tokens(tokens, asked):
            if stopped.is_set():
                return
            if self._ends(token):
                finish = "stop"
                break
            made += 1
            yield _delta({"content": text.decode(self._llama.detokenize([token], special=False))}, None)
            if made >= budget:
                break
        yield _delta({"content": text.decode(b"", final=True)}, finish)
        yield {"choices": [], "usage": {"prompt_tokens": len(tokens), "completion_tokens": made}}

    def _tokens(self, tokens: list[int], asked: dict[str, Any]) -> Iterator[int]:
        """Yield tokens as the model draws them, under the grammar of `asked` if it has one."""
        self._llama.set_seed(asked["seed"])
        gbnf = asked.get("grammar")
        made: Iterator[int] = self._llama.generate(
            tokens,
            temp=asked["temperature"],
            repeat_penalty=1.0,
            frequency_penalty=asked.get("frequency_penalty", 0.0),
            grammar=None if gbnf is None else self._api.LlamaGrammar.from_string(gbnf, verbose=False),
        )
        return made


def _delta(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _answer(model: Model, line: str, ears: Ears, voice: Voice) -> None:
    """Say every event of the reply to `line`, and its end."""
    ears.stopped.clear()
    over = threading.Event()

    def pulse() -> None:
        while not over.wait(_PULSE_S):
            voice.say(_NOTHING)

    beating = threading.Thread(target=pulse, daemon=True)
    beating.start()
    try:
        for event in model.events(json.loads(line), ears.stopped):
            voice.say(event)
    except Exception:  # noqa: BLE001 - the engine's texts quote prompts (I12)
        voice.say({"error": {"code": 500}})
    over.set()
    beating.join()
    voice.say(None)


def main(weights: str, context: str, threads: str, batch: str) -> None:
    """Load `weights`, say `{}` when they are, and answer until the input ends."""
    voice = Voice(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)  # what llama.cpp prints must not stand between two events
    model = Model(weights, int(context), int(threads), int(batch))
    ears = Ears(sys.stdin)
    voice.say({})
    while True:
        _answer(model, ears.requests.get(), ears, voice)


if __name__ == "__main__":
    main(*sys.argv[1:])
