# SPDX-License-Identifier: Apache-2.0
"""Whether the name of a host carries data: asking for an address already sends it to whoever answers.

Owns the one question of shape, and whether an ending of names is one owner's. What can be read in a name is
judged as any text of the request (`texts.py`); this is about what cannot: pieces of something, encoded or
encrypted, in place of words. Asked only of a host that whoever composed the request could choose. Leaves
which hosts may be asked to the terms of a backend, and to the grant of a tool.
"""

import re
from typing import Final

from runner.kernel.labels import DataClass

_REGISTERED: Final = 2
"""Labels at the end of a name that somebody registered. The third under `.co.uk` counts as a word."""
_WORDS: Final = 4
"""Labels in front of them that names of services have: `account.privatelink.blob.core.windows.net`."""
_DATA: Final = re.compile(r"(?=[A-Za-z]*[0-9])[0-9A-Za-z]{16,}")
"""Sixteen letters and digits in a row, a digit among them. Names of services break earlier, or are words."""


_SECOND: Final = frozenset(
    {"ac", "asn", "co", "com", "edu", "gob", "gouv", "gov", "gv", "ltd", "me", "mil", "ne", "net", "nhs"}
    | {"nom", "or", "org", "plc", "sch"}
)
"""Labels under which countries register names, as in `.co.uk`."""
_COUNTRY: Final = 2
_SHARED: Final = frozenset(
    {"amazonaws.com", "appspot.com", "azureedge.net", "azurewebsites.net", "blogspot.com", "cloudfront.net"}
    | {"firebaseapp.com", "github.io", "gitlab.io", "herokuapp.com", "netlify.app", "ngrok.io", "pages.dev"}
    | {"r2.dev", "sharepoint.com", "vercel.app", "web.app", "windows.net", "wordpress.com", "workers.dev"}
)
"""Some names below which a provider gives names to anybody. The public suffix list has thousands."""


def is_shared(ending: str) -> bool:
    """Return whether names that end in `ending` are known to belong to many: no answer says they do not."""
    first, *rest = ending.split(".")
    country = len(rest) == 1 and len(rest[0]) == _COUNTRY and first in _SECOND
    return not rest or country or any(ending == each or ending.endswith(f".{each}") for each in _SHARED)


def class_of_host(host: str) -> DataClass:
    """Return C2 for a name that carries data in front of what is registered, C0 for any other."""
    labels = host.rstrip(".").split(".")[:-_REGISTERED]
    carries = len(labels) > _WORDS or any(_DATA.search(label) for label in labels)
    return DataClass.C2 if carries else DataClass.C0
