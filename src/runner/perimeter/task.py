# SPDX-License-Identifier: Apache-2.0
"""A task: the scope in which content is labelled, and the high-water mark of what it has seen.

Owns the minting of blocks and their labels. Whatever a task's model says, and whatever is computed
in it, carries at least the mark: the join of everything the task has read, errors and "not found"
included. Nothing the loop or a model does lowers it (I8); a clean sub-task is a new task.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from runner.kernel.errors import ClassifierFault
from runner.kernel.labels import BOTTOM, DataClass, Integrity, Label, join_labels
from runner.kernel.messages import Block, BlockKind
from runner.kernel.ports import Classifier
from runner.perimeter.trace import records
from runner.perimeter.trace.log import Trace

Outcome: TypeAlias = Literal["done", "failed", "cancelled", "stopped"]

GOAL_DEFAULT: Final = DataClass.C1
"""The class of what a user types, when nobody said."""
FILE_DEFAULT: Final = DataClass.C2
"""The class of file content, when its grant does not say."""


class Task:
    """One task of a user. Made by `Perimeter.task`, used by the sealed client and tools."""

    __slots__ = ("_blocks", "_classifier", "_fault_as_c3", "_mark", "_trace", "goal", "id", "outcome")

    def __init__(self, goal: str, *, trace: Trace, classifier: Classifier, fault_as_c3: bool) -> None:
        """Open the task on record. Raises `ClassifierFault`, unless the profile counts a fault as C3."""
        self.id = trace.mint_id()
        self.outcome: Outcome = "done"
        self._trace = trace
        self._classifier = classifier
        self._fault_as_c3 = fault_as_c3
        self._mark = BOTTOM
        self._blocks: dict[str, Block] = {}
        label = Label(default=GOAL_DEFAULT).with_detected(self._detect(goal))
        start = records.TaskStart(goal_commit=trace.commit(_payload(goal)), data_class=label.data_class)
        trace.append(start, task=self.id)
        self.goal = self.mint(BlockKind.GOAL, goal, label)

    def __repr__(self) -> str:
        """Return id and class, never content."""
        return f"<Task {self.id} {self._mark.data_class.name}>"

    @property
    def mark(self) -> Label:
        """The join of everything this task has seen so far."""
        return self._mark

    def instruction(self, text: str) -> Block:
        """Return a block for text that the runner or the embedding program wrote itself."""
        return self.mint(BlockKind.INSTRUCTION, text, Label(integrity=Integrity.USER))

    def derive(self, text: str, inputs: Sequence[Block]) -> Block:
        """Return a block computed from `inputs` (at least one): a cut, a summary, a quote."""
        block = self.mint(BlockKind.DERIVED, text, join_labels(block.label for block in inputs), inputs)
        self._trace.append(
            records.Compact(inputs=tuple(item.id for item in inputs), block=block.id), task=self.id
        )
        return block

    def owns(self, block: Block) -> bool:
        """Return whether `block` is, unaltered, one this task minted."""
        return self._blocks.get(block.id) == block

    def mint(self, kind: BlockKind, text: str, label: Label, inputs: Sequence[Block] = ()) -> Block:
        """Return a new block, on record with what detectors add to `label`; raise the mark by it.

        For the perimeter's own use: the label of what a model or tool returned is the caller's to know.
        """
        label = label.with_detected(self._detect(text))
        block = Block(id=self._trace.mint_block(), kind=kind, text=text, label=label)
        record = records.Classify(
            block=block.id,
            data_class=label.data_class,
            parts=records.Parts(declared=label.declared, default=label.default, detected=label.detected),
            integrity=label.integrity,
            classifier="rules-only",
            version=self._classifier.version,
            inputs=tuple(item.id for item in inputs),
            commit=self._trace.commit(_payload(text)),
        )
        self._trace.append(record, task=self.id)
        self._mark = self._mark.join(label)
        self._blocks[block.id] = block
        return block

    def end(self, outcome: Outcome) -> None:
        """Close the task on record and bring everything about it to disk."""
        self._trace.append(records.TaskEnd(outcome=outcome), task=self.id)
        self._trace.barrier()

    def _detect(self, text: str) -> DataClass:
        try:
            return self._classifier.classify(text).data_class
        except Exception as fault:  # noqa: BLE001 - any fault of any classifier closes (I7)
            if self._fault_as_c3:
                return DataClass.C3
            raise ClassifierFault(f"the classifier failed ({type(fault).__name__})") from None


def _payload(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
