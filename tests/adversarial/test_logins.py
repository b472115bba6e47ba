# SPDX-License-Identifier: Apache-2.0
"""I5: a page is asked for with the credential of its host, and nobody else ever gets or sees it.

Whole runtimes whose profile names credentials, hosts of pages with TLS on loopback, and every way in which a
server or a model could have a credential sent elsewhere, or shown. Whoever hunts one behind the perimeter is
in `test_credential_hunt.py`.
"""

import base64
import gzip
import json
import os
import pickle
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio
import pytest
from pages import LOOPBACK, Authority, Names, PageServer, page, redirect

from runner import ConfigError, Runtime, open_profile
from runner.assembly import construct
from runner.capability.transport.web import WebTransport
from runner.kernel.messages import ToolCall
from runner.kernel.ports import Credential
from runner.perimeter.running import ToolReply
from runner.testing import ScriptedServer

HOST, OTHER, OPEN = "archive.example.org", "www.example.net", "below.example.com"
AUTHORITY: Final = Authority()
TOKEN: Final = "kT9/mq+Zr4==wLx7Uv2N_pe.Hs8"
SINK: Final = {"to": "network", "max_class": "C1"}


@dataclass(frozen=True, kw_only=True)
class Stage:
    """An opened runtime and three servers: the archive, which has the credential, is at `first`."""

    rt: Runtime
    first: PageServer
    second: PageServer
    plain: PageServer

    @property
    def url(self) -> str:
        """Where the archive is, which has the credential."""
        return f"https://{HOST}:{self.first.port}"

    def fill(self, text: str) -> str:
        """Return `text` with the ports in it."""
        ports = (("FIRST", self.first), ("SECOND", self.second), ("PLAIN", self.plain))
        for word, server in ports:
            text = text.replace(word, str(server.port))
        return text

    def fetch(self, url: str, *, start_line: int = 1) -> ToolReply:
        """Return what comes of a call for `url`, which the user named."""
        return anyio.run(self._fetch, url, start_line)

    async def _fetch(self, url: str, start_line: int) -> ToolReply:
        async with self.rt.perimeter.task(f"What does {url} say?") as task:
            arguments: dict[str, Any] = {"url": url, "start_line": start_line}
            call = ToolCall(tool="web_fetch", arguments=arguments, origin=task.goal)
            return await self.rt.tools.call(call, task=task)

    @property
    def carried(self) -> list[tuple[str, str]]:
        """Where the credential went, in whatever part of a request: host and target."""
        found = []
        for server in (self.first, self.second, self.plain):
            for head in server.received:
                if TOKEN.encode() in head:
                    lines = head.decode("latin-1").split("\r\n")
                    host = next(line.partition(": ")[2] for line in lines if line.startswith("Host: "))
                    found.append((host, lines[0].split(" ")[1]))
        return found


@contextmanager
def stage(
    patch: pytest.MonkeyPatch,
    pages: Mapping[str, Any],
    *,
    token: str = TOKEN,
    credential: str = "env:ARCHIVE",
    **entry: Any,
) -> Iterator[Stage]:
    """Yield a runtime that may ask everybody for pages, and the archive with a credential."""
    patch.setenv("ARCHIVE", token)
    with ExitStack() as stack:
        tls = AUTHORITY.server(HOST, OTHER, OPEN)
        first, second = (stack.enter_context(PageServer(tls, pages)) for _ in range(2))
        plain = stack.enter_context(PageServer(None, pages))
        anywhere = [
            {"host": host, "port": server.port}
            for host, server in [(HOST, second), (OTHER, first), (OTHER, second)]
        ]
        hosts = [
            *anywhere,
            {"host": "*.example.com", "port": first.port},
            {"host": HOST, "port": plain.port, "unsafe_plain_http": True},
            {"host": HOST, "port": first.port, "credential": credential, **entry},
        ]
        grant = {"tool": "web_fetch", "hosts": hosts, "reads": {"class": "C1"}, "sink": SINK}
        with open_profile("attached", **given({"grants": [grant]})) as rt:
            transport = WebTransport(
                5.0, tls=AUTHORITY.trust, resolver=Names(), admits=[LOOPBACK].__contains__
            )
            assert rt.perimeter.outlet is not None
            rt.perimeter.outlet = replace(rt.perimeter.outlet, transport=transport)
            yield Stage(rt=rt, first=first, second=second, plain=plain)


def given(policy: Mapping[str, Any], **remote: Any) -> dict[str, Any]:
    nobody = "http://127.0.0.1:9"
    return {
        "policy": policy,
        "perimeter": {"max_egress_class": "C1"},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": nobody, "model": "m", **remote},
        },
    }


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


# --- who gets it ---------------------------------------------------------------------------------------


def test_i5_a_page_is_asked_for_with_the_credential_of_its_host_and_the_record_does_not_say_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage(monkeypatch, {"/a": page("<p>the judgment"), "/b": redirect("/a")}) as here:
        for path in ("/a", "/b"):
            reply = here.fetch(here.url + path)
            assert (reply.status, "the judgment" in reply.block.text) == ("ok", True)
        for head in here.first.received:
            assert head.count(TOKEN.encode()) == 1
            assert f"\r\nAuthorization: Bearer {TOKEN}\r\n".encode() in head
        assert here.first.targets == ["/a", "/b", "/a"]
    written = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" for path in written)
    assert [path for path in written if TOKEN.encode() in path.read_bytes()] == []


def test_i5_a_header_of_its_own_carries_it_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(monkeypatch, {"/a": page("x")}, header="X-Api-Key") as here:
        assert here.fetch(here.url + "/a").status == "ok"
        assert f"\r\nX-Api-Key: {TOKEN}\r\n".encode() in here.first.received[0]
        assert b"Authorization" not in here.first.received[0]
    with stage(
        monkeypatch, {"/a": page("x")}, header="Authorization", token="Basic bWU6b3Blbi1zZXNhbWU="
    ) as here:
        assert here.fetch(here.url + "/a").status == "ok"
        assert b"\r\nAuthorization: Basic bWU6b3Blbi1zZXNhbWU=\r\n" in here.first.received[0]


def test_i5_beside_the_paths_of_its_entry_a_host_is_asked_as_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(monkeypatch, {"/in/a": page("x"), "/out": page("x")}, paths=["/in"]) as here:
        assert here.fetch(here.url + "/in/a").status == "ok"
        assert here.fetch(here.url + "/out").rule == "argument-outside-grant"
        assert here.carried == [(f"{HOST}:{here.first.port}", "/in/a")]


LEADING: Final = {
    "another port": (f"https://{HOST}:SECOND/b", "ok"),
    "another host": (f"https://{OTHER}:SECOND/b", "ok"),
    "another host at its port": (f"https://{OTHER}:FIRST/b", "ok"),
    "a host below an ending": (f"https://{OPEN}:FIRST/b", "ok"),
    "away and back": (f"https://{OTHER}:SECOND/back", "ok"),
    "away, back and on": (f"https://{OTHER}:SECOND/on", "ok"),
    "plain http": (f"http://{HOST}:PLAIN/b", "denied"),
    "plain http at its port": (f"http://{HOST}:FIRST/b", "denied"),
    "a user before the host": (f"https://{HOST}:FIRST@{OTHER}:SECOND/b", "denied"),
    "a user before its own": (f"https://me@{HOST}:FIRST/b", "denied"),
    "a dot at its end": (f"https://{HOST}.:FIRST/b", "denied"),
    "capitals": (f"https://{HOST.upper()}:FIRST/b", "denied"),
    "capitals without a scheme": (f"//{HOST.upper()}:FIRST/b", "denied"),
    "look-alikes": ("https://\u0430rchive.example.org:FIRST/b", "denied"),
    "a name of IDNA": ("https://xn--rchive-4fg.example.org:FIRST/b", "denied"),
    "a longer name": (f"https://{HOST}.evil.example:FIRST/b", "denied"),
    "the same, under another name's end": (f"https://evil-{HOST}:FIRST/b", "denied"),
}


ASKED: Final = {"away and back": 3, "away, back and on": 4}
"""How many requests those make that lead back."""


@pytest.mark.parametrize("name", LEADING)
def test_i5_a_redirect_takes_it_nowhere_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It went to the archive once; what follows was asked as nobody, or not at all."""
    location, status = LEADING[name]
    with stage(monkeypatch, {"/b": page("x")}) as here:
        here.first.pages["/a"] = redirect(here.fill(location).encode().decode("latin-1"))
        here.second.pages["/back"] = redirect(f"{here.url}/b")
        here.second.pages["/on"] = redirect(f"{here.url}/on")
        here.first.pages["/on"] = redirect("/b")
        assert here.fetch(here.url + "/a").status == status
        assert here.carried == [(f"{HOST}:{here.first.port}", "/a")]
        asked = sum(len(server.received) for server in (here.first, here.second, here.plain))
        assert asked == ASKED.get(name, 2 if status == "ok" else 1)


def test_i5_another_host_that_leads_here_does_not_ask_in_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stranger composed is asked as nobody, so no stranger acts as whoever has the credential."""
    with stage(monkeypatch, {"/b": page("x")}) as here:
        here.second.pages["/a"] = redirect(f"{here.url}/b")
        assert here.fetch(f"https://{OTHER}:{here.second.port}/a").status == "ok"
        assert (here.carried, here.first.targets) == ([], ["/b"])


STRAIGHT: Final = [name for name in LEADING if name not in {*ASKED, "capitals without a scheme"}]


@pytest.mark.parametrize("name", STRAIGHT)
def test_i5_nobody_else_is_asked_with_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(monkeypatch, {"/b": page("x")}) as here:
        reply = here.fetch(here.fill(LEADING[name][0]))
        expected = "ok" if name == "plain http" else LEADING[name][1]
        assert (reply.status, here.carried) == (expected, [])


def test_i5_a_server_that_writes_it_into_an_address_has_it_sent_to_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for spelled in (TOKEN, quote(TOKEN, safe=""), "".join(f"%{byte:02x}" for byte in TOKEN.encode())):
        with stage(monkeypatch, {}) as here:
            here.first.pages["/a"] = redirect(f"https://{OTHER}:{here.second.port}/b?t={spelled}")
            reply = here.fetch(here.url + "/a")
            assert (reply.status, reply.rule) == ("denied", "credential-in-address")
            assert (here.second.received, here.first.targets) == ([], ["/a"])
            assert spelled not in reply.block.text


# --- who sees it ---------------------------------------------------------------------------------------

JSON: Final = json.dumps({"headers": {"Authorization": f"Bearer {TOKEN}"}})
ECHOES: Final[dict[str, bytes]] = {
    "in the text": page(f"<p>you sent Bearer {TOKEN}"),
    "in what the markup hides": page(f"<p>hello<script>token = '{TOKEN}'</script>"),
    "in an attribute": page(f'<p>hello<input value="{TOKEN}">'),
    "in a link": page(f'<p><a href="/next?t={quote(TOKEN, safe="")}">next</a>'),
    "in references": page("<p>" + "".join(f"&#{ord(char)};" for char in TOKEN)),
    "cut by markup": page(f"<p>you sent {TOKEN[:9]}<b></b>{TOKEN[9:]}"),
    "on two lines of markup": page(f"<p>you sent<br>{TOKEN[:9]}<br>{TOKEN[9:]}"),
    "in JSON": page(JSON, kind="application/json"),
    "in JSON with slashes escaped": page(JSON.replace("/", "\\/"), kind="application/json"),
    "in JSON by number": page(JSON.replace("=", "\\u003d"), kind="application/json"),
    "in one long line": page("x" * 385 + TOKEN + "x" * 50, kind="text/plain"),
    "wrapped": page(f"{TOKEN[:12]}\n{TOKEN[12:]}", kind="text/plain"),
    "below what is shown": page("line\n" * 300 + TOKEN, kind="text/plain"),
    "packed": page(
        gzip.compress(f"you sent {TOKEN}".encode()), kind="text/plain", headers=[("Content-Encoding", "gzip")]
    ),
    "in UTF-16": page(f"you sent {TOKEN}".encode("utf-16"), kind="text/plain; charset=utf-16"),
    "in base64": page(base64.b64encode(f"Bearer {TOKEN}".encode()), kind="text/plain"),
    "in hexadecimal": page(f"Bearer {TOKEN}".encode().hex(), kind="text/plain"),
    "in percent signs": page(quote(TOKEN, safe=""), kind="text/plain"),
}


@pytest.mark.parametrize("name", ECHOES)
def test_i5_a_page_that_repeats_it_is_not_shown(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(monkeypatch, {"/a": ECHOES[name]}) as here:
        reply = here.fetch(here.url + "/a")
        assert (reply.status, reply.rule) == ("denied", "credential-in-page")
        assert reply.block.text == "denied: it repeats the credential of a host, and is not shown"
        assert reply.excerpts == ()


def test_i5_nor_where_the_host_that_has_it_led(monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(monkeypatch, {"/b": ECHOES["in the text"]}) as here:
        here.first.pages["/a"] = redirect(f"https://{OTHER}:{here.second.port}/b")
        assert here.fetch(here.url + "/a").rule == "credential-in-page"


def test_i5_a_stranger_learns_from_no_denial_what_a_credential_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of guesses, and an address with one, pass whether one of them is right or not."""
    for guess in (TOKEN, "x" * len(TOKEN)):
        with stage(monkeypatch, {"/a": page(f"<p>guesses: {guess}"), "/b": page("x")}) as here:
            stranger = f"https://{OTHER}:{here.second.port}"
            here.second.pages["/next"] = redirect(f"/b?guess={quote(guess, safe='')}")
            assert [here.fetch(stranger + path).status for path in ("/a", "/next")] == ["ok", "ok"]
            assert here.second.targets[1:] == ["/next", f"/b?guess={quote(guess, safe='')}"]
            asked = here.fetch(f"{stranger}/b?guess={quote(guess, safe='')}")
            assert (asked.rule == "credential-in-address") is (guess == TOKEN)


def test_i5_no_window_of_lines_shows_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dump of the request, whose first lines one call shows and whose others the next."""
    head = f"GET /a HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
    dump = [f"{at:08x}: {head[at : at + 16].hex(' ', 2)}" for at in range(0, len(head), 16)]
    begins = next(at for at, _ in enumerate(dump) if TOKEN[:3].encode() in head[at * 16 : at * 16 + 16])
    echo = base64.b64encode(f"Bearer {TOKEN}".encode()).decode()
    marked = "<p>a line" * 199 + "<p>" + "." * 374 + echo[:34] + "<b></b>" + echo[34:]
    for text, kind, starts in (
        ("\n".join(["a line"] * 300 + dump), "text/plain", (302 + begins - 200, 302 + begins)),
        (marked, "text/html", (1, 201)),
    ):
        with stage(monkeypatch, {"/a": page(text, kind=kind)}) as here:
            for start in starts:
                assert here.fetch(here.url + "/a", start_line=start).rule == "credential-in-page"


def test_i5_a_page_that_its_host_packs_beyond_reading_is_shown_only_where_it_has_no_credential(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = b"hello"
    for _ in range(5):
        packed = base64.b64encode(packed * 4)
    with stage(monkeypatch, {"/a": page(packed, kind="text/plain")}) as here:
        assert here.fetch(here.url + "/a").rule == "credential-in-page"
        assert here.fetch(f"https://{OTHER}:{here.second.port}/a").rule != "credential-in-page"


@pytest.mark.parametrize("said", ["bWU6b3Blbi1zZXNhbWU=", "open-sesame"])
def test_i5_the_password_of_a_basic_login_is_as_little_shown_as_its_encoding(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    basic = {"header": "Authorization", "token": "Basic bWU6b3Blbi1zZXNhbWU="}
    with stage(monkeypatch, {"/a": page(f"<p>{said}"), "/b": page("<p>hello me, open")}, **basic) as here:
        assert here.fetch(here.url + "/a").rule == "credential-in-page"
        assert here.fetch(here.url + "/b").status == "ok"


def test_a_page_that_speaks_of_credentials_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Authorization: Bearer, then your token, such as kT9/mq+Zr4==wLx7Uv2N_pe.Hs9"
    with stage(monkeypatch, {"/a": page(said, kind="text/plain")}) as here:
        assert here.fetch(here.url + "/a").status == "ok"


def test_i5_an_error_says_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {
        "/401": page(TOKEN, status="401 Unauthorized", headers=[("WWW-Authenticate", f"Bearer {TOKEN}")]),
        "/broken": f"HTTP/1.1 {TOKEN}\r\n\r\n".encode(),
        "/kind": page(TOKEN, kind=f"x/{TOKEN}"),
    }
    with stage(monkeypatch, pages) as here:
        for path in pages:
            reply = here.fetch(here.url + path)
            assert (reply.status, TOKEN in repr(reply) + reply.block.text) == ("error", False)
        outlet = here.rt.perimeter.outlet
        assert outlet is not None
        for each in (outlet, outlet.logins, here.rt.perimeter, here.rt.policy, here.rt):
            assert TOKEN not in repr(each)


def test_i5_nothing_that_holds_a_credential_can_be_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="is not pickled"):
        pickle.dumps(Credential(header="h", value=TOKEN))
    with stage(monkeypatch, {}) as here:
        outlet = here.rt.perimeter.outlet
        assert outlet is not None
        with pytest.raises(TypeError, match="is not pickled"):
            pickle.dumps(outlet.logins)


# --- where it is read ----------------------------------------------------------------------------------


def test_i5_one_variable_serves_two_hosts_and_the_remote_model_and_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ARCHIVE", TOKEN)
    hosts = [{"host": host, "credential": "env:ARCHIVE"} for host in (HOST, OTHER)]
    grant = {"tool": "web_fetch", "hosts": hosts, "reads": {"class": "C1"}, "sink": SINK}
    with ScriptedServer(replies=["fine"]) as server:
        profile = given(
            {"grants": [grant]}, endpoint=server.url, credential="env:ARCHIVE", tier="constrained"
        )
        with open_profile("attached", **profile) as rt:
            assert "ARCHIVE" not in os.environ
            outlet = rt.perimeter.outlet
            assert outlet is not None
            assert {place.host for place in outlet.logins.by_place} == {HOST, OTHER}
            assert {each.value for each in outlet.logins.by_place.values()} == {f"Bearer {TOKEN}"}


FILE: Final = """\
profile: attached
perimeter: {max_egress_class: C1}
policy:
  grants:
    - {tool: read_file, paths: [GRANTED]}
    - tool: web_fetch
      reads: {class: C1}
      sink: {to: network, max_class: C1}
      hosts:
        - {host: archive.example.org, credential: 'file:practice/token'}
        - {host: www.example.net, credential: 'env:ARCHIVE'}
"""


def profile_of(tmp_path: Path, granted: str) -> Path:
    (tmp_path / "practice").mkdir(exist_ok=True)
    (tmp_path / "cases").mkdir(exist_ok=True)
    file = tmp_path / "own.yaml"
    file.write_text(FILE.replace("GRANTED", granted), encoding="utf-8")
    return file


def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "practice" / "token"
    file.write_text(TOKEN, encoding="ascii")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize("granted", ["practice", "practice/token", "."])
def test_i5_no_grant_reaches_the_file_of_a_pages_credential(granted: str, tmp_path: Path) -> None:
    file = profile_of(tmp_path, granted)
    token_file(tmp_path)
    held = r"the credential file of policy\.grants\.1\.hosts\.0\.credential lies here"
    with pytest.raises(ConfigError, match=held) as caught:
        open_profile(file)
    assert [(each.where, each.line) for each in caught.value.mistakes] == [("policy.grants.0.paths.0", 5)]


def test_i5_every_credential_that_is_missing_is_a_mistake_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = profile_of(tmp_path, "cases")
    with pytest.raises(ConfigError) as caught:
        open_profile(file)
    assert [(each.where, each.line) for each in caught.value.mistakes] == [
        ("policy.grants.1.hosts.0.credential", 10),
        ("policy.grants.1.hosts.1.credential", 11),
    ]
    assert all(each.file == str(file) and each.fix for each in caught.value.mistakes)
    monkeypatch.setenv("ARCHIVE", TOKEN)
    token_file(tmp_path)
    construct(file)


def test_i5_a_credential_that_a_page_may_hold_by_chance_is_a_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = profile_of(tmp_path, "cases")
    token_file(tmp_path)
    monkeypatch.setenv("ARCHIVE", "avocado")
    with pytest.raises(ConfigError, match="too short to be told from a word") as caught:
        open_profile(file)
    assert [(each.where, each.line) for each in caught.value.mistakes] == [
        ("policy.grants.1.hosts.1.credential", 11)
    ]
    assert "avocado" not in str(caught.value)


def test_i5_a_device_key_is_no_credential_of_a_page(home: Path) -> None:
    key = home / "keys" / "device.key"
    key.parent.mkdir(parents=True)
    key.write_text("5f" * 32, encoding="ascii")
    key.chmod(0o600)
    host = {"host": HOST, "credential": f"file:{key}"}
    grant = {"tool": "web_fetch", "hosts": [host], "reads": {"class": "C1"}, "sink": SINK}
    with pytest.raises(ConfigError, match="the perimeter's keys lie here"):
        open_profile("attached", **given({"grants": [grant]}))


def test_i8_pages_behind_a_login_count_as_public_only_where_the_grant_says_so() -> None:
    grant = {"tool": "web_fetch", "hosts": [{"host": HOST, "credential": "env:ARCHIVE"}], "sink": SINK}
    with pytest.raises(ConfigError, match="not public") as caught:
        open_profile("attached", **given({"grants": [grant]}))
    assert [each.where for each in caught.value.mistakes] == ["policy.grants.0.hosts.0.credential"]
