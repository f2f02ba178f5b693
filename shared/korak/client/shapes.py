"""What the API answers and takes, as types: JSON as it comes, times as ISO 8601 in UTC, ids as ULIDs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from korak.chains.dispatching import DispatchOptions

ArtifactKind: TypeAlias = Literal["json", "text", "bytes"]


class WaitingFor(TypedDict):
    """One thing that an instance waits for, at the node `node`, in the visit `execution`.

    `kind`: timer event signal condition retry child workflows task engine hold limit pause. `human` is what a person is
    asked for: approval, input, or a decision, whose `names` are the signal that approves and the one that rejects.
    `runs` of a wait for runs are how many there are (total, completed, failed); of many only the first are named.
    `remaining_seconds` is what a pause has left until it is due, `reason` a hold's own.
    """

    kind: str
    node: str
    execution: str
    branch: str | None
    human: Literal["approval", "input", "decision"] | None
    mode: Literal["all", "any", "quorum"] | None
    quorum: int | None
    names: Sequence[str]
    matched: Sequence[str]
    remaining: Sequence[str]
    failed: Sequence[str]
    runs: dict[str, int] | None
    result_key: str | None
    correlation: Any
    since: str
    due_at: str | None
    remaining_seconds: float | None
    reason: str | None
    task: str | None
    child: str | None


class Failure(TypedDict):
    """Why an instance has failed; `params` are what the message is made of."""

    code: str
    message: str
    params: dict[str, Any]
    node: str | None
    category: str | None
    non_retryable: bool


class Instance(TypedDict):
    """One run. `status`: running waiting paused completed failed cancelled; the last three are ends.

    `state` is what its steps have written, `result` what it has come to, None before. `actions` tells of cancel, pause,
    resume, retry and signal: True, or the code of why not.
    """

    id: str
    business_id: str | None
    definition: str
    version: int
    version_label: str | None
    style: Literal["graph", "chain", "code"]
    status: str
    closed_reason: str | None
    cancel_reason: str | None
    waiting_for: Sequence[WaitingFor]
    nodes: Sequence[str]
    progress: dict[str, Any] | None
    input: dict[str, Any]
    state: dict[str, Any]
    result: Any
    failure: Failure | None
    trigger: dict[str, Any]
    actor: dict[str, Any]
    owner: str | None
    subject: dict[str, Any] | None
    labels: Sequence[str]
    priority: str
    parent: str | None
    root: str
    depth: int
    steps_count: int
    run: int
    definition_hash: str
    created_at: str
    updated_at: str
    started_at: str | None
    ended_at: str | None
    deadline_at: str | None
    deadline_remaining_seconds: float | None
    budget: dict[str, Any]
    artifacts: dict[str, Any]
    compensation: dict[str, Any] | None
    actions: dict[str, Any]


class Started(TypedDict):
    """What a start came to: the instance, and whether this start made it; `input_differs`: a repeat had another."""

    instance: Instance
    created: bool
    input_differs: NotRequired[bool]


class Delivery(TypedDict):
    """What became of a signal: it was delivered to a wait, or is kept for one that comes.

    Where it might start a run: the `instance` that it is in, and whether that was `created`.
    """

    delivered: bool
    buffered: bool
    instance: NotRequired[str]
    created: NotRequired[bool]


class Emission(TypedDict):
    """What became of an event: how many waits took it, which instances it started, and whether it is kept."""

    matched: int
    started: Sequence[str]
    kept: bool


class Step(TypedDict):
    """One attempt of one step. `id` is the attempt's, `execution` the same for all attempts of a visit.

    `bodies` of a container counts them by status.
    """

    id: str
    execution: str
    node: str
    type: str
    type_version: int
    branch: str | None
    role: str
    visit: int
    attempt: int
    retry: dict[str, Any] | None
    status: str
    parked_for: str | None
    outcome: str | None
    input: Any
    output: Any
    error: dict[str, Any] | None
    order: int | None
    undone_at: str | None
    progress: Any
    heartbeat_at: str | None
    idempotency_key: str
    queue: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    scheduled_for: str | None
    bodies: dict[str, int] | None


class Event(TypedDict):
    """One line of an instance's history, numbered by `seq`."""

    seq: int
    type: str
    node: str | None
    step: str | None
    data: dict[str, Any]
    at: str


class Wait(TypedDict):
    """One wait of one attempt, open or over. `remaining_seconds` of one whose clock a pause has stopped."""

    node: str
    step: str
    kind: str
    status: str
    name: str | None
    match: dict[str, Any] | None
    mode: Literal["all", "any"] | None
    condition: Any
    outcome: str | None
    payload: Any
    remaining_seconds: float | None
    since: str
    due_at: str | None
    fired_at: str | None


class FailureRecord(TypedDict):
    """One failure in an instance, and what became of it: `propagation` is retry, exit, instance or none."""

    node: str | None
    step: str | None
    source: str
    category: str
    propagation: str
    non_retryable: bool
    handled: bool
    code: str
    type: str | None
    message: str
    params: dict[str, Any]
    trace: str | None
    at: str


class Chunk(TypedDict):
    """A piece of what a step streams, `index` in its visit."""

    execution: str
    node: str
    visit: int
    attempt: int
    index: int
    content: str
    at: str


class Artifact(TypedDict):
    """What an instance keeps beside its state. `content` is JSON, a text, or bytes in base64; None where not asked for.

    `node`, `visit` and `execution` are those of the step that left it; None for one from outside.
    """

    key: str
    kind: ArtifactKind
    size: int
    metadata: dict[str, Any] | None
    node: str | None
    visit: int | None
    execution: str | None
    created_at: str
    updated_at: str
    content: Any


class StartOptions(DispatchOptions, total=False):
    """How an instance is started. `version` is a number or a checksum; without one it is the current version.

    `debounce` ({key, wait, max_wait}) puts the start off: the answer is `{"due_at": ...}` alone.
    """

    version: int | str | None
    debounce: Mapping[str, Any]


class ListOptions(TypedDict, total=False):
    """Which instances are listed; what isn't given lets all pass. Times are ISO 8601.

    `parent`: those that one of these runs has started; `root`: these runs and all below them.
    """

    id: Sequence[str] | str
    status: Sequence[str] | str
    definition: Sequence[str] | str
    label: Sequence[str] | str
    parent: Sequence[str] | str
    root: Sequence[str] | str
    created_after: str
    created_before: str
    updated_after: str
    updated_before: str
    ended_after: str
    ended_before: str
