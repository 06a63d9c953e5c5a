// What every page does with a script: copies, tells times in the viewer's zone, follows what is under way, goes anywhere.
const root = document.documentElement;
root.classList.add('js');
const all = (selector, from = document) => from.querySelectorAll(selector);

// The stylesheet came with the page. From now on it comes from the browser's cache, and pages are smaller.
const style = document.querySelector('style[data-file]');
if (style) {
  fetch(style.dataset.file)
    .then((answer) => {
      if (answer.ok) document.cookie = `sidetone_style=${style.dataset.version}; path=/dashboard; max-age=31536000; samesite=lax`;
    })
    .catch(() => {});
}

/** Says something for a moment, also to screen readers; `lasting`: until something else is said. */
export function say(text, lasting = false) {
  let toast = document.querySelector('.toast');
  if (!toast) {
    toast = Object.assign(document.createElement('p'), { className: 'toast' });
    toast.setAttribute('role', 'status');
    document.body.append(toast);
  }
  toast.hidden = false;
  toast.textContent = text;
  clearTimeout(toast.timer);
  if (!lasting) toast.timer = setTimeout(() => (toast.hidden = true), 2500);
}

/** What proves that a form of this page is ours, and which workspace it is for. */
const token = (page) => page.querySelector('meta[name=csrf]')?.content ?? '';
export const workspace = (page) => token(page).split('.')[0];
/** Its workspace and session, which stand before a proof that is other bytes on each page. */
const openIn = (page) => token(page).split('.', 2).join();
/** Who is signed in; not told by pages without a rail. */
export const person = document.querySelector('.who span')?.title;

const SIGN_IN = '/dashboard/sign-in';
/** Whether a request was sent on to the sign-in: its session has ended. */
const asksToSignIn = ({ url }) => new URL(url).pathname.startsWith(SIGN_IN);

/** A request to the API as the person who is signed in. */
export async function api(path, options = {}) {
  return fetch(`/dashboard/api${path}`, { ...options, headers: { 'X-CSRF-Token': token(document), ...options.headers } });
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy || button.previousElementSibling.textContent);
      button.classList.add('done');
      setTimeout(() => button.classList.remove('done'), 1500);
      say('Copied');
    } catch {
      say('The browser did not allow it. Select the text and copy it.');
    }
  }
  for (const open of all('details.api[open], details.more[open]')) {
    if (!open.contains(event.target)) open.open = false;
  }
  if (event.target.closest('[data-palette]')) openPalette();
});

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    for (const open of all('details.api[open], details.more[open]')) {
      open.open = false;
      open.querySelector('summary').focus();
    }
  }
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    openPalette();
  }
});

// A question before something is deleted keeps the focus until it is answered.
document.addEventListener('click', (event) => {
  const question = event.target.closest('button')?.popoverTargetElement;
  if (!question) return;
  event.preventDefault();
  if (question.open) question.close();
  else question.showModal();
});

async function openPalette() {
  (await import('./palette.js')).open();
}

/** How `data-date` asks for a time to be written. */
const DATES = { '': { dateStyle: 'medium' }, short: { dateStyle: 'medium', timeStyle: 'short' }, second: { dateStyle: 'medium', timeStyle: 'medium' }, hour: { hour: '2-digit', minute: '2-digit' } };

/** Times in the viewer's zone: dates as they stand, relative ones on hover; UTC is on hover, too. */
function tellTimes(from) {
  for (const time of all('time[datetime]', from)) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime()) || time.dataset.told) continue;
    time.dataset.told = '1';
    const utc = time.title || time.textContent;
    const format = DATES[time.dataset.date];
    if (format) time.textContent = date.toLocaleString(undefined, format);
    time.title = `${date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' })} (${Intl.DateTimeFormat().resolvedOptions().timeZone})\n${utc}`;
  }
}

/** What can be read again: the strip above the page, and its parts but for what is told once. */
const parts = (from) => [from.querySelector('.head'), ...all('main > :not(.notice, .problem, .once, noscript)', from)];
// Each form has a number and a proof of its own whenever it is read.
const texts = (parts) => parts.map((part) => part.outerHTML.replaceAll(/name="_(once|csrf)" value="[^"]*"/g, ''));

/** Puts a fresh part in place: what was open stays open, and what had the focus has it again. */
function replace(old, fresh) {
  const places = 'a, button, summary';
  const focused = [...all(places, old)].indexOf(document.activeElement);
  const open = [...all('details', old)].map((details) => details.open);
  old.replaceWith(fresh);
  all('details', fresh).forEach((details, at) => (details.open = open[at] ?? details.open));
  all(places, fresh)[focused]?.focus({ preventScroll: true });
}

const SESSION_ENDED = 'Your session has ended. Load the page again to sign in.';
/** So often the service may fail to answer in a row, with longer and longer pauses: for some minutes. */
const FAILURES_MAX = 10;

/** What is under way: the page is read again, and only what changed at the server is put in place. */
async function follow() {
  if (!document.querySelector('[data-live]')) return;
  // Scripts change the page, so what the server sends is compared with what it sent before.
  let known = texts(parts(document));
  let pause = 1500;
  let failures = 0;
  while (document.querySelector('[data-live]')) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (document.hidden) continue;
    const answer = await fetch(document.querySelector('main').dataset.page, { headers: { Accept: 'text/html' } }).catch(() => null);
    if (answer && asksToSignIn(answer)) return say(SESSION_ENDED, true);
    if (!answer?.ok) {
      failures += 1;
      // What is gone, or refused, stays so; a busy service and a lost connection come back.
      const passes = !answer || answer.status >= 500 || answer.status === 429;
      if (!passes || failures >= FAILURES_MAX) return say('This page no longer follows what happens. Load it again.', true);
      pause = Math.min(pause * 2, 30_000);
      continue;
    }
    failures = 0;
    pause = 1500;
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
    // Whoever types, or reads a question, is not disturbed.
    if (!next.querySelector('.head') || document.querySelector('dialog[open]') || document.activeElement?.matches('main :is(input, select, textarea)')) continue;
    // Another tab has opened another workspace: not under this one's name.
    if (openIn(next) !== openIn(document)) return location.reload();
    const [old, fresh] = [parts(document), parts(next)];
    const sent = texts(fresh);
    if (sent.join() === known.join()) continue;
    if (old.length === fresh.length) old.forEach((part, at) => sent[at] === known[at] || replace(part, fresh[at]));
    else {
      old[0].replaceWith(fresh[0]);
      old.slice(1).forEach((part) => part.remove());
      document.querySelector('main').append(...fresh.slice(1));
    }
    known = sent;
    ready(document);
    document.dispatchEvent(new Event('replaced'));
  }
  document.querySelector('[data-until-over]')?.remove();
}

function ready(from) {
  tellTimes(from);
  for (const hidden of all('[data-palette]', from)) hidden.hidden = false;
}

for (const form of all('form[data-auto]')) {
  form.addEventListener('change', (event) => {
    if (event.target.matches('select, input[type=date], input[list]')) form.requestSubmit();
  });
  // What is empty stays out of the address.
  form.addEventListener('formdata', (event) => {
    for (const [name, value] of [...event.formData]) if (value === '') event.formData.delete(name);
  });
}
document.addEventListener('submit', ({ target, defaultPrevented }) => {
  if (target.getAttribute('action') === '/dashboard/sign-out') sessionStorage.removeItem(DRAFT);
  // A second press sends nothing twice.
  if (!defaultPrevented && target.matches('form[method=post]')) setTimeout(() => all('button').forEach((button) => button.form === target && (button.disabled = true)));
});
/** Forms that were not sent after all can be sent. */
export const enableForms = () => all('button').forEach((button) => button.form?.method === 'post' && (button.disabled = false));
addEventListener('pageshow', (event) => event.persisted && enableForms());

// Forms that were sent without a session, or from another workspace: their draft waits for the sign-in or the other
// workspace, and is of no use once anything else was opened, or somebody else has signed in.
export const DRAFT = 'sidetone_draft';
const draft = JSON.parse(sessionStorage.getItem(DRAFT) ?? 'null');
const isSignIn = location.pathname.startsWith(SIGN_IN);
if (draft && (isSignIn || document.querySelector('[data-keeps-draft]'))) {
  sessionStorage.setItem(DRAFT, JSON.stringify({ ...draft, waits: true }));
  if (isSignIn) say('Your session had ended. What you typed is kept in this tab until you have signed in.', true);
} else if (draft && (!draft.waits || (person !== undefined && person !== draft.person))) sessionStorage.removeItem(DRAFT);

// A form that failed answers at its own address; opened again, that is the page that the form is on.
const page = document.querySelector('main')?.dataset.page;
if (page && location.pathname.startsWith('/dashboard/do/')) history.replaceState(null, '', page);

follow();
ready(document);
document.querySelector('.problem[role=alert], .once')?.focus({ preventScroll: true });
