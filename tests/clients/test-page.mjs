// The page of a test token in a real Chromium. The Web Speech API is replaced at its border: the test hears what the page
// speaks, and speaks what the page hears. Everything behind it is real, down to the transcript over REST.
// With SHOTS set to a folder, it also takes screenshots.
import assert from 'node:assert/strict';

import { withChromium } from './chromium.mjs';
import { pageTools } from './page-tools.mjs';

const { api, link, text, press, shot, ended } = pageTools();

const SPEECH = `
  window.uttered = [];
  let speaking = null, listening = null;
  class Recognition {
    start() { listening = this; }
    abort() { if (listening === this) listening = null; }
  }
  window.SpeechRecognition = window.webkitSpeechRecognition = Recognition;
  window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
  Object.defineProperty(window, 'speechSynthesis', { value: {
    speak(utterance) { uttered.push(utterance.text); window.utteredIn = utterance.lang; speaking = utterance; setTimeout(() => utterance.onstart()); },
    cancel() { const cut = speaking; speaking = null; if (cut) setTimeout(() => cut.onerror({ error: 'canceled' })); },
  } });
  window.word = (at) => speaking.onboundary({ name: 'word', charIndex: at });
  window.spoken = () => { const done = speaking; speaking = null; done.onend(); };
  window.isSpeaking = () => speaking !== null;
  window.deaf = (error) => listening.onerror({ error });
  window.mute = () => speaking.onerror({ error: 'synthesis-failed' });
  window.heardIn = () => listening?.lang;
  window.hear = (transcript, isFinal) => listening.onresult({ resultIndex: 0, results: [Object.assign([{ transcript }], { isFinal })] });
`;
const SILENT = 'window.SpeechRecognition = window.webkitSpeechRecognition = undefined;';
const GREETING = 'Good morning, Harbour Dental. How can I help you today?';

const knowledge = await api('POST', '/knowledge', {
  name: `Hours ${Date.now()}`, content: 'On Saturday we open at ten and close at two in the afternoon.',
});
const assistant = await api('POST', '/assistants', {
  name: 'Harbour Dental', instructions: 'You answer the telephone of a dental practice.',
  first_message: GREETING, voice: 'builtin/browser', language: 'en-GB',
});
await api('PUT', `/assistants/${assistant.id}/knowledge`, { knowledge_ids: [knowledge.id] });

/** Presses Talk and waits for the greeting. */
async function talking(page) {
  await press(page, 'talk');
  await page.until(`${text('state')} === 'Connected' && isSpeaking()`);
  return await page.run(text('call'));
}

const checks = {
  async 'a spoken turn gets a spoken answer'(browser) {
    const page = await browser.open(await link(assistant.id), { first: SPEECH });
    assert.match(await page.run('document.body.innerText'), /may send audio to its vendor/);
    await shot(page, 'idle');
    const id = await talking(page);
    assert.match(await page.run(text('notice')), /^Uses your browser's speech recognition/);
    assert.deepEqual(await page.run('[utteredIn, heardIn()]'), ['en-GB', 'en-GB']);
    assert.match(await page.run(text('left')), /^\d+:\d\d left$/);
    // Its own voice, recognised by the microphone, is not an interruption.
    await page.run(`hear('good morning harbour dental', true)`);
    assert.equal(await page.run('isSpeaking()'), true);
    await page.run('spoken()');
    await page.until('isSpeaking()');
    await page.run('spoken()');
    assert.equal(await page.run(`uttered.join('')`), GREETING);
    await page.run(`hear('When do you open', false)`);
    assert.match(await page.run(text('interim')), /When do you open/);
    await shot(page, 'listening');
    await page.run(`hear('When do you open on Saturday?', true)`);
    await page.until(`uttered.length === 3 && isSpeaking()`);
    assert.match(await page.run('uttered[2]'), /open at ten/);
    await page.until(`/answered after \\d+\\.\\d s/.test(${text('lines')})`);
    await page.run('spoken()');
    await press(page, 'end');
    await page.until(`${text('state')} === 'Ended'`);
    const call = await ended(id);
    assert.equal(call.voice, 'builtin/browser');
    assert.deepEqual(call.transcript.map((row) => [row.role, row.interrupted]), [['assistant', false], ['user', false], ['assistant', false]]);
  },

  async 'speaking over a line cuts it'(browser) {
    const page = await browser.open(await link(assistant.id), { first: SPEECH });
    const id = await talking(page);
    await page.run('spoken()');
    await page.until('isSpeaking()');
    await page.run(`word('How can '.length)`);
    await page.run(`hear('Sorry, when do you', false)`);
    assert.equal(await page.run('isSpeaking()'), false);
    assert.equal(await page.run(`document.querySelector('li del').textContent`), 'I help you today?');
    await page.run(`hear('Sorry, when do you open on Saturday?', true)`);
    await page.until('isSpeaking()');
    await page.run(`word(uttered.at(-1).indexOf('open'))`);
    await shot(page, 'interrupted');
    // The person leaves in the middle of the answer.
    await page.leave();
    const call = await ended(id);
    const [greeting, , answer] = call.transcript;
    assert.deepEqual([greeting.interrupted, greeting.text, greeting.intended_text], [true, 'Good morning, Harbour Dental. How can', GREETING]);
    assert.deepEqual([answer.interrupted, answer.text], [true, 'On Saturday we'], JSON.stringify(answer));
    assert.equal(call.ended_reason, 'user_hung_up');
  },

  async 'a link that was used says so before anything is pressed'(browser) {
    const address = await link(assistant.id);
    const page = await browser.open(address, { first: SPEECH });
    await talking(page);
    await press(page, 'end');
    await page.until(`${text('state')} === 'Ended'`);
    assert.match(await page.run(text('status')), /^You hung up\. It took \d+:\d\d\.$/);
    const again = await browser.open(address, { first: SPEECH });
    await again.until(`${text('state')} === 'Refused'`);
    assert.match(await again.run(text('status')), /^This link was used/);
    assert.equal(await again.run(`document.getElementById('talk').hidden`), true);
    await shot(again, 'used');
  },

  async 'a denied microphone is explained, and typing works'(browser) {
    const page = await browser.open(await link(assistant.id), { first: SPEECH, microphone: 'denied' });
    await press(page, 'talk');
    await page.until(`${text('problem')}.includes('The microphone is blocked')`);
    await shot(page, 'denied');
    await typed(page);
  },

  async 'why nothing is spoken does not hide why nobody is heard'(browser) {
    const page = await browser.open(await link(assistant.id), { first: SPEECH });
    await talking(page);
    await page.run(`deaf('audio-capture')`);
    await page.until(`${text('problem')}.includes('gets no sound from it, so you are not heard')`);
    await page.run('mute()');
    await page.until(`${text('problem')}.includes('voice does not speak')`);
    const told = await page.run(text('problem'));
    assert.match(told, /you are not heard/);
    assert.ok(!told.includes('No microphone was found'), 'there is one');
    await shot(page, 'unheard');
  },

  async 'without the Web Speech API, the page says so, and typing works'(browser) {
    const page = await browser.open(await link(assistant.id), { first: SILENT });
    // Only the conversation says whether the assistant has a voice of its own.
    await press(page, 'talk');
    await page.until(`${text('problem')}.includes('no speech recognition')`);
    assert.equal(await page.run(`document.getElementById('talk').hidden`), true);
    await shot(page, 'no-speech');
    await asked(page);
  },

  async 'a link that may start again does, and tells where it ended below its last line'(browser) {
    const page = await browser.open(await link(assistant.id, { restartable: true }), { first: SILENT });
    // Before anything is pressed, it says who answers.
    await page.until(`${text('title')} === 'Talk to Harbour Dental'`);
    await page.size(360, 640);
    await press(page, 'type');
    await page.until(`${text('state')} === 'Connected'`);
    for (let turn = 1; turn <= 6; turn += 1) {
      await page.run(`document.getElementById('text').value = 'When do you open on Saturday, and until when are you there?'`);
      await page.run(`document.querySelector('#say button').focus(); document.querySelector('#say button').click()`);
      await page.until(`document.querySelectorAll('li.user').length === ${turn} && document.querySelectorAll('li.assistant').length === ${turn + 1}`);
      assert.equal(await page.run('document.activeElement.id'), 'text', 'whoever pressed Send goes on typing');
      assert.equal(await page.run(inView('say')), true, `the input is in view after ${turn} turns`);
    }
    assert.equal(await page.run(`document.getElementById('thinking').hidden`), true);
    await press(page, 'end');
    await page.until(`${text('state')} === 'Ended'`);
    assert.match(await page.run(text('status')), /^You hung up\./);
    assert.equal(await page.run(`${inView('status')} && ${inView('again')}`), true);
    assert.equal(await page.run('document.activeElement.id'), 'again');
    await shot(page, 'again');
    const [first, before] = [await page.run(text('call')), await page.run('location.search')];
    await press(page, 'again');
    await page.until(`location.search !== ${JSON.stringify(before)} && document.getElementById('state')?.innerText === 'Ready'`);
    await typed(page);
    assert.notEqual(await page.run(text('call')), first);
  },

  async 'while the assistant thinks, the page shows it; a lost connection is told in words'(browser) {
    // The socket is the page's only border: this one answers nothing, and breaks.
    const slow = `window.WebSocket = class extends EventTarget {
      static OPEN = 1; readyState = 1; bufferedAmount = 0; sent = [];
      constructor() { super(); window.line = this; }
      send(text) { this.sent.push(text); }
      close() {}
      tell(message) { this.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(message) })); }
    };`;
    const page = await browser.open(await link(assistant.id), { first: SILENT + slow });
    await press(page, 'type');
    await page.run(`line.dispatchEvent(new Event('open')); line.tell({ type: 'call_started', assistant_name: 'Harbour Dental', max_duration_seconds: 600, language: 'en-GB', call: { id: 'call_1', voice: 'builtin/browser' } })`);
    await page.run(`document.getElementById('text').value = 'Do you open on Saturday?'; document.getElementById('say').requestSubmit()`);
    await page.until(`/Harbour Dental is thinking/.test(${text('thinking')})`);
    assert.equal(await page.run(inView('thinking')), true);
    await shot(page, 'thinking');
    await page.run(`line.tell({ type: 'assistant_text', index: 1, text: 'At ten.' })`);
    assert.equal(await page.run(`document.getElementById('thinking').hidden`), true);
    await page.run(`line.dispatchEvent(new CloseEvent('close', { code: 1006 }))`);
    assert.match(await page.run(text('status')), /^The connection was lost\. Check your network\./);
    assert.equal(await page.run(`document.getElementById('again').hidden`), true);
  },
};

/** Whether an element is in view as a whole, as an expression in the page. */
function inView(id) {
  return `(({ top, bottom, height }) => height > 0 && top >= 0 && bottom <= innerHeight + 1)(document.getElementById(${JSON.stringify(id)}).getBoundingClientRect())`;
}

async function typed(page) {
  await press(page, 'type');
  await page.until(`${text('state')} === 'Connected'`);
  await asked(page);
}

async function asked(page) {
  await page.run(`document.getElementById('text').value = 'When do you open on Saturday?'; document.getElementById('say').requestSubmit()`);
  await page.until(`/open at ten/.test(${text('lines')})`);
}

await withChromium(async (browser) => {
  for (const [name, check] of Object.entries(checks)) {
    await check(browser);
    console.log(`ok ${name}`);
  }
  assert.deepEqual(browser.errors, [], 'no script of a page failed');
});
