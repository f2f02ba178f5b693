"""A stand-in for the outside: charges cards and says a moment later that the money has come, and takes parcels.

`python -m shop.provider`, with KORAK_CLIENT__URL and KORAK_CLIENT__TOKEN of the Korak that is told about the money.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from korak.loop import Backoff, wait

PORT = 8090
log = logging.getLogger("shop.provider")


@dataclass(slots=True)
class Provider:
    """What it has been asked for, by Idempotency-Key: whoever asks twice gets the first answer."""

    key: str
    korak: httpx.AsyncClient
    settle_after: float
    parcel_takes: float
    charges: dict[str, dict[str, Any]] = field(default_factory=dict)
    parcels: dict[str, dict[str, Any]] = field(default_factory=dict)
    telling: set[asyncio.Task[None]] = field(default_factory=set)

    async def charge(self, request: Request) -> Response:
        """Charge a card; the card `declined` is."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return JSONResponse({"error": "unknown key"}, 401)
        asked = await request.json()
        if asked["card"] == "declined":
            return JSONResponse({"error": "card declined"}, 402)
        known = request.headers["idempotency-key"]
        if known not in self.charges:
            self.charges[known] = {"charge": f"ch_{secrets.token_hex(4)}", "order": asked["order"]}
            task = asyncio.create_task(self.settle(self.charges[known], asked["amount"]))
            self.telling.add(task)
            task.add_done_callback(self.telling.discard)
        return JSONResponse(self.charges[known], 201)

    async def settle(self, charge: dict[str, Any], amount: float) -> None:
        """Tell Korak that the money has come, until Korak takes it. The event's id makes that safe to repeat."""
        await wait(self.settle_after)
        event = {"name": "payment.settled", "payload": {**charge, "amount": amount}, "id": charge["charge"]}
        for pause in map(Backoff().after, range(1, 20)):
            try:
                answer = await self.korak.post("/v1/emit", json=event)
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code < 500:
                if answer.is_error:
                    log.error("Korak refused the event: %s", answer.text)
                return
            await wait(pause)

    async def send(self, request: Request) -> Response:
        """Take a parcel. It is weighed, labelled and carried out, which takes a while."""
        known = request.headers["idempotency-key"]
        parcel = self.parcels.setdefault(known, {"tracking": f"TR{secrets.randbelow(10**8):08}"})
        await wait(self.parcel_takes)
        return JSONResponse(parcel, 201)

    @property
    def app(self) -> Starlette:
        """The two things that it can be asked for."""
        charges = Route("/charges", self.charge, methods=["POST"])
        return Starlette(routes=[charges, Route("/parcels", self.send, methods=["POST"])])


async def serve(options: argparse.Namespace) -> None:
    """Answer until a signal."""
    headers = {"authorization": f"Bearer {os.environ['KORAK_CLIENT__TOKEN']}"}
    async with httpx.AsyncClient(base_url=os.environ["KORAK_CLIENT__URL"], headers=headers, trust_env=False) as korak:
        provider = Provider(os.environ["SHOP_PAYMENT_KEY"], korak, options.settle_after, options.parcel_takes)
        config = uvicorn.Config(provider.app, port=options.port, log_level="warning", lifespan="off")
        await uvicorn.Server(config).serve()


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="shop.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--settle-after", type=float, default=2.0, metavar="SECONDS")
    parser.add_argument("--parcel-takes", type=float, default=10.0, metavar="SECONDS")
    asyncio.run(serve(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()
