# SPDX-License-Identifier: Apache-2.0
"""Answers {"gbnf", "texts"} lines with llama.cpp's own verdicts: a list of booleans, or null for the grammar.

A text whose bytes the vocabulary cannot spell has the verdict null: no model of it could write that text.

Run by `engine.py`: python _engine_driver.py ENGINE_FOLDER MODELS_FOLDER. A model is opened for its vocabulary
only. The declarations are untyped, and so is what stands here.
"""

import contextlib
import ctypes
import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any


def load(engine: Path) -> Any:  # noqa: ANN401 - an untyped module
    """Return the ctypes declarations over the prebuilt library, without the package's own `__init__`."""
    (source,) = engine.glob("llama_cpp_python-*/llama_cpp")
    package = types.ModuleType("llama_cpp")
    package.__path__ = [str(source)]
    sys.modules["llama_cpp"] = package
    get = ctypes.CDLL.__getattr__

    def tolerant(self: ctypes.CDLL, name: str) -> Any:  # noqa: ANN401 - a foreign function
        """Stand in for a function that this build of the library does not have."""
        with contextlib.suppress(AttributeError):
            return get(self, name)
        return types.SimpleNamespace()

    ctypes.CDLL.__getattr__ = tolerant  # type: ignore[method-assign] # declarations may be newer than the library
    return importlib.import_module("llama_cpp.llama_cpp")


class Vocabulary:
    """A model opened for its vocabulary, and the grammars over it."""

    def __init__(self, lib: Any, weights: Path) -> None:  # noqa: ANN401 - as above
        self._lib = lib
        lib.llama_backend_init()
        parameters = lib.llama_model_default_params()
        parameters.vocab_only = True
        model = lib.llama_model_load_from_file(str(weights).encode(), parameters)
        self._vocab = lib.llama_model_get_vocab(model)
        self._end = lib.llama_vocab_eos(self._vocab)

    def judge(self, gbnf: str, texts: list[str]) -> list[bool | None] | None:
        """Return whether each text is in the grammar, or None; None if the grammar does not parse."""
        first = self._lib.llama_sampler_init_grammar(self._vocab, gbnf.encode(), b"root")
        if not first:
            return None
        answers: list[bool | None] = []
        for text in texts:
            tokens = self._tokens(text)
            sampler = self._lib.llama_sampler_clone(first)
            spelled = b"".join(map(self._bytes, tokens)) == text.encode()
            answers.append(self._accepts(sampler, [*tokens, self._end]) if spelled else None)
            self._lib.llama_sampler_free(sampler)
        self._lib.llama_sampler_free(first)
        return answers

    def _accepts(self, sampler: Any, tokens: list[int]) -> bool:  # noqa: ANN401 - as above
        for token in tokens:
            data = (self._lib.llama_token_data * 1)(self._lib.llama_token_data(token, 1.0, 0.0))
            one = self._lib.llama_token_data_array(data=data, size=1, selected=-1, sorted=False)
            self._lib.llama_sampler_apply(sampler, ctypes.byref(one))
            if data[0].logit == float("-inf"):
                return False
            if token != self._end:
                self._lib.llama_sampler_accept(sampler, token)
        return True

    def _tokens(self, text: str) -> list[int]:
        data = text.encode("utf-8", "surrogatepass")
        room = (self._lib.llama_token * (len(data) + 8))()
        count = self._lib.llama_tokenize(self._vocab, data, len(data), room, len(room), False, False)
        return list(room[:count])

    def _bytes(self, token: int) -> bytes:
        room = ctypes.create_string_buffer(256)
        length = self._lib.llama_token_to_piece(self._vocab, token, room, len(room), 0, True)
        return room.raw[: max(0, length)]


def main() -> None:
    """Answer every line of standard input."""
    engine, models = Path(sys.argv[1]), Path(sys.argv[2])
    vocabulary = Vocabulary(load(engine), next(models.glob("SmolLM2-*.gguf")))
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(vocabulary.judge(asked["gbnf"], asked["texts"])), flush=True)


if __name__ == "__main__":
    main()
