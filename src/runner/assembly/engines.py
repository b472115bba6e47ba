# SPDX-License-Identifier: Apache-2.0
"""The embedded engines of a profile, and the weights they need.

Owns which model is which file. Leaves loading it to the engine.
"""

from pathlib import Path

from runner.assembly.backends import LOCAL, OPINION
from runner.assembly.blame import blame_of
from runner.capability.models import Catalogue, models_dir
from runner.capability.profile import ProfileSource
from runner.capability.transport.inprocess import EngineTransport
from runner.kernel.config import Config, LocalInference
from runner.kernel.errors import ConfigError


def engines_of(config: Config, source: ProfileSource) -> dict[str, EngineTransport]:
    """Return the embedded engines by the name of their backend, not yet loaded: one where two share a model.

    Raises `ConfigError` for a model that the catalogue does not have. Weights need not be here yet.
    """
    local, opinion = config.inference.local, config.opinion
    engine = _engine(local, ("inference", "local", "model"), source)
    second = engine if opinion is local else _engine(opinion, ("perimeter", "classifier"), source)
    named = {LOCAL: engine, OPINION: second if opinion is not None else None}
    return {name: each for name, each in named.items() if each is not None}


def _engine(
    local: LocalInference | None, where: tuple[str, ...], source: ProfileSource
) -> EngineTransport | None:
    """Return the embedded engine, not yet loaded; `where` names the model."""
    path = None if local is None else weights_of(local, where, source)
    return None if local is None or path is None else EngineTransport(path, local.context, local.threads)


def weights_of(local: LocalInference, where: tuple[str, ...], source: ProfileSource) -> Path | None:
    """Return where the weights of an embedded model are or will be; None for a model on a server.

    Raises `ConfigError` for a model that the catalogue does not have: no fetching helps there.
    """
    if local.runtime != "embedded":
        return None
    if local.weights:
        return source.resolve(local.weights, ("inference", "local", "weights"))
    entries = Catalogue.bundled().entries
    if local.model not in entries:
        fix = f"name one of: {', '.join(sorted(entries))}; or a file, with inference.local.weights"
        raise ConfigError([blame_of(source)(where, "the catalogue has no such model", fix)])
    return models_dir() / entries[local.model].file


def missing_weights(local: LocalInference, source: ProfileSource) -> str | None:
    """Return what to do about weights that are not here, None for nothing."""
    path = weights_of(local, ("inference", "local", "model"), source)
    if path is None or path.is_file():
        return None
    fix = "correct inference.local.weights" if local.weights else f"akaion models fetch {local.model}"
    return f"the weights of {local.model} are missing. Fix: {fix}"
