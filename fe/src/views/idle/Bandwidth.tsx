import { useState } from 'react';
import type { BandwidthPayload } from '../../api/types';
import { formatBytes, formatDuration, formatRate, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Select } from '../../widgets/inputs/Select';
import { Panel } from '../../widgets/Panel';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { AreaChart } from './AreaChart';
import { pickParams } from './select';
import css from './Panels.module.css';

type BandwidthRow = BandwidthPayload['rows'][number];

/** Copies by direction and kind of host memory. */
export function Bandwidth() {
  const { selection } = useSelection();
  const { run, worker, span, params } = selection;
  const [at, setAt] = useState('0');
  const requested = pickParams(params, 'step', 'device', 'stream');
  const answer = useView<BandwidthPayload>('idle/bandwidth', { run, worker, span }, requested);
  const payload = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const row = payload?.rows[Number(at)] ?? payload?.rows[0];
  return (
    <Panel
      title="Bandwidth"
      note="bytes copied over time"
      actions={
        <>
          {payload && payload.rows.length > 1 && (
            <Select
              label="Copies"
              value={String(payload.rows.indexOf(row!))}
              options={payload.rows.map((each, i) => [String(i), titleOf(each)] as const)}
              onChange={setAt}
            />
          )}
          {row && <SavePicture name={`bandwidth_${titleOf(row)}`} />}
        </>
      }
      pending={!payload && !answer.error}
    >
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {payload && !row && <p className="dim">No copies were recorded here.</p>}
      {payload && row && (
        <>
          <p className={css.finding}>
            {titleOf(row)}: {plural(row.copies, 'copy', 'copies')}
            {row.bytes === null
              ? '; their sizes were not recorded'
              : ` of ${formatBytes(row.bytes)} in ${formatDuration(row.time_ns)}`}
            {row.bandwidth !== null && `, ${formatRate(row.bandwidth)} while one runs`}.
            {row.memory === 'pageable' && ' Pageable host memory: the call stages the data.'}
          </p>
          <AreaChart
            values={row.curve}
            edges={payload.edges_ns}
            color="var(--x-copy)"
            format={formatBytes}
            label={`Bytes over time, ${titleOf(row)}`}
          />
        </>
      )}
    </Panel>
  );
}

const titleOf = ({ direction, memory }: BandwidthRow): string => {
  const title = `${direction.charAt(0).toUpperCase()}${direction.slice(1)}`;
  return memory === null ? title : `${title}, ${memory}`;
};
