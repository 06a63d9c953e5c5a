"""Adapts schemathesis to the service under test.

Every generated request gets its own client address. Invalid keys are limited per address, and all operations are tried
with an invalid key within seconds, so a shared address would be rejected by that limit. with-server.sh configures the
server to trust the header. The header is added last: as part of the case it would count as generated data and blur
which cases must fail.

An Idempotency-Key is sent only once. The same key with the same body would replay the first response, even after the
created resource was deleted, and a chain of requests would then use a resource that does not exist.
"""

import itertools
import os
import re

import requests
import schemathesis

numbers = itertools.count(1)
send = requests.Session.send
keys = set()


def send_from_elsewhere(session, request, **options):
    number = next(numbers)
    request.headers["X-Forwarded-For"] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    key = request.headers.get("Idempotency-Key")
    if isinstance(key, bytes):
        key = key.decode("latin-1")
    # Malformed keys must be rejected every time. A valid one may have spaces; those around it are no part of it.
    if key and re.fullmatch(r"[ -~]{1,255}", key.strip()):
        if key.strip() in keys:
            del request.headers["Idempotency-Key"]
        keys.add(key.strip())
    return send(session, request, **options)


requests.Session.send = send_from_elsewhere

if os.environ.get("SIDETONE_HOST") == "worker":

    @schemathesis.hook
    def filter_case(context, case):
        """The platform's server drops empty headers before the Worker sees them."""
        return not case.headers or all(case.headers.values())
