"""Types for a step's parameters that mean something in a document: the shared definitions of its schema."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import WithJsonSchema

__all__ = ["Condition", "Duration", "NodeId", "Parties", "Party", "Secret"]

Party: TypeAlias = Annotated[dict[str, Any], WithJsonSchema({"$ref": "#/$defs/party"})]
"""Somebody: `{"user"}`, `{"role"}`, `{"field"}` or `{"triggered_by": true}`."""

Parties: TypeAlias = Annotated[list[dict[str, Any]], WithJsonSchema({"$ref": "#/$defs/parties"})]
"""Several of them."""

Condition: TypeAlias = Annotated[Any, WithJsonSchema({"$ref": "#/$defs/condition"})]
"""A condition as it is written, for `WaitSpec.condition`."""

Duration: TypeAlias = Annotated[Any, WithJsonSchema({"$ref": "#/$defs/duration"})]
"""A duration as it is written, for `WaitSpec.timer` and `timeout`."""

NodeId: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "format": "node-id"})]
"""The id of another node."""

Secret: TypeAlias = Annotated[str, WithJsonSchema({"type": "string", "x-korak-secret": True})]
"""A text that may be, or hold, a secret: `{"secret": "name"}` or a template with `${secret.name}`."""
