# SPDX-License-Identifier: Apache-2.0
"""A datapizza client for llama-server."""

from .client import LlamaCppClient
from .constrained import ReplyError

__all__ = ["LlamaCppClient", "ReplyError"]
