// A webhook of the dashboard in a real Chromium, and a receiver: the page follows the delivery, and "Send again" sends the
// same event. Against a server of its own that may send to this machine.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';

import { base, launch, signIn } from './dashboard-tools.mjs';

const arrived = [];
const receiver = createServer((request, response) => {
  arrived.push(request.headers['webhook-id']);
  response.end();
});
receiver.listen(0, '127.0.0.1');
await once(receiver, 'listening');
const browser = await launch();
try {
  const page = await signIn(await browser.newContext(), 'mira@webhooks.example');
  await page.goto(`${base}/dashboard/webhooks/new`);
  await page.getByLabel('URL').fill(`http://127.0.0.1:${receiver.address().port}/events`);
  await page.getByRole('button', { name: 'Create webhook' }).click();
  await page.getByRole('button', { name: 'Send test event' }).click();
  const row = page.getByRole('row').filter({ hasText: 'webhook.test' });
  await row.first().getByText('Delivered').waitFor();
  await row.first().getByRole('button', { name: 'Send again' }).click();
  await page.getByText('The delivery was queued.').waitFor();
  const delivery = page.locator(`tr${await page.getByRole('link', { name: 'Show the delivery' }).getAttribute('href')}`);
  await delivery.getByText('Delivered').waitFor();
  assert.equal(arrived.length, 2);
  assert.equal(arrived[0], arrived[1], 'it is the same event');
  console.log('a webhook of the dashboard: delivered, and sent again');
} finally {
  await browser.close();
  receiver.close();
}
