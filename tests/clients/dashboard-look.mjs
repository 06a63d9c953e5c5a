// How the pages of the dashboard look: axe-core in light and dark, nothing cut or wider than a telephone, nothing that jumps
// while a page comes. With SHOTS set to a folder, it takes screenshots.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { base } from './dashboard-tools.mjs';

const { SHOTS } = process.env;
const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Every page by its path, such as `/dashboard/calls/{id}`: the engine's own test has a case for each. */
const cases = JSON.parse(await readFile(new URL('../../engine/tests/dashboard_pages.json', import.meta.url), 'utf8'));
const PAGES = [...new Set(Object.values(cases).map(({ page }) => page)), '/dashboard/sign-in', '/dashboard/sign-in/link'];
/** How far the parts of a page may jump while it comes: the sum of its layout shifts. */
const SHIFT_MAX = 0.02;

/** What axe-core found, what is too wide, and what jumped. */
const violations = [];

/** Runs axe-core in a page as it stands, past its policy. */
async function read(page) {
  const session = await page.context().newCDPSession(page);
  const run = (expression) => session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  await run(`${axe}; true`);
  const { result } = await run("axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`))");
  await session.detach();
  return result.value;
}

/** What no address leads to: the answer to a form, an open dialog. In both schemes, and on a telephone. */
export async function inspectHere(page, name) {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    violations.push(...(await read(page)).map((found) => `${colorScheme} ${name}: ${found}`));
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  await page.setViewportSize({ width: 360, height: 740 });
  violations.push(...(await unreachable(page)).map((found) => `${name}: ${found}`));
  await page.setViewportSize({ width: 1280, height: 800 });
  await shots(page, name);
}

/** What somebody with a telephone cannot read: the page is wider than the screen, or a text is cut and nothing tells the rest. */
function unreachable(page) {
  return page.evaluate(() => {
    const found = [];
    const width = document.documentElement.scrollWidth;
    if (width > 360) found.push(`the page is ${width} px wide`);
    for (const element of document.body.querySelectorAll('*')) {
      const { overflowX, clipPath } = getComputedStyle(element);
      // What is clipped away as a whole is for screen readers.
      if (!['hidden', 'clip'].includes(overflowX) || clipPath !== 'none' || !element.innerText?.trim()) continue;
      if (element.scrollWidth > element.clientWidth && element.clientWidth && !element.closest('[title]')) found.push(`cut off: ${element.outerHTML.slice(0, 160)}`);
    }
    for (const row of document.querySelectorAll('.cards td')) {
      if (row.innerText.trim() && row.getBoundingClientRect().right > 360) found.push(`outside: ${row.outerHTML.slice(0, 160)}`);
      if (row.textContent && getComputedStyle(row).display === 'none') found.push(`hidden: ${row.outerHTML.slice(0, 160)}`);
    }
    return found;
  });
}

/** The rail scrolls where it is higher than the window, down to its last button; between telephone and desktop, too. */
async function railInALowWindow(page, path) {
  for (const width of [1280, 768]) {
    await page.setViewportSize({ width, height: 500 });
    const button = page.locator('.rail').getByRole('button', { name: 'Sign out' });
    await button.scrollIntoViewIfNeeded({ timeout: 2000 }).catch(() => violations.push(`${path}: no way to sign out at ${width} px`));
    const box = await button.boundingBox();
    if (!box || box.y + box.height > 500) violations.push(`${path}: the rail is cut at ${width} × 500`);
  }
}

/** The page as it stands, in both schemes and on a telephone. */
export async function shots(page, name) {
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

/** How far the page has jumped since it was asked for, what its scripts did at their start included. */
async function jumped(page) {
  await page.waitForFunction(() => document.documentElement.classList.contains('js') && document.readyState === 'complete');
  return page.evaluate(async () => {
    for (let frames = 0; frames < 3; frames += 1) await new Promise(requestAnimationFrame);
    return new Promise((resolve) => {
      const shifts = new PerformanceObserver((list) => found.push(...list.getEntries()));
      const found = [];
      shifts.observe({ type: 'layout-shift', buffered: true });
      setTimeout(() => {
        const what = found.flatMap(({ sources }) => sources.map(({ node }) => (node?.outerHTML ?? node?.nodeValue ?? '').slice(0, 80)));
        resolve({ sum: found.reduce((sum, { value }) => sum + value, 0), what });
      }, 50);
    });
  });
}

/** The page of the engine at an address. */
function pageOf(address) {
  const given = address.split('?')[0].split('/');
  const fits = (page) => {
    const wanted = page.split('/');
    return wanted.length === given.length && wanted.every((part, at) => part === given[at] || part.startsWith('{'));
  };
  // A literal segment stands before one with a name.
  return PAGES.filter(fits).sort((one, other) => one.split('{').length - other.split('{').length)[0];
}

/** axe-core on every page, open to the last detail; how wide each is on a telephone; how far it jumps at both sizes. */
export async function inspect(browser, storageState, seen) {
  const missed = PAGES.filter((page) => ![...seen].some((address) => pageOf(address) === page));
  assert.deepEqual(missed, [], 'every page is inspected');
  for (const colorScheme of ['light', 'dark']) {
    const options = { colorScheme, bypassCSP: true, viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce' };
    const [own, strange] = [await browser.newContext({ ...options, storageState }), await browser.newContext(options)];
    const [ours, strangers] = [await own.newPage(), await strange.newPage()];
    for (const path of seen) {
      const page = path.startsWith('/dashboard/sign-in') ? strangers : ours;
      const shot = (size) => SHOTS && page.screenshot({ path: join(SHOTS, `${path.replaceAll(/\W+/g, '-')}-${colorScheme}${size}.png`) });
      for (const [width, height, size] of [[360, 740, '-360'], [1280, 800, '']]) {
        await page.setViewportSize({ width, height });
        await page.goto(base + path);
        const { sum, what } = await jumped(page);
        if (sum >= SHIFT_MAX) violations.push(`${path} jumps by ${sum.toFixed(3)} at ${width} px: ${what.join(', ')}`);
        await shot(size);
        if (width > 360) continue;
        for (const open of [false, true]) {
          if (open) await page.evaluate(() => document.querySelectorAll('main details, .api').forEach((part) => (part.open = true)));
          violations.push(...(await unreachable(page)).map((found) => `${path}${open ? ', opened' : ''}: ${found}`));
        }
      }
      await page.evaluate(() => document.querySelectorAll('main details, .api').forEach((part) => (part.open = true)));
      if (page === ours) await railInALowWindow(page, path);
      await page.setViewportSize({ width: 1280, height: 800 });
      violations.push(...(await read(page)).map((found) => `${colorScheme} ${path}: ${found}`));
    }
    await own.close();
    await strange.close();
  }
  assert.deepEqual(violations, []);
}
