// What was typed into forms whose session had ended, or whose workspace was no longer open, is there again after the
// sign-in or in that workspace, in the same tab. It never leaves the browser. Fields of passwords are not kept.
import { DRAFT, person, say, workspace } from './app.js';

/** The fields that are sent, in order. */
const fields = (form) => [...form.elements].filter((field) => field.name && !field.name.startsWith('_') && !['hidden', 'password', 'file', 'submit'].includes(field.type));
const isBox = ({ type }) => type === 'checkbox' || type === 'radio';

const forms = () => [...document.querySelectorAll('form.edit')];

/** Keeps a form until a page has told whether it was sent. */
function keep(form) {
  const kept = {
    // A field may be called `id`, so that `form.id` is the field.
    at: form.getAttribute('id') ?? forms().indexOf(form),
    // What was typed belongs to the revision that was read.
    revision: form.elements._revision?.value,
    values: fields(form).map((field) => (isBox(field) ? [field.name, field.value, field.checked] : [field.name, field.value])),
  };
  try {
    sessionStorage.setItem(DRAFT, JSON.stringify({ path: location.pathname, workspace: workspace(document), person, form: kept }));
  } catch {
    // Too much for the browser's storage: then the form is sent like any other.
  }
}

function fill(form, { revision, values }) {
  // As many rows as there were.
  for (const rows of form.querySelectorAll('[data-rows]')) {
    const blank = rows.parentElement.querySelector('template').content.firstElementChild;
    const count = values.filter(([name]) => name === blank.querySelector('[name]').name).length;
    while (rows.children.length < count) rows.append(blank.cloneNode(true));
    while (rows.children.length > count) rows.lastElementChild.remove();
  }
  const here = fields(form);
  for (const [name, value, checked] of values) {
    // A box is found by what it stands for: others may have come since.
    const at = here.findIndex((field) => field.name === name && (checked === undefined || field.value === value));
    if (at < 0) continue;
    const [field] = here.splice(at, 1);
    if (checked === undefined) field.value = value;
    else field.checked = checked;
  }
  if (revision && form.elements._revision) form.elements._revision.value = revision;
}

/** Puts back what was typed, if a sign-in or another workspace came between. Into which forms. */
export function restore() {
  const draft = JSON.parse(sessionStorage.getItem(DRAFT) ?? 'null');
  for (const form of forms()) form.addEventListener('submit', () => keep(form));
  if (draft?.path !== location.pathname || !draft.waits || draft.workspace !== workspace(document)) return [];
  sessionStorage.removeItem(DRAFT);
  const form = forms().find((form, at) => (form.getAttribute('id') ?? at) === draft.form.at);
  if (!form) return [];
  fill(form, draft.form);
  say('What you typed is here again. It is not saved yet.');
  return [form];
}
