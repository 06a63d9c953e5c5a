"""Gives every generated request an address of its own.

Wrong keys are throttled per address. All operations are tried with a wrong key, from one machine, within seconds:
the throttle would answer for them. with-server.sh tells the server to believe the header from here.
The header goes on last: in the case itself it would count as generated, and blur which cases are meant to fail.
"""

import itertools
import os

import requests
import schemathesis

numbers = itertools.count(1)
send = requests.Session.send


def send_from_elsewhere(session, request, **options):
    number = next(numbers)
    request.headers["X-Forwarded-For"] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return send(session, request, **options)


requests.Session.send = send_from_elsewhere

if os.environ.get("SIDETONE_HOST") == "worker":

    @schemathesis.hook
    def filter_headers(context, headers):
        """The platform's server drops empty headers before the Worker sees them."""
        return not headers or all(headers.values())
