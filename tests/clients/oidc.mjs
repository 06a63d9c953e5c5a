// Signs in to the dashboard at an OpenID provider from npm, in Chromium. `oidc-provider` is strict: it wants PKCE, checks the
// redirect URI and the client, and tells the address at its userinfo endpoint alone. `oauth2-mock-server` asks nobody anything,
// and lets a test change what it signs: what it should not have signed must open nothing.
import assert from 'node:assert/strict';

import { chromium } from 'playwright-core';

const {
  SIDETONE_URL: base,
  SIDETONE_GOOGLE_ISSUER: issuer,
  SIDETONE_GOOGLE_CLIENT_ID: client_id,
  SIDETONE_GOOGLE_CLIENT_SECRET: client_secret,
  CHROMIUM = 'chromium',
} = process.env;
const callback = `${base}/dashboard/sign-in/google/callback`;
const port = Number(new URL(issuer).port);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });

/** A browser that has pressed the button. */
async function begin(next = '/dashboard/keys') {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(15_000);
  await page.goto(`${base}${next}`);
  await page.getByRole('link', { name: 'Continue with' }).click();
  return page;
}

async function signedIn(page, email) {
  await page.waitForURL(`${base}/dashboard/keys`);
  const cookies = await page.context().cookies(base);
  const session = cookies.find(({ name }) => name.endsWith('sidetone_session'));
  assert.ok(session?.httpOnly && session.sameSite === 'Lax', JSON.stringify(cookies));
  await page.goto(`${base}/dashboard/people`);
  await page.getByText(email).first().waitFor();
  const workspace = await (await page.request.get(`${base}/dashboard/api/workspace`)).json();
  return workspace.id;
}

async function strict() {
  const { default: Provider } = await import('oidc-provider');
  const provider = new Provider(issuer, {
    clients: [{ client_id, client_secret, redirect_uris: [callback], token_endpoint_auth_method: 'client_secret_basic' }],
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: ['a key of the tests'] },
    pkce: { required: () => true },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@strict.example`, email_verified: id !== 'unproven' }),
    }),
  });
  const errors = [];
  for (const event of ['server_error', 'authorization.error', 'grant.error', 'userinfo.error']) {
    provider.on(event, (_, error) => errors.push(`${event}: ${error.message} ${error.error_description ?? ''}`));
  }
  const server = provider.listen(port, '127.0.0.1');
  const walk = async (name) => {
    const page = await begin();
    await page.locator('input[name=login]').fill(name);
    await page.locator('input[name=password]').fill('any');
    await page.locator('button[type=submit]').click();
    await page.locator('button[type=submit]').click(); // consent
    return page;
  };
  const first = await walk('anna');
  const workspace = await signedIn(first, 'anna@strict.example').catch((error) => {
    throw new Error(`${error.message}\n${errors.join('\n')}`);
  });
  assert.equal(await signedIn(await walk('anna'), 'anna@strict.example'), workspace, 'the same person');
  assert.notEqual(await signedIn(await walk('ben'), 'ben@strict.example'), workspace, 'somebody else');
  assert.deepEqual(errors, [], 'the provider had nothing to complain about');
  const unproven = await walk('unproven');
  await unproven.getByText("The provider's answer was not accepted").waitFor();
  // Somebody who presses Cancel is told so, and can begin again.
  const page = await begin();
  await page.locator('a[href*="abort"]').click();
  await page.getByText('The provider did not sign you in').waitFor();
  server.close();
  server.closeAllConnections();
}

async function mock() {
  const { OAuth2Server } = await import('oauth2-mock-server');
  const server = new OAuth2Server();
  await server.issuer.keys.generate('RS256');
  await server.start(port, '127.0.0.1');
  server.issuer.url = issuer;
  const payload = { email: 'anna@mock.example', email_verified: true, sub: 'anna' };
  let change = {};
  server.service.on('beforeTokenSigning', (token) => Object.assign(token.payload, payload, change));
  const page = await begin();
  const workspace = await signedIn(page, payload.email);
  assert.ok(workspace.startsWith('ws_'), workspace);
  const refused = async (page) => {
    await page.getByText("The provider's answer was not accepted").waitFor();
    assert.equal((await page.request.get(`${base}/dashboard/api/workspace`)).status(), 401);
  };
  for (const wrong of [
    { aud: 'another-client' },
    { nonce: 'of another sign-in' },
    { iss: 'https://evil.example' },
    { exp: 1 },
    { email_verified: false },
  ]) {
    change = wrong;
    await refused(await begin()).catch((error) => assert.fail(`${JSON.stringify(wrong)}: ${error.message}`));
  }
  change = {};
  // A response that this browser did not ask for, and one that comes twice.
  let seen;
  server.service.once('beforeAuthorizeRedirect', ({ url }) => (seen = url.href));
  await (await begin()).waitForURL(`${base}/dashboard/keys`);
  const thief = await (await browser.newContext()).newPage();
  await thief.goto(seen);
  await thief.getByText('was not begun in this browser').waitFor();
  // A state that we did not send.
  server.service.once('beforeAuthorizeRedirect', ({ url }) => url.searchParams.set('state', 'forged'));
  await (await begin()).getByText('was not begun in this browser').waitFor();
  // A key that nobody knows.
  server.service.once('beforeResponse', (response) => {
    const [head, body, signature] = response.body.id_token.split('.');
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'JWT' })).toString('base64url');
    assert.ok(head && signature);
    response.body.id_token = `${none}.${body}.`;
  });
  await refused(await begin());
  await server.stop();
}

try {
  await { 'oidc-provider': strict, 'oauth2-mock-server': mock }[process.argv[2]]();
} finally {
  await browser.close();
}
console.log(`signed in at ${process.argv[2]}`);
process.exit(0);
