// A newcomer's way in a real Chromium: a new service, its one-time link, an assistant from a template, a typed
// conversation, a simulation that passes. Nothing but the link leaves the browser, and clicks are counted.
// SIDETONE_LOG is the server's log. With SHOTS set to a folder, it takes screenshots.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

const { SIDETONE_URL: base, SIDETONE_LOG: log, SHOTS, CHROMIUM = 'chromium' } = process.env;
const CLICKS_MAX = 12;
/** Nobody is in a hurry here; a step that hangs is noticed. */
const SECONDS_MAX = 60;
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
let clicks = 0;

async function click(target) {
  clicks += 1;
  await target.click();
}

try {
  const link = /http\S+\/dashboard\/\S+/.exec(await readFile(log, 'utf8'));
  assert.ok(link, 'the first start prints no link');
  const began = performance.now();
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  const button = (name) => page.getByRole('button', { name, exact: true });
  const anchor = (name) => page.getByRole('link', { name, exact: true });
  // The link itself is a click, too.
  clicks += 1;
  await page.goto(new URL(new URL(link[0]).pathname + new URL(link[0]).search, base).href);
  const enter = button('Open the dashboard').or(button('Sign in'));
  const overview = page.getByRole('heading', { name: 'Overview' });
  await enter.or(overview).first().waitFor();
  if (await enter.isVisible()) await click(enter);
  await overview.waitFor();
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
  await talk.getByText('When are you open?').first().waitFor();
  if (SHOTS) await page.screenshot({ path: join(SHOTS, 'newcomer-talk.png') });

  await click(anchor('Simulate a caller'));
  if (SHOTS) await page.screenshot({ path: join(SHOTS, 'newcomer-simulate.png') });
  await click(button('Run'));
  await page.waitForURL(/runs\/run_/);
  await page.getByText('1 of 1 passed').waitFor();
  if (SHOTS) await page.screenshot({ path: join(SHOTS, 'newcomer-run.png') });
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  assert.ok(clicks <= CLICKS_MAX, `${clicks} clicks`);
  assert.ok(seconds <= SECONDS_MAX, `${seconds} s`);
  console.log(`a newcomer's way: ${clicks} clicks (at most ${CLICKS_MAX}), ${seconds} s (at most ${SECONDS_MAX})`);
} finally {
  await browser.close();
}
