"""Validates samples on standard input ({"plivo": …}) with Plivo's official SDK for Python: the SDK accepts what the fake
signs and rejects modified callbacks, the service's documents equal those that the SDK builds, and its
requests equal those that the SDK sends."""

import http.server
import json
import sys
import threading
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import plivo
from lxml import etree
from plivo import plivoxml
from plivo.rest import client as rest
from plivo.utils import validate_v3_signature

samples = json.load(sys.stdin)["plivo"]
TOKEN = samples["auth_token"]
checks = 0


def check(found, expected, what):
    global checks
    checks += 1
    assert found == expected, f"{what}: {found!r} is not {expected!r}"


def changed_query(url, change):
    parts = urlsplit(url)
    pairs = change(parse_qsl(parts.query, keep_blank_values=True))
    return urlunsplit(parts._replace(query=urlencode(pairs)))


def verdict(sample, token=TOKEN, header="x-plivo-signature-v3", **changes):
    """The SDK's verdict on a callback, with some changes."""
    it = {**sample, **changes}
    headers = it["headers"]
    # The SDK merges the query of a GET into the given parameters.
    params = dict(it["params"])
    return validate_v3_signature(
        it["method"], it["url"], headers["x-plivo-signature-v3-nonce"], token, headers[header], params
    )


def tampered(sample):
    """Modified versions of the callback, whose signatures are invalid."""
    headers, params = sample["headers"], sample["params"]
    yield "nonce", {"headers": {**headers, "x-plivo-signature-v3-nonce": "0" * 20}}
    yield "path", {"url": sample["url"].replace("t0ken", "t1ken")}
    yield "scheme", {"url": sample["url"].replace("https://", "http://")}
    if sample["method"] == "POST":
        yield "value", {"params": {**params, "CallStatus": "ringin"}}
        yield "more", {"params": {**params, "Digits": "1"}}
        yield "less", {"params": {name: value for name, value in params.items() if name != "CallUUID"}}
        yield "method", {"method": "GET"}
    else:
        yield "value", {"url": changed_query(sample["url"], lambda pairs: [(n, v + "1") for n, v in pairs])}
        yield "more", {"url": changed_query(sample["url"], lambda pairs: [*pairs, ("Digits", "1")])}
        yield "less", {"url": changed_query(sample["url"], lambda pairs: pairs[:-1])}


def callbacks():
    methods = set()
    for sample in samples["callbacks"]:
        name = sample["name"]
        methods.add((sample["method"], "?" in sample["url"]))
        for header in ("x-plivo-signature-v3", "x-plivo-signature-ma-v3"):
            check(verdict(sample, header=header), True, f"{name}, {header}")
        check(verdict(sample, token="x" + TOKEN[1:]), False, f"{name}, another token")
        for how, changes in tampered(sample):
            check({**sample, **changes} != sample, True, f"{name}, {how} is changed")
            check(verdict(sample, **changes), False, f"{name}, {how}")
    check(methods, {("POST", False), ("POST", True), ("GET", True)}, "kinds of callbacks")


def socket():
    it = samples["socket"]
    check(urlsplit(it["url"]).scheme, "wss", "the socket's URL")
    check(urlsplit(it["url"])[1:], urlsplit(it["signed_url"])[1:], "the URL that is signed for it")
    sample = {"method": "GET", "url": it["signed_url"], "params": {}, "headers": it["headers"]}
    check(verdict(sample), True, "socket")
    check(verdict(sample, header="x-plivo-signature-ma-v3"), True, "socket, main account")
    check(verdict(sample, url=it["signed_url"] + "x"), False, "socket, another path")
    check(verdict(sample, url=it["signed_url"] + "?x=1"), False, "socket, a query")
    check(verdict(sample, token="x" + TOKEN[1:]), False, "socket, another token")


def canonical(xml):
    parser = etree.XMLParser(remove_blank_text=True)
    return etree.tostring(etree.fromstring(xml.encode(), parser), method="c14n2").decode()


def documents():
    ours = samples["documents"]
    stream = plivoxml.StreamElement(
        ours["connect"]["media_url"], bidirectional=True, keepCallAlive=True, contentType="audio/x-mulaw;rate=8000"
    )
    def dial(**attributes):
        verb = plivoxml.DialElement(
            timeout=60,
            time_limit=7_200,
            action="https://voice.example.com/answer?call=t0ken&back=1",
            method="POST",
            redirect=True,
            callback_url="https://voice.example.com/status?call=t0ken",
            callback_method="POST",
            **attributes,
        )
        return verb.add(plivoxml.NumberElement("442071838750"))

    theirs = {"connect": stream, "dial": dial(caller_id="14155550100"), "dial_as_caller": dial(), **{why: plivoxml.HangupElement(reason=why) for why in ("rejected", "busy")}, "end": plivoxml.HangupElement()}
    check(set(ours), set(theirs), "documents")
    for name, element in theirs.items():
        built = plivoxml.ResponseElement().add(element).to_string()
        check(canonical(ours[name]["xml"]), canonical(built), name)


class Plivo(http.server.BaseHTTPRequestHandler):
    """Records the SDK's requests."""

    seen = []

    def take(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.seen.append((self.command, self.path, self.headers, json.loads(body) if body else None))
        answer = b'{"message": "call fired", "request_uuid": "r", "api_id": "a"}' if self.command == "POST" else b""
        self.send_response(201 if self.command == "POST" else 204)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_POST = do_DELETE = take

    def log_message(self, *_):
        pass


# Fields that the SDK always sends: each has Plivo's default value.
DEFAULTS = {
    "fallback_method": "POST",
    "machine_detection_time": 5000,
    "machine_detection_method": "POST",
    "error_if_parent_not_found": False,
}


def requests():
    ours = samples["requests"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Plivo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    check(ours["create"]["url"].startswith("https://api.plivo.com/v1/Account/"), True, "the API's address")
    check(rest.API_VOICE_BASE_URI, "https://api.plivo.com/v1/Account", "the SDK's address")
    rest.API_VOICE_BASE_URI = f"http://127.0.0.1:{server.server_port}/v1/Account"
    client = plivo.RestClient(samples["auth_id"], TOKEN)

    for order in (ours["create"]["body"], ours["create_detecting"]["body"]):
        given = {name: value for name, value in order.items() if name not in ("from", "to")}
        client.calls.create(from_=order["from"], to_=order["to"], **given)
    client.calls.hangup(ours["call_id"])
    client.calls.cancel(ours["call_id"])
    transfer = ours["transfer"]["body"]
    client.calls.transfer(ours["call_id"], **transfer)
    server.shutdown()

    names = ("create", "create_detecting", "hang_up", "cancel", "transfer")
    check(len(Plivo.seen), len(names), "requests of the SDK")
    for name, (method, path, headers, body) in zip(names, Plivo.seen):
        mine = ours[name]
        check((mine["method"], urlsplit(mine["url"]).path), (method, path), name)
        check(mine["headers"]["authorization"], headers["authorization"], f"{name}, credentials")
        check(urlsplit(mine["url"]).query, "", f"{name}, query")
        if name.startswith("create"):
            check(mine["headers"]["content-type"], headers["content-type"], f"{name}, type")
            check({**DEFAULTS, **mine["body"]}, body, f"{name}, fields")
        elif name == "transfer":
            check(mine["headers"]["content-type"], headers["content-type"], f"{name}, type")
            check(mine["body"], {field: value for field, value in body.items() if field != "call_uuid"}, f"{name}, fields")
        else:
            check(mine["body"], None, f"{name}, body")
            # The SDK repeats values of the path.
            check(body in (None, {"call_uuid": ours["call_id"]}), True, f"{name}, the SDK's body")


callbacks()
socket()
documents()
requests()
print(f"{checks} checks by plivo {plivo.version.__version__}")
