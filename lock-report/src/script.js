'use strict';
// What all reports do: commands are copied, folds are printed. The page can be read without it.
(() => {
  document.documentElement.classList.add('js');
  document.querySelectorAll('.copy').forEach((button) => { button.hidden = false; });

  const take = async (button) => {
    const code = button.parentElement.querySelector('code');
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = 'Copied';
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = 'Selected';
    }
  };
  document.addEventListener('click', (event) => {
    const button = event.target.closest('.copy');
    if (button) take(button);
  });

  // Paper has no folds.
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details:not([open])')];
    folded.forEach((one) => { one.open = true; });
  });
  addEventListener('afterprint', () => folded.forEach((one) => { one.open = false; }));
})();
