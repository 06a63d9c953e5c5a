// The API reference and the page at `/` in Chromium: search, tabs by keyboard, deep links, what a telephone shows, and axe-core
// in both schemes. With SHOTS set to a folder, it takes screenshots.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { base, launch } from './dashboard-tools.mjs';

const { SHOTS } = process.env;
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const document_ = await (await fetch(`${base}/openapi.json`)).json();
const operations = Object.values(document_.paths).flatMap((methods) => Object.values(methods)).map(({ operationId }) => operationId);

const browser = await launch();

async function open(path, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  page.on('pageerror', (error) => assert.fail(`a script failed at ${path}: ${error.message}`));
  page.on('console', (message) => assert.ok(!message.text().includes('Content Security Policy'), `${path}: ${message.text()}`));
  await page.goto(base + path);
  return page;
}
const visible = (page) => page.evaluate(() => [...document.querySelectorAll('main section[id]:not(.group)')].filter((one) => one.checkVisibility()).map(({ id }) => id));
const tops = (page, id) => page.evaluate((id) => document.getElementById(id).getBoundingClientRect().top, id);

async function search() {
  const page = await open('/docs');
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'search');
  await page.keyboard.type('hang-up');
  assert.deepEqual(await visible(page), ['hang_up_call']);
  assert.match(await page.locator('#found').innerText(), /^1 of \d+$/);
  assert.equal(new URL(page.url()).searchParams.get('q'), 'hang-up', 'the search is in the address');
  assert.deepEqual(await page.locator('.rail li:visible').allInnerTexts(), [document_.paths['/calls/{id}/hang-up'].post.summary]);
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.hash), '#hang_up_call', 'Enter leads to the first');
  await page.locator('#search').fill('no such words');
  assert.ok(await page.locator('.none').isVisible());
  await page.locator('#search').press('Escape');
  assert.ok((await visible(page)).length > operations.length);
  // A field, a code and an event lead to what has them.
  for (const [words, id] of [['judge_votes', 'create_simulation_scenario'], ['name_taken', 'create_tool'], ['recording.ready', 'event-recording.ready']]) {
    await page.locator('#search').fill(words);
    assert.ok((await visible(page)).includes(id), `${words} finds ${id}`);
  }
  // A link out of what was found shows the rest again.
  await page.locator('#search').fill('judge_votes');
  await page.evaluate(() => { location.hash = 'signatures'; });
  await page.waitForFunction(() => document.getElementById('search').value === '');
  assert.ok(Math.abs(await tops(page, 'signatures')) < 40);
  // The address brings the search back.
  await page.goto(`${base}/docs?q=hang-up`);
  assert.deepEqual(await visible(page), ['hang_up_call']);
  await page.context().close();
}

async function tabs() {
  const page = await open('/docs#create_assistant');
  const section = page.locator('#create_assistant');
  const shown = () => section.locator('.tabs pre:visible').evaluateAll((all) => all.map(({ dataset }) => dataset.in));
  assert.deepEqual(await shown(), ['curl']);
  await section.locator('.tabs input').first().focus();
  for (const language of ['ts', 'py', 'mcp', 'curl', 'ts']) {
    await page.keyboard.press('ArrowRight');
    assert.deepEqual(await shown(), [language]);
  }
  const other = page.locator('#create_tool .tabs pre:visible');
  assert.equal(await other.getAttribute('data-in'), 'ts', 'one language in all tabs');
  assert.ok(Math.abs(await tops(page, 'create_assistant')) < 40, 'the reader stays where they are');
  await page.reload();
  assert.deepEqual(await shown(), ['ts'], 'the language is kept');
  await section.locator('details.same summary').click();
  assert.ok((await section.locator('.same .fields dt').allInnerTexts()).some((text) => text.startsWith('revision')), 'the fields of the response');
  await page.context().close();
}

async function deepLinks() {
  for (const id of ['get_waveform', 'event-call.ended', 'tool-requests', 'error-name_taken', 'object-Call', 'webhooks']) {
    const page = await open(`/docs#${id}`);
    assert.ok(Math.abs(await tops(page, id)) < 60, `#${id} leads there`);
    await page.context().close();
  }
  const page = await open('/docs#get_waveform');
  await page.waitForFunction(() => document.querySelector('.rail [aria-current]')?.hash === '#get_waveform');
  assert.ok(await page.locator('.rail [aria-current]').isVisible(), 'the chapter of the reader is open');
  await page.context().close();
}

/** Nothing of the reference needs the script. */
async function withoutScript() {
  const page = await open('/docs', { javaScriptEnabled: false });
  for (const id of operations) assert.ok(await page.locator(`#${id}`).isVisible(), id);
  await page.locator('#create_assistant .tabs label', { hasText: 'Python' }).click();
  assert.equal(await page.locator('#create_assistant .tabs pre:visible').getAttribute('data-in'), 'py');
  assert.ok(!(await page.locator('#search').isVisible()), 'a search that does nothing is not shown');
  await page.context().close();
}

async function looks(path, name) {
  for (const colorScheme of ['light', 'dark']) {
    const page = await open(path, { colorScheme });
    await page.evaluate(() => document.querySelectorAll('details').forEach((part) => (part.open = true)));
    const session = await page.context().newCDPSession(page);
    const run = (expression) => session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    await run(`${axe}; true`);
    const { result } = await run("axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`))");
    assert.deepEqual(result.value, [], `${path} in ${colorScheme}`);
    await page.setViewportSize({ width: 360, height: 740 });
    const wide = await page.evaluate(() => [document.documentElement.scrollWidth, ...[...document.querySelectorAll('main *')].filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > 361).slice(0, 3).map((one) => one.outerHTML.slice(0, 160))]);
    assert.ok(wide[0] <= 360 && wide.length === 1, `${path} on a telephone: ${wide.join(', ')}`);
    await page.context().close();
    if (!SHOTS) continue;
    for (const width of [1280, 360]) {
      for (const at of path === '/' ? [''] : ['', '#create_assistant', '#errors', '#event-call.ended', '#tool-requests']) {
        const page = await open(path + at, { colorScheme, viewport: { width, height: width === 360 ? 740 : 900 } });
        await page.screenshot({ path: join(SHOTS, `${name}${at.replaceAll(/\W/g, '-')}-${colorScheme}-${width}.png`) });
        await page.context().close();
      }
    }
  }
}

try {
  await search();
  await tabs();
  await deepLinks();
  await withoutScript();
  await looks('/docs', 'docs');
  await looks('/', 'home');
} finally {
  await browser.close();
}
