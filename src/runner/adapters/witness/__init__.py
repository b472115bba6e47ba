# SPDX-License-Identifier: Apache-2.0
"""A small witness: a second machine that remembers how long each book was, and with which root."""
