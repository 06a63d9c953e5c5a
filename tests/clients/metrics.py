"""Checks the metrics of a running service with Prometheus: promtool reads the page and the alerts, Prometheus scrapes the
service and answers every query of docs/grafana-dashboard.json and docs/prometheus-alerts.yml. What else is in the dashboard, grafana-dashboard.mjs checks.

Needs SIDETONE_URL, SIDETONE_KEY, SIDETONE_METRICS_TOKEN, and `prometheus` and `promtool` in the PATH."""

import http.server
import json
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from free_port import free_port

URL, KEY, TOKEN = (os.environ[f"SIDETONE_{name}"] for name in ("URL", "KEY", "METRICS_TOKEN"))
DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
ALERTS = DOCS / "prometheus-alerts.yml"
NAME = re.compile(r"\b(?:sidetone|process)_[a-z0-9_]+\b")
SCRAPES = 5


class Tool(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(500 if self.path == "/fails" else 200)
        self.end_headers()

    def log_message(self, *_):
        pass


def fetch(url, token=None, body=None, accept="*/*"):
    headers = {"accept": accept, "content-type": "application/json"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=20) as reply:
        return reply.read().decode()


def use_the_service():
    """Something of everything that is counted: requests, transactions, a tool that answers and one that fails, an event that
    a webhook gets."""
    tools = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tool)
    threading.Thread(target=tools.serve_forever, daemon=True).start()
    for name in ("works", "fails"):
        tool = {"name": name, "url": f"http://127.0.0.1:{tools.server_port}/{name}"}
        made = json.loads(fetch(f"{URL}/tools", KEY, tool))
        fetch(f"{URL}/tools/{made['id']}/test", KEY, {"arguments": {}})
    hook = {"url": f"http://127.0.0.1:{tools.server_port}/events", "events": ["*"]}
    hook = json.loads(fetch(f"{URL}/webhooks", KEY, hook))
    fetch(f"{URL}/webhooks/{hook['id']}/test", KEY, {})


def checked(program, *arguments, text=None):
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr.strip(), f"{program}: {done.stdout}{done.stderr}"


def queries():
    """Name and text of each query of the dashboard, and of each alert."""
    panels = json.loads((DOCS / "grafana-dashboard.json").read_text())["panels"]
    for panel in panels:
        for target in panel["targets"]:
            yield f"panel {panel['title']!r}", target["expr"].replace("$__rate_interval", "30s"), True
    lines = ALERTS.read_text().split("      - alert: ")[1:]
    for alert in lines:
        name, rest = alert.split("\n", 1)
        expression = rest.split("expr:", 1)[1].split("\n        for:", 1)[0].lstrip(" |")
        yield f"alert {name}", " ".join(expression.split()), False


class Prometheus:
    def __init__(self, folder):
        address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{address}"
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [{
                "job_name": "sidetone",
                "authorization": {"credentials": TOKEN},
                "static_configs": [{"targets": [URL.removeprefix("http://")]}],
            }],
        }
        # JSON is YAML.
        file = pathlib.Path(folder, "prometheus.yml")
        file.write_text(json.dumps(config))
        self.log = open(pathlib.Path(folder, "log"), "w+")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}"],
            stdout=self.log, stderr=self.log)

    def ask(self, path, **query):
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            return json.loads(fetch(url))["data"]
        except urllib.error.HTTPError as error:
            return {"error": error.read().decode()}

    def wait(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.told()
            try:
                found = self.ask("query", query='count_over_time(up{job="sidetone"}[1m]) and up == 1')
                if found["result"] and float(found["result"][0]["value"][1]) >= SCRAPES:
                    return
            except (urllib.error.URLError, KeyError):
                pass
            time.sleep(0.5)
        raise AssertionError(f"it does not scrape: {self.ask('targets')}\n{self.told()}")

    def told(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def main():
    use_the_service()
    checked("promtool", "check", "metrics", text=fetch(f"{URL}/metrics", TOKEN, accept="text/plain"))
    checked("promtool", "check", "rules", str(ALERTS))
    with tempfile.TemporaryDirectory() as folder:
        prometheus = Prometheus(folder)
        try:
            prometheus.wait()
            known = set(prometheus.ask("label/__name__/values"))
            asked = 0
            for what, query, is_shown in queries():
                answer = prometheus.ask("query", query=query)
                assert "error" not in answer, f"{what}: {query}: {answer['error']}"
                unknown = set(NAME.findall(query)) - known
                assert not unknown, f"{what}: no metric {unknown}"
                assert answer["result"] or not is_shown, f"{what}: nothing is shown: {query}"
                asked += 1
            delivered = prometheus.ask("query", query="sidetone_delivery_lag_seconds_count")["result"]
            assert [one["value"][1] for one in delivered] == ["1"], f"one event was delivered: {delivered}"
            rules = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"]]
            broken = [rule for rule in rules if rule["health"] == "err"]
            assert rules and not broken, broken
        finally:
            prometheus.stop()
    print(f"{asked} queries are answered, {len(known)} names are known, {len(rules)} alerts are evaluated")


main()
