// What the checks of the test page share: the API, links, and screenshots.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** For the server in SIDETONE_URL with the key in SIDETONE_KEY; screenshots go to the folder in SHOTS, if there is one. */
export function pageTools() {
  const { SIDETONE_URL, SIDETONE_KEY, SHOTS } = process.env;

  async function api(method, path, body) {
    const headers = { Authorization: `Bearer ${SIDETONE_KEY}`, 'Content-Type': 'application/json' };
    const answer = await fetch(SIDETONE_URL + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${text}`);
    return text && JSON.parse(text);
  }
  return {
    api,
    async link(assistantId, options = {}) {
      const { url } = await api('POST', `/assistants/${assistantId}/test-token`, options);
      const { pathname, search } = new URL(url);
      return SIDETONE_URL + pathname + search;
    },
    /** The text of an element, as an expression in the page. */
    text: (id) => `document.getElementById(${JSON.stringify(id)}).innerText`,
    press: (page, id) => page.run(`document.getElementById(${JSON.stringify(id)}).click()`),
    async shot(page, name) {
      if (!SHOTS) return;
      for (const scheme of ['light', 'dark']) {
        for (const width of [1000, 360]) {
          await page.scheme(scheme);
          await page.size(width, width === 360 ? 740 : 760);
          await sleep(250);
          await page.shot(join(SHOTS, `${name}-${scheme}-${width}.png`));
        }
      }
    },
    async ended(id) {
      for (let tries = 0; tries < 100; tries += 1, await sleep(100)) {
        const call = await api('GET', `/calls/${id}`);
        if (call.status === 'ended') return call;
      }
      throw new Error(`call ${id} did not end`);
    },
  };
}
