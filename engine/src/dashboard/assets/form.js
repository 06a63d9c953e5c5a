// What makes forms quicker: counters, JSON that is checked while it is typed, rows in place of JSON, a preview of tools.
import { restore } from './draft.js';

const bytes = new TextEncoder();
let changed = restore();

for (const count of document.querySelectorAll('.count[data-for]')) {
  const field = document.getElementById(count.dataset.for);
  const most = Number(count.dataset.most);
  const show = () => {
    const length = most > 10_000 ? bytes.encode(field.value).length : [...field.value].length;
    // Beside a short field it shows up when it matters.
    count.hidden = most < 1000 && length < most * 0.7;
    count.textContent = `${length.toLocaleString('en')} of ${most.toLocaleString('en')}`;
    count.classList.toggle('over', length > most);
  };
  field?.addEventListener('input', show);
  if (field) show();
}

/** The problem of a field, in words, where the server would put it. */
function tell(field, message) {
  const id = `${field.id}-wrong`;
  let line = document.getElementById(id);
  if (!message) {
    if (line) line.remove();
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

function parsed(field) {
  try {
    const value = JSON.parse(field.value || 'null');
    tell(field, '');
    return value;
  } catch (error) {
    tell(field, `This is not JSON yet: ${error.message}.`);
    return undefined;
  }
}

for (const field of document.querySelectorAll('textarea[data-json]')) {
  field.addEventListener('input', () => parsed(field));
}

/** What the assistant fills in, shown as the form that the schema describes. */
for (const preview of document.querySelectorAll('[data-preview]')) {
  const field = document.getElementById(preview.dataset.preview);
  const box = preview.querySelector('div');
  const show = () => {
    let schema;
    try {
      schema = JSON.parse(field.value);
    } catch {
      return;
    }
    const fields = Object.entries(schema?.properties ?? {});
    preview.hidden = fields.length === 0;
    const list = document.createElement('dl');
    list.className = 'facts';
    for (const [name, { type, description, enum: choices }] of fields) {
      const pair = document.createElement('div');
      const term = document.createElement('dt');
      const code = document.createElement('code');
      code.textContent = name;
      term.append(code, schema.required?.includes(name) ? '' : ' (may be left out)');
      const about = document.createElement('dd');
      about.textContent = [choices ? choices.join(', ') : type, description].filter(Boolean).join(' – ');
      pair.append(term, about);
      list.append(pair);
    }
    box.replaceChildren(list);
  };
  field?.addEventListener('input', show);
  if (field) show();
}

/** A list of objects as rows, made from the schema of its items; the text stays what is sent. */
for (const field of document.querySelectorAll('textarea[data-rows]')) {
  const schema = JSON.parse(field.dataset.rows);
  const rows = document.createElement('div');
  rows.className = 'rows';
  const add = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Add one' });
  let values = parsed(field);
  if (!Array.isArray(values)) values = [];

  const control = (name, property, value) => {
    const label = document.createElement('label');
    const called = document.createElement('span');
    called.textContent = property.title ?? name[0].toUpperCase() + name.slice(1).replaceAll('_', ' ');
    label.append(called);
    let input;
    if (property.enum) {
      input = document.createElement('select');
      for (const choice of property.enum) input.append(new Option(choice.replaceAll('_', ' '), choice));
    } else {
      input = document.createElement('input');
      if (property.maxLength) input.maxLength = property.maxLength;
      input.dir = 'auto';
    }
    input.value = value ?? property.default ?? property.enum?.[0] ?? '';
    input.dataset.name = name;
    label.append(input);
    return label;
  };
  const write = () => {
    field.value = JSON.stringify(
      [...rows.children].map((row) => Object.fromEntries([...row.querySelectorAll('[data-name]')].map((input) => [input.dataset.name, input.value]))),
    );
  };
  const row = (value) => {
    const line = document.createElement('div');
    line.className = 'rowform';
    for (const [name, property] of Object.entries(schema.properties)) line.append(control(name, property, value[name]));
    const remove = Object.assign(document.createElement('button'), { type: 'button', className: 'quiet', textContent: 'Remove' });
    remove.addEventListener('click', () => {
      line.remove();
      write();
      add.focus();
    });
    line.append(remove);
    rows.append(line);
    return line;
  };
  values.forEach(row);
  add.addEventListener('click', () => {
    row({}).querySelector('select, input').focus();
    write();
  });
  rows.addEventListener('input', write);
  field.hidden = true;
  field.after(rows, add);
}

/** Millionths of a dollar, told in dollars. */
for (const field of document.querySelectorAll('input[name$=_microusd]')) {
  const told = Object.assign(document.createElement('p'), { className: 'help' });
  field.after(told);
  const show = () => (told.textContent = field.value === '' ? 'No limit.' : `$${(Number(field.value) / 1e6).toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 6 })}`);
  field.addEventListener('input', show);
  show();
}

for (const box of document.querySelectorAll('[data-file]')) {
  box.hidden = false;
  box.querySelector('input').addEventListener('change', async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const content = document.getElementById(box.dataset.file);
    content.value = await file.text();
    content.dispatchEvent(new Event('input'));
    const [name, source] = ['f-name', 'f-source'].map((id) => document.getElementById(id));
    if (name && !name.value) name.value = file.name.replace(/\.[^.]+$/, '');
    if (source) source.value = file.name;
  });
}

for (const button of document.querySelectorAll('[data-take]')) {
  const field = document.getElementById(button.dataset.take);
  button.hidden = !field;
  button.addEventListener('click', () => {
    if (field.type === 'checkbox') field.checked = button.dataset.value === 'true';
    else field.value = button.dataset.value;
    field.dispatchEvent(new Event('input'));
    button.textContent = 'Taken';
    button.disabled = true;
  });
}

/** What was typed is not lost by leaving the page. */
for (const form of document.querySelectorAll('form.edit')) {
  form.addEventListener('input', () => (changed = true));
  form.addEventListener('submit', () => (changed = false));
}
addEventListener('beforeunload', (event) => {
  if (changed) event.preventDefault();
});
