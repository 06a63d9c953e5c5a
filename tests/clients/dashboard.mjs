// The dashboard in a real Chromium, driven by Playwright: a newcomer signs in with the code from the log and does
// everything once, with and without JavaScript; then axe-core reads every page that was seen, in light and dark, and
// nothing is wider than a telephone. SIDETONE_LOG is the server's log. With SHOTS set to a folder, it takes screenshots.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { chromium } from 'playwright-core';

const { SIDETONE_URL: base, SIDETONE_LOG: log, SHOTS, CHROMIUM = 'chromium' } = process.env;
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });

/** The addresses that were seen: each is read by axe-core afterwards. */
const seen = new Set(['/dashboard/sign-in']);

/** The code that was sent to an address for the nth time. */
async function code(email, nth = 1) {
  for (let tries = 0; tries < 50; tries += 1, await sleep(100)) {
    const found = [...(await readFile(log, 'utf8')).matchAll(new RegExp(`the sign-in code for ${email} is (\\d{6})`, 'g'))];
    if (found.length >= nth) return found[nth - 1][1];
  }
  throw new Error(`no code for ${email} in the log`);
}

async function proveAddress(page, email, nth) {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByRole('button', { name: 'Send code' }).click();
  await page.getByLabel('Code').fill(await code(email, nth));
  await page.getByRole('button', { name: 'Sign in' }).click();
}

async function signIn(context, email) {
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  page.on('pageerror', (error) => assert.fail(`a script failed at ${page.url()}: ${error.message}`));
  page.on('console', (message) => assert.ok(!message.text().includes('Content Security Policy'), `${page.url()}: ${message.text()}`));
  page.on('framenavigated', () => {
    const { pathname, search } = new URL(page.url());
    if (pathname.startsWith('/dashboard') && !pathname.includes('/do/')) seen.add(pathname + search.replace(/[?&]done=\w+/, ''));
  });
  await page.goto(`${base}/dashboard`);
  await proveAddress(page, email);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  return page;
}

const editor = (page) => page.locator('form.edit').first();
const save = (page) => editor(page).getByRole('button', { name: 'Save', exact: true }).click();

/** Reads the page again until `wanted` is there: without a script, nobody else does. */
async function until(page, wanted) {
  for (let tries = 0; tries < 40; tries += 1, await sleep(250)) {
    if (await wanted.first().isVisible()) return;
    await page.reload();
  }
  assert.fail(`it never came at ${page.url()}`);
}

async function walk(email, scripts) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, javaScriptEnabled: scripts });
  const page = await signIn(context, email);
  const go = (path) => page.goto(base + path);

  await go('/dashboard/assistants/new?template=front-desk');
  await page.getByRole('button', { name: 'Create assistant' }).click();
  await page.waitForURL(/asst_/);
  const assistant = new URL(page.url()).pathname;

  await go('/dashboard/tools/new');
  await page.getByLabel('Name').fill('find_appointment');
  await page.getByLabel('URL').fill('https://booking.example.com/slots');
  await page.getByRole('button', { name: 'Create tool' }).click();
  assert.match(await page.locator('code.secret').textContent(), /^whsec_/);
  await go('/dashboard/knowledge/new');
  await page.getByLabel('Name').fill('Opening hours');
  await page.getByLabel('Content').fill('We are open Monday to Friday from nine to five. On Saturday we open at ten.');
  await page.getByRole('button', { name: 'Add document' }).click();
  await page.waitForURL(/\/knowledge\/\w+_/);
  await go(assistant);
  await page.getByLabel('find_appointment').check();
  await page.getByRole('button', { name: 'Save tools' }).click();
  await page.getByText('1 attached').waitFor();
  await page.getByLabel('Opening hours').check();
  await page.getByRole('button', { name: 'Save knowledge' }).click();
  await page.getByText('1 attached').nth(1).waitFor();

  // What was typed is not lost, and the summary leads to the field.
  await page.locator('#f-name').fill('');
  await page.locator('#f-first_message').fill('Good morning.');
  await save(page);
  await page.getByText('Nothing was saved').waitFor();
  assert.equal(await page.locator('#f-first_message').inputValue(), 'Good morning.');
  assert.equal(await page.locator('.problem a').getAttribute('href'), '#f-name');

  // Two people change the same assistant.
  const other = await context.newPage();
  await other.goto(base + assistant);
  await go(assistant);
  await other.locator('#f-name').fill('Reception');
  await save(other);
  await other.getByRole('heading', { name: 'Reception', level: 1 }).waitFor();
  await other.close();
  await page.locator('#f-name').fill('Front door');
  await save(page);
  await page.getByText('Somebody changed it meanwhile').waitFor();
  assert.deepEqual(await page.locator('pre.text').allTextContents(), ['Reception', 'Front door']);
  if (scripts) await page.getByRole('button', { name: 'Take the saved one' }).click();
  await save(page);
  const name = scripts ? 'Reception' : 'Front door';
  await page.getByRole('heading', { name, level: 1 }).waitFor();

  await page.getByRole('button', { name: 'Talk to it' }).click();
  const link = page.getByRole('link', { name: 'Open in a window' });
  await link.waitFor();
  assert.match(await link.getAttribute('href'), /voice-test\?token=/);
  assert.match(await page.locator('#talk iframe').getAttribute('src'), /^\/voice-test\?token=/);
  if (scripts) {
    // What was typed into the editor stays, and the assistant answers beside it.
    await page.getByLabel('First message').fill('Not saved yet');
    const before = await page.locator('#talk iframe').getAttribute('src');
    await page.getByRole('button', { name: 'New conversation' }).click();
    await page.waitForFunction((src) => document.querySelector('#talk iframe').getAttribute('src') !== src, before);
    const talk = page.frameLocator('#talk iframe');
    await talk.getByRole('button', { name: 'Type instead' }).click();
    await talk.getByLabel('Your message').fill('When do you open on Saturday?');
    await talk.getByRole('button', { name: 'Send' }).click();
    await talk.getByText('On Saturday we open at ten').waitFor();
    await shots(page, 'talk');
    await talk.getByRole('button', { name: 'Hang up' }).click();
    await talk.getByText('You hung up.').waitFor();
    assert.equal(await page.getByLabel('First message').inputValue(), 'Not saved yet');
  }

  await go('/dashboard/simulations/personas/new');
  await page.getByLabel('Name').fill('Hurried parent');
  await page.getByLabel('System prompt').fill('You have one minute.');
  await page.getByRole('button', { name: 'Create persona' }).click();
  await page.waitForURL(/personas\/\w+_/);
  await go('/dashboard/simulations/scenarios/new');
  await page.getByLabel('Name').fill('Saturday opening');
  await page.getByLabel('Instructions').fill('Ask "When do you open on Saturday?"');
  await page.getByRole('button', { name: 'Create scenario' }).click();
  await page.waitForURL(/scenarios\/\w+_/);
  await go('/dashboard/simulations/new');
  for (const [label, value] of [['Assistant', name], ['Persona', 'Hurried parent'], ['Scenario', 'Saturday opening']]) {
    await page.getByLabel(label, { exact: true }).selectOption({ label: value });
  }
  await page.getByRole('button', { name: 'Create simulation' }).click();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL(/runs\/run_/);
  const passed = page.getByText('1 of 1 passed');
  await (scripts ? passed.waitFor() : until(page, passed));

  // A run in voice mode is recorded: the player, the waveform and the transcript are in step.
  await go('/dashboard/simulations');
  await page.getByLabel('By').selectOption('voice');
  await page.getByRole('button', { name: 'Run them' }).click();
  await page.getByText('Latest runs').waitFor();
  await sleep(3000);
  await go('/dashboard/calls?source=simulation');
  await page.locator('td a.name').first().click();
  await page.waitForURL(/call_/);
  if (scripts) {
    await page.locator('.trace.ready').waitFor();
    await page.getByRole('button', { name: 'Play' }).click();
    await page.locator('.talk li.now').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
  } else {
    assert.ok(await page.locator('audio').isVisible());
  }
  await page.getByRole('link', { name: 'Make a scenario' }).click();
  assert.match(await page.getByLabel('Instructions').inputValue(), /When do you open on Saturday/);

  await go('/dashboard/webhooks/new');
  await page.getByLabel('URL').fill('https://dental.example.com/events');
  await page.getByRole('button', { name: 'Create webhook' }).click();
  await page.getByRole('button', { name: 'Send test event' }).click();
  await page.getByText('webhook.test').first().waitFor();

  await go('/dashboard/keys');
  await page.getByLabel('Name').fill('Nightly tests');
  await page.getByRole('button', { name: 'Create key' }).click();
  const key = await page.locator('code.secret').textContent();
  const headers = { Authorization: `Bearer ${key}` };
  assert.equal((await fetch(`${base}/assistants`, { headers })).status, 200);
  await go('/dashboard/keys');
  await page.getByRole('button', { name: 'Revoke' }).last().click();
  await page.getByRole('button', { name: 'Revoke “Nightly tests”' }).click();
  await page.getByText('Revoked.').waitFor();
  assert.equal((await fetch(`${base}/assistants`, { headers })).status, 401);

  for (const place of ['', '/numbers', '/numbers/bind', '/settings', '/people', '/sessions', '/audit', '/assistants', '/tools', '/knowledge', '/webhooks']) {
    await go(`/dashboard${place}`);
  }
  if (scripts) {
    await go('/dashboard');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('front');
    await page.getByRole('combobox').fill('webhooks');
    await page.keyboard.press('Enter');
    await page.waitForURL(/dashboard\/webhooks/);
  }
  if (scripts) {
    // A session ends while somebody types: after the sign-in it is all there, in a form that was not sent.
    await go('/dashboard/assistants/new');
    await page.locator('#f-name').fill('Night desk');
    await page.locator('#f-instructions').fill('Answer at night.');
    await context.clearCookies();
    await page.getByRole('button', { name: 'Create assistant' }).click();
    await proveAddress(page, email, 2);
    await page.getByText('is here again').waitFor();
    assert.match(page.url(), /assistants\/new$/);
    assert.equal(await page.locator('#f-instructions').inputValue(), 'Answer at night.');
    await page.getByRole('button', { name: 'Create assistant' }).click();
    await page.getByRole('heading', { name: 'Night desk', level: 1 }).waitFor();
    await go('/dashboard/assistants/new');
    assert.equal(await page.locator('#f-name').inputValue(), '', 'a draft comes back once');
    await twoTabs(context, page, email);
  }
  const state = await context.storageState();
  await context.close();
  return state;
}

/** Another tab opens another workspace while somebody types: the form does nothing there, and is there again in its own. */
async function twoTabs(context, page, email) {
  const elsewhere = await browser.newContext();
  const host = await signIn(elsewhere, `host-of-${email}`);
  await host.goto(`${base}/dashboard/people`);
  await host.getByLabel('E-mail address').fill(email);
  await host.getByRole('button', { name: 'Invite' }).click();
  const link = await host.locator('.once .secret').textContent();
  await elsewhere.close();
  await page.locator('#f-name').fill('Weekend desk');
  await page.locator('#f-instructions').fill('Answer at the weekend.');
  const tab = await context.newPage();
  await tab.goto(link);
  await tab.getByRole('button', { name: 'Join' }).click();
  await tab.getByRole('heading', { name: 'Overview' }).waitFor();
  await tab.close();
  await page.getByRole('button', { name: 'Create assistant' }).click();
  await page.getByText('Nothing was done').waitFor();
  await shots(page, 'other-workspace');
  await page.getByRole('button', { name: /^Open / }).click();
  await page.getByText('is here again').waitFor();
  assert.equal(await page.locator('#f-instructions').inputValue(), 'Answer at the weekend.');
  await page.getByRole('button', { name: 'Create assistant' }).click();
  await page.getByRole('heading', { name: 'Weekend desk', level: 1 }).waitFor();
}

/** The page as it stands, in both schemes and on a telephone. */
async function shots(page, name) {
  if (!SHOTS) return;
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 800 });
      await page.screenshot({ path: join(SHOTS, `${name}-${colorScheme}-${width}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width: 1280, height: 800 });
}

/** axe-core on every page, open to the last detail; and how wide each is on a telephone. */
async function inspect(storageState) {
  const violations = [];
  for (const colorScheme of ['light', 'dark']) {
    const options = { colorScheme, bypassCSP: true, viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' };
    const [own, strange] = [await browser.newContext({ ...options, storageState }), await browser.newContext(options)];
    const [ours, strangers] = [await own.newPage(), await strange.newPage()];
    for (const path of seen) {
      const page = path.startsWith('/dashboard/sign-in') ? strangers : ours;
      await page.goto(base + path);
      const shot = (size) => SHOTS && page.screenshot({ path: join(SHOTS, `${path.replaceAll(/\W+/g, '-')}-${colorScheme}${size}.png`) });
      await shot('');
      await page.setViewportSize({ width: 360, height: 740 });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (over > 0) violations.push(`${path} is ${over} px wider than 360 px`);
      await shot('-360');
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.evaluate(() => document.querySelectorAll('main details, .api').forEach((part) => (part.open = true)));
      await page.evaluate(axe);
      const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
      violations.push(...found.violations.map(({ id, nodes }) => `${colorScheme} ${path}: ${id}: ${nodes[0].html}`));
    }
    await own.close();
    await strange.close();
  }
  assert.deepEqual(violations, []);
}

try {
  await walk('anna@dental.example', false);
  seen.clear();
  seen.add('/dashboard/sign-in');
  const state = await walk('mira@dental.example', true);
  await inspect(state);
  console.log(`the dashboard: done twice, ${seen.size} pages inspected in light and dark`);
} finally {
  await browser.close();
}
