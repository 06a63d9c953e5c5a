"""A speech server on this machine with OpenAI's API: PocketSphinx hears, flite speaks. `local_speech.py GRAMMAR` prints its
base URL and serves until its input ends. The transcription model `cards` knows the words of that grammar alone (JSGF); any
other name gives the large vocabulary. Every voice is flite's `rms`."""

import audioop
import email
import email.policy
import io
import json
import subprocess
import sys
import tempfile
import threading
import wave
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pocketsphinx import Decoder

HEARS_HZ, SPEAKS_HZ = 16_000, 24_000
CHUNK_BYTES = 4_801  # odd: samples are cut in two, as networks do


class Recogniser:
    """A decoder, for one utterance at a time."""

    def __init__(self, **options):
        self.decoder = Decoder(loglevel="FATAL", **options)
        self.lock = threading.Lock()

    def hear(self, pcm: bytes) -> str:
        with self.lock:
            self.decoder.start_utt()
            self.decoder.process_raw(pcm, no_search=False, full_utt=True)
            self.decoder.end_utt()
            result = self.decoder.hyp()
        return result.hypstr if result else ""


def samples(wav: bytes, hz: int) -> bytes:
    """The samples of a file of 16 bits and one channel, at another rate."""
    with wave.open(io.BytesIO(wav)) as file:
        assert (file.getsampwidth(), file.getnchannels()) == (2, 1), file.getparams()
        pcm, own_hz = file.readframes(file.getnframes()), file.getframerate()
    return pcm if own_hz == hz else audioop.ratecv(pcm, 2, 1, own_hz, hz, None)[0]


def speak(text: str) -> bytes:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run(["flite", "-voice", "rms", "-t", text, "-o", file.name], check=True)
        return samples(file.read(), SPEAKS_HZ)


def form(content_type: str, body: bytes) -> dict[str, bytes]:
    """The fields of a multipart form."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    parts = email.message_from_bytes(head + body, policy=email.policy.HTTP).iter_parts()
    return {part.get_param("name", header="content-disposition"): part.get_payload(decode=True) for part in parts}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    recognisers: dict[str, Recogniser] = {}

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/v1/audio/transcriptions":
            fields = form(self.headers["content-type"], body)
            recogniser = self.recognisers["cards" if fields["model"] == b"cards" else "english"]
            self.reply({"text": recogniser.hear(samples(fields["file"], HEARS_HZ))})
        elif self.path == "/v1/audio/speech":
            wanted = json.loads(body)
            assert wanted["response_format"] == "pcm" and wanted["voice"], wanted
            self.stream(speak(wanted["input"]))
        elif self.path.startswith("/v1/models/"):  # fetches a model, where there is one to fetch
            self.reply({"id": self.path.removeprefix("/v1/models/"), "object": "model"})
        else:
            self.send_error(404)

    def reply(self, value: dict):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, pcm: bytes):
        self.send_response(200)
        self.send_header("Content-Type", "audio/pcm")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for at in range(0, len(pcm), CHUNK_BYTES):
            chunk = pcm[at : at + CHUNK_BYTES]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    Handler.recognisers = {
        "cards": Recogniser(lm=None, jsgf=sys.argv[1]),
        # Half of the frames and a bound on the search: a second for a sentence.
        "english": Recogniser(ds=2, maxhmmpf=2_000),
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    sys.stdin.read()
