// Opens a cell's evidence in a dialog. Without this script the same links lead to the same evidence
// further down.
(() => {
  const panel = document.getElementById('panel');
  const body = panel.querySelector('.body');
  const title = document.getElementById('panel-title');
  const cells = [...document.querySelectorAll('.matrix tbody tr')].map(
    (row) => [...row.querySelectorAll('td')].map((cell) => cell.querySelector('a')));

  const evidence = (hash) => {
    const found = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    return found && found.matches('article.cell') ? found : null;
  };

  // Copies, so that the page itself stays whole; names stay unique.
  const copy = (element) => {
    const made = element.cloneNode(true);
    for (const one of [made, ...made.querySelectorAll('[id]')]) {
      if (!one.closest('svg')) one.removeAttribute('id');
    }
    return made;
  };

  const open = (hash, from) => {
    const article = evidence(hash);
    if (!article) return false;
    const parts = [article.parentElement.querySelector('.texts'), article];
    if (article.querySelector('.wide')) parts.splice(1, 0, document.querySelector('.timeline-key'));
    title.textContent = article.dataset.title;
    body.replaceChildren(...parts.map(copy));
    // The texts of drawings are named by their elements; a second one of the same name helps nobody.
    body.querySelectorAll('svg [id]').forEach((one) => { one.id = `panel-${one.id}`; });
    body.querySelectorAll('svg[aria-labelledby]').forEach((one) => {
      const names = one.getAttribute('aria-labelledby').split(' ');
      one.setAttribute('aria-labelledby', names.map((name) => `panel-${name}`).join(' '));
    });
    if (!panel.open) {
      // The browser gives the focus back to it when the panel is closed, and at once: a reader who
      // has moved on by the time of the event keeps it.
      (from ?? link(hash))?.focus();
      panel.showModal();
    }
    body.scrollTop = 0;
    history.replaceState(null, '', hash);
    return true;
  };

  const link = (hash) => document.querySelector(`.matrix td a[href="${CSS.escape(hash).replace('\\#', '#')}"]`);

  panel.addEventListener('close', () => {
    // Opened anew before the event came.
    if (panel.open) return;
    history.replaceState(null, '', location.pathname + location.search);
    body.replaceChildren();
  });

  // A claim's name leads to its evidence, which must be open then.
  const unfold = (hash) => {
    const found = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    if (found instanceof HTMLDetailsElement) found.open = true;
  };

  document.addEventListener('click', (event) => {
    if (event.target === panel || event.target.closest('.close')) return panel.close();
    const anchor = event.target.closest('a[href^="#"]');
    if (!anchor || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    if (open(anchor.hash, anchor)) event.preventDefault();
    else unfold(anchor.hash);
  });

  // One cell is in the order of the tab key; arrows lead to the others.
  const stand = (row, column) => {
    const next = cells[row]?.[column];
    if (!next) return false;
    cells.flat().forEach((cell) => { if (cell) cell.tabIndex = -1; });
    next.tabIndex = 0;
    return next;
  };
  const place = (cell) => {
    const row = cells.findIndex((row) => row.includes(cell));
    return [row, cells[row]?.indexOf(cell)];
  };
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  document.addEventListener('keydown', (event) => {
    const cell = event.target.closest?.('.matrix td a');
    if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
    const [row, column] = place(cell);
    if (event.key === ' ') {
      open(cell.hash, cell);
    } else if (event.key === 'Home' || event.key === 'End') {
      const ends = cells[row].flatMap((cell, column) => (cell ? [column] : []));
      const next = stand(row, event.key === 'Home' ? ends[0] : ends.at(-1));
      if (next) next.focus();
    } else if (steps[event.key]) {
      const next = stand(row + steps[event.key][0], column + steps[event.key][1]);
      if (next) next.focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener('focusin', (event) => {
    const cell = event.target.closest?.('.matrix td a');
    if (cell) stand(...place(cell));
  });
  if (cells.length) stand(0, cells[0].findIndex(Boolean));

  const follow = () => { if (!open(location.hash)) unfold(location.hash); };
  addEventListener('hashchange', follow);
  follow();
})();
