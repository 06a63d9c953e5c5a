// The conversation beside the assistant's editor, aloud, in a real Chromium whose microphone plays a file: the assistant
// answers from a file that was uploaded, and the recorded call plays in step with its transcript. Against the binary
// (SIDETONE_HOST=worker: the Worker in workerd) and a stand-in for the speech providers, which a server of its own knows.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { launch, newAssistant, playsInStep, save, saveBeside, signIn, base } from './dashboard-tools.mjs';
import { speechLike, speechServer, stereoWav } from './speech-server.mjs';

const QUESTION = 'When do you open on Saturday?';
const HZ = 48_000;

if (!process.argv.includes('--inside')) {
  const speech = await speechServer();
  speech.said.push(QUESTION);
  const settings = { SIDETONE_PROVIDERS: JSON.stringify({ near: { base_url: speech.url, api_key: 'key' } }), SIDETONE_ALLOW_PRIVATE_TARGETS: '1' };
  const host = process.env.SIDETONE_HOST === 'worker' ? '../worker/with-worker.sh' : './with-server.sh';
  const child = spawn(host, [process.execPath, fileURLToPath(import.meta.url), '--inside'], {
    stdio: ['ignore', 'inherit', 'inherit'], env: { ...process.env, ...settings },
  });
  const [status] = await once(child, 'exit');
  speech.close();
  process.exit(status ?? 1);
}

const folder = await mkdtemp(join(tmpdir(), 'microphone-'));
const microphone = join(folder, 'microphone.wav');
await writeFile(microphone, stereoWav(HZ, [6_000, speechLike(1_500, HZ), 60_000]));
const hours = join(folder, 'opening-hours.txt');
await writeFile(hours, 'On Saturday we open at half past eight and close at noon.\n');
const browser = await launch('--use-fake-device-for-media-stream', '--use-fake-ui-for-media-stream', `--use-file-for-fake-audio-capture=${microphone}%noloop`);
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await signIn(context, 'mira@spoken.example');

  await page.goto(`${base}/dashboard/knowledge/new`);
  await page.getByLabel('From a text file').setInputFiles(hours);
  await page.waitForFunction(() => document.getElementById('f-content').value.includes('half past eight'));
  assert.equal(await page.getByLabel('Name').inputValue(), 'opening-hours');
  assert.equal(await page.getByLabel('Source').inputValue(), 'opening-hours.txt');
  await page.getByRole('button', { name: 'Add document' }).click();
  await page.waitForURL(/knowledge\/doc_/);

  await newAssistant(page);
  await page.getByLabel('Voice', { exact: true }).fill('near/alto');
  await page.getByLabel('Transcriber', { exact: true }).fill('near/scribe');
  await page.getByLabel('Language', { exact: true }).fill('en-GB');
  await save(page);
  await page.waitForURL(/done=update_assistant/);
  await page.getByLabel('Blue Door Dental (example)').uncheck();
  await page.getByLabel('opening-hours').check();
  await saveBeside(page);
  await page.getByText('revision 4').first().waitFor();

  await page.getByRole('button', { name: 'Talk to it' }).click();
  const talk = page.frameLocator('#talk iframe');
  await talk.getByRole('button', { name: 'Talk', exact: true }).click();
  await talk.getByText('Connected', { exact: true }).waitFor();
  await talk.locator('#speaking', { hasText: /^speaking$/ }).waitFor();
  // What the microphone played stands in the transcript, and is answered aloud from the file.
  await talk.locator('li.user', { hasText: QUESTION }).waitFor();
  await talk.locator('#lines', { hasText: 'On Saturday we open at half past eight' }).waitFor();
  await talk.locator('#speaking', { hasText: /^speaking$/ }).waitFor();
  await talk.locator('#lines', { hasText: /answered after \d+\.\d s/ }).waitFor();
  await talk.locator('#speaking', { hasText: /^listening$/ }).waitFor();
  await talk.getByRole('button', { name: 'Hang up' }).click();
  await talk.getByText('You hung up.').waitFor();

  // In a tab of its own: leaving the editor would end a conversation that goes on.
  const opened = page.context().waitForEvent('page');
  await page.getByRole('link', { name: 'Open the call' }).click();
  const call = await opened;
  await call.getByRole('heading', { name: 'Transcript' }).waitFor();
  await call.locator('.talk li').nth(2).waitFor();
  const roles = await call.locator('.talk li b:first-of-type').allTextContents();
  assert.deepEqual(roles, ['Front desk', 'Caller', 'Front desk']);
  await playsInStep(call);
  console.log('the dashboard, aloud: a question into the microphone, an answer from the uploaded file, its recording in step');
} finally {
  await browser.close();
  await rm(folder, { recursive: true, force: true });
}
