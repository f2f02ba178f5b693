"""Who may: tokens, owners, roles, and what is open to everybody."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from korak.graphs.schema import graph_schema
from korak.model import OwnerRole
from korak.owners.roles import VERBS, Verb
from korak_api.routes import OPERATIONS
from tests.support.apis import ORDER, Api

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize(
    "header",
    [None, "", "Bearer", "Bearer ", "Bearer korak_nobody", "Basic a2E6aw==", "Bearer " + "x" * 5000, "Bearer \u00e9"],
)
async def test_without_a_known_token_nothing_is_answered(shared_api: Api, header: str | None) -> None:
    headers: list[tuple[bytes, bytes]] = [] if header is None else [(b"authorization", header.encode("latin-1"))]
    for operation in OPERATIONS:
        if operation.is_public:
            continue
        path = operation.path.format(key="order", ulid=ULID, number=1, id=ULID, name="default", scope="team:1")
        response = await shared_api.client.request(operation.method, path, headers=headers)
        assert (response.status_code, response.json()["code"]) == (401, "unauthenticated"), path
        assert response.headers["www-authenticate"] == 'Bearer realm="korak"'
        assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("role", list(OwnerRole))
async def test_each_role_may_what_its_verbs_say_and_nothing_else(shared_api: Api, role: OwnerRole) -> None:
    token = await shared_api.make_token(role)
    for operation in OPERATIONS:
        if operation.verb is None:
            continue
        path = operation.path.format(key="nothing", ulid=ULID, number=1, id=ULID, name="default", scope="team:1")
        response = await shared_api.send(operation.method, path, token=token)
        is_allowed = operation.verb in VERBS[role]
        assert (response.status_code != 403) == is_allowed, f"{role} {operation.method} {path}: {response.text}"
        if not is_allowed:
            assert response.json()["code"] == "forbidden"


async def test_every_operation_asks_for_a_verb_but_these(shared_api: Api) -> None:
    assert {operation.path for operation in OPERATIONS if operation.verb is None} == {"/v1/me", "/v1/schema/graph"}
    assert {operation.path for operation in OPERATIONS if operation.is_public} == {"/v1/schema/graph"}


async def test_me_tells_who_asks_and_for_whom(shared_api: Api) -> None:
    team = await shared_api.make_token(OwnerRole.VIEWER, OwnerRole.STARTER, owner="team:1", user="ana")

    mine = (await shared_api.get("/v1/me", token=team)).json()
    app = (await shared_api.get("/v1/me", headers={"korak-owner": "team:7"})).json()

    assert mine == {
        "name": "test",
        "user": "ana",
        "owner": "team:1",
        "acts_for": "team:1",
        "is_app_wide": False,
        "roles": ["starter", "viewer"],
    }
    assert (app["owner"], app["acts_for"], app["is_app_wide"]) == (None, "team:7", True)


async def test_a_token_of_one_owner_is_always_that_owner(shared_api: Api) -> None:
    team = await shared_api.make_token(OwnerRole.ADMIN, owner="team:1")

    own = await shared_api.get("/v1/instances", token=team, headers={"korak-owner": "team:1"})
    other = await shared_api.get("/v1/instances", token=team, headers={"korak-owner": "team:2"})
    everybody = await shared_api.get("/v1/instances", token=team, headers={"korak-owner": "*"})
    nobody = await shared_api.get("/v1/instances", headers={"korak-owner": "team"})

    assert own.status_code == 200
    assert (other.status_code, other.json()["code"]) == (403, "owner_not_allowed")
    assert everybody.status_code == 403
    assert (nobody.status_code, nobody.json()["code"]) == (422, "invalid_owner")


async def test_nobody_acts_as_somebody_else_yet(shared_api: Api) -> None:
    response = await shared_api.post("/v1/emit", {"name": "paid"}, headers={"korak-act-as": "user:42"})

    assert (response.status_code, response.json()["code"]) == (422, "not_available")


async def test_what_is_open_needs_no_token(shared_api: Api) -> None:
    for path in ("/healthz", "/metrics", "/openapi.json", "/v1/schema/graph"):
        assert (await shared_api.client.get(path)).status_code == 200, path
    assert (await shared_api.client.get("/readyz")).status_code == 503
    schema = (await shared_api.client.get("/v1/schema/graph")).json()
    assert schema == graph_schema()


# tokens


async def test_a_token_is_made_shown_once_and_ended(api: Api) -> None:
    made = await api.post("/v1/tokens", {"name": "erp", "roles": ["starter", "viewer"], "user": "erp"})

    assert made.status_code == 201
    token = made.json()
    secret = token.pop("token")
    assert token["owner"] is None
    assert token["roles"] == ["starter", "viewer"]
    assert (await api.get("/v1/me", token=secret)).json()["user"] == "erp"
    listed = (await api.get("/v1/tokens")).json()["items"]
    assert token in listed
    assert secret not in (await api.get("/v1/tokens")).text

    assert (await api.send("DELETE", f"/v1/tokens/{token['id']}")).status_code == 204

    assert (await api.get("/v1/me", token=secret)).status_code == 401
    assert (await api.send("DELETE", f"/v1/tokens/{token['id']}")).status_code == 404
    assert (await api.send("DELETE", "/v1/tokens/nothing")).status_code == 404


async def test_an_owner_s_admin_makes_tokens_of_that_owner_only(api: Api) -> None:
    team = await api.make_token(OwnerRole.ADMIN, owner="team:1")
    apps = (await api.get("/v1/tokens")).json()["items"][0]["id"]

    made = (await api.post("/v1/tokens", {"name": "a", "roles": ["admin"]}, token=team)).json()
    for_team = (
        await api.post("/v1/tokens", {"name": "b", "roles": ["viewer"]}, headers={"korak-owner": "team:1"})
    ).json()

    assert made["owner"] == for_team["owner"] == "team:1"
    listed = (await api.get("/v1/tokens", token=team)).json()["items"]
    assert {token["id"] for token in listed} >= {made["id"], for_team["id"]}
    assert {token["owner"] for token in listed} == {"team:1"}
    assert (await api.send("DELETE", f"/v1/tokens/{apps}", token=team)).status_code == 404
    refused = await api.post("/v1/tokens", {"name": "c", "roles": ["admin"], "owner": "*"}, token=team)
    assert refused.status_code == 422


async def test_the_secret_isn_t_kept_for_a_repeat(api: Api) -> None:
    body = {"name": "erp", "roles": ["viewer"]}

    first = await api.post("/v1/tokens", body, headers={"idempotency-key": "k"})
    again = await api.post("/v1/tokens", body, headers={"idempotency-key": "k"})

    assert again.status_code == 201
    assert "token" not in again.json()
    assert again.json()["id"] == first.json()["id"]
    rows = await api.fetch("select body::text as body from http_answers")
    assert first.json()["token"] not in rows[0]["body"]


async def test_a_token_ends_at_its_time(api: Api) -> None:
    soon = (api.resources.clock.now() + timedelta(hours=1)).isoformat()

    made = (await api.post("/v1/tokens", {"name": "a", "roles": ["viewer"], "expires_at": soon})).json()
    assert (await api.get("/v1/me", token=made["token"])).status_code == 200
    await api.fetch("update tokens set expires_at = created_at where ulid = $1", made["id"])
    api.resources.credentials.forget()

    assert (await api.get("/v1/me", token=made["token"])).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "a"},
        {"name": "a", "roles": []},
        {"name": "a", "roles": ["king"]},
        {"name": "", "roles": ["viewer"]},
        {"name": "a", "roles": ["viewer"], "expires_at": "2001-01-01T00:00:00Z"},
        {"name": "a", "roles": ["viewer"], "expires_at": "tomorrow"},
        {"name": "a", "roles": ["viewer"], "expires_at": "2999-01-01T00:00:00"},
        {"name": "a", "roles": ["viewer"], "user": "u" * 192},
    ],
)
async def test_a_wrong_token_is_told(shared_api: Api, body: Any) -> None:
    response = await shared_api.post("/v1/tokens", body)

    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


async def test_a_definition_s_starter_needs_the_role(shared_api: Api) -> None:
    token = await shared_api.make_token(OwnerRole.VIEWER)

    response = await shared_api.post("/v1/definitions/order/start", {"input": ORDER}, token=token)

    assert response.status_code == 403
    assert response.json()["params"] == {"verb": Verb.INSTANCES_START, "role": "starter or admin"}
