// The dashboard in a real Chromium: a newcomer signs in with the code from the log and does everything once, with and
// without JavaScript; then axe-core reads every page, in light and dark, and nothing is wider than a telephone. What only a
// form or a key press shows is read when it is there. At last, somebody writes markup into every text.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

import { attack } from './dashboard-attack.mjs';
import { inspect, inspectHere, shots } from './dashboard-look.mjs';
import { base, launch, linkOf, playsInStep, proveAddress, save, saveBeside, signIn } from './dashboard-tools.mjs';

const browser = await launch();

/** The addresses that were seen: each is read by axe-core afterwards. */
const seen = new Set();

/** What a terminal answers to a command that a page shows: it knows the key. */
function terminal(command, key) {
  assert.match(command, /^curl /);
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command.replace('curl ', 'curl -sS ')], { encoding: 'utf8', env: { ...process.env, SIDETONE_KEY: key } });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

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
  // Only with scripts can the page be read by axe-core.
  const look = scripts ? (page, name) => inspectHere(page, name) : undefined;
  const page = await signIn(context, email, { look, visited: (address) => seen.add(address) });
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
  await saveBeside(page);
  await page.getByText('revision 3').first().waitFor();
  await page.getByLabel('Opening hours').check();
  await saveBeside(page);
  await page.getByText('revision 4').first().waitFor();
  // The document of the template is attached, too.
  for (const name of ['find_appointment', 'Blue Door Dental (example)', 'Opening hours']) assert.ok(await page.getByLabel(name).isChecked(), name);

  // What was typed is not lost, and the summary leads to the field.
  await page.locator('#f-name').fill('');
  await page.locator('#f-first_message').fill('Good morning.');
  await save(page);
  await page.getByText('Nothing was changed').waitFor();
  assert.equal(await page.locator('#f-first_message').inputValue(), 'Good morning.');
  assert.equal(await page.locator('.problem a').getAttribute('href'), '#f-name');

  await look?.(page, 'problem');

  // Two people change the same assistant: what one of them changed stands, and what both changed is asked for.
  const other = await context.newPage();
  await other.goto(base + assistant);
  await go(assistant);
  const instructions = await page.locator('#f-instructions').inputValue();
  await other.locator('#f-name').fill('Reception');
  await other.locator('#f-first_message').fill('Reception, hello.');
  await save(other);
  await other.getByRole('heading', { name: 'Reception', level: 1 }).waitFor();
  await other.close();
  await page.locator('#f-name').fill('Front door');
  await page.locator('#f-instructions').fill(`${instructions} Be brief.`);
  await save(page);
  await page.getByText('It was changed meanwhile').waitFor();
  assert.deepEqual(await page.locator('.version pre').allTextContents(), ['Reception', 'Front door']);
  assert.equal(await page.locator('#f-first_message').inputValue(), 'Reception, hello.');
  assert.equal(await page.locator('#f-instructions').inputValue(), `${instructions} Be brief.`);
  await look?.(page, 'conflict');
  // Without a choice nothing is sent, by either button.
  await save(page);
  await saveBeside(page);
  await page.getByText('It was changed meanwhile').waitFor();
  await page.getByLabel('As saved').first().check();
  if (scripts) {
    assert.equal(await page.locator('#f-name').inputValue(), 'Reception');
    await page.locator('#f-name').pressSequentially('!');
    assert.ok(await page.getByLabel('As you typed it').first().isChecked(), 'typing means mine');
    await page.getByLabel('As saved').first().check();
  }
  await save(page);
  const name = 'Reception';
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  assert.equal(await page.locator('#f-first_message').inputValue(), 'Reception, hello.');
  assert.equal(await page.locator('#f-instructions').inputValue(), `${instructions} Be brief.`);

  if (scripts) await typing(page);

  // An earlier revision comes back as a new one.
  await page.getByRole('link', { name: 'Its history' }).click();
  await page.getByRole('button', { name: 'Restore revision 1' }).click();
  await page.getByRole('heading', { name: 'Front desk', level: 1 }).waitFor();
  await page.locator('#f-name').fill(name);
  await page.getByLabel('find_appointment').waitFor();
  await save(page);
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  await page.getByLabel('Opening hours').check();
  await saveBeside(page);
  await page.waitForURL(/done=update_assistant/);
  assert.ok(await page.getByLabel('Opening hours').isChecked());

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
    const live = await followed(context);
    await talk.getByRole('button', { name: 'Hang up' }).click();
    await talk.getByText('You hung up.').waitFor();
    await live();
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
  if (scripts) {
    // Nothing is expected yet, and the row says so.
    await page.getByRole('button', { name: 'Create scenario' }).click();
    await page.getByText('Evaluations, row 1: includes').waitFor();
    assert.equal(await page.getByRole('textbox', { name: 'Text' }).getAttribute('aria-invalid'), 'true');
    assert.ok(page.url().endsWith('/simulations/scenarios/new'), 'the address is that of the page');
    await page.getByRole('textbox', { name: 'Text' }).fill('open at ten');
    // What a tool's call needs is its name, and nobody's role.
    await page.getByLabel('Kind').selectOption('tool_call');
    assert.equal(await page.getByLabel('Role').isVisible(), false);
    assert.equal(await page.getByRole('textbox', { name: 'Tool' }).inputValue(), 'open at ten');
    await page.getByLabel('Kind').selectOption('transcript');
    // Another row begins with the choices of the one before, and without its text.
    const last = (name) => page.locator(`.rowform [data-name=${name}]`).last();
    await last('kind').selectOption('transcript_excludes');
    await page.getByRole('button', { name: 'Add one' }).click();
    const begun = await Promise.all(['kind', 'role', 'includes'].map((name) => last(name).inputValue()));
    assert.deepEqual(begun, ['transcript_excludes', 'assistant', '']);
    await page.getByRole('button', { name: 'Remove' }).last().click();
    await last('kind').selectOption('transcript');
  } else {
    // Spare rows stand below; one that is not filled in is left out, and so is one by a choice.
    const row = (nth, name) => page.locator('.rowform').nth(nth).locator(`[data-name=${name}]`);
    await page.getByLabel('Name').fill('Weekend opening');
    await row(0, 'includes').fill('open at ten');
    await row(1, 'kind').selectOption('transcript_excludes');
    await row(1, 'includes').fill('we never open');
    await page.getByRole('button', { name: 'Create scenario' }).click();
    await page.waitForURL(/scenarios\/\w+_/);
    assert.equal(await row(1, 'includes').inputValue(), 'we never open');
    await row(1, 'kind').selectOption('-');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Saved.').waitFor();
    assert.deepEqual([await row(0, 'includes').inputValue(), await row(1, 'includes').inputValue()], ['open at ten', '']);
    await go('/dashboard/simulations/scenarios/new');
    await page.getByLabel('Name').fill('Saturday opening');
    await page.getByLabel('Instructions').fill('Ask "When do you open on Saturday?"');
    await row(0, 'includes').fill('open at ten');
  }
  await page.getByRole('button', { name: 'Create scenario' }).click();
  await page.waitForURL(/scenarios\/\w+_/);
  await go('/dashboard/simulations/new');
  for (const [label, value] of [['Assistant', name], ['Persona', 'Hurried parent'], ['Scenario', 'Saturday opening']]) {
    await page.getByLabel(label, { exact: true }).selectOption({ label: value });
  }
  await page.getByRole('button', { name: 'Create simulation' }).click();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL(/runs\/run_/);
  const comes = (wanted) => (scripts ? wanted.first().waitFor() : until(page, wanted));
  await comes(page.getByText('1 of 1 passed'));

  // One that fails shows the turn after which the words are missing; two runs stand side by side.
  await go(`${assistant}/simulate`);
  await page.getByLabel('What the assistant must say').fill('We never close');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL(/runs\/run_/);
  await comes(page.getByText('0 of 1 passed'));
  const failing = page.locator('.talk li.failing');
  assert.match(await failing.textContent(), /Missing.*We never close/);
  await page.getByRole('link', { name: 'Show where' }).click();
  assert.match(page.url(), /#after-row-\d+$/);
  await page.getByRole('button', { name: 'Run again, same seed' }).click();
  await page.waitForURL(/done=start_simulation_run/);
  await comes(page.getByText('0 of 1 passed'));
  await page.getByRole('link', { name: /^the run of/ }).first().click();
  await page.getByText('They say the same').waitFor();

  // A run in voice mode is recorded: the player, the waveform and the transcript are in step.
  await go('/dashboard/simulations');
  await page.getByLabel('Mode').selectOption('voice');
  await page.getByRole('button', { name: 'Run them' }).click();
  await page.waitForURL(/batches\/batch_/);
  await comes(page.getByText('2 of 2 done'));
  await go('/dashboard/calls?source=simulation');
  await page.locator('td a.name').first().click();
  await page.waitForURL(/call_/);
  if (scripts) {
    await playsInStep(page);
  } else {
    await page.locator('audio').waitFor();
  }
  await page.getByRole('link', { name: 'Make a scenario' }).click();
  assert.match(await page.getByLabel('Instructions').inputValue(), /"When (do|are) you open/);

  await go('/dashboard/webhooks/new');
  await page.getByLabel('URL').fill('https://dental.example.com/events');
  await page.getByRole('button', { name: 'Create webhook' }).click();
  await page.getByRole('button', { name: 'Send test event' }).click();
  await page.getByText('webhook.test').first().waitFor();
  await page.getByText('The delivery was queued.').waitFor();
  const delivery = await page.getByRole('link', { name: 'Show the delivery' }).getAttribute('href');
  assert.equal(await page.locator(`tr${delivery}`).count(), 1);

  await go('/dashboard/keys');
  await page.getByLabel('Name').fill('Nightly tests');
  await page.getByRole('button', { name: 'Create key' }).click();
  const key = await page.locator('code.secret').textContent();
  // The command that a page shows works in a terminal, with the key.
  await go('/dashboard/assistants');
  const command = await page.locator('.api pre').first().textContent();
  assert.deepEqual(terminal(command, key).map((assistant) => assistant.name), [name]);
  await go('/dashboard/keys');
  await page.getByRole('button', { name: 'Revoke' }).last().click();
  await look?.(page, 'dialog');
  await page.getByRole('button', { name: 'Revoke “Nightly tests”' }).click();
  await page.getByText('Revoked.').waitFor();
  assert.equal(terminal(command, key).error.code, 'unauthorized');

  await go('/dashboard/nowhere');
  await look?.(page, 'missing');
  for (const place of ['', '/numbers', '/numbers/bind', '/settings', '/people', '/sessions', '/audit', '/assistants', '/tools', '/knowledge', '/webhooks']) {
    await go(`/dashboard${place}`);
  }
  if (scripts) {
    await go('/dashboard');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox').fill('front');
    await look(page, 'palette');
    await page.getByRole('combobox').fill('webhooks');
    await page.keyboard.press('Enter');
    await page.waitForURL(/dashboard\/webhooks/);
  }
  await secondPerson(page, email, scripts, look);

  if (scripts) {
    // A session ends while somebody types: after the sign-in it is all there, in a form that was not sent.
    await go('/dashboard/assistants/new');
    await page.locator('#f-name').fill('Night desk');
    await page.locator('#f-instructions').fill('Answer at night.');
    await context.clearCookies();
    await page.getByRole('button', { name: 'Create assistant' }).click();
    await proveAddress(page, email);
    await page.getByText('is here again').waitFor();
    assert.match(page.url(), /assistants\/new$/);
    assert.equal(await page.locator('#f-instructions').inputValue(), 'Answer at night.');
    await page.getByRole('button', { name: 'Create assistant' }).click();
    await page.getByRole('heading', { name: 'Night desk', level: 1 }).waitFor();
    await go('/dashboard/assistants/new');
    assert.equal(await page.locator('#f-name').inputValue(), '', 'a draft comes back once');
    await twoTabs(context, page, email);
    await longNames(page);
  }
  const state = await context.storageState();
  await context.close();
  return state;
}

/** The longest names, with nowhere to break: with them, too, no page may be wider than a telephone. */
async function longNames(page) {
  await page.evaluate(async () => {
    const headers = { 'X-CSRF-Token': document.querySelector('meta[name=csrf]').content, 'Content-Type': 'application/json' };
    // 120 characters; names of documents are taken once.
    let nth = 10_000_000;
    for (const kind of ['assistants', 'knowledge', 'simulations/personas', 'simulations/scenarios']) {
      for (const { id } of await (await fetch(`/dashboard/api/${kind}`)).json()) {
        const answer = await fetch(`/dashboard/api/${kind}/${id}`, { method: 'PATCH', headers, body: JSON.stringify({ name: `${'Zahnarzt'.repeat(14)}${(nth += 1)}` }) });
        if (!answer.ok) throw new Error(await answer.text());
      }
    }
  });
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
  const followed = await followedElsewhere(context);
  const tab = await context.newPage();
  await tab.goto(link);
  await tab.getByRole('button', { name: 'Join' }).click();
  await tab.getByRole('heading', { name: 'Overview' }).waitFor();
  await tab.close();
  await followed();
  await page.getByRole('button', { name: 'Create assistant' }).click();
  await page.getByText('Nothing was done').waitFor();
  await inspectHere(page, 'other-workspace');
  await page.getByRole('button', { name: /^Open / }).click();
  await page.getByText('is here again').waitFor();
  assert.equal(await page.locator('#f-instructions').inputValue(), 'Answer at the weekend.');
  await page.getByRole('button', { name: 'Create assistant' }).click();
  await page.getByRole('heading', { name: 'Weekend desk', level: 1 }).waitFor();
}

/**
 * A page that is followed shows one workspace: when another tab opens another one, it loads again as a whole, and nothing of
 * the one stands under the name of the other. Returns what is to be seen after that.
 */
async function followedElsewhere(context) {
  const page = await context.newPage();
  // Nothing is under way that lasts as long as the test needs; the page says so all the same.
  await page.route('**/dashboard/simulations', async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace('<main ', '<main data-live ') });
  });
  await page.goto(`${base}/dashboard/simulations`);
  const workspace = () => page.locator('meta[name=csrf]').getAttribute('content').then((token) => token.split('.')[0]);
  await page.getByText('Saturday opening').first().waitFor();
  const before = await workspace();
  // A name outlives the page.
  await page.evaluate(() => document.addEventListener('replaced', () => (window.name = 'mixed')));
  return async () => {
    await page.waitForFunction((before) => !document.querySelector('meta[name=csrf]').content.startsWith(before), before);
    assert.equal(await page.evaluate(() => window.name), '', 'no part was replaced by one of the other workspace');
    assert.equal(await page.getByText('Saturday opening').count(), 0);
    await page.close();
  };
}

/** What the editor says while somebody types, and keeps while another form of the page is sent. */
async function typing(page) {
  const told = (name) => page.locator(`#f-${name}-wrong`);
  await page.locator('#f-name').fill('');
  await page.locator('#f-name').blur();
  assert.equal(await told('name').textContent(), 'Must not be empty.');
  await page.locator('#f-name').fill('Reception');
  assert.equal(await told('name').count(), 0);
  await page.getByText('Turn-taking and speech').first().click();
  await page.locator('#f-speech-speed').fill('9');
  await page.locator('#f-speech-speed').blur();
  assert.match(await told('speech-speed').textContent(), /^Must be at most /);
  await page.locator('#f-keyterms').fill(Array(101).fill('term').join('\n'));
  await page.locator('#f-keyterms').blur();
  assert.match(await told('keyterms').textContent(), /^Must have at most \d+ entries\.$/);
  await page.reload();

  // Each button saves all that was typed.
  await page.locator('#f-first_message').click();
  await page.keyboard.type('!');
  await saveBeside(page);
  await page.waitForURL(/done=update_assistant/);
  assert.match(await page.locator('#f-first_message').inputValue(), /!/);

  // Leaving by a link would lose what was typed: the browser asks, and whoever stays can save.
  await page.locator('#f-first_message').click();
  await page.keyboard.type('!');
  const asks = new Promise((resolve) => page.once('dialog', resolve));
  const pressed = page.getByRole('link', { name: 'Its history' }).first().click({ noWaitAfter: true });
  const question = await asks;
  assert.equal(question.type(), 'beforeunload');
  await question.dismiss();
  await pressed;
  assert.match(await page.locator('#f-first_message').inputValue(), /!/);
  await page.waitForFunction(() => [...document.querySelectorAll('main button')].every((button) => !button.disabled));
  await page.reload();
}

/** A call that is under way is followed without disturbing whoever reads. Returns what is to be seen after its end. */
async function followed(context) {
  const page = await context.newPage();
  await page.goto(`${base}/dashboard/calls`);
  await page.locator('td a.name').first().click();
  await page.locator('[data-live]').waitFor({ state: 'attached' });
  await page.getByText('As API call').click();
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: base });
  const snippet = page.locator('details.api[open] .snippet').first();
  await snippet.getByRole('button', { name: 'Copy' }).click();
  await snippet.locator('button.done').waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(copied.startsWith('curl ') && copied === (await snippet.locator('pre').textContent()), copied);
  await page.evaluate(() => document.querySelectorAll('.head, main > *').forEach((part) => (part.dataset.mark = 'same')));
  const same = () => page.locator('.head[data-mark], main > [data-mark]').count();
  const before = await same();
  const polled = () => page.waitForResponse((response) => response.url().includes('/dashboard/calls/call_'));
  await polled();
  await polled();
  assert.ok(before > 3 && (await same()) === before, 'where nothing happens nothing is replaced');
  assert.ok(await page.locator('details.api[open]').isVisible());
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog').waitFor();
  return async () => {
    await polled();
    await polled();
    assert.ok(await page.getByRole('dialog').isVisible());
    assert.equal(await same(), before, 'nothing is replaced behind a dialog');
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Make a scenario' }).waitFor();
    await page.close();
  };
}

/** Somebody is invited, and joins; the own session elsewhere is ended. */
async function secondPerson(page, email, scripts, look) {
  await page.goto(`${base}/dashboard/people`);
  const colleague = `colleague-of-${email}`;
  await page.getByLabel('E-mail address').fill(colleague);
  await page.getByRole('button', { name: 'Invite' }).click();
  const link = await page.locator('code.secret').textContent();
  await look?.(page, 'invited');
  // The link in other hands tells nothing.
  const { pathname, search } = new URL(link);
  await page.goto(base + pathname + search);
  await page.getByText('This invitation is for somebody else').waitFor();
  assert.equal(await page.getByText(colleague).count(), 0);
  await look?.(page, 'not-invited');
  const theirs = await browser.newContext({ javaScriptEnabled: scripts });
  const joining = await theirs.newPage();
  joining.setDefaultTimeout(15_000);
  await joining.goto(base + pathname + search);
  await proveAddress(joining, colleague);
  await joining.getByRole('heading', { name: 'Invitation' }).waitFor();
  await look?.(joining, 'join');
  await joining.getByRole('button', { name: 'Join' }).click();
  await joining.getByRole('heading', { name: 'Overview' }).waitFor();
  await joining.goto(`${base}/dashboard/keys`);
  await joining.getByText('For admins only').or(joining.getByText('Only admins')).first().waitFor();
  await theirs.close();
  await page.goto(`${base}/dashboard/people`);
  await page.getByRole('cell', { name: colleague }).waitFor();

  const telephone = await browser.newContext({ javaScriptEnabled: scripts });
  const elsewhere = await signIn(telephone, email);
  await page.goto(`${base}/dashboard/sessions`);
  await page.locator('main').getByRole('button', { name: 'Sign out' }).first().click();
  await page.getByText('Revoked.').waitFor();
  await elsewhere.goto(`${base}/dashboard/calls`);
  assert.match(elsewhere.url(), /sign-in/, 'the session has ended');
  await telephone.close();
}

try {
  await walk('anna@dental.example', false);
  seen.clear();
  seen.add('/dashboard/sign-in').add(await linkOf(browser, 'link@dental.example'));
  const state = await walk('mira@dental.example', true);
  await inspect(browser, state, seen);
  await attack(browser, 'eve@dental.example');
  console.log(`the dashboard: done twice, ${seen.size} pages inspected in light and dark`);
} finally {
  await browser.close();
}
