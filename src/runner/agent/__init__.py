# SPDX-License-Identifier: Apache-2.0
"""Orchestration: choosing, filling and checking steps. Holds only sealed clients and sealed tools."""
