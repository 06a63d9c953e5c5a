// A stand-in for a server with OpenAI's speech API: a voice that hums as long as its text would last, and a transcriber that
// understands what the test has announced. It also has the calendar of a dental practice, a tool.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';

/** How long the voice takes for a character. */
export const CHAR_MS = 60;
const HZ = 24_000;

/** Starts it. `said` has the texts of the next utterances; `heard` gets the WAV files. */
export async function speechServer() {
  const said = [];
  const heard = [];
  const server = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    if (request.url.endsWith('/audio/speech')) {
      const { input, response_format } = JSON.parse(body);
      assert.equal(response_format, 'pcm');
      const samples = Int16Array.from({ length: (input.length * CHAR_MS * HZ) / 1_000 }, (_, at) =>
        8_000 * Math.sin((2 * Math.PI * 220 * at) / HZ) * (0.6 + 0.4 * Math.sin((2 * Math.PI * 4 * at) / HZ)));
      response.writeHead(200, { 'Content-Type': 'audio/pcm' }).end(Buffer.from(samples.buffer));
      return;
    }
    if (request.url.endsWith('/audio/transcriptions')) {
      const at = body.indexOf('RIFF');
      assert.ok(at > 0, 'a WAV file');
      heard.push(body.subarray(at, at + 8 + body.readUInt32LE(at + 4)));
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ text: said.shift() ?? '' }));
      return;
    }
    if (request.url === '/appointments') {
      response.writeHead(200, { 'Content-Type': 'text/plain' }).end('Booked: Saturday, 11:00, Dr Okafor.');
      return;
    }
    response.writeHead(404).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const origin = `http://127.0.0.1:${server.address().port}`;
  return { said, heard, url: `${origin}/v1`, toolUrl: `${origin}/appointments`, close: () => server.close() };
}

/** A sound like a person's speech: pulses of a voice through the resonances of vowels, in syllables. */
export function speechLike(ms, hz, pitch = 120) {
  const vowels = [[730, 1_090, 2_440], [270, 2_290, 3_010], [300, 870, 2_240], [530, 1_840, 2_480], [450, 800, 2_830]];
  const states = [[0, 0], [0, 0], [0, 0]];
  let phase = 0;
  const sound = Float64Array.from({ length: (ms * hz) / 1_000 }, (_, place) => {
    const time = place / hz;
    const syllable = time / 0.18;
    const within = syllable % 1;
    phase += (pitch + 25 * Math.sin(2 * Math.PI * 0.7 * time) + 6 * Math.sin(2 * Math.PI * 5 * time)) / hz;
    const pulse = phase >= 1 ? 1 : 0;
    phase -= pulse;
    const [from, to] = [0, 1].map((next) => vowels[(Math.floor(syllable) + next) % vowels.length]);
    const glide = Math.max(0, (within - 0.6) / 0.4);
    return states.reduce((sum, state, which) => {
      const frequency = from[which] + (to[which] - from[which]) * glide;
      const radius = Math.exp((-Math.PI * (60 + 40 * which)) / hz);
      const next = pulse * (0.3 + 0.7 * Math.sin(Math.PI * within))
        + 2 * radius * Math.cos((2 * Math.PI * frequency) / hz) * state[0] - radius * radius * state[1];
      states[which] = [next, state[0]];
      return sum + next / (1 + which);
    }, 0);
  });
  const most = sound.reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 1e-9);
  return sound.map((sample) => sample / most);
}

/** A WAV file, 16 bits, two equal channels. `parts` are milliseconds of silence, or sounds. */
export function stereoWav(hz, parts) {
  const sound = parts.flatMap((part) => (typeof part === 'number' ? Array((part * hz) / 1_000).fill(0) : [...part]));
  const file = Buffer.alloc(44 + 4 * sound.length);
  file.write('RIFF', 0);
  file.writeUInt32LE(36 + 4 * sound.length, 4);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(2, 22);
  file.writeUInt32LE(hz, 24);
  file.writeUInt32LE(4 * hz, 28);
  file.writeUInt16LE(4, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36);
  file.writeUInt32LE(4 * sound.length, 40);
  sound.forEach((sample, at) => {
    file.writeInt16LE(Math.round(sample * 16_000), 44 + 4 * at);
    file.writeInt16LE(Math.round(sample * 16_000), 46 + 4 * at);
  });
  return file;
}
