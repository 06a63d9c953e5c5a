"""Tests the fake of ElevenLabs' voices with the official client, which has sockets with one context.
`cargo build --package sidetone-tests --bin fake-speech` builds the fake."""

import os
import pathlib
import subprocess

from elevenlabs.client import ElevenLabs
from elevenlabs.core.api_error import ApiError
from websockets.exceptions import InvalidStatus

TARGET = os.environ.get("CARGO_TARGET_DIR") or pathlib.Path(__file__).parents[2] / "target"
CHAR_BYTES = 60 * 24 * 2  # 60 ms, 24 kHz, 16 bits
TEXTS = ["Good morning, ", "everybody. ", "How are you?"]


def speak(key, voice="voice-1"):
    client = ElevenLabs(api_key=key, base_url=base).text_to_speech
    # The client accepts `wss:` alone; the fake has no certificate.
    client._ws_base_url = base.replace("http", "ws")
    pieces = client.convert_realtime(voice, text=iter(TEXTS), model_id="eleven_flash_v2_5", output_format="pcm_24000")
    return b"".join(pieces)


with subprocess.Popen([f"{TARGET}/debug/fake-speech"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as fake:
    base = fake.stdout.readline().strip()
    spoken = speak("key-of-the-fake")
    # The client cuts the texts elsewhere, and puts a blank after each.
    characters = len("".join(TEXTS).replace(" ", ""))
    most = len("".join(TEXTS))
    assert characters * CHAR_BYTES <= len(spoken) <= most * CHAR_BYTES, len(spoken) / CHAR_BYTES
    try:
        speak("wrong")
    except InvalidStatus as error:
        assert error.response.status_code == 401, error
    else:
        raise AssertionError("a wrong key was accepted")
    try:
        speak("key-of-the-fake", "stops")
    except ApiError as error:
        assert error.status_code == 1008, error
    else:
        raise AssertionError("a voice that breaks off said everything")
    fake.stdin.close()
print("the fake of ElevenLabs: ok")
