// The memory of a trace: the curve, live memory at an instant, and the tables.
import { useCallback, useMemo } from 'react';
import type { MemoryCurve, MemoryLive, MemoryPayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { formatOffset } from '../../base/ticks';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Answer } from '../../widgets/Answer';
import { Icon } from '../../widgets/Icon';
import { Choice } from '../../widgets/inputs/Choice';
import { Select } from '../../widgets/inputs/Select';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { MemoryChart } from './MemoryChart';
import curveCss from './MemoryChart.module.css';
import css from './index.module.css';
import { Live } from './Live';
import liveCss from './Live.module.css';
import { BLOCK_GROUPINGS, limits, readMemoryState, writeMemoryState, type MemoryState } from './state';
import { Strip } from './Strip';
import { Tables } from './Tables';

const POINTS = '1200';
const STRIP_POINTS = '400';
const LIVE_ROWS = '400';

interface Props {
  payload: MemoryPayload;
  crumb: string;
  files: React.ReactNode;
}

export function TraceMemory({ payload, crumb, files }: Props) {
  const { selection, select } = useSelection();
  const { params, run, worker, span } = selection;
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const state = readMemoryState(params, payload.default_device ?? '');
  const device = payload.devices.find(each => each.name === state.device) ?? payload.devices[0];
  const name = device?.name ?? '';
  const change = (next: Partial<MemoryState>) => select({ params: writeMemoryState(params, next) });
  const setParams = (next: Record<string, string>) =>
    select({
      params: Object.fromEntries(Object.entries({ ...params, ...next }).filter(([, value]) => value !== '')),
    });
  const onEvent = useCallback(
    (event: number) => select({ view: 'trace', params: { event: String(event) } }),
    [select],
  );
  const { range, window } = state;
  const filter = limits(range);

  const curve = ready(
    useView<MemoryCurve>(
      'memory/curve',
      selectors,
      { device: name, points: POINTS, ...limits(window) },
      !!device,
    ),
  );
  const strip = ready(
    useView<MemoryCurve>(
      'memory/curve',
      selectors,
      { device: name, points: STRIP_POINTS },
      !!device && !!window,
    ),
  );
  const live = ready(
    useView<MemoryLive>(
      'memory/live',
      selectors,
      {
        device: name,
        group_by: state.group,
        limit: LIVE_ROWS,
        ...(state.at === null ? filter : { at: String(state.at) }),
      },
      !!device,
    ),
  );
  if (!device) {
    return null;
  }
  const growth = payload.growth.find(each => each.device === name);
  const groups = BLOCK_GROUPINGS.filter(
    group => (group !== 'module' || payload.has_modules) && (group !== 'stack' || payload.has_stacks),
  );
  return (
    <div className={`${css.view} fill`}>
      <Answer crumb={`${crumb} · ${device.hardware ?? device.name}`} why={<Sentence text={device.details} />}>
        <Sentence text={device.headline} />
      </Answer>
      {files && (
        <div className={css.tools} data-part="file-tools">
          {files}
        </div>
      )}
      {growth?.growing && (
        <p className={css.warning} data-part="memory-warning" role="status">
          <Icon name="warning" />
          <span>
            <Sentence text={growth.verdict} />
          </span>
        </p>
      )}
      <div className={css.top}>
        <Panel
          title={`${name} memory`}
          note={
            device.relative ? (
              <Sentence text={payload.reasons.curve ?? []} />
            ) : (
              'drag to select a range, click to select an instant'
            )
          }
          actions={
            <>
              {payload.devices.length > 1 && (
                <Devices
                  names={payload.devices.map(each => each.name)}
                  value={name}
                  onPick={next =>
                    select({ params: { ...pickParams(params, ['table', 'group']), device: next } })
                  }
                />
              )}
              {range && (
                <>
                  <Button look="quiet" onClick={() => change({ window: range, range: null })}>
                    Zoom in
                  </Button>
                  <Button look="quiet" onClick={() => change({ range: null })}>
                    Reset
                  </Button>
                </>
              )}
              {window && (
                <Button look="quiet" onClick={() => change({ window: null })}>
                  Show all
                </Button>
              )}
              <SavePicture name={`memory_of_${name}`} />
            </>
          }
        >
          {curve ? (
            <MemoryChart
              curve={curve}
              device={device}
              steps={payload.steps}
              at={state.at}
              range={range}
              onAt={at => change({ at })}
              onRange={next => change({ range: next })}
            />
          ) : (
            <div className={`${curveCss.curve} skeleton`} data-part="memory-curve" />
          )}
          {window && strip && (
            <Strip curve={strip} window={window} onWindow={next => change({ window: next })} />
          )}
          <p className={css.legend}>
            <i /> allocated
            {!!device.peak_reserved?.bytes && (
              <>
                <i className={css.reserved} /> reserved by the allocator
              </>
            )}
            <span className="dim">{formatDuration(device.end_ns - device.begin_ns)} recorded</span>
          </p>
        </Panel>
        {live ? (
          <Live
            live={live}
            when={formatOffset(live.time_ns, Math.max(device.end_ns, 1) / 10_000)}
            isPeak={state.at === null}
            group={state.group}
            groups={groups}
            onGroup={group => change({ group })}
            onPeak={() => change({ at: null })}
            onPick={operator => setParams({ q: operator, table: '', sort: '' })}
            onEvent={onEvent}
          />
        ) : (
          <section className={`panel ${liveCss.live} skeleton`} data-part="memory-live" />
        )}
      </div>
      <Tables
        payload={payload}
        device={device}
        growth={growth}
        selectors={selectors}
        state={state}
        onEvent={onEvent}
      />
    </div>
  );
}

const ready = <P,>({ data }: ReturnType<typeof useView<P>>): P | undefined =>
  data?.state === 'ready' ? data.payload : undefined;

/** Returns the parameters with these names. */
const pickParams = (params: Record<string, string>, names: string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(params).filter(([name]) => names.includes(name)));

function Devices({
  names,
  value,
  onPick,
}: {
  names: string[];
  value: string;
  onPick: (name: string) => void;
}) {
  const options = names.map(name => [name, name] as const);
  return names.length > 4 ? (
    <Select label="Device" value={value} options={options} onChange={onPick} />
  ) : (
    <Choice name="Device" value={value} options={options} onPick={onPick} />
  );
}
