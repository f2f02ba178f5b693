"""CloudEvents 1.0 on /v1/emit, structured or binary, as the body that the route takes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from korak.errors import Invalid, Issue
from korak.model import Json, JsonObject

STRUCTURED: Final = "application/cloudevents+json"
VERSION: Final = "1.0"
MAX_ID: Final = 191
ATTRIBUTES: Final = ("specversion", "type", "source", "id")


def read_event(headers: Mapping[str, str], body: Json) -> Json:
    """The body of an emit for a CloudEvent: its type is the name, its data the payload; any other body as it is.

    Source and id together name the event, so that one sent twice is one event. Raises Invalid where an attribute that
    every CloudEvent has is missing or wrong.
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() == STRUCTURED:
        if not isinstance(body, dict):
            raise Invalid("invalid_request", issues=[Issue("invalid_value", "", {"detail": "It is an object"})])
        return _translate(body, body.get("data"))
    if "ce-specversion" in headers:
        return _translate({name: headers.get(f"ce-{name}") for name in ATTRIBUTES}, body)
    return body


def _translate(event: Mapping[str, Json], data: Json) -> JsonObject:
    issues = [
        Issue("invalid_value", f"/{name}", {"detail": "A CloudEvent has this attribute, as text"})
        for name in ATTRIBUTES
        if not isinstance(event.get(name), str) or not event[name]
    ]
    if not issues and event["specversion"] != VERSION:
        issues = [Issue("invalid_value", "/specversion", {"detail": f"{VERSION} is understood here"})]
    if data is not None and not isinstance(data, dict):
        issues.append(Issue("invalid_value", "/data", {"detail": "It is a JSON object"}))
    if issues:
        raise Invalid("invalid_request", issues=issues)
    identity = f"{event['source']}#{event['id']}"
    if len(identity) > MAX_ID:
        identity = hashlib.sha256(identity.encode()).hexdigest()
    return {"name": event["type"], "payload": data or {}, "id": identity}
