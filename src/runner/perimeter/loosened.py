# SPDX-License-Identifier: Apache-2.0
"""What a changed grant newly lets into a tool's arguments, in words.

Owns the comparison of two flows: limits, calls, what a tool's results count for, and what vouches for
critical values. It errs one way: where two of them cannot be compared, the new one is told as wider. Leaves
folders and what may leave by inference to `widening.py`. Serves I1.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, assert_never

from runner.kernel.language import how_many
from runner.kernel.ports import Effect
from runner.kernel.web import Login, Place, is_prefix
from runner.perimeter.effects import own_label
from runner.perimeter.flow import is_beneath, same
from runner.perimeter.flows import (
    Case,
    Flow,
    Limits,
    Listed,
    LookedUp,
    NamedSource,
    Reads,
    Sink,
    SinkKind,
    Unread,
    UpTo,
    Vouch,
)

Told: TypeAlias = tuple[str, str]
"""What is permitted, and what was in its place."""
_ANYTHING: Final = Limits()


def loosened(tool: str, was: Flow, now: Flow, *, effect: Effect) -> Iterator[Told]:
    """Yield what `now` lets `tool`, of the kind `effect`, be given, or called, that `was` did not."""
    for name, limits in sorted(was.limits.items()):
        for what in _of_limits(limits, now.limits.get(name, _ANYTHING)):
            yield f"{tool} may be given {name} {what}", "a limit on it"
    yield from _of_logins(tool, _places(was), _places(now))
    if was.calls is not None and (now.calls is None or now.calls > was.calls):
        yield f"{tool} may be called {_times(now.calls)} in a task", _times(was.calls)
    before, after = _reads(was, effect), _reads(now, effect)
    if after.data_class < before.data_class:
        yield f"what {tool} returns counts as class {after.data_class.name}", before.data_class.name
    if after.integrity > before.integrity:
        yield f"what {tool} returns may vouch for values", "anybody may have written it"
    if more := after.minted - before.minted:
        yield (
            f"{', '.join(sorted(more))} of what {tool} returns may vouch for values",
            "anybody may have written it",
        )
    if before.most is not None and (after.most is None or after.most > before.most):
        what = "whatever" if after.most is None else f"texts up to class {after.most.name} of what"
        yield f"a task sees {what} {tool} returns", f"texts up to class {before.most.name}"
    if was.sink is not None:
        yield from _of_sink(tool, was.sink, now.sink)


def sink_in_words(sink: Sink | None) -> str:
    """Return where a sink carries things, to put behind what else a grant permits; "" for none."""
    if sink is None:
        return ""
    free = ", ".join(sorted(sink.payload))
    chosen = f", the model choosing {free}" if free else ""
    return f"; it carries content up to class {sink.ceiling.name} to {sink.kind.value}{chosen}"


def _reads(flow: Flow, effect: Effect) -> Reads:
    """Return what a tool's results count for: what its grant says, or what they do when it does not."""
    return flow.reads or Reads(data_class=own_label(effect, (), None).data_class)


def _times(calls: int | None) -> str:
    return "any number of times" if calls is None else how_many(calls, "time")


def _of_limits(was: Limits, now: Limits) -> Iterator[str]:
    if was.enum is not None and not _is_within(now.enum, was.enum):
        yield "outside the values that were listed"
    if was.beneath is not None and not all(
        any(is_beneath(path, top) for top in was.beneath) for path in now.beneath or ("",)
    ):
        yield f"outside {', '.join(was.beneath)}"
    if was.hosts is not None and not set(now.hosts or ("",)) <= set(was.hosts):
        yield f"at other hosts than {', '.join(was.hosts)}"
    if was.places is not None:
        new = (place for place in now.places or () if not any(_covers(old, place) for old in was.places))
        yield from (f"at {place_in_words(place)}" for place in new)
    if was.pattern is not None and now.pattern != was.pattern:
        yield "of another form"
    for name, word, sign in (
        ("max_length", "longer", 1),
        ("maximum", "larger", 1),
        ("minimum", "smaller", -1),
    ):
        old, new = getattr(was, name), getattr(now, name)
        if old is not None and (new is None or sign * new > sign * old):
            yield f"{word} than {old}"
    if was.named and not now.named:
        yield "that the user did not name"


def place_in_words(place: Place) -> str:
    """Return where pages may be asked for."""
    host = f"every host below {place.host[2:]}" if place.is_open else place.host
    port = "" if place.port is None else f" port {place.port}"
    paths = "" if "/" in place.paths else f" below {', '.join(place.paths)}"
    return f"{host}{port}{paths}{', without encryption too' if place.plain else ''}"


def login_in_words(place: Place) -> str:
    """Return where pages may be asked for, and as whom."""
    login = "" if place.login is None else f" with {_login_in_words(place.login)}"
    return place_in_words(place) + login


def _of_logins(tool: str, was: Sequence[Place], now: Sequence[Place]) -> Iterator[Told]:
    """Yield each place where a tool may ask as somebody, and might not, or as somebody else."""
    for place in now:
        here = [old for old in was if (old.host, old.port) == (place.host, place.port)]
        if place.login is None or any(old.login == place.login and _covers(old, place) for old in here):
            continue
        logins = dict.fromkeys(login_in_words(old) for old in here if old.login is not None)
        yield (
            f"{tool} may log in to {login_in_words(place)}",
            ", ".join(logins) or "without a credential",
        )


def _places(flow: Flow) -> tuple[Place, ...]:
    return tuple(place for limits in flow.limits.values() for place in limits.places or ())


def _login_in_words(login: Login) -> str:
    header = "" if login.header is None else f" in the header {login.header}"
    return f"the credential {login.credential}{header}"


def _covers(old: Place, new: Place) -> bool:
    """Return whether all that lies in `new` lies in `old`."""
    named = new.host == old.host or (old.is_open and new.host.endswith(old.host[1:]))
    paths = all(any(is_prefix(path, prefix) for prefix in old.paths) for path in new.paths)
    return named and old.port == new.port and old.plain >= new.plain and paths


def _is_within(values: tuple[object, ...] | None, others: tuple[object, ...]) -> bool:
    return values is not None and all(any(same(each, other) for other in others) for each in values)


def _of_sink(tool: str, was: Sink, now: Sink | None) -> Iterator[Told]:
    if now is None:
        yield f"{tool} may be given anything, by anybody", "it was a sink"
        return
    if now.ceiling > was.ceiling:
        yield f"{tool} may carry content up to class {now.ceiling.name}", was.ceiling.name
    if was.kind is SinkKind.DRAFT:
        return
    if now.kind is SinkKind.DRAFT:
        yield f"{tool} may be given anything that is not above its class, by anybody", "it was no draft"
        return
    for case in now.cases or ({},):
        looser = min((_looser(was, old, now, case) for old in was.cases or ({},)), key=len)
        for name in looser:
            yield f"{tool} may be given {name} {_in_words(now, case, name)}", "the user had to name it"


def _looser(was: Sink, old: Case, now: Sink, case: Case) -> tuple[str, ...]:
    """Return the arguments for which `case` of `now` asks for less than `old` of `was`."""
    names = sorted(was.payload | now.payload | set(old) | set(case))
    return tuple(name for name in names if not _is_covered(_asks(now, case, name), _asks(was, old, name)))


def _asks(sink: Sink, case: Case, name: str) -> tuple[Vouch, ...] | None:
    """Return what may vouch for the argument `name`; None where it is payload, which needs nobody to."""
    return None if name in sink.payload and name not in case else case.get(name, ())


def _is_covered(new: tuple[Vouch, ...] | None, old: tuple[Vouch, ...] | None) -> bool:
    if old is None:
        return True
    return new is not None and all(any(_vouches_less(each, other) for other in old) for each in new)


def _vouches_less(one: Vouch, other: Vouch) -> bool:
    """Return whether `other` vouches for all that `one` does."""
    match one, other:
        case Listed(), Listed():
            return _is_within(one.values, other.values)
        case UpTo(), UpTo():
            return one.most <= other.most
        case _:
            return one == other


def _in_words(sink: Sink, case: Case, name: str) -> str:
    vouches = _asks(sink, case, name)
    if vouches is None:
        return "that the model chose"
    return " or ".join(["that the user named", *map(_vouch_in_words, vouches)])


def _vouch_in_words(vouch: Vouch) -> str:
    match vouch:
        case Listed():
            return f"one of {', '.join(str(each) for each in vouch.values)}"
        case UpTo():
            return f"a number up to {vouch.most:g}"
        case LookedUp():
            key = "" if vouch.key is None else f" whose {vouch.key} the user named"
            where = "".join(f", where {name} is listed" for name in sorted(vouch.where or {}))
            return f"{vouch.field or 'an item'} that {vouch.tool} returned{key}{where}"
        case NamedSource():
            return f"what {vouch.tool} returned for what the user named"
        case Unread():
            return "that the model made up before it read anything"
        case _:
            assert_never(vouch)
