// Signs in to the dashboard with a code that came by SMTP. The server and the reader of the mail are from npm.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';

import { simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';

const { SIDETONE_URL: base, SIDETONE_LOG: log, SMTP_PORT: port, SMTP_TLS: folder } = process.env;
const password = 'p@ss /:';
const mails = [];
const server = new SMTPServer({
  key: await readFile(`${folder}/key.pem`),
  cert: await readFile(`${folder}/cert.pem`),
  onAuth({ username, password: given }, session, done) {
    assert.ok(session.secure, 'a password without TLS');
    done(username === 'anna@example.com' && given === password ? null : new Error('no'), { user: username });
  },
  onRcptTo({ address }, _, done) {
    done(address.startsWith('nobody@') ? Object.assign(new Error('no such mailbox'), { responseCode: 550 }) : null);
  },
  async onData(stream, { envelope }, done) {
    mails.push({ envelope, mail: await simpleParser(stream) });
    done();
  },
});
await new Promise((resolve) => server.listen(Number(port), '127.0.0.1', resolve));

/** A browser without scripts: cookies, and the proof of the last form. */
function visitor() {
  const cookies = new Map();
  let csrf;
  return async (path, fields) => {
    const answer = await fetch(base + path, {
      method: fields ? 'POST' : 'GET',
      redirect: 'manual',
      headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
      body: fields && new URLSearchParams({ _csrf: csrf, ...fields }),
    });
    for (const cookie of answer.headers.getSetCookie()) {
      const [name, value] = cookie.split(';')[0].split('=');
      cookies.set(name, value);
    }
    const text = await answer.text();
    csrf = /name="_csrf" value="([^"]+)"/.exec(text)?.[1] ?? csrf;
    return { status: answer.status, text, location: answer.headers.get('location') };
  };
}

const visit = visitor();
await visit('/dashboard/sign-in');
assert.equal((await visit('/dashboard/sign-in', { email: 'ben@example.org' })).status, 303);
assert.equal(mails.length, 1);
const [{ envelope, mail }] = mails;
assert.equal(envelope.mailFrom.address, 'voice@example.com');
assert.deepEqual(envelope.rcptTo.map(({ address }) => address), ['ben@example.org']);
assert.deepEqual(mail.from.value, [{ address: 'voice@example.com', name: 'Sidetone Ünit' }]);
assert.deepEqual(mail.to.value.map(({ address }) => address), ['ben@example.org']);
assert.match(mail.messageId, /@example\.com>$/);
assert.ok(Math.abs(mail.date - Date.now()) < 60_000, String(mail.date));
assert.equal(mail.html, false);
const code = /^(\d{6}) is your code for Sidetone$/.exec(mail.subject)[1];
assert.ok(mail.text.includes(code) && mail.text.includes(`${base}/dashboard/sign-in/link?token=`), mail.text);
await visit('/dashboard/sign-in/code');
assert.deepEqual(await visit('/dashboard/sign-in/code', { code }).then(({ status, location }) => [status, location]), [303, '/dashboard']);

// An invitation that cannot be sent is shown; names in a subject stay in it.
await visit('/dashboard/people');
const failed = await visit('/dashboard/do/invite_person', { email: 'nobody@example.org', role: 'member', _back: '/dashboard/people' });
assert.ok(failed.text.includes('no mail could be sent') && failed.text.includes('/dashboard/join?token='));
const sent = await visit('/dashboard/do/invite_person', { email: 'guest@example.org', role: 'member', _back: '/dashboard/people' });
assert.ok(sent.text.includes('it was sent by mail'), sent.text);
assert.equal(mails[1].mail.subject, 'ben@example.org invites you to ben in Sidetone');

const told = await readFile(log, 'utf8');
assert.match(told, /the mail of invitation inv_\w+ was not sent: .*550.*no such mailbox/);
assert.ok(!told.includes(password) && !told.includes(code), 'neither the password nor a mailed code is in the log');
server.close();
console.log('a code came by SMTP');
process.exit(0);
