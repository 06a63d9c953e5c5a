"""The binary behind Caddy and nginx, with the files of docs/run: REST, MCP, WebSockets, the client's address, limits of
bodies, and events that arrive as they happen. Argument: the binary."""
import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from free_port import free_port

RUN = Path(__file__).resolve().parents[2] / "docs" / "run"
OTHER_ADDRESS = "127.0.0.9"


def wait_for(what, ready, seconds=60):
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


def caddy(folder, front, back):
    """The shipped file, imported; around it only what keeps Caddy from this machine's ports and certificates."""
    file = folder / "Caddyfile"
    file.write_text(
        "{\n\tadmin off\n\tauto_https disable_redirects\n\tskip_install_trust\n"
        f"\tstorage file_system {folder}/caddy\n}}\nimport {RUN}/Caddyfile\n"
    )
    env = os.environ | {
        "SIDETONE_HOST": f"localhost:{front}",
        "SIDETONE_UPSTREAM": f"127.0.0.1:{back}",
        "HOME": str(folder),
    }
    subprocess.run(["caddy", "validate", "--config", file, "--adapter", "caddyfile"], env=env, check=True, capture_output=True)
    return ["caddy", "run", "--config", file, "--adapter", "caddyfile"], env


def nginx(folder, front, back):
    """The shipped file with other ports and another certificate."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )
    text = (RUN / "nginx.conf").read_text()
    changes = [
        (r"listen 443 ssl;", f"listen 127.0.0.1:{front} ssl;"),
        (r"listen \[::\]:443 ssl;", ""),
        (r"server 127\.0\.0\.1:8787;", f"server 127.0.0.1:{back};"),
        (r"/etc/letsencrypt/live/voice\.example\.com/fullchain\.pem", f"{folder}/cert.pem"),
        (r"/etc/letsencrypt/live/voice\.example\.com/privkey\.pem", f"{folder}/key.pem"),
    ]
    for pattern, value in changes:
        text, count = re.subn(pattern, value, text)
        assert count == 1, f"{pattern} is not in the shipped file once"
    (folder / "sidetone.conf").write_text(text)
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}include {folder}/sidetone.conf;\n}}\n"
    )
    command = ["nginx", "-p", folder, "-c", folder / "nginx.conf"]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    return command, dict(os.environ)


class Front:
    """A client of the proxy."""

    def __init__(self, port, key):
        self.port, self.key = port, key
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def connect(self, source=None):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=30, source_address=source and (source, 0))
        return self.context.wrap_socket(plain, server_hostname="localhost")

    def send(self, method, path, body=None, headers=None, source=None):
        """Status, headers and body."""
        connection = http.client.HTTPConnection("localhost", self.port, timeout=30)
        connection.sock = self.connect(source)
        sent = {"authorization": f"Bearer {self.key}"} | (headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            sent["content-type"] = "application/json"
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        read = answer.read()
        connection.close()
        return answer.status, answer.headers, read

    def json(self, expected, method, path, body=None, headers=None):
        status, _, read = self.send(method, path, body, headers)
        assert status == expected, f"{method} {path}: {status} {read[:300]}"
        return json.loads(read) if read else None

    def open_socket(self, path):
        """A WebSocket, and the first message."""
        stream = self.connect()
        key = base64.b64encode(os.urandom(16)).decode()
        stream.sendall(
            f"GET {path} HTTP/1.1\r\nhost: localhost:{self.port}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
            f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n\r\n".encode()
        )
        reader = stream.makefile("rb")
        status = reader.readline().split()[1]
        while reader.readline() not in (b"\r\n", b""):
            pass
        assert status == b"101", f"the WebSocket is not upgraded: {status}"
        head = reader.read(2)
        length = head[1] & 0x7F
        if length == 126:
            length = int.from_bytes(reader.read(2), "big")
        elif length == 127:
            length = int.from_bytes(reader.read(8), "big")
        return stream, json.loads(reader.read(length))


def check(front, operator_key, log):
    assistant = front.json(201, "POST", "/assistants", {"name": "Desk", "instructions": "Be kind.", "first_message": "Hello."})
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "proxies", "version": "1"}}}
    accepts = {"accept": "application/json, text/event-stream"}
    status, _, read = front.send("POST", "/mcp", initialize, accepts)
    assert status == 200 and b"serverInfo" in read, f"MCP: {status} {read[:300]}"

    # A conversation, and its events while it is open.
    token = front.json(200, "POST", f"/assistants/{assistant['id']}/test-token", {})
    assert token["websocket_url"].startswith(f"wss://localhost:{front.port}/"), token["websocket_url"]
    path = token["websocket_url"].split(f":{front.port}", 1)[1]
    talking, first = front.open_socket(path)
    assert first["type"] == "call_started", first
    started = time.monotonic()
    following = front.connect()
    following.sendall(
        f"GET /calls/{first['call']['id']}/events HTTP/1.1\r\nhost: localhost:{front.port}\r\n"
        f"authorization: Bearer {front.key}\r\n\r\n".encode()
    )
    events = b""
    while b"data:" not in events:
        events += following.recv(4096) or (_ for _ in ()).throw(AssertionError(f"the events ended: {events!r}"))
    assert time.monotonic() - started < 30, "an event arrives while the call goes on"
    following.close()
    talking.close()

    # Whoever sends a request cannot choose the address that it is counted under.
    status, headers, _ = front.send("GET", "/assistants", headers={"x-forwarded-for": "203.0.113.7"}, source=OTHER_ADDRESS)
    assert status == 200
    request = headers["x-request-id"]
    wait_for("the request's line in the log", lambda: request in log.read_text())
    line = next(json.loads(line) for line in log.read_text().splitlines() if request in line)
    assert line["address"] == OTHER_ADDRESS, f"the address of the client: {line}"

    # The service's own limit, in its own words.
    status, _, read = front.send("POST", "/assistants", b" " * 1_500_000)
    assert status == 413 and b"body_too_large" in read, f"a large body: {status} {read[:200]}"
    # A part of a workspace that moves here is larger than everything else, and reaches the service.
    part = "/operator/imports/ws_01hzy3v9k2e5t8r4q6w7x8y9z0/parts/1"
    status, _, read = front.send("PUT", part, b" " * 16_700_000, {"authorization": f"Bearer {operator_key}"})
    assert status in (400, 404, 409, 422) and b'"error"' in read, f"a part: {status} {read[:300]}"
    # Afterwards as before.
    front.json(200, "GET", f"/assistants/{assistant['id']}")


def main(binary):
    secrets = subprocess.run([binary, "secrets"], check=True, capture_output=True, text=True).stdout
    operator_key = re.search(r"SIDETONE_OPERATOR_KEY=(\w+)", secrets).group(1)
    for proxy in (caddy, nginx):
        folder = Path(tempfile.mkdtemp(prefix="sidetone-proxy-"))
        running = []
        try:
            front_port, back_port = free_port(), free_port()
            env = {name: value for name, value in os.environ.items() if not name.startswith("SIDETONE_")} | {
                "SIDETONE_LISTEN": f"127.0.0.1:{back_port}",
                "SIDETONE_DATA": str(folder / "data"),
                "SIDETONE_BASE_URL": f"https://localhost:{front_port}",
                "SIDETONE_TRUSTED_PROXIES": "127.0.0.1",
                "SIDETONE_OPERATOR_KEY": operator_key,
                "SIDETONE_LOG_FORMAT": "json",
            }
            made = subprocess.run([binary, "workspace", "create", "proxied"], env=env, check=True, capture_output=True, text=True)
            key = re.search(r"sidetone_\w+", made.stdout).group()
            log = folder / "log"
            with log.open("w") as file:
                running.append(subprocess.Popen([binary], env=env, stdout=subprocess.DEVNULL, stderr=file))
            wait_for("the service", lambda: listens(back_port))
            command, env = proxy(folder, front_port, back_port)
            with (folder / "proxy.log").open("w") as file:
                running.append(subprocess.Popen(command, env=env, stdout=file, stderr=file))
            wait_for(proxy.__name__, lambda: listens(front_port))
            front = Front(front_port, key)
            check(front, operator_key, log)
            if proxy is nginx:
                # What is larger than any body is refused before it is sent. Caddy reads it first, and closes the connection.
                status, _, read = front.send("POST", "/assistants", b"", {"content-length": "18000000"})
                assert status == 413 and b"nginx" in read, f"18 MB: {status} {read[:200]}"
            print(f"{proxy.__name__}: REST, MCP, WebSocket, events, the client's address, limits")
        except BaseException:
            for name in ("log", "proxy.log", "nginx.log"):
                if (folder / name).exists():
                    print(f"--- {name}\n{(folder / name).read_text()[-3000:]}", file=sys.stderr)
            raise
        finally:
            for process in reversed(running):
                process.send_signal(signal.SIGTERM)
            for process in running:
                process.wait(20)
            shutil.rmtree(folder, ignore_errors=True)
    print("proxies: passed")


main(sys.argv[1])
