import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/react';
import { expect, it } from 'vitest';
import golden from '../../../../tests/golden/payloads/roofline.json';
import { drawnText, drawView, serveGoldens } from '../../testing/view';
import View from '.';

serveGoldens(golden);

it('draws a point for each row that is known, and leads from it to the row', async () => {
  drawView(View, golden.roofline);
  expect(await screen.findByText('bf16 matrix 989')).toBeTruthy();
  expect(screen.getByText('memory 3,352 GB/s')).toBeTruthy();
  const point = screen.getByRole('button', { name: /^aten::mm: 250 µs, 550 TFLOP\/s/ });
  fireEvent.click(point);
  const detail = screen.getByLabelText('Details of aten::mm');
  expect(detail.textContent).toContain('55.6%');
  expect(within(detail).getByRole('button', { name: 'Show on timeline' })).toBeTruthy();
});

it('says how much is modeled, and of each unknown row why', () => {
  drawView(View, golden.roofline);
  expect(screen.getByText(/352 µs of 462 µs device time \(76\.2%\)/)).toBeTruthy();
  const row = within(screen.getByRole('grid', { name: 'roofline rows' })).getByRole('row', {
    name: /custom/,
  });
  expect(
    within(row).getAllByTitle('this operator has no formula for FLOPs and bytes').length,
  ).toBeGreaterThan(3);
});

it('says how many tokens go through the model where the trace tells', () => {
  const tokens = { per_second: 1234.4, prompt: 512, generating: 64, iterations: 9, duration_ns: 466_000_000 };
  drawView(View, { ...golden.roofline, tokens });
  expect(screen.getByText(/1,234 tokens\/s in 9 iterations/)).toBeTruthy();
  cleanup();
  drawView(View, golden.roofline);
  expect(screen.queryByText(/tokens\/s/)).toBeNull();
});

it('says why the devices of the user are left out', () => {
  const note = 'your device file was ignored: mine.toml: no such file';
  drawView(View, { ...golden.roofline, note });
  expect(screen.getByRole('note').textContent).toBe(note);
});

it('takes other peaks', () => {
  drawView(View, golden.roofline);
  expect(screen.getByRole('button', { name: 'Use' })).toHaveProperty('disabled', true); // none are typed yet
  fireEvent.change(screen.getByLabelText('Other peaks'), { target: { value: 'bf16=800' } });
  fireEvent.click(screen.getByRole('button', { name: 'Use' }));
  expect(location.hash).toContain('peaks=bf16%3D800');
  expect(Object.values(localStorage).join()).not.toContain('bf16'); // nobody has taken them yet
});

const edited = {
  ...golden.roofline,
  devices: golden.roofline.devices.map(each => ({ ...each, source: 'figures given: bf16, a datasheet' })),
};

it('keeps peaks that were taken for this browser, says that they are edited, and resets them', async () => {
  drawView(View, golden.roofline);
  fireEvent.change(screen.getByLabelText('Other peaks'), { target: { value: 'bf16=800' } });
  fireEvent.click(screen.getByRole('button', { name: 'Use' }));
  cleanup();
  drawView(View, edited, { params: { peaks: 'bf16=800' } });
  expect(screen.getByRole('status').textContent).toBe('Edited: bf16=800');
  cleanup();
  drawView(View, golden.roofline);
  await waitFor(() => expect(location.hash).toContain('peaks=bf16%3D800'));
  cleanup();
  drawView(View, edited, { params: { peaks: 'bf16=800' } });
  fireEvent.click(screen.getByRole('button', { name: 'Reset' }));
  cleanup();
  drawView(View, golden.roofline);
  expect(location.hash).not.toContain('peaks');
});

it('does not keep the peaks of a link', () => {
  drawView(View, edited, { params: { peaks: 'bf16=700' } });
  cleanup();
  drawView(View, golden.roofline);
  expect(location.hash).not.toContain('peaks');
});

const counters = {
  names: ['dram__bytes.sum'],
  rows: [
    {
      event: 7,
      name: 'sgemm_32x32_nn',
      short_name: 'GEMM 32x32 nn',
      operator: 'aten::mm',
      outermost: 'aten::linear',
      calls: 2,
      values: [5200],
      flops: 13e9,
      bytes: null,
      modeled_flops: 12e9,
      modeled_bytes: 4400,
      reason: 'the traffic was not counted',
      modeled_reason: null,
    },
  ],
  ranges: 2,
  left_out: 0,
  note: null,
};

it('shows what was counted beside what is modeled, and why the rest is not known', () => {
  drawView(View, { ...golden.roofline, counters });
  const row = within(screen.getByRole('grid', { name: 'hardware counters' })).getByRole('row', {
    name: /GEMM 32x32 nn/,
  });
  expect(row.textContent).toContain('aten::mm');
  expect(row.textContent).toContain('13');
  expect(row.textContent).toContain('12');
  expect(within(row).getAllByTitle('the traffic was not counted')).toHaveLength(1);
  expect(screen.getByRole('grid', { name: 'roofline rows' })).toBeTruthy();
  fireEvent.doubleClick(row);
  expect(location.hash).toContain('event=7');
});

it('draws no roofline of counters without times', () => {
  const note = '1 counted ranges for 2 kernel launches';
  drawView(View, {
    ...golden.roofline,
    rows: [],
    device_ns: 0,
    devices: [],
    counters: { ...counters, note },
    reasons: { mfu: [{ text: 'no times of kernels' }] },
  });
  expect(screen.getByRole('note').textContent).toBe(note);
  expect(screen.getByText('no times of kernels')).toBeTruthy();
  expect(screen.queryByRole('grid', { name: 'roofline rows' })).toBeNull();
  expect(document.querySelector('[data-part=coverage]')).toBeNull();
});

it('marks rows whose work was measured', () => {
  const rows = golden.roofline.rows.map(row => ({ ...row, measured: row.name === 'aten::mm' }));
  drawView(View, { ...golden.roofline, rows });
  expect(screen.getAllByTitle(/hardware counters/)).toHaveLength(2); // TFLOP/s and GB/s
});

it('says at which clock the peak holds where the trace records the clock', () => {
  const clock = [{ text: 'SM Clock [MHz] records 1,464 MHz while it worked.' }];
  const devices = golden.roofline.devices.map(device => ({ ...device, clock }));
  drawView(View, { ...golden.roofline, devices });
  expect(drawnText(screen.getByRole('note'))).toBe(clock[0]!.text);
});
