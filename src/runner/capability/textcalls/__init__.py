# SPDX-License-Identifier: Apache-2.0
"""Calls that a model wrote as text: found, read strictly, repaired where only one reading exists.

The public words of the room. What each file owns is in its README. Carries P2 from below: what is truncated
or can be read in two ways is not a call.
"""

from runner.capability.textcalls.parse import ParsedCall, ParsedCalls, parse_calls
from runner.capability.textcalls.reader import TextCallReader
from runner.capability.textcalls.stream import CallStream

__all__ = ("CallStream", "ParsedCall", "ParsedCalls", "TextCallReader", "parse_calls")
