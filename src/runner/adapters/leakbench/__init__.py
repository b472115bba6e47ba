# SPDX-License-Identifier: Apache-2.0
"""The leak bench: plants secrets, sends them through the gate, and looks at what arrived. See README.md."""
