// Somebody who writes markup into every text of the dashboard has it shown as text, in a real Chromium.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { base, save, signIn } from './dashboard-tools.mjs';

/** Somebody writes markup wherever a text can be written. It is shown as text, also without the policy that forbids it. */
export async function attack(browser, email) {
  const context = await browser.newContext({ bypassCSP: true, viewport: { width: 1280, height: 800 }, userAgent: 'Agent <img src=x onerror=window.hacked=1>' });
  const page = await signIn(context, email);
  const mark = '<img src=x onerror=window.hacked=1>';
  const hostile = `"'>${mark}<svg onload=window.hacked=1>`;
  const call = (method, path, body) =>
    page.evaluate(
      async ([method, path, body]) => {
        const token = document.querySelector('meta[name=csrf]').content;
        const answer = await fetch(`/dashboard/api${path}`, { method, headers: { 'X-CSRF-Token': token, 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
        const text = await answer.text();
        if (!answer.ok) throw new Error(`${method} ${path}: ${text}`);
        return JSON.parse(text);
      },
      [method, path, body],
    );
  const name = hostile;
  const [tool, document] = [
    await call('POST', '/tools', {
      name: 'look_up', description: hostile, url: 'https://booking.invalid/%3Cimg%20src=x%3E',
      parameters: { type: 'object', properties: { [hostile]: { type: 'string', description: hostile, enum: [hostile] } }, required: [hostile] },
    }),
    await call('POST', '/knowledge', { name, content: hostile, source: hostile }),
  ];
  const assistant = await call('POST', '/assistants', { name, instructions: hostile, first_message: `${hostile} Hello.`, keyterms: [mark], speech: { filler: hostile } });
  await call('PUT', `/assistants/${assistant.id}/tools`, { tool_ids: [tool.id] });
  await call('PUT', `/assistants/${assistant.id}/knowledge`, { knowledge_ids: [document.id] });
  const persona = await call('POST', '/simulations/personas', { name, system_prompt: hostile });
  const evaluations = ['transcript', 'transcript_excludes', 'tool_call'].map((kind) => ({ kind, role: 'any', includes: hostile }));
  const scenario = await call('POST', '/simulations/scenarios', { name, instructions: `Ask "${mark} When do you open?"`, evaluations });
  const simulation = await call('POST', '/simulations', { assistant_id: assistant.id, persona_id: persona.id, scenario_id: scenario.id });
  const webhook = await call('POST', '/webhooks', { url: 'https://hooks.invalid/%3Cimg%20src=x%3E', events: ['call.ended'] });
  await call('PATCH', '/workspace', { name });
  await call('PATCH', `/assistants/${assistant.id}`, { name: `${name} 2` });
  const run = await call('POST', `/simulations/${simulation.id}/runs`, { mode: 'voice' });
  const other = await call('POST', `/simulations/${simulation.id}/runs`, { mode: 'chat' });
  let ended;
  for (let tries = 0; tries < 100; tries += 1, await sleep(100)) {
    ended = await call('GET', `/simulations/runs/${run.id}`);
    if (ended.status === 'completed') break;
  }
  assert.ok(ended.call.transcript.some(({ text }) => text.includes('onerror')), 'the transcript has it');

  const harmless = async () => {
    await page.evaluate(() => window.document.querySelectorAll('details').forEach((part) => (part.open = true)));
    await sleep(50);
    assert.equal(await page.evaluate(() => window.hacked), undefined, page.url());
  };
  const go = async (path) => {
    await page.goto(base + path);
    await harmless();
  };
  await go('/dashboard/keys');
  await page.getByLabel('Name').fill(hostile);
  await page.getByRole('button', { name: 'Create key' }).click();
  await harmless();
  const [of, sims] = [`/dashboard/assistants/${assistant.id}`, '/dashboard/simulations'];
  const paths = ['', '/calls', `/calls?search=${encodeURIComponent(hostile)}&model=${encodeURIComponent(hostile)}`, `/calls/${ended.call_id}`, `/calls/${ended.call_id}/scenario`,
    '/assistants', '/tools', `/tools/${tool.id}`, '/knowledge', `/knowledge/${document.id}`, '/webhooks', `/webhooks/${webhook.id}`, '/keys', '/settings', '/people', '/sessions', '/audit', '/numbers/bind'];
  for (const path of paths) await go(`/dashboard${path}`);
  for (const path of ['', '/new', `/scenarios/${scenario.id}`, `/personas/${persona.id}`, `/runs/${run.id}`, `/runs/${run.id}/compare/${other.id}`]) await go(sims + path);
  for (const path of ['', '/history', '/simulate']) await go(of + path);
  // What only a script or a form shows: the preview of a tool, a conflict, a problem, the palette.
  await go(`/dashboard/tools/${tool.id}`);
  await page.locator('#f-parameters').fill(JSON.stringify({ properties: { [`${hostile}2`]: { description: hostile, enum: [hostile] } } }));
  await page.getByText(`${hostile}2`).first().waitFor();
  await harmless();
  await go(of);
  await call('PATCH', `/assistants/${assistant.id}`, { name: `${name} 3` });
  await page.locator('#f-name').fill(`${name} 4`);
  await save(page);
  await page.locator('.version pre').first().waitFor();
  await harmless();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to' }).fill('onerror');
  await page.getByRole('option', { name: 'onerror' }).first().waitFor();
  await harmless();
  await context.close();
}
