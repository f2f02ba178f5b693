"""The routes about the API itself and about who asks."""

from __future__ import annotations

from korak.graphs.schema import graph_schema
from korak_api.operations import Answer, Call, Operation
from korak_api.rendering import show_owner


async def get_schema(call: Call) -> Answer:
    """GET /v1/schema/graph."""
    return Answer(graph_schema(), headers={"content-type": "application/schema+json"})


async def get_me(call: Call) -> Answer:
    """GET /v1/me."""
    credential = call.credential
    return Answer(
        {
            "name": credential.name,
            "user": credential.user,
            "owner": show_owner(credential.owner_scope),
            "acts_for": show_owner(call.owner_scope),
            "is_app_wide": credential.is_app_wide,
            "roles": sorted(role.value for role in credential.roles),
        }
    )


OPERATIONS = (
    Operation("GET", "/v1/me", get_me, "Who the credential is, and for whom it acts.", None, "Me"),
    Operation(
        "GET", "/v1/schema/graph", get_schema, "The JSON Schema of a graph document.", None, "Schema", is_public=True
    ),
)
