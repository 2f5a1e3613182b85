import { MantineProvider } from '@mantine/core';
import { fireEvent, render, screen, waitFor } from '@testing-library/react';
import { beforeEach, expect, it, vi } from 'vitest';
import { layOutElements } from '../../../testing/view';
import { FlameGraph, type FlameNode } from './FlameGraph';

const node = (name: string, value: number, children: FlameNode[] = []): FlameNode => ({
  name,
  value,
  children,
});
const inner = node('linear', 40);
const tree = node('all', 100, [node('forward', 60, [inner, node('relu', 20)]), node('backward', 40)]);
const onOpen = vi.fn();

const graph = () => screen.getByRole('tree');
/** The item that a screen reader reads: the one that the tree points to. */
const current = () => document.getElementById(graph().getAttribute('aria-activedescendant')!)!;
const press = (...keys: string[]) => keys.forEach(key => fireEvent.keyDown(graph(), { key }));

beforeEach(async () => {
  layOutElements();
  onOpen.mockClear();
  render(
    <MantineProvider>
      <FlameGraph root={tree} color="#000" format={value => `${value} ns`} onOpen={onOpen} />
    </MantineProvider>,
  );
  await waitFor(() => expect(document.querySelector('canvas')!.width).toBeGreaterThan(1)); // it is measured
  fireEvent.focus(graph());
});

it('walks down to a call, along its siblings and back to the caller', () => {
  expect(current().textContent).toBe('all 100 ns');
  press('ArrowDown');
  expect(current().textContent).toBe('forward 60 ns');
  press('ArrowRight');
  expect(current().textContent).toBe('backward 40 ns');
  press('ArrowLeft', 'ArrowDown', 'End');
  expect(current().textContent).toBe('relu 20 ns');
  press('ArrowRight'); // backward has no call beside it on this level: relu is the last of its siblings
  expect(current().textContent).toBe('relu 20 ns');
  press('Home', 'ArrowUp');
  expect(current().textContent).toBe('forward 60 ns');
});

it('announces the level and the position among the siblings', () => {
  press('ArrowDown', 'ArrowRight');
  expect(current().getAttribute('role')).toBe('treeitem');
  expect(current().getAttribute('aria-level')).toBe('2');
  expect(current().getAttribute('aria-posinset')).toBe('2');
  expect(current().getAttribute('aria-setsize')).toBe('2');
  expect(current().getAttribute('aria-selected')).toBe('true');
  expect(screen.getAllByRole('treeitem').map(item => item.textContent)).toEqual([
    'all 100 ns',
    'forward 60 ns',
    'backward 40 ns',
  ]);
});

it('zooms in with Enter, opens with another, and zooms out with Escape', () => {
  press('ArrowDown', 'ArrowDown', 'Enter');
  expect(screen.getByText('linear').getAttribute('aria-current')).toBe('true');
  expect(screen.queryByRole('button', { name: 'linear' })).toBeNull();
  expect(onOpen).not.toHaveBeenCalled();
  press('Enter');
  expect(onOpen).toHaveBeenCalledWith(inner);
  press('Escape');
  expect(screen.queryByText('linear')).toBeNull();
  expect(current().textContent).toBe('linear 40 ns');
});

it('shows the current node below the graph', () => {
  press('ArrowDown');
  expect(document.querySelector('[data-part=flame-hover]')!.textContent).toBe('forward 60 ns, 60%');
});
