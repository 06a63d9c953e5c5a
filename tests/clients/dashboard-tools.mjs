// What the checks of the dashboard share: a Chromium, driven by Playwright, people who sign in with the code from the log,
// and the buttons of the assistant's editor. SIDETONE_LOG is the server's log.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

import { chromium } from 'playwright-core';

const { SIDETONE_LOG: log, CHROMIUM = 'chromium' } = process.env;
export const { SIDETONE_URL: base } = process.env;

export const launch = (...flags) => chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', ...flags] });

/** How often each address has asked for a code. */
const asked = new Map();

/** The code that was sent to an address last, and the link that does the same. */
async function sent(email) {
  const nth = asked.get(email);
  for (let tries = 0; tries < 50; tries += 1, await sleep(100)) {
    const found = [...(await readFile(log, 'utf8')).matchAll(new RegExp(`the sign-in code for ${email} is (\\d{6}) \\(or open ([^)]+)\\)`, 'g'))];
    if (found.length >= nth) return found[nth - 1].slice(1);
  }
  throw new Error(`no code for ${email} in the log`);
}

async function askForCode(page, email) {
  asked.set(email, (asked.get(email) ?? 0) + 1);
  await page.getByLabel('E-mail address').fill(email);
  await page.getByRole('button', { name: 'Send code' }).click();
  await page.getByLabel('Code').waitFor();
}

/** The address of a link that signs somebody in, of a mail that was not used yet. */
export async function linkOf(browser, email) {
  const page = await browser.newPage();
  await page.goto(`${base}/dashboard/sign-in`);
  await askForCode(page, email);
  await page.close();
  const [, link] = await sent(email);
  const { pathname, search } = new URL(link);
  return pathname + search;
}

export async function proveAddress(page, email, look = () => {}) {
  await askForCode(page, email);
  await look('code');
  const [code] = await sent(email);
  await page.getByLabel('Code').fill(code);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** A page of somebody who has signed in. `visited` is told each address of the dashboard that the page shows. */
export async function signIn(context, email, { look, visited = () => {} } = {}) {
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on('pageerror', (error) => assert.fail(`a script failed at ${page.url()}: ${error.message}`));
  page.on('console', (message) => assert.ok(!message.text().includes('Content Security Policy'), `${page.url()}: ${message.text()}`));
  page.on('framenavigated', () => {
    const { pathname, search } = new URL(page.url());
    if (pathname.startsWith('/dashboard') && !pathname.includes('/do/')) visited(pathname + search.replace(/[?&]done=\w+/, ''));
  });
  await page.goto(`${base}/dashboard`);
  await proveAddress(page, email, look && ((name) => look(page, name)));
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  return page;
}

/** A new assistant of a template; its address. */
export async function newAssistant(page, template = 'front-desk') {
  await page.goto(`${base}/dashboard/assistants/new?template=${template}`);
  await page.getByRole('button', { name: 'Create assistant' }).click();
  await page.waitForURL(/asst_/);
  return new URL(page.url()).pathname;
}

const editor = (page) => page.locator('form.edit').first();
export const save = (page) => editor(page).getByRole('button', { name: 'Save' }).click();
/** The same, with the button below what is attached. */
export const saveBeside = (page) => page.locator('aside').getByRole('button', { name: 'Save', exact: true }).click();

/** The recording of a call plays: the cursor, the clock and the transcript move with it, and lead through it. */
export async function playsInStep(page) {
  await page.locator('.trace.ready').waitFor();
  const now = () =>
    page.evaluate(() => {
      const audio = document.querySelector('.player audio');
      const trace = document.querySelector('.trace');
      const box = trace.getBoundingClientRect();
      return {
        ms: audio.currentTime * 1_000,
        paused: audio.paused,
        length: Number(trace.dataset.length),
        cursor: (trace.querySelector('.cursor').getBoundingClientRect().left - box.left) / box.width,
        rows: [...document.querySelectorAll('.talk li.now')].map(({ dataset }) => [Number(dataset.start), Number(dataset.end)]),
        audible: [...document.querySelectorAll('.talk li[data-start]')].map(({ dataset }) => [Number(dataset.start), Number(dataset.end)]),
      };
    });
  const inStep = ({ ms, cursor, length, rows, audible }) => {
    const about = 150;
    assert.ok(Math.abs(cursor * length - ms) < about, `the cursor is at ${cursor * length} ms, the audio at ${ms} ms`);
    for (const [start, end] of rows) assert.ok(ms > start - about && ms < end + about, `the row of ${start} to ${end} ms is marked at ${ms} ms`);
    for (const [start, end] of audible) {
      if (ms > start + about && ms < end - about) assert.ok(rows.some((row) => row[0] === start), `no row is marked at ${ms} ms`);
    }
  };
  // The page follows with the next frame, which is late on a busy machine.
  const settled = async () => {
    for (let tries = 0; ; tries += 1, await page.waitForTimeout(50)) {
      const seen = await now();
      try {
        inStep(seen);
        return seen;
      } catch (error) {
        if (tries === 40) throw error;
      }
    }
  };
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.waitForFunction(() => document.querySelector('.player audio').currentTime > 0.3 && document.querySelector('.talk li.now'));
  const first = await now();
  await page.waitForFunction((ms) => document.querySelector('.player audio').currentTime * 1_000 > ms + 200, first.ms);
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  const stopped = await settled();
  assert.ok(stopped.paused && stopped.ms > first.ms);
  // A press on the waveform leads to its moment, and one on a time to its row.
  const box = await page.locator('.trace').boundingBox();
  await page.mouse.click(box.x + box.width * 0.75, box.y + box.height / 2);
  const sought = await settled();
  assert.ok(Math.abs(sought.ms - 0.75 * sought.length) < 0.01 * sought.length, `${sought.ms} of ${sought.length} ms`);
  const row = page.locator('.talk li[data-start]').nth(1);
  await row.locator('[data-seek]').click();
  await page.waitForFunction((row) => row.classList.contains('now'), await row.elementHandle());
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await settled();
}
