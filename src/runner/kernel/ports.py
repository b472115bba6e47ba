# SPDX-License-Identifier: Apache-2.0
"""Ports: what the inner rooms need from the world, as Protocols.

`runner.capability` implements them, `runner.assembly` joins the two, `runner.testing` has a public
fake of each. Interfaces hold no logic.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NoReturn, Protocol, TypeAlias, runtime_checkable

from runner.kernel.capabilities import Capabilities, Facts, Mechanism
from runner.kernel.inference import (
    Address,
    Answer,
    EmbeddingReply,
    EmbeddingRequest,
    InferenceReply,
    InferenceRequest,
    WireReply,
    WireRequest,
    WrittenCall,
)
from runner.kernel.labels import DataClass
from runner.kernel.messages import JsonObject, ToolSpec
from runner.kernel.opinions import Opinion
from runner.kernel.probing import Canary, Heard
from runner.kernel.tiers import CallFailure
from runner.kernel.web import Url


class Clock(Protocol):
    """Time, so that a test can own it."""

    def now_us(self) -> int:
        """Return the wall clock in microseconds since the Unix epoch, UTC."""

    def monotonic(self) -> float:
        """Return a clock in seconds that never goes back."""


class Entropy(Protocol):
    """Unpredictable bytes."""

    def token(self, size: int) -> bytes:
        """Return `size` random bytes fit for salts and ids."""

    def fill(self, secret: bytearray) -> None:
        """Overwrite every byte of `secret` with random bytes fit for a key, and keep no copy of them."""


# --- inference ---------------------------------------------------------------------------------


class Locality(StrEnum):
    """How far "this backend is local" was checked (I10). Ordered by `rank`."""

    REMOTE = "remote"
    """Not local, or nothing was checked."""
    L0 = "L0"
    """Declared: the profile says local and the address is loopback."""
    L1 = "L1"
    """Fingerprinted: L0, and the server's own listing agrees."""
    L2 = "L2"
    """Contained: embedded in this process, or launched by us without egress."""

    @property
    def rank(self) -> int:
        """Return 0 for remote up to 3 for contained."""
        return tuple(Locality).index(self)


class Decoder(Protocol):
    """Turns the bytes of one reply into an `InferenceReply`, whatever their chunking."""

    def feed(self, chunk: bytes) -> str:
        """Take the next body bytes; return the text that became visible (may be empty)."""

    def finish(self) -> InferenceReply:
        """Return the whole reply; raise `BackendError` when the bytes were not one."""


class Endpoint(Protocol):
    """What the record says about a configured model: the part that every codec has."""

    @property
    def name(self) -> str:
        """The configured name, as in the trace."""

    @property
    def model(self) -> str:
        """The model it asks for."""

    @property
    def address(self) -> Address:
        """Where its wire requests go."""


class Backend(Endpoint, Protocol):
    """A pure codec for one runtime: does no I/O, holds no state between requests."""

    def encode(self, request: InferenceRequest) -> WireRequest:
        """Return the exact bytes for `request`; raise `BackendError` if it cannot be expressed."""

    def decoder(self, request: InferenceRequest, status: int) -> Decoder:
        """Return a decoder for the reply to `request` that arrived with `status`."""


@runtime_checkable
class Probeable(Backend, Protocol):
    """A codec that knows how its runtime is asked what it does. Pure, as every codec is."""

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What to try, in order. The first is what `encode` holds a reply to a schema with."""

    @property
    def other_forms(self) -> tuple[Mechanism, ...]:
        """What the protocol also has a place for and this codec never uses, in order."""

    @property
    def wrapped(self) -> bool:
        """Whether the runtime takes schemas of objects only."""

    def canary(self, canary: Canary) -> WireRequest:
        """Return the exact bytes of `canary`: for the first of `mechanisms`, as `encode` has it.

        Raises `BackendError` for one that it cannot express.
        """

    def heard(self, body: bytes) -> Heard:
        """Return what `body`, the whole reply to a canary, says; raise `BackendError`."""

    @property
    def facts_asked(self) -> tuple[WireRequest, ...]:
        """What to ask the runtime about itself: its build, model and template. Holds no content."""

    def facts(self, answers: Sequence[Answer | None]) -> Facts:
        """Return what `answers` (None: there was none) say, in the order of `facts_asked`. Total."""


class FindingStore(Protocol):
    """Keeps what backends were seen to do from one start to the next, for this user only."""

    def find(self, key: str) -> Capabilities | None:
        """Return what was kept under `key` (64 hex digits); None for nothing, or nothing to be believed."""

    def keep(self, key: str, found: Capabilities) -> None:
        """Keep `found` under `key`, whole or not at all. What cannot be kept is found again next time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRead:
    """What the text of a reply asks for: `calls`, all of them, or the `failure` for which there are none.

    `where` says in our words where that was seen; it quotes nothing.
    """

    calls: tuple[WrittenCall, ...] = ()
    failure: CallFailure | None = None
    where: str = ""


class CallReader(Protocol):
    """Reads calls that a model wrote as text. Total and pure."""

    def read(self, text: str, tools: Mapping[str, JsonObject], *, finished: bool) -> TextRead:
        """Return the calls in `text`, the reply of a model that was offered `tools` (name to JSON Schema).

        `finished` says that the model ended its reply by itself.
        """

    def shown(self, tools: Mapping[str, JsonObject]) -> Callable[[str], str]:
        """Return what takes each piece of such a reply and returns what is surely no part of a call."""


class Embedder(Endpoint, Protocol):
    """A pure codec for an endpoint that turns texts into vectors, under a name of its own in the trace."""

    def encode(self, request: EmbeddingRequest) -> WireRequest:
        """Return the exact bytes for the whole batch; raise `BackendError` if it cannot be expressed."""

    def parse(self, request: EmbeddingRequest, status: int, body: bytes) -> EmbeddingReply:
        """Return what `body`, the whole reply to `request`, says; raise `BackendError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """A header added to the wire after `release()` (I5). Its value never shows in a repr, nor in a pickle."""

    header: str
    value: str = field(repr=False)

    def __reduce__(self) -> NoReturn:
        """Raise `TypeError`: nobody writes one down."""
        raise TypeError("a credential is not pickled")


class Transport(Protocol):
    """Moves wire bytes. Only the perimeter holds one."""

    def open(
        self, wire: WireRequest, *, credential: Credential | None
    ) -> AbstractAsyncContextManager[WireReply]:
        """Send `wire` and yield its reply; raise `TransportError`. Leaving the context cancels."""


class LocalityCheck(Protocol):
    """Checks how local an endpoint is, now, from its address alone."""

    async def grade(self, address: Address) -> Locality:
        """Return the grade that was checked; `REMOTE` when in doubt."""


class ServerCheck(Protocol):
    """Asks a server on this machine about itself: is it fingerprinted (L1), or only declared (L0).

    Pure, as a codec is: the perimeter judges, records and sends the questions.
    """

    @property
    def questions(self) -> tuple[WireRequest, ...]:
        """What to ask. Holds no content: at most names of the profile."""

    def grade(self, answers: Sequence[Answer | None]) -> Locality:
        """Return what `answers` (None: there was none) say in the order of the questions. Total.

        `REMOTE` on a positive sign that the server passes requests on, L1 when it plainly holds the model,
        else L0.
        """


# --- classification and approval ------------------------------------------------------------------


class Hit(Protocol):
    """Where something was found in a text, and what kind of thing. Holds no text."""

    @property
    def start(self) -> int:
        """Where it begins, in code points."""

    @property
    def end(self) -> int:
        """Where it ends, excluded."""

    @property
    def kind(self) -> str:
        """What it is, such as `iban`."""

    @property
    def data_class(self) -> DataClass:
        """Its class."""

    @property
    def redactable(self) -> bool:
        """Whether removing that stretch removes it: not so inside an encoding, which is denied."""


class Finding(Protocol):
    """What a classifier says about a text."""

    @property
    def data_class(self) -> DataClass:
        """The class of what was found; C0 when nothing was."""

    @property
    def spans(self) -> Sequence[Hit]:
        """Where; what has no place in the text cannot be redacted."""


class Classifier(Protocol):
    """Finds what a text holds. Total on any string; a raised exception counts as a fault (I7)."""

    @property
    def version(self) -> str:
        """Name and version of the rules, for the trace."""

    def classify(self, text: str, *, source: str | None = None) -> Finding:
        """Return what was found in `text`; `source` names the field it stands in, such as a JSON key."""


class SecondOpinion(Protocol):
    """Says of a text what rules cannot see. Asked after them, in a worker thread, and only raises (I8)."""

    @property
    def name(self) -> str:
        """What it is called in the record: letters, digits and `_.:@/-`, at most 100."""

    @property
    def version(self) -> str:
        """Which edition of it, as in the record: its answers are remembered for a text and a version."""

    def opinion(self, text: str) -> Opinion:
        """Return what it says of `text`; anything else, an exception or no answer in time is a fault (I7)."""


FOREIGN: Final = "    | "
"""The mark in front of each line of a rendering that a model wrote. No line of ours begins with it."""


RELEASE: Final = "release"
"""What stands for a tool in a question about letting content go, and in its record; never a real tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What a person is asked: `rendering` is the exact text to show, escaped, class and tool first and last.

    `tool` is `RELEASE` where content is to go to a backend that is not local. Lines that begin with `FOREIGN`
    are the model's, or that content: whoever folds one repeats the mark.
    """

    tool: str
    data_class: DataClass
    rendering: str = field(repr=False)


class Approver(Protocol):
    """A person, or whoever stands for one."""

    @property
    def name(self) -> str:
        """Who approves, as in the trace (a configured name)."""

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return True only on an explicit yes."""


# --- tools -------------------------------------------------------------------------------------------


class Effect(StrEnum):
    """What a tool can do to the world."""

    READ = "read"
    WRITE = "write"
    NET = "net"
    HOST = "host"
    """A host program's own callable: unmediated, see the enforcement grades."""
    RUN = "run"
    """Starts a program in a sandbox: it reads what the call names, without network or a place to write."""
    RUN_FREE = "run-unrestricted"
    """Starts a program that nothing confines: the record cannot speak for it (P3)."""


Identity: TypeAlias = tuple[int, int]
"""Which folder or file something is, whatever its name: device and inode, as in stat(2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A granted folder: `alias` is how the model names it, `path` where it is on this machine, without links.

    `identity` is which folder stood there when the grant was opened (None: not asked); another is refused.
    `declared` is the class the grant gives its files (None: the default for files decides, which redaction
    may lower if the root is `redactable`). `written`: a grant lets a tool write there, above or below it:
    what lies there may be made by a model.
    """

    alias: str
    path: str
    declared: DataClass | None = None
    matter: str | None = None
    redactable: bool = False
    identity: Identity | None = None
    written: bool = False


Veil: TypeAlias = Callable[[Sequence[str]], Sequence[str]]
"""Texts in, and the same texts as a model elsewhere may see them, all of them at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedCall:
    """A call the policy allowed: normalised `arguments`, and the only `roots` it may touch.

    With a `veil`, whoever asked may not see everything that lies there. Then a tool that reads answers as if
    the veiled texts and names were all there is: what it finds, in which order, and how long that is. A tool
    that does so says it by a member `veils`, which is True; another never gets a veil. `named` says that the
    program, not a model, chose the paths, out of what it was shown: they are as they stand on disk.
    """

    arguments: JsonObject = field(repr=False)
    roots: tuple[Root, ...]
    veil: Veil | None = field(default=None, repr=False)
    named: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """One line of a granted file: `file` is alias/relative path, `line` counts from 1.

    In a document `page` counts from 1, and `line` in the page; a plain file has no pages.
    """

    file: str = field(repr=False)
    line: int
    text: str = field(repr=False)
    page: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool returns: `text` for the model; `excerpts` are lines that may be quoted as evidence.

    `unread` counts the files that it came upon and could not read as text, `not_whole` the documents of
    which it could not read all pages or attachments.
    """

    text: str = field(repr=False)
    excerpts: tuple[Excerpt, ...] = ()
    unread: int = 0
    not_whole: int = 0


class Tool(Protocol):
    """Something with an effect, run only through `SealedTools`."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""

    @property
    def effect(self) -> Effect:
        """The strongest thing it can do."""

    @property
    def path_arguments(self) -> frozenset[str]:
        """Names of the arguments that are paths inside a granted folder."""

    def run(self, call: GrantedCall) -> ToolOutput:
        """Do it, in a worker thread; raise `ToolError` with a message fit for the model."""


@runtime_checkable
class WebTool(Tool, Protocol):
    """A tool that asks for a page: pure, as a codec is. The perimeter judges, records and sends what it asks.

    Nobody calls its `run`: it has no way out of its own.
    """

    @property
    def url_argument(self) -> str:
        """The name of the argument that is the page's address."""

    def request(self, url: Url) -> WireRequest:
        """Return the exact bytes that ask for `url`: to its own host and for its own target."""

    def read(self, call: GrantedCall, url: Url, answer: Answer) -> ToolOutput:
        """Return what stands in the `answer` of `url`, where `call` led. Done in a worker thread.

        Raises `ToolError` for what is no page.
        """

    def texts(self, url: Url, answer: Answer) -> Sequence[str]:
        """Return the whole text of the `answer` of `url`, as its host wrote it, and as `read` may show it.

        Raises as `read` does.
        """


# --- the record --------------------------------------------------------------------------------------


class LogFile(Protocol):
    """One open log: only ever grows."""

    def append(self, data: bytes) -> None:
        """Write `data` at the end; raise `OSError`."""

    def sync(self) -> None:
        """Return when everything appended is on the disk; raise `OSError`."""

    def close(self) -> None:
        """Close the handle."""


class LogStore(Protocol):
    """The folder of an instance's logs (a book), its head pin, and the writer's lock."""

    def acquire(self) -> None:
        """Take the one-writer lock for life; raise `TraceError` when another process has it."""

    def release(self) -> None:
        """Give the lock back."""

    def names(self) -> Sequence[str]:
        """Return the log file names, in order."""

    def read(self, name: str) -> bytes:
        """Return the bytes of a log."""

    def create(self, name: str, head: bytes) -> LogFile:
        """Make a new log that starts with `head`, durably, and return it open."""

    def read_pin(self) -> bytes | None:
        """Return the head pin, kept outside the book; None when there is none yet."""

    def write_pin(self, pin: bytes) -> None:
        """Replace the head pin atomically and durably."""


class SaltStore(Protocol):
    """Keeps the salts of commitments, outside the trace. Deleting one erases what it opens."""

    def keep(self, commit: str, salt: bytes) -> None:
        """Remember the salt of `commit` (64 hex digits)."""

    def sync(self) -> None:
        """Return when every kept salt is on the disk."""


class Signer(Protocol):
    """The device key behind a port. `custody` says where the key lives."""

    @property
    def custody(self) -> str:
        """One of file, keyring, process, hardware."""

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the Ed25519 public key."""

    def sign(self, message: bytes, *, header: bytes = b"") -> bytes:
        """Return the 64-byte Ed25519 signature of `message`.

        Where that is the text of a log's first seal, `header` is the log's first line without its newline: a
        signer that does not trust the runtime makes the text from it, signs that, and signs nothing else.
        Raises `TraceError` when it does not sign.
        """


class Custody(Protocol):
    """Whoever keeps the device key: gives its signer, and replaces the key."""

    @property
    def place(self) -> str:
        """Where the key is kept, in words for the operator."""

    def exists(self) -> bool:
        """Return whether there is a key already; raise `TraceError` when that cannot be said."""

    def signer(self) -> Signer:
        """Return the signer of the device key, which is made if there is none; raise `TraceError`."""

    def successor(self) -> Signer:
        """Return the signer of the next device key, made once, kept beside the other; raise `TraceError`."""

    def promote(self) -> None:
        """Put the next device key in the place of the other, if there is one; raise `TraceError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldHead:
    """How far a book has grown, as seen from outside the runtime: `size` lines under the 32-byte `root`."""

    log_no: int
    size: int
    root: bytes


@runtime_checkable
class HeadKeeper(Signer, Protocol):
    """A device key whose keeper also holds the book's head, and signs no log that contradicts it."""

    def head(self) -> HeldHead | None:
        """Return what is held; None when no log was ever signed. Raises `TraceError`."""

    def grow(self, log_no: int, size: int, leaves: Sequence[bytes]) -> None:
        """Say that log `log_no`, of `size` lines so far, has more lines: their 32-byte leaf hashes, in order.

        Returns when that is kept on the disk. Raises `TraceError` when it is not, or does not fit.
        """


class SignerRefusal(StrEnum):
    """Why a signer process does not do what it was asked."""

    NOT_A_REQUEST = "not-a-request"
    NOT_A_HEADER = "not-a-header"
    OTHER_BOOK = "other-book"
    OTHER_CUSTODY = "other-custody"
    OTHER_SUCCESSOR = "other-successor"
    NOT_NEXT = "not-next"
    ROLLED_BACK = "rolled-back"
    FORKED = "forked"
    TOO_LONG = "too-long"
    NOT_KEPT = "not-kept"
