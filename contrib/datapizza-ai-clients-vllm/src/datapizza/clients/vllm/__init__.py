# SPDX-License-Identifier: Apache-2.0
"""A datapizza client for vLLM."""

from .client import VllmClient
from .constrained import ReplyError

__all__ = ["ReplyError", "VllmClient"]
