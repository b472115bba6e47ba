# SPDX-License-Identifier: Apache-2.0
"""Configuration: one file says what this box may do (I6).

Owns the shape of a profile and the judgement of its data. Reads no file: `runner.assembly` hands in
parsed YAML and a way to find lines. No security setting has a default that allows (I1, I7).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, Field, ValidationError, field_validator, model_validator

from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.labels import DataClass
from runner.kernel.sections import (
    NAME_FORM,
    ClassName,
    LimitsConfig,
    ReadsConfig,
    SinkConfig,
)
from runner.kernel.sections import Section as _Section
from runner.kernel.spelling import most_like
from runner.kernel.web import is_host, is_plain_path

_NAME: Final = NAME_FORM
_WORD: Final = r"^[A-Za-z0-9][A-Za-z0-9_.:@/+-]{0,127}$"
_CLASSIFIER: Final = r"^(rules-only|local:[A-Za-z0-9][A-Za-z0-9_.:@/-]{0,93})$"
_CREDENTIAL: Final = r"^(env:[A-Z_][A-Z0-9_]*|file:.+)$"
_CUSTODY: Final = r"^(file|keyring|process:.+)$"
_HEADER: Final = r"^[A-Za-z][A-Za-z0-9-]{0,63}$"
_TAKEN: Final = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "cookie", "host", "referer"}
    | {"transfer-encoding", "user-agent"}
)
"""Headers that no credential is sent in: a request has them already, or no page is asked for with them."""
Name = Annotated[str, Field(pattern=_NAME)]
Word = Annotated[str, Field(pattern=_WORD)]
"""A name that may stand in the trace."""
OPINION_CONTEXT: Final = 3072
"""Tokens of context that a question for a second opinion, and its answer, take at most."""
Locate = Callable[[tuple[str | int, ...]], int]
"""Maps a field's location to its line in the file (0 when unknown)."""


class LocalityRequired(_Section):
    """The locality grade a local backend needs before content of that class may reach it."""

    c2: Literal["L0", "L1", "L2"] = Field(default="L0", alias="C2")
    c3: Literal["L0", "L1", "L2"] = Field(default="L2", alias="C3")


class RegistersConfig(_Section):
    """Files the practice keeps: whom to look for, and whose contacts are no secret. YAML or CSV."""

    clients: str | None = Field(default=None, min_length=1)
    own_identity: str | None = Field(default=None, min_length=1)
    public: str | None = Field(default=None, min_length=1)


class PerimeterConfig(_Section):
    """What may leave, and what happens when judging it fails."""

    max_egress_class: Literal["none", "C0", "C1"] = "none"
    fail_closed: Literal[True] = True
    classifier: str = Field(default="rules-only", pattern=_CLASSIFIER)
    """Who judges beside the rules: nobody, or a local model as second opinion."""
    classifier_fault: Literal["deny", "as_c3"] = "deny"
    redaction: Literal["off", "on"] = "off"
    """Whether what detectors find is replaced by tokens when it alone keeps a request from leaving."""
    declassification: Literal["off", "ask"] = "off"
    """Whether a person may be asked to let C2 content of a task go to the remote backend."""
    locality_required: LocalityRequired = LocalityRequired()
    registers: RegistersConfig = RegistersConfig()
    public_texts: str | None = Field(default=None, min_length=1)
    """A file or folder of texts that anybody may quote: what repeats them is no echo of what was read."""
    enforcement: Literal["cooperative"] = "cooperative"

    @property
    def ceiling(self) -> DataClass | None:
        """The highest class that may leave; None when nothing may."""
        return None if self.max_egress_class == "none" else DataClass.parse(self.max_egress_class)


class GrantedPath(_Section):
    """A folder or file a tool may touch, and what the practice says about its content."""

    path: str = Field(min_length=1)
    data_class: ClassName | None = Field(default=None, alias="class")
    matter: Name | None = None
    redactable: bool = False
    """Whether redaction may lower the class that files have by default. It never lowers a declared one."""


class GrantedHost(_Section):
    """A host that pages may be asked of: a name, or `*.` and what names end in."""

    host: str = Field(min_length=1)
    paths: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Prefixes of paths, by whole segments; None for every path."""
    port: int | None = Field(default=None, ge=1, le=65535)
    unsafe_plain_http: bool = False
    """Whether http will do: then anybody on the way reads what is asked, and writes what is answered."""
    credential: str | None = Field(default=None, pattern=_CREDENTIAL)
    """Where that is read which pages are asked for with here; None asks as nobody."""
    header: str | None = Field(default=None, pattern=_HEADER)
    """The header that it is sent in, as it is; None sends it as a bearer token."""


class Grant(_Section):
    """One tool, and the limits on its arguments. A tool without a grant is denied."""

    tool: Name
    paths: tuple[GrantedPath, ...] = ()
    access: Literal["read", "write"] = "read"
    approval: Literal["never", "ask"] = "never"
    commands: tuple[Name, ...] | None = None
    """For the shell tool: the programs that may be started. None or an empty list allows nothing."""
    sandbox: Literal["required", "unrestricted"] | None = None
    """For tools that start programs: are these confined? They are, unless it says `unrestricted`."""
    network: Literal[False] | None = None
    trusted: bool = False
    """For a host program's own tool only: the practice vouches for it, and the verdict names it."""
    hosts: tuple[GrantedHost, ...] | None = None
    """For the web tool: where pages may be asked for. None or an empty list allows nothing."""
    calls: int | None = Field(default=None, ge=1, le=10_000)
    """How many calls one task gets."""
    arguments: Mapping[str, LimitsConfig] | None = None
    """Limits on arguments, by name."""
    reads: ReadsConfig | None = None
    """What a host program's own tool returns."""
    sink: SinkConfig | None = None
    """Where the tool carries its arguments; without it, nowhere."""

    @field_validator("paths", mode="before")
    @classmethod
    def _accept_plain_paths(cls, value: Any) -> Any:  # noqa: ANN401 - parse step: untrusted data
        return _short(value, "path")

    @field_validator("hosts", mode="before")
    @classmethod
    def _accept_plain_hosts(cls, value: Any) -> Any:  # noqa: ANN401 - parse step: untrusted data
        return _short(value, "host")


def _short(value: Any, key: str) -> Any:  # noqa: ANN401 - parse step: untrusted data
    """Return `value` with each plain text in it as a section that says only its `key`."""
    if not isinstance(value, list | tuple):
        return value
    return tuple({key: item} if isinstance(item, str) else item for item in value)


class PolicyConfig(_Section):
    """The grants. The default is denial and cannot be changed (I1)."""

    default: Literal["deny"] = "deny"
    grants: tuple[Grant, ...] = ()

    def grant_for(self, tool: str) -> Grant | None:
        """Return the grant of `tool`, of which there is one at most; None without."""
        return next((grant for grant in self.grants if grant.tool == tool), None)


_PORTS: Final = {"llamacpp": 8080, "ollama": 11434, "vllm": 8000}
"""Where each server listens unless it is told otherwise."""


class LocalInference(_Section):
    """A model on this machine."""

    runtime: Literal["embedded", "llamacpp", "ollama", "vllm"]
    model: Word
    weights: str | None = None
    """A GGUF file for the embedded runtime; without it `model` is a name of the catalogue."""
    endpoint: str | None = None
    context: int = Field(default=4096, ge=512, le=1_048_576)
    threads: int = Field(default=0, ge=0, le=1024)
    tier: Literal["auto", "native", "constrained", "text"] = "auto"
    """How the model is asked for calls: which way is tried first. Auto: what suits the runtime."""
    embeddings: Word | None = None
    """The model that turns texts into vectors; without one nothing does."""
    embeddings_endpoint: str | None = None
    """Where that model is served, if not at `endpoint`: another server of the same runtime."""

    @model_validator(mode="after")
    def _endpoint_matches_runtime(self) -> "LocalInference":
        if self.runtime == "embedded" and self.endpoint is not None:
            raise ValueError(
                "the embedded runtime has no endpoint", "remove endpoint, or name another runtime"
            )
        if self.runtime != "embedded" and self.endpoint is None:
            usual = f"http://127.0.0.1:{_PORTS[self.runtime]}"
            problem = f"the runtime {self.runtime} is a server, and no endpoint says where it listens"
            raise ValueError(problem, f"add endpoint: {usual} below it, with the port that your server has")
        return self

    @model_validator(mode="after")
    def _embeddings_are_served(self) -> "LocalInference":
        if self.runtime == "embedded" and self.embeddings is not None:
            problem = "the embedded runtime has no embeddings"
            raise ValueError(problem, "use llamacpp, ollama or vllm, or remove embeddings")
        if self.embeddings is None and self.embeddings_endpoint is not None:
            problem = "embeddings_endpoint is there without embeddings"
            raise ValueError(
                problem, "add embeddings, the name of the model that is served there, or remove it"
            )
        return self


class RemoteInference(_Section):
    """A model elsewhere. `max_class` is this backend's own ceiling; without it the profile's counts."""

    backend: Literal["akaion", "anthropic", "openai", "llamacpp"]
    endpoint: str
    model: Word
    max_class: Literal["C0", "C1"] | None = None
    credential: str | None = Field(default=None, pattern=_CREDENTIAL)
    tier: Literal["auto", "native", "constrained", "text"] = "auto"
    """As for a local model."""
    embeddings: Word | None = None
    """The model that turns texts into vectors, at the same endpoint; without one nothing does."""

    @model_validator(mode="after")
    def _embeddings_are_served(self) -> "RemoteInference":
        if self.backend == "anthropic" and self.embeddings is not None:
            problem = "the Anthropic protocol has no embeddings"
            raise ValueError(problem, "use openai, akaion or llamacpp, or remove embeddings")
        return self


class InferenceConfig(_Section):
    """Which models exist, and which one the loop asks first."""

    local: LocalInference | None = None
    remote: RemoteInference | None = None
    prefer: Literal["local", "remote"] = "local"
    timeout_s: int = Field(default=600, ge=1, le=86_400)


class BudgetConfig(_Section):
    """Where a run stops by itself."""

    steps: int = Field(default=8, ge=1, le=1000)
    tokens: int = Field(default=40_000, ge=1, le=100_000_000)
    seconds: int = Field(default=600, ge=1, le=604_800)


class TraceConfig(_Section):
    """Where the record goes, and who keeps the device key. Paths default to folders of the home directory."""

    path: str | None = None
    keys: str | None = None
    custody: str = Field(default="file", pattern=_CUSTODY)
    sign: Literal[True] = True
    seal_every: int = Field(default=256, ge=1, le=256)

    @property
    def signer(self) -> str | None:
        """The socket of the signer process, as written; None when the key is in a file or a keyring."""
        kind, _, path = self.custody.partition(":")
        return path if kind == "process" else None


class Config(_Section):
    """A whole profile."""

    profile: Literal["detached", "attached", "appliance"]
    perimeter: PerimeterConfig = PerimeterConfig()
    policy: PolicyConfig = PolicyConfig()
    inference: InferenceConfig = InferenceConfig()
    budget: BudgetConfig = BudgetConfig()
    trace: TraceConfig = TraceConfig()

    @property
    def opinion(self) -> LocalInference | None:
        """The model asked for a second opinion: the local one, if so named, else one in this process."""
        model = self.perimeter.classifier.removeprefix("local:")
        if model == self.perimeter.classifier:
            return None
        local = self.inference.local
        if local is not None and local.model == model:
            return local
        threads = 0 if local is None else local.threads
        return LocalInference(runtime="embedded", model=model, context=OPINION_CONTEXT, threads=threads)


_REFERENCE: Final = "see docs/reference/profile.md for this key"
_FIXES: Final[Mapping[str, str]] = {
    "extra_forbidden": "remove this key or correct its spelling",
    "missing": "add this key",
    "string_type": "write text here",
    "string_too_short": "write text here, or remove this key",
    "int_type": "write a whole number here",
    "int_from_float": "write a whole number here",
    "bool_type": "write true or false here",
    "tuple_type": "write a list here",
    "model_type": "write keys below it, as docs/reference/profile.md shows",
    "greater_than_equal": "write {ge} or more",
    "less_than_equal": "write {le} or less",
    "greater_than": "write more than {gt}",
    "float_type": "write a number here",
    "too_short": "write at least one item, or remove this key",
    "mapping_type": "write keys below it, as docs/reference/profile.md shows",
    "literal_error": "use one of: {expected}",
}
"""What to write instead, by kind of mistake, around what the field itself says of it."""
_FORMS: Final[Mapping[str, str]] = {
    _NAME: "use lower-case letters, digits, '-' and '_', a letter first, at most 64",
    _WORD: "use letters, digits and . _ : @ / + -, a letter or digit first, at most 128 and no spaces",
    _CLASSIFIER: "write rules-only, or local:NAME with the name of a model",
    _CUSTODY: "write file, keyring, or process:SOCKET with the socket of `akaion keys serve`",
    _CREDENTIAL: "write env:NAME, a variable's name in capitals, or file:PATH, never the key itself",
    _HEADER: "write the name of a header, such as X-Api-Key",
}
"""What to write instead of a text that does not have the form of its field, by that form."""
_NOTHING: Final = (
    "write text here; no value, and a ~ alone, is YAML's nothing: a ~ that is meant wants quotes"
)
_YAML_WORDS: Final[Mapping[str, str]] = {"True": "true", "False": "false", "None": "null"}
_PROBLEMS: Final[Mapping[str, str]] = {
    "extra_forbidden": "there is no such key here",
    "missing": "this key is needed",
    "model_type": "this is a section: it holds keys",
    "dict_type": "this is a section: it holds keys",
    "string_pattern_mismatch": "this text does not have the form that is needed here",
    "string_type": "this is no text",
    "string_too_short": "this text is empty",
    "int_type": "this is no whole number",
    "int_from_float": "this is no whole number",
    "bool_type": "this is neither true nor false",
    "tuple_type": "this is no list",
    "greater_than_equal": "this number is too small",
    "less_than_equal": "this number is too large",
    "greater_than": "this number is too small",
    "float_type": "this is no number",
    "too_short": "this list is empty",
    "mapping_type": "this is a section: it holds keys",
    "literal_error": "this value is not allowed here",
}


def parse_config(data: object, *, file: str, locate: Locate) -> Config:
    """Return the judged configuration in `data` (nested mappings, as YAML gives them).

    Raises `ConfigError`, each mistake with its line in `file` and a fix: first every one that a key shows by
    itself, and only where there is none, every contradiction between keys.
    """
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ConfigError([_mistake(dict(detail), file, locate) for detail in details]) from None
    mistakes = [
        Mistake(file=file, line=locate(where), where=_dotted(where), problem=problem, fix=fix)
        for where, problem, fix in _cross_checks(config)
    ]
    if mistakes:
        raise ConfigError(mistakes)
    return config


def _mistake(detail: Mapping[str, Any], file: str, locate: Locate) -> Mistake:
    """Return the mistake that `detail` tells of; of the value itself only whether it is nothing (I12)."""
    where = tuple(detail["loc"])
    kind = str(detail["type"])
    problem = _PROBLEMS.get(kind, str(detail["msg"]))
    fix = _fix(kind, where, detail.get("ctx", {}))
    in_a_list = kind == "model_type" and bool(where) and isinstance(where[-1], int)
    if detail["input"] is None and (kind == "string_type" or in_a_list):
        fix = _NOTHING
    if kind == "value_error":  # raised above, each with its fix
        problem, fix = detail["ctx"]["error"].args
    return Mistake(file=file, line=locate(where), where=_dotted(where), problem=problem, fix=fix)


def _fix(kind: str, where: tuple[str | int, ...], facts: Mapping[str, Any]) -> str:
    """Return what to do about a mistake of the kind `kind`; `facts` are what its field demands."""
    if kind == "string_pattern_mismatch":
        return _FORMS.get(facts["pattern"], _REFERENCE)
    if kind == "extra_forbidden" and (known := _like(where)):
        return f"did you mean {known}? If not, remove this key"
    if kind == "literal_error" and (word := _YAML_WORDS.get(facts["expected"])):
        return f"write {word}, or leave this key out"
    return _FIXES.get(kind, _REFERENCE).format_map(facts)


def _like(where: tuple[str | int, ...]) -> str | None:
    """Return the key of a profile that the unknown key at `where` is most like; None for none."""
    section: type[BaseModel] | None = Config
    *parents, unknown = where
    for part in parents:
        if section is not None and isinstance(part, str):
            section = _section_in(_keys(section).get(part))
    known = () if section is None else _keys(section)
    return most_like(str(unknown), known, slips=_SLIPS)


_SLIPS: Final = 2
"""Slips in a key that was meant."""


def _keys(section: type[BaseModel]) -> dict[str, Any]:
    """Return the keys of a section as a profile writes them, each with its type."""
    return {field.alias or name: field.annotation for name, field in section.model_fields.items()}


def _section_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - a type, whatever its form
    """Return the section that a type names, by itself, as an option or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_section_in, get_args(annotation))), None)


def _dotted(where: tuple[str | int, ...]) -> str:
    return ".".join(str(part) for part in where)


_Mistakes: TypeAlias = Iterator[tuple[tuple[str | int, ...], str, str]]
"""Location, problem and fix of what no single field can know."""


def _cross_checks(config: Config) -> _Mistakes:
    yield from _egress_mistakes(config)
    yield from _inference_mistakes(config.inference)
    yield from _grant_mistakes(config.policy)
    yield from _web_mistakes(config)
    yield from _opinion_mistakes(config)


def _egress_mistakes(config: Config) -> _Mistakes:
    """Yield contradictions between the topology and what may leave."""
    ceiling, remote = ("perimeter", "max_egress_class"), config.inference.remote
    if config.profile == "detached":
        if remote is not None:
            fix = "remove inference.remote, or use profile: attached"
            yield (("inference", "remote"), "the detached profile has no remote backend", fix)
        if config.perimeter.ceiling is not None:
            fix = "set it to none, or use profile: attached"
            yield (ceiling, "nothing may leave a detached box", fix)
    elif remote is not None and config.perimeter.ceiling is None:
        fix = "set it to C0 or C1, or remove inference.remote"
        yield (ceiling, "a remote backend is configured but nothing may leave", fix)


def _web_mistakes(config: Config) -> _Mistakes:
    """Yield a mistake for each grant of hosts where nothing may leave, and for each that is no host."""
    for index, grant in enumerate(config.policy.grants):
        where: tuple[str | int, ...] = ("policy", "grants", index, "hosts")
        if grant.hosts and config.perimeter.ceiling is None:
            fix = "set perimeter.max_egress_class to C1, with profile: attached or appliance, or remove hosts"
            yield (where, "hosts are granted, but nothing may leave", fix)
        for number, entry in enumerate(grant.hosts or ()):
            if not is_host(entry.host):
                problem = "this is no host's name in lower case"
                fix = "write a whole name such as www.example.org, or *.example.org for every name below it"
                yield ((*where, number, "host"), problem, fix)
            if not all(map(is_plain_path, entry.paths or ())):
                problem = "a prefix begins with one /, and has no dots for a segment and no escapes of signs"
                yield ((*where, number, "paths"), problem, "write prefixes such as /docs")
            for key, problem, fix in _login_mistakes(entry, (grant.hosts or ())[:number]):
                yield ((*where, number, key), problem, fix)


def _login_mistakes(entry: GrantedHost, before: Sequence[GrantedHost]) -> Iterator[tuple[str, str, str]]:
    """Yield key, problem and fix of what a host may not say of its credential; `before` are those above it.

    It goes to one host at one port, by https alone (I5).
    """
    if entry.credential is None:
        if entry.header is not None:
            yield "header", "there is no credential to send in it", "add credential, or remove this key"
        return
    if entry.host.startswith("*."):
        problem = "a credential is for one host, and anybody may have a name below this ending"
        yield "credential", problem, "write the whole name of the host, in an entry of its own"
    if entry.unsafe_plain_http:
        problem = "a credential is sent by https only, since anybody on the way reads plain http"
        yield "unsafe_plain_http", problem, "remove this key, or credential"
    if entry.header is not None and entry.header.lower() in _TAKEN:
        yield "header", "no credential is sent in this header", "name the one that the host wants it in"
    said = (entry.credential, entry.header)
    for other in before:
        same = (other.host, other.port or 443) == (entry.host, entry.port or 443)
        if same and other.credential is not None and (other.credential, other.header) != said:
            problem = "another entry of this host and port has another credential"
            yield "credential", problem, "write the same credential and header in both"
            return


def _inference_mistakes(inference: InferenceConfig) -> _Mistakes:
    local, remote = inference.local, inference.remote
    if local is None and remote is None:
        yield (("inference",), "no model is configured", "add inference.local")
    elif inference.prefer == "remote" and remote is None:
        fix = "add inference.remote, or set prefer: local"
        yield (("inference", "prefer"), "the preferred backend is not configured", fix)
    elif inference.prefer == "local" and local is None:
        fix = "add inference.local, or set prefer: remote"
        yield (("inference", "prefer"), "the preferred backend is not configured", fix)


def _opinion_mistakes(config: Config) -> _Mistakes:
    """Yield why the model of a second opinion could never answer: it is asked about what may be C3."""
    model, needed = config.opinion, config.perimeter.locality_required.c3
    where = ("perimeter", "classifier")
    if model is None:
        return
    if model.runtime != "embedded" and needed == "L2":
        problem = "a second opinion reads what may be C3, and a model server is L1 at most"
        fix = "name an embedded model, or set locality_required.C3 to what the server reaches"
        yield (where, problem, fix)
    if model.context < OPINION_CONTEXT:
        problem = f"a second opinion needs a context of {OPINION_CONTEXT} tokens"
        yield (where, problem, f"set inference.local.context to {OPINION_CONTEXT} or more")


def _grant_mistakes(policy: PolicyConfig) -> _Mistakes:
    seen: set[str] = set()
    for index, grant in enumerate(policy.grants):
        where: tuple[str | int, ...] = ("policy", "grants", index)
        if grant.tool in seen:
            fix = "merge the two grants, so that one place says what the tool may do"
            yield ((*where, "tool"), "this tool already has a grant", fix)
        seen.add(grant.tool)
        for number, path in enumerate(grant.paths):
            if path.redactable and path.data_class is not None:
                problem = "redaction never lowers a declared class"
                fix = "remove this key, or the class"
                yield ((*where, "paths", number, "redactable"), problem, fix)
        if grant.sandbox == "unrestricted" and grant.network is False:
            problem = "without a sandbox nothing holds a program to network: false"
            yield ((*where, "network"), problem, "remove this key, or sandbox: unrestricted")
