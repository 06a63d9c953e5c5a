"""Runs the README's "Local voices in five minutes" with local_speech.py in the place of its speech server, then calls the
assistant with recorded people. `local_voices.py RECORDINGS` (the folder of .ci/recordings) counts the words that were
wrong after the telephone's codec: those of the callers in the transcript, and those of the assistant at the
telephone."""

import audioop
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid
import wave

import readme
import telephone

RECORDINGS = sys.argv[1]
# The prompts and sentences whose words PocketSphinx's English model knows best; it is small, and made for wide audio.
PROMPTS = {
    "please-try-again": "please try again",
    "cannot-complete-as-dialed": "your call cannot be completed as dialed",
    "check-number-dial-again": "please check the number and dial again",
    "queue-thankyou": "thank you for your patience",
}
SENTENCES = ["0880", "0890", "0920"]
# What the assistant says; the words of the cards' grammar, which has no more than three.
SPOKEN = [
    "Eight of spades, four of clubs, seven of hearts.",
    "Queen of diamonds.",
    "King of spades, two of hearts, five of clubs.",
]
# Shares of wrong words. They are 0, 0.24 and 0 today. With the wrong codec, speed or byte order, or half of the sound, two
# thirds of the cards and more are wrong.
CARDS_MAX, ENGLISH_MAX, SPOKEN_MAX = 0.25, 0.5, 0.25


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


def wrong(wanted: list[str], heard: list[str]) -> int:
    """How many words were replaced, lost or added, at least."""
    row = list(range(len(heard) + 1))
    for at, word in enumerate(wanted, 1):
        before, row[0] = row[0], at
        for index, other in enumerate(heard, 1):
            before, row[index] = row[index], min(row[index] + 1, row[index - 1] + 1, before + (word != other))
    return row[-1]


def check(name: str, wanted: str, heard: str, most: float) -> None:
    errors, count = wrong(words(wanted), words(heard)), len(words(wanted))
    print(f"{name}: {errors} of {count} words wrong, a word error rate of {errors / count:.2f} (at most {most})")
    print(f"  said:  {wanted}\n  heard: {heard}")
    assert errors <= most * count, name


def transcripts(folder: str, index: str) -> dict[str, str]:
    with open(f"{RECORDINGS}/utterances/{folder}/{index}", encoding="utf-8") as file:
        lines = re.findall(r"<s> (.*?) *</s> \((.*)\)", file.read())
    return {f"{RECORDINGS}/utterances/{folder}/{name}.wav": text for text, name in lines}


def sound(path: str) -> bytes:
    """A recording at the telephone's rate."""
    with wave.open(path) as file:
        assert (file.getsampwidth(), file.getnchannels()) == (2, 1), path
        pcm, hz = file.readframes(file.getnframes()), file.getframerate()
    return pcm if hz == telephone.HZ else audioop.ratecv(pcm, 2, 1, hz, telephone.HZ, None)[0]


def api(method: str, path: str, body: dict | None = None):
    headers = {"Authorization": f"Bearer {os.environ['SIDETONE_KEY']}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["SIDETONE_URL"] + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def recognised(model: str, pcm: bytes) -> str:
    """The words in a sound at the telephone's rate, from the speech server itself."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        with wave.open(file, "wb") as wav:
            wav.setparams((1, 2, telephone.HZ, 0, "NONE", ""))
            wav.writeframes(pcm)
        file.flush()
        url = f"{os.environ['SPEECH_URL']}/audio/transcriptions"
        form = ["curl", "-sSf", url, "-F", f"model={model}", "-F", f"file=@{file.name}"]
        return json.loads(subprocess.run(form, check=True, capture_output=True, timeout=60).stdout)["text"]


def call(number: str, assistant: str, sounds: list[bytes]) -> tuple[str, list[bytes]]:
    """Calls the assistant. Returns the transcript's words of the caller, and what was heard."""
    api("PUT", f"/numbers/{number}", {"assistant_id": assistant, "provider": "twilio"})
    heard = telephone.call(os.environ["SIDETONE_URL"], number, sounds, f"CA{uuid.uuid4().hex}")
    for _ in range(100):
        (ended,) = api("GET", f"/calls?assistant_id={assistant}")["calls"]
        if ended["status"] == "ended":
            break
        time.sleep(0.1)
    assert (ended["ended_reason"], ended["fault"]) == ("user_hung_up", "none"), ended
    print(*(f"  {row['role']}: {row['text']}" for row in ended["transcript"]), sep="\n")
    return " ".join(row["text"] for row in ended["transcript"] if row["role"] == "user"), heard


def inside() -> None:
    """With a server that knows the speech server."""
    tour = readme.blocks(readme.section("README.md", "A tour in five minutes"), "sh")
    *_, last = readme.blocks(readme.section("README.md", "Local voices in five minutes"), "sh")
    output = readme.run(["sh"], ".sh", "\n".join([*tour[:3], last]))
    readme.expect(output, '"voice":"local/af_heart"', '"websocket_url"')
    assistant = re.search(r'"id":"(asst_\w+)"', output)[1]

    said = {f"{RECORDINGS}/prompts/{name}.wav": text for name, text in PROMPTS.items()}
    book = transcripts("librivox", "transcription")
    said |= {path: text for path, text in book.items() if path.removesuffix(".wav").endswith(tuple(SENTENCES))}
    heard, _ = call("+14155550100", assistant, [sound(path) for path in said])
    check("two people, any English, to the assistant", " ".join(said.values()), heard, ENGLISH_MAX)

    cards = transcripts("cards", "cards.transcription")
    lines = []
    for index, spoken in enumerate(SPOKEN):
        fields = {"name": f"Dealer {index}", "instructions": "You deal cards.", "first_message": spoken}
        dealer = api("POST", "/assistants", {**fields, "voice": "local/af_heart", "transcriber": "local/cards"})
        heard, (line, *_) = call("+14155550101", dealer["id"], [sound(path) for path in cards] if index == 0 else [])
        lines.append(recognised("cards", line))
        if index == 0:
            check("a person, cards, to the assistant", " ".join(cards.values()), heard, CARDS_MAX)
    check("the assistant, cards, to the telephone", " ".join(SPOKEN), " ".join(lines), SPOKEN_MAX)


def outside() -> None:
    serve = [sys.executable, "local_speech.py", f"{RECORDINGS}/utterances/cards/cards.gram"]
    with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as speech:
        url = speech.stdout.readline().strip()
        documented = readme.section("README.md", "Local voices in five minutes")
        fetch, start, _ = readme.blocks(documented.replace("http://127.0.0.1:8000/v1", url), "sh")
        # Both servers are started here: in the place of speaches, and with the settings that the service would get.
        readme.run(["sh", "-e"], ".sh", re.sub(r"(?m)^(git|docker) .*\n", "", fetch))
        settings = ["sh", "-ec", start.replace("cargo run --release", "env -0")]
        printed = subprocess.run(settings, check=True, capture_output=True, text=True).stdout
        environment = dict(pair.split("=", 1) for pair in printed.rstrip("\0").split("\0"))
        environment |= {**telephone.SETTINGS, "SPEECH_URL": url}
        host = "../worker/with-worker.sh" if os.environ.get("SIDETONE_HOST") == "worker" else "./with-server.sh"
        done = subprocess.run([host, sys.executable, __file__, RECORDINGS, "--inside"], env=environment)
    sys.exit(done.returncode)


if __name__ == "__main__":
    inside() if "--inside" in sys.argv else outside()
