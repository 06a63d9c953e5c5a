// The audio thread of the test page (worklets.js), run here block by block as a browser runs it: the microphone at the
// service's rate, without drift, and the loudspeaker with its marks.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { runInNewContext } from 'node:vm';

const SOURCE = await readFile(new URL('../../engine/src/live/page/worklets.js', import.meta.url), 'utf8');
const BLOCK = 128;
const RATE = 16_000;

/** A processor of the page on a device of this rate, and what it posts. */
function processor(name, sampleRate) {
  const posted = [];
  const scope = {
    sampleRate,
    currentTime: 0,
    registerProcessor: (one, kind) => { if (one === name) scope.Kind = kind; },
    AudioWorkletProcessor: class { port = { postMessage: (message) => posted.push(message) }; },
  };
  runInNewContext(SOURCE, scope);
  const one = new scope.Kind({ processorOptions: { rate: RATE } });
  const pass = (...channels) => {
    const output = new Float32Array(BLOCK);
    one.process([channels], [[output]]);
    scope.currentTime += BLOCK / sampleRate;
    return output;
  };
  return { posted, pass, post: (data) => one.port.onmessage({ data }) };
}

const sine = (hz, rate, at) => Math.sin((2 * Math.PI * hz * at) / rate);

/** What the service gets of these seconds of a sine, as numbers from -1 to 1. */
function captured(rate, hz, seconds, channels = 1) {
  const { posted, pass } = processor('capture', rate);
  for (let block = 0; block * BLOCK < rate * seconds; block += 1) {
    const samples = Float32Array.from({ length: BLOCK }, (_, at) => 0.5 * sine(hz, rate, block * BLOCK + at));
    pass(...Array.from({ length: channels }, () => samples));
  }
  for (const piece of posted) assert.equal(piece.byteLength, 640, 'a piece of 20 ms');
  return posted.flatMap((piece) => [...new Int16Array(piece)].map((sample) => sample / 32_767));
}

const loudest = (samples) => samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);

const checks = {
  'the microphone does not drift, at any rate'() {
    for (const rate of [48_000, 44_100, 96_000, 16_000, 8_000]) {
      const samples = captured(rate, 1_000, 20);
      const missing = 20 * RATE - samples.length;
      assert.ok(missing >= 0 && missing < 640, `${rate} Hz: ${missing} samples are missing`);
      // The last second is where it belongs, to a hundredth of a period.
      for (let at = samples.length - RATE; at < samples.length; at += 1) {
        assert.ok(Math.abs(samples[at] - 0.5 * sine(1_000, RATE, at)) < 0.03, `${rate} Hz, sample ${at}: ${samples[at]}`);
      }
    }
  },

  'what 16 kHz cannot hold is removed, and two channels are one'() {
    assert.ok(loudest(captured(48_000, 11_000, 1).slice(1_000)) < 0.005);
    assert.ok(loudest(captured(48_000, 6_000, 1).slice(1_000)) > 0.45);
    const stereo = captured(48_000, 1_000, 1, 2);
    assert.ok(Math.abs(loudest(stereo.slice(1_000)) - 0.5) < 0.01);
  },

  'a microphone that delivers nothing is silent, not late'() {
    const { posted, pass } = processor('capture', 48_000);
    for (let block = 0; block < 375; block += 1) pass();
    assert.equal(posted.length, 49);
  },

  'the loudspeaker waits for its lead, plays everything, and returns marks when they were played'() {
    const { posted, pass, post } = processor('playback', 48_000);
    const frame = (nth) => Int16Array.from({ length: 320 }, (_, at) => 16_000 * sine(500, RATE, nth * 320 + at)).buffer;
    const played = () => posted.flatMap((message) => message.played ?? []);
    post(frame(0));
    assert.equal(loudest(pass()), 0, 'it waits');
    for (let nth = 1; nth < 10; nth += 1) post(frame(nth));
    post(7);
    post(frame(10));
    post(8);
    const heard = [];
    let reached = 0;
    for (let block = 0; block < 120; block += 1) {
      heard.push(...pass());
      if (played().includes(7)) reached = reached || heard.length;
    }
    assert.deepEqual(played(), [7, 8]);
    assert.ok(reached >= 0.2 * 48_000 - 640 && reached <= 0.2 * 48_000 + BLOCK, `mark 7 after ${reached} samples`);
    const sounding = heard.findLastIndex((sample) => sample !== 0) - heard.findIndex((sample) => sample !== 0);
    assert.ok(Math.abs(sounding - 0.22 * 48_000) < 100, `${sounding} samples`);
  },

  'what comes late leaves silence, is counted, and is played whole after it'() {
    const { posted, pass, post } = processor('playback', 48_000);
    const late = () => posted.flatMap((message) => message.late ?? []);
    const frames = (many) => { for (let nth = 0; nth < many; nth += 1) post(new Int16Array(320).fill(9_000).buffer); };
    const blocks = (many) => Array.from({ length: many }, () => pass()).flatMap((block) => [...block]);
    frames(6);
    // 120 ms are there, and 200 ms pass.
    const first = blocks(75);
    assert.equal(loudest(first.slice(-10 * BLOCK)), 0, 'silence, and nothing of before again');
    assert.deepEqual(late(), [], 'a line may end so');
    frames(6);
    const second = blocks(75);
    assert.deepEqual(late(), [1]);
    const sounding = [...first, ...second].filter((sample) => Math.abs(sample) > 0.1).length;
    assert.ok(Math.abs(sounding - 0.24 * 48_000) < 400, `${sounding} samples`);
    // The end of a line has a mark; what comes after it is in time.
    post(4);
    blocks(1);
    frames(6);
    blocks(75);
    post(5);
    blocks(1);
    frames(6);
    blocks(75);
    assert.deepEqual(late(), [1], 'lines that begin are not late');
    post('clear');
    frames(6);
    blocks(75);
    assert.deepEqual(late(), [1], 'nor is what follows an interruption');
  },

  'a short line plays although the lead is not reached, and a clear forgets audio and marks'() {
    const { posted, pass, post } = processor('playback', 48_000);
    post(new Int16Array(320).fill(9_000).buffer);
    post(1);
    for (let block = 0; block < 60; block += 1) pass();
    assert.deepEqual(posted.flatMap((message) => message.played ?? []), [1]);
    for (let nth = 0; nth < 20; nth += 1) post(new Int16Array(320).fill(9_000).buffer);
    post(2);
    assert.ok(loudest(pass()) > 0.2);
    post('clear');
    assert.equal(loudest(pass()), 0);
    for (let block = 0; block < 200; block += 1) pass();
    assert.deepEqual(posted.flatMap((message) => message.played ?? []), [1]);
    post(3);
    pass();
    assert.deepEqual(posted.flatMap((message) => message.played ?? []), [1, 3]);
  },
};

for (const [name, check] of Object.entries(checks)) {
  check();
  console.log(`ok ${name}`);
}
