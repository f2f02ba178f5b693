"""The step types of this process, as its settings name them, and the secrets that they may be given."""

from __future__ import annotations

import json
import os

from korak import config
from korak.chains import loading
from korak.errors import SettingsError
from korak.steps import builtin
from korak.steps.builtin.webhook import Webhook
from korak.steps.guard import Guard
from korak.steps.registry import Registry
from korak.steps.secrets import Provider, Secrets


def load_registry(settings: config.Settings) -> Registry:
    """The built-in types, those of `settings.steps`, what installed packages offer, and what chains run.

    Raises RegistrationError.
    """
    webhook = Webhook(Guard.allowing(settings.webhook.allow), seconds=settings.webhook.timeout)
    registry = Registry(builtin.list_types(webhook))
    registry.load(settings.steps)
    registry.load_installed()
    loading.register(loading.load_chains(settings.chains), registry)
    return registry


def open_secrets(settings: config.Secrets) -> Secrets:
    """Where secrets are looked up. Raises SettingsError where the file can't be read."""
    return Secrets(
        directory=settings.directory,
        environment=os.environ,
        prefix=settings.environment,
        provider=_read_file(settings),
    )


def _read_file(settings: config.Secrets) -> Provider | None:
    if settings.file is None:
        return None
    try:
        found = json.loads(settings.file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError("invalid_setting", f"KORAK_SECRETS__FILE can't be read: {error}") from error
    if not isinstance(found, dict):
        raise SettingsError("invalid_setting", "KORAK_SECRETS__FILE isn't a JSON object of names and values")
    secrets: dict[str, str] = {str(name): str(value) for name, value in found.items()}
    return lambda name, scope: secrets.get(name)
