// Tests the fake of speech providers with their official clients: Deepgram's (recognition, Flux, voices), Cartesia's and
// OpenAI's (transcription sessions, and conversations with a realtime model). ElevenLabs' has a socket in Python alone: fake_elevenlabs.py.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { DeepgramClient } from '@deepgram/sdk';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';

// Its sockets find `ws`, which they need for their headers, with `require` alone.
const require = createRequire(import.meta.url);
const Cartesia = require('@cartesia/cartesia-js');
const { TTSWS } = require('@cartesia/cartesia-js/resources/tts/ws');

const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL('../../target', import.meta.url));
const fake = spawn(`${target}/debug/fake-speech`, { stdio: ['pipe', 'pipe', 'inherit'] });
const [base] = await once(createInterface(fake.stdout), 'line');
const socketBase = base.replace('http', 'ws');
const apiKey = 'key-of-the-fake';

// A tone of 400 Hz and silence, 8 kHz, as 16-bit samples.
const pcm = (ms, amplitude) =>
  Buffer.from(Int16Array.from({ length: ms * 8 }, (_, n) => amplitude * Math.sin((n / 20) * 2 * Math.PI)).buffer);
const utterance = [pcm(800, 8_000), pcm(1_200, 0)];

const deepgram = new DeepgramClient({
  apiKey,
  environment: { base, production: socketBase, agent: socketBase, agentRest: base },
});

/// The messages of a connection, from its opening to its end.
async function conversation(connection, talk, isOver) {
  const messages = [];
  const over = new Promise((resolve, reject) => {
    connection.on('message', (message) => {
      messages.push(message);
      if (isOver(message)) resolve();
    });
    connection.on('error', reject);
    setTimeout(() => reject(new Error(`no end after ${JSON.stringify(messages)}`)), 10_000).unref();
  });
  connection.connect();
  await connection.waitForOpen();
  talk(connection);
  await over;
  connection.close();
  return messages;
}

const line = { encoding: 'linear16', sample_rate: 8_000, keyterm: ['greeting'], reconnectAttempts: 0 };

const results = await conversation(
  await deepgram.listen.v1.connect({ ...line, model: 'nova-3', interim_results: 'true' }),
  (connection) => {
    for (const audio of utterance) connection.sendMedia(audio);
    connection.sendKeepAlive({ type: 'KeepAlive' });
    connection.sendFinalize({ type: 'Finalize' });
  },
  (message) => message.from_finalize === true,
);
assert.deepEqual(
  results.map(({ type, is_final }) => [type, is_final]),
  [['Results', false], ['Results', true]],
);
assert.equal(results[1].channel.alternatives[0].transcript, 'Good morning.');
assert.equal(results[1].start + results[1].duration, 2);

const turn = await conversation(
  await deepgram.listen.v2.connect({ ...line, model: 'flux-general-en' }),
  (connection) => utterance.forEach((audio) => connection.sendMedia(audio)),
  (message) => message.event === 'EndOfTurn',
);
const turnEvents = turn.map(({ type, event }) => event ?? type);
// Updates come in between, four in a second.
assert.ok(turnEvents.includes('Update'));
assert.deepEqual(
  turnEvents.filter((event) => event !== 'Update'),
  ['Connected', 'StartOfTurn', 'EagerEndOfTurn', 'EndOfTurn'],
);
assert.equal(turn.findLast(({ event }) => event === 'EndOfTurn').transcript, 'Good morning.');

const audio = [];
const spoken = await conversation(
  await deepgram.speak.v1.connect({ model: 'aura-2-thalia-en', encoding: 'linear16', sample_rate: 24_000, reconnectAttempts: 0 }),
  (connection) => {
    connection.sendText({ type: 'Speak', text: 'Good morning. ' });
    connection.sendFlush({ type: 'Flush' });
    connection.sendText({ type: 'Speak', text: 'Never heard.' });
    connection.sendClear({ type: 'Clear' });
  },
  (message) => message.type === 'Cleared',
);
for (const message of spoken) if (!message.type) audio.push(message);
assert.deepEqual(
  spoken.filter(({ type }) => type).map(({ type }) => type),
  ['Metadata', 'Flushed', 'Cleared'],
);
assert.ok(audio.length > 0, 'binary audio');

// These clients accept `wss:` alone; the fake has no certificate.
class Plain extends Agent {
  createConnection(options) {
    return connect({ host: options.host, port: options.port });
  }
}
const options = { agent: new Plain() };

const cartesia = new TTSWS(new Cartesia({ apiKey, baseURL: base }), options);
await cartesia.connect();
const context = cartesia.context({
  model_id: 'sonic-3.5',
  voice: { id: 'voice-1' },
  output_format: { container: 'raw', encoding: 'pcm_s16le', sample_rate: 24_000 },
  add_timestamps: true,
});
await context.push({ transcript: 'Good morning, ' });
await context.push({ transcript: 'everybody.' });
await context.no_more_inputs();
const kinds = new Set();
const words = [];
let bytes = 0;
for await (const message of context.receive({ timeout: 10_000 })) {
  kinds.add(message.type);
  if (message.type === 'chunk') bytes += (message.audio ?? Buffer.from(message.data, 'base64')).length;
  if (message.type === 'timestamps') words.push(...message.word_timestamps.words);
}
assert.deepEqual([...kinds].sort(), ['chunk', 'done', 'timestamps']);
assert.deepEqual(words, ['Good', 'morning,', 'everybody.']);
assert.equal(bytes, 'Good morning,everybody.'.length * 60 * 24 * 2);
cartesia.close();

const session = new OpenAIRealtimeWS(
  { intent: 'transcription', options },
  new OpenAI({ apiKey, baseURL: `${base}/v1` }),
);
session.on('error', (error) => assert.fail(error));
const events = [];
const completed = new Promise((resolve) => {
  session.on('event', (event) => {
    events.push(event.type);
    if (event.type === 'conversation.item.input_audio_transcription.completed') resolve(event);
  });
});
await once(session.socket, 'open');
session.send({
  type: 'session.update',
  session: {
    type: 'transcription',
    audio: {
      input: {
        format: { type: 'audio/pcm', rate: 24_000 },
        transcription: { model: 'gpt-live-transcribe', prompt: 'greeting' },
        turn_detection: null,
      },
    },
  },
});
session.send({ type: 'input_audio_buffer.append', audio: pcm(2_400, 8_000).toString('base64') });
session.send({ type: 'input_audio_buffer.commit' });
assert.equal((await completed).transcript, 'Good morning.');
assert.deepEqual(events.slice(0, 4), [
  'session.created',
  'session.updated',
  'input_audio_buffer.committed',
  'conversation.item.added',
]);
session.close();

// A conversation with a model that hears and speaks.
const talk = new OpenAIRealtimeWS({ model: 'talks', options }, new OpenAI({ apiKey, baseURL: `${base}/v1` }));
const told = [];
const waiting = [];
talk.on('error', (error) => told.push({ type: 'refused', error: error.error }));
talk.on('event', (event) => {
  told.push(event);
  for (const waiter of waiting.splice(0)) waiter();
});
/// The next event of this type after those that were taken.
async function event(type) {
  for (;;) {
    const at = told.findIndex((one) => one.type === type);
    if (at >= 0) return told.splice(0, at + 1).at(-1);
    await new Promise((resolve, reject) => {
      waiting.push(resolve);
      setTimeout(() => reject(new Error(`no ${type}: ${JSON.stringify(told)}`)), 10_000).unref();
    });
  }
}
const format = { type: 'audio/pcm', rate: 24_000 };
await once(talk.socket, 'open');
talk.send({
  type: 'session.update',
  session: {
    type: 'realtime',
    output_modalities: ['audio'],
    instructions: 'Be kind.',
    max_output_tokens: 1_000,
    tools: [{ type: 'function', name: 'hours', parameters: { type: 'object', properties: {} } }],
    audio: {
      input: { format, transcription: { model: 'scribe', prompt: 'greeting' }, turn_detection: null },
      output: { format, voice: 'marin' },
    },
  },
});
await event('session.updated');
talk.send({ type: 'input_audio_buffer.append', audio: pcm(2_400, 8_000).toString('base64') });
talk.send({ type: 'input_audio_buffer.commit' });
const heard = await event('conversation.item.input_audio_transcription.completed');
assert.equal(heard.transcript, 'Good morning.');
talk.send({ type: 'response.create' });
const { item } = await event('response.output_item.added');
const { response: answered } = await event('response.done');
assert.deepEqual([answered.status, answered.output[0].content[0].transcript], ['completed', 'You said: Good morning.']);
assert.equal(answered.usage.output_token_details.audio_tokens, ('You said: Good morning.'.length * 60) / 50 | 0);
talk.send({ type: 'conversation.item.truncate', item_id: item.id, content_index: 0, audio_end_ms: 500 });
assert.equal((await event('conversation.item.truncated')).audio_end_ms, 500);
// What the API refuses.
talk.send({ type: 'conversation.item.truncate', item_id: item.id, content_index: 0, audio_end_ms: 60_000 });
talk.send({ type: 'response.cancel' });
await event('error').catch(() => event('refused'));
talk.send({
  type: 'conversation.item.create',
  previous_item_id: 'root',
  item: { id: 'item_own', type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Use hours {"day": 6}' }] },
});
assert.equal((await event('conversation.item.added')).item.id, 'item_own');
talk.send({ type: 'conversation.item.delete', item_id: item.id });
await event('conversation.item.deleted');
talk.send({ type: 'conversation.item.delete', item_id: heard.item_id });
await event('conversation.item.deleted');
talk.send({ type: 'response.create' });
const { response: called } = await event('response.done');
assert.deepEqual([called.output[0].type, called.output[0].name], ['function_call', 'hours']);
talk.send({
  type: 'conversation.item.create',
  item: { type: 'function_call_output', call_id: called.output[0].call_id, output: 'ten' },
});
talk.send({ type: 'response.create', response: { conversation: 'none', input: [], instructions: 'Say it.\n\nHello.' } });
const { response: read } = await event('response.done');
assert.equal(read.output[0].content[0].transcript, 'Hello.');
talk.close();

fake.stdin.end();
await once(fake, 'exit');
console.log('the fake of speech providers: ok');
process.exit(0);
