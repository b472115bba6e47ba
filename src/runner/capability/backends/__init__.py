# SPDX-License-Identifier: Apache-2.0
"""Pure codecs, one per runtime protocol: typed request to wire bytes, and wire bytes to reply."""
