# SPDX-License-Identifier: Apache-2.0
"""P3: a sandbox is there exactly where one can be built; the tests that need one are skipped nowhere else."""

import shutil
import subprocess

import pytest

from runner.capability.sandbox.bubblewrap import why_not


def test_p3_a_sandbox_is_built_wherever_bubblewrap_can_build_one() -> None:
    """Without this, a launcher that never works would pass as a machine that has no sandbox."""
    bwrap = shutil.which("bwrap", path="/usr/bin:/bin")
    if bwrap is None:
        reason = why_not()
        assert reason is not None
        assert "Fix: install" in reason
        pytest.skip("bubblewrap is not installed here")
    walls = ["--unshare-all", "--unshare-user", "--disable-userns", "--ro-bind", "/", "/", "--", "true"]
    here = subprocess.run([bwrap, *walls], check=False, capture_output=True).returncode == 0
    told = subprocess.run([bwrap, "--help"], check=False, capture_output=True)
    able = here and b"--ro-bind-fd" in told.stdout + told.stderr
    assert (why_not() is None) is able
