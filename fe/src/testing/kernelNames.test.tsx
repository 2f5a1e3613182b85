import { waitFor } from '@testing-library/react';
import { beforeEach, describe, expect, it } from 'vitest';
import criticalPath from '../../../tests/golden/payloads/critical_path.json';
import diff from '../../../tests/golden/payloads/diff.json';
import distributed from '../../../tests/golden/payloads/distributed.json';
import idle from '../../../tests/golden/payloads/idle.json';
import kernels from '../../../tests/golden/payloads/kernels.json';
import operators from '../../../tests/golden/payloads/operators.json';
import overview from '../../../tests/golden/payloads/overview.json';
import trace from '../../../tests/golden/payloads/trace.json';
import { drawView, serveGoldens } from './view';
import { VIEWS } from '../views';

const { name: RAW, short_name: SHORT } = kernels.kernels.rows[0]!;
const base = { run: 'base', worker: 'w', span: '1' };

serveGoldens({
  ...criticalPath,
  ...diff,
  ...distributed,
  ...idle,
  ...kernels,
  ...operators,
  ...overview,
  ...trace,
});

/** Return the visible texts and accessible names of the page, without tooltips and places meant for full names. */
function texts(): string[] {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [...document.querySelectorAll('[aria-label]')].map(element =>
    element.getAttribute('aria-label')!,
  );
  while (walker.nextNode()) {
    const { parentElement: parent, textContent } = walker.currentNode;
    if (parent?.tagName.toLowerCase() !== 'title' && !parent?.closest('[data-part=full-name]')) {
      found.push(textContent!);
    }
  }
  return found;
}

describe('a kernel', () => {
  beforeEach(() => expect(RAW.length).toBeGreaterThan(48));

  it.each([
    ['overview', overview.overview, {}],
    ['operators', operators.operators, {}],
    ['kernels', kernels.kernels, {}],
    ['kernels', kernels.kernels, { select: RAW }],
    ['idle', { ...idle.idle, causes: causesWithKernel() }, { select: 'waits_for_stream 0' }],
    ['critical_path', criticalPath.critical_path, {}],
    ['distributed', distributed.distributed, { collective: '0' }],
    ['diff', diff.diff, {}],
    ['diff', diff.diff, { table: 'kernels' }],
    ['trace', trace.trace, { event: '4' }],
    ['trace', trace.trace, { area: '0-3000000' }],
  ] as const)('has its short name in %s %#', async (slug, payload, params) => {
    await VIEWS[slug]!.load();
    const { settled } = drawView(VIEWS[slug]!.Component, payload, { params, base });
    await settled();
    expect(texts().filter(text => text.includes(RAW.slice(0, 48)))).toEqual([]);
  });

  it.each([
    ['kernels', kernels.kernels, {}],
    ['idle', { ...idle.idle, causes: causesWithKernel() }, {}],
    ['diff', diff.diff, { table: 'kernels' }],
    ['trace', trace.trace, { area: '0-3000000' }],
  ] as const)('is shown by %s', async (slug, payload, params) => {
    await VIEWS[slug]!.load();
    drawView(VIEWS[slug]!.Component, payload, { params, base });
    await waitFor(() => expect(texts()).toContain(SHORT));
    expect(document.querySelector(`[title="${RAW}"]`)).not.toBeNull();
  });
});

/** Return the causes of idle time, with waiting for that kernel first. */
function causesWithKernel() {
  const [first, ...others] = idle.idle.causes;
  return [{ ...first!, cause: 'waits_for_stream', subject: RAW, short_subject: SHORT }, ...others];
}
