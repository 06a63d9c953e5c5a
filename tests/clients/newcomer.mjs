// A newcomer's way in a real Chromium: a new service, a sign-in, an assistant from a template, a question that it answers
// from its document, a simulation that passes. Clicks are counted. At the binary the way in is the one-time link in the log
// of its first start; the Worker has no first start and prints none, so there it is a code (SIDETONE_HOST=worker).
// SIDETONE_LOG is the server's log. With SHOTS set to a folder, it takes screenshots.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { base, launch, proveAddress } from './dashboard-tools.mjs';

const { SIDETONE_LOG: log, SIDETONE_HOST: host, SHOTS } = process.env;
const CLICKS_MAX = 12;
/** Nobody is in a hurry here; a step that hangs is noticed. */
const SECONDS_MAX = 180;
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
page.setDefaultTimeout(15_000);
const button = (name) => page.getByRole('button', { name, exact: true });
const anchor = (name) => page.getByRole('link', { name, exact: true });
let clicks = 0;

async function click(target) {
  clicks += 1;
  await target.click();
}

const shot = (name) => SHOTS && page.screenshot({ path: join(SHOTS, `newcomer-${name}.png`) });

const enter = {
  async link() {
    const link = /http\S+\/dashboard\/\S+/.exec(await readFile(log, 'utf8'));
    assert.ok(link, 'the first start prints no link');
    // The link itself is a click, too.
    clicks += 1;
    await page.goto(new URL(new URL(link[0]).pathname + new URL(link[0]).search, base).href);
    await click(button('Sign in'));
  },
  async code() {
    // The address, and the two buttons of signing in.
    clicks += 3;
    await page.goto(`${base}/dashboard`);
    await proveAddress(page, 'newcomer@dental.example');
  },
};

try {
  const began = performance.now();
  await (host === 'worker' ? enter.code() : enter.link());
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await click(anchor('Create assistant').first());
  await click(button('Front desk'));
  await click(button('Create assistant'));
  await page.waitForURL(/asst_/);

  await click(button('Talk to it'));
  const talk = page.frameLocator('#talk iframe');
  await click(talk.getByRole('button', { name: 'Type instead', exact: true }));
  await talk.getByText('how can I help').first().waitFor();
  await talk.getByRole('textbox').fill('When are you open?');
  await page.keyboard.press('Enter');
  // The answer to this question: a sentence of the document that came with the template.
  const lines = talk.locator('#lines li');
  await lines.filter({ hasText: 'from nine to five' }).waitFor();
  const said = await lines.allTextContents();
  const [asked, answered] = ['When are you open?', 'from nine to five'].map((text) => said.findIndex((line) => line.includes(text)));
  assert.ok(asked > 0 && answered > asked, said.join('\n'));
  await shot('talk');

  await click(anchor('Simulate a caller'));
  // The run is to prove the same answer.
  const expected = page.getByLabel('What the assistant must say');
  await click(expected);
  await expected.fill('nine to five');
  await shot('simulate');
  await click(button('Run'));
  await page.waitForURL(/runs\/run_/);
  await page.getByText('1 of 1 passed').waitFor();
  await shot('run');
  const seconds = (performance.now() - began) / 1_000;
  assert.ok(clicks <= CLICKS_MAX, `${clicks} clicks`);
  assert.ok(seconds <= SECONDS_MAX, `${seconds} s`);
  console.log(`a newcomer's way: ${clicks} clicks (at most ${CLICKS_MAX}), ${seconds.toFixed(1)} s (at most ${SECONDS_MAX})`);
} finally {
  await browser.close();
}
