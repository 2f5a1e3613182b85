// What will fit: the peaks of two recordings with different batch sizes, and the batches that follow from them.
import { useState } from 'react';
import type { MemoryFit, Selectors } from '../../../api/types';
import { formatBytes, formatSignedBytes } from '../../../base/format';
import { useView } from '../../../state/queries';
import { Panel } from '../../../widgets/Panel';
import { Sentence } from '../../../widgets/Sentence';
import { TextField } from '../../../widgets/inputs/TextField';
import css from './Snapshot.module.css';

interface Props {
  selectors: Selectors;
  /** The parameters that name the other recording; null if none is chosen. */
  base: Record<string, string> | null;
  /** Whether there is one to choose. */
  hasOthers: boolean;
}

const GIB = 2 ** 30;

/** Return the positive number in a field; null for anything else. */
const positive = (text: string): number | null => {
  const value = Number(text);
  return text.trim() !== '' && Number.isFinite(value) && value > 0 ? value : null;
};

/** Return the text of a positive integer; null for anything else. */
const integerText = (text: string): string | null => {
  const value = positive(text);
  return value !== null && Number.isInteger(value) ? String(value) : null;
};

export function SnapshotFit({ selectors, base, hasOthers }: Props) {
  const [batch, setBatch] = useState('');
  const [otherBatch, setOtherBatch] = useState('');
  const [target, setTarget] = useState('');
  const [memory, setMemory] = useState('');
  const [here, there, wanted, room] = [
    integerText(batch),
    integerText(otherBatch),
    integerText(target),
    positive(memory),
  ];
  const known = base !== null && here !== null && there !== null;
  const { data, error } = useView<MemoryFit>(
    'memory/fit',
    selectors,
    {
      ...base,
      ...(here !== null && { batch: here }),
      ...(there !== null && { other_batch: there }),
      ...(wanted !== null && { target: wanted }),
      ...(room !== null && { device_bytes: String(Math.round(room * GIB)) }),
    },
    known,
  );
  const fit = known && data?.state === 'ready' ? data.payload : undefined;
  return (
    <Panel title="What will fit" note="from two recordings that differ in batch size or sequence length">
      {base === null ? (
        <p className="dim" data-part="fit-missing">
          {hasOthers
            ? 'One recording can’t show how memory grows. Choose one with another batch size under Compare.'
            : 'One recording can’t show how memory grows. Record a snapshot with a second batch size and choose it under Compare.'}
        </p>
      ) : (
        <div className={css.fields}>
          <TextField label="Batch size here" value={batch} placeholder="16" onChange={setBatch} />
          <TextField label="Batch size there" value={otherBatch} placeholder="8" onChange={setOtherBatch} />
          <TextField label="Predict batch size" value={target} placeholder="32" onChange={setTarget} />
          <TextField label="Memory of the GPU, GiB" value={memory} placeholder="80" onChange={setMemory} />
        </div>
      )}
      {base !== null && !known && <p className="dim">Enter the batch sizes of both recordings.</p>}
      {known && error && <p className="dim">{error.message}</p>}
      {fit && (
        <div data-part="fit">
          <p>
            <Sentence text={fit.headline} />
          </p>
          {fit.target_low_bytes !== null && fit.target_high_bytes !== null && (
            <p>
              Batch size {wanted} needs {formatBytes(fit.target_low_bytes)} to{' '}
              {formatBytes(fit.target_high_bytes)}.
            </p>
          )}
          {fit.reasons.room_bytes && (
            <p className="dim">
              <Sentence text={fit.reasons.room_bytes} />.
            </p>
          )}
          {fit.categories.length > 0 && (
            <table className={css.ranks} aria-label="Growth by category">
              <thead>
                <tr>
                  <th>Category</th>
                  <th>Per item</th>
                  <th>Fixed</th>
                </tr>
              </thead>
              <tbody>
                {fit.categories.map(row => (
                  <tr key={row.name}>
                    <td>{row.name}</td>
                    <td>{formatSignedBytes(row.bytes_per_item)}</td>
                    <td>
                      {row.fixed_bytes < 0
                        ? formatSignedBytes(row.fixed_bytes)
                        : formatBytes(row.fixed_bytes)}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          )}
        </div>
      )}
    </Panel>
  );
}
