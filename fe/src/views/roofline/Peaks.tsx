// What the device can do, and who says so; figures of one's own are in the address and kept by this browser.
import { useState } from 'react';
import type { DevicePeaks } from '../../api/types';
import { formatNumber } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { TextField } from '../../widgets/inputs/TextField';
import { Sentence } from '../../widgets/Sentence';
import css from './Peaks.module.css';

interface Props {
  device: DevicePeaks;
  note: string | null;
  given: string;
  onGive: (peaks: string) => void;
}

export function Peaks({ device, note, given, onGive }: Props) {
  const [text, setText] = useState(given);
  const rates: [string, number, string][] = [
    ...Object.entries(device.matrix).map(([type, rate]): [string, number, string] => [
      `${type} matrix`,
      rate / 1e12,
      type === 'int8' ? 'TOP/s' : 'TFLOP/s',
    ]),
    ...Object.entries(device.vector).map(([type, rate]): [string, number, string] => [
      `${type} vector`,
      rate / 1e12,
      'TFLOP/s',
    ]),
    ...(device.memory === null ? [] : [['memory', device.memory / 1e9, 'GB/s'] as [string, number, string]]),
    ...(device.link === null
      ? []
      : [['links, both ways', device.link / 1e9, 'GB/s'] as [string, number, string]]),
  ];
  return (
    <div className={css.peaks} data-part="peaks">
      <p className="dim">
        {device.recorded ?? 'no name is recorded'}
        {device.name !== null && device.matched !== null && `: ${device.name}, by ${device.matched}`}
      </p>
      {given !== '' && (
        <p role="status" className={css.edited}>
          Edited: {given}
        </p>
      )}
      {note !== null && <p role="note">{note}</p>}
      {device.reason !== null && <p>{device.reason}</p>}
      <dl>
        {rates.flatMap(([title, rate, unit]) => [
          <dt key={`${title} of`}>{title}</dt>,
          <dd key={title}>{`${formatNumber(rate)} ${unit}`}</dd>,
        ])}
      </dl>
      {device.source !== null && (
        <p className="dim">
          Dense, at the rated boost clock. Source: {device.source}.
          {device.checked.length > 0 && ` A second source confirms ${device.checked.join(', ')}.`}
        </p>
      )}
      {device.clock !== null && (
        <p role="note">
          <Sentence text={device.clock} />
        </p>
      )}
      <form
        onSubmit={event => {
          event.preventDefault();
          onGive(text.trim());
        }}
      >
        <TextField label="Other peaks" value={text} onChange={setText} placeholder="H100 SXM or bf16=989" />
        <Button type="submit" disabled={text.trim() === given}>
          Use
        </Button>
        {given !== '' && (
          <Button
            look="text"
            onClick={() => {
              setText('');
              onGive('');
            }}
          >
            Reset
          </Button>
        )}
      </form>
    </div>
  );
}
