# SPDX-License-Identifier: Apache-2.0
"""P1, I6, I8, I12: what redaction promises, judged from outside by code that shares nothing with it.

Nothing of a value in any view of the bytes; every token that was sent comes back, however a reply is cut; two
matters never cross; and after the task its map is nowhere.
"""

import base64
import codecs
import gc
import json
import random
import re
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from runner import open_profile
from runner.capability.backends.openai import OpenAIBackend
from runner.kernel.inference import Address, InferenceRequest
from runner.kernel.labels import DataClass, Label
from runner.kernel.messages import Block, BlockKind, Json, JsonObject, Message, Role
from runner.perimeter.classify import Classifier
from runner.perimeter.client import SealedClient
from runner.perimeter.redact import Redactor, StreamRestorer
from runner.perimeter.rewrite import redact_request
from runner.testing import FakeHit, FixedEntropy, ScriptedServer

TOKEN: Final = re.compile(r"\[[A-Z][A-Z0-9_]*_[bcdfghjkmnpqrstvwxz]{6}\]")
CODEC: Final = OpenAIBackend(name="remote", model="m", address=Address(scheme="http", host="x", port=1))
SHIPPED: Final = Classifier()
CODES: Final = ("RSSMRA80A01H501U", "VRDGPP75T41F205R", "BNCLCU85M10D612S", "FRRNNA66C50L219L")
REQUESTS: Final = 2000


def redactor(seed: bytes = b"") -> Redactor:
    entropy = FixedEntropy(seed)
    return Redactor(lambda: entropy.token(16).hex())


# --- e: nothing is left ----------------------------------------------------------------------------------


def digits(chance: random.Random, count: int) -> str:
    return "".join(str(chance.randrange(10)) for _ in range(count))


def iban(chance: random.Random) -> str:
    """A German IBAN with its check digits (ISO 13616: the country's letters are 13 and 14)."""
    account = digits(chance, 18)
    return f"DE{98 - int(account + '131400') % 97:02}{account}"


def card(chance: random.Random) -> str:
    """A card number with its check digit (ISO/IEC 7812, Luhn)."""
    number = "4" + digits(chance, 14)
    doubled = [int(each) * (2 - at % 2) for at, each in enumerate(number)]
    return number + str(-sum(each // 10 + each % 10 for each in doubled) % 10)


def secret(chance: random.Random) -> tuple[str, str]:
    """A sentence, and the value in it that may not leave."""
    word = "".join(chance.choice("abcdefghilmnoprstuvz") for _ in range(7))
    mail, number = f"{word}@{word[:4]}-studio.it", digits(chance, 7)
    forms = (
        ("Write to {}.", mail),
        ("His fiscal code is {}.", chance.choice(CODES)),
        ("Pay to IBAN {} today.", iban(chance)),
        ("The card number is {}.", card(chance)),
        ("Call her at +39 333 {}.", number),
        ("Il sig. {} deve pagare.", f"Mario {word.title()}"),
    )
    form, value = chance.choice(forms)
    return form.format(value), value


def views(data: bytes) -> Iterator[str]:
    """Ways to read the bytes: as they are, as JSON spells them, run together, and what is encoded in them."""
    text = data.decode("utf-8")
    yield text
    yield json.dumps(json.loads(text), ensure_ascii=True)
    yield re.sub(r"[\s.\-]", "", text)
    for run in re.findall(r"[A-Za-z0-9+/=]{16,}", text):
        padded = run + "=" * (-len(run) % 4)
        try:
            yield base64.b64decode(padded).decode("latin-1")
        except ValueError:
            continue


def shows(data: bytes, value: str) -> bool:
    """Say whether `value` stands in `data` in any view, in any case."""
    wanted = {value.lower(), re.sub(r"[\s.\-]", "", value).lower()}
    return any(each in view.lower() for view in views(data) for each in wanted)


def request_of(chance: random.Random, sentences: list[str]) -> InferenceRequest:
    """A request with the sentences in its turns, in a turn that remembers them as JSON, and in its schema."""
    remembered = json.dumps({"memory": [{"said": each} for each in sentences]}, ensure_ascii=False)
    glued = "".join(chance.choice(["", "x", "-", "\n"]) + each for each in sentences)
    texts = [*sentences, remembered, glued, chance.choice(sentences).upper()]
    chance.shuffle(texts)
    schema: JsonObject = {
        "type": "object",
        "description": sentences[0],
        "properties": {
            "a": {"enum": [*sentences, "none"]},
            "b": {"type": "string", "default": sentences[-1]},
        },
    }
    messages = tuple(Message(role=Role.USER, blocks=(unlabelled(text),)) for text in texts)
    return InferenceRequest(messages=messages, schema=schema)


def unlabelled(text: str) -> Block:
    return Block(id="b0", kind=BlockKind.GOAL, text=text, label=Label())


def test_p1_two_thousand_requests_leave_no_value_in_any_view_of_their_bytes() -> None:
    """What cannot be taken out is not sent: `release` would find it and deny. So here all of it is."""
    chance, values = random.Random(20260101), 0  # noqa: S311 - the same cases in every run
    for number in range(REQUESTS):
        pairs = [secret(chance) for _ in range(chance.randrange(1, 4))]
        request = request_of(chance, [sentence for sentence, _ in pairs])
        made = redactor(str(number).encode())
        found = redact_request(request, made, SHIPPED, above=DataClass.C1)
        body = CODEC.encode(found.request).body
        for _, value in pairs:
            assert not shows(body, value), (number, value)
            values += 1
        made.mark_sent(found.entries)
        for before, after in zip(request.messages, found.request.messages, strict=True):
            assert made.restore(after.blocks[0].text) == before.blocks[0].text, "b: and all of it comes back"
    assert values > REQUESTS


# --- b: everything comes back, however it is cut -----------------------------------------------------------


def sent(made: Redactor, *values: str) -> str:
    """A reply that repeats the tokens of `values`, and things that are none."""
    tokens = []
    for value in values:
        text, removals = made.take_out(
            value, [FakeHit(start=0, end=len(value), data_class=DataClass.C2)], above=DataClass.C1
        )
        made.mark_sent(removal.entry for removal in removals)
        tokens.append(text)
    return (
        "[ [A Il codice è " + tokens[0] + "," + "".join(tokens) + " [FAKE_x] [" + tokens[-1] + "] [FAKE_bcd"
    )


def test_b_a_stream_cut_in_two_or_three_anywhere_shows_the_same() -> None:
    """At every byte: what arrives is bytes, and a letter may be cut as well as a token."""
    made = redactor()
    said = sent(made, "Mario Rossi", "è «ß»", "1")
    whole, data = made.restore(said), said.encode()
    chance = random.Random(7)  # noqa: S311 - as above
    cuts = [[at] for at in range(len(data) + 1)]
    cuts += [sorted(chance.sample(range(len(data)), 2)) for _ in range(500)]
    for cut in cuts:
        decoder, restorer = codecs.getincrementaldecoder("utf-8")(), StreamRestorer(made)
        ends = [0, *cut, len(data)]
        pieces = [data[start:end] for start, end in pairwise(ends)]
        shown = "".join(restorer.feed(decoder.decode(piece)) for piece in pieces) + restorer.finish()
        assert shown == whole, cut


def test_b_parsed_arguments_come_back_whole_and_altered_tokens_do_not() -> None:
    made = redactor()
    made.take_out("x", [], above=DataClass.C1)
    said = sent(made, "Mario Rossi", "Anna Verdi")
    one, other = list(dict.fromkeys(TOKEN.findall(said)))[:2]
    value: Json = {"a": [one, {"b": f"{other}{one}"}], "n": 1, "t": None}
    assert made.restore(value) == {"a": ["Mario Rossi", {"b": "Anna VerdiMario Rossi"}], "n": 1, "t": None}
    altered = [
        one.lower(),
        one[:-2] + "q]",
        one.replace("_", "-"),
        one[1:],
        one[:-1],
        f"[ {one[1:]}",
        one[:4] + " " + one[4:],
    ]
    assert [made.restore(each) for each in altered] == altered


# --- d: two matters, many threads ---------------------------------------------------------------------------


def test_d_sixty_four_threads_and_two_matters_never_cross() -> None:
    matters = {"rossi": (redactor(b"r"), "Mario Rossi"), "verdi": (redactor(b"v"), "Anna Verdi")}
    start, wrong = threading.Barrier(64), []

    def work(number: int) -> None:
        name = ("rossi", "verdi")[number % 2]
        made, value = matters[name]
        other, strange = matters["verdi" if name == "rossi" else "rossi"]
        start.wait()
        for turn in range(40):
            text = f"{value} met {value}{number} on day {turn}"
            hits = [FakeHit(start=0, end=len(value), data_class=DataClass.C2)]
            wire, removals = made.take_out(text, hits, above=DataClass.C1)
            made.mark_sent(removal.entry for removal in removals)
            tokens = TOKEN.findall(wire)
            fine = value not in wire and strange not in wire and made.restore(wire) == text
            if not fine or other.restore(wire) != wire or any(other.standing_in(each) for each in tokens):
                wrong.append((name, turn))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert all("entries=1 " in repr(made) for made, _ in matters.values()), "one value, one token"


# --- c, g: whole runs ---------------------------------------------------------------------------------------

VALUE: Final = "VRDGPP75T41F205R"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path


def profile(server: ScriptedServer) -> dict[str, Any]:
    return {
        "policy": {"grants": []},
        "perimeter": {"max_egress_class": "C1", "redaction": "on"},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": server.url, "model": "m", "tier": "constrained"},
        },
    }


def echo(body: JsonObject) -> str:
    """Repeat the first token."""
    found = TOKEN.search(json.dumps(body["messages"], ensure_ascii=False))
    assert found is not None
    return f"It is {found[0]}."


async def ask(client: SealedClient, goal: str) -> str:
    with client.task(goal) as task:
        message = Message(role=Role.USER, blocks=(task.goal,))
        reply = await client.infer(InferenceRequest(messages=(message,)), task=task)
        assert VALUE in reply.block.text
        return repr(task)


def test_g_after_its_task_a_map_is_in_no_object_and_on_no_disk(home: Path) -> None:
    """Found are our own objects only: the runtime's, and whatever they hold; not this test's names."""
    goal = f"Whose is the fiscal code {VALUE}?"
    with ScriptedServer(replies=[echo]) as server, open_profile("attached", **profile(server)) as runtime:
        shown = anyio.run(ask, runtime.client, goal)
        (wire,) = server.bodies
        token = TOKEN.findall(wire.decode())[0]
        gc.collect()
        held = [each for each in reachable(runtime) if isinstance(each, str | bytes)]
        assert [each for each in held if VALUE in text_of(each) or token in text_of(each)] == []
        maps = [each for each in gc.get_objects() if isinstance(each, Redactor)]
        assert all(each.reveal(token) == token for each in maps)
        assert VALUE not in shown
    on_disk = b"".join(path.read_bytes() for path in (home / "home").rglob("*") if path.is_file())
    assert on_disk
    assert VALUE.encode() not in on_disk
    assert token.encode() not in on_disk


def text_of(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def reachable(root: object) -> Iterator[object]:
    """Yield every object that `root` holds, through any number of others; not modules, classes or frames."""
    seen, stack = {id(root)}, [root]
    while stack:
        each = stack.pop()
        yield each
        for held in gc.get_referents(each):
            strange = isinstance(held, type | type(gc)) or type(held).__name__ in {"frame", "function"}
            if id(held) not in seen and not strange:
                seen.add(id(held))
                stack.append(held)


def test_the_redactor_by_itself_takes_out_and_puts_back() -> None:
    made = redactor()
    text = f"The code of the tenant is {VALUE}, write to mario.rossi@example.it."
    safe = made.redact(text)
    assert VALUE not in safe
    assert "mario" not in safe
    assert made.restore(safe) == text
    assert made.redact(f"Again {VALUE}") == "Again " + TOKEN.findall(safe)[0], (
        "the same value, the same token"
    )
    assert redactor(b"other").restore(safe) == safe
