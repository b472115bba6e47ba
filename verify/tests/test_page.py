# SPDX-License-Identifier: Apache-2.0
"""The second verifier, the script of `akaion_verify.html`, under Node and in a browser.

I4: two programs that share no code say the same of a book. Skipped where there is no Node, or no browser.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import shutil
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import akaion_verify as av
import battery
import bookbuilder as bb
import pytest
import test_anchors
import test_policy
import test_rules
import test_signatures
from bookbuilder import Story

if TYPE_CHECKING:
    pass

PAGE = Path(av.__file__).with_suffix(".html")
VECTORS = Path(__file__).resolve().parents[2].parent / "shared" / "vectors" / "ed25519"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
AGREED = 400
"""Mutants that both judge here; `battery.py --page N` takes more."""


def scripts() -> list[str]:
    return re.findall(r"<script>(.*?)</script>", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_only_the_two_scripts_of_the_page_may_run_and_nothing_may_be_fetched() -> None:
    text = PAGE.read_text(encoding="utf-8")
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts()]
    wanted = " ".join(f"'sha256-{each}'" for each in hashes)
    assert policy.group(1) == (
        "default-src 'none'; style-src 'unsafe-inline'; "
        f"script-src {wanted}; base-uri 'none'; form-action 'none'"
    )
    assert len(hashes) == 2
    assert len(text.encode()) <= 200_000


def test_hashes_are_those_of_the_standard(page: battery.Page) -> None:
    data = [bytes([size % 251]) * size for size in (*range(140), 1000, 65_537)]
    wanted = [[hashlib.sha256(each).hexdigest(), hashlib.sha512(each).hexdigest()] for each in data]
    assert [page.ask({"digest": each.hex()}) for each in data] == wanted


def test_signatures_are_judged_as_the_public_vectors_say(page: battery.Page) -> None:
    if not VECTORS.is_dir():
        pytest.skip("public vectors are not beside this checkout")
    groups = json.loads((VECTORS / "wycheproof_ed25519.json").read_text(encoding="utf-8"))["testGroups"]
    answers = [
        page.ask({"signature": [group["publicKey"]["pk"], test["msg"], test["sig"]]})
        == (test["result"] == "valid")
        for group in groups
        for test in group["tests"]
    ]
    assert len(answers) == 151
    assert all(answers)


def test_weak_and_second_spellings_of_keys_and_signatures_are_refused(page: battery.Page) -> None:
    """Small order and non-canonical encodings, as key and as R, with an S that a lax verifier would take."""
    encodings = test_signatures.small_order_encodings()
    identity = test_signatures.IDENTITY
    cases = [(key, b"x", identity + bytes(32)) for key in encodings]
    honest = bb.public(bb.DEVICE)
    cases += [(honest, b"x", weak + bytes(32)) for weak in encodings]
    mine = [av.signature_ok(*case) for case in cases]
    assert [page.ask({"signature": [part.hex() for part in case]}) for case in cases] == mine
    assert not any(mine)


def files_of(folder: Path) -> list[list[str]]:
    """Return the files of a folder as the page is given them."""
    return [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in sorted(folder.iterdir())]


def both(page: battery.Page, folder: Path, pin: Path | None, **more: object) -> tuple[object, object]:
    page.ask({"books": {"it": files_of(folder)}})
    text = None if pin is None else pin.read_text(encoding="ascii")
    seers: Any = more.pop("witnesses", [])
    keys = [seer.read_text(encoding="ascii") for seer in seers]
    theirs = page.ask({"book": "it", "pin": text, "witnesses": keys, **more})
    required: Any = more.get("policies", [])
    policies = [av.Policy(each) if len(each) == 64 else av.parse_policy(each.encode()) for each in required]
    return theirs, av.verify(folder, pin, policies, None, seers)


@pytest.mark.parametrize("name", sorted(test_rules.CASES))
def test_both_give_the_same_report_on_a_book_that_breaks_a_rule(
    page: battery.Page, name: str, folder: Path, pin: Path
) -> None:
    story = Story()
    test_rules.CASES[name](story)
    bb.LogBuilder().open().play(story).write(folder)
    theirs, ours = both(page, folder, pin)
    assert theirs == ours
    assert ours["verdict"] == "FAIL"  # type: ignore[index]


@pytest.mark.parametrize("name", sorted({**test_policy.RIGHT, **test_policy.LIES}))
def test_both_replay_decisions_by_the_policy_alike(
    page: battery.Page, name: str, folder: Path, pin: Path
) -> None:
    test_policy.book(folder, {**test_policy.RIGHT, **test_policy.LIES}[name])
    theirs, ours = both(page, folder, pin, policies=[test_policy.POLICY.decode()])
    assert theirs == ours
    assert ours["verdict"] == ("FAIL" if name in test_policy.LIES else "PASS")  # type: ignore[index]


@pytest.mark.parametrize("given", [(), ("OTHER",), ("POLICY",), ("OTHER", "POLICY")], ids="+".join)
def test_both_judge_each_log_by_its_own_policy(
    page: battery.Page, given: tuple[str, ...], folder: Path, pin: Path
) -> None:
    test_policy.under_two_policies(folder, test_policy.LIES["allowed instead of asked"])
    theirs, ours = both(page, folder, pin, policies=[getattr(test_policy, name).decode() for name in given])
    assert theirs == ours
    assert sum(ours["policies"].values()) == len(given)  # type: ignore[index]


@pytest.mark.parametrize("others", [(), ("OTHER_DIGEST",), ("OTHER_DIGEST", "OTHER")], ids="+".join)
def test_both_give_one_report_in_whichever_order_and_how_often_policies_are_given(
    page: battery.Page, others: tuple[str, ...], folder: Path, pin: Path
) -> None:
    """S10: a digest that is named as well, before the policy or after it, does not stop the replay."""
    test_policy.under_two_policies(folder, test_policy.LIES["allowed instead of asked"])
    texts = [test_policy.POLICY.decode(), test_policy.DIGEST]
    texts += [each if isinstance(each, str) else each.decode() for each in map(vars(test_policy).get, others)]
    orders = [*itertools.permutations(texts), texts * 2]
    reports = [report for order in orders for report in both(page, folder, pin, policies=order)]
    assert all(report == reports[0] for report in reports)
    codes = [*["policy-differs"][len(others) :], "decision-differs"]
    assert [each["code"] for each in reports[0]["reasons"]] == codes  # type: ignore[index]
    assert reports[0]["policies"] == {  # type: ignore[index]
        test_policy.DIGEST: True,
        test_policy.OTHER_DIGEST: "OTHER" in others,
    }


@pytest.mark.parametrize("line", ["nothing", "{}", '{"grants":[{}]}', '{"grants": []}'])
def test_both_refuse_what_is_no_policy(page: battery.Page, line: str) -> None:
    page.ask({"books": {"it": []}})
    assert page.ask({"book": "it", "policies": [line]}) is None
    with pytest.raises((ValueError, av.Fault)):
        av.parse_policy(line.encode())


@pytest.mark.parametrize("name", test_anchors.LETTERS)
def test_a_long_line_of_a_sidecar_keeps_neither_busy(
    page: battery.Page, name: str, folder: Path, pin: Path, tmp_path: Path
) -> None:
    lines = test_anchors.lines_of(test_anchors.two_logs(folder))
    note = test_anchors.cosigned(test_anchors.checkpoint(lines))
    test_anchors.sidecar(folder, test_anchors.over_long(test_anchors.LETTERS[name]) + note)
    witness = tmp_path / "w1.vkey"
    witness.write_text(test_anchors.witness_vkey(bb.public(test_anchors.WITNESS)), encoding="ascii")
    ends = threading.Timer(60, page.process.kill)  # then it answers nothing
    ends.start()
    try:
        theirs, ours = both(page, folder, pin, witnesses=[witness])
    finally:
        ends.cancel()
    assert theirs == ours
    assert len(ours["anchors"]) == 1  # type: ignore[index]


@pytest.mark.parametrize(
    "name", ["right", "beginning", "more", "written anew", *sorted(test_anchors.wrong_notes([b"{}"]))]
)
def test_both_judge_what_a_witness_cosigned_alike(
    page: battery.Page, name: str, folder: Path, pin: Path, tmp_path: Path
) -> None:
    logs = test_anchors.two_logs(folder)
    lines = test_anchors.lines_of(logs)
    notes = {
        **test_anchors.wrong_notes(lines),
        "right": test_anchors.cosigned(test_anchors.checkpoint(lines)),
        "beginning": test_anchors.cosigned(test_anchors.checkpoint(logs[0].lines)),
        "more": test_anchors.cosigned(test_anchors.checkpoint([*lines, b"{}"])),
        "written anew": test_anchors.cosigned(test_anchors.checkpoint([b"{}", *lines[1:]])),
    }
    test_anchors.sidecar(folder, notes[name])
    witness = tmp_path / "w1.vkey"
    witness.write_text(test_anchors.witness_vkey(bb.public(test_anchors.WITNESS)), encoding="ascii")
    weak = tmp_path / "weak.vkey"
    weak.write_text("nothing", encoding="ascii")
    for seers in ([witness], [weak, witness], []):
        theirs, ours = both(page, folder, pin, witnesses=seers)
        assert theirs == ours
    found = both(page, folder, pin, witnesses=[witness])[1]
    anchored, failed = name in ("right", "beginning"), name in ("more", "written anew")
    verdict = "PASS" if anchored else "FAIL" if failed else "INCOMPLETE"
    assert (len(found["anchors"]), found["verdict"]) == (anchored, verdict)  # type: ignore[index]


SORTED = (
    ".witness",
    "B.witness",
    "Q.WITNESS",
    "a",
    "a.witness",
    "a.witness.witness",
    "\ud7ff.witness",
    "\ufffd.witness",
    "\U00010000.witness",
    "\U00010000\uffee.witness",
    "\U00010001.witness",
    "\U0010fffd.witness",
)
"""Names of files by their code points. By UTF-16 units the last four would come before U+FFFD."""


def test_both_read_the_files_of_cosignatures_in_one_order_and_a_witness_pinned_twice_once(
    page: battery.Page, folder: Path, pin: Path, tmp_path: Path
) -> None:
    checkpoint = test_anchors.checkpoint(test_anchors.lines_of(test_anchors.two_logs(folder)))
    times = {name: test_anchors.SEEN_AT + at for at, name in enumerate(SORTED)}
    for name in reversed(SORTED):
        note = test_anchors.cosigned(checkpoint, seen_at=times[name])
        (folder / name).write_text(note, encoding="utf-8")
    vkey = test_anchors.witness_vkey(bb.public(test_anchors.WITNESS))
    seers = [tmp_path / "w1.vkey", tmp_path / "the same.vkey"]
    for seer, end in zip(seers, ("", "\n"), strict=True):
        seer.write_text(vkey + end, encoding="ascii")
    reports = [each for given in (seers[:1], seers) for each in both(page, folder, pin, witnesses=given)]
    assert all(report == reports[0] for report in reports)
    found = [anchor["time"] for anchor in reports[0]["anchors"]]  # type: ignore[index]
    assert found == [time for name, time in times.items() if name.endswith(".witness")]


def test_both_give_the_same_report_on_each_golden_book(page: battery.Page) -> None:
    if not battery.GOLDEN.is_dir():
        pytest.skip("the golden books are not beside this checkout")
    names = json.loads((battery.GOLDEN / "verdicts.json").read_text(encoding="utf-8"))
    for name, verdict in names.items():
        theirs, ours = both(page, battery.GOLDEN / name, battery.GOLDEN / f"{name}.pin")
        assert theirs == ours
        assert theirs["verdict"] == verdict  # type: ignore[index]


def test_both_say_the_same_without_a_pin_with_a_wrong_one_and_of_another_policy(
    page: battery.Page, folder: Path, pin: Path, tmp_path: Path
) -> None:
    bb.LogBuilder().open().play(Story()).write(folder)
    other = tmp_path / "other.vkey"
    other.write_text(bb.vkey(bb.DEVICE_NAME, bb.public(bb.secret("another"))), encoding="ascii")
    bad = tmp_path / "bad.vkey"
    bad.write_text("nothing", encoding="ascii")
    reports = [
        both(page, folder, None),
        both(page, folder, other),
        both(page, folder, bad),
        both(page, folder, pin, policies=[bb.hex64("other")]),
        both(page, folder, pin, policies=[bb.hex64("policy")]),
    ]
    assert [theirs == ours for theirs, ours in reports] == [True] * 5
    verdicts = ["UNTRUSTED", "UNTRUSTED", "UNTRUSTED", "FAIL", "PASS"]
    assert [ours["verdict"] for _, ours in reports] == verdicts  # type: ignore[index]


def test_both_say_the_same_of_stray_names_and_missing_logs(
    page: battery.Page, folder: Path, pin: Path
) -> None:
    first = bb.LogBuilder().open().close()
    second = first.next().open().close()
    third = second.next().open().close()
    for log in (first, third):
        log.write(folder)
    (folder / "notes.jsonl").write_text("{}\n", encoding="ascii")
    (folder / "000009-short.jsonl").write_text("", encoding="ascii")
    theirs, ours = both(page, folder, pin)
    assert theirs == ours
    assert [reason["code"] for reason in ours["reasons"]] == ["stray-file", "log-missing"]  # type: ignore[index]


def test_both_say_the_same_of_altered_books(node: str, tmp_path: Path) -> None:
    if not battery.GOLDEN.is_dir():
        pytest.skip("the golden books are not beside this checkout")
    *_, tally = battery.run(AGREED, AGREED, 1_000_000, node, tmp_path)
    assert (tally.compared, tally.differing) == (AGREED, [])


_LINES = (
    b"",
    b"{}",
    b"null",
    b'"' + b"a" * (1 << 20) + b'"',
    b'{"a":1.0}',
    b'{"a":-0}',
    b'{"a":01}',
    b'{"a":1,"a":1}',
    b'{"A":1}',
    b'{"a":"\\ud800"}',
    b'{"a":"\\ud83d\\ude00"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xf0\x9f\x98\x80"}',
    b'{"a":"\x7f\xc2\x85\xe2\x80\xa8"}',
    b'{"a":"\x00"}',
    b'{"a":"\\u0000"}',
    b'{"a":"\\u001F"}',
    b'{"a":9007199254740991}',
    b'{"a":9007199254740992}',
    b'{"a":-9007199254740991}',
    b'{"a":NaN}',
    b'{"a":[[[[[[[1]]]]]]]}',
    b'{"a":[[[[[[[[1]]]]]]]]}',
    b"[" * 100_000,
    b'{"a":1,}',
    b'{"a":1} ',
    b"\xef\xbb\xbf{}",
    b'{"__proto__":1}',
    b'{"constructor":1}',
    b'{"to_string":{"length":1}}',
)


def test_both_read_one_line_alike(page: battery.Page, folder: Path, pin: Path) -> None:
    """Section 2 of the format: the bytes of one line, where parsers differ most."""
    name = bb.LogBuilder().name
    for line in _LINES:
        (folder / name).write_bytes(line + b"\n")
        theirs, ours = both(page, folder, pin)
        assert theirs == ours, line[:40]


@pytest.fixture(scope="module")
def browser() -> str:
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip("there is no browser on this machine")
    return found


def in_browser(browser: str, page: str, place: Path) -> tuple[str, set[str]]:
    """Return what a page became, and the addresses that it, not the browser for itself, asked for."""
    place.mkdir()
    (place / "page.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            f"--user-data-dir={place / 'profile'}",
            f"--log-net-log={place / 'net.json'}",
            "--virtual-time-budget=20000",
            "--dump-dom",
            (place / "page.html").as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    events = json.loads((place / "net.json").read_text(encoding="utf-8"))["events"]
    params = [event.get("params", {}) for event in events]
    asked = {each["url"] for each in params if each.get("initiator", "not an origin") != "not an origin"}
    return done.stdout, asked


def test_in_a_browser_the_page_shows_the_verdict_and_makes_no_request(browser: str, tmp_path: Path) -> None:
    """The book is carried in the page, as `akaion trace open` makes it."""
    story, folder = Story(), tmp_path / "book"
    folder.mkdir()
    bb.LogBuilder().open().play(story).write(folder)
    files = [[path.name, base64.b64encode(path.read_bytes()).decode()] for path in folder.iterdir()]
    carried = f'<script type="application/json" id="book">{json.dumps({"files": files})}</script>\n<script>'
    opened = PAGE.read_text(encoding="utf-8").replace("<script>", carried, 1)
    shown, asked = in_browser(browser, opened, tmp_path / "opened")
    assert 'data-verdict="UNTRUSTED"' in shown
    assert "no-pin" in shown
    assert shown.count('class="pick"') == len(story) + 2  # the header and its seal
    assert asked == set()


_FETCHING = '<img src="http://127.0.0.1:9/picture"><script>fetch("http://127.0.0.1:9/data")</script></body>'


def test_the_policy_of_the_page_stops_what_a_request_would_need(browser: str, tmp_path: Path) -> None:
    """The same foreign markup asks without the page's policy, which shows that the test above can fail."""
    text = PAGE.read_text(encoding="utf-8").replace("</body>", _FETCHING)
    assert in_browser(browser, text, tmp_path / "with")[1] == set()
    bare = re.sub(r"<meta http-equiv.*?>", "", text)
    assert in_browser(browser, bare, tmp_path / "without")[1] == {
        "http://127.0.0.1:9/picture",
        "http://127.0.0.1:9/data",
    }
