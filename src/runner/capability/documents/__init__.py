# SPDX-License-Identifier: Apache-2.0
"""Documents: PDF, letters, tables, mail and pages as text, read in a sandbox."""
