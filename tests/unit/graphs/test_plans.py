"""The form that runs: what is frozen, what is compiled, and what a stored graph that can't be read comes to."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import Invalid
from korak.graphs import hygiene
from korak.graphs.builder import GraphBuilder, graph, ref
from korak.graphs.contracts import RetryPolicy
from korak.graphs.freezing import freeze, get_digest
from korak.graphs.planning import build
from korak.graphs.plans import ANY, Plan, Save
from korak.graphs.validation import validate
from korak.model import Json, JsonObject
from tests.support.catalogue import CATALOGUE, VALUE, WITH_CONTAINERS, ListedCatalogue, contract, shape


def plan_of(built: GraphBuilder | JsonObject, catalogue: ListedCatalogue = CATALOGUE) -> Plan:
    """Frozen, stored as JSON, read back and built."""
    document = built.document() if isinstance(built, GraphBuilder) else built
    assert validate(document, catalogue).issues == ()
    frozen = hygiene.loads(hygiene.dumps(freeze(document, catalogue)))
    return build(hygiene.loads(hygiene.dumps(document)), frozen)


def simple() -> GraphBuilder:
    """One node, a, of test.open; what is called next means the last node added, which is a."""
    return graph("order").trigger().node("done", "end").node("a", "test.open").edge("start", "a").edge("a", "done")


def reading(config: JsonObject) -> GraphBuilder:
    """The same, with a node b that has a config, on the error exit of a."""
    return simple().node("b", "test.open", config).edge("a", "b", "error").edge("b", "done")


def paying(**members: Any) -> GraphBuilder:
    built = graph("order").trigger().node("done", "end").node("pay", "test.charge", {"amount": 5, **members})
    return built.edge("start", "pay").edge("pay", "done", "paid").edge("pay", "done", "declined")


def test_a_plan_begins_after_its_trigger() -> None:
    plan = plan_of(simple())
    assert (plan.key, plan.trigger, plan.start) == ("order", "start", "a")
    assert set(plan.nodes) == {"a", "done"}
    assert plan.nodes["a"].targets == {"next": "done"}
    assert plan.nodes["done"].targets == {}
    assert plan.nodes["a"].outcomes == {"next": True}


def test_what_a_type_says_of_its_node() -> None:
    node = plan_of(paying()).nodes["pay"]
    assert (node.type, node.type_version, node.label) == ("test.charge", 1, None)
    assert (node.ability, node.queue, node.max_output, node.timeout) == ("charge", "payments", 100_000, 20.0)
    assert (node.has_cancel_hook, node.has_side_effects, node.waits, node.is_pure) == (True, True, False, False)
    assert node.outcomes == {"paid": True, "declined": True}
    assert node.targets == {"paid": "done", "declined": "done"}
    assert node.retry == RetryPolicy(4, (1, "PT1M"), 0.5)
    charge = CATALOGUE.get_contract("test.charge")
    assert charge is not None
    assert node.digest == get_digest(charge)


def test_what_a_node_says_for_itself_comes_first() -> None:
    node = plan_of(
        paying().label("Pay").timeout("PT2M").queue("slow").priority("urgent").retry(2, [5], jitter=0)
    ).nodes["pay"]
    assert (node.label, node.timeout, node.queue, node.priority) == ("Pay", 120.0, "slow", 3)
    assert node.retry == RetryPolicy(2, (5,), 0)


def test_whose_retry_counts() -> None:
    """RT-1: node, settings, type, and None for the engine's default."""
    settings = {"retry": {"max_attempts": 7, "backoff": [9]}}
    assert plan_of(paying().retry(2).settings(**settings)).nodes["pay"].retry == RetryPolicy(2, (), 0.1)
    assert plan_of(paying().settings(**settings)).nodes["pay"].retry == RetryPolicy(7, (9,), 0.1)
    assert plan_of(paying()).nodes["pay"].retry == RetryPolicy(4, (1, "PT1M"), 0.5)
    assert plan_of(simple()).nodes["a"].retry is None


def test_whose_queue_counts() -> None:
    """DESIGN 2: node, type, settings, and None for the default."""
    assert plan_of(paying().queue("mine").settings(queue="ours")).nodes["pay"].queue == "mine"
    assert plan_of(paying().settings(queue="ours")).nodes["pay"].queue == "payments"
    assert plan_of(simple().settings(queue="ours")).nodes["a"].queue == "ours"
    assert plan_of(simple()).nodes["a"].queue is None


def test_whose_priority_counts() -> None:
    assert plan_of(simple().priority("low").settings(priority="high")).nodes["a"].priority == 0
    assert plan_of(simple().settings(priority="high")).nodes["a"].priority == 2
    assert plan_of(simple()).nodes["a"].priority is None


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(1.5, 1.5), ("PT1H", 3600.0), ({"days": 1}, 86400.0), ("P1M", 2678400.0)]
)
def test_timeouts_are_seconds(timeout: Any, seconds: float) -> None:
    assert plan_of(simple().timeout(timeout)).nodes["a"].timeout == seconds


def test_save() -> None:
    assert plan_of(simple().save("quote")).nodes["a"].save == Save("quote")
    assert plan_of(simple().save()).nodes["a"].save == Save(None)
    assert plan_of(simple()).nodes["a"].save is None


def test_error_exits() -> None:
    built = simple().on_error("acme.*", "x", outcome="declined").on_error("*", outcome="error")
    node = plan_of(built.edge("a", "done", "declined").edge("a", "done", "error")).nodes["a"]
    assert node.on_error == ((("acme.*", "x"), "declined"), (("*",), "error"))
    assert node.targets == {"next": "done", "declined": "done", "error": "done"}


def test_jumps() -> None:
    assert plan_of(simple()).nodes["a"].jumps is None
    assert plan_of(simple().jumps("a", "$end")).nodes["a"].jumps == frozenset({"a", "$end"})
    assert plan_of(simple().jumps()).nodes["a"].jumps is ANY


def test_jumps_know_labels_that_are_no_ids_and_not_taken_twice() -> None:
    labels = {"b": "Same", "c": "Same", "d": "a"}
    graph: Any = simple().document()
    [given] = [node for node in graph["nodes"] if node["id"] == "a"]
    graph["nodes"] += [{**given, "id": name, "label": label, "jumps": "any"} for name, label in labels.items()]
    graph["edges"] += [{"from": name, "to": "done"} for name in labels]
    given |= {"label": "First", "jumps": "any"}
    planned = plan_of(graph).nodes
    assert planned["a"].names == planned["b"].names == {"First": "a"}
    assert planned["done"].names == {}


def test_what_can_come_round_repeats() -> None:
    built = (
        graph("order")
        .trigger()
        .node("l", "loop", over=[1, 2], max_iterations=3)
        .node("a", "test.open")
        .node("b", "test.open")
        .jumps("b", "c")
        .node("c", "test.open")
        .node("done", "end")
    )
    for edge in ("start l", "a l", "b c", "c done"):
        built.edge(*edge.split())
    plan = plan_of(built.edge("l", "a", "body").edge("l", "b", "done"))
    assert {name for name, node in plan.nodes.items() if node.repeats} == {"l", "a", "b"}


# configs


def test_a_config_resolves_to_the_input() -> None:
    plan = plan_of(reading({"x": ref("input.n"), "y": [1, {"template": "${input.n}!"}]}))
    node = plan.nodes["b"]
    assert node.config.resolve({"input": {"n": 3}}) == {"x": 3, "y": [1, "3!"]}
    assert node.raw == {"x": {"ref": "input.n"}, "y": [1, {"template": "${input.n}!"}]}
    assert plan.nodes["a"].config.is_literal
    assert plan.nodes["a"].config.resolve({}) == {}


def test_conditions_are_left_to_their_type() -> None:
    condition: JsonObject = {"cel": "input.n > 3"}
    built = graph("x").trigger().node("if", "condition", {"if": condition}).node("done", "end")
    built.edge("start", "if").edge("if", "done", "true").edge("if", "done", "false")
    node = plan_of(built).nodes["if"]
    assert node.config.resolve({}) == {"if": condition}
    assert node.raw == {"if": condition}
    assert node.program is None


def test_conditions_in_a_list() -> None:
    cases = [{"key": "big", "if": {"cel": "input.n > 3"}}, {"key": "small", "if": {"not": {"cel": "true"}}}]
    built = graph("x").trigger().node("way", "branch", cases=cases).node("done", "end").edge("start", "way")
    for outcome in ("big", "small", "default"):
        built.edge("way", "done", outcome)
    assert plan_of(built).nodes["way"].config.resolve({}) == {"cases": cases}


@pytest.mark.parametrize("name", ["ref", "cel", "template", "secret", "literal"])
def test_a_member_may_be_called_like_a_value_form(name: str) -> None:
    assert plan_of(reading({name: "input.x"})).nodes["b"].config.resolve({}) == {name: "input.x"}


def test_secrets_stay_references() -> None:
    config = plan_of(paying(token={"secret": "stripe"})).nodes["pay"].config
    assert config.resolve({}) == {"amount": 5, "token": {"secret": "stripe"}}
    assert config.reveal({}, str.upper) == {"amount": 5, "token": "STRIPE"}


def test_inputs_are_checked_only_where_something_is_left_to_check() -> None:
    assert plan_of(paying()).nodes["pay"].input_schema is None
    assert plan_of(reading({"x": ref("input.n")})).nodes["b"].input_schema is None
    schema = plan_of(paying(note=ref("input.note"))).nodes["pay"].input_schema
    assert schema is not None
    assert schema.check({"amount": 5, "note": "x"}) == []
    assert [issue.pointer for issue in schema.check({"amount": 5, "note": 3})] == ["/note"]


# the whole


def test_settings() -> None:
    plan = plan_of(
        simple().settings(
            timezone="Europe/Ljubljana",
            actor="on_behalf_of",
            label={"template": "Order ${input.id}"},
            execution_timeout="P1D",
            run_timeout=60,
            limits={"max_steps": 20},
        )
    )
    settings = plan.settings
    assert (settings.timezone, settings.actor, settings.limits) == (
        "Europe/Ljubljana",
        "on_behalf_of",
        {"max_steps": 20},
    )
    assert settings.label is not None
    assert settings.label.resolve({"input": {"id": 7}}) == "Order 7"
    assert settings.execution_timeout is not None
    assert settings.execution_timeout.seconds == 86400
    assert settings.run_timeout is not None
    assert settings.run_timeout.seconds == 60


def test_settings_left_out() -> None:
    settings = plan_of(simple()).settings
    assert (settings.timezone, settings.actor, settings.queue, settings.priority) == ("UTC", "system", None, None)
    assert (settings.label, settings.execution_timeout, settings.run_timeout, settings.retry) == (
        None,
        None,
        None,
        None,
    )
    assert settings.limits == {}


def waiting(*configs: JsonObject, own: bool = False) -> Plan:
    built = graph("x").trigger()
    last = "start"
    for index, config in enumerate(configs):
        built.node(f"w{index}", "wait", config).edge(last, f"w{index}")
        last = f"w{index}"
    if own:
        built.node("ask", "test.ask").edge(last, "ask").edge("ask", "done", "approved")
    else:
        built.edge(last, "done")
    return plan_of(built.node("done", "end"))


def test_the_signals_that_a_graph_takes() -> None:
    assert plan_of(simple()).signals == frozenset()
    plan = waiting({"signal": "go"}, {"signals": ["a", "b"]}, {"event": "paid"}, {"for": 5})
    assert plan.signals == frozenset({"go", "a", "b", "paid"})


def test_a_graph_that_takes_any_signal() -> None:
    assert waiting({"signal": ref("input.name")}).signals is None
    assert waiting({"signals": ["a", ref("input.name")]}).signals is None
    assert waiting({"signals": ref("input.names")}).signals is None
    assert waiting({"signal": "go"}, own=True).signals is None


def test_the_steps_that_are_read() -> None:
    built = (
        graph("x")
        .trigger()
        .node("a", "test.quote")
        .node("b", "test.quote")
        .node("c", "test.quote")
        .node("d", "test.charge", amount=ref("steps.a.output.total"), after="b")
        .node("if", "condition", {"if": {"ref": "steps.c.output.total", "op": "gt", "value": 3}})
        .node("done", "end")
    )
    for edge in ("start a", "a b", "b c", "c d", "d if paid", "d done declined", "if done true", "if done false"):
        built.edge(*edge.split())
    assert plan_of(built).referenced == {"a", "b", "c"}


def test_all_steps_are_read_where_one_is_computed() -> None:
    assert plan_of(reading({"x": ref("steps")})).referenced == {
        "a",
        "b",
        "done",
    }


# inputs


def accepting(inputs: JsonObject) -> Plan:
    return plan_of(graph("x").trigger("manual", inputs=inputs).node("done", "end").edge("start", "done"))


def test_any_input_where_none_is_declared() -> None:
    plan = plan_of(simple())
    assert plan.input_schema is None
    assert plan.accept({"x": 1}) == ({"x": 1}, [])
    assert plan.accept({"x": "y" * 99}, 50) == ({"x": "y" * 99}, [])


def test_the_short_form_takes_nothing_else() -> None:
    plan = accepting({"id": {"type": "string", "required": True}, "n": {"type": "integer", "default": 3}})
    assert plan.accept({"id": "a"}) == ({"id": "a", "n": 3}, [])
    assert plan.accept({"id": "a", "n": 4}) == ({"id": "a", "n": 4}, [])
    wrong: list[JsonObject] = [{}, {"id": 1}, {"id": "a", "x": 1}]
    assert [[issue.code for issue in plan.accept(each)[1]] for each in wrong] == [["invalid_input"]] * 3


def test_an_input_may_be_called_type() -> None:
    plan = accepting({"type": {"type": "string", "required": True}})
    assert plan.accept({"type": "x"}) == ({"type": "x"}, [])
    assert plan.accept({})[1]


def test_a_default_makes_an_input_optional() -> None:
    assert accepting({"n": {"type": "integer", "required": True, "default": 1}}).accept({}) == ({"n": 1}, [])


def test_a_schema_of_inputs() -> None:
    plan = accepting(
        {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "address": {"type": "object", "properties": {"country": {"type": "string", "default": "SI"}}},
            },
            "required": ["id"],
        }
    )
    assert plan.accept({"id": "a", "more": 1}) == ({"id": "a", "more": 1}, [])
    assert plan.accept({"id": "a", "address": {}}) == ({"id": "a", "address": {"country": "SI"}}, [])
    assert [issue.pointer for issue in plan.accept({"id": 3})[1]] == ["/id"]


def test_what_was_given_is_not_changed() -> None:
    given: JsonObject = {"address": {}}
    inputs: JsonObject = {"address": {"type": "object", "properties": {"country": {"type": "string", "default": "SI"}}}}
    accepting(inputs).accept(given)
    assert given == {"address": {}}


# bodies


def test_bodies() -> None:
    """The nodes of bodies stand with the others, each with its container."""
    line: JsonObject = {
        "start": "b",
        "nodes": [{"id": "b", "type": "test.open"}, {"id": "c", "type": "test.open"}],
        "edges": [{"from": "b", "to": "c"}],
    }
    document: JsonObject = {
        "schema": "korak.graph/v1",
        "key": "x",
        "nodes": [
            {"id": "start", "type": "trigger"},
            {"id": "each", "type": "for_each", "config": {"items": {"ref": "input.lines"}}, "body": line},
            {
                "id": "both",
                "type": "parallel",
                "branches": {
                    "right": {"start": "r", "nodes": [{"id": "r", "type": "test.open"}]},
                    "left": {"start": "l", "nodes": [{"id": "l", "type": "test.open"}]},
                },
            },
            {"id": "done", "type": "end"},
        ],
        "edges": [{"from": "start", "to": "each"}, {"from": "each", "to": "both"}, {"from": "both", "to": "done"}],
    }
    plan = plan_of(document, WITH_CONTAINERS)
    nodes = plan.nodes
    assert {name: node.container for name, node in nodes.items()} == {
        "each": None,
        "both": None,
        "done": None,
        "b": "each",
        "c": "each",
        "r": "both",
        "l": "both",
    }
    assert (nodes["each"].body, nodes["each"].branches) == ("b", {})
    assert (nodes["both"].body, list(nodes["both"].branches.items())) == (None, [("right", "r"), ("left", "l")])
    assert nodes["b"].targets == {"next": "c"}
    assert {name for name, node in nodes.items() if node.repeats} == {"b", "c", "r", "l"}


# freezing


def test_a_type_is_frozen_once() -> None:
    frozen = freeze(simple().node("b", "test.open").edge("a", "b", "error").document(), CATALOGUE)
    assert set(frozen["types"]) == {"test.open@1", "end@1"}  # type: ignore[arg-type]  # an object
    assert frozen["nodes"]["b"] == {"type": "test.open@1", "outcomes": {"next": True}}  # type: ignore[index, call-overload]  # an object


def test_a_plan_keeps_the_version_that_was_published() -> None:
    """A newer version of a type, registered later, changes nothing."""
    old = ListedCatalogue((*CATALOGUE.contracts, contract("test.moving")))
    document = (
        graph("x")
        .trigger()
        .node("a", "test.moving")
        .node("done", "end")
        .edge("start", "a")
        .edge("a", "done")
        .document()
    )
    assert build(document, freeze(document, old)).nodes["a"].type_version == 1
    new = ListedCatalogue((*old.contracts, contract("test.moving", version=2)))
    assert build(document, freeze(document, new)).nodes["a"].type_version == 2


def test_freezing_an_unknown_type() -> None:
    with pytest.raises(Invalid, match=r"test\.gone"):
        freeze(graph("x").trigger().node("a", "test.gone").document(), CATALOGUE)


@pytest.mark.parametrize(
    "other",
    [
        contract("t.x", config=shape({"a": VALUE})),
        contract("t.x", "yes", "no"),
        contract("t.x", output_schema=shape({})),
        contract("t.x", has_side_effects=False),
    ],
    ids=["config", "outcomes", "output", "effects"],
)
def test_what_the_digest_of_a_contract_counts(other: Any) -> None:
    base = contract("t.x")
    assert get_digest(other) != get_digest(base)
    assert get_digest(base) == get_digest(contract("t.x", label="X", queue="q", timeout=3.0, version=9))


def test_the_digest_of_a_type_that_needs_its_config() -> None:
    branch = CATALOGUE.get_contract("branch")
    assert branch is not None
    assert len(get_digest(branch)) == 64


# what can't be read


@pytest.mark.parametrize("raw", [None, 3, [], {}, {"nodes": None}, {"nodes": [{}], "key": "x"}])
def test_a_row_edited_by_hand(raw: Json) -> None:
    frozen = freeze(simple().document(), CATALOGUE)
    with pytest.raises(Invalid) as raised:
        build(raw, frozen)
    assert raised.value.code == "invalid_graph"
    with pytest.raises(Invalid) as raised:
        build(simple().document(), raw)
    assert raised.value.code == "invalid_graph"


RICH = (
    paying(note=ref("input.note"))
    .label("Pay")
    .retry(2, [5, "PT1M"])
    .timeout(5)
    .save("x")
    .on_error("x", outcome="error")
    .jumps("done")
    .edge("pay", "done", "error")
    .settings(label={"template": "${input.x}"}, limits={"max_steps": 5}, execution_timeout=5)
    .document()
)

JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def list_places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside another."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [] if not path else [path]
    for key, member in items:
        found.extend(list_places(member, (*path, key)))
    return found


def damage(value: Any, place: tuple[Any, ...], junk: Any) -> Any:
    """A copy of the value with junk at one place."""
    damaged = deepcopy(value)
    inner = damaged
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = junk
    return damaged


@given(st.data(), JUNK)
def test_any_damage_is_invalid_graph_or_nothing(data: st.DataObject, junk: Any) -> None:
    frozen = freeze(RICH, CATALOGUE)
    document: Json = RICH
    if data.draw(st.booleans()):
        frozen = damage(frozen, data.draw(st.sampled_from(list_places(frozen))), junk)
    else:
        document = damage(document, data.draw(st.sampled_from(list_places(document))), junk)
    with suppress(Invalid):
        build(document, frozen)


@given(st.data(), JUNK)
def test_validation_never_raises(data: st.DataObject, junk: Any) -> None:
    damaged = damage(RICH, data.draw(st.sampled_from(list_places(RICH))), junk)
    report = validate(damaged, CATALOGUE)
    for issue in (*report.issues, *report.warnings):
        assert issue.message
        assert hygiene.check_json(issue.to_json()) is None
    if report.is_publishable:
        build(damaged, freeze(damaged, CATALOGUE))


@st.composite
def documents(draw: st.DrawFn) -> JsonObject:
    """Nodes of known types with random edges, ids, references and jumps: now and then one that may be published."""
    size = draw(st.integers(1, 6))
    names = [f"n{index}" for index in range(size)]
    anywhere = st.sampled_from(["start", *names, "done", "ghost"])
    nodes: list[Json] = [{"id": "start", "type": "trigger"}, {"id": "done", "type": "end"}]
    edges: list[Json] = [{"from": "start", "to": "n0"}]
    for name in names:
        kind = draw(st.sampled_from(["test.open", "test.quote", "loop", "condition", "test.ask", "end", "test.gone"]))
        configs: dict[str, JsonObject] = {
            "test.open": {"x": {"ref": f"steps.{draw(anywhere)}.output.total"}},
            "loop": {"over": [1], "max_iterations": 3},
            "condition": {"if": {"ref": f"loops.{draw(anywhere)}.index", "op": "eq", "value": 1}},
        }
        node: JsonObject = {"id": name, "type": kind, "config": configs.get(kind, {})}
        if draw(st.booleans()):
            targets: list[Json] = [draw(anywhere)]
            node["jumps"] = draw(st.sampled_from(["any", targets]))
        nodes.append(node)
        outcomes = {"loop": ["body", "done"], "condition": ["true", "false"], "test.ask": ["approved"], "end": []}
        edges.extend({"from": name, "outcome": way, "to": draw(anywhere)} for way in outcomes.get(kind, ["next"]))
    return {"schema": "korak.graph/v1", "key": "x", "nodes": nodes, "edges": edges}


@given(documents())
def test_what_may_be_published_can_be_run(document: JsonObject) -> None:
    report = validate(document, CATALOGUE)
    if report.is_publishable:
        plan = build(document, hygiene.loads(hygiene.dumps(freeze(document, CATALOGUE))))
        for node in plan.nodes.values():
            assert set(node.outcomes) <= set(node.targets) | {"error"}
            assert set(node.targets.values()) <= set(plan.nodes)
