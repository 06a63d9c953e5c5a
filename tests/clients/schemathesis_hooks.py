"""What schemathesis has to know of the service under test.

Every generated request gets an address of its own. Wrong keys are throttled per address. All operations are tried with
a wrong key, from one machine, within seconds: the throttle would answer for them. with-server.sh tells the server to
believe the header from here. The header goes on last: in the case itself it would count as generated, and blur which
cases are meant to fail.

An Idempotency-Key goes out once. The same key with the same body brings the first answer back, also when what that
created has been deleted since: a chain of requests would miss what it has just been told of.
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
    # A key of the wrong form has to be refused each time.
    if key and re.fullmatch(r"[!-~]{1,255}", key):
        if key in keys:
            del request.headers["Idempotency-Key"]
        keys.add(key)
    return send(session, request, **options)


requests.Session.send = send_from_elsewhere

if os.environ.get("SIDETONE_HOST") == "worker":

    @schemathesis.hook
    def filter_case(context, case):
        """The platform's server drops empty headers before the Worker sees them."""
        return not case.headers or all(case.headers.values())
