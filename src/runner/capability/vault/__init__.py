# SPDX-License-Identifier: Apache-2.0
"""The vault: an index of the granted folders that holds no readable text, and a search that quotes files."""
