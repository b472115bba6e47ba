# SPDX-License-Identifier: Apache-2.0
"""The only code that moves bytes: HTTP, the in-process engine, and the stores on disk."""
