import { MantineProvider } from '@mantine/core';
import { fireEvent, render, screen } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, it, vi } from 'vitest';
import { Button } from './Button';
import { Checkbox } from './Checkbox';
import { Choice } from './Choice';
import { SearchField } from './SearchField';
import { Select } from './Select';
import { Slider } from './Slider';
import { TextField } from './TextField';

const OPTIONS = [
  ['host', 'Host time'],
  ['device', 'Device time'],
] as const;

const draw = (control: ReactNode) => render(<MantineProvider>{control}</MantineProvider>);

it('a choice is a group of radio buttons under its name', () => {
  const onPick = vi.fn();
  draw(<Choice name="Time" value="host" options={OPTIONS} onPick={onPick} />);
  expect(screen.getByRole('radiogroup', { name: 'Time' })).toBeTruthy();
  expect(screen.getByRole<HTMLInputElement>('radio', { name: 'Host time' }).checked).toBe(true);
  fireEvent.click(screen.getByRole('radio', { name: 'Device time' }));
  expect(onPick.mock.calls).toEqual([['device']]);
});

it('a select is named by its label, and keys pressed in its open list reach nothing else', async () => {
  const onChange = vi.fn();
  const onPageKey = vi.fn();
  document.body.addEventListener('keydown', onPageKey);
  draw(<Select label="Time" value="host" options={OPTIONS} onChange={onChange} />);
  const select = screen.getByRole('combobox', { name: 'Time' });
  expect([select.textContent, select.getAttribute('aria-expanded')]).toEqual(['Host time', 'false']);
  fireEvent.click(select);
  expect(await screen.findByRole('option', { name: 'Host time' })).toBeTruthy();
  expect(select.getAttribute('aria-expanded')).toBe('true');
  fireEvent.keyDown(select, { key: 'd', code: 'KeyD' });
  expect(onPageKey).not.toHaveBeenCalled();
  fireEvent.keyDown(select, { key: 'Enter', code: 'Enter' });
  expect(onChange.mock.calls).toEqual([['device']]);
  expect(select.getAttribute('aria-expanded')).toBe('false');
  document.body.removeEventListener('keydown', onPageKey);
});

it.each([
  ['End', [['3']]],
  ['Home', [['0']]],
  ['Escape', []],
])('in the open list of a select, %s and Enter pick %j', async (key, picked) => {
  const onChange = vi.fn();
  const ranks = [0, 1, 2, 3].map(i => [String(i), `rank ${i}`] as const);
  draw(<Select label="Rank" value="1" options={ranks} onChange={onChange} />);
  const select = screen.getByRole('combobox', { name: 'Rank' });
  fireEvent.click(select);
  await screen.findByRole('option', { name: 'rank 1' });
  fireEvent.keyDown(select, { key, code: key });
  fireEvent.keyDown(select, { key: 'Enter', code: 'Enter' });
  expect(onChange.mock.calls).toEqual(picked);
});

it('a select of many options has a search field', async () => {
  const onChange = vi.fn();
  const steps = Array.from({ length: 20 }, (_, i) => [String(i), `step ${i}`] as const);
  draw(<Select label="Step" value="0" options={steps} onChange={onChange} />);
  fireEvent.click(screen.getByRole('combobox', { name: 'Step' }));
  fireEvent.change(await screen.findByPlaceholderText('Find: step'), { target: { value: 'step 17' } });
  fireEvent.click(await screen.findByText('step 17'));
  expect(onChange.mock.calls).toEqual([['17']]);
});

it('a checkbox is named by its label and reports its new value', () => {
  const onChange = vi.fn();
  draw(<Checkbox label="Calls" checked={false} onChange={onChange} />);
  fireEvent.click(screen.getByLabelText('Calls'));
  expect(onChange.mock.calls).toEqual([[true]]);
});

it('a slider announces its value as text and follows the arrow keys', () => {
  const onChange = vi.fn();
  draw(<Slider label="Less time" value={50} step={5} format={value => `${value}%`} onChange={onChange} />);
  const slider = screen.getByRole('slider', { name: 'Less time' });
  expect(slider.getAttribute('aria-valuetext')).toBe('50%');
  fireEvent.keyDown(slider, { key: 'ArrowRight' });
  expect(onChange.mock.calls).toEqual([[55]]);
});

it('a text field reports its text', () => {
  const onChange = vi.fn();
  draw(<TextField name="Prefix" value="/a" placeholder="/prefix/" onChange={onChange} />);
  fireEvent.change(screen.getByLabelText('Prefix'), { target: { value: '/b' } });
  expect(onChange.mock.calls).toEqual([['/b']]);
});

it('a search field shows what is wrong with its text', () => {
  draw(<SearchField placeholder="Filter" value="(" error="Not a pattern" tools={null} onChange={() => {}} />);
  expect(screen.getByRole('alert').textContent).toBe('Not a pattern');
  expect(screen.getByLabelText('Filter').getAttribute('aria-invalid')).toBe('true');
});

it('a button submits no form and has the requested look', () => {
  draw(<Button look="quiet">Close</Button>);
  const button = screen.getByRole<HTMLButtonElement>('button', { name: 'Close' });
  expect(button.type).toBe('button');
  expect([...button.classList]).toEqual(expect.arrayContaining(['button', 'quiet']));
});
