// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { render, screen } from '@testing-library/react';
import { expect, test } from 'vitest';
import type { OriginEvent } from '../../../api/types';
import { OriginCard } from './OriginCard';

const card = (origin: OriginEvent) =>
  render(
    <MantineProvider env="test">
      <OriginCard origin={origin} />
    </MantineProvider>,
  );

const UNKNOWN: OriginEvent = {
  event: 3,
  has_origin: true,
  how: null,
  operator: null,
  modules: null,
  lines: null,
  shapes: null,
  nodes: null,
  region: null,
  compile_id: null,
  backward: null,
  reason: 'replayed from a graph whose capture was not recorded',
  source: null,
};

test('a kernel leads to its module, operator, line, nodes and generated source', () => {
  const { container } = card({
    ...UNKNOWN,
    how: 'compile record',
    modules: ['Net_0', 'Linear_1'],
    operator: 'aten::mm',
    lines: [{ file: '/home/me/model.py', line: 24 }],
    nodes: ['h', 'silu'],
    reason: null,
    source: 'triton_poi_fused_silu_0 = async_compile.triton(...)',
  });
  expect(screen.getByText('Net_0 › Linear_1 › aten::mm')).toBeTruthy();
  expect(screen.getByText('model.py:24').title).toBe('/home/me/model.py:24');
  expect(screen.getAllByRole('listitem').map(each => each.textContent)).toEqual(
    expect.arrayContaining(['h', 'silu']),
  );
  expect(container.querySelector('pre')?.textContent).toContain('async_compile.triton');
  expect(container.textContent).toContain('known from the compile record');
});

test('what is unknown is a reason, not an empty value', () => {
  const { container } = card(UNKNOWN);
  expect(container.querySelector('section')?.textContent).toBe(
    'Where this comes fromReplayed from a graph whose capture was not recorded.',
  );
});

test('an option that would have recorded more is drawn as code', () => {
  const { container } = card({
    ...UNKNOWN,
    reason: 'no Python stacks were recorded (`profile(with_stack=True)`)',
  });
  expect(container.querySelector('code')?.textContent).toBe('profile(with_stack=True)');
  expect(container.textContent).not.toContain('`');
});
