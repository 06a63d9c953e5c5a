// A Chromium whose microphone plays a sound, and what a call's recording has of a voice.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { withChromium } from './chromium.mjs';
import { pageTools } from './page-tools.mjs';
import { speechLike, stereoWav } from './speech-server.mjs';

export const MICROPHONE_HZ = 48_000;
const { text, press } = pageTools();

/** Runs a check with a microphone that says these parts: milliseconds of silence, or sounds. */
export async function withMicrophone(parts, use) {
  const folder = await mkdtemp(join(tmpdir(), 'microphone-'));
  try {
    const file = join(folder, 'microphone.wav');
    await writeFile(file, stereoWav(MICROPHONE_HZ, parts));
    await withChromium(async (browser) => {
      await use(browser);
      assert.deepEqual(browser.errors, [], 'no script of a page failed');
    }, [`--use-file-for-fake-audio-capture=${file}%noloop`, '--autoplay-policy=user-gesture-required']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Presses Talk, and waits for the conversation. */
export async function talking(page) {
  await press(page, 'talk');
  await page.until(`${text('state')} === 'Connected'`);
  return await page.run(text('call'));
}

/** 8,000 samples a second are enough to find a sound, and quick. */
const FIND_HZ = 8_000;

/** Means of as many samples as fit. */
function thin(samples, hz) {
  const many = hz / FIND_HZ;
  return Float64Array.from({ length: Math.floor(samples.length / many) }, (_, at) => {
    let sum = 0;
    for (let nth = 0; nth < many; nth += 1) sum += samples[at * many + nth];
    return sum / many;
  });
}

/** The two channels of a recording, caller and assistant. */
export function channels(file) {
  const hz = file.readUInt32LE(24);
  assert.deepEqual([file.readUInt16LE(22), file.readUInt16LE(34), file.subarray(36, 40).toString()], [2, 16, 'data']);
  const samples = new Int16Array(file.buffer.slice(file.byteOffset + 44));
  const channel = (nth) => samples.filter((_, at) => at % 2 === nth);
  return { hz, caller: channel(0), assistant: channel(1) };
}

/**
 * Where the beginning of a voice's line is in a channel, in ms, and how alike they are, up to 1: the best of the places around
 * `aboutMs`. The voice is the stand-in's of tests/src/fakes/speech.rs.
 */
export function findVoice({ hz, assistant }, aboutMs, lengthMs = 500, aroundMs = 600) {
  const sound = thin(speechLike(lengthMs, 24_000, 200), 24_000);
  const channel = thin(assistant, hz);
  const power = (samples) => samples.reduce((sum, sample) => sum + sample * sample, 0);
  const own = power(sound);
  let best = { ms: 0, alike: -1 };
  const per = FIND_HZ / 1_000;
  for (let at = Math.max(0, (aboutMs - aroundMs) * per); at < (aboutMs + aroundMs) * per; at += 2) {
    const part = channel.subarray(at, at + sound.length);
    if (part.length < sound.length) break;
    let both = 0;
    for (let nth = 0; nth < sound.length; nth += 1) both += part[nth] * sound[nth];
    const alike = both / Math.max(1, Math.sqrt(power(part) * own));
    if (alike > best.alike) best = { ms: at / per, alike };
  }
  return best;
}

/**
 * Whether a line of the voice begins in the recording where its row says, to 50 ms. On a busy machine the voice's audio may come
 * late after its first frames: then the rest is that much later.
 */
export function assertBegins(sound, row) {
  const { hz, assistant } = sound;
  const { ms, alike } = findVoice(sound, row.start_ms);
  const at = (time) => Math.max(0, Math.round((time * hz) / 1_000));
  const from = at(row.start_ms - 300);
  const onset = from + assistant.subarray(from).findIndex((sample) => sample !== 0);
  const onsetMs = (onset * 1_000) / hz;
  const gapMs = (assistant.subarray(onset, at(ms + 500)).filter((sample) => sample === 0).length * 1_000) / hz;
  const told = `heard at ${onsetMs}, with a gap of ${gapMs}, and at ${ms} ms (${alike.toFixed(2)}): ${JSON.stringify(row)}`;
  assert.ok(alike > 0.7 && Math.abs(onsetMs - row.start_ms) <= 50 && Math.abs(ms - gapMs - onsetMs) <= 50, told);
}

/** Whether nothing is heard of the assistant between these times. */
export function isSilent({ hz, assistant }, fromMs, untilMs) {
  const at = (ms) => Math.round((ms * hz) / 1_000);
  return assistant.subarray(at(fromMs), at(untilMs)).every((sample) => sample === 0);
}
