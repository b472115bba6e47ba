# SPDX-License-Identifier: Apache-2.0
"""Who is asked beside the rules, and what is none that can be asked."""

from collections.abc import Sequence

from runner.kernel.errors import ConfigError
from runner.kernel.ports import Backend, SecondOpinion
from runner.perimeter.grants import Blame
from runner.perimeter.opinions import Adviser, Opinions, PluggedIn
from runner.perimeter.second_model import LocalModel


def opinions_of(model: Backend | None, others: Sequence[SecondOpinion], blame: Blame) -> Opinions | None:
    """Return who is asked beside the rules; raise `ConfigError` for one that is none, or cannot be named."""
    advisers: list[Adviser] = [] if model is None else [LocalModel(model)]
    try:
        advisers += [PluggedIn(other) for other in others]
        return Opinions(advisers) if advisers else None
    except AttributeError:
        problem, fix = "what was passed is no second opinion", "give it a name, a version and opinion(text)"
        raise ConfigError([blame(("perimeter", "classifier"), problem, fix)]) from None
    except ValueError as problem:
        fix = "give each second opinion that you pass another name"
        raise ConfigError([blame(("perimeter", "classifier"), str(problem), fix)]) from None
