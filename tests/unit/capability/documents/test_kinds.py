# SPDX-License-Identifier: Apache-2.0
"""P2: what a file is, is found on the host and before any sandbox, so no file may hold it up."""

import subprocess
import sys

import pytest

from runner.capability.documents.kinds import Family, family_of

# A head has half a second of processor, and needs some milliseconds; past it, the kernel ends the program.
_SWEEP = """
import signal

from runner.capability.documents.kinds import family_of

ALLOWED_S = 0.5

def timed(data):
    signal.setitimer(signal.ITIMER_VIRTUAL, ALLOWED_S)
    family_of(data)

PIECES = (
    b"<!--", b"-->", b"--><!--", b"<!---->", b"<?xml ", b">", b"<", b" ", b"\\n", b"\\r\\n", b"\\t", b":",
    b"-", b"<!doctype", b"<html", b"From ", b"a", b"A: b\\n", b"A: b\\n ", b"Date", b"MI", b"-----BEGIN ",
    b"%PDF",
)
SIZE = 1 << 20

for lead in (b"", *PIECES):
    for piece in PIECES:
        timed(lead + piece * (SIZE // len(piece)))
        timed(lead + b"<!--" + piece * (SIZE // len(piece)))
print("done")
"""
_DEADLINE_S = 600


def test_p2_no_head_of_a_file_holds_up_the_host() -> None:
    """Each of a thousand files of 1 MiB, made of what the patterns look for, again and again."""
    done = subprocess.run(
        [sys.executable, "-c", _SWEEP], capture_output=True, text=True, timeout=_DEADLINE_S, check=True
    )
    assert done.stdout == "done\n"


@pytest.mark.parametrize(
    ("head", "family"),
    [
        (b"<!-- uno --> <!----> \n<!-- a > b --><HTML>", Family.HTML),
        (b'\xef\xbb\xbf <?xml version="1.0"?>\n<!-- due -->\n<!DOCTYPE  html>', Family.HTML),
        (b"<!--" + b"--><!--" * 9 + b"--><body>", Family.HTML),
        (b"<!-- " + b"a" * 5000 + b" --><head>", Family.HTML),
        (b"<!-- open <html>", Family.TEXT),
        (b"<htmlx>", Family.TEXT),
        (b'<?xml version="1.0"?><!-- x --><postacert>', Family.XML),
        (b"Received: from a\r\n\tby b\r\n (c)\r\nFrom: a@b.example\r\n\r\n", Family.EML),
        (b"From a Mon\r\nMessage-ID : <1@b>\r\nDate: oggi\r\n", Family.EML),
    ],
    ids=["comments", "declared", "many", "long", "open", "other", "xml", "folded", "mbox"],
)
def test_a_page_and_a_mail_are_known_by_how_they_begin(head: bytes, family: Family) -> None:
    assert family_of(head) == family
