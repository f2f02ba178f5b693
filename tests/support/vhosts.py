"""Virtual hosts of RabbitMQ for tests: a new one each, made four at a time because a call of rabbitmqctl is slow."""

from __future__ import annotations

import json
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tests.support.databases import PREFIX, is_abandoned, own_name
from tests.support.servers import Broker, Shell

POOL = 4


class Vhosts:
    """Gives a URL with a vhost that nobody has used; `close` deletes them all."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._free: list[str] = []
        self._made: list[str] = []

    def take(self) -> str:
        """A URL whose vhost is empty; the broker's own where no vhost can be made."""
        if self._broker.shell is None:
            return self._broker.url
        if not self._free:
            self._make(self._broker.shell)
        return urlunsplit(urlsplit(self._broker.url)._replace(path="/" + quote(self._free.pop(), safe="")))

    def close(self) -> None:
        """Delete what was made."""
        if self._broker.shell is not None:
            _delete(self._broker.shell, self._made)

    def _make(self, shell: Shell) -> None:
        if not self._made:
            drop_abandoned(shell)
        self._free = [own_name() for _ in range(POOL)]
        self._made += self._free
        user = unquote(urlsplit(self._broker.url).username or "guest")
        anything = {"configure": ".*", "write": ".*", "read": ".*"}
        definitions = {
            "vhosts": [{"name": name} for name in self._free],
            "permissions": [{"user": user, "vhost": name, **anything} for name in self._free],
        }
        shell(f"echo '{json.dumps(definitions)}' | rabbitmqctl --silent import_definitions")


def drop_abandoned(shell: Shell) -> None:
    """Delete what killed runs of this machine have left."""
    names = shell("rabbitmqctl --silent list_vhosts name").split()
    _delete(shell, [name for name in names if name.startswith(PREFIX) and is_abandoned(name)])


def _delete(shell: Shell, names: list[str]) -> None:
    for name in names:
        shell(f"rabbitmqctl --silent delete_vhost {name}")
