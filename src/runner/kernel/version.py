# SPDX-License-Identifier: Apache-2.0
"""The version of this distribution, in one place."""

from typing import Final

__version__: Final = "0.1.0"
