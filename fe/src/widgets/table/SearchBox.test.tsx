import { MantineProvider } from '@mantine/core';
import { act, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SearchBox } from './SearchBox';

const onSearch = vi.fn();

const field = () => screen.getByRole<HTMLInputElement>('textbox', { name: 'Filter rows' });
const type = (value: string) => fireEvent.change(field(), { target: { value } });
const pause = () => act(() => vi.runAllTimers());

const box = (text: string) => (
  <MantineProvider>
    <SearchBox search={{ text, regex: false }} onSearch={onSearch} placeholder="Filter rows" />
  </MantineProvider>
);

beforeEach(() => {
  vi.useFakeTimers();
  onSearch.mockClear();
});

afterEach(() => {
  vi.useRealTimers();
});

it('a search that comes late takes nothing back of what was typed meanwhile', () => {
  const { rerender } = render(box('mm'));
  type('(');
  pause();
  type('');
  rerender(box('('));
  expect(field().value).toBe('');
  pause();
  expect(onSearch.mock.calls.map(([search]) => search.text)).toEqual(['(', '']);
  rerender(box(''));
  expect(field().value).toBe('');
});

it('the way back and a link are shown, after typing, too', () => {
  const { rerender } = render(box(''));
  type('mm');
  pause();
  rerender(box('mm'));
  rerender(box(''));
  expect(field().value).toBe('');
  rerender(box('mm'));
  expect(field().value).toBe('mm');
  pause();
  expect(onSearch.mock.calls.map(([search]) => search.text)).toEqual(['mm']);
});
