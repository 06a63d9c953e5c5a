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

/** Says something for a moment, also to screen readers. */
export function say(text) {
  let toast = document.querySelector('.toast');
  if (!toast) {
    toast = Object.assign(document.createElement('p'), { className: 'toast' });
    toast.setAttribute('role', 'status');
    document.body.append(toast);
  }
  toast.hidden = false;
  toast.textContent = text;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => (toast.hidden = true), 2500);
}

/** What proves that a form of this page is ours, and which workspace it is for. */
const token = (page) => page.querySelector('meta[name=csrf]')?.content ?? '';

/** A request to the API as the person who is signed in. */
export async function api(path, options = {}) {
  return fetch(`/dashboard/api${path}`, { ...options, headers: { 'X-CSRF-Token': token(document), ...options.headers } });
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest('[data-copy]');
  if (button) {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
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

async function openPalette() {
  (await import('./palette.js')).open();
}

/** Times: the viewer's zone first, then UTC. */
function tellTimes(from) {
  for (const time of all('time[datetime]', from)) {
    const date = new Date(time.dateTime);
    if (Number.isNaN(date.getTime()) || time.dataset.told) continue;
    time.dataset.told = '1';
    const own = date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    time.title = `${own} (${zone})\n${time.title}`;
  }
}

/** What is under way: the page is read again, and only what changed is put in place. */
async function follow() {
  let pause = 1500;
  while (document.querySelector('[data-live]')) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    if (document.hidden) continue;
    const busy = document.activeElement?.closest('form') && document.activeElement.closest('main');
    const answer = await fetch(document.querySelector('main').dataset.page, { headers: { Accept: 'text/html' } }).catch(() => null);
    if (!answer?.ok) {
      pause = Math.min(pause * 2, 30_000);
      continue;
    }
    pause = 1500;
    const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const [old, fresh] = [document.querySelector('main'), next.querySelector('main')];
    if (busy || !fresh) continue;
    // Another tab has opened another workspace: not under this one's name.
    if (token(next) !== token(document)) return location.reload();
    if (old.innerHTML !== fresh.innerHTML) {
      const scroll = scrollY;
      old.replaceChildren(...fresh.childNodes);
      document.querySelector('.head').replaceWith(next.querySelector('.head'));
      scrollTo(0, scroll);
      ready(document);
      document.dispatchEvent(new Event('replaced'));
    }
  }
}

function ready(from) {
  tellTimes(from);
  for (const hidden of all('[data-palette]', from)) hidden.hidden = false;
}

for (const form of all('form[data-auto]')) {
  form.addEventListener('change', (event) => {
    if (event.target.matches('select, input[type=date]')) form.requestSubmit();
  });
  // What is empty stays out of the address.
  form.addEventListener('formdata', (event) => {
    for (const [name, value] of [...event.formData]) if (value === '') event.formData.delete(name);
  });
}
for (const form of all('form[method=post]')) {
  // A second press sends nothing twice.
  form.addEventListener('submit', () => setTimeout(() => all('button', form).forEach((button) => (button.disabled = true))));
}
addEventListener('pageshow', (event) => {
  if (event.persisted) all('form[method=post] button').forEach((button) => (button.disabled = false));
});

// A form that was sent without a session, or from another workspace: its draft waits for the sign-in or the other
// workspace, and is of no use once anything else was opened.
const draft = sessionStorage.getItem('sidetone_draft');
const waits = location.pathname.startsWith('/dashboard/sign-in') || document.querySelector('[data-keeps-draft]');
if (draft && waits) sessionStorage.setItem('sidetone_draft', JSON.stringify({ ...JSON.parse(draft), waits: true }));
else if (draft && !JSON.parse(draft).waits) sessionStorage.removeItem('sidetone_draft');

ready(document);
follow();
document.querySelector('.problem[role=alert]')?.focus({ preventScroll: true });
