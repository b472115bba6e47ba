# SPDX-License-Identifier: Apache-2.0
"""The seam to datapizza: a sealed client for its agents, its tools as host tools, its clients as codecs.

Owns the three public names. Leaves everything datapizza does itself, its tools included, outside the
perimeter: see the README beside this file.
"""

from runner.adapters.datapizza.client import SealedDatapizzaClient
from runner.adapters.datapizza.tools import host_tools
from runner.capability.backends.datapizza import from_datapizza

__all__ = ["SealedDatapizzaClient", "from_datapizza", "host_tools"]
