"""Tests the fake for OpenAI with the official client; the same steps as fake-openai.mjs."""

import io
import json
import struct
import wave

import openai
from openai import OpenAI

client = OpenAI(max_retries=0, timeout=10)


def say(content):
    return [{"role": "system", "content": "Be kind."}, {"role": "user", "content": content}]


def ask(model, **more):
    return client.chat.completions.create(**{"model": model, "messages": say("Hi"), **more})


def refused(kind, status, call):
    try:
        call()
    except kind as error:
        assert error.status_code == status, error
        return error
    raise AssertionError(f"no {kind.__name__}")


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "lookup",
            "description": "Looks up an order.",
            "parameters": {"type": "object", "properties": {"order": {"type": "string"}}},
        },
    },
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
]

ids = [model.id for model in client.models.list()]
assert {"echo", "tools"} <= set(ids)

whole = ask("echo", messages=say("Grüß Gott 👋"))
assert whole.choices[0].message.content == "Grüß Gott 👋"
assert whole.choices[0].finish_reason == "stop"
assert whole.usage.prompt_tokens > 0 and whole.usage.completion_tokens > 0

text, usage = "", None
for chunk in ask("echo", messages=say("one two three"), stream=True, stream_options={"include_usage": True}):
    assert chunk.object == "chat.completion.chunk"
    text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
    usage = chunk.usage or usage
assert text == "one two three"
assert usage.completion_tokens == 3

# The client's own helper joins the pieces of a stream strictly by index.
for model in ["parallel-tools", "shape-whole", "shape-crlf", "shape-one-byte", "shape-no-done"]:
    messages = say("A-17")
    with client.chat.completions.stream(model=model, messages=messages, tools=TOOLS) as stream:
        choice = stream.get_final_completion().choices[0]
    calls = choice.message.tool_calls
    assert choice.finish_reason == "tool_calls"
    assert json.loads(calls[0].function.arguments) == {"order": "A-17"}
    asked = [
        {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
        for c in calls
    ]
    messages.append({"role": "assistant", "content": choice.message.content, "tool_calls": asked})
    messages += [{"role": "tool", "tool_call_id": c.id, "content": c.function.name} for c in calls]
    after = ask(model, messages=messages, tools=TOOLS)
    names = " and ".join(c.function.name for c in calls)
    assert after.choices[0].message.content == f"It says: {names}"

# Speech, read as it arrives: 60 ms for a character, 24 kHz, 16 bits.
SPOKEN = "Good morning, Harbour Dental."


def speak(client, **more):
    wanted = {"model": "tts", "voice": "alloy", "input": SPOKEN, "response_format": "pcm", **more}
    with client.audio.speech.with_streaming_response.create(**wanted) as response:
        return b"".join(response.iter_bytes())


pcm = speak(client)
assert len(pcm) == len(SPOKEN) * 60 * 24 * 2
wav = speak(client, response_format="wav")
assert wav[:4] + wav[8:16] == b"RIFFWAVEfmt " and wav[36:40] == b"data"
assert struct.unpack_from("<HI", wav, 22) == (1, 24_000) and wav[44:] == pcm

sound = io.BytesIO()
with wave.open(sound, "wb") as file:
    file.setparams((1, 2, 24_000, 0, "NONE", ""))
    file.writeframes(pcm)


def transcribe(client, **more):
    fields = {"model": "scribe", "prompt": "greeting", "file": ("speech.wav", sound.getvalue()), **more}
    return client.audio.transcriptions.create(**fields)


assert transcribe(client).text == "Good morning."
assert transcribe(client, response_format="json").text == "Good morning."
assert transcribe(client, response_format="text").strip() == "Good morning."
verbose = transcribe(client, response_format="verbose_json")
seconds = len(SPOKEN) * 60 / 1_000
assert (verbose.text, verbose.language, verbose.duration) == ("Good morning.", "english", seconds)
assert [(part.start, part.end, part.text) for part in verbose.segments] == [(0, seconds, "Good morning.")]

limited = refused(openai.RateLimitError, 429, lambda: ask("rate-limited"))
assert limited.response.headers["retry-after"] == "1"
assert refused(openai.NotFoundError, 404, lambda: ask("nobody")).code == "model_not_found"
assert refused(openai.BadRequestError, 400, lambda: ask("picky", seed=1)).param == "seed"
refused(openai.InternalServerError, 500, lambda: ask("broken"))
orphan = [{"role": "tool", "tool_call_id": "x", "content": ""}]
refused(openai.BadRequestError, 400, lambda: ask("echo", messages=orphan))
wrong = OpenAI(api_key="wrong", max_retries=0)
refused(openai.AuthenticationError, 401, lambda: list(wrong.models.list()))
refused(openai.AuthenticationError, 401, lambda: speak(wrong))
refused(openai.AuthenticationError, 401, lambda: transcribe(wrong))
refused(openai.BadRequestError, 400, lambda: speak(client, voice="unknown"))
refused(openai.BadRequestError, 400, lambda: transcribe(client, file=("speech.wav", b"no sound")))

for model in ["error-in-stream", "cut"]:
    try:
        for _ in ask(model, stream=True):
            pass
    except Exception as error:
        assert not isinstance(error, AssertionError)
    else:
        raise AssertionError(f"{model} completed")
try:
    client.with_options(timeout=0.3).chat.completions.create(model="hangs", messages=say("Hi"))
except openai.APITimeoutError:
    pass
else:
    raise AssertionError("expected a timeout")
print(f"{len(ids)} models, all correct")
