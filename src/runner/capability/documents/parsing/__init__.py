# SPDX-License-Identifier: Apache-2.0
"""What runs inside the sandbox: one small parser for each format. It knows nothing else of the runner."""
