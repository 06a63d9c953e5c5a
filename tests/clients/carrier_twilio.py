"""Validates the samples of the carriers (JSON with the key "twilio", on standard input) with Twilio's official SDK: the
engine's documents and requests equal the SDK's, the SDK understands the responses of the fake for Twilio,
and both use the SDK's signatures."""

import json
import sys
from urllib.parse import parse_qsl
from xml.etree.ElementTree import canonicalize

from requests import Request
from twilio.base.exceptions import TwilioRestException
from twilio.http import HttpClient
from twilio.http.response import Response
from twilio.request_validator import RequestValidator
from twilio.rest import Client
from twilio.twiml.voice_response import Connect, Dial, VoiceResponse

samples = json.load(sys.stdin)["twilio"]
checks = 0


def same(name, ours, theirs):
    global checks
    checks += 1
    assert ours == theirs, f"{name}\n  ours:   {ours}\n  theirs: {theirs}"


class Scripted(HttpClient):
    """Records the request that would be sent, and returns the given response."""

    def __init__(self, answer):
        super().__init__(None, False, None)
        self.answer, self.sent = answer, None

    def request(self, method, url, params=None, data=None, headers=None, auth=None, **_):
        self.sent = Request(method, url, params=params, data=data, headers=headers, auth=auth).prepare()
        return Response(self.answer["status"], self.answer["body"])


def exchange(answer, ask):
    """The SDK's request, and its interpretation of the response."""
    http = Scripted(samples["answers"][answer])
    client = Client(samples["account_sid"], samples["auth_token"], http_client=http)
    try:
        return http, ask(client)
    except TwilioRestException as error:
        return http, error


def documents():
    def twiml(*verbs):
        response = VoiceResponse()
        for verb in verbs:
            response.append(verb)
        return response

    connect = Connect()
    connect.stream(url=samples["requests"]["order"]["media_url"])
    rejected, busy = VoiceResponse(), VoiceResponse()
    rejected.reject(reason="rejected")
    busy.reject(reason="busy")
    end = VoiceResponse()
    end.hangup()
    expected = {"connect": twiml(connect), "rejected": rejected, "busy": busy, "nothing": twiml(), "end": end}
    assert samples["documents"].keys() == expected.keys()
    for name, document in samples["documents"].items():
        same(name, document["content_type"], "text/xml")
        same(name, canonicalize(document["body"]), canonicalize(str(expected[name])))
    return str(expected["connect"])


def shape(method, url, headers, body):
    headers = {name.lower(): value for name, value in headers.items()}
    pairs = parse_qsl(body, keep_blank_values=True, strict_parsing=True)
    # Normalizes quotes and spaces within tags.
    pairs = [(name, canonicalize(value) if name == "Twiml" else value) for name, value in pairs]
    # The order of parameters is irrelevant, except within a list.
    return method, url, headers["authorization"], headers["content-type"], sorted(pairs, key=lambda pair: pair[0])


def dial(order, **attributes):
    response = VoiceResponse()
    verb = Dial(
        timeout=order["ring_seconds"],
        time_limit=order["max_seconds"],
        action=order["back_url"],
        method="POST",
        **attributes,
    )
    verb.number(
        order["to"],
        status_callback=order["status_url"],
        status_callback_event="answered",
        status_callback_method="POST",
    )
    response.append(verb)
    return str(response)


def requests(twiml):
    order, call_sid = samples["requests"]["order"], samples["call_sid"]

    def placing(client, **more):
        return client.calls.create(
            to=order["to"],
            from_=order["from"],
            twiml=twiml,
            status_callback=order["status_url"],
            status_callback_method="POST",
            status_callback_event=["initiated", "ringing", "answered", "completed"],
            timeout=order["ring_seconds"],
            time_limit=order["max_seconds"],
            **more,
        )

    def detecting(machine_detection):
        return lambda client: placing(
            client,
            machine_detection=machine_detection,
            async_amd="true",
            async_amd_status_callback=order["status_url"],
            async_amd_status_callback_method="POST",
        )

    asks = {
        "place": placing,
        "place_hanging_up": detecting("Enable"),
        "place_leaving_message": detecting("DetectMessageEnd"),
        "transfer": lambda client: client.calls(call_sid).update(twiml=dial(order, caller_id=order["from"])),
        "transfer_as_caller": lambda client: client.calls(call_sid).update(twiml=dial(order)),
        "complete": lambda client: client.calls(call_sid).update(status="completed"),
        "cancel": lambda client: client.calls(call_sid).update(status="canceled"),
    }
    for name, ask in asks.items():
        sent = exchange("placed" if name.startswith("place") else "ended", ask)[0].sent
        ours = samples["requests"][name]
        same(name, shape(**ours), shape(sent.method, sent.url, sent.headers, sent.body))

    place, complete = asks["place"], asks["complete"]
    placed = exchange("placed", place)[1]
    same("placed", (placed.sid, placed.status, placed.direction), (call_sid, "queued", "outbound-api"))
    same("placed", (placed.to, placed._from), (order["to"], order["from"]))
    ended = exchange("ended", complete)[1]
    same("ended", (ended.sid, ended.status), (call_sid, "completed"))
    for answer, ask, status, code in [
        ("gone", complete, 404, 20404),
        ("bad_number", place, 400, 21211),
        ("unauthorized", place, 401, 20003),
        ("too_many", place, 429, 20429),
        ("broken", place, 500, 20500),
    ]:
        error = exchange(answer, ask)[1]
        assert isinstance(error, TwilioRestException), f"{answer}: {error!r}"
        same(answer, (error.status, error.code), (status, code))


def signatures():
    validator = RequestValidator(samples["auth_token"])
    verdicts = set()
    for callback in samples["callbacks"]:
        parameters = dict(parse_qsl(callback["body"], keep_blank_values=True, strict_parsing=True))
        signature = callback["headers"]["x-twilio-signature"]
        verdict = validator.validate(callback["url"], parameters, signature)
        name = f"{callback['name']}, {callback['change'] or 'as it came'}"
        same(name, callback["genuine"], verdict)
        # The SDK's signature is exactly the one that the engine accepted.
        if callback["change"] is None:
            same(name, validator.compute_signature(callback["url"], parameters), signature)
        wrong = RequestValidator("x" + samples["auth_token"])
        same("another token", wrong.validate(callback["url"], parameters, signature), False)
        verdicts.add(verdict)
    for socket in samples["sockets"]:
        signature = socket["headers"]["x-twilio-signature"]
        verdict = validator.validate(socket["url"], {}, signature)
        same(socket["url"], socket["genuine"], verdict)
        verdicts.add(verdict)
    same("verdicts of both kinds", verdicts, {True, False})


requests(documents())
signatures()
print(f"{checks} checks")
