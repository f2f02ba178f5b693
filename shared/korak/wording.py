"""Sentences made of a template and what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def word(template: str, params: Mapping[str, Any]) -> str:
    """The sentence. The whole is told without a pointer, and a detail that is a sentence ends once.

    Raises KeyError, IndexError and ValueError as `format_map` does.
    """
    if params.get("pointer") == "":
        template = template.replace(" at {pointer}", "")
    detail = params.get("detail")
    if isinstance(detail, str) and detail.endswith(".") and template.endswith("{detail}."):
        params = {**params, "detail": detail[:-1]}
    return template.format_map(params)
