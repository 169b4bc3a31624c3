// Returns the page's texts with too little contrast to their background, and the number of texts read.
(() => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  const known = new Map();
  const rgba = (color) => {
    if (!known.has(color)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = '#000';
      pen.fillStyle = color;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(color, [r, g, b, a / 255]);
    }
    return known.get(color);
  };
  const over = (top, below) => below.map((value, i) => (i < 3 ? top[i] * top[3] + value * (1 - top[3]) : 1));
  const linear = (value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const contrast = (one, other) => {
    const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const paint = (element) => {
    const style = getComputedStyle(element);
    if (element instanceof SVGElement && !(element instanceof SVGSVGElement)) {
      const filled = element.tagName === 'path' && style.fill.startsWith('rgb');
      return filled ? style.fill : 'transparent';
    }
    return style.backgroundColor;
  };
  // The background. For a text in a drawing, it is anything painted at the text's place.
  const layers = (element, box) => {
    if (element instanceof SVGElement) {
      const at = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      const self = at.indexOf(element);
      if (self >= 0) return at.slice(self + 1);
    }
    const chain = [];
    for (let one = element; one; one = one.parentElement) chain.push(one);
    return chain;
  };
  const ground = (element, box) => {
    const behind = layers(element, box).map((one) => rgba(paint(one))).filter((color) => color[3] > 0);
    const solid = behind.findIndex((color) => color[3] === 1);
    const stack = solid < 0 ? [...behind, [255, 0, 255, 1]] : behind.slice(0, solid + 1);
    return stack.reduceRight((below, top) => over(top, below));
  };

  document.querySelectorAll('details').forEach((one) => { one.open = true; });
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const low = [];
  let read = 0;
  let drawn = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || element.closest('script, style, .hidden, .skip, title, desc')) continue;
    if (!element.checkVisibility()) continue;
    let box = element.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    const svg = element instanceof SVGElement;
    if (svg) {
      element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
      box = element.getBoundingClientRect();
      drawn += 1;
    }
    const style = getComputedStyle(element);
    const behind = ground(element, box);
    const ink = over(rgba(svg ? style.fill : style.color), behind);
    const found = contrast(ink, behind);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    read += 1;
    if (found < (large ? 3 : 4.5)) {
      low.push(`${node.data.trim().slice(0, 40)} (${element.tagName}.${element.getAttribute('class')}): ${found.toFixed(2)}, ${ink} on ${behind}`);
    }
  }
  return { read, drawn, low: [...new Set(low)].slice(0, 20) };
})()
