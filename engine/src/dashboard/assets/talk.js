// A conversation beside the editor: the link is made without leaving the page, so what was typed there stays.
import { api, say } from './app.js';

const panel = document.getElementById('talk');
const form = panel.querySelector('form');
const button = form.querySelector('button');
const beside = panel.querySelector('.link');
const call = panel.querySelector('.call');

addEventListener('message', ({ origin, data }) => {
  if (origin !== location.origin || !data?.call_id) return;
  beside.hidden = true;
  call.href = `/dashboard/calls/${encodeURIComponent(data.call_id)}`;
  call.hidden = false;
});

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  event.stopPropagation();
  button.disabled = true;
  const answer = await api(`/assistants/${panel.dataset.assistant}/test-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{}',
  }).catch(() => null);
  button.disabled = false;
  const made = await answer?.json().catch(() => null);
  if (!answer?.ok || !made) {
    say(made?.error?.message ?? 'The service did not answer. Try again.');
    return;
  }
  const link = new URL(made.url);
  const frame = document.createElement('iframe');
  frame.title = `Conversation with ${panel.dataset.name}`;
  frame.allow = 'microphone; autoplay';
  frame.src = link.pathname + link.search;
  panel.querySelector('.conversation').replaceChildren(frame);
  beside.hidden = false;
  call.hidden = true;
  beside.querySelector('a').href = made.url;
  beside.querySelector('[data-copy]').dataset.copy = made.url;
  button.textContent = 'New conversation';
  button.classList.remove('primary');
  // On a narrow page the panel has moved above the form.
  panel.scrollIntoView({ block: 'nearest' });
  frame.focus({ preventScroll: true });
});
