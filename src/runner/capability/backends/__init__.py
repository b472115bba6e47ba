# SPDX-License-Identifier: Apache-2.0
"""One codec per runtime: typed request to exact bytes, reply bytes to text. None of them does I/O."""
