// The tables of a device: its blocks, its operators, what grows from step to step.
import { useMemo } from 'react';
import type { MemoryDevice, MemoryGrowth, MemoryOperators, MemoryPayload, Selectors } from '../../api/types';
import { formatOffset } from '../../base/ticks';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Choice } from '../../widgets/inputs/Choice';
import { Select } from '../../widgets/inputs/Select';
import { Blocks } from './Blocks';
import { ByOperator } from './ByOperator';
import { Growth } from './Growth';
import css from './index.module.css';
import { limits, rangeOf, writeMemoryState, type MemoryState } from './state';

interface Props {
  payload: MemoryPayload;
  device: MemoryDevice;
  growth: MemoryGrowth | undefined;
  selectors: Selectors;
  state: MemoryState;
  onEvent: (event: number) => void;
}

const STATES = [
  ['', 'any'],
  ['released', 'released'],
  ['unreleased', 'still live'],
  ['older', 'allocated before the trace'],
  ['replaced', 'replaced'],
] as const;

export function Tables({ payload, device, growth, selectors, state, onEvent }: Props) {
  const { selection, select } = useSelection();
  const { params } = selection;
  const { table, range, window } = state;
  const chosenRange = useMemo(() => rangeOf(params.range), [params.range]);
  const operators = useView<MemoryOperators>(
    'memory/operators',
    selectors,
    { device: device.name, ...limits(range) },
    table === 'operators',
  );
  const setParams = (next: Record<string, string>) =>
    select({
      params: Object.fromEntries(Object.entries({ ...params, ...next }).filter(([, value]) => value !== '')),
    });
  const tables = [
    ['blocks', 'Blocks'],
    ['operators', 'By operator'],
    ['growth', growth?.growing ? 'Growth ⚠' : 'Growth'],
  ] as const;
  const before = (
    <>
      <Choice
        name="Table"
        value={table}
        options={tables}
        onPick={picked => setParams({ table: picked === 'blocks' ? '' : picked, sort: '', q: '' })}
      />
      {table === 'blocks' && payload.has_addresses && (
        <Select
          label="State"
          value={params.state ?? ''}
          options={STATES}
          onChange={next => setParams({ state: next })}
        />
      )}
      {range && (
        <Button
          look="chip"
          data-part="chip"
          title="Show all"
          onClick={() => select({ params: writeMemoryState(params, { range: null }) })}
        >
          {formatOffset(range.begin, device.end_ns / 1000)} to {formatOffset(range.end, device.end_ns / 1000)}
          <Icon name="close" size={12} />
        </Button>
      )}
    </>
  );
  return (
    <div className={css.tables} data-part="memory-tables">
      {table === 'blocks' && (
        <Blocks
          selectors={selectors}
          device={device.name}
          range={chosenRange}
          span={chosenRange ?? window ?? { begin: device.begin_ns, end: device.end_ns }}
          hasModules={payload.has_modules}
          sort={params.sort ?? '-size'}
          search={params.q ?? ''}
          state={params.state ?? ''}
          onSort={sort => setParams({ sort })}
          onSearch={q => setParams({ q })}
          onEvent={onEvent}
          before={before}
        />
      )}
      {table === 'operators' && operators.data?.state === 'ready' && (
        <ByOperator
          operators={operators.data.payload}
          ranged={range !== null}
          onEvent={onEvent}
          before={before}
        />
      )}
      {table === 'growth' && (
        <Growth
          growth={growth}
          reason={payload.reasons.growth}
          stacks={payload.reasons.stacks}
          onEvent={onEvent}
          before={before}
        />
      )}
    </div>
  );
}
