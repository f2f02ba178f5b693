"""The weights of owners over HTTP: the application's to give, read by whom they are about."""

from __future__ import annotations

import pytest

from korak.model import OwnerRole
from tests.support.apis import Api


async def test_a_weight_is_one_until_it_is_given(api: Api) -> None:
    assert (await api.get("/v1/owners/team:42/weight")).json() == {"owner": "team:42", "weight": 1}

    given = await api.send("PUT", "/v1/owners/team:42/weight", {"weight": 3})
    again = await api.send("PUT", "/v1/owners/team:42/weight", {"weight": 5})

    assert (given.status_code, given.json()) == (200, {"owner": "team:42", "weight": 3})
    assert again.json() == (await api.get("/v1/owners/team:42/weight")).json() == {"owner": "team:42", "weight": 5}
    rows = await api.fetch("select owner_scope, weight from flow_weights")
    assert [tuple(row.values()) for row in rows] == [("team:42", 5)]


async def test_the_application_and_an_id_with_a_slash_have_one_too(api: Api) -> None:
    assert (await api.send("PUT", "/v1/owners/*/weight", {"weight": 2})).json() == {"owner": None, "weight": 2}
    for address in ("user:a/b", "user:a%2Fb"):
        put = await api.send("PUT", f"/v1/owners/{address}/weight", {"weight": 4})
        assert put.json() == {"owner": "user:a/b", "weight": 4}


@pytest.mark.parametrize("weight", [0, 1001, 1.5, "3", None])
async def test_a_weight_that_is_none_is_refused_with_its_pointer(shared_api: Api, weight: object) -> None:
    refused = await shared_api.send("PUT", "/v1/owners/team:9/weight", {"weight": weight})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/weight")
    assert (await shared_api.get("/v1/owners/team:9/weight")).json()["weight"] == 1


async def test_nobody_gives_himself_a_weight_or_sees_another_s(shared_api: Api) -> None:
    team = await shared_api.make_token(OwnerRole.ADMIN, owner="team:1")
    operator = await shared_api.make_token(OwnerRole.OPERATOR)

    assert (await shared_api.get("/v1/owners/team:1/weight", token=team)).json()["weight"] == 1
    other = await shared_api.get("/v1/owners/team:2/weight", token=team)
    own = await shared_api.send("PUT", "/v1/owners/team:1/weight", {"weight": 9}, token=team)
    below = await shared_api.send("PUT", "/v1/owners/team:1/weight", {"weight": 9}, token=operator)

    assert (other.status_code, other.json()["code"]) == (403, "owner_not_allowed")
    assert (own.status_code, own.json()["code"], below.status_code) == (403, "forbidden", 403)
    assert "admin of the application" in own.json()["detail"]
    assert (await shared_api.get("/v1/owners/team/weight")).json()["code"] == "invalid_owner"
