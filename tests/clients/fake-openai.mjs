// Tests the fake for OpenAI with the official client: completions, streams, tool calls, speech, transcriptions, errors and
// the list of models. The same steps as fake_openai.py.
import assert from 'node:assert/strict';
import OpenAI, { toFile } from 'openai';

const client = new OpenAI({ maxRetries: 0, timeout: 10_000 });
const say = (content) => [{ role: 'system', content: 'Be kind.' }, { role: 'user', content }];
const tools = [
  {
    type: 'function',
    function: {
      name: 'lookup',
      description: 'Looks up an order.',
      parameters: { type: 'object', properties: { order: { type: 'string' } } },
    },
  },
  { type: 'function', function: { name: 'ping', parameters: { type: 'object', properties: {} } } },
];

const ids = [];
for await (const model of client.models.list()) ids.push(model.id);
assert.ok(ids.includes('echo') && ids.includes('tools'));

const whole = await client.chat.completions.create({ model: 'echo', messages: say('Grüß Gott 👋') });
assert.equal(whole.choices[0].message.content, 'Grüß Gott 👋');
assert.equal(whole.choices[0].finish_reason, 'stop');
assert.ok(whole.usage.prompt_tokens > 0 && whole.usage.completion_tokens > 0);

let text = '';
let usage = null;
const stream = await client.chat.completions.create({
  model: 'echo',
  messages: say('one two three'),
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  assert.equal(chunk.object, 'chat.completion.chunk');
  text += chunk.choices[0]?.delta.content ?? '';
  usage = chunk.usage ?? usage;
}
assert.equal(text, 'one two three');
assert.equal(usage.completion_tokens, 3);

// The client's own helper joins the pieces of a stream strictly by index.
for (const model of ['parallel-tools', 'shape-whole', 'shape-crlf', 'shape-one-byte', 'shape-no-done']) {
  const messages = say('A-17');
  const runner = client.chat.completions.stream({ model, messages, tools });
  const { message, finish_reason } = (await runner.finalChatCompletion()).choices[0];
  assert.equal(finish_reason, 'tool_calls');
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { order: 'A-17' });
  messages.push({ role: 'assistant', content: message.content, tool_calls: message.tool_calls });
  for (const call of message.tool_calls) {
    messages.push({ role: 'tool', tool_call_id: call.id, content: call.function.name });
  }
  const after = await client.chat.completions.create({ model, messages, tools });
  const names = message.tool_calls.map((call) => call.function.name).join(' and ');
  assert.equal(after.choices[0].message.content, `It says: ${names}`);
}

// Speech, read as it arrives: 60 ms for a character, 24 kHz, 16 bits.
const spoken = 'Good morning, Harbour Dental.';
const SPEECH_BYTES = spoken.length * 60 * 24 * 2;
const speak = (openai, more = {}) => openai.audio.speech.create({
  model: 'tts', voice: 'alloy', input: spoken, response_format: 'pcm', ...more,
});
async function streamed(response_format) {
  const response = await speak(client, { response_format });
  assert.match(response.headers.get('content-type'), new RegExp(`^audio/${response_format}`));
  const pieces = [];
  for await (const piece of response.body) pieces.push(piece);
  assert.ok(pieces.length > 1, 'it comes in pieces');
  return Buffer.concat(pieces);
}
const pcm = await streamed('pcm');
const wav = await streamed('wav');
assert.equal(pcm.length, SPEECH_BYTES);
assert.equal(wav.subarray(0, 4).toString() + wav.subarray(8, 16).toString(), 'RIFFWAVEfmt ');
assert.deepEqual([wav.readUInt16LE(22), wav.readUInt32LE(24), wav.readUInt16LE(34)], [1, 24_000, 16]);
assert.equal(wav.subarray(36, 40).toString(), 'data');
assert.ok(wav.subarray(44).equals(pcm), 'the same samples after the head');

// A file has its length in its head; what was streamed does not.
const file = Buffer.from(wav);
file.writeUInt32LE(file.length - 8, 4);
file.writeUInt32LE(file.length - 44, 40);
const transcribe = async (openai, more = {}) => openai.audio.transcriptions.create({
  model: 'scribe', prompt: 'greeting', language: 'en', file: await toFile(file, 'speech.wav', { type: 'audio/wav' }), ...more,
});
assert.equal((await transcribe(client)).text, 'Good morning.');
assert.equal((await transcribe(client, { response_format: 'json' })).text, 'Good morning.');
assert.equal((await transcribe(client, { response_format: 'text' })).trim(), 'Good morning.');
const verbose = await transcribe(client, { response_format: 'verbose_json' });
const seconds = (spoken.length * 60) / 1_000;
assert.deepEqual([verbose.text, verbose.language, verbose.duration], ['Good morning.', 'english', seconds]);
assert.deepEqual(verbose.segments.map(({ start, end, text: words }) => [start, end, words]), [[0, seconds, 'Good morning.']]);
const unsaid = await transcribe(client, { response_format: 'verbose_json', prompt: 'nobody' });
assert.deepEqual([unsaid.text, unsaid.segments], ['', []]);

const refused = async (kind, status, create) => {
  const error = await create().then(() => assert.fail('expected an error'), (error) => error);
  assert.ok(error instanceof kind, `${error}`);
  assert.equal(error.status, status);
  return error;
};
const ask = (model, more = {}) => () => client.chat.completions.create({ model, messages: say('Hi'), ...more });
assert.equal((await refused(OpenAI.RateLimitError, 429, ask('rate-limited'))).headers.get('retry-after'), '1');
assert.equal((await refused(OpenAI.NotFoundError, 404, ask('nobody'))).code, 'model_not_found');
assert.equal((await refused(OpenAI.BadRequestError, 400, ask('picky', { seed: 1 }))).param, 'seed');
await refused(OpenAI.InternalServerError, 500, ask('broken'));
await refused(OpenAI.BadRequestError, 400, ask('echo', { messages: [{ role: 'tool', tool_call_id: 'x', content: '' }] }));
const wrong = new OpenAI({ apiKey: 'wrong', maxRetries: 0 });
await refused(OpenAI.AuthenticationError, 401, () => wrong.models.list());
await refused(OpenAI.AuthenticationError, 401, () => speak(wrong));
await refused(OpenAI.AuthenticationError, 401, () => transcribe(wrong));
await refused(OpenAI.BadRequestError, 400, () => speak(client, { response_format: 'opus' }));
await refused(OpenAI.BadRequestError, 400, () => speak(client, { voice: 'unknown' }));
const noSound = await toFile(Buffer.from('no sound'), 'speech.wav');
await refused(OpenAI.BadRequestError, 400, () => transcribe(client, { file: noSound }));

for (const model of ['error-in-stream', 'cut']) {
  await assert.rejects(async () => {
    for await (const _ of await ask(model, { stream: true })());
  }, model);
}
const hasty = new OpenAI({ maxRetries: 0, timeout: 300 });
const late = hasty.chat.completions.create({ model: 'hangs', messages: say('Hi') });
await assert.rejects(late, OpenAI.APIConnectionTimeoutError);
await assert.rejects(transcribe(hasty, { model: 'hangs' }), OpenAI.APIConnectionTimeoutError);
// A body that breaks off is an error for whoever reads it.
await assert.rejects(async () => (await speak(client, { voice: 'stops' })).arrayBuffer());
console.log(`${ids.length} models, all as it should be`);
