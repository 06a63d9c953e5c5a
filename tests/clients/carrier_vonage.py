"""Validates samples on standard input (under "vonage") with Vonage's official SDK: the service's messages to
Vonage, and the messages of the fake for Vonage to the service. The SDK verifies the webhooks' signatures, its models
accept our documents and return them unchanged, and its client sends the same requests for the same input."""

import base64
import hashlib
import json
import sys

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from requests.adapters import HTTPAdapter
from requests.models import Response
from vonage_http_client.auth import Auth
from vonage_http_client.http_client import HttpClient
from vonage_jwt import JwtClient, VonageVerifyJwtError, verify_signature
from vonage_voice import Voice
from vonage_voice.models import Connect, CreateCallRequest, Talk, ToPhone
from vonage_voice.models.common import AdvancedMachineDetection, Phone, WebsocketAuthorization
from vonage_voice.models.connect_endpoints import PhoneEndpoint, WebsocketEndpoint
from vonage_voice.models.webhooks import AnswerWebhook

samples = json.load(sys.stdin)["vonage"]
checks = 0


def check(holds, what):
    global checks
    checks += 1
    assert holds, what


def same(ours, theirs, what):
    check(ours == theirs, f"{what}:\n  ours   {json.dumps(ours)}\n  theirs {json.dumps(theirs)}")


def tampered(token):
    """The token with other claims, another signature, no signature, and the algorithm `none`."""
    header, claims, signature = token.split(".")

    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    other = json.loads(base64.urlsafe_b64decode(claims + "==")) | {"api_key": "someone1"}
    yield ".".join([header, part(other), signature])
    yield ".".join([header, claims, ("A" if signature[0] != "A" else "B") + signature[1:]])
    yield ".".join([header, claims, ""])
    yield ".".join([part({"alg": "none", "typ": "JWT"}), claims, ""])


def verifies(token, secret):
    try:
        return verify_signature(token, secret)
    except VonageVerifyJwtError:
        return False


def webhooks():
    secret = samples["signature_secret"]
    for webhook in samples["webhooks"]:
        token = webhook["token"]
        check(verifies(token, secret), f"the SDK does not take {webhook}")
        check(not verifies(token, secret + "x"), "another secret verifies")
        for changed in tampered(token):
            check(not verifies(changed, secret), f"a tampered token verifies: {changed}")
        claims = jwt.decode(token, secret, algorithms=["HS256"])
        same([claims[name] for name in ("iss", "api_key", "application_id")],
             ["Vonage", samples["api_key"], samples["application_id"]], "claims")
        if webhook["method"] == "POST":
            same(claims["payload_hash"], hashlib.sha256(webhook["body"].encode()).hexdigest(), "payload_hash")
            json.loads(webhook["body"])
    answer = dict(pair.split("=", 1) for pair in samples["webhooks"][0]["url"].split("?", 1)[1].split("&"))
    check(set(answer) <= {field.alias or name for name, field in AnswerWebhook.model_fields.items()}, answer)
    same(AnswerWebhook(**answer).uuid, samples["call_id"], "answer webhook")


def dumped(action):
    """An action as the SDK sends it."""
    return json.loads(json.dumps(action.model_dump(by_alias=True, exclude_none=True)))


def socket(our_number, headers):
    """The action as built with the SDK."""
    return Connect(
        endpoint=[WebsocketEndpoint(
            uri=samples["media_url"], contentType="audio/l16;rate=16000", headers=headers,
            authorization=WebsocketAuthorization(type="vonage"))],
        from_=our_number.lstrip("+"), limit=samples["max_seconds"], eventUrl=[samples["status_url"]],
        eventMethod="POST")


def documents():
    [answer] = samples["answer"]
    headers = {"sidetone_leg": "media", "sidetone_call": samples["call_id"]}
    same(answer, dumped(socket(samples["to"], headers)), "the answer to an incoming call")
    for [refusal] in samples["refusals"]:
        fields = {name: value for name, value in refusal.items() if name != "action"}
        same(refusal, dumped(Talk(**fields)), "a refusal")


class Captured(HTTPAdapter):
    """Records requests instead of sending them."""

    def __init__(self):
        super().__init__()
        self.requests = []

    def send(self, request, **_):
        self.requests.append(request)
        response = Response()
        response.status_code, response.request, response.url = 201, request, request.url
        response._content = json.dumps({
            "uuid": samples["call_id"], "status": "started", "direction": "outbound",
            "conversation_uuid": "CON-f972836a-550f-45fa-956c-12a2ab5b7d22"}).encode()
        return response


def requests():
    client = HttpClient(Auth(application_id=samples["application_id"], private_key=samples["private_key"]))
    captured = Captured()
    client._session.mount("https://", captured)
    voice = Voice(client)
    detection = AdvancedMachineDetection(behavior="continue", mode="default", beep_timeout=45)
    for more in ({}, {"advanced_machine_detection": detection}):
        voice.create_call(CreateCallRequest(
            to=[ToPhone(number=samples["to"].lstrip("+"))],
            from_=Phone(number=samples["from"].lstrip("+")),
            ncco=[socket(samples["from"], {"sidetone_leg": "media"})],
            event_url=[samples["status_url"]], event_method="POST",
            ringing_timer=samples["ring_seconds"], length_timer=samples["max_seconds"], **more))
    voice.hangup(samples["call_id"])
    voice.transfer_call_ncco(samples["call_id"], [Connect(
        endpoint=[PhoneEndpoint(number=samples["to"].lstrip("+"))], from_=samples["from"].lstrip("+"),
        timeout=samples["ring_seconds"], limit=samples["max_seconds"], eventType="synchronous",
        eventUrl=[samples["back_url"]], eventMethod="POST")])
    public = load_pem_private_key(samples["private_key"].encode(), None).public_key()
    all_ours = [samples[name] for name in ("place", "place_detecting", "hang_up", "transfer")]
    for ours, theirs in zip(all_ours, captured.requests, strict=True):
        what = f"{theirs.method} {theirs.url}"
        same([ours["method"], ours["url"], ours["content_type"]],
             [theirs.method, theirs.url, theirs.headers["Content-Type"]], what)
        same(ours["body"], json.loads(theirs.body), what)
        token = theirs.headers["Authorization"]
        token = (token.decode() if isinstance(token, bytes) else token).removeprefix("Bearer ")
        tokens(ours["token"], token, public)
    tokens(samples["place"]["token"],
           JwtClient(samples["application_id"], samples["private_key"]).generate_application_jwt().decode(), public)


def tokens(ours, theirs, public):
    """Checks that our token equals the SDK's: the same header, claims, lifetime and key."""
    same(jwt.get_unverified_header(ours), jwt.get_unverified_header(theirs), "header")
    claims = [jwt.decode(token, public, algorithms=["RS256"], options={"verify_exp": False})
              for token in (ours, theirs)]
    same(sorted(claims[0]), sorted(claims[1]), "claims")
    shape = [(c["application_id"], c["exp"] - c["iat"], type(c["iat"]).__name__, len(c["jti"])) for c in claims]
    same(shape[0], shape[1], "claims")


webhooks()
documents()
requests()
print(f"{checks} checks by Vonage's SDK")
