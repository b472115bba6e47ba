# SPDX-License-Identifier: Apache-2.0
"""The program in the sandbox: it reads one document after another. See `child`."""

from runner.capability.documents.parsing.child import main

main()
