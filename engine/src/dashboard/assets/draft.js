// What was typed into a form whose session had ended, or whose workspace was no longer open, is there again after the
// sign-in or in that workspace, in the same tab. It never leaves the browser. Fields of passwords are not kept.
import { say } from './app.js';

const KEY = 'sidetone_draft';

/** The fields that are sent, in order. */
const fields = (form) => [...form.elements].filter((field) => field.name && !field.name.startsWith('_') && !['hidden', 'password', 'file', 'submit'].includes(field.type));

const forms = () => [...document.querySelectorAll('form.edit')];

function keep(form) {
  const values = fields(form).map((field) => [field.name, field.type === 'checkbox' || field.type === 'radio' ? field.checked : field.value]);
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ path: location.pathname, form: forms().indexOf(form), values }));
  } catch {
    // Too much for the browser's storage: then the form is sent like any other.
  }
}

/** Puts back what was typed, if a sign-in or another workspace came between. Into which form. */
export function restore() {
  const draft = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
  for (const form of forms()) form.addEventListener('submit', () => keep(form));
  if (draft?.path !== location.pathname || !draft.waits) return null;
  sessionStorage.removeItem(KEY);
  const form = forms()[draft.form];
  if (!form) return null;
  const here = fields(form);
  draft.values.forEach(([name, value], index) => {
    const field = here[index];
    if (field?.name !== name) return;
    if (typeof value === 'boolean') field.checked = value;
    else field.value = value;
  });
  say('What you typed is here again. It is not saved yet.');
  return form;
}
