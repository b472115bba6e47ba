# SPDX-License-Identifier: Apache-2.0
"""What measurements have in common when they are told: one HTML file, its plots, and how sure a share is."""
