"""The one exception tree. Its codes are those of `korak.codes`.

    KorakError                      everything that Korak raises
      Problem                       answers a caller; has an HTTP status
        Unreadable         400      the body isn't JSON at all
        Invalid            422      the input, document or value is wrong
        NotFound           404      not there, or another owner's
        Conflict           409      the state forbids it
        Stale              412      If-Match names an older draft
        Unconditional      428      If-Match is missing
        Unauthenticated    401      no credential, or none that is known
        Forbidden          403      the credential may not
        NotAnswered        405      the address doesn't take the method
        TooLarge           413      the body is over its bound
        Unsupported        415      the body is of another type than JSON
        Refused            429      a limit on starts holds
        Unavailable        503      nobody is there to answer now
      SettingsError                 internal: a setting is unknown or wrong, the process doesn't start
      SchemaError                   internal: the database's schema isn't this build's
        SchemaOlder                 it was never migrated to this build's
        SchemaNewer                 a newer build has migrated it
      RegistrationError             internal: a step type can't be registered
        DuplicateStepType
        InvalidStepType
        MissingModule               a module that was named isn't there
        BrokenModule                the code of one raises, or offers what can't be registered
      StepError                     internal: raised by a handler to end its attempt
        StepFailed                  permanent
        StepRetry                   retried after the back-off, or later
      StaleClaim                    internal: the attempt's token is lost; nothing was changed
      TransientError                internal: a database or broker fault that passes by itself

A message is a code and params, rendered when it is read, so that it can be translated later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from korak.codes import render
from korak.model import Json


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong, and where: `pointer` is an RFC 6901 pointer into what was sent."""

    code: str
    pointer: str = ""
    params: Mapping[str, Json] = field(default_factory=dict)
    node: str | None = None
    edge: int | None = None
    is_warning: bool = False

    @property
    def message(self) -> str:
        """The English message."""
        return render(self.code, self.params)

    def at(self, prefix: str, *, node: str | None = None) -> Issue:
        """The same issue seen from further out: `prefix` goes before the pointer."""
        return Issue(self.code, prefix + self.pointer, self.params, node or self.node, self.edge, self.is_warning)

    def to_json(self) -> dict[str, Json]:
        """As it stands in a problem's `errors`."""
        return {
            "code": self.code,
            "message": self.message,
            "pointer": self.pointer,
            "node": self.node,
            "edge": self.edge,
            "params": dict(self.params),
        }


class KorakError(Exception):
    """Everything that Korak raises. Carries a code of `korak.codes`, or a host's own, and params."""

    code: str = "internal"

    def __init__(self, code: str | None = None, message: str | None = None, **params: Json) -> None:
        self.code = code or type(self).code
        self.params: dict[str, Json] = params
        self.message: str = message or render(self.code, params)
        super().__init__(self.message)


class Problem(KorakError):
    """An answer to a caller (RFC 9457)."""

    status = 500

    def __init__(
        self,
        code: str | None = None,
        message: str | None = None,
        *,
        issues: Iterable[Issue] = (),
        **params: Json,
    ) -> None:
        super().__init__(code, message, **params)
        self.issues: tuple[Issue, ...] = tuple(issues)
        self.body: Mapping[str, Any] | None = None
        """The answer that it was read from, where it came from an API."""


class Unreadable(Problem):
    """The body isn't JSON at all."""

    status = 400
    code = "invalid_json"


class Invalid(Problem):
    """The input, document or value is wrong."""

    status = 422
    code = "invalid_request"


def refuse_at(pointer: str, code: str, **params: str) -> Invalid:
    """The refusal of something for the one thing that is wrong with it, which stands at the pointer."""
    return Invalid(code, None, issues=[Issue(code, pointer, dict(params))], **params)


class NotFound(Problem):
    """Not there, or another owner's: the answer is the same."""

    status = 404
    code = "not_found"


class Conflict(Problem):
    """The state of the thing forbids it."""

    status = 409
    code = "instance_ended"


class Stale(Problem):
    """If-Match names a draft that has changed since."""

    status = 412
    code = "checksum_mismatch"


class Unconditional(Problem):
    """If-Match is missing where something would be overwritten."""

    status = 428
    code = "precondition_required"


class Unauthenticated(Problem):
    """No credential, or none that is known."""

    status = 401
    code = "unauthenticated"


class Forbidden(Problem):
    """The credential is known and may not."""

    status = 403
    code = "forbidden"


class NotAnswered(Problem):
    """There is something at the address, and it doesn't take the method."""

    status = 405
    code = "method_not_allowed"


class Unsupported(Problem):
    """The body is of another type than JSON."""

    status = 415
    code = "unsupported_media_type"


class TooLarge(Problem):
    """The body is over its bound."""

    status = 413
    code = "body_too_large"


class Refused(Problem):
    """A limit on starts holds: try again later."""

    status = 429
    code = "start_rate_exceeded"


class Unavailable(Problem):
    """Nobody is there to answer now: try again later."""

    status = 503
    code = "unavailable"


class SettingsError(KorakError):
    """A setting is unknown or wrong: the process doesn't start, and says its name, what was given and what is meant."""

    code = "invalid_setting"


class SchemaError(KorakError):
    """The database's schema isn't this build's: the message says which revision each has, and what to do."""

    code = "schema_older"


class SchemaOlder(SchemaError):
    """It was never migrated to this build's. Nothing works on it before."""


class SchemaNewer(SchemaError):
    """A newer build has migrated it. What runs goes on; this build can't migrate it."""

    code = "schema_newer"


class RegistrationError(KorakError):
    """A step type can't be registered."""


class DuplicateStepType(RegistrationError):
    """Another class has the key already (ST-3)."""

    code = "duplicate_step_type"


class InvalidStepType(RegistrationError):
    """The key or the config schema is wrong; the message names the offending keyword (ST-3)."""

    code = "invalid_step_type"


class MissingModule(RegistrationError):
    """A module that a setting or a flag names isn't there."""

    code = "module_missing"


class BrokenModule(RegistrationError):
    """A module of a user can't be loaded: the message says in which line and why, and the code is the reason's."""

    code = "module_broken"


class StepError(KorakError):
    """Raised by a handler to end its attempt with a code of its own."""

    code = "exception"
    is_retryable = False

    def __init__(
        self,
        code: str,
        message: str | None = None,
        *,
        after: timedelta | datetime | float | None = None,
        **params: Json,
    ) -> None:
        super().__init__(code, message, **params)
        self.after = after


class StepFailed(StepError):
    """Permanent: the step is not tried again."""

    def __init__(self, code: str, message: str | None = None, **params: Json) -> None:
        super().__init__(code, message, after=None, **params)


class StepRetry(StepError):
    """Tried again after the back-off, or at `after` (a delay in seconds, a timedelta or a time) if that is later."""

    is_retryable = True


class StaleClaim(KorakError):
    """The attempt's token is lost: what was tried changed nothing."""

    code = "stale_attempt"


class TransientError(KorakError):
    """A fault of the database or the broker that passes by itself: what failed may be repeated whole."""

    code = "unavailable"
