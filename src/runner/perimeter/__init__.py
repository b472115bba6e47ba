# SPDX-License-Identifier: Apache-2.0
"""Judgement: values and bytes in, decisions out. Reaches the world only through kernel ports."""
