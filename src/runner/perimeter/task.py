# SPDX-License-Identifier: Apache-2.0
"""A task: the scope in which content is labelled, and the high-water mark of what it has seen.

Owns the minting of blocks and their labels. Whatever a task's model says, and whatever is computed
in it, carries at least the mark: the join of everything the task has read, errors and "not found"
included. Nothing the loop or a model does lowers it (I8); a clean sub-task is a new task.

Beside the mark stands the residue: what would be left of it if everything that detectors find were removed.
It too only rises. What a model said, or a tool returned, after seeing a value in clear is computed from it
and stays in the residue, however it is spelled. So redaction lowers what stands in a text, no conclusion.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from runner.kernel.errors import ClassifierFault, SealError, raises_bare_here
from runner.kernel.inference import InferenceRequest
from runner.kernel.labels import BOTTOM, DataClass, Integrity, Label, join_labels
from runner.kernel.messages import Block, BlockKind, JsonObject, Media, ToolCall
from runner.kernel.opinions import Opinion
from runner.kernel.ports import Classifier, Hit
from runner.perimeter.classify import EchoIndex, forget_readings, texts_in
from runner.perimeter.cuts import Regions
from runner.perimeter.declassify import Clearances, Cover, class_outside, left_of
from runner.perimeter.finding import ask_classifier
from runner.perimeter.fixed import exact_bytes, exact_text
from runner.perimeter.known import Ledger
from runner.perimeter.named import forget_named
from runner.perimeter.redact import Redactor, Unredactable
from runner.perimeter.rewrite import RedactedRequest, redact_request
from runner.perimeter.trace import records
from runner.perimeter.trace.log import Trace
from runner.perimeter.validate import parse_json, plain

Outcome: TypeAlias = Literal["done", "failed", "cancelled", "stopped"]

GOAL_DEFAULT: Final = DataClass.C1
"""The class of what a user types, when nobody said."""
FILE_DEFAULT: Final = DataClass.C2
"""The class of file content, when its grant does not say."""
MEDIA_DEFAULT: Final = DataClass.C3
"""The class of pictures, recordings and documents, when nobody said: no rule reads what they show."""
REDACTED_DEFAULT: Final = DataClass.C1
"""What is left of `FILE_DEFAULT`, after redaction, under a grant that says `redactable: true`."""

NOT_OWN: Final = (
    "a block is made of one or more that this very task minted. Fix: bring in what another task read by"
    " task.foreign(text, declared=..., source=...)"
)
"""Why a block of another task, whose residue is not known here, is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What echoes and detectors find in `text`. Made in any thread; on record once `Task.mint` takes it."""

    text: str = field(repr=False)
    echoed: DataClass
    detected: DataClass
    hits: tuple[Hit, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Who classified a block, in words of the record, and what a second opinion said, if one was asked."""

    classifier: str
    version: str
    opinion: records.OpinionWord | None = None


class Task:
    """One task of a user. Made by `Perimeter.task`, used by the sealed client and tools."""

    __slots__ = (
        "_blocks",
        "_classifier",
        "_echo",
        "_fault_as_c3",
        "_mark",
        "_matters",
        "_opined",
        "_peak",
        "_residue",
        "_said",
        "_trace",
        "_veiled",
        "clearances",
        "exposed",
        "goal",
        "id",
        "ledger",
        "outcome",
        "redactor",
    )

    def __init__(
        self,
        goal: str,
        *,
        trace: Trace,
        classifier: Classifier,
        fault_as_c3: bool,
        data_class: DataClass | None = None,
        matter: str | None = None,
        redactor: Redactor | None = None,
        echo: EchoIndex | None = None,
        examined: Examined | None = None,
    ) -> None:
        """Open the task on record; without a `redactor` nothing in it is ever redacted.

        `data_class` is the least class of `goal`, as its user says; None leaves it at `GOAL_DEFAULT`.
        `matter` is the one that the task is for; without one, the first whose content it reads. `echo` is
        what this runtime's tasks have read: text that repeats it takes its class. `examined` is what was
        found in `goal` before, by this classifier and these echoes.
        Raises `ClassifierFault`, unless the profile counts a fault as C3.
        """
        goal = exact_text(goal)
        matter = None if matter is None else exact_text(matter)
        self.id = trace.mint_id()
        self.outcome: Outcome = "done"
        self._trace = trace
        self._classifier = classifier
        self._fault_as_c3 = fault_as_c3
        self._echo = EchoIndex(b"") if echo is None else echo
        self.redactor = redactor
        self._mark = self._residue = BOTTOM
        self._blocks: dict[str, Block] = {}
        self.clearances = Clearances()
        self._opined: set[tuple[str, str]] = set()  # block and text: redaction leaves the one, not the other
        self._said: dict[str, str] = {}  # by block: what a model that sees tokens wrote, before restoring
        self._veiled: set[str | None] = set()  # blocks whose tokens are this task's own
        self.exposed = False
        self._peak: Block | None = None
        self._matters = frozenset() if matter is None else frozenset({matter})
        label = Label(default=GOAL_DEFAULT) if data_class is None else Label(declared=data_class)
        label = replace(label, matters=self._matters)
        examined = examined or self.examine(goal)
        found = label.with_detected(max(examined.detected, examined.echoed))
        start = records.TaskStart(
            goal_commit=trace.commit(_payload(goal)),
            data_class=found.data_class,
            matters=tuple(trace.commit(_payload(each)) for each in self._matters) or None,
        )
        trace.append(start, task=self.id)
        try:
            self.goal = self.mint(BlockKind.GOAL, goal, found, residue=label, examined=examined)
        except BaseException as error:  # a task that began has its end on record
            self.end("failed" if isinstance(error, Exception) else "cancelled")
            raise
        self.ledger = Ledger(self.goal)

    def __repr__(self) -> str:
        """Return id and class, never content."""
        return f"<Task {self.id} {self._mark.data_class.name}>"

    @property
    def mark(self) -> Label:
        """The join of everything this task has seen so far."""
        return self._mark

    @property
    def residue(self) -> Label:
        """What would be left of the mark if everything that detectors find were removed."""
        return self._residue

    @property
    def matters(self) -> AbstractSet[str]:
        """The matters that this task belongs to: what was said at its start, and what it was let in to."""
        return self._matters

    def admit(self, matters: AbstractSet[str]) -> None:
        """Take `matters` as this task's from now on, before anything of them is read. Only a policy may."""
        self._matters |= matters

    @property
    def peak(self) -> Block:
        """The first block of the class that the mark has."""
        return self.goal if self._peak is None else self._peak

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Everything this task has seen, in order."""
        return tuple(self._blocks.values())

    def left(self, covered: Mapping[str, Cover]) -> Label:
        """Return the mark without what is `covered`, by block id. Raises what the classifier raises."""
        return left_of(self.blocks, covered, self.outside)

    def outside(self, text: str, regions: Regions) -> DataClass:
        """Return the class of what is found in `text` outside of `regions`; raise as the classifier."""
        return class_outside(text, regions, self._classifier, self._echo)

    @raises_bare_here
    def instruction(self, text: str) -> Block:
        """Return a block for text that the runner or the embedding program wrote itself."""
        return self.mint(BlockKind.INSTRUCTION, text, Label(integrity=Integrity.USER))

    @raises_bare_here
    def foreign(self, text: str, *, declared: DataClass, source: str) -> Block:
        """Return a block for text that other code of the embedding program brought in: nobody vouches for it.

        `declared` is the least class it has, and `source` names that code.
        """
        sources = frozenset({exact_text(source)})
        label = Label(declared=declared, integrity=Integrity.UNTRUSTED, sources=sources)
        return self.mint(BlockKind.FOREIGN, text, label)

    @raises_bare_here
    def media(
        self, data: bytes, mime: str, *, data_class: DataClass | None = None, source: str = "media"
    ) -> Block:
        """Return a block for a picture, a recording or a document: `data`, its bytes, of the type `mime`.

        `data_class` is the least class it has, as its user says: None leaves it at `MEDIA_DEFAULT`. `source`
        names where it came from. What can be read in the bytes counts too, and no redaction takes it away.
        Raises `MediaError` for anything but bytes, and `ClassifierFault`.
        """
        media = Media(mime=exact_text(mime), data=data)
        media = replace(media, data=exact_bytes(media.data))
        label = Label(
            declared=DataClass.C0 if data_class is None else data_class,
            default=MEDIA_DEFAULT if data_class is None else DataClass.C0,
            integrity=Integrity.UNTRUSTED,
            sources=frozenset({exact_text(source)}),
        )
        label = label.with_detected(max(map(self.class_of, texts_in(media.data)), default=DataClass.C0))
        block = Block(id=self._trace.mint_block(), kind=BlockKind.FOREIGN, text="", label=label, media=media)
        return self._put_on_record(block, residue=label, payload=media.data)

    @raises_bare_here
    def derive(self, text: str, inputs: Sequence[Block]) -> Block:
        """Return a block made of pieces of `inputs` (at least one): a cut, a quote, a page of them.

        For program code, which is trusted. What a model makes of blocks is a reply, with a label of its own.
        Raises `SealError` for none, and for a block that this task did not mint: only its own task knows what
        redaction would leave of it. What another task read is brought in by `foreign`, with its class.
        """
        if not inputs or not all(map(self.owns, inputs)):
            raise SealError(NOT_OWN)
        label = join_labels(block.label for block in inputs)
        block = self.mint(BlockKind.DERIVED, text, label, inputs, residue=BOTTOM)
        if any(each.id in self._veiled for each in inputs):
            self.was_veiled(block)
        self._trace.append(
            records.Compact(inputs=tuple(item.id for item in inputs), block=block.id), task=self.id
        )
        return block

    def has_opinion(self, block: Block) -> bool:
        """Return whether a second opinion on the text of `block` is on record in this task."""
        return (block.id, block.text) in self._opined

    def opined(self, block: Block, opinion: Opinion | ClassifierFault, *, by: str, version: str) -> None:
        """Label the text of `block` again, as a block of its own, with what a second opinion says of it.

        It only raises (I8), and what it adds no redaction takes away. `by` and `version` name it in the
        record. Raises the fault, when there is no opinion and the profile does not count that as C3.
        """
        if isinstance(opinion, ClassifierFault) and not self._fault_as_c3:
            raise opinion
        found = DataClass.C3 if isinstance(opinion, ClassifierFault) else opinion.data_class
        word: records.OpinionWord = "fault" if isinstance(opinion, ClassifierFault) else opinion.value
        said = self.mint(
            BlockKind.DERIVED,
            block.text,
            block.label.with_detected(found),
            (block,),
            residue=Label(detected=found),
            examined=Examined(text=block.text, echoed=DataClass.C0, detected=DataClass.C0),
            judge=Judge(classifier=by, version=version, opinion=word),
        )
        self.clearances.opined(said, found)
        self._opined.add((block.id, block.text))

    def owns(self, block: Block) -> bool:
        """Return whether `block` is one this task minted: itself, for a copy could claim to be equal."""
        return self._blocks.get(block.id) is block

    def mint(
        self,
        kind: BlockKind,
        text: str,
        label: Label,
        inputs: Sequence[Block] = (),
        *,
        residue: Label | None = None,
        examined: Examined | None = None,
        judge: Judge | None = None,
    ) -> Block:
        """Return a new block, on record with what detectors add to `label`; raise the mark by it.

        `residue` is the part of `label` that redaction cannot lower: all of it, when not given. The class of
        what `text` repeats, which was declared elsewhere, is always part of it. `examined` is what was found
        in this very text before; of another text, it does not count. `judge` is who says so, the rules when
        not given. For the perimeter's own use: the label of what a model or tool returned is the caller's to
        know.
        """
        text = exact_text(text)
        if examined is None or exact_text(examined.text) != text:
            examined = self.examine(text)
        residue = (label if residue is None else residue).with_detected(examined.echoed)
        label = label.with_detected(max(examined.echoed, self._learned(examined)))
        block = Block(id=self._trace.mint_block(), kind=kind, text=text, label=label)
        return self._put_on_record(block, inputs, residue=residue, payload=_payload(text), judge=judge)

    def vectors(self, payload: bytes, label: Label, inputs: Sequence[Block], *, residue: Label) -> Block:
        """Return the block that stands for what a model computed of `inputs` and nobody reads as text.

        `payload` is what the record commits to. For the perimeter's own use, as `mint`.
        """
        block = Block(id=self._trace.mint_block(), kind=BlockKind.MODEL, text="", label=label)
        return self._put_on_record(block, inputs, residue=residue, payload=payload)

    def examine(self, text: str) -> Examined:
        """Return what echoes and detectors find in `text`. Changes nothing: it may run in a worker thread.

        Raises `ClassifierFault`, unless the profile counts a fault as C3.
        """
        return examine(text, self._classifier, self._echo, fault_as_c3=self._fault_as_c3)

    def class_of(self, text: str) -> DataClass:
        """Return the class that echoes and detectors find in `text`. Changes nothing; raises as `examine`."""
        examined = self.examine(text)
        return max(examined.echoed, examined.detected)

    def redact(self, request: InferenceRequest, *, above: DataClass) -> RedactedRequest | None:
        """Return `request` without what is above the class `above`; None where that cannot be done.

        It cannot without a redactor, when the residue is above, and when the task holds content of two
        matters: a map belongs to one. Raises `Unredactable`, and what the classifier raises.
        """
        if self.redactor is None or self._residue.data_class > above or len(self._mark.matters) > 1:
            return None
        return redact_request(
            request, self.redactor, self._classifier, above=above, said=self._said, veiled=self._veiled
        )

    def expose(self) -> None:
        """Note that a model elsewhere sees this task: from now on it may ask about what it was not shown.

        What it composes is then answered from what it may see, and that is what the user named: see `veil`.
        """
        if self.exposed or self.redactor is None:
            return
        self.exposed = True
        try:
            self.ledger.says(self.as_seen(self.goal.text))
        except Exception:  # noqa: BLE001 - any fault of any classifier closes (I7): then the user named nothing
            self.ledger.says("")

    def veil(self, texts: Sequence[str]) -> list[str]:
        """Return `texts` as a model elsewhere may see them, with tokens for what is above `REDACTED_DEFAULT`.

        All are looked at before the first is answered. Of one that hides something inside an encoding nothing
        is seen. Raises what the classifier raises.
        """
        if self.redactor is None:
            return list(texts)
        hits = [ask_classifier(self._classifier, text).spans for text in texts]
        forget_readings()
        for text, found in zip(texts, hits, strict=True):
            self.redactor.learn(text, found)
        return [_veiled(self.redactor, text, found) for text, found in zip(texts, hits, strict=True)]

    def as_seen(self, text: str) -> str:
        """Return `text` as those see it that this task asks: behind the veil, if one of them is elsewhere."""
        return self.veil([text])[0] if self.exposed else text

    def behind(self, text: str) -> DataClass:
        """Return the class of what stands behind the tokens in `text`; C0 without any."""
        entries = () if self.redactor is None else self.redactor.standing_in(text)
        return max((entry.data_class for entry in entries), default=DataClass.C0)

    def reveal(self, text: str) -> str:
        """Return `text` for the user's own eyes: with what stands behind its tokens."""
        return text if self.redactor is None else self.redactor.reveal(text)

    def was_veiled(self, block: Block) -> None:
        """Note that the text of `block` came through the veil: its tokens are this task's own."""
        self._veiled.add(block.id)

    def wrote(self, block: Block, said: str) -> None:
        """Keep what a model elsewhere `said` in `block`, before its tokens were restored."""
        if self.redactor is not None:
            self._said[block.id] = said

    def as_said(self, call: ToolCall) -> ToolCall:
        """Return `call` in the words of the model that asked for it, its tokens not restored, if it did."""
        try:
            said = parse_json(self._said[call.origin.id])
        except (KeyError, ValueError):
            return call
        if not isinstance(said, dict) or self.redactor is None:
            return call
        same = self.redactor.restore(said) == plain(call.arguments)
        return replace(call, arguments=said) if same else call

    def as_named(self, call: ToolCall, names: AbstractSet[str]) -> ToolCall | None:
        """Return `call` with what stands behind the tokens in its arguments `names`, those that are paths.

        None unless each that is given was taken, word for word, out of a block that came through the veil,
        and one is. A model's reply is no such block.
        """
        given = {name: call.arguments[name] for name in names if name in call.arguments}
        if not given or not self.owns(call.origin) or call.origin.id not in self._veiled:
            return None
        shown = call.origin.text.split("\n")
        real = {
            name: self.reveal(path) for name, path in given.items() if isinstance(path, str) and path in shown
        }
        return replace(call, arguments={**call.arguments, **real}) if len(real) == len(given) else None

    def held(self, arguments: JsonObject, *, origin: Block, sent: bool = False) -> DataClass:
        """Return the class of the values of this task's map in `arguments`, taken from `origin`.

        See `Redactor.holds`: what a model elsewhere spelled out by itself does not count.
        """
        if self.redactor is None:
            return DataClass.C0
        return self.redactor.holds(arguments, sent=sent, said=self._said.get(origin.id))

    def end(self, outcome: Outcome) -> None:
        """Close the task on record, bring everything about it to disk, and drop its map."""
        try:
            self._trace.append(records.TaskEnd(outcome=outcome), task=self.id)
            self._trace.barrier()
        finally:
            forget_named()
            if self.redactor is not None:
                self.redactor.forget()

    def remember(self, text: str, data_class: DataClass) -> None:
        """Keep the fingerprints of `text`, read from a source of class `data_class`, for every later task.

        Raises `ClassifierFault` when that fails: without them a later task would take a copy for harmless.
        """
        try:
            self._echo.remember(text, data_class)
        except Exception as fault:  # noqa: BLE001 - as in `examine`
            raise ClassifierFault(f"what was read could not be kept ({type(fault).__name__})") from None

    def _put_on_record(
        self,
        block: Block,
        inputs: Sequence[Block] = (),
        *,
        residue: Label,
        payload: bytes,
        judge: Judge | None = None,
    ) -> Block:
        """Return `block`, now this task's, on record with what it commits to; raise mark and residue.

        Raises `SealError` for inputs of another task.
        """
        if not all(
            each.id in self._blocks for each in inputs
        ):  # redaction leaves an id its block, not the text
            raise SealError(NOT_OWN)
        label = block.label
        judge = judge or Judge(classifier=records.RULES_ONLY, version=self._classifier.version)
        record = records.Classify(
            block=block.id,
            data_class=label.data_class,
            parts=records.Parts(declared=label.declared, default=label.default, detected=label.detected),
            integrity=label.integrity,
            classifier=judge.classifier,
            version=judge.version,
            opinion=judge.opinion,
            inputs=tuple(item.id for item in inputs),
            commit=self._trace.commit(payload),
        )
        self._trace.append(record, task=self.id)
        self._mark = self._mark.join(label)
        self._residue = self._residue.join(residue)
        if self._peak is None or label.data_class > self._peak.label.data_class:
            self._peak = block
        self._blocks[block.id] = block
        if block.kind is BlockKind.DERIVED:
            self.clearances.made(block, inputs)
        return block

    def _learned(self, examined: Examined) -> DataClass:
        """Return the class that was detected, once the task's map knows what was found and where."""
        try:
            if self.redactor is not None:
                self.redactor.learn(examined.text, examined.hits)
        except Exception as fault:  # noqa: BLE001 - as in `examine`
            return _of_fault(fault, as_c3=self._fault_as_c3)
        return examined.detected


def examine(text: str, classifier: Classifier, echo: EchoIndex, *, fault_as_c3: bool) -> Examined:
    """Return what `echo` and `classifier` find in `text`. Pure: it may run in a worker thread.

    Raises `ClassifierFault`, unless `fault_as_c3`.
    """
    text = exact_text(text)
    echoed = DataClass.C0
    hits: tuple[Hit, ...] = ()
    try:
        echoed = echo.class_of(text)
        finding = ask_classifier(classifier, text)
        detected, hits = finding.data_class, tuple(finding.spans)
    except Exception as fault:  # noqa: BLE001 - any fault of any classifier closes (I7)
        detected = _of_fault(fault, as_c3=fault_as_c3)
    finally:
        forget_readings()
    return Examined(text=text, echoed=echoed, detected=detected, hits=hits)


def _of_fault(fault: Exception, *, as_c3: bool) -> DataClass:
    if as_c3:
        return DataClass.C3
    raise ClassifierFault(f"the classifier failed ({type(fault).__name__})") from None


def _veiled(redactor: Redactor, text: str, found: Sequence[Hit]) -> str:
    try:
        return redactor.take_out(text, found, above=REDACTED_DEFAULT)[0]
    except Unredactable:
        return ""


def _payload(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
