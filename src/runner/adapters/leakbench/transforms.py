# SPDX-License-Identifier: Apache-2.0
"""The spellings under which a secret is planted.

Owns the table: a transform is a name, a function from text to text, and whether the detectors claim to read
it. Those that they do not claim are here on purpose: labels must hold where nothing can be recognised.
Standard library only; each is written from its own specification, and none is shared with a detector.
"""

import base64
import codecs
import gzip
import json
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """A way to write a text otherwise. `readable`: the detectors claim to read it.

    `folds_case`: letters come out of it in one case only.
    """

    name: str
    apply: Callable[[str], str]
    readable: bool = True
    folds_case: bool = False


def _between(sign: str) -> Callable[[str], str]:
    """Return the transform that puts `sign` between the characters of each word, and three between words."""
    return lambda text: (sign * 3).join(sign.join(word) for word in text.split(" "))


_LOOK_ALIKE: Final = str.maketrans("ABEKMHOPCTXaeopcxyi", "АВЕКМНОРСТХаеорсхуі")
_WIDE: Final = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
_LEET: Final = str.maketrans("aeiostAEIOST", "431057431057")
_DIGITS: Final = ("zero", "uno", "due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove")
_NATO: Final = (
    *("Alfa", "Bravo", "Charlie", "Delta", "Echo", "Foxtrot", "Golf", "Hotel", "India", "Juliett", "Kilo"),
    *("Lima", "Mike", "November", "Oscar", "Papa", "Quebec", "Romeo", "Sierra", "Tango", "Uniform", "Victor"),
    *("Whiskey", "Xray", "Yankee", "Zulu"),
)
_MORSE: Final = dict(
    entry.split("=")
    for entry in (
        *("A=.-", "B=-...", "C=-.-.", "D=-..", "E=.", "F=..-.", "G=--.", "H=....", "I=..", "J=.---"),
        *("K=-.-", "L=.-..", "M=--", "N=-.", "O=---", "P=.--.", "Q=--.-", "R=.-.", "S=...", "T=-"),
        *("U=..-", "V=...-", "W=.--", "X=-..-", "Y=-.--", "Z=--..", "0=-----", "1=.----", "2=..---"),
        *("3=...--", "4=....-", "5=.....", "6=-....", "7=--...", "8=---..", "9=----."),
    )
)
_COVER: Final = "laripresadeilavorièprevistaperilmeseprossimosalvodiversaindicazionedelladirezione"
_MASK: Final = 0x5A


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _half(text: str) -> str:
    """Return `text` with a line end in its middle, at a space if one is near."""
    middle = len(text) // 2
    space = text.find(" ", middle, middle + 4)
    return f"{text[:space]}\n{text[space + 1 :]}" if space > 0 else f"{text[:middle]}\n{text[middle:]}"


def _interleaved(text: str) -> str:
    return "".join(each + _COVER[index % len(_COVER)] for index, each in enumerate(text))


def _spoken(text: str) -> str:
    return " ".join(_DIGITS[int(each)] if each in "0123456789" else each for each in text)


def _nato(text: str) -> str:
    """Return `text` spelled out; a character that no alphabet has stands for itself."""
    plain = unicodedata.normalize("NFKD", text).upper()
    return " ".join(
        _NATO[ord(each) - ord("A")]
        if "A" <= each <= "Z"
        else _DIGITS[int(each)]
        if each in "0123456789"
        else each
        for each in plain
        if not unicodedata.combining(each)
    )


def _morse(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).upper()
    return " ".join(_MORSE.get(each, "/") for each in plain if not unicodedata.combining(each))


def _entities(text: str) -> str:
    return "".join(f"&#{ord(each)};" for each in text)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


TRANSFORMS: Final = (
    Transform(name="plain", apply=str),
    Transform(name="upper case", apply=str.upper, folds_case=True),
    Transform(name="lower case", apply=str.lower, folds_case=True),
    Transform(name="spaces between", apply=_between(" ")),
    Transform(name="dots between", apply=_between(".")),
    Transform(name="dashes between", apply=_between("-")),
    Transform(name="zero width", apply="\u200b".join),
    Transform(name="homoglyphs", apply=lambda text: text.translate(_LOOK_ALIKE)),
    Transform(name="full width", apply=lambda text: text.translate(_WIDE)),
    Transform(name="decomposed (NFD)", apply=lambda text: unicodedata.normalize("NFD", text)),
    Transform(name="base64", apply=_base64),
    Transform(
        name="base64url", apply=lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    ),
    Transform(name="hexadecimal", apply=lambda text: text.encode().hex()),
    Transform(name="percent", apply=_percent),
    Transform(name="percent twice", apply=lambda text: _percent(text).replace("%", "%25")),
    Transform(
        name="quoted-printable",
        apply=lambda text: "".join(f"={byte:02X}" for byte in text.encode()),
    ),
    Transform(name="HTML entities", apply=_entities),
    Transform(name="\\uXXXX", apply=lambda text: "".join(f"\\u{ord(each):04x}" for each in text)),
    Transform(
        name="gzip, base64",
        apply=lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
    ),
    Transform(name="base64 twice", apply=lambda text: _base64(_base64(text))),
    Transform(name="JSON in a text", apply=lambda text: json.dumps({"v": text})),
    Transform(name="line end inside", apply=_half, readable=False),
    Transform(name="reversed", apply=lambda text: text[::-1], readable=False),
    Transform(name="rot13", apply=lambda text: codecs.encode(text, "rot13"), readable=False),
    Transform(name="interleaved", apply=_interleaved, readable=False),
    Transform(name="leet", apply=lambda text: text.translate(_LEET), readable=False),
    Transform(name="digits in words", apply=_spoken, readable=False),
    Transform(name="spelling alphabet", apply=_nato, readable=False, folds_case=True),
    Transform(
        name="masked, hexadecimal",
        apply=lambda text: bytes(b ^ _MASK for b in text.encode()).hex(),
        readable=False,
    ),
    Transform(name="Morse", apply=_morse, readable=False, folds_case=True),
)
"""The transforms, those that the detectors claim to read first."""
