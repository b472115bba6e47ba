# SPDX-License-Identifier: Apache-2.0
"""What a new profile permits that an old one did not, in words.

Owns the comparison: of what may leave, and of what tools may reach. Pure: paths arrive resolved, and nothing
is opened. Leaves judging each profile to `runner.kernel.config` and `grants`. Serves I1: a standing
permission changes by editing the profile only, and whoever signs the change can read what it opens.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Final

from runner.kernel.config import Config, InferenceConfig, LocalInference, RemoteInference
from runner.kernel.ports import Effect, Root
from runner.perimeter.flows import FREE
from runner.perimeter.loosened import loosened, place_in_words, sink_in_words
from runner.perimeter.policy import Policy, ToolGrant, class_of

_CEILINGS: Final = ("none", "C0", "C1")
_WRITES: Final = {"move_to_bin": "move files to the bin", "patch_file": "change files"}
"""What a shipped tool that writes does to what is there; any other may write what it likes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """All that a profile permits: its `config`, and the `policy` compiled of its grants."""

    config: Config
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class _Difference:
    """One thing that one profile `permits`, and what the other has in its `place`, if anything."""

    permits: str
    place: str = ""

    def told(self, word: str) -> str:
        """Return it as a sentence; `word` says when the other profile holds."""
        return f"{self.permits}; {word}: {self.place}" if self.place else self.permits


def newly_permitted(old: Permissions, new: Permissions) -> tuple[str, ...]:
    """Return a sentence for each thing that `new` permits and `old` does not; none when it only narrows.

    What is said twice over is said once: a tool that is new is not also said to reach new folders.
    """
    return tuple(each.told("before") for each in _differences(old, new))


def no_longer_permitted(old: Permissions, new: Permissions) -> tuple[str, ...]:
    """Return a sentence for each thing that `old` permits and `new` does not, as `old` permits it."""
    return tuple(each.told("now") for each in _differences(new, old))


def _differences(old: Permissions, new: Permissions) -> Iterator[_Difference]:
    yield from _egress(old.config, new.config)
    yield from _grants(old.policy, new.policy)


# --- what may leave ----------------------------------------------------------------------------------


def _egress(old: Config, new: Config) -> Iterator[_Difference]:
    before, after = old.perimeter, new.perimeter
    if _CEILINGS.index(after.max_egress_class) > _CEILINGS.index(before.max_egress_class):
        yield _Difference(
            permits=f"content up to class {after.max_egress_class} may leave", place=before.max_egress_class
        )
    yield from _models(old.inference, new.inference)
    if (before.redaction, after.redaction) == ("off", "on"):
        yield _Difference(permits="C2 content may leave once what detectors find in it is replaced by tokens")
    if (before.declassification, after.declassification) == ("off", "ask"):
        yield _Difference(permits="a person may let C2 content of a task go")
    if (before.classifier_fault, after.classifier_fault) == ("deny", "as_c3"):
        yield _Difference(permits="a step goes on, with its content as C3, when the classifier fails")
    if before.classifier not in ("rules-only", after.classifier):
        yield _Difference(permits=f"content may leave without the second opinion of {before.classifier}")
    for name, word in (("c2", "C2"), ("c3", "C3")):
        grade, was = getattr(after.locality_required, name), getattr(before.locality_required, name)
        if grade < was:
            yield _Difference(
                permits=f"{word} content may reach a local model of grade {grade}", place=f"from {was} on"
            )
    yield from _registers(before.registers.model_dump(), after.registers.model_dump())
    if after.public_texts not in {None, before.public_texts}:
        yield _Difference(
            permits=f"what repeats the texts at {after.public_texts} may leave, whatever else quotes it",
            place=before.public_texts or "none",
        )


def _models(old: InferenceConfig, new: InferenceConfig) -> Iterator[_Difference]:
    yield from _remote(old.remote, new.remote)
    yield from _servers(old.local, new.local)
    if old.remote is not None and (old.prefer, new.prefer) == ("local", "remote"):
        yield _Difference(permits="tasks ask the remote model", place="the local one")


def _remote(old: RemoteInference | None, new: RemoteInference | None) -> Iterator[_Difference]:
    if new is None:
        return
    where = f"the model {new.model} at {new.endpoint}"
    if old is None:
        yield _Difference(permits=f"{where} may be asked", place="no remote model")
        old = new.model_copy(update={"embeddings": None, "credential": None})
    if (old.endpoint, old.model, old.backend) != (new.endpoint, new.model, new.backend):
        yield _Difference(permits=f"{where} may be asked", place=f"{old.model} at {old.endpoint}")
    if (new.max_class or "C1") > (old.max_class or "C1"):
        yield _Difference(
            permits=f"it may be sent content up to class {new.max_class or 'the ceiling'}",
            place=old.max_class or "",
        )
    if new.embeddings not in (None, old.embeddings):
        yield _Difference(
            permits=f"texts may be sent to its embedding model {new.embeddings}", place=old.embeddings or ""
        )
    if new.credential not in (None, old.credential):
        yield _Difference(
            permits=f"it is sent the credential {new.credential}", place=old.credential or "none"
        )


def _servers(old: LocalInference | None, new: LocalInference | None) -> Iterator[_Difference]:
    """Yield each server that gets what a local model gets, and got none of it."""
    known, named = _served_at(old), _served_at(new)
    for endpoint in sorted(named - known):
        yield _Difference(
            permits=f"the server at {endpoint} gets what a local model gets",
            place=", ".join(sorted(known)) or "no server",
        )


def _served_at(local: LocalInference | None) -> set[str]:
    named = () if local is None else (local.endpoint, local.embeddings_endpoint)
    return {endpoint for endpoint in named if endpoint is not None}


def _registers(old: dict[str, str | None], new: dict[str, str | None]) -> Iterator[_Difference]:
    if old["clients"] is not None and new["clients"] != old["clients"]:
        yield _Difference(
            permits=f"content may leave without a look for the names in the register {old['clients']}"
        )
    for name in ("own_identity", "public"):
        if new[name] is not None and new[name] != old[name]:
            yield _Difference(permits=f"what the register {new[name]} lists counts as no secret")


# --- what tools may reach ----------------------------------------------------------------------------


def _grants(old: Policy, new: Policy) -> Iterator[_Difference]:
    for tool in sorted(new.grants):
        grant, was = new.grants[tool], old.grants.get(tool)
        if was is None:
            asks = ", after a yes to each call" if grant.ask else ""
            words = f"{_reach_in_words(grant)}{sink_in_words(grant.flow.sink)}"
            does = _WRITES.get(tool, "write what it likes") if grant.effect is Effect.WRITE else "be called"
            yield _Difference(permits=f"{tool} may {does}{asks}: {words}")
            yield from _programs(grant, replace(grant, binaries=None))
            for permits, _ in loosened(tool, FREE, grant.flow, effect=grant.effect):
                yield _Difference(permits=permits)
            continue
        if was.ask and not grant.ask:
            yield _Difference(permits=f"{tool} may be called without asking")
        if grant.effect is not was.effect:
            yield _Difference(
                permits=f"{tool} is a tool that can {grant.effect.value}", place=was.effect.value
            )
        for root in grant.roots:
            yield from _root(grant, root, was)
        yield from _programs(grant, was)
        for permits, place in loosened(tool, was.flow, grant.flow, effect=grant.effect):
            yield _Difference(permits=permits, place=place)


def _programs(grant: ToolGrant, was: ToolGrant) -> Iterator[_Difference]:
    """Yield each program that may be started and could not be, or not with as much."""
    before = was.binaries or {}
    for name, rules in sorted((grant.binaries or {}).items()):
        if name not in before:
            yield _Difference(permits=f"{grant.tool} may start {name}")
        elif before[name] != rules:
            yield _Difference(permits=f"{grant.tool} may start {name} by other rules")


def _root(grant: ToolGrant, root: Root, was: ToolGrant) -> Iterator[_Difference]:
    """Yield what `grant` permits at `root` that was not: no old root holds it, or holds it closer."""
    tool, writes = grant.tool, grant.effect is Effect.WRITE
    covering = [other for other in was.roots if PurePath(root.path).is_relative_to(other.path)]
    if not covering:
        does = f"{_WRITES.get(tool, 'write')} beneath" if writes else "reach"
        yield _Difference(permits=f"{tool} may {does} {_root_in_words(root)}")
        return
    nearest = max(covering, key=lambda other: len(PurePath(other.path).parts))
    if class_of(root) < class_of(nearest):
        yield _Difference(
            permits=f"{root.path} counts as {_class_in_words(root)} for {tool}",
            place=f"{_class_in_words(nearest)}",
        )
    if nearest.matter is not None and root.matter != nearest.matter:
        now = "no matter" if root.matter is None else f"the matter {root.matter}"
        yield _Difference(
            permits=f"{root.path} belongs to {now} for {tool}", place=f"the matter {nearest.matter}"
        )
    if writes:
        yield from _written(tool, root, nearest)
    elif nearest.written and not root.written:
        yield _Difference(
            permits=f"what lies in {root.path} counts as the practice's own for {tool}",
            place="a tool could write there",
        )
    if root.redactable and not nearest.redactable:
        yield _Difference(permits=f"{root.path} may leave as C1 for {tool} once nothing is found in it")


def _written(tool: str, root: Root, was: Root) -> Iterator[_Difference]:
    """Yield what `tool` may write into `root`, a place that it could write to as `was`."""
    if class_of(root) > class_of(was):
        yield _Difference(
            permits=f"{tool} may write content up to class {class_of(root).name} into {root.path}",
            place=class_of(was).name,
        )
    if root.matter is not None and was.matter is None:
        yield _Difference(
            permits=f"{tool} may write content of the matter {root.matter} into {root.path}",
            place="of no matter",
        )


def _class_in_words(root: Root) -> str:
    return f"{class_of(root).name} by default" if root.declared is None else f"class {root.declared.name}"


def _reach_in_words(grant: ToolGrant) -> str:
    """Return where a tool that is new may read, or ask for pages."""
    if grant.url_argument is not None:
        return f"it asks for pages at {', '.join(map(place_in_words, grant.places)) or 'no host'}"
    return ", ".join(map(_root_in_words, grant.roots)) or "it reaches no folder"


def _root_in_words(root: Root) -> str:
    """Return a root that is new, with all that its grant says of what lies there."""
    redactable = ", and may leave as C1 once nothing is found in it" if root.redactable else ""
    return f"{root.path} ({_class_in_words(root)}{redactable})"
