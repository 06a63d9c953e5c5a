// The page of a test token with the voice of ElevenLabs and the transcribers of Deepgram, in a real Chromium whose microphone
// plays a file, against the binary (SIDETONE_HOST=worker: the Worker in workerd) and the stand-in of both providers
// (tests/src/fakes/speech.rs). The recording has what the page played: the answer, an interruption, and a line that a cough
// does not end. `cargo build --package sidetone-tests --bin fake-speech` builds the stand-in.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { MICROPHONE_HZ as HZ, assertBegins, channels, isSilent, talking, withMicrophone } from './microphone.mjs';
import { pageTools } from './page-tools.mjs';
import { CHAR_MS, speechLike } from './speech-server.mjs';

const LINE = 'Good morning, this is Harbour Dental in the Old Town, where you can book or cancel an appointment at any time.';
const SATURDAY = ['When do you open on Saturday?', 'On Saturday we open at ten, and the last patient is seen at two in the afternoon of that day.'];
const SUNDAY = ['When do you open on Sunday?', 'On Sunday we are closed.'];
const COUGH_MS = 450;

if (!process.argv.includes('--inside')) {
  const here = fileURLToPath(import.meta.url);
  const target = process.env.CARGO_TARGET_DIR ?? fileURLToPath(new URL('../../target', import.meta.url));
  const fake = spawn(`${target}/debug/fake-speech`, { stdio: ['pipe', 'pipe', 'inherit'] });
  const [url] = await once(createInterface(fake.stdout), 'line');
  const settings = { SIDETONE_ALLOW_PRIVATE_TARGETS: '1' };
  for (const provider of ['DEEPGRAM', 'ELEVENLABS']) {
    settings[`SIDETONE_${provider}_API_KEY`] = 'key-of-the-fake';
    settings[`SIDETONE_${provider}_BASE_URL`] = url;
  }
  const host = process.env.SIDETONE_HOST === 'worker' ? '../worker/with-worker.sh' : './with-server.sh';
  // The checks say over IPC what the stand-in will understand.
  const child = spawn(host, [process.execPath, here, '--inside'], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: { ...process.env, ...settings },
  });
  child.on('message', ({ term, said }) => { for (const words of said) fake.stdin.write(`${term}\t${words}\n`); });
  const [status] = await once(child, 'exit');
  fake.stdin.end();
  process.exit(status ?? 1);
}

const { api, link, text, press, ended } = pageTools();

async function assistant(transcriber, term, voice = 'voice-1') {
  const documents = [];
  for (const [, content] of [SATURDAY, SUNDAY]) {
    documents.push((await api('POST', '/knowledge', { name: `${term}, ${documents.length}`, content })).id);
  }
  const { id } = await api('POST', '/assistants', {
    name: 'Harbour Dental', instructions: 'You answer the telephone of a dental practice.', first_message: LINE,
    voice: `elevenlabs/${voice}`, transcriber, keyterms: [term], language: 'en-GB',
  });
  await api('PUT', `/assistants/${id}/knowledge`, { knowledge_ids: documents });
  return id;
}

async function recording(id) {
  const { SIDETONE_URL, SIDETONE_KEY } = process.env;
  const file = await fetch(`${SIDETONE_URL}/calls/${id}/recording`, { headers: { Authorization: `Bearer ${SIDETONE_KEY}` } });
  assert.equal(file.status, 200);
  return channels(Buffer.from(await file.arrayBuffer()));
}

for (const transcriber of ['deepgram/nova-3', 'deepgram/flux-general-en']) {
  const term = `page with ${transcriber}`;
  process.send({ term, said: ['', SATURDAY[0], SUNDAY[0]] });
  const lineMs = LINE.length * CHAR_MS;
  // A cough over the first line, a question after it, and another over the answer.
  const parts = [3_000, speechLike(COUGH_MS, HZ), lineMs + 2_500, speechLike(1_500, HZ), 3_500, speechLike(1_500, HZ), 60_000];
  await withMicrophone(parts, async (browser) => {
    const page = await browser.open(await link(await assistant(transcriber, term)));
    const id = await talking(page);
    await sleep(lineMs);
    await page.until(`document.querySelector('li.user')?.innerText.includes('Saturday')`);
    await page.until(`document.querySelector('li del') !== null`);
    const struck = await page.run(`document.querySelector('li del').textContent`);
    await page.until(`/we are closed/.test(${text('lines')})`);
    await page.until(`${text('speaking')} === 'speaking'`);
    await page.until(`${text('speaking')} === 'listening'`);
    await sleep(300);
    await press(page, 'end');
    const call = await ended(id);
    const told = JSON.stringify(call.transcript);
    assert.deepEqual(call.transcript.map((row) => [row.role, row.interrupted]), [
      ['assistant', false], ['user', false], ['assistant', true], ['user', false], ['assistant', false],
    ], told);
    const [line, saturday, cut, sunday, closed] = call.transcript;
    assert.deepEqual([line.text, saturday.text, sunday.text, closed.text], [LINE, SATURDAY[0], SUNDAY[0], SUNDAY[1]], told);
    assert.equal(cut.text + struck, SATURDAY[1]);
    assert.equal(cut.intended_text, SATURDAY[1]);
    const sound = await recording(id);
    for (const row of [line, cut, closed]) assertBegins(sound, row);
    const paused = line.end_ms - line.start_ms - lineMs;
    assert.ok(paused > 200, `the cough only paused the line, for ${paused} ms`);
    assert.ok(isSilent(sound, cut.end_ms, closed.start_ms - 50), 'nothing of a line after its interruption');
    const lasted = cut.end_ms - cut.start_ms;
    assert.ok(Math.abs(lasted - cut.text.length * CHAR_MS) <= 900, `"${cut.text}" lasted ${lasted} ms`);
  });
  console.log(`ok elevenlabs speaks and ${transcriber} hears, on the page`);
}

// A voice that makes its audio more slowly than it plays leaves pauses, which the page tells.
await withMicrophone([60_000], async (browser) => {
  const page = await browser.open(await link(await assistant('deepgram/nova-3', 'slow', 'slow')));
  await talking(page);
  await page.until(`/Pauses because its audio came late: \\d+\\./.test(${text('notice')})`);
});
console.log('ok audio that comes late is counted on the page');
process.disconnect();
