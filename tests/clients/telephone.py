"""A telephone behind a carrier that speaks Twilio's protocol: rings the number, hears mu-law and says recorded sounds."""

import asyncio
import audioop
import base64
import hashlib
import hmac
import json
import urllib.parse
import urllib.request
from xml.etree import ElementTree

from websockets.asyncio.client import connect

ACCOUNT, TOKEN = "AC" + "5d" * 16, "1f" * 16
SETTINGS = {"SIDETONE_TWILIO_ACCOUNT_SID": ACCOUNT, "SIDETONE_TWILIO_AUTH_TOKEN": TOKEN}
CALLER = "+14155550123"
HZ, FRAME_BYTES, FRAME_S = 8_000, 160, 0.02
SILENCE = b"\xff" * FRAME_BYTES
PAUSE_FRAMES = 60  # a line of the assistant is over after this much silence
ANSWER_FRAMES = 1_000  # within this time it must answer


def signature(url: str, parameters: dict[str, str]) -> str:
    text = url + "".join(name + value for name, value in sorted(parameters.items()))
    return base64.b64encode(hmac.digest(TOKEN.encode(), text.encode(), hashlib.sha1)).decode()


def callback(url: str, status: str, call_sid: str, number: str, **more: str) -> bytes:
    about = {"AccountSid": ACCOUNT, "ApiVersion": "2010-04-01", "CallSid": call_sid, "CallStatus": status}
    about |= {"Direction": "inbound", "From": CALLER, "Caller": CALLER, "To": number, "Called": number, **more}
    headers = {"X-Twilio-Signature": signature(url, about)}
    request = urllib.request.Request(url, urllib.parse.urlencode(about).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read()


class Line:
    """Plays what the service sends, in real time, and sends what the person says."""

    def __init__(self, socket, stream_sid: str):
        self.socket, self.stream_sid = socket, stream_sid
        self.audio, self.marks = bytearray(), []  # marks: bytes that are left before each, and its name
        self.frames = 0

    async def receive(self):
        async for message in self.socket:
            message = json.loads(message)
            if message["event"] == "media":
                self.audio += base64.b64decode(message["media"]["payload"])
            elif message["event"] == "mark":
                self.marks.append((len(self.audio), message["mark"]["name"]))
            elif message["event"] == "clear":
                self.audio.clear()
                self.marks = [(0, name) for _, name in self.marks]

    async def send(self, event: str, value: dict):
        await self.socket.send(json.dumps({"event": event, "streamSid": self.stream_sid, event: value}))

    async def frame(self, said: bytes) -> bytes:
        """Twenty milliseconds: says these and returns what was heard; nothing if there was only silence."""
        self.frames += 1
        payload = base64.b64encode(said.ljust(FRAME_BYTES, b"\xff")).decode()
        at_ms = str((self.frames - 1) * 20)
        media = {"track": "inbound", "chunk": str(self.frames), "timestamp": at_ms, "payload": payload}
        await self.send("media", media)
        heard = bytes(self.audio[:FRAME_BYTES])
        del self.audio[:FRAME_BYTES]
        played = [name for left, name in self.marks if left <= FRAME_BYTES]
        self.marks = [(left - FRAME_BYTES, name) for left, name in self.marks if left > FRAME_BYTES]
        for name in played:
            await self.send("mark", {"name": name})
        return heard


async def talk(line: Line, sounds: list[bytes]) -> list[bytes]:
    loop = asyncio.get_running_loop()
    start = loop.time()

    async def frame(said: bytes = SILENCE) -> bytes:
        await asyncio.sleep(start + line.frames * FRAME_S - loop.time())
        return await line.frame(said)

    async def listen() -> bytes:
        heard, quiet, waited = b"", 0, 0
        while not heard or quiet < PAUSE_FRAMES:
            part = await frame()
            quiet = 0 if part.strip(b"\xff\x7f") else quiet + 1
            waited += 1
            if quiet == 0 or heard:
                heard += part or SILENCE
            assert heard or waited < ANSWER_FRAMES, "the assistant said nothing"
        return heard

    lines = [await listen()]
    for sound in sounds:
        coded = audioop.lin2ulaw(sound, 2)
        for at in range(0, len(coded), FRAME_BYTES):
            await frame(coded[at : at + FRAME_BYTES])
        lines.append(await listen())
    return lines


async def _call(server: str, number: str, sounds: list[bytes], call_sid: str) -> list[bytes]:
    answer = callback(f"{server}/carriers/twilio/voice", "ringing", call_sid, number)
    stream = ElementTree.fromstring(answer).find("./Connect/Stream")
    assert stream is not None, answer
    url = stream.attrib["url"]
    stream_sid = "MZ" + call_sid[2:]
    headers = {"X-Twilio-Signature": signature(url, {})}
    async with connect(url, additional_headers=headers, compression=None) as socket:
        await socket.send(json.dumps({"event": "connected", "protocol": "Call", "version": "1.0.0"}))
        form = {"encoding": "audio/x-mulaw", "sampleRate": HZ, "channels": 1}
        line = Line(socket, stream_sid)
        ids = {"accountSid": ACCOUNT, "streamSid": stream_sid, "callSid": call_sid}
        await line.send("start", {**ids, "tracks": ["inbound"], "customParameters": {}, "mediaFormat": form})
        receiver = asyncio.create_task(line.receive())
        try:
            lines = await talk(line, sounds)
            await line.send("stop", {"accountSid": ACCOUNT, "callSid": call_sid})
        finally:
            receiver.cancel()
    seconds = str(round(line.frames * FRAME_S))
    callback(f"{server}/carriers/twilio/status", "completed", call_sid, number, CallDuration=seconds)
    return [audioop.ulaw2lin(heard, 2) for heard in lines]


def call(server: str, number: str, sounds: list[bytes], call_sid: str) -> list[bytes]:
    """Calls, listens, says each sound after a line of the assistant, and hangs up. Returns what was heard: the first line, and
    what followed each sound. Sounds have 8 kHz and 16 bits."""
    return asyncio.run(_call(server, number, sounds, call_sid))
