// Getting things out of the page. Plain http has no clipboard API, so copying falls back to a selection.

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    area.style.position = 'fixed';
    area.style.opacity = '0';
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

export function saveFile(name: string, content: BlobPart, type: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A drawing as a file of its own: computed colors and fonts are written into it. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = svg.querySelectorAll('*');
  copy.querySelectorAll('*').forEach((node, i) => {
    const style = getComputedStyle(originals[i]!);
    for (const name of [
      'fill',
      'stroke',
      'stroke-width',
      'stroke-dasharray',
      'font-size',
      'font-weight',
      'text-anchor',
    ]) {
      node.setAttribute(name, style.getPropertyValue(name));
    }
    node.removeAttribute('class');
    node.removeAttribute('style');
  });
  const box = svg.getBoundingClientRect();
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(box.width));
  copy.setAttribute('height', String(box.height));
  copy.setAttribute('font-family', 'Inter, system-ui, sans-serif');
  return new XMLSerializer().serializeToString(copy);
}

export async function savePng(name: string, svg: SVGSVGElement, background: string): Promise<void> {
  const box = svg.getBoundingClientRect();
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = 2 * box.width;
  canvas.height = 2 * box.height;
  const context = canvas.getContext('2d')!;
  context.scale(2, 2);
  context.fillStyle = background;
  context.fillRect(0, 0, box.width, box.height);
  context.drawImage(image, 0, 0);
  canvas.toBlob(blob => blob && saveFile(name, blob, 'image/png'), 'image/png');
}
