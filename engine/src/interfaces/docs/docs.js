(() => {
  const $ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const root = document.documentElement;
  const search = document.getElementById('search');
  const found = document.getElementById('found');
  const rail = document.querySelector('.rail');
  const sections = $('main section[id]');
  const links = new Map($('.rail a').map((link) => [link.hash.slice(1), link]));

  // One language in all tabs; the reader stays where they are.
  const choose = (value, at) => {
    const before = at?.getBoundingClientRect().top;
    for (const input of $(`.tabs input[value="${value}"]`)) input.checked = true;
    if (at) scrollBy({ top: at.getBoundingClientRect().top - before, behavior: 'instant' });
    try { localStorage.setItem('sidetone-docs-language', value); } catch { /* Without storage, nothing is kept. */ }
  };
  document.addEventListener('change', ({ target }) => target.matches('.tabs input') && choose(target.value, target));
  try {
    const kept = localStorage.getItem('sidetone-docs-language');
    if (kept && /^\w+$/.test(kept)) choose(kept);
  } catch { /* The first language. */ }

  for (const text of $('pre')) {
    const place = text.parentElement.matches('.answer') ? text.parentElement : text;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy';
    button.textContent = 'Copy';
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(text.querySelector('code').textContent).then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Not allowed'; });
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
    place.append(button);
  }

  // The fields of a response, where they are asked for.
  document.addEventListener('toggle', ({ target }) => {
    const name = target.dataset?.object;
    if (!name || !target.open || target.querySelector('.fields')) return;
    const fields = document.querySelector(`#${CSS.escape(name)} .fields`);
    if (fields) target.querySelector('p').replaceWith(fields.cloneNode(true));
  }, true);

  // Search: every word is in the title, the path, a field's name or a code of what stays.
  let words;
  const index = () => sections.map((section) => $('h1,h2,h3,.route,dt code,.codes code,.gives', section).map((part) => part.textContent).concat(section.id.replaceAll('_', ' ')).join(' ').toLowerCase());
  const filter = () => {
    words ??= index();
    const query = search.value.trim().toLowerCase();
    const wanted = query.split(/\s+/).filter(Boolean);
    let count = 0;
    // Of the codes, those that are asked for; all of them when the words are about errors.
    const rows = $('#errors .codes>div');
    const told = rows.map((row) => row.textContent.toLowerCase());
    const some = wanted.length && !wanted.every((word) => 'errors'.includes(word));
    rows.forEach((row, at) => { row.hidden = Boolean(some) && !wanted.every((word) => told[at].includes(word)); });
    sections.forEach((section, at) => {
      const fits = wanted.every((word) => words[at].includes(word));
      const shown = fits && !(wanted.length && section.matches('.group'));
      section.hidden = !shown;
      if (shown && !section.matches('.group')) count += 1;
      const link = links.get(section.id);
      if (link) link.parentElement.hidden = !shown;
    });
    for (const chapter of $('details', rail)) {
      const any = $('li', chapter).some((entry) => !entry.hidden);
      chapter.hidden = !any;
      if (wanted.length) chapter.open = any;
    }
    found.textContent = wanted.length ? `${count} of ${sections.filter((section) => !section.matches('.group')).length}` : '';
    document.querySelector('.none').hidden = count > 0;
    const address = new URL(location.href);
    if (query) address.searchParams.set('q', query); else address.searchParams.delete('q');
    history.replaceState(null, '', address);
    if (!wanted.length) here();
  };
  const clear = () => {
    if (!search.value) return;
    search.value = '';
    filter();
  };
  search.addEventListener('input', filter);
  search.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') clear();
    const first = sections.find((section) => !section.hidden);
    if (event.key === 'Enter' && first) first.querySelector('a')?.focus();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input:not([type=radio])')) return;
    event.preventDefault();
    search.focus();
  });

  // Where the reader is. A narrow window shows the chapters above the text, where none opens by itself.
  const wide = matchMedia('(min-width:901px)');
  let current;
  const mark = (id) => {
    const link = links.get(id);
    if (!link || link === current) return;
    current?.removeAttribute('aria-current');
    current = link;
    link.setAttribute('aria-current', 'true');
    if (search.value) return;
    if (wide.matches) {
      for (const chapter of $('details', rail)) chapter.open = chapter.contains(link);
      const { top, bottom } = link.getBoundingClientRect();
      if (top < 120 || bottom > innerHeight - 40) rail.scrollTop += top - innerHeight / 2;
    }
  };
  const here = () => {
    const at = sections.filter((section) => !section.hidden && section.getBoundingClientRect().top < 140).pop();
    mark((at ?? sections[0])?.id);
  };
  let waiting;
  addEventListener('scroll', () => { waiting ??= requestAnimationFrame(() => { waiting = undefined; here(); }); }, { passive: true });
  // What a link leads to may be hidden by a search.
  addEventListener('hashchange', () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.closest('[hidden]')) { clear(); target.scrollIntoView(); }
  });

  root.classList.add('js');
  document.querySelector('.search').hidden = false;
  const asked = new URLSearchParams(location.search).get('q');
  if (asked) search.value = asked;
  if (asked) filter(); else here();
  if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
})();
