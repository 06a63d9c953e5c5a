// Reads `[{secret, headers, body, verifies}]` and verifies each with the official JavaScript library.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Webhook } from 'standardwebhooks';

const all = JSON.parse(readFileSync(0, 'utf8'));
for (const { secret, headers, body, verifies } of all) {
  if (verifies) assert.deepEqual(new Webhook(secret).verify(body, headers), JSON.parse(body));
  else assert.throws(() => new Webhook(secret).verify(body, headers), /signature/);
}
console.log(`${all.length} verdicts`);
