"""The one list of codes, with the English message of each; `render` fills in what a message is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MESSAGES: dict[str, str] = {
    # answers to a caller
    "not_found": "There is no {what} {key} here.",
    "route_not_found": "Nothing answers at {path}.",
    "definition_not_found": "There is no definition {key} here.",
    "instance_not_found": "There is no instance {key} here.",
    "version_not_found": "Definition {key} has no version {number}.",
    "version_older": "Version {number} of {key} is older than {current}, the current one.",
    "not_awaited": "{instance} asks for nothing that {verb} would answer: {awaited}.",
    "several_awaited": "{instance} asks for more than one thing: name the signal or the node. {awaited}.",
    "definition_app_wide": "{key} is the application's: its versions are published with a token of the application's.",
    "definition_exists": "The key {key} is taken.",
    "definition_not_published": "Definition {key} has no published version.",
    "definition_archived": "Definition {key} is archived and takes no starts.",
    "definition_not_archived": "Definition {key} is not archived.",
    "checksum_mismatch": "The draft has changed since: it is {actual} now.",
    "precondition_required": "Send the draft's checksum in If-Match.",
    "instance_not_cancellable": "An instance that is {status} can't be cancelled.",
    "instance_not_retryable": "This instance can't be retried: {why}.",
    "instance_not_pausable": "An instance that is {status} can't be paused.",
    "instance_not_paused": "This instance is not paused.",
    "instance_ended": "This instance has ended: it is {status}.",
    "wait_over": "Nothing waits for the signal {name} there any more: what it was for has gone on.",
    "unknown_signal": "The workflow waits nowhere for a signal {name}.",
    "start_rate_exceeded": "More than {limit} starts a minute: limits.max_starts_per_minute is {limit}.",
    "id_in_use": "The id {id} has an open run: {instance}.",
    "id_used": "The id {id} was used by the run {instance}, which is {status}.",
    "idempotency_key_reused": "This Idempotency-Key was used with another body.",
    "missing_triggering_user": "The workflow acts on behalf of its starter, and the start names no user.",
    "unauthenticated": "Send a bearer token that this server knows.",
    "forbidden": "This credential may not {verb}: it needs the role {role}.",
    "owner_not_allowed": "This credential may not act for the owner {owner}.",
    "starter_not_allowed": "This credential may not bring in what acts for {user}: that user's may, and an admin's.",
    "invalid_owner": "An owner is type:id, such as team:42, or * for the application: {given} isn't.",
    "invalid_role": "There is no role {given}: the roles are {roles}.",
    "method_not_allowed": "{method} is not answered here.",
    "unsupported_media_type": "Send application/json.",
    "body_too_large": "The body is over {limit} bytes.",
    "invalid_json": "The body isn't JSON that can be stored: {why}.",
    "invalid_request": "The request is wrong.",
    "invalid_usage": "The command line is wrong.",
    "invalid_parameter": "{name} is wrong: {detail}.",
    "unknown_parameter": "{name} is no parameter of this call.",
    "not_available": "{what} is not available in this version.",
    "request_in_progress": "The first request with this Idempotency-Key is not answered yet.",
    "too_many_copies": "{limit} runs are exported and imported here already: try again later.",
    "too_many_streams": "{limit} streams are followed here already: end one, or try again later.",
    "unavailable": "{what} can't be reached now.",
    "internal": "Something went wrong here. It has been logged.",
    # the database
    "schema_older": "The schema {schema} is at revision {found}, and this build needs {needed}: run korak migrate.",
    "schema_newer": "The schema {schema} is at revision {found}, which a newer build has made: this build's newest is "
    "{needed}. Use that build, or one after it.",
    # publish
    "invalid_document": "The graph is wrong. Errors: {count}.",
    "invalid_config": "{detail}",
    "graph_too_large": "The graph is over its limit: {name} is {actual}, {limit} at most.",
    "graph_too_long": "Every way through has {actual} nodes or more; limits.max_steps is {limit}, so no run would end.",
    "unknown_type": "No step type {type} is known here.",
    "duplicate_node": "The id {id} is used twice.",
    "trigger_missing": "The graph has no trigger.",
    "trigger_multiple": "The graph has more than one trigger.",
    "edge_into_trigger": "No edge may lead into the trigger.",
    "edge_unknown_node": "The edge names a node {id} that isn't there.",
    "edge_unknown_outcome": "{type} has no outcome {outcome}.",
    "edge_duplicate": "Two edges leave {id} by {outcome}.",
    "outcome_unconnected": "No edge leaves {id} by {outcome}.",
    "unreachable_node": "Nothing leads to {id}.",
    "cycle_without_loop": "The cycle {nodes} passes through no loop.",
    "unknown_reference": "Nothing is known to write {path}.",
    "unknown_group": "No step here starts runs under the group {group}.",
    "reference_not_ancestor": "{node} doesn't run before {id} on every path.",
    "invalid_value": "{detail}",
    "invalid_condition": "{detail}",
    "invalid_expression": "{detail}",
    "invalid_pattern": "The pattern can't be used: {why}.",
    "invalid_duration": "{detail}",
    "invalid_keyword": "The schema's {keyword} can't be used: {detail}.",
    "invalid_schema": "The schema uses {keyword}, which is not supported.",
    "secret_not_allowed": "A secret may not stand here.",
    "actor_requires_user": "A {on} trigger has no user to act on behalf of.",
    "nothing_follows": "The trigger leads nowhere.",
    "expression_error": "The expression {expression} failed: {why}.",
    "type_mismatch": "{detail}",
    "subject_required": "The workflow has no subject.",
    "retry_clamped": "max_attempts is {given}; {limit} is used.",
    # messages and settings of the broker
    "malformed_message": "The message can't be read: {why}.",
    "broker_unavailable": "The broker can't be reached now: {why}.",
    # steps and instances
    "exception": "The step raised an unexpected error.",
    "timeout": "The step took longer than {seconds} s.",
    "lease_expired": "The engine that ran the step was lost.",
    "invalid_input": "The input at {pointer} is wrong: {detail}.",
    "invalid_output": "The output at {pointer} can't be stored: {detail}.",
    "missing_value": "Nothing stands at {path}.",
    "value_too_large": "What the values read comes to more than {limit} bytes.",
    "resume_unsupported": "{type} can't be resumed by a {kind}.",
    "authorization_denied": "Not allowed: {detail}.",
    "owner_mismatch": "The subject belongs to another owner.",
    "subject_missing": "The subject isn't there.",
    "step_limit_exceeded": "limits.max_steps is {limit}: visit {actual} was refused.",
    "budget_transitions": "limits.max_transitions is {limit}: transition {actual} was refused.",
    "budget_state_bytes": "limits.max_state_bytes is {limit}: the state is {actual} bytes.",
    "budget_items": "limits.max_for_each_items is {limit}: {actual} items were refused.",
    "instance_not_rewindable": "A {status} instance can't be rewound: {why}.",
    "step_undone": "What {node} had done is undone, or couldn't be: fork to a step before it, or start anew.",
    "invalid_export": "The export can't be read: {detail}.",
    "instance_not_portable": "This instance can't be carried elsewhere now: {why}.",
    "export_too_large": "The export is over {limit} bytes.",
    "id_taken": "The id that the run was started with is another's here.",
    "version_missing": "There is no version of {key} with the checksum {checksum} here: publish its graph first.",
    "position_unknown": "The history doesn't tell where the instance stood.",
    "step_not_completed": "{to} names no completed step outside of containers that still stands.",
    "budget_cost": "limits.max_cost_units is {limit}: {actual} units would have been spent.",
    "budget_children": "limits.max_started_workflows is {limit}: {actual} would have been started.",
    "nesting_depth_exceeded": "limits.max_depth is {limit}: a run below this one was refused.",
    "child_not_started": "The workflow {key} can't be started from here: {detail}.",
    "child_failed": "The run {child} failed: {message}",
    "child_cancelled": "The run {child} was cancelled.",
    "wait_impossible": "What is waited for can't come any more: {detail}.",
    "quorum_unreachable": "{needed} must succeed; of {total} bodies {failed} have failed.",
    "loop_exhausted": "The loop went round {limit} times.",
    "unknown_outcome": "{type} returned the outcome {outcome}, which it doesn't declare.",
    "unknown_jump": "{target!r} is no target of this node's jumps: allowed is {allowed}.",
    "invalid_graph": "The stored graph can't be read: {detail}.",
    "webhook_rejected": "The receiver answered {status}.",
    "webhook_unavailable": "The receiver can't be reached or can't answer now: {detail}.",
    "address_refused": "The address {host} may not be called from here.",
    "secret_missing": "There is no secret {name}.",
    "deadline_exceeded": "The instance ran longer than {seconds} s.",
    "field_not_writable": "{field} can't be written.",
    "no_engine_for_type": "No engine runs {type}.",
    "duplicate_step_type": "Two step types have the key {key}.",
    "invalid_step_type": "The step type can't be registered.",
    "duplicate_chain": "Two chains have the key {key}, {where}.",
    "module_missing": "There is no module {name} to load {what} from.",
    "module_broken": "A module can't be loaded.",
    "effect_unavailable": "once() can't be used here: {why}.",
}
"""Every code with its English message. A host's own codes (from StepFailed) carry their message themselves."""


def render(code: str, params: Mapping[str, Any] | None = None, *, default: str | None = None) -> str:
    """The English message of `code`; `default`, else the code itself, where it is a host's own."""
    template = MESSAGES.get(code)
    if template is None:
        return default or code
    try:
        return _word(template, params or {})
    except (KeyError, IndexError, ValueError):
        return default or template


def _word(template: str, params: Mapping[str, Any]) -> str:
    """The sentence. The whole is told without a pointer, and a detail that is a sentence ends once.

    What was kept before it said what is allowed is told without.
    """
    if params.get("pointer") == "":
        template = template.replace(" at {pointer}", "")
    if "allowed" not in params:
        template = template.replace(": allowed is {allowed}", "")
    detail = params.get("detail")
    if isinstance(detail, str) and detail.endswith(".") and template.endswith("{detail}."):
        params = {**params, "detail": detail[:-1]}
    return template.format_map(params)
