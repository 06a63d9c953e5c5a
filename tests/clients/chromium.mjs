// A headless Chromium, driven over its DevTools protocol. `CHROMIUM` is its path.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 15_000;

/** Starts Chromium, passes it to `use`, and ends it whatever happens. */
export async function withChromium(use) {
  const profile = await mkdtemp(join(tmpdir(), 'chromium-'));
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-port=0', '--use-fake-device-for-media-stream'];
  const child = spawn(process.env.CHROMIUM ?? 'chromium', [...flags, `--user-data-dir=${profile}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  try {
    const browser = await connect(await address(child));
    await use(browser);
  } finally {
    child.kill('SIGKILL');
    await gone;
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

function address(child) {
  return new Promise((resolve, reject) => {
    let printed = '';
    child.stderr.on('data', (part) => {
      printed += part;
      const found = /DevTools listening on (ws:\S+)/.exec(printed);
      if (found) resolve(found[1]);
    });
    child.once('exit', () => reject(new Error(`Chromium ended: ${printed}`)));
  });
}

async function connect(url) {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const waiting = new Map();
  const errors = [];
  let last = 0;
  socket.onmessage = ({ data }) => {
    const { id, error, result, method, params } = JSON.parse(data);
    if (method === 'Runtime.exceptionThrown') errors.push(params.exceptionDetails.exception?.description);
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error) asked?.reject(new Error(`${asked.method}: ${error.message}`));
    else asked?.resolve(result);
  };
  const send = (method, params = {}, sessionId = undefined) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject, method });
      socket.send(JSON.stringify({ id: last, method, params, sessionId }));
    });
  return { send, errors, open: (url, options) => open(send, url, options) };
}

/** A page in a profile of its own. `first` runs before the page's script. */
async function open(send, url, { first = '', microphone = 'granted', width = 1000, height = 900, scheme = 'light' } = {}) {
  const { browserContextId } = await send('Target.createBrowserContext');
  const { targetId } = await send('Target.createTarget', { url: 'about:blank', browserContextId });
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
  const call = (method, params) => send(method, params, sessionId);
  await send('Browser.setPermission', {
    permission: { name: 'microphone' }, setting: microphone, origin: new URL(url).origin, browserContextId,
  });
  await call('Runtime.enable');
  await call('Page.enable');
  await call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
  await call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  await call('Page.addScriptToEvaluateOnNewDocument', { source: first });
  await call('Page.navigate', { url });
  const page = {
    /** The value of an expression in the page. */
    async run(expression) {
      const { result, exceptionDetails } = await call('Runtime.evaluate', { expression, returnByValue: true, userGesture: true });
      assert.equal(exceptionDetails, undefined, `${expression}: ${exceptionDetails?.exception?.description}`);
      return result.value;
    },
    /** Waits until the expression is true. */
    async until(expression) {
      for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await sleep(50)) {
        if (await page.run(expression)) return;
      }
      assert.fail(`${expression} did not become true; the page says:\n${await page.run('document.body.innerText')}`);
    },
    async shot(path) {
      const { data } = await call('Page.captureScreenshot', { format: 'png' });
      await writeFile(path, Buffer.from(data, 'base64'));
    },
    leave: () => call('Page.navigate', { url: 'about:blank' }),
    scheme: (value) => call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] }),
    size: (width, height) => call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false }),
  };
  await page.until('document.readyState === "complete" && location.href !== "about:blank"');
  return page;
}
