// @vitest-environment happy-dom
import { MantineProvider } from '@mantine/core';
import { cleanup, render, screen } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import { SelectionContext, type Selection } from '../state/selection';
import { Sentence, TextWithCode } from './Sentence';

/** Return the selection after a click on a link. */
function clickLink(link: string, selection: Partial<Selection>, keepParams?: string[]): unknown {
  const select = vi.fn();
  const shown = { view: 'diff', params: {}, ...selection };
  render(
    <MantineProvider>
      <SelectionContext value={{ selection: shown, select }}>
        <Sentence text={[{ text: 'see ' }, { text: 'this', link }]} keepParams={keepParams} />
      </SelectionContext>
    </MantineProvider>,
  );
  screen.getByRole('button', { name: 'this' }).click();
  return select.mock.calls[0]?.[0];
}

it('opens the view and the trace that the link names', () => {
  expect(clickLink('operators?search=a+b&run=r', {})).toEqual({
    view: 'operators',
    params: { search: 'a b' },
    run: 'r',
  });
});

it('keeps named parameters within the view, and no others', () => {
  const params = { base_run: 'a', q: 'old', part: '3' };
  expect(clickLink('diff?q=new', { params }, ['base_run'])).toEqual({
    view: 'diff',
    params: { base_run: 'a', q: 'new' },
  });
});

it('keeps no parameters in another view', () => {
  expect(clickLink('trace', { params: { base_run: 'a' } }, ['base_run'])).toEqual({
    view: 'trace',
    params: {},
  });
});

it('draws text between backticks as code, and an unpaired backtick as it is', () => {
  const { container } = render(<TextWithCode text="call `prof.step()` in the loop" />);
  expect(container.innerHTML).toBe('call <code>prof.step()</code> in the loop');
  cleanup();
  expect(render(<TextWithCode text="a ` <b>" />).container.innerHTML).toBe('a ` &lt;b&gt;');
});
