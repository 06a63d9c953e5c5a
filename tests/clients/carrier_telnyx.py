"""Validates samples on standard input ({"telnyx": …}, tests/src/carrier_samples/telnyx.rs) with Telnyx's official client:
the service's requests equal the client's, and the client accepts the responses and webhooks of the
fake for Telnyx."""

import base64
import http.server
import json
import sys
import threading
import warnings

import telnyx
from pydantic import TypeAdapter
from telnyx import Telnyx, types
from telnyx.lib.webhook_verification import WebhookVerificationError, verify_webhook_signature
from telnyx.types import call_dial_params, calls

# Fields of recorded webhooks that the client's types do not have.
RECORDED = {"calling_party_type", "end_time", "from_sip_uri", "to_sip_uri"}
EVENTS = {
    "call.initiated": types.CallInitiatedWebhookEvent,
    "call.answered": types.CallAnsweredWebhookEvent,
    "call.hangup": types.CallHangupWebhookEvent,
    "call.cost": types.CallCostWebhookEvent,
    "call.machine.premium.detection.ended": types.CallMachinePremiumDetectionEndedWebhookEvent,
    "call.machine.premium.greeting.ended": types.CallMachinePremiumGreetingEndedWebhookEvent,
}
ERRORS = {
    401: telnyx.AuthenticationError,
    422: telnyx.UnprocessableEntityError,
    429: telnyx.RateLimitError,
    500: telnyx.InternalServerError,
}
# The client sends more headers. These must be equal.
HEADERS = ("authorization", "content-type")

samples = json.load(sys.stdin)["telnyx"]
asked = []
answer = {}


class Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        asked.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        reply = answer["body"].encode()
        self.send_response(answer["status"])
        self.send_header("content-type", answer["content_type"])
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

    def log_message(self, *_):
        pass


api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
threading.Thread(target=api.serve_forever, daemon=True).start()
client = Telnyx(
    api_key=samples["api_key"],
    public_key=samples["public_key"],
    base_url=f"http://127.0.0.1:{api.server_port}/v2",
    max_retries=0,
    timeout=10,
    _strict_response_validation=True,
)


def send(what, call_control_id, fields):
    if what == "dial":
        return client.calls.dial(**{{"from": "from_"}.get(name, name): value for name, value in fields.items()})
    given = {{"from": "from_"}.get(name, name): value for name, value in fields.items()}
    return getattr(client.calls.actions, what)(call_control_id=call_control_id, **given)


# `call_dial_params` ends with its own imports: its names resolve only after the module is loaded.
PARAMETERS = {
    "dial": call_dial_params.CallDialParams,
    "answer": calls.ActionAnswerParams,
    "reject": calls.ActionRejectParams,
    "hangup": calls.ActionHangupParams,
    "transfer": calls.ActionTransferParams,
    "start_streaming": calls.ActionStartStreamingParams,
}
RESULTS = {
    "dial": types.CallDialResponse,
    "answer": calls.ActionAnswerResponse,
    "reject": calls.ActionRejectResponse,
    "hangup": calls.ActionHangupResponse,
    "transfer": calls.ActionTransferResponse,
    "start_streaming": calls.ActionStartStreamingResponse,
}


def known(model, path=""):
    """Checks that a model has no unknown fields, at any depth."""
    extra = set(model.model_extra or {}) - RECORDED
    assert not extra, f"{path}: {extra}"
    for name in model.model_fields_set:
        value = getattr(model, name, None)
        for place, part in enumerate(value if isinstance(value, list) else [value]):
            if hasattr(part, "model_extra"):
                known(part, f"{path}.{name}[{place}]")


def requests():
    for request in samples["requests"]:
        what, fields = request["what"], json.loads(request["body"])
        given = {{"from": "from_"}.get(name, name): value for name, value in fields.items()}
        TypeAdapter(PARAMETERS[what]).validate_python(given)
        answer.clear()
        answer.update(request["reply"])
        asked.clear()
        segments = request["path"].split("/")
        result = send(what, segments[3] if len(segments) > 3 else None, fields)
        ((method, path, headers, body),) = asked
        assert (method, path) == (request["method"], request["path"]), (method, path, request["path"])
        assert json.loads(body) == fields, (json.loads(body), fields)
        for name in HEADERS:
            assert headers[name] == request["headers"][name], (name, headers[name])
        assert type(result) is RESULTS[what], type(result)
        known(result, what)
        if what == "dial":
            assert result.data.call_control_id and result.data.is_alive is False
        else:
            assert result.data.result == "ok"
    whats = {request["what"] for request in samples["requests"]}
    assert whats == set(PARAMETERS), whats
    return len(samples["requests"])


def refusals():
    for refusal in samples["refusals"]:
        answer.clear()
        answer.update(refusal)
        try:
            client.calls.actions.hangup(call_control_id="v3:x")
        except ERRORS[refusal["status"]] as error:
            (first,) = error.body["errors"]
            assert first["code"].isdigit() and first["title"] and first["detail"], first
        else:
            raise AssertionError(f"{refusal['status']} is not an error")
    assert {refusal["status"] for refusal in samples["refusals"]} == set(ERRORS)
    return len(samples["refusals"])


def refused(body, headers, verifier=client):
    try:
        verifier.webhooks.unwrap(body, headers=headers)
    except (ValueError, WebhookVerificationError):
        pass
    else:
        raise AssertionError("a modified webhook was accepted")
    try:
        verify_webhook_signature(body, headers, verifier.public_key)
    except WebhookVerificationError:
        pass
    else:
        raise AssertionError("a modified webhook was accepted")


def flipped(signature):
    signature = bytearray(base64.b64decode(signature))
    signature[40] ^= 1
    return base64.b64encode(signature).decode()


def webhooks():
    stranger = client.with_options(public_key=base64.b64encode(bytes(range(32))).decode())
    seen = set()
    for webhook in samples["webhooks"]:
        headers, body = webhook["headers"], webhook["body"]
        assert webhook["method"] == "POST" and headers["content-type"] == "application/json"
        verify_webhook_signature(body, headers, samples["public_key"])
        event = client.webhooks.unwrap(body, headers=headers)
        assert event.data.payload.call_control_id == webhook["call_control_id"]
        # `unwrap` accepts anything, but the event's type does not.
        strict = EVENTS[event.data.event_type].model_validate(json.loads(body))
        assert set(strict.model_extra) == {"meta"}, strict.model_extra
        known(strict.data, event.data.event_type)
        seen.add((event.data.event_type, getattr(strict.data.payload, "hangup_cause", None)))

        time, signature = headers["telnyx-timestamp"], headers["telnyx-signature-ed25519"]
        refused(body + " ", headers)
        refused(body.replace("v3:", "v2:", 1), headers)
        refused(body, {**headers, "telnyx-timestamp": str(int(time) + 1)})
        refused(body, {**headers, "telnyx-timestamp": str(int(time) - 400)})
        refused(body, {**headers, "telnyx-signature-ed25519": flipped(signature)})
        refused(body, {name: value for name, value in headers.items() if name != "telnyx-timestamp"})
        refused(body, {name: value for name, value in headers.items() if name != "telnyx-signature-ed25519"})
        refused(body, headers, stranger)
    assert {event for event, _ in seen} == set(EVENTS), seen
    assert len(seen) >= 9, seen
    return len(samples["webhooks"])


warnings.simplefilter("error")
print(f"{requests()} requests, {refusals()} refusals, {webhooks()} webhooks: the client and the fake agree")
