"""The binary beside Litestream, with docs/run/litestream.yml: both are killed again and again, the binary empties its log
while Litestream is away, and what was acknowledged is in the database that `litestream restore` makes. Argument: the
binary. The copies are in a folder; with S3_ENDPOINT (and AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, and the bucket of the
file there), in a bucket."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CONFIG = Path(__file__).resolve().parents[2] / "docs" / "run" / "litestream.yml"
BINARY = sys.argv[1]
S3 = os.environ.get("S3_ENDPOINT")
STARTED = []


def wait_for(what, ready, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := ready()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.2)
    return found


class Service:
    def __init__(self, folder, name, key=None):
        self.data, self.out, self.key = folder / name, folder / f"{name}.out", key
        with open(self.out, "w") as out, open(folder / f"{name}.log", "w") as log:
            env = os.environ | {"SIDETONE_DATA": str(self.data), "SIDETONE_LISTEN": "127.0.0.1:0"}
            self.process = subprocess.Popen([BINARY], env=env, stdout=out, stderr=log)
        STARTED.append(self.process)
        found = wait_for("the service starts", lambda: re.search(r"listening on (\S+)\)", self.out.read_text()))
        self.url = f"http://{found[1]}"
        if not key:
            self.key = wait_for("its key", lambda: re.search(r"sidetone_[A-Za-z0-9]{49}", self.out.read_text()))[0]

    def ask(self, method, path, body=None):
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.loads(reply.read() or "null")

    def make(self, name):
        return self.ask("POST", "/assistants", {"name": name, "instructions": f"You are {name}."})

    def log_bytes(self):
        log = self.data / "sidetone.db-wal"
        return log.stat().st_size if log.exists() else 0

    def kill(self):
        self.process.kill()
        self.process.wait()


class Litestream:
    def __init__(self, folder, data):
        self.database, self.config, self.log = data / "sidetone.db", folder / "litestream.yml", folder / "litestream.log"
        text = CONFIG.read_text().replace("/var/lib/sidetone/sidetone.db", str(self.database))
        if S3:
            text += f"      endpoint: {S3}\n"
        else:
            text = text[: text.index("      type: s3")] + f"      type: file\n      path: {folder}/copies\n"
        self.config.write_text(text)
        self.process = None

    def start(self):
        with open(self.log, "a") as log:
            command = ["litestream", "replicate", "-config", str(self.config)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        STARTED.append(self.process)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restored(self, target):
        for old in target.parent.glob(f"{target.name}*"):
            old.unlink()
        command = ["litestream", "restore", "-config", str(self.config), "-o", str(target), str(self.database)]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode == 0 and target.exists()

    def has(self, target, name):
        """Whether a restore has this assistant by now."""
        assert self.process.poll() is None, self.log.read_text()
        if not self.restored(target):
            return False
        with sqlite3.connect(target) as database:
            return bool(database.execute("SELECT 1 FROM assistants WHERE name = ?", [name]).fetchone())


def run(*arguments, **settings):
    done = subprocess.run([BINARY, *arguments], env=os.environ | settings, capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout


def main(folder):
    service = Service(folder, "data")
    copies = Litestream(folder, service.data)
    target = folder / "restored.db"

    copies.start()
    service.make("first")
    wait_for("the first copy", lambda: copies.has(target, "first"))
    for number in range(20):
        service.make(f"beside {number}")
    # Litestream holds a read lock, so the binary's attempts to empty the log fail, and it goes on.
    time.sleep(12)
    print(f"with Litestream the log stays: {service.log_bytes()} bytes after 12 s")

    copies.kill()
    service.make("while it was away")
    wait_for("the binary empties its log", lambda: service.log_bytes() == 0)
    service.make("in the next log")
    copies.start()
    wait_for("what was written meanwhile is copied", lambda: copies.has(target, "in the next log"))

    service.kill()
    service = Service(folder, "data", service.key)
    last = service.make("the last one")
    acknowledged = time.monotonic()
    wait_for("the last one is copied", lambda: copies.has(target, "the last one"))
    print(f"the last row was in a restore {time.monotonic() - acknowledged:.1f} s after its 2xx")
    service.kill()
    copies.kill()

    assert copies.restored(target), "it restores"
    secret = (service.data / "secret").read_text().strip()
    run("restore", str(target), SIDETONE_DATA=str(folder / "new"), SIDETONE_SECRET=secret)
    print(run("check", SIDETONE_DATA=str(folder / "new"), SIDETONE_SECRET=secret).strip())
    os.environ["SIDETONE_SECRET"] = secret
    again = Service(folder, "new", service.key)
    assert again.ask("GET", f"/assistants/{last['id']}") == last
    names = {one["name"] for one in again.ask("GET", "/assistants")}
    wanted = {"first", "while it was away", "in the next log", "the last one"} | {f"beside {n}" for n in range(20)}
    assert names == wanted, wanted ^ names
    again.kill()
    print("litestream: passed")


with tempfile.TemporaryDirectory() as folder:
    try:
        main(Path(folder))
    finally:
        for process in STARTED:
            process.kill()
            process.wait()
