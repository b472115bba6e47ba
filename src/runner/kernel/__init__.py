# SPDX-License-Identifier: Apache-2.0
"""The words every other room speaks: frozen data, ports, errors, configuration, canonical bytes.

Owns vocabulary only. No I/O, no clock, no randomness, and no third party but pydantic (in `config`).
"""
