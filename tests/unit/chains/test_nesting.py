"""Chains that start other chains, and that wait for runs: what they compile to, what is refused, and how they run."""

from __future__ import annotations

from typing import Any

import pytest

from korak import chain
from korak.chains import Chain
from korak.core.facts import CancelAsked
from korak.errors import Invalid
from korak.graphs.validation import validate
from korak.model import InstanceStatus, JsonObject
from tests.support import links
from tests.support.kin import Kin
from tests.support.plans import registry

ID = "01JAAAAAAAAAAAAAAAAAAAAAAA"


def get_node(built: Chain, name: str) -> Any:
    nodes: Any = built.document()["nodes"]
    return next(node for node in nodes if node["id"] == name)


def make_child(key: str = "child") -> Chain:
    return chain(key).then(links.fetch)


def start(built: Chain, payload: JsonObject) -> tuple[Kin, str]:
    """A family of chains on the real core, and the first run."""
    for made in built.step_types:
        if registry().get(made.key) is None:
            registry().add(made)
    kin = Kin(*(each.document() for each in (*built.children, built)))
    return kin, kin.start(built.key, payload)


def test_t_nest_1_a_child_sees_the_state_and_gives_its_own_back() -> None:
    built = chain("parent").run_workflow("the child", make_child()).then(links.price)
    kin, parent = start(built, {"order": "A-1"})
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.COMPLETED
    assert kin.instance(parent).state == {"order": "A-1", "fetched": "A-1", "price": "3 EUR"}


def test_what_a_child_brings_back_is_never_pruned_and_takes_nothing_along() -> None:
    """Spec 8: what the payload gave stays, what an earlier step wrote goes in its time, what the child wrote stays."""
    child = chain("child").then(links.fetch).then(links.count)
    built = (
        chain("parent")
        .prune_state_after(2)
        .then(links.profile, nested={})
        .run_workflow("the child", child)
        .then(links.secretive)
        .then(links.price, fetched="abc")
        .then(links.publish)
    )
    kin, parent = start(built, {"order": "A", "mine": 1, "rounds": 4})
    kin.drain()
    assert kin.instance(parent).state == {
        "order": "A",
        "mine": 1,
        "fetched": "A",
        "rounds": 5,
        "price": "3 EUR",
        "published": ["fetched", "mine", "ok", "order", "price", "rounds"],
    }


def test_a_child_is_pinned_by_its_checksum() -> None:
    """T-GUARD-8, defect 20: all that the child is goes into what the parent is."""
    child = make_child()
    first = chain("parent").run_workflow("sub", child)
    node = get_node(first, "s0")
    assert (node["type"], node["label"]) == ("start_workflow", "sub")
    assert node["config"] == {
        "definition": "child",
        "checksum": child.checksum,
        "inputs": {"ref": "state"},
        "wait": True,
    }
    other = chain("parent").run_workflow("sub", make_child().max_transitions(9))
    assert other.checksum != first.checksum


def test_a_child_is_taken_as_it_is() -> None:
    child = make_child()
    built = chain("parent").run_workflow("sub", child)
    before = built.checksum
    child.then(links.price)
    assert built.checksum == before
    [taken] = built.children
    assert taken.checksum != child.checksum


def test_t_start_2_and_4_what_agents_are_given() -> None:
    """T-START-4"""
    built = chain("parent").start_agents("agent_tasks", make_child(), group_key="agents")
    assert get_node(built, "start_agents")["config"] == {
        "definition": "child",
        "checksum": make_child().checksum,
        "items": {"ref": "state.agent_tasks", "default": []},
        "payload_key": "agent_task",
        "index_key": "start_item_index",
        "result_key": "agent_workflow_ids",
        "inputs": {"ref": "state"},
        "without": ["agent_tasks", "agent_workflow_ids"],
        "group": "agents",
    }
    kin, parent = start(built, {"agent_tasks": [{"order": "A"}, {"order": "B"}], "x": 1})
    kin.drain()
    children = kin.children(parent)
    assert [kin.instance(each).input for each in children] == [
        {"x": 1, "order": "A", "start_item_index": 0},
        {"x": 1, "order": "B", "start_item_index": 1},
    ]
    state: Any = kin.instance(parent).state
    assert state["agent_workflow_ids"] == children


def test_t_start_2_and_3_nothing_is_inherited_unless_asked_for() -> None:
    built = chain("parent").start_workflows("items", chain("child").delay(hours=1), inherit_state=False)
    kin, parent = start(built, {"items": ["a", ["b"]], "x": 1})
    kin.drain()
    assert [kin.instance(each).input for each in kin.children(parent)] == [
        {"item": "a", "start_item_index": 0},
        {"item": ["b"], "start_item_index": 1},
    ]


def test_a_missing_list_starts_none() -> None:
    kin, parent = start(chain("parent").start_workflows("items", make_child()), {})
    kin.drain()
    assert kin.instance(parent).state == {"started_workflow_ids": []}


@pytest.mark.parametrize(("quorum", "status"), [(2, "completed"), (3, "failed")])
def test_t_ag_1_and_2_a_plan_is_handed_to_agents(quorum: int, status: str) -> None:
    """T-AG-2: three agents of which one is cancelled; two results are enough for a quorum of two, not of three."""
    built = (
        chain("planner").start_agents("agent_tasks", make_child("agent")).wait_for_agents(mode="quorum", quorum=quorum)
    )
    kin, parent = start(built, {"agent_tasks": [{"order": name} for name in "ABC"]})
    kin.work(parent)
    children = kin.children(parent)
    kin.tell(children[1], CancelAsked())
    kin.drain()
    assert kin.instance(parent).status == status
    if status == "completed":
        state: Any = kin.instance(parent).state
        assert list(state["agent_results"]) == [children[0], children[2]]
        assert state["agent_results"][children[0]]["fetched"] == "A"


def test_t_dep_1_and_6_one_run_by_its_id_in_the_state() -> None:
    """T-DEP-6, T-AG-4: the other has completed before this one begins."""
    built = chain("publication").wait_for_workflow("research", result_key="found")
    for made in make_child().step_types:
        if registry().get(made.key) is None:
            registry().add(made)
    kin = Kin(make_child().document(), built.document())
    research = kin.start("child", {"order": "A"})
    kin.drain()
    publication = kin.start("publication", {"research": research})
    kin.drain()
    state: Any = kin.instance(publication).state
    assert state["found"] == {"order": "A", "fetched": "A"}


def test_without_a_key_what_came_is_merged() -> None:
    built = chain("parent").start_workflows("items", make_child(), result_key="ids").wait_for_workflows("ids")
    kin, parent = start(built, {"items": [{"order": "A"}, {"order": "B"}]})
    kin.drain()
    state: Any = kin.instance(parent).state
    assert (state["fetched"], state["order"]) == ("B", "B")


@pytest.mark.parametrize(
    ("built", "config"),
    [
        (chain("x").wait_for_workflow(ID), {"ids": [ID], "mode": "all", "merge": True}),
        (chain("x").wait_for_workflow("other"), {"ids": {"ref": "state.other"}, "mode": "all", "merge": True}),
        (chain("x").wait_for_workflows([ID, ID.lower()], "any", "r"), {"ids": [ID], "mode": "any"}),
        (chain("x").wait_for_workflows("123", "quorum", "r", quorum=2), None),
        (chain("x").wait_for_agents(), {"ids": {"ref": "state.agent_workflow_ids"}, "mode": "all"}),
        (chain("x").wait_for_agent_group(), {"ids": {"ref": "state.agents"}, "mode": "all"}),
    ],
)
def test_who_is_waited_for(built: Chain, config: Any) -> None:
    [node] = [node for node in _list_nodes(built) if node["type"] == "wait_workflows"]
    if config is None:
        config = {"ids": {"ref": 'state["123"]'}, "mode": "quorum", "quorum": 2}
    assert node["config"] == config


def _list_nodes(built: Chain) -> Any:
    return built.document()["nodes"]


def test_t_dep_7_a_group_is_that_of_an_earlier_step() -> None:
    built = chain("x").start_agents("tasks", "agent", group_key="agents").wait_for_agent_group(mode="any")
    assert get_node(built, "wait_for_agent_group")["config"] == {"group": "agents", "mode": "any"}
    assert validate(built.document(), registry()).issues == ()


def test_a_wait_may_have_a_limit() -> None:
    built = chain("x").wait_for_agents(timeout=60, timed_out="$end")
    assert validate(built.document(), registry()).issues == ()


def test_all_of_it_may_be_published() -> None:
    built = (
        chain("x")
        .run_workflow("sub", make_child())
        .start_workflows("items", make_child(), group_key="g")
        .wait_for_workflow_group("g")
        .max_started_workflows(5)
    )
    report = validate(built.document(), _with(built))
    assert report.issues == ()
    settings: Any = built.document()["settings"]
    assert settings == {"limits": {"max_started_workflows": 5}}


def _with(built: Chain) -> Any:
    for made in built.step_types:
        if registry().get(made.key) is None:
            registry().add(made)
    return registry()


REFUSED: list[Any] = [
    lambda: chain("x").run_workflow(" ", make_child()),
    lambda: chain("x").run_workflow("sub", chain("child")),
    lambda: chain("x").run_workflow("sub", make_child("x")),
    lambda: chain("x").run_workflow("sub", chain("y").run_workflow("z", make_child("x"))),
    lambda: chain("x").run_workflow("sub", 3),  # type: ignore[arg-type]  # what is refused is no child
    lambda: chain("x").run_workflow("sub", "no key!"),
    lambda: chain("x").start_workflows("", make_child()),
    lambda: chain("x").start_workflows("items", make_child(), result_key=""),
    lambda: chain("x").start_workflows("items", make_child(), payload_key="_own"),
    lambda: chain("x").start_workflows("items", make_child(), group_key=" "),
    lambda: chain("x").wait_for_workflows([]),
    lambda: chain("x").wait_for_workflows(["short"]),
    lambda: chain("x").wait_for_workflows("ids", "some"),  # type: ignore[arg-type]  # what is refused is no mode
    lambda: chain("x").wait_for_workflows("ids", "quorum"),
    lambda: chain("x").wait_for_workflows("ids", quorum=2),
    lambda: chain("x").wait_for_workflows("ids", "quorum", quorum=0),
    lambda: chain("x").wait_for_workflows([ID, ID], "quorum", quorum=2),
    lambda: chain("x").wait_for_workflow_group(""),
    lambda: chain("x").wait_for_agents(timeout=5),
    lambda: chain("x").max_started_workflows(0),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused_as_it_is_built(number: int) -> None:
    with pytest.raises(Invalid):
        REFUSED[number]()


def test_what_a_chain_starts_stands_before_it_each_once() -> None:
    grandchild = make_child("c")
    child = chain("b").run_workflow("sub", grandchild)
    parent = chain("a").run_workflow("one", child).run_workflow("two", grandchild)
    assert [each.key for each in parent.children] == ["c", "b"]
