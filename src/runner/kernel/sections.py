# SPDX-License-Identifier: Apache-2.0
"""The sections of a profile that say where the values of a tool's call come from and where they go.

Owns their shape, and the base that every section of a profile shares. Leaves what a tool really takes to the
compiling of grants, and what the words mean to `runner.perimeter.flows`. Carries I6 and I1: no key of these
has a default that allows, except that an absent `sink` says the tool is none.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

NAME_FORM: Final = r"^[a-z][a-z0-9_-]{0,63}$"
ClassName = Literal["C0", "C1", "C2", "C3"]
ToolName = Annotated[str, Field(pattern=NAME_FORM)]
Value = str | int | float | bool


class Section(BaseModel):
    """A part of a profile: no unknown key, no guessing of types, no value in a message (I12)."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)


class LimitsConfig(Section):
    """What an argument must be, whoever chose it. What is not is denied."""

    enum: tuple[Value, ...] | None = Field(default=None, min_length=1)
    beneath: tuple[str, ...] | None = Field(default=None, min_length=1)
    hosts: tuple[str, ...] | None = Field(default=None, min_length=1)
    pattern: str | None = None
    max_length: int | None = Field(default=None, ge=0)
    minimum: float | None = None
    maximum: float | None = None
    named: bool = False


class VouchConfig(Section):
    """What stands for a critical value that the user did not name. Exactly one of the first five."""

    values: tuple[Value, ...] | None = Field(default=None, min_length=1)
    up_to: float | None = Field(default=None, gt=0)
    lookup: ToolName | None = None
    source: ToolName | None = None
    unread: Literal[True] | None = None
    field: str | None = Field(default=None, min_length=1)
    """With `lookup`: the member of a record that is the value."""
    key: str | None = Field(default=None, min_length=1)
    """With `lookup`: the member that the user's words must name, in one record only."""
    where: Mapping[str, tuple[Value, ...]] | None = Field(default=None, min_length=1)
    """With `key`: what other members of that record must be, each one of the values listed."""

    @model_validator(mode="after")
    def _is_one(self) -> "VouchConfig":
        kinds = (self.values, self.up_to, self.lookup, self.source, self.unread)
        if sum(kind is not None for kind in kinds) != 1:
            problem = "this says not one thing that vouches, but none or several"
            raise ValueError(problem, "write one of values, up_to, lookup, source and unread in each item")
        if self.lookup is None and (self.field is not None or self.key is not None):
            raise ValueError("field and key say where a lookup looks", "add lookup, or remove them")
        if self.key is not None and self.field is None:
            raise ValueError("a key without a field finds a record and no value", "add field")
        if self.where is not None and self.key is None:
            raise ValueError("where says more of the record that a key finds", "add key, or remove it")
        return self


class ReadsConfig(Section):
    """What a program's own tool returns."""

    data_class: ClassName = Field(alias="class")
    integrity: Literal["untrusted", "practice"] = "untrusted"
    minted: tuple[str, ...] = ()
    """The members of its records that the system behind it writes, and nobody else."""
    max_class: ClassName | None = None
    """Texts of a JSON result in which detectors find more than this are withheld from the task."""


class SinkConfig(Section):
    """Where a tool carries its arguments. What is no payload is critical."""

    to: Literal["network", "write", "shell", "draft"]
    max_class: ClassName
    payload: tuple[str, ...] = ()
    cases: tuple[Mapping[str, tuple[VouchConfig, ...]], ...] = ()

    @model_validator(mode="after")
    def _draft_has_no_cases(self) -> "SinkConfig":
        if self.to == "draft" and (self.cases or self.payload):
            problem = "nobody is asked about a draft: it has no critical argument"
            raise ValueError(problem, "remove cases and payload, or write to: write")
        return self
