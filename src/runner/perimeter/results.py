# SPDX-License-Identifier: Apache-2.0
"""What may fail around a send, and how it ended, on record: once, whatever happens before its answer.

Owns the translation of failures into a status, and of foreign faults into our words (I12). Leaves the order
of a send to `client.py` and `embed.py`. Carries I4: each send that went out has one `egress_result`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from runner.kernel.canonical import MAX_INTEGER
from runner.kernel.errors import BackendError, RunnerError, TraceUnavailable, TransportError
from runner.kernel.inference import Usage, WireRequest
from runner.kernel.tiers import CallFailure, Tier
from runner.perimeter.trace import records
from runner.perimeter.trace.log import Trace

_UNKNOWN: Final = Usage()


def encoded(backend: str, encode: Callable[[], WireRequest]) -> WireRequest:
    """Return the bytes that `encode` makes; raise `BackendError` when the codec fails, however it does."""
    problem = f"backend {backend!r}: the request could not be encoded"
    try:
        wire: object = encode()
    except RunnerError:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign fault is translated, its text dropped (I12)
        raise BackendError(f"{problem} ({type(error).__name__})") from None
    if not isinstance(wire, WireRequest) or not isinstance(wire.body, bytes):
        raise BackendError(f"{problem} (the codec returned no request)")
    return wire


@contextmanager
def failures_on_record(
    trace: Trace, sent: records.Egress, *, task: str, tier: Tier | None = None
) -> Iterator[None]:
    """Put how `sent` failed on record before that is raised: its sealing, the exchange, what comes of it.

    `tier` is how its reply was to be held to a form: then a failure of the backend is one of that tier.
    Raises `TransportError` for a `TimeoutError`, and `BackendError` for any fault that is not the runner's:
    what it says is dropped. What ends it otherwise, such as a cancellation, passes.
    """
    try:
        yield
    except TimeoutError:
        _record_failure(trace, sent, "timeout", task)
        raise TransportError(f"backend {sent.backend!r} did not answer in time") from None
    except TraceUnavailable:
        raise  # there is no record to put it on
    except RunnerError as error:
        _record_failure(trace, sent, "error", task, tier if isinstance(error, BackendError) else None)
        raise
    except Exception as error:  # noqa: BLE001 - a foreign fault is translated, its text dropped (I12)
        _record_failure(trace, sent, "error", task, tier)
        problem = f"backend {sent.backend!r}: its reply could not be read ({type(error).__name__})"
        raise BackendError(problem) from None
    except BaseException:  # cancelled, interrupted, closed: a send has a result whatever ends it
        _record_failure(trace, sent, "cancelled", task)
        raise


def _record_failure(
    trace: Trace, sent: records.Egress, status: records.Status, task: str, tier: Tier | None = None
) -> None:
    """Put on record how `sent` failed, behind its own seal: it may have been cancelled before that."""
    trace.barrier()
    failure = None if tier is None else CallFailure.REFUSED
    record_result(trace, sent, status, task=task, tier=tier, failure=failure)


def record_result(
    trace: Trace,
    sent: records.Egress,
    status: records.Status,
    *,
    task: str,
    size: int = 0,
    block: str | None = None,
    tier: Tier | None = None,
    failure: CallFailure | None = None,
    usage: Usage = _UNKNOWN,
) -> None:
    """Put on record that `sent` ended with `status`, its answer of `size` bytes being `block`.

    `tier` is how the reply was to be held to a form, and `failure` why that was of no use. `usage` is what
    the backend counted.
    """
    result = records.EgressResult(
        call_id=sent.call_id,
        send_id=sent.send_id,
        status=status,
        bytes=size,
        block=block,
        tier=tier,
        failure=failure,
        x_tokens_in=_counted(usage.prompt_tokens),
        x_tokens_out=_counted(usage.completion_tokens),
    )
    trace.append(result, task=task)


def _counted(figure: object) -> int | None:
    """Return `figure` if it is a count that a record takes, and says something: codecs are anybody's code."""
    return figure if type(figure) is int and 0 < figure <= MAX_INTEGER else None
