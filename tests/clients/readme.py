"""Runs the documentation against a server (SIDETONE_URL, SIDETONE_KEY), unchanged except for address and key:
`readme.py curl` runs the README's tour, `readme.py testing` after it all commands of docs/testing.md, `readme.py mcp` the
script of docs/mcp.md. Each must end with passed runs."""

import os
import re
import subprocess
import sys
import tempfile

URL, KEY = os.environ.get("SIDETONE_URL", ""), os.environ.get("SIDETONE_KEY", "")
ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def page(document: str) -> str:
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        return file.read()


def section(document: str, title: str) -> str:
    return page(document).split(f"\n## {title}\n")[1].split("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.S)


def run(command: list[str], suffix: str, script: str) -> str:
    script = re.sub(r"(?m)^export SIDETONE_KEY=.*$", f"export SIDETONE_KEY={KEY}", script)
    with tempfile.NamedTemporaryFile("w", suffix=suffix) as file:
        file.write(script.replace("http://127.0.0.1:8787", URL))
        file.flush()
        done = subprocess.run([*command, file.name], capture_output=True, text=True, timeout=60)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, f"the script ended with status {done.returncode}"
    return done.stdout


def expect(output: str, *parts: str) -> None:
    for part in parts:
        assert part in output, f"the output lacks {part}"


if __name__ == "__main__":
    if sys.argv[1] == "curl":
        script = "\n".join(blocks(section("README.md", "A tour in five minutes"), "sh"))
        expect(run(["sh"], ".sh", script), '"status":"completed"', '"passed":true', '"revision_conflict"')
    elif sys.argv[1] == "testing":
        tour = blocks(section("README.md", "A tour in five minutes"), "sh")
        commands = blocks(page("docs/testing.md"), "sh")
        # The status of the last command, the batch in CI, is that of the script.
        output = run(["sh"], ".sh", "\n".join(tour + commands))
        assert '"error":{' not in output.split('"revision_conflict"')[1], "a command was refused"
        expect(output, '"tool_mocks":{"book":[', '"assistant_hash"', '"errors":0,"passed":3,"failed":0,"undecided":0')
    else:
        tour = section("docs/mcp.md", "The tour in Python")
        (script,) = blocks(tour, "python")
        (printed,) = blocks(tour, "text")
        expect(run([sys.executable], ".py", script), printed)
