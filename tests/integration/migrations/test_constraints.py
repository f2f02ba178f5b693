"""Each named constraint refuses the row that it is there for, by its name (STYLE 8)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest
from psycopg import sql

from tests.integration.migrations.rows import AT, DIGEST, LEGAL, RUNNING, SEED, ULID, Row, insert, insert_instance

OTHER = "01J0000000000000000000000B"


class Illegal(NamedTuple):
    """`row` is refused by `constraint`; where `beside` is given, because that row is there already."""

    constraint: str
    table: str
    row: Row
    beside: Row | None = None


ILLEGAL = [
    Illegal("wdef_key_unique", "workflow_definitions", {}),
    Illegal(
        "wdef_webhook_unique",
        "workflow_definitions",
        {"key": "b", "webhook_id": ULID},
        {"key": "a", "webhook_id": ULID},
    ),
    Illegal("wdef_status_check", "workflow_definitions", {"key": "b", "status": "gone", "current_version_id": SEED}),
    Illegal("wdef_owner_check", "workflow_definitions", {"key": "b", "owner_scope": "*"}),
    Illegal("wdef_current_check", "workflow_definitions", {"key": "b", "status": "active"}),
    Illegal("wdef_current_fk", "workflow_definitions", {"key": "b", "status": "active", "current_version_id": 404}),
    Illegal("wchunk_index_check", "workflow_chunks", {"index": -1}),
    Illegal("wart_kind_check", "workflow_artifacts", {"kind": "pickle"}),
    Illegal("wart_size_check", "workflow_artifacts", {"size": 4}),
    Illegal("wart_visit_check", "workflow_artifacts", {"node_id": "write"}),
    Illegal("wart_visit_check", "workflow_artifacts", {"execution_id": ULID, "visit": 1}),
    Illegal("wver_definition_fk", "workflow_versions", {"definition_id": 404}),
    Illegal(
        "wver_number_unique",
        "workflow_versions",
        {"status": "published", "number": 1, "published_at": AT, "contracts": "{}"},
        {"status": "superseded", "number": 1, "published_at": AT, "contracts": "{}"},
    ),
    Illegal(
        "wver_status_check", "workflow_versions", {"status": "new", "number": 2, "published_at": AT, "contracts": "1"}
    ),
    Illegal("wver_frozen_check", "workflow_versions", {"status": "published", "published_at": AT, "contracts": "{}"}),
    Illegal("wver_frozen_check", "workflow_versions", {"status": "published", "number": 1, "contracts": "{}"}),
    Illegal("wver_frozen_check", "workflow_versions", {"status": "published", "number": 1, "published_at": AT}),
    Illegal("wver_frozen_check", "workflow_versions", {"number": 1}),
    Illegal("wver_actor_check", "workflow_versions", {"actor_mode": "root"}),
    Illegal("wver_draft_unique", "workflow_versions", {}),
    Illegal("winst_definition_fk", "workflow_instances", {"ulid": OTHER, "definition_id": 404}),
    Illegal("winst_version_fk", "workflow_instances", {"ulid": OTHER, "version_id": 404}),
    Illegal("winst_parent_fk", "workflow_instances", {"ulid": OTHER, "parent_instance_id": 404}),
    Illegal("winst_ulid_unique", "workflow_instances", {}),
    Illegal("winst_status_check", "workflow_instances", {"status": "paused"}),
    Illegal("winst_ended_check", "workflow_instances", {"status": "completed"}),
    Illegal("winst_ended_check", "workflow_instances", {"ended_at": AT, "closed_reason": "completed"}),
    Illegal("winst_closed_check", "workflow_instances", {"status": "completed", "ended_at": AT}),
    Illegal("winst_closed_check", "workflow_instances", {"closed_reason": "completed"}),
    Illegal(
        "winst_failure_check", "workflow_instances", {"status": "failed", "ended_at": AT, "closed_reason": "failed"}
    ),
    Illegal("winst_actor_check", "workflow_instances", {"actor_mode": "root"}),
    Illegal("winst_priority_check", "workflow_instances", {"priority": 4}),
    Illegal(
        "winst_business_unique",
        "workflow_instances",
        {"ulid": OTHER, "business_id": "A", "run_number": 2},
        {"ulid": OTHER[:-1] + "C", "business_id": "A"},
    ),
    Illegal(
        "winst_run_unique",
        "workflow_instances",
        {"ulid": OTHER, "business_id": "A"},
        {
            "ulid": OTHER[:-1] + "C",
            "business_id": "A",
            "status": "completed",
            "ended_at": AT,
            "closed_reason": "completed",
        },
    ),
    Illegal("winst_owner_check", "workflow_instances", {"owner_id": None}),
    Illegal("wscope_body_unique", "workflow_scopes", {}, {}),
    Illegal("wscope_status_check", "workflow_scopes", {"status": "waiting"}),
    Illegal("wstep_attempt_unique", "workflow_step_runs", {}, {}),
    Illegal("wstep_status_check", "workflow_step_runs", {"status": "parked"}),
    Illegal("wstep_role_check", "workflow_step_runs", {"role": "hook"}),
    *(
        Illegal("wstep_claim_check", "workflow_step_runs", RUNNING | {name: None})
        for name in RUNNING
        if name != "status"
    ),
    Illegal("wstep_finished_check", "workflow_step_runs", {"status": "completed"}),
    Illegal("wstep_finished_check", "workflow_step_runs", {"finished_at": AT}),
    Illegal("wstep_ready_check", "workflow_step_runs", RUNNING | {"ready_at": AT}),
    Illegal("wstep_sent_check", "workflow_step_runs", {"sent_at": AT}),
    Illegal("wstep_probe_check", "workflow_step_runs", {"probe": "look"}),
    Illegal("wstep_probe_check", "workflow_step_runs", {"status": "waiting", "probe": "twice"}),
    Illegal("wstep_parked_check", "workflow_step_runs", {"parked_for": "pause", "ready_at": AT}),
    Illegal("wstep_parked_check", "workflow_step_runs", {"parked_for": "pause", "status": "waiting"}),
    Illegal("wstep_parked_for_check", "workflow_step_runs", {"parked_for": "fun"}),
    Illegal("wstep_priority_check", "workflow_step_runs", {"priority": -1}),
    Illegal("wwait_kind_check", "workflow_waits", {"kind": "hold"}),
    Illegal("wwait_status_check", "workflow_waits", {"status": "claimed"}),
    Illegal("wwait_fired_check", "workflow_waits", {"status": "fired"}),
    Illegal("wwait_fired_check", "workflow_waits", {"fired_at": AT}),
    Illegal("wwait_suspended_check", "workflow_waits", {"remaining": 1.5}),
    Illegal("wwait_sent_check", "workflow_waits", {"sent_at": AT}),
    Illegal("wwait_mode_check", "workflow_waits", {"mode": "some"}),
    Illegal("wsig_source_unique", "workflow_signals", {}, {}),
    Illegal("wsig_kind_check", "workflow_signals", {"kind": "nudge"}),
    Illegal("wsig_buffered_check", "workflow_signals", {"kind": "cancel", "buffered_at": AT}),
    Illegal("wemit_source_unique", "workflow_emits", {}, {}),
    Illegal("wshape_unique", "event_shapes", {}, {}),
    Illegal("wdep_place_unique", "workflow_dependencies", {}, {}),
    Illegal("wcas_seq_unique", "workflow_cascades", {}, {}),
    Illegal("wcas_kind_check", "workflow_cascades", {"kind": "cancel"}),
    Illegal("wevent_seq_unique", "workflow_events", {}, {}),
    Illegal("wcomp_seq_unique", "workflow_compensations", {}, {}),
    Illegal("wcomp_status_check", "workflow_compensations", {"status": "undone"}),
    Illegal("wfail_source_check", "workflow_failures", {"source": "engine"}),
    Illegal("wfail_propagation_check", "workflow_failures", {"propagation": "up"}),
    Illegal("widem_definition_fk", "workflow_idempotency_keys", {"definition_id": 404}),
    Illegal("widem_instance_fk", "workflow_idempotency_keys", {"instance_id": 404}),
    Illegal("widem_parent_fk", "workflow_idempotency_keys", {"parent_instance_id": 404}),
    Illegal("widem_unique", "workflow_idempotency_keys", {}, {}),
    Illegal("widem_scope_check", "workflow_idempotency_keys", {"scope": "emit"}),
    Illegal("winbox_kind_check", "workflow_inbox", {"kind": "signal"}),
    Illegal("winbox_debounce_check", "workflow_inbox", {"debounce_key": "a"}),
    Illegal("winbox_debounce_check", "workflow_inbox", {"debounce_key": "a", "opened_at": AT, "kind": "emit"}),
    Illegal(
        "winbox_debounce_unique",
        "workflow_inbox",
        {"debounce_key": "a", "opened_at": AT},
        {"debounce_key": "a", "opened_at": AT},
    ),
    Illegal("winbox_failed_check", "workflow_inbox", {"failed_at": AT}),
    Illegal("winbox_failed_check", "workflow_inbox", {"error": "{}"}),
    Illegal("hans_key_unique", "http_answers", {}, {}),
    Illegal("fkey_unique", "flow_keys", {}, {}),
    Illegal("fkey_kind_check", "flow_keys", {"kind": "weight"}),
    Illegal("fkey_counters_check", "flow_keys", {"counters": [0]}),
    Illegal("fslot_unique", "flow_slots", {}, {}),
    Illegal("fslot_weight_check", "flow_slots", {"weight": 0}),
    Illegal("fweight_weight_check", "flow_weights", {"weight": 0}),
    Illegal("hold_kind_check", "holds", {"kind": "owner"}),
    Illegal("hold_open_unique", "holds", {}, {}),
    Illegal("hstate_single_check", "hold_state", {"id": False}),
    Illegal("queue_bound_check", "queues", {"bound": 0}),
    Illegal("engine_ulid_unique", "engines", {}, {}),
    Illegal("engine_closed_check", "engines", {"close_reason": "lost"}),
    Illegal("token_ulid_unique", "tokens", {"digest": "1" * 64}, {}),
    Illegal("token_digest_unique", "tokens", {"ulid": OTHER}, {}),
    Illegal("token_owner_check", "tokens", {"owner_id": None}),
]


@pytest.fixture
def database(shared_database_url: str) -> Iterator[psycopg.Connection]:
    """A transaction that holds one instance and is rolled back."""
    with psycopg.connect(shared_database_url) as connection:
        insert_instance(connection)
        yield connection
        connection.rollback()


@pytest.mark.parametrize("case", ILLEGAL, ids=[f"{number}-{case.constraint}" for number, case in enumerate(ILLEGAL)])
def test_a_constraint_refuses(database: psycopg.Connection, case: Illegal) -> None:
    database.execute("set constraints all immediate")
    if case.beside is not None:
        insert(database, case.table, case.beside)
    with pytest.raises(psycopg.IntegrityError) as refused:
        insert(database, case.table, case.row)
    assert refused.value.diag.constraint_name == case.constraint


@pytest.mark.parametrize("table", LEGAL)
def test_what_the_cases_start_from_is_legal(database: psycopg.Connection, table: str) -> None:
    if table not in ("workflow_definitions", "workflow_versions", "workflow_instances", "hold_state"):
        insert(database, table, {})
    database.execute("set constraints all immediate")
    count = database.execute(sql.SQL("select count(*) from korak.{}").format(sql.Identifier(table))).fetchone()
    assert count == (1,)


def test_every_named_constraint_has_its_case(shared_database_url: str) -> None:
    with psycopg.connect(shared_database_url) as connection:
        rows = connection.execute(
            "select conname from pg_constraint where connamespace = 'korak'::regnamespace "
            " and contype in ('c', 'f', 'p', 'u')"
            " union select relname from pg_class c join pg_index i on i.indexrelid = c.oid"
            " where c.relnamespace = 'korak'::regnamespace and i.indisunique"
        ).fetchall()
    named = {name for (name,) in rows if not name.endswith(("_pkey", "_pkc"))}
    assert {case.constraint for case in ILLEGAL} == named


def test_a_revoked_digest_stays_taken(database: psycopg.Connection) -> None:
    insert(database, "tokens", {"revoked_at": AT})
    with pytest.raises(psycopg.errors.UniqueViolation):
        insert(database, "tokens", {"ulid": OTHER, "digest": DIGEST})


def test_signals_without_a_wait_are_one_by_their_source(database: psycopg.Connection) -> None:
    insert(database, "workflow_signals", {"wait_id": None, "source_id": "a"})
    insert(database, "workflow_signals", {"wait_id": 1, "source_id": "a"})
    insert(database, "workflow_signals", {"wait_id": None, "source_id": "b"})
    with pytest.raises(psycopg.errors.UniqueViolation):
        insert(database, "workflow_signals", {"wait_id": None, "source_id": "b"})
