# SPDX-License-Identifier: Apache-2.0
"""Measures whether a model calls tools rightly, tier by tier, through the code that a run uses."""
