// What makes forms quicker: counters, what is wrong while it is typed, rows that come and go, a preview of tools.
import { enableForms } from './app.js';
import { restore } from './draft.js';

const all = (selector, from = document) => from.querySelectorAll(selector);
const bytes = new TextEncoder();
/** What each form held when the page came. */
const text = (form) => new URLSearchParams(new FormData(form)).toString();
const began = new Map([...all('form.edit')].map((form) => [form, text(form)]));
/** The forms with something typed that is not sent. */
const changed = new Set(restore());

/** How much of its limit a field uses. */
const limits = new Map();
for (const count of all('.count[data-for]')) {
  const field = document.getElementById(count.dataset.for);
  if (!field) continue;
  const [most, inBytes] = [Number(count.dataset.most), 'bytes' in count.dataset];
  const length = () => (inBytes ? bytes.encode(field.value).length : [...field.value].length);
  limits.set(field, { most, length, unit: inBytes ? 'bytes' : 'characters' });
  const show = () => {
    // Beside a short field it shows up when it matters.
    count.hidden = most < 1000 && length() < most * 0.7;
    count.textContent = `${length().toLocaleString('en')} of ${most.toLocaleString('en')}${inBytes ? ' bytes' : ''}`;
    count.classList.toggle('over', length() > most);
  };
  field.addEventListener('input', show);
  show();
}

/** The problem of a field, in words, where the server would put it. */
function tell(field, message) {
  const id = `${field.id}-wrong`;
  let line = document.getElementById(id);
  const about = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((other) => other && other !== id);
  if (message) about.unshift(id);
  if (about.length) field.setAttribute('aria-describedby', about.join(' '));
  else field.removeAttribute('aria-describedby');
  if (!message) {
    line?.remove();
    field.removeAttribute('aria-invalid');
    return;
  }
  if (!line) {
    line = Object.assign(document.createElement('p'), { className: 'wrong', id });
    field.closest('.field').append(line);
  }
  line.textContent = message;
  field.setAttribute('aria-invalid', 'true');
}

function json(field) {
  try {
    return [JSON.parse(field.value || 'null'), ''];
  } catch (error) {
    return [undefined, `This is not JSON yet: ${error.message}.`];
  }
}

/** What is told at once; anything else waits until the field is left. */
function wrongNow(field) {
  const limit = limits.get(field);
  if (limit && limit.length() > limit.most) return `Must have at most ${limit.most.toLocaleString('en')} ${limit.unit}.`;
  return 'json' in field.dataset ? json(field)[1] : '';
}

/** What is wrong with a field by the limits of its schema, in the server's words. */
function wrong(field) {
  const { min, max, validity, value, dataset } = field;
  if (field.ariaRequired === 'true' && !value.trim()) return 'Must not be empty.';
  if (validity.badInput) return 'Must be a number.';
  if (validity.rangeUnderflow) return `Must be at least ${min}.`;
  if (validity.rangeOverflow) return `Must be at most ${max}.`;
  if (validity.stepMismatch) return 'Must be a whole number.';
  if (dataset.items && value.split('\n').filter((line) => line.trim()).length > dataset.items) return `Must have at most ${dataset.items} entries.`;
  return wrongNow(field);
}

/** The end of the press that is under way: a line that appears in it would move a button away from under the pointer. */
let pressed = Promise.resolve();
document.addEventListener('pointerdown', () => {
  pressed = new Promise((over) => {
    for (const end of ['pointerup', 'pointercancel']) addEventListener(end, () => setTimeout(over), { once: true, capture: true });
  });
});

for (const field of all('form.edit .field :is(input, textarea)[id]:not([type=checkbox], [type=file])')) {
  field.addEventListener('input', () => tell(field, field.ariaInvalid === 'true' ? wrong(field) : wrongNow(field)));
  field.addEventListener('change', () => pressed.then(() => tell(field, wrong(field))));
}

// What the browser refuses to send is told at its field, too, and what hides the field opens.
document.addEventListener(
  'invalid',
  ({ target }) => {
    if (!target.closest('form.edit .field') || !target.id) return;
    for (let hides = target.closest('details:not([open])'); hides; hides = hides.closest('details:not([open])')) hides.open = true;
    tell(target, wrong(target) || target.validationMessage);
  },
  true,
);

const TYPES = { string: 'text', integer: 'whole number', boolean: 'yes or no', array: 'list' };

/** What the assistant fills in, as the schema describes it; the server has told it of what is saved. */
for (const preview of all('[data-preview]')) {
  const field = document.getElementById(preview.dataset.preview);
  field?.addEventListener('input', () => {
    const [schema] = json(field);
    if (schema === undefined) return;
    const properties = Object.entries(schema?.properties ?? {});
    preview.hidden = properties.length === 0;
    preview.querySelector('dl').replaceChildren(
      ...properties.map(([name, property]) => {
        const { type, enum: choices, description } = Object(property);
        const kind = Array.isArray(choices) && choices.length ? choices.join(' or ') : typeof type === 'string' ? (TYPES[type] ?? type) : 'any value';
        const required = [].concat(schema.required ?? []).includes(name) ? ', required' : '';
        const [pair, term, told, code] = ['div', 'dt', 'dd', 'code'].map((tag) => document.createElement(tag));
        code.textContent = name;
        told.dir = 'auto';
        told.textContent = `${kind}${required}${typeof description === 'string' && description ? ` – ${description}` : ''}`;
        term.append(code);
        pair.append(term, told);
        return pair;
      }),
    );
  });
}

/** The rows of a list come and go; the server has drawn those that there are, and one to copy. */
for (const rows of all('[data-rows]')) {
  const [add, blank] = [rows.nextElementSibling, rows.parentElement.querySelector('template').content.firstElementChild];
  const changes = () => rows.dispatchEvent(new Event('input', { bubbles: true }));
  // Here a button removes a row.
  for (const part of [rows, blank]) all('.without', part).forEach((choice) => choice.remove());
  add.addEventListener('click', () => {
    // It begins with the choices of the row before: one that reads other turns than it could pass for a wrong reason.
    const choices = [...(rows.lastElementChild?.querySelectorAll('select') ?? [])].map(({ value }) => value);
    const row = rows.appendChild(blank.cloneNode(true));
    row.querySelectorAll('select').forEach((select, at) => (select.value = choices[at] ?? select.value));
    row.querySelector('select, textarea').focus();
    changes();
  });
  rows.addEventListener('click', ({ target }) => {
    if (!target.closest('.remove')) return;
    target.closest('.rowform').remove();
    add.focus();
    changes();
  });
}

for (const box of all('[data-file]')) {
  box.hidden = false;
  box.querySelector('input').addEventListener('change', async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const content = document.getElementById(box.dataset.file);
    const read = await file.text();
    // What no text has: a zero byte, or bytes that are not UTF-8.
    if (/[\0\ufffd]/.test(read)) return tell(content, `${file.name} is not a text file in UTF-8. Save it as text, then choose it again.`);
    if (content.value.trim() && !confirm(`Replace the text with what is in ${file.name}?`)) return;
    content.value = read;
    content.dispatchEvent(new Event('input', { bubbles: true }));
    const [name, source] = ['f-name', 'f-source'].map((id) => document.getElementById(id));
    if (name && !name.value) name.value = file.name.replace(/\.[^.]+$/, '');
    if (source) source.value = file.name;
  });
}

/** The size of the documents that are ticked. */
for (const told of all('[data-budget]')) {
  const most = Number(told.dataset.budget);
  const size = (number) => (number < 1024 ? `${number} B` : `${(Math.floor((number * 10) / 1024) / 10).toFixed(1)} KB`);
  const part = told.closest('section');
  part.addEventListener('change', () => {
    const sum = [...all('[data-bytes]:checked', part)].reduce((sum, { dataset }) => sum + Number(dataset.bytes), 0);
    told.textContent = `${size(sum)} of ${size(most)} used`;
    told.classList.toggle('wrong', sum > most);
  });
}

/** A choice after a conflict is seen in the field below; whoever types there means what is typed. */
for (const radio of all('input[data-take]')) {
  const field = document.getElementById(radio.dataset.take);
  radio.addEventListener('change', () => {
    if (field.type === 'checkbox') field.checked = radio.dataset.value === 'true';
    else field.value = radio.dataset.value;
    field.dispatchEvent(new Event('input'));
  });
  if (radio.value === 'mine') field?.addEventListener('input', ({ isTrusted }) => isTrusted && (radio.checked = true));
}

/** What was typed is not lost by leaving the page, nor by sending another form of it. */
let sent;
for (const form of all('form.edit')) if ('unsaved' in form.dataset) changed.add(form);
const kept = new Set(changed);
// Here, since a field of a form can stand outside of it.
document.addEventListener('input', ({ target }) => {
  const form = target.form ?? target.closest('form');
  if (!began.has(form) || kept.has(form)) return;
  // What was typed and taken back is no change.
  if (text(form) === began.get(form)) changed.delete(form);
  else changed.add(form);
});
document.addEventListener('submit', ({ target, defaultPrevented }) => {
  if (!defaultPrevented) sent = target;
});
addEventListener('beforeunload', (event) => {
  if ([...changed].every((form) => form === sent)) return;
  event.preventDefault();
  // Whoever stays can send again.
  sent = undefined;
  setTimeout(enableForms);
});
