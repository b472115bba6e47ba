# SPDX-License-Identifier: Apache-2.0
"""How people and programs reach the runner: the command line and the bridges."""
