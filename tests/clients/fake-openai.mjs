// Tests the fake for OpenAI with the official client: completions, streams, tool calls, errors and the list of
// models. The same steps as fake_openai.py.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

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

for (const model of ['error-in-stream', 'cut']) {
  await assert.rejects(async () => {
    for await (const _ of await ask(model, { stream: true })());
  }, model);
}
const hasty = new OpenAI({ maxRetries: 0, timeout: 300 });
const late = hasty.chat.completions.create({ model: 'hangs', messages: say('Hi') });
await assert.rejects(late, OpenAI.APIConnectionTimeoutError);
console.log(`${ids.length} models, all as it should be`);
