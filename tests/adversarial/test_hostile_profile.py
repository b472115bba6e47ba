# SPDX-License-Identifier: Apache-2.0
"""I5, I6, I7: a profile, and what lies where it points, ends as a runtime or as a `ConfigError`, at once."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner import ConfigError, open_profile
from runner.adapters.cli.needs import checks
from runner.assembly import construct
from runner.capability.credentials import read_token
from runner.capability.profile import read_profile
from runner.capability.registers import read_register
from runner.kernel.config import parse_config
from runner.kernel.errors import Mistake
from runner.testing import FakeTool

TOKEN = "tok-5f3c9a1e7b2d4c6f"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def practice(tmp_path: Path) -> Path:
    folder = tmp_path / "practice"
    folder.mkdir()
    return folder


def attached(*paths: Path | str, endpoint: str = "https://model.example", **more: Any) -> dict[str, Any]:
    return {
        "policy": {"grants": [{"tool": "read_file", "paths": [str(path) for path in paths]}]},
        "inference": {
            "prefer": "remote",
            "local": None,
            "remote": {"backend": "openai", "endpoint": endpoint, "model": "m", **more},
        },
    }


# --- the text of a profile ---------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60), start=st.sampled_from(["", "profile: detached\n", "profile: "]))
def test_i6_any_text_is_a_profile_or_a_mistake(text: str, start: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes((start + text).encode("utf-8", "surrogatepass"))
    mistakes: tuple[Mistake, ...] = ()
    try:
        source = read_profile(file, {})
        parse_config(source.data, file=source.file, locate=source.line)
    except ConfigError as error:
        mistakes = error.mistakes
    assert all(mistake.file and mistake.fix for mistake in mistakes)


@pytest.mark.parametrize(
    "text",
    [
        "policy: {grants: [{tool: read_file, paths: ['~nosuchuser/x']}]}",
        "trace: {path: ~nosuchuser/x}",
        "trace: {keys: ~nosuchuser/x}",
        "perimeter: {registers: {clients: ~nosuchuser/x}}",
        "inference: {local: {runtime: embedded, model: m, weights: ~nosuchuser/x}}",
        "policy: {grants: [{tool: read_file, paths: [loop/x]}]}",
        'trace: {path: "a\\0b"}',
        'policy: {grants: [{tool: read_file, paths: ["a\\ud800"]}]}',
    ],
)
def test_i7_a_path_that_is_none_is_a_mistake_with_its_line(text: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    file = tmp_path / "p.yaml"
    file.write_text(f"profile: detached\n{text}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        open_profile(file)
    assert [(mistake.file, mistake.line) for mistake in caught.value.mistakes] == [(str(file), 2)]
    assert caught.value.mistakes[0].fix


@pytest.mark.parametrize("path", ["a\0b", "\ud800", "~nosuchuser/x", "loop/x"])
def test_i7_a_path_that_a_program_passes_is_judged_too(path: str, tmp_path: Path) -> None:
    """Overrides and names never pass through YAML."""
    (tmp_path / "loop").symlink_to("loop")
    path = str(tmp_path / path) if path.startswith("loop") else path
    ways: list[Callable[[], object]] = [
        lambda: open_profile("attached", **attached(path)),
        lambda: open_profile("attached", trace={"path": path}, **attached()),
        lambda: open_profile("attached", **attached(credential=f"file:{path}")),
        lambda: open_profile(path),
    ]
    for refused in ways:
        with pytest.raises(ConfigError):
            refused()


@pytest.mark.timeout(10)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_i7_nothing_waits_for_a_pipe_in_the_place_of_a_file(
    make: Callable[[Path], None], tmp_path: Path
) -> None:
    place = tmp_path / "place"
    make(place)
    for refused in (
        lambda: open_profile(place),
        lambda: read_register(place),
        lambda: read_token(f"file:{place}", {}, resolve=Path, refuse=refusal),
    ):
        with pytest.raises(ConfigError, match="is not a regular file"):
            refused()


# --- the credential ----------------------------------------------------------------------------------


def refusal(problem: str, fix: str) -> ConfigError:
    return ConfigError([Mistake(file="p", line=1, where="w", problem=problem, fix=fix)])


def token_file(folder: Path, text: str = TOKEN, mode: int = 0o600) -> Path:
    file = folder / "token"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


@pytest.mark.parametrize("granted", ["practice", "practice/token", "."])
def test_i5_no_grant_reaches_the_credential_file(granted: str, practice: Path, tmp_path: Path) -> None:
    token_file(practice)
    file = tmp_path / "own.yaml"
    file.write_text(
        "profile: attached\npolicy: {grants: [{tool: read_file, paths: [" + granted + "]}]}\n"
        "inference:\n  prefer: remote\n  local: null\n  remote: {backend: openai, model: m, "
        "endpoint: 'https://model.example', credential: 'file:practice/token'}\n",
        encoding="utf-8",
    )
    with pytest.raises(
        ConfigError, match=r"credential file of inference\.remote\.credential lies here"
    ) as caught:
        open_profile(file)
    assert caught.value.mistakes[0].line == 2


OWN = ["home/keys/device.key", "home/keys/token", "home/vault/salts", "home/state/book.pin", "a/device.key"]


def one_line(place: Path) -> Path:
    """Make a private file of one line of hex at `place`, as a device key is."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("5f" * 32 + "\n", encoding="ascii")
    place.chmod(0o600)
    return place


@pytest.mark.parametrize("elsewhere", [False, True], ids=["own", "elsewhere"])
@pytest.mark.parametrize("name", OWN)
def test_i5_a_key_is_no_credential(name: str, tmp_path: Path, *, elsewhere: bool) -> None:
    """It would leave as a bearer token: neither a profile at work nor one that is read names it."""
    file = one_line(tmp_path / name)
    given = attached(credential=f"file:{file}")
    trace = {"keys": str(tmp_path / "other")} if elsewhere else {}
    for make in (open_profile, partial(construct, to_read=True)):
        with pytest.raises(ConfigError, match="the perimeter's keys lie here") as caught:
            make("attached", trace=trace, **given)
        assert [each.where for each in caught.value.mistakes] == ["inference.remote.credential"]


def test_i5_a_key_where_the_profile_keeps_it_is_no_credential(tmp_path: Path) -> None:
    file = one_line(tmp_path / "other" / "token")
    trace = {"keys": str(tmp_path / "other")}
    with pytest.raises(ConfigError, match="the perimeter's keys lie here"):
        open_profile("attached", trace=trace, **attached(credential=f"file:{file}"))
    open_profile("attached", **attached(credential=f"file:{file}"))


def test_i5_a_second_name_of_a_key_is_no_credential(home: Path, practice: Path) -> None:
    file = one_line(home / "keys" / "device.key")
    (practice / "token").hardlink_to(file)
    with pytest.raises(ConfigError, match="the credential file has more than one name"):
        open_profile("attached", **attached(credential=f"file:{practice / 'token'}"))
    (practice / "link").symlink_to(file)
    with pytest.raises(ConfigError, match="the perimeter's keys lie here"):
        open_profile("attached", **attached(credential=f"file:{practice / 'link'}"))


def test_i5_a_link_is_no_credential(practice: Path) -> None:
    """Whoever may change a link would choose which file is sent as a token."""
    file = one_line(practice / "token")
    (practice / "link").symlink_to(file)
    with pytest.raises(ConfigError, match="the credential file is a link") as caught:
        open_profile("attached", **attached(credential=f"file:{practice / 'link'}"))
    assert [each.where for each in caught.value.mistakes] == ["inference.remote.credential"]
    construct("attached", **attached(credential=f"file:{file}"))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b" \n", "the credential file is empty"),
        (b"one\ntwo\n", "the credential file has several lines"),
        (b"\xef\xbb\xbftoken\n", r"the credential file begins with a byte order mark \(BOM\)"),
        ("token".encode("utf-16"), r"the credential file begins with a byte order mark \(BOM\)"),
        (b"to\tken\n", "the credential file holds signs that are not printable ASCII"),
        ("tok\u00e8n".encode(), "the credential file is not ASCII"),
    ],
    ids=["empty", "lines", "bom-8", "bom-16", "tab", "accent"],
)
def test_i12_what_is_wrong_with_a_credential_file_is_said_without_it(
    data: bytes, why: str, practice: Path
) -> None:
    file = one_line(practice / "token")
    file.write_bytes(data)
    with pytest.raises(ConfigError, match=why) as caught:
        construct("attached", **attached(credential=f"file:{file}"))
    assert "tok" not in str(caught.value).replace("token, and", "").replace("the token", "").replace(
        str(file), ""
    )


@pytest.mark.parametrize("register", ["clients", "own_identity", "public"])
@pytest.mark.parametrize("name", OWN)
def test_i5_a_key_is_no_register(register: str, name: str, tmp_path: Path) -> None:
    file = one_line(tmp_path / name)
    with pytest.raises(ConfigError, match="the perimeter's keys lie here") as caught:
        open_profile("attached", perimeter={"registers": {register: str(file)}}, **attached())
    assert [each.where for each in caught.value.mistakes] == [f"perimeter.registers.{register}"]


def test_i5_no_grant_reaches_keys_through_a_home_that_is_a_link_nor_those_of_another_profile(
    practice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = one_line(tmp_path / "real" / "keys" / "device.key").parent
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    monkeypatch.setenv("AKAION_HOME", str(tmp_path / "linked"))
    for trace in ({}, {"keys": str(practice)}):
        with pytest.raises(ConfigError, match="the perimeter's keys lie here"):
            open_profile("attached", trace=trace, **attached(keys))


def test_i5_a_credential_file_is_found_from_the_profiles_folder(
    practice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not from the current folder, where another file of that name may lie."""
    token_file(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    own = read_profile("attached", {}).folder
    assert own == tmp_path / "elsewhere"
    with pytest.raises(ConfigError, match="cannot be read"):
        open_profile("attached", **attached(practice, credential="file:token"))
    monkeypatch.chdir(tmp_path)
    open_profile("attached", **attached(practice, credential="file:token"))


def test_i5_a_credential_is_one_line_in_a_private_file(tmp_path: Path) -> None:
    def read(file: Path) -> str:
        return read_token(f"file:{file}", {}, resolve=Path, refuse=refusal)

    assert read(token_file(tmp_path, f"{TOKEN}\n")) == TOKEN
    for text in ("", " \n", f"{TOKEN}\nX-More: 1", "tök", f"{TOKEN}\0", "x" * 20_000):
        with pytest.raises(ConfigError) as caught:
            read(token_file(tmp_path, text))
        assert TOKEN not in str(caught.value)
    with pytest.raises(ConfigError, match="can be read by others"):
        read(token_file(tmp_path, mode=0o640))
    (tmp_path / "link").symlink_to(token_file(tmp_path))
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "link")


@pytest.mark.parametrize("reference", ["env:\ud800", "env:A\0B", "env:A=B", "env:NOT_SET"])
def test_i5_a_variable_that_is_none_is_a_mistake(reference: str) -> None:
    with pytest.raises(ConfigError, match=r"inference\.remote\.credential"):
        open_profile("attached", **attached(credential=reference))


# --- endpoints, tools, places ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "endpoint",
    [
        *("http://model.example:0", "http://model.example:00", "http://model.example:65536"),
        *("http://model .example", "http://model\t.example", "http://model.exa\nmple", "http://mod\x00el"),
        *(
            " http://model.example",
            "http://model.example\x7f",
            "http://mödel.example",
            "http://model.example?",
        ),
        *(
            "http://model.example#",
            "http://@model.example",
            "http://u:p@model.example",
            "http://a\\b.example",
        ),
        *("http://", "http://:80", "http://[::1", "http://[x]", "http://-", "http://.", "http:model.example"),
        *(
            "http://model.example/v2",
            "http://model.example/v1/x",
            "ftp://model.example",
            "http://[fe80::1%eth0]",
        ),
    ],
)
def test_i6_what_is_no_endpoint_is_a_mistake(endpoint: str, practice: Path) -> None:
    with pytest.raises(ConfigError, match=r"inference\.remote\.endpoint: this is not an endpoint"):
        open_profile("attached", **attached(practice, endpoint=endpoint))


@pytest.mark.parametrize(
    ("endpoint", "meant"),
    [
        ("https://model.example", ("https", "model.example", 443)),
        ("http://127.0.0.1:8080/v1", ("http", "127.0.0.1", 8080)),
        ("HTTP://Model.Example/", ("http", "model.example", 80)),
        ("http://[::1]:9/v1/", ("http", "::1", 9)),
    ],
)
def test_i6_an_endpoint_is_scheme_host_and_port(
    endpoint: str, meant: tuple[str, str, int], practice: Path
) -> None:
    runtime = open_profile("attached", **attached(practice, endpoint=endpoint))
    address = runtime._backends["remote"].address
    assert (address.scheme, address.host, address.port) == meant


@pytest.mark.parametrize(
    "text",
    [
        "inference: {local: {runtime: llamacpp, model: m, endpoint: 'http://127.0.0.1:99999'}}",
        "inference: {local: {runtime: llamacpp, model: m, endpoint: 'http://127.0.0.1:0'}}",
        "inference: {local: {runtime: embedded, model: m, weights: ~nosuchuser/x}}",
        "policy: {grants: [{tool: read_file, paths: [~nosuchuser/x]}]}",
        "trace: {path: ~nosuchuser/x}",
        "policy: &x [*x]",
    ],
)
def test_i7_the_doctor_reports_a_profile_that_is_wrong_to_the_end(text: str, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(f"profile: detached\n{text}\n", encoding="utf-8")
    found = list(checks(str(file), deep=False))
    assert [check.grade for check in found if check.name == "profile"] == ["fail"]
    assert {"fail", "warn", "ok"} >= {check.grade for check in found}
    assert found[-1].name != "profile"


@pytest.mark.parametrize("names", [("mine", "mine"), ("read_file",), ("other", "search_text")])
def test_i1_two_tools_of_one_name_are_a_mistake_that_names_it(names: tuple[str, ...], practice: Path) -> None:
    """A grant for one would let the other run."""
    tools = [FakeTool(name=name) for name in names]
    with pytest.raises(ConfigError, match=f"two tools are named '{names[-1]}'"):
        open_profile("attached", tools=tools, **attached(practice))


def test_p2_a_granted_path_that_is_missing_is_told_before_anything_runs(practice: Path, home: Path) -> None:
    gone = practice / "gone"
    runtime = open_profile("attached", **attached(practice, gone))
    (mistake,) = runtime.missing_paths()
    assert mistake.where == "policy.grants.0.paths.1"
    with pytest.raises(ConfigError, match="no folder or file that can be read is at") as caught, runtime:
        pass
    assert str(gone) in str(caught.value)
    assert not home.exists()
    gone.mkdir()
    assert open_profile("attached", **attached(practice, gone)).missing_paths() == ()


def test_p2_a_folder_swapped_between_reading_and_opening_is_not_followed(
    practice: Path, tmp_path: Path
) -> None:
    runtime = open_profile("attached", **attached(practice))
    practice.rename(tmp_path / "kept")
    practice.symlink_to("kept")
    with pytest.raises(ConfigError, match="no folder or file"), runtime:
        pass


def test_i5_the_home_directory_is_made_for_its_owner_only(practice: Path, home: Path) -> None:
    before = os.umask(0o002)
    try:
        with open_profile("attached", **attached(practice)):
            pass
    finally:
        os.umask(before)
    assert home.stat().st_mode & 0o777 == 0o700
