# SPDX-License-Identifier: Apache-2.0
"""Akaion Runner: a sovereign agent runtime."""
