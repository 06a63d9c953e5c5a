// The dashboard by keyboard alone, in a real Chromium: from the skip link to an assistant with a tool, changed and deleted.
// Whatever has the focus shows it, and nothing covers it.
import assert from 'node:assert/strict';

import { base, launch, signIn } from './dashboard-tools.mjs';

/** So many stops are enough to cross any page. */
const STOPS_MAX = 120;
const browser = await launch();
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await signIn(context, 'mira@keyboard.example');
const press = (key) => page.keyboard.press(key);

/** What has the focus: its name, and why it could be overlooked. */
function stop() {
  return page.evaluate(() => {
    const element = document.activeElement;
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    const label = element.labels?.[0]?.innerText || element.getAttribute('aria-label') || element.innerText || element.title || '';
    const name = label.trim().split('\n')[0];
    const wrong = [];
    // Nothing else has such an outline, so it is what the focus changes.
    element.blur();
    const without = getComputedStyle(element).outlineStyle;
    element.focus({ preventScroll: true });
    if (style.outlineStyle === 'none' || parseFloat(style.outlineWidth) < 2 || without !== 'none') wrong.push(`its outline is ${style.outline}`);
    const [x, y] = [box.left + Math.min(box.width / 2, 40), box.top + Math.min(box.height / 2, 12)];
    const above = document.elementFromPoint(x, y);
    if (!above || !(element.contains(above) || above.contains(element) || element.labels?.[0]?.contains(above))) {
      wrong.push(`it is at ${Math.round(x)}, ${Math.round(y)}, below ${above?.outerHTML.slice(0, 80)}`);
    }
    return { name, tag: element.localName, wrong };
  });
}

/** Goes on by Tab until the focus is on what has this name. */
async function tabTo(name, tag) {
  const passed = [];
  for (let stops = 0; stops < STOPS_MAX; stops += 1) {
    await press('Tab');
    const at = await stop();
    // Past the last stop the browser's own controls have the focus, then the page begins again.
    if (at.tag === 'body') continue;
    assert.deepEqual(at.wrong, [], `"${at.name}" (${at.tag}) has the focus at ${page.url()}`);
    if (at.name === name && (!tag || at.tag === tag)) return;
    passed.push(at.name);
  }
  assert.fail(`no way to "${name}" at ${page.url()}: ${passed.join(', ')}`);
}

/** Anywhere by name. */
async function goTo(name, heading = name) {
  await press('Control+k');
  await page.getByRole('combobox', { name: 'Go to' }).waitFor();
  await page.keyboard.type(name.toLowerCase());
  await press('Enter');
  await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
}

try {
  // The first stop of a page leads past the rail.
  await page.goto(`${base}/dashboard/calls`);
  await tabTo('Skip to content');
  assert.ok((await page.locator('.skip').boundingBox()).x >= 0, 'it can be seen');
  await press('Enter');
  await press('Tab');
  assert.ok(await page.evaluate(() => document.activeElement.closest('main')), 'the focus is past the rail');

  // The palette gives the focus back.
  await page.reload();
  await tabTo('Calls', 'a');
  await press('Control+k');
  await page.getByRole('combobox', { name: 'Go to' }).waitFor();
  await press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'hidden' });
  assert.equal((await stop()).name, 'Calls');

  await goTo('Create tool', 'New tool');
  await tabTo('Name');
  await page.keyboard.type('find_appointment');
  await tabTo('URL');
  await page.keyboard.type('https://booking.example.com/slots');
  await tabTo('Create tool', 'button');
  await press('Enter');
  await page.locator('code.secret').waitFor();

  await goTo('Create assistant', 'New assistant');
  await tabTo('Front desk', 'button');
  await press('Enter');
  await page.waitForFunction(() => document.getElementById('f-name').value === 'Front desk');
  await tabTo('Name');
  await page.keyboard.type('Night desk');
  await press('Enter');
  await page.getByRole('heading', { name: 'Night desk', level: 1 }).waitFor();

  await tabTo('Name');
  await page.keyboard.type('Day desk');
  await tabTo('find_appointment');
  await press('Space');
  await tabTo('Save', 'button');
  await press('Enter');
  await page.getByRole('heading', { name: 'Day desk', level: 1 }).waitFor();
  assert.ok(await page.getByLabel('find_appointment').isChecked());

  // A question is asked before anything is deleted, and Escape is an answer.
  await tabTo('Delete assistant', 'button');
  await press('Enter');
  const question = page.getByRole('dialog', { name: 'Delete “Day desk”' });
  await question.waitFor();
  await press('Escape');
  await question.waitFor({ state: 'hidden' });
  assert.equal((await stop()).name, 'Delete assistant', 'the focus is where it was');
  await press('Enter');
  await question.waitFor();
  await tabTo('Delete “Day desk”', 'button');
  await press('Enter');
  await page.getByText('Deleted.').waitFor();
  console.log('the dashboard by keyboard alone: a tool, an assistant, changed and deleted');
} finally {
  await browser.close();
}
