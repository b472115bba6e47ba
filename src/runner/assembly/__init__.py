# SPDX-License-Identifier: Apache-2.0
"""The composition root: a profile in, a wired runtime out.

Owns which capability stands behind which port, and nothing else: it judges no content and holds no rule.
The only room that imports capabilities and perimeter together. Carries I6: the topologies differ in the
profile only.
"""

from runner.assembly.backends import REMOTE, backends_of, embedders_of
from runner.assembly.places import Places, book_name, custody_of, device_vkey, places_of
from runner.assembly.registrations import registrations_of
from runner.assembly.rules import classifier_of, register_lines, rules_for, rules_of
from runner.assembly.runtime import FINDINGS, EndedBook, Runtime, construct, open_profile

__all__ = [
    "FINDINGS",
    "REMOTE",
    "EndedBook",
    "Places",
    "Runtime",
    "backends_of",
    "book_name",
    "classifier_of",
    "construct",
    "custody_of",
    "device_vkey",
    "embedders_of",
    "open_profile",
    "places_of",
    "register_lines",
    "registrations_of",
    "rules_for",
    "rules_of",
]
