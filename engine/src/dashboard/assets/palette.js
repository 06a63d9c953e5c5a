// Goes anywhere by its name: pages, assistants, an id.
import { api } from './app.js';

let dialog, input, list, entries, shown, at;

const KINDS = [
  ['call_', '/dashboard/calls/'],
  ['asst_', '/dashboard/assistants/'],
  ['tool_', '/dashboard/tools/'],
  ['doc_', '/dashboard/knowledge/'],
  ['run_', '/dashboard/simulations/runs/'],
  ['scen_', '/dashboard/simulations/scenarios/'],
  ['pers_', '/dashboard/simulations/personas/'],
  ['hook_', '/dashboard/webhooks/'],
];

/** What is found by its name. */
const NAMED = [
  ['/assistants', 'assistant'],
  ['/tools', 'tool'],
  ['/knowledge', 'document'],
  ['/simulations/scenarios', 'scenario'],
  ['/simulations/personas', 'persona'],
];

const MORE = [
  ['Create assistant', '/dashboard/assistants/new'],
  ['Create tool', '/dashboard/tools/new'],
  ['Add document', '/dashboard/knowledge/new'],
  ['Bind number', '/dashboard/numbers/bind'],
  ['Create webhook', '/dashboard/webhooks/new'],
  ['Create simulation', '/dashboard/simulations/new'],
  ['Create scenario', '/dashboard/simulations/scenarios/new'],
  ['Create persona', '/dashboard/simulations/personas/new'],
  ['People', '/dashboard/people'],
  ['Sessions', '/dashboard/sessions'],
  ['Switch workspace', '/dashboard/sessions'],
  ['Audit log', '/dashboard/audit'],
  ['Failed calls', '/dashboard/calls?outcome=failed'],
  ['API reference', '/docs'],
];

function build() {
  dialog = document.createElement('dialog');
  dialog.className = 'palette';
  dialog.setAttribute('aria-label', 'Go to');
  dialog.innerHTML =
    '<input role="combobox" aria-expanded="true" aria-controls="palette-list" aria-label="Go to" placeholder="A page, a name, an id" autocomplete="off" spellcheck="false"><ul id="palette-list" role="listbox" aria-label="Places"></ul>';
  document.body.append(dialog);
  [input, list] = dialog.children;
  entries = [...document.querySelectorAll('.rail nav a')].map((link) => [link.textContent, link.getAttribute('href'), 'page']);
  entries.push(...MORE.map(([name, href]) => [name, href, /^(Create|Add|Bind)/.test(name) ? 'action' : 'page']));
  input.addEventListener('input', show);
  input.addEventListener('keydown', key);
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close();
    const item = event.target.closest('li');
    if (item) go(Number(item.dataset.at));
  });
  for (const [path, kind] of NAMED) {
    api(`${path}?limit=200`)
      .then((answer) => (answer.ok ? answer.json() : []))
      .then((resources) => {
        for (const { id, name } of resources) entries.push([name, `/dashboard${path}/${id}`, kind]);
        show();
      })
      .catch(() => {});
  }
}

export function open() {
  if (!dialog) build();
  if (dialog.open) return;
  input.value = '';
  dialog.showModal();
  show();
}

function show() {
  const asked = input.value.trim().toLowerCase();
  const words = asked.replace(/^new\b/, 'create').split(/\s+/);
  shown = entries.filter(([name]) => words.every((word) => name.toLowerCase().includes(word)));
  const kind = KINDS.find(([start]) => asked.startsWith(start));
  if (kind) shown.unshift([`Open ${asked}`, kind[1] + encodeURIComponent(asked), 'id']);
  if (asked && !kind) shown.push([`Search calls for “${input.value.trim()}”`, `/dashboard/calls?search=${encodeURIComponent(input.value.trim())}`, 'calls']);
  shown = shown.slice(0, 12);
  at = 0;
  list.replaceChildren(
    ...shown.map(([name, , what], index) => {
      const item = document.createElement('li');
      item.id = `palette-${index}`;
      item.dataset.at = index;
      item.setAttribute('role', 'option');
      const kindOf = document.createElement('span');
      kindOf.textContent = what;
      item.append(name, kindOf);
      return item;
    }),
  );
  mark();
}

function mark() {
  [...list.children].forEach((item, index) => item.setAttribute('aria-selected', index === at));
  list.children[at]?.scrollIntoView({ block: 'nearest' });
  input.setAttribute('aria-activedescendant', shown.length ? `palette-${at}` : '');
}

function key(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) {
    event.preventDefault();
    at = (at + step + shown.length) % shown.length;
    mark();
  }
  if (event.key === 'Enter') {
    event.preventDefault();
    go(at);
  }
}

function go(index) {
  const place = shown[index];
  if (place) location.href = place[1];
}
