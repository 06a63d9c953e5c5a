// What was typed into the dashboard survives in a real Chromium, and overwrites nobody: a session that ends, somebody else
// who saves meanwhile, another person in the same tab, what is attached, pages that are followed.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { base, launch, newAssistant, proveAddress, save, saveBeside, signIn } from './dashboard-tools.mjs';

const browser = await launch();
const message = (page) => page.locator('#f-first_message');
const isBack = (page) => page.getByText('is here again').waitFor();
const tool = (page) => page.getByLabel('find_appointment');

/** Somebody has typed into the editor, and the session has ended. */
async function endedWhileTyping(page, path, text) {
  await page.goto(base + path);
  await message(page).fill(text);
  await page.context().clearCookies({ name: /session/ });
}

/** Another tab saves a field meanwhile. */
async function meanwhile(page, path, field, text) {
  const other = await page.context().newPage();
  await other.goto(base + path);
  await other.locator(field).fill(text);
  await save(other);
  await other.waitForURL(/done=update_assistant/);
  await other.close();
}

const checks = {
  async 'a draft belongs to the revision that was read'({ page, path, email }) {
    await endedWhileTyping(page, path, 'Good evening.');
    await save(page);
    await page.getByText('Your session had ended').waitFor();
    // Somebody else saves while this one signs in.
    const other = await browser.newContext();
    const colleague = await signIn(other, email);
    await meanwhile(colleague, path, '#f-first_message', 'Good night.');
    await other.close();
    await proveAddress(page, email);
    await isBack(page);
    assert.equal(await message(page).inputValue(), 'Good evening.');
    await save(page);
    await page.getByText('It was changed meanwhile').waitFor();
    assert.deepEqual(await page.locator('.version pre').allTextContents(), ['Good night.', 'Good evening.']);
    await page.getByRole('radio', { name: 'As you typed it' }).check();
    await save(page);
    await page.waitForURL(/done=update_assistant/);
    assert.equal(await message(page).inputValue(), 'Good evening.');
  },

  async 'signing out drops a draft'({ page, path, email }) {
    await endedWhileTyping(page, path, 'A secret.');
    await save(page);
    await page.getByText('Your session had ended').waitFor();
    await page.goto(`${base}/dashboard/sign-in`);
    await proveAddress(page, email);
    await page.locator('.rail').getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('E-mail address').waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
    await proveAddress(page, email);
    await page.getByRole('heading', { name: 'Overview' }).waitFor();
    await page.goto(base + path);
    assert.notEqual(await message(page).inputValue(), 'A secret.');
  },

  async 'a draft is nobody else’s'({ page }) {
    await page.goto(`${base}/dashboard/assistants/new`);
    await message(page).fill('A secret.');
    await page.context().clearCookies({ name: /session/ });
    await page.getByRole('button', { name: 'Create assistant' }).last().click();
    await proveAddress(page, 'leo@drafts.example');
    await page.waitForURL(/assistants\/new$/);
    assert.notEqual(await message(page).inputValue(), 'A secret.');
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  },

  async 'one save saves fields and what is attached, and nothing that did not change'({ page, path }) {
    await page.goto(base + path);
    const revision = async () => Number((await page.locator('.head').getByText(/^revision /).textContent()).split(' ')[1]);
    const before = await revision();
    await tool(page).check();
    await saveBeside(page);
    await page.waitForURL(/done=update_assistant/);
    assert.equal(await revision(), before + 1);
    await message(page).fill(`${await message(page).inputValue()} Hello.`);
    await page.locator('#f-keyterms').fill('\n');
    await tool(page).uncheck();
    await save(page);
    await page.waitForFunction((revision) => document.querySelector('.head').textContent.includes(`revision ${revision}`), before + 3);
    assert.match(await message(page).inputValue(), / Hello\.$/);
    assert.ok(!(await tool(page).isChecked()));
  },

  async 'fields and what is attached wait for the sign-in together'({ page, path, email }) {
    await endedWhileTyping(page, path, 'Good afternoon.');
    await tool(page).check();
    await page.locator('#f-name').fill('Afternoon desk');
    await save(page);
    await page.getByText('Your session had ended').waitFor();
    assert.match(page.url(), /sign-in/);
    assert.equal(await page.getByText('Saved').count(), 0);
    await proveAddress(page, email);
    await isBack(page);
    assert.equal(await message(page).inputValue(), 'Good afternoon.');
    assert.ok(await tool(page).isChecked());
    await save(page);
    await page.waitForURL(/done=update_assistant/);
    await page.getByRole('heading', { name: 'Afternoon desk', level: 1 }).waitFor();
    assert.ok(await tool(page).isChecked());
  },

  async 'a form that is refused is saved as one, after a choice'({ page, path }) {
    await page.goto(base + path);
    await message(page).fill('Mine.');
    await tool(page).check();
    await meanwhile(page, path, '#f-first_message', 'Theirs.');
    await saveBeside(page);
    await page.getByText('It was changed meanwhile').waitFor();
    assert.ok(await tool(page).isChecked());
    // Without a choice, no button sends it.
    await saveBeside(page);
    assert.equal(await page.evaluate(() => document.querySelector('input[data-take]').validity.valueMissing), true);
    await page.getByRole('radio', { name: 'As you typed it' }).check();
    await saveBeside(page);
    await page.waitForURL(/done=update_assistant/);
    assert.equal(await message(page).inputValue(), 'Mine.');
    assert.ok(await tool(page).isChecked());
  },

  async 'what is followed stops with the session, and with the page'({ page }) {
    let state = 200;
    let asked = 0;
    await page.route('**/dashboard/simulations', async (route) => {
      asked += 1;
      if (state !== 200) return route.fulfill({ status: state, body: '' });
      const response = await route.fetch({ maxRedirects: 0 });
      if (!response.ok()) return route.continue();
      // Nothing is under way that lasts as long as the test needs; the page says so all the same.
      await route.fulfill({ response, body: (await response.text()).replace('<main ', '<main data-live ') });
    });
    const stops = async (text) => {
      await page.getByText(text).waitFor();
      const before = asked;
      await sleep(4_000);
      assert.equal(asked, before, 'it is asked for no more');
      assert.ok(await page.getByText(text).isVisible(), 'the reason stays');
    };
    await page.goto(`${base}/dashboard/simulations`);
    state = 404;
    await stops('no longer follows');
    state = 200;
    await page.reload();
    const began = asked;
    while (asked < began + 2) await sleep(100);
    await page.context().clearCookies({ name: /session/ });
    await stops('Your session has ended');
  },
};

try {
  for (const [at, [name, check]] of Object.entries(checks).entries()) {
    // Each has a network, an address and a workspace of its own: codes are counted by address and by network.
    const context = await browser.newContext({ extraHTTPHeaders: { 'X-Forwarded-For': `192.0.2.${at + 1}` } });
    const email = `mira-${at}@drafts.example`;
    const page = await signIn(context, email);
    const path = await newAssistant(page);
    await page.goto(`${base}/dashboard/tools/new`);
    await page.getByLabel('Name').fill('find_appointment');
    await page.getByLabel('URL').fill('https://booking.example.com/slots');
    await page.getByRole('button', { name: 'Create tool' }).click();
    await page.locator('code.secret').waitFor();
    await check({ page, path, email });
    await context.close();
    console.log(`ok ${name}`);
  }
} finally {
  await browser.close();
}
