# SPDX-License-Identifier: Apache-2.0
"""What a verified record says of its runs, and the pack of evidence that is handed on."""
