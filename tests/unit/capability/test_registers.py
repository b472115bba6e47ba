# SPDX-License-Identifier: Apache-2.0
"""I7, I12: a register is read whole or not at all, and a mistake names its line and never quotes it."""

from pathlib import Path

import pytest

from runner.capability.registers import read_register
from runner.kernel.errors import ConfigError
from runner.kernel.labels import DataClass
from runner.kernel.registers import Listed

SECRET = "Mario Rossi"


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def facts(lines: tuple[Listed, ...]) -> list[tuple[int, tuple[str, ...], DataClass]]:
    return [(each.line, each.names, each.data_class) for each in lines]


def test_yaml_and_csv_say_the_same(tmp_path: Path) -> None:
    yaml = "# clients\n- Mario Rossi\n- name: Officine Marassi S.r.l.\n  aliases: [OffMar, Marassi]\n"
    yaml += "  class: C3\n"
    table = 'name,aliases,class\n"Mario Rossi",,\nOfficine Marassi S.r.l.,OffMar; Marassi,C3\n'
    first, second = (
        (("Mario Rossi",), DataClass.C2),
        (("Officine Marassi S.r.l.", "OffMar", "Marassi"), DataClass.C3),
    )
    assert facts(read_register(written(tmp_path, "a.yaml", yaml))) == [(2, *first), (3, *second)]
    assert facts(read_register(written(tmp_path, "a.csv", table))) == [(2, *first), (3, *second)]


def test_a_line_says_whether_its_surname_is_looked_for(tmp_path: Path) -> None:
    yaml = "- Mario Rossi\n- name: Ada Neri\n  by_surname: false\n- name: Ugo Neri\n  by_surname: true\n"
    table = "name,by_surname\nMario Rossi,\nAda Neri,false\nUgo Neri,true\n"
    for file, text in (("a.yaml", yaml), ("a.csv", table)):
        lines = read_register(written(tmp_path, file, text))
        assert [each.by_surname for each in lines] == [True, False, True]


def test_a_byte_order_mark_and_an_empty_file_are_fine(tmp_path: Path) -> None:
    assert facts(read_register(written(tmp_path, "a.csv", "\ufeffname\nMario Rossi\n"))) == [
        (2, ("Mario Rossi",), DataClass.C2)
    ]
    assert read_register(written(tmp_path, "a.yaml", "")) == ()


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.yaml", f"- {SECRET}\n- [{SECRET}]\n", 2),
        ("a.yaml", f"- {SECRET}\n- name: {SECRET}\n  klass: C3\n", 2),
        ("a.yaml", f"- {SECRET}\n- name: {SECRET}\n  class: C1\n", 2),
        ("a.yaml", f"- {SECRET}\n- name: {SECRET}\n  aliases: {SECRET}\n", 2),
        ("a.yaml", f"- {SECRET}\n- 12\n", 2),
        ("a.yaml", f"- {SECRET}\n- name: {SECRET}\n  by_surname: never\n", 2),
        ("a.csv", f"name,by_surname\n{SECRET},never\n", 2),
        ("a.yaml", "- ''\n", 1),
        ("a.yaml", f"name: {SECRET}\n", 1),
        ("a.yaml", f"- {{{SECRET}\n", 2),
        ("a.yaml", b"- \xff\n", 0),
        ("a.csv", f"nome,alias\n{SECRET},\n", 1),
        ("a.csv", f"name\n{SECRET}\n{SECRET},b,c\n", 3),
        ("a.csv", f'name\n"{SECRET}"x\n', 2),
        ("a.csv", f"name,class\n{SECRET},C0\n", 2),
        ("a.csv", "name,class\n,C2\n", 2),
    ],
)
def test_a_mistake_names_its_line_and_never_quotes_it(
    tmp_path: Path, name: str, text: str | bytes, line: int
) -> None:
    with pytest.raises(ConfigError) as caught:
        read_register(written(tmp_path, name, text))
    (mistake,) = caught.value.mistakes
    assert mistake.line == line
    assert mistake.fix
    assert "Rossi" not in str(caught.value)


def test_a_register_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_register(tmp_path / "none.yaml")


def test_a_register_too_large_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="8 MiB"):
        read_register(written(tmp_path, "a.yaml", b"#" * ((8 << 20) + 1)))
