"""The checksum of a graph: what it does, whatever the order of its nodes and wherever an editor draws them."""

from __future__ import annotations

import hashlib

from korak.graphs import hygiene
from korak.model import Json, JsonObject


def checksum(document: JsonObject) -> str:
    """SHA-256, in hex, over the canonical JSON of nodes (by id, without positions), edges and settings.

    Drafts have one too, so the form need not be right; that it is JSON must have been checked (`korak.graphs.hygiene`).
    """
    return hashlib.sha256(hygiene.canonical(_strip(document) | {"settings": document.get("settings", {})})).hexdigest()


def _strip(body: JsonObject) -> JsonObject:
    stripped: JsonObject = {"nodes": _sort(body.get("nodes", [])), "edges": body.get("edges", [])}
    return stripped if "start" not in body else {**stripped, "start": body["start"]}


def _sort(nodes: Json) -> Json:
    if not isinstance(nodes, list):
        return nodes
    return sorted((_strip_node(node) for node in nodes), key=_get_rank)


def _get_rank(node: Json) -> tuple[str, bytes]:
    found = node.get("id") if isinstance(node, dict) else None
    return (found, b"") if isinstance(found, str) else ("", hygiene.canonical(node))


def _strip_node(node: Json) -> Json:
    if not isinstance(node, dict):
        return node
    stripped = {name: member for name, member in node.items() if name != "position"}
    body, branches = stripped.get("body"), stripped.get("branches")
    if isinstance(body, dict):
        stripped["body"] = _strip(body)
    if isinstance(branches, dict):
        stripped["branches"] = {
            name: _strip(branch) if isinstance(branch, dict) else branch for name, branch in branches.items()
        }
    return stripped
