"""Tests the fake of OpenAI's Realtime API with the official Python client: a conversation with a function and a cut.
`cargo build --package sidetone-tests --bin fake-speech` builds the fake. fake-speech.mjs has the TypeScript client."""

import base64
import math
import os
import pathlib
import struct
import subprocess

from openai import OpenAI

TARGET = os.environ.get("CARGO_TARGET_DIR") or pathlib.Path(__file__).parents[2] / "target"
FORMAT = {"type": "audio/pcm", "rate": 24_000}


def tone(ms):
    samples = [int(8_000 * math.sin(n / 60 * 2 * math.pi)) for n in range(ms * 24)]
    return base64.b64encode(struct.pack(f"<{len(samples)}h", *samples)).decode()


def until(connection, kind):
    """The next event of this kind, and the kinds of those before it."""
    before = []
    while True:
        event = connection.recv()
        if event.type == kind:
            return event, before
        assert event.type != "error", event
        before.append(event.type)


with subprocess.Popen([f"{TARGET}/debug/fake-speech"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as fake:
    base = fake.stdout.readline().strip()
    client = OpenAI(api_key="key-of-the-fake", base_url=f"{base}/v1", websocket_base_url=f"{base.replace('http', 'ws')}/v1")
    with client.realtime.connect(model="talks") as connection:
        until(connection, "session.created")
        connection.session.update(
            session={
                "type": "realtime",
                "output_modalities": ["audio"],
                "instructions": "Be kind.",
                "max_output_tokens": 1_000,
                "tools": [{"type": "function", "name": "hours", "parameters": {"type": "object", "properties": {}}}],
                "audio": {
                    "input": {
                        "format": FORMAT,
                        "transcription": {"model": "scribe", "prompt": "greeting"},
                        "turn_detection": None,
                    },
                    "output": {"format": FORMAT, "voice": "marin"},
                },
            }
        )
        until(connection, "session.updated")
        connection.input_audio_buffer.append(audio=tone(2_400))
        connection.input_audio_buffer.commit()
        heard, _ = until(connection, "conversation.item.input_audio_transcription.completed")
        assert heard.transcript == "Good morning.", heard
        connection.response.create()
        added, _ = until(connection, "response.output_item.added")
        done, before = until(connection, "response.done")
        assert "response.output_audio.delta" in before and "response.output_audio_transcript.delta" in before, before
        [answer] = done.response.output
        assert answer.content[0].transcript == "You said: Good morning.", answer
        assert done.response.usage.output_token_details.audio_tokens == len("You said: Good morning.") * 60 // 50, done
        connection.conversation.item.truncate(item_id=added.item.id, content_index=0, audio_end_ms=500)
        cut, _ = until(connection, "conversation.item.truncated")
        assert cut.audio_end_ms == 500, cut
        connection.conversation.item.create(
            previous_item_id=answer.id,
            item={
                "id": "item_own",
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": 'Say One moment. Then use hours {"day": 6}'}],
            },
        )
        until(connection, "conversation.item.added")
        connection.response.create()
        done, _ = until(connection, "response.done")
        said, called = done.response.output
        assert (said.content[0].transcript, called.name, called.arguments) == ("One moment.", "hours", '{"day": 6}'), done
        connection.conversation.item.create(
            item={"type": "function_call_output", "call_id": called.call_id, "output": "ten"}
        )
        connection.response.create()
        done, _ = until(connection, "response.done")
        assert done.response.output[0].content[0].transcript == "It says: ten", done
        connection.response.cancel()
        refused = connection.recv()
        while refused.type != "error":
            refused = connection.recv()
        assert refused.error.code == "response_cancel_not_active", refused
    fake.stdin.close()
print("the fake of the Realtime API: ok")
