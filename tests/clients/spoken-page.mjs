// The page of a test token with the assistant's own voice, in a real Chromium whose microphone plays a file of 48 kHz stereo,
// against the binary (SIDETONE_HOST=worker: the Worker in workerd) and a stand-in for the speech providers. Nothing in the page is replaced: its audio worklets, the
// socket, the transcript over REST. It starts a server of its own, which knows the stand-in.
// With SHOTS set to a folder, it also takes screenshots.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { MICROPHONE_HZ as HZ, talking, withMicrophone } from './microphone.mjs';
import { pageTools } from './page-tools.mjs';
import { CHAR_MS, speechLike, speechServer } from './speech-server.mjs';

const GREETING = 'Good morning, Harbour Dental.';
const LONG = 'Good morning, this is Harbour Dental in the Old Town, where you can book, move and cancel appointments at any time of the day. How can I help you today?';
const QUESTION = 'When do you open on Saturday?';

if (!process.argv.includes('--inside')) {
  const speech = await speechServer();
  const settings = {
    SIDETONE_PROVIDERS: JSON.stringify({ near: { base_url: speech.url, api_key: 'key' } }),
    SIDETONE_ALLOW_PRIVATE_TARGETS: '1',
    TOOL_URL: speech.toolUrl,
  };
  const here = fileURLToPath(import.meta.url);
  // The stand-in stays in this process; the checks say over IPC what it will hear, and ask what it heard.
  const host = process.env.SIDETONE_HOST === 'worker' ? '../worker/with-worker.sh' : './with-server.sh';
  const child = spawn(host, [process.execPath, here, '--inside'], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'], env: { ...process.env, ...settings },
  });
  child.on('message', ({ say }) => {
    if (say) speech.said.push(say);
    else child.send({ heardMs: speech.heard.map((file) => ((file.length - 44) / 2 / file.readUInt32LE(24)) * 1_000) });
  });
  const [status] = await once(child, 'exit');
  speech.close();
  process.exit(status ?? 1);
}

const { api, link, text, press, shot, ended } = pageTools();
const will = (say) => process.send({ say });
const heardMs = async () => {
  process.send({});
  const [{ heardMs }] = await once(process, 'message', { signal: AbortSignal.timeout(15_000) });
  return heardMs;
};

const tool = await api('POST', '/tools', {
  name: 'book_appointment', description: 'Books an appointment at the practice', url: process.env.TOOL_URL, parameters: { type: 'object' },
});
let assistants = 0;
const assistant = async (first_message) => {
  assistants += 1;
  const hours = await api('POST', '/knowledge', { name: `Hours ${assistants}`, content: 'On Saturday we open at ten and close at two in the afternoon.' });
  const { id } = await api('POST', '/assistants', {
    name: 'Harbour Dental', instructions: 'You answer the telephone of a dental practice.', first_message,
    voice: 'near/alto', transcriber: 'near/scribe', language: 'en-GB',
  });
  await api('PUT', `/assistants/${id}/knowledge`, { knowledge_ids: [hours.id] });
  await api('PUT', `/assistants/${id}/tools`, { tool_ids: [tool.id] });
  return id;
};

/** Notes what the page asks of the browser's microphone, and what it gets; nothing is changed. */
const NOTES_THE_MICROPHONE = `
  const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await ask(wanted);
    window.microphone = { wanted: wanted.audio, got: stream.getAudioTracks()[0].getSettings() };
    return stream;
  };
`;

/** How high the newest bars of one side stand in the line of time, in pixels: the caller's above its middle, the assistant's below. */
const level = (side) => `(() => {
  const canvas = document.getElementById('trace');
  const half = canvas.height / 2, width = Math.min(40, canvas.width), from = ${side === 'caller'} ? 0 : half + 3;
  const { data } = canvas.getContext('2d').getImageData(canvas.width - width, from, width, half - 3);
  const rows = new Set();
  for (let at = 3; at < data.length; at += 4) if (data[at] > 0) rows.add(Math.floor(at / 4 / width));
  return rows.size;
})()`;

const checks = {
  async 'a question into the microphone gets an answer from the loudspeaker'() {
    will(QUESTION);
    await withMicrophone([6_000, speechLike(1_500, HZ), 60_000], async (browser) => {
      const page = await browser.open(await link(await assistant(GREETING)), { first: NOTES_THE_MICROPHONE });
      assert.deepEqual([await page.run(level('caller')), await page.run(level('assistant'))], [0, 0], 'both levels are at rest');
      const id = await talking(page);
      const { wanted, got } = await page.run('microphone');
      assert.deepEqual([wanted.echoCancellation, got.echoCancellation], [true, true], 'headphones are not needed');
      assert.match(await page.run(text('notice')), /its own voice/);
      await page.until(`${text('speaking')} === 'speaking'`);
      await page.until(`${level('assistant')} > 4`);
      assert.equal(await page.run(level('caller')), 0, 'the caller is quiet');
      await page.until(`${text('speaking')} === 'listening'`);
      await page.until(`${level('assistant')} === 0`);
      await page.until(`${level('caller')} > 4`);
      assert.equal(await page.run(level('assistant')), 0, 'the assistant is quiet');
      await page.until(`document.querySelector('li.user')?.innerText.includes('Saturday')`);
      await page.until(`${text('speaking')} === 'speaking'`);
      await page.until(`/answered after \\d+\\.\\d s/.test(${text('lines')})`);
      await sleep(600);
      await shot(page, 'own-voice');
      await page.until(`${text('speaking')} === 'listening'`);
      await press(page, 'end');
      await page.until(`${text('state')} === 'Ended'`);
      const call = await ended(id);
      assert.deepEqual(call.transcript.map((row) => [row.role, row.interrupted]), [['assistant', false], ['user', false], ['assistant', false]], JSON.stringify(call.transcript));
      assert.equal(call.transcript[1].text, QUESTION);
      const [greeting, , answer] = call.transcript;
      for (const { text: line, start_ms, end_ms } of [greeting, answer]) {
        const late = end_ms - start_ms - line.length * CHAR_MS;
        assert.ok(late > -300 && late < 1_500, `"${line}" lasted ${end_ms - start_ms} ms`);
      }
      // What the transcriber got is as long as what was said, with some silence around it.
      const [ms] = (await heardMs()).slice(-1);
      assert.ok(ms > 1_300 && ms < 3_500, `${ms} ms were transcribed`);
    });
  },

  async 'speaking over a line stops the loudspeaker, and the record ends where it did'() {
    will(QUESTION);
    await withMicrophone([5_000, speechLike(1_500, HZ), 60_000], async (browser) => {
      const page = await browser.open(await link(await assistant(LONG)));
      const id = await talking(page);
      await page.until(`document.querySelector('li del') !== null`);
      const struck = await page.run(`document.querySelector('li del').textContent`);
      await page.until(`/answered after/.test(${text('lines')})`);
      await shot(page, 'own-voice-interrupted');
      // The person leaves in the middle of the answer.
      await page.leave();
      const call = await ended(id);
      const [greeting, question, answer] = call.transcript;
      assert.deepEqual([greeting.interrupted, question.text, answer.interrupted], [true, QUESTION, true], JSON.stringify(call.transcript));
      assert.equal(greeting.text + struck, LONG);
      assert.ok(greeting.text.length > 5 && greeting.text.length < LONG.length - 20, greeting.text);
      assert.ok(answer.text.length < answer.intended_text.length, JSON.stringify(answer));
    });
  },

  async 'one types beside the audio; a denied microphone uses up no link'() {
    await withMicrophone([60_000], async (browser) => {
      const own = await assistant(LONG);
      const denied = await browser.open(await link(own), { microphone: 'denied' });
      await press(denied, 'talk');
      await denied.until(`${text('problem')}.includes('The microphone is blocked')`);
      assert.equal(await denied.run(text('state')), 'Ready');
      await press(denied, 'type');
      await denied.until(`${text('lines')}.includes('Harbour Dental')`);

      const page = await browser.open(await link(own));
      const id = await talking(page);
      await page.until(`${text('speaking')} === 'speaking'`);
      await page.run(`document.getElementById('text').value = '${QUESTION}'; document.getElementById('say').requestSubmit()`);
      await page.until(`/open at ten/.test(${text('lines')}) && document.querySelector('li del') !== null`);
      await page.until(`/answered after \\d+\\.\\d s/.test(${text('lines')})`);
      await page.until(`${text('speaking')} === 'speaking'`);
      await page.until(`${text('speaking')} === 'listening'`);
      await page.run(`document.getElementById('text').value = 'Please book an appointment at the practice'; document.getElementById('say').requestSubmit()`);
      await page.until(`/Tool call/.test(${text('lines')}) && /Saturday, 11:00, Dr Okafor/.test(${text('lines')})`);
      await page.until(`${text('speaking')} === 'speaking'`);
      await shot(page, 'own-voice-tools');
      await press(page, 'end');
      const call = await ended(id);
      const [greeting, , answer, , tool] = call.transcript;
      assert.deepEqual([greeting.interrupted, answer.interrupted, tool.role], [true, false, 'tool_call'], JSON.stringify(call.transcript));
    });
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(`ok ${name}`);
}
process.disconnect();
