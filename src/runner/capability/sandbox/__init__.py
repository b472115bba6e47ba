# SPDX-License-Identifier: Apache-2.0
"""Programs in a sandbox: what they are given, how they are started, what the kernel refuses them."""
