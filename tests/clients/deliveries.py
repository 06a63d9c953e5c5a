"""Independent verification of signatures: requests of the server (SIDETONE_URL, SIDETONE_KEY; private targets allowed) to
webhooks and tools are verified by the official Standard Webhooks libraries, for Python here and for JavaScript in
verify.mjs. Includes a body that is not ASCII, and both secrets after a rotation."""

import http.server
import json
import os
import queue
import subprocess
import threading
import time
import urllib.request

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

URL, KEY = os.environ["SIDETONE_URL"], os.environ["SIDETONE_KEY"]
HERE = os.path.dirname(os.path.abspath(__file__))
WAIT_S = 60
arrived = queue.Queue()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        arrived.put((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"status": "shipped"}')

    def log_message(self, *_):
        pass


def call(method, path, body=None):
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def next_request():
    return arrived.get(timeout=WAIT_S)


checked = []


def verify(request, secrets, wrong):
    """Checks that each of the secrets verifies the request, and the wrong one does not."""
    _, headers, body = request
    for secret in secrets:
        assert Webhook(secret).verify(body, headers) == json.loads(body)
        checked.append({"secret": secret, "headers": headers, "body": body.decode(), "verifies": True})
    try:
        Webhook(wrong).verify(body, headers)
    except WebhookVerificationError:
        checked.append({"secret": wrong, "headers": headers, "body": body.decode(), "verifies": False})
    else:
        raise AssertionError("a wrong secret verifies the request")
    assert not body.isascii(), body


def deliveries(base):
    webhook = call("POST", "/webhooks", {"url": base + "/Grüße", "events": ["call.ended"]})
    other = call("POST", "/webhooks", {"url": base + "/other", "events": ["*"]})["signing_secret"]
    send = f"/webhooks/{webhook['id']}/test"
    call("POST", send, {})
    verify(next_request(), [webhook["signing_secret"]], other)
    rotated = call("POST", f"/webhooks/{webhook['id']}/rotate-secret", {})
    delivery = call("POST", send, {})
    request = next_request()
    assert request[1]["webhook-id"] == delivery["event_id"] == json.loads(request[2])["id"]
    verify(request, [webhook["signing_secret"], rotated["signing_secret"]], other)
    again = call("POST", f"/webhooks/{webhook['id']}/rotate-secret", {"overlap_ms": 0})
    call("POST", send, {})
    verify(next_request(), [again["signing_secret"]], rotated["signing_secret"])


def tool_callbacks(base):
    tool = call("POST", "/tools", {
        "name": "order_status", "url": base + "/tool", "description": "Looks up the status of an order in a city",
        "parameters": {"type": "object", "required": ["city"],
                       "properties": {"city": {"type": "string", "enum": ["Zürich", "Köln"]}}},
    })
    assistant = call("POST", "/assistants", {"name": "Front desk", "instructions": "Answer."})["id"]
    call("PUT", f"/assistants/{assistant}/tools", {"tool_ids": [tool["id"]]})
    persona = call("POST", "/simulations/personas", {"name": "Ada", "system_prompt": "You are brief."})["id"]
    scenario = call("POST", "/simulations/scenarios", {
        "name": "Order", "instructions": 'Ask: "What is the status of my order in Zürich?"'})["id"]
    simulation = call("POST", "/simulations", {
        "assistant_id": assistant, "persona_id": persona, "scenario_id": scenario})["id"]

    def run():
        started = call("POST", f"/simulations/{simulation}/runs", {"seed": 1})
        # The webhook also receives the events of the run.
        while (request := next_request())[0] != "/tool":
            pass
        deadline = time.monotonic() + WAIT_S
        while call("GET", f"/simulations/runs/{started['id']}")["status"] in ("queued", "running"):
            assert time.monotonic() < deadline, "the run does not end"
            time.sleep(0.05)
        while not arrived.empty():
            arrived.get()
        return request

    verify(run(), [tool["signing_secret"]], "whsec_" + "A" * 43 + "=")
    rotated = call("POST", f"/tools/{tool['id']}/rotate-secret", {})
    verify(run(), [tool["signing_secret"], rotated["signing_secret"]], "whsec_" + "A" * 43 + "=")


receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
base_url = f"http://127.0.0.1:{receiver.server_port}"
deliveries(base_url)
tool_callbacks(base_url)
subprocess.run(["node", os.path.join(HERE, "verify.mjs")], input=json.dumps(checked).encode(), check=True, timeout=60)
print(f"{len(checked)} verdicts, Python and JavaScript agree")
