// Returns the elements wider than the page, or wider than their room.
(() => {
  const root = document.documentElement;
  const found = [];
  if (root.scrollWidth > innerWidth) found.push(`the page: ${root.scrollWidth} of ${innerWidth}`);
  for (const one of document.querySelectorAll('.matrix a, .matrix th, .legend li, .card, h1, dialog .body')) {
    if (one.closest('.hidden') || !one.checkVisibility()) continue;
    const style = getComputedStyle(one);
    if (style.clipPath !== 'none' || one.closest('thead') && getComputedStyle(one.closest('thead')).clipPath !== 'none') continue;
    if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0) {
      found.push(`${one.tagName} ${one.textContent.trim().slice(0, 40)}: ${one.scrollWidth} of ${one.clientWidth}`);
    }
  }
  return [...new Set(found)].slice(0, 20);
})()
