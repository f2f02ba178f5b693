"""webhook: what it sends, how it reads an answer, and where it doesn't go. Against a real receiver."""

from __future__ import annotations

import gzip
import ssl
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from korak.errors import StepError, StepFailed, StepRetry
from korak.model import Json, JsonObject
from korak.steps.builtin.webhook import MAX_OUTPUT, Webhook, read_retry_after
from korak.steps.contract import Complete
from korak.steps.guard import Guard
from korak.steps.secrets import Secrets
from tests.support.entries import NOW, Context
from tests.support.receivers import CERTIFICATE, Receiver, answer, receiving

JSON = {"content_type": "application/json; charset=utf-8"}
LOCAL = Guard.allowing(["127.0.0.1"])


async def call(config: JsonObject, *, webhook: Webhook | None = None, **context: Any) -> Complete:
    return await (webhook or Webhook(LOCAL, seconds=5)).handle(Context.of(config, **context))  # type: ignore[arg-type]  # its reading half


async def fail(config: JsonObject, *, webhook: Webhook | None = None, **context: Any) -> StepError:
    with pytest.raises(StepError) as caught:
        await call(config, webhook=webhook, **context)
    return caught.value


async def test_it_posts_json_with_the_step_s_key() -> None:
    async with receiving(lambda _: answer(201, b'{"id": 7}', **JSON)) as receiver:
        result = await call(
            {"url": f"{receiver.url}/charge?x=1", "body": {"amount": {"ref": "input.amount"}}}, input={"amount": 5}
        )
    assert result == Complete("next", {"status": 201, "body": {"id": 7}})
    request = receiver.requests[0]
    assert (request.method, request.target, orjson.loads(request.body)) == ("POST", "/charge?x=1", {"amount": 5})
    assert request.headers["idempotency-key"] == "01J:n:1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"


async def test_method_headers_and_a_text_body() -> None:
    async with receiving(lambda _: answer()) as receiver:
        headers: JsonObject = {"X-Count": 3, "X-None": None, "Content-Type": "text/csv"}
        await call({"url": receiver.url, "method": "PUT", "headers": headers, "body": "a,b"})
    request = receiver.requests[0]
    assert (request.method, request.body, request.headers["content-type"]) == ("PUT", b"a,b", "text/csv")
    assert request.headers["x-count"] == "3"
    assert "x-none" not in request.headers


async def test_without_a_body_none_is_sent() -> None:
    async with receiving(lambda _: answer(204)) as receiver:
        assert await call({"url": receiver.url, "method": "GET"}) == Complete(output={"status": 204, "body": None})
    assert receiver.requests[0].body == b""


async def test_secrets_are_resolved_at_the_call_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "pay").write_text("s3cret\n")
    config: JsonObject = {
        "url": "URL",
        "headers": {"Authorization": {"template": "Bearer ${secret.pay}"}},
        "body": {"key": {"secret": "pay"}},
    }
    async with receiving(lambda _: answer()) as receiver:
        config["url"] = receiver.url
        context = Context.of(config, secrets=Secrets(tmp_path))
        await Webhook(LOCAL).handle(context)  # type: ignore[arg-type]  # its reading half
    request = receiver.requests[0]
    assert request.headers["authorization"] == "Bearer s3cret"
    assert orjson.loads(request.body) == {"key": "s3cret"}
    assert "s3cret" not in str(context.config)


async def test_an_input_cannot_name_a_secret(tmp_path: Path) -> None:
    (tmp_path / "pay").write_text("s3cret")
    async with receiving(lambda _: answer()) as receiver:
        given: JsonObject = {"body": {"secret": "pay"}}
        await call({"url": receiver.url, "body": {"ref": "input.body"}}, input=given, secrets=Secrets(tmp_path))
    assert orjson.loads(receiver.requests[0].body) == {"secret": "pay"}


async def test_a_secret_that_is_not_there_fails_for_good() -> None:
    error = await fail({"url": {"secret": "nowhere"}})
    assert (error.code, error.params, error.is_retryable) == ("secret_missing", {"name": "nowhere"}, False)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 599])
async def test_what_may_pass_is_tried_again(status: int) -> None:
    async with receiving(lambda _: answer(status)) as receiver:
        error = await fail({"url": receiver.url})
    assert (type(error), error.code, error.params) == (StepRetry, "webhook_unavailable", {"detail": f"status {status}"})


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 404, 409, 422])
async def test_every_other_status_fails_for_good(status: int) -> None:
    async with receiving(lambda _: answer(status, location="http://127.0.0.1/")) as receiver:
        error = await fail({"url": receiver.url})
    assert (type(error), error.code, error.params) == (StepFailed, "webhook_rejected", {"status": status})


async def test_a_redirect_is_not_followed() -> None:
    async with receiving(lambda _: answer()) as target:
        async with receiving(lambda _: answer(302, location=target.url)) as receiver:
            await fail({"url": receiver.url})
        assert target.requests == []


async def test_expect_says_what_is_a_success() -> None:
    async with receiving(lambda _: answer(404)) as receiver:
        result = await call({"url": receiver.url, "expect": [404, 503]})
        assert result.output["status"] == 404
        assert (await fail({"url": receiver.url, "expect": [200]})).code == "webhook_rejected"


async def test_retry_after_is_handed_on() -> None:
    async with receiving(lambda _: answer(429, retry_after="120")) as receiver:
        assert (await fail({"url": receiver.url})).after == timedelta(seconds=120)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("0", 0),
        ("120", 120),
        ("9" * 400, 7 * 86400),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("²", None),
        ("Mon, 02 Mar 2026 12:01:00 GMT", 60),
        ("Mon, 02 Mar 2026 12:01:00 -0000", 60),
        ("Mon, 02 Mar 2026 11:00:00 GMT", 0),
        ("Mon, 02 Mar 2099 11:00:00 GMT", 7 * 86400),
        ("Mon, 99 Mar 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: int | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert read_retry_after(header, NOW) == expected


async def test_nobody_there_is_tried_again() -> None:
    async with receiving(lambda _: answer()) as receiver:
        url = receiver.url
    error = await fail({"url": url})
    assert (type(error), error.code, error.params["detail"]) == (StepRetry, "webhook_unavailable", "ConnectError")


async def test_a_name_that_leads_nowhere_is_tried_again() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    error = await fail({"url": "http://nowhere.invalid/"}, webhook=Webhook(LOCAL, resolve=resolve))
    assert (error.code, error.is_retryable) == ("webhook_unavailable", True)


@pytest.mark.parametrize("garbage", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf"])
async def test_an_answer_cut_short_is_tried_again(garbage: bytes) -> None:
    async with receiving(lambda _: garbage) as receiver:
        assert (await fail({"url": receiver.url})).code == "webhook_unavailable"


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf"])
async def test_a_slow_answer_is_bounded_as_a_whole(begun: bytes) -> None:
    async with receiving(lambda _: begun, hangs=True) as receiver:
        error = await fail({"url": receiver.url}, webhook=Webhook(LOCAL, seconds=0.1))
    assert (error.code, error.is_retryable) == ("webhook_unavailable", True)


@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
async def test_an_endless_body_is_read_to_the_cap_and_no_further(content_type: str) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: 9000000000\r\n\r\n".encode()
    async with receiving(lambda _: head + b'"' * (2 * MAX_OUTPUT), hangs=True) as receiver:
        result = await call({"url": receiver.url})
    body = result.output["body"]
    assert isinstance(body, str)
    assert set(body) == {'"'}
    assert MAX_OUTPUT - 100 < len(orjson.dumps(result.output)) <= MAX_OUTPUT


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b'{"a": [1, null]}', "application/problem+json", {"a": [1, None]}),
        (b"{broken", "application/json", "{broken"),
        (b'{"a": NaN}', "application/json", '{"a": NaN}'),
        (b'{"a": "\\u0000"}', "application/json", '{"a": "\\u0000"}'),
        (b"a\0b", "text/plain", "a\ufffdb"),
        (b"\xff", "text/plain", "\ufffd"),
        (b'{"a": 1}', "text/html", '{"a": 1}'),
        (b"[" * 500, "application/json", "[" * 500),
    ],
)
async def test_a_body_is_json_or_text_that_can_be_stored(body: bytes, content_type: str, expected: Json) -> None:
    async with receiving(lambda _: answer(200, body, content_type=content_type)) as receiver:
        assert (await call({"url": receiver.url})).output["body"] == expected


async def test_a_compressed_body_is_not_blown_up() -> None:
    async with receiving(lambda _: answer(200, gzip.compress(b"0" * 10**7), content_encoding="gzip")) as receiver:
        assert (await call({"url": receiver.url})).output["body"] is None
    assert receiver.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/", "http://127.1:{port}/", "http://2130706433:{port}/", "http://localhost:{port}/"]
)
async def test_a_closed_address_is_refused_however_it_is_written(url: str) -> None:
    async with receiving(lambda _: answer()) as receiver:
        error = await fail({"url": url.format(port=receiver.port)}, webhook=Webhook(seconds=5))
    assert (type(error), error.code) == (StepFailed, "address_refused")
    assert receiver.connections == 0


async def test_a_second_answer_of_the_resolver_leads_nowhere() -> None:
    """DNS rebinding: what was checked is what is connected to, and the name is asked once."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    async with receiving(lambda _: answer()) as receiver:
        url = f"http://rebind.example:{receiver.port}/"
        await call({"url": url}, webhook=Webhook(LOCAL, resolve=resolve))
        assert receiver.requests[0].headers["host"] == f"rebind.example:{receiver.port}"
        assert len(asked) == 1
        error = await fail({"url": url}, webhook=Webhook(LOCAL, resolve=resolve))
    assert error.code == "address_refused"
    assert receiver.connections == 1


@pytest.mark.parametrize(("host", "is_trusted"), [("pay.example", True), ("other.example", False)])
async def test_the_certificate_is_the_name_s_though_the_address_is_called(
    host: str, is_trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(CERTIFICATE)
    webhook = Webhook(LOCAL, seconds=5, resolve=resolve)
    async with receiving(lambda _: answer(), tls=tls) as receiver:
        url = f"https://{host}:{receiver.port}/"
        if is_trusted:
            assert (await call({"url": url}, webhook=webhook)).output["status"] == 200
        else:
            assert (await fail({"url": url}, webhook=webhook)).code == "webhook_unavailable"
    assert len(receiver.requests) == is_trusted


async def test_one_closed_address_among_several_is_enough() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1", "10.0.0.1"]

    async with receiving(lambda _: answer()) as receiver:
        webhook = Webhook(LOCAL, resolve=resolve)
        assert (
            await fail({"url": f"http://mixed.example:{receiver.port}/"}, webhook=webhook)
        ).code == "address_refused"
    assert receiver.connections == 0


async def test_an_address_that_takes_no_connection_gives_way_to_the_next() -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.9", "127.0.0.1"]

    async with receiving(lambda _: answer()) as receiver:
        webhook = Webhook(Guard.allowing(["127.0.0.0/8"]), resolve=resolve)
        result = await call({"url": f"http://two.example:{receiver.port}/"}, webhook=webhook)
    assert result.output["status"] == 200


@pytest.mark.parametrize(
    ("config", "pointer"),
    [
        ({"url": "ftp://a/"}, "/url"),
        ({"url": {"ref": "input.no"}}, "/url"),
        ({"url": "http://"}, "/url"),
        ({"url": "http://a:99999/"}, "/url"),
        ({"url": "http://xn--/"}, "/url"),
        ({"url": "http://a\r\nx: y/"}, "/url"),
        ({"url": "U", "headers": {"X-A": "b\r\nX-C: d"}}, "/headers/X-A"),
        ({"url": "U", "headers": {"X-A": "b\nX-C: d"}}, "/headers/X-A"),
        ({"url": "U", "headers": {"X-A": "ž"}}, "/headers/X-A"),
        ({"url": "U", "headers": {"X A": "b"}}, "/headers/X A"),
        ({"url": "U", "headers": {"Host": "other"}}, "/headers/Host"),
        ({"url": "U", "headers": {"Content-Length": "1"}}, "/headers/Content-Length"),
        ({"url": "U", "headers": {"idempotency-KEY": "1"}}, "/headers/idempotency-KEY"),
        ({"url": "U", "headers": {"ref": "input.no"}}, "/headers"),
    ],
)
async def test_what_cannot_be_sent_fails_for_good_with_its_place(config: JsonObject, pointer: str) -> None:
    async with receiving(lambda _: answer()) as receiver:
        if config["url"] == "U":
            config = {**config, "url": receiver.url}
        error = await fail(config)
    assert (type(error), error.code, error.params["pointer"]) == (StepFailed, "invalid_input", pointer)
    assert receiver.requests == []


@pytest.mark.parametrize(
    ("config", "pointers"),
    [
        ({"url": "https://a/"}, []),
        ({"url": {"secret": "url"}}, []),
        ({"url": "mailto:a"}, ["/url"]),
        ({"url": "https://a/", "headers": {"Host": "b", "A B": "c", "X": 1}}, ["/headers/Host", "/headers/A B"]),
        ({"url": "https://a/", "headers": {"ref": "input.h"}}, []),
    ],
)
def test_what_cannot_be_sent_is_said_at_publish(config: JsonObject, pointers: list[str], scope: Any) -> None:
    assert [issue.pointer for issue in Webhook().validate_config(config, scope)] == pointers


def test_secrets_may_stand_in_url_headers_and_body() -> None:
    contract = Webhook().contract()
    assert contract.secret_members == {"url", "headers", "body"}
    assert contract.has_side_effects
    assert not contract.is_pure


async def test_nothing_of_a_secret_is_in_an_error(tmp_path: Path) -> None:
    (tmp_path / "pay").write_text("s3cret")
    async with receiving(lambda _: b"garbage") as receiver:
        error = await fail({"url": {"template": receiver.url + "/${secret.pay}"}}, secrets=Secrets(tmp_path))
    chain: BaseException | None = error
    while chain is not None:
        assert "s3cret" not in str(chain)
        chain = None if chain.__suppress_context__ else chain.__context__


async def test_each_call_has_a_connection_of_its_own() -> None:
    async with receiving(lambda _: answer()) as receiver:
        webhook = Webhook(LOCAL)
        for _ in range(2):
            await call({"url": receiver.url}, webhook=webhook)
    assert isinstance(receiver, Receiver)
    assert receiver.connections == 2
