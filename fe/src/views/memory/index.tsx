import { useCallback, useMemo, useRef } from 'react';
import type { MemoryCurve, MemoryLive, MemoryOperators, MemoryPayload } from '../../api/types';
import { formatDuration } from '../../base/format';
import { saveFile, svgText } from '../../base/browser/save';
import { useView, useWorkers } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { since } from '../../base/ticks';
import { Answer, Mark } from '../../widgets/Answer';
import { Choice } from '../../widgets/inputs/Choice';
import { Icon } from '../../widgets/Icon';
import { Panel } from '../../widgets/Panel';
import { Select } from '../../widgets/inputs/Select';
import { Blocks } from './Blocks';
import { ByOperator } from './ByOperator';
import { Curve } from './Curve';
import { Growth } from './Growth';
import { Live } from './Live';
import { leak, sentence } from './select';
import { GROUPS, rangeOf, readState, writeState, type MemoryState, type Range } from './state';
import { Snapshot } from './Snapshot';
import { Strip } from './Strip';
import { Timeline } from './Timeline';
import css from './index.module.css';
import curveCss from './Curve.module.css';
import liveCss from './Live.module.css';

const POINTS = '1200';
const STRIP_POINTS = '400';
const LIVE_ROWS = '400';

interface Props {
  payload: MemoryPayload;
  crumb: string;
}

/** The trace's memory, or one of the memory files that lie beside it. */
export default function MemoryView({ payload, crumb, run }: Props & { run: string }) {
  const { selection, select } = useSelection();
  const { params, worker, span } = selection;
  const workers = useWorkers(run);
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const files = workers.data?.memory_files ?? [];
  const traced = payload.devices.length > 0;
  const asked = params.file ?? (traced ? '' : String(files[0]?.file ?? ''));
  const file = files.find(each => String(each.file) === asked);
  const options = [
    ...(traced ? [['', 'the trace'] as const] : []),
    ...files.map(each => [String(each.file), each.name] as const),
  ];
  const choice = files.length > 0 && (
    <Select
      label="Memory of"
      value={file ? asked : ''}
      options={options}
      onChange={next => select({ params: next === '' ? {} : { file: next } })}
    />
  );
  if (file) {
    const Shown = file.kind === 'snapshot' ? Snapshot : Timeline;
    return <Shown key={file.file} selectors={selectors} file={file} crumb={crumb} files={choice} />;
  }
  return traced ? (
    <TraceMemory payload={payload} crumb={crumb} files={choice} />
  ) : (
    <Answer crumb={crumb}>No memory events are recorded.</Answer>
  );
}

function TraceMemory({ payload, crumb, files }: Props & { files: React.ReactNode }) {
  const { selection, select } = useSelection();
  const { params, run, worker, span } = selection;
  const selectors = useMemo(() => ({ run, worker, span }), [run, worker, span]);
  const state = readState(params, payload.default_device ?? '');
  const device = payload.devices.find(each => each.name === state.device) ?? payload.devices[0];
  const name = device?.name ?? '';
  const svg = useRef<SVGSVGElement | null>(null);
  const change = (next: Partial<MemoryState>) => select({ params: writeState(params, next) });
  const put = (next: Record<string, string>) =>
    select({
      params: Object.fromEntries(Object.entries({ ...params, ...next }).filter(([, value]) => value !== '')),
    });
  const onEvent = useCallback(
    (event: number) => select({ view: 'trace', params: { event: String(event) } }),
    [select],
  );
  const { range, window } = state;
  const held = useMemo(() => rangeOf(params.range), [params.range]);
  const filter = within(range);

  const curve = ready(
    useView<MemoryCurve>(
      'memory/curve',
      selectors,
      { device: name, points: POINTS, ...within(window) },
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
  const atPeak = ready(useView<MemoryLive>('memory/live', selectors, { device: name, limit: '1' }, !!device));
  const operators = ready(
    useView<MemoryOperators>(
      'memory/operators',
      selectors,
      { device: name, ...filter },
      !!device && state.table === 'operators',
    ),
  );

  if (!device) {
    return null;
  }
  const said = sentence(device, atPeak);
  const { growth, warning } = leak(payload, name);
  const whole = { begin: device.begin_ns, end: device.end_ns };
  const groups = GROUPS.filter(
    group => (group !== 'module' || payload.has_modules) && (group !== 'stack' || payload.has_stacks),
  );
  const tables = [
    ['blocks', 'Blocks'],
    ['operators', 'By operator'],
    ['growth', growth?.growing ? 'Growth ⚠' : 'Growth'],
  ] as const;
  const before = (
    <>
      <Choice
        name="Table"
        value={state.table}
        options={tables}
        onPick={table => put({ table: table === 'blocks' ? '' : table, sort: '', q: '' })}
      />
      {state.table === 'blocks' && payload.has_addresses && (
        <Select
          label="State"
          value={params.state ?? ''}
          options={STATES}
          onChange={next => put({ state: next })}
        />
      )}
      {range && (
        <button
          type="button"
          className="chip"
          data-part="chip"
          title="Show all"
          onClick={() => change({ range: null })}
        >
          {since(range.begin, device.end_ns / 1000)} to {since(range.end, device.end_ns / 1000)}
          <Icon name="close" size={12} />
        </button>
      )}
    </>
  );
  return (
    <div className={`${css.view} fill`}>
      <Answer crumb={`${crumb} · ${device.hardware ?? device.name}`} why={said.why}>
        {said.before}
        <Mark color="var(--c-mem)">{said.mark}</Mark>
        {said.after}
      </Answer>
      {files && (
        <div className={css.tools} data-part="file-tools">
          {files}
        </div>
      )}
      {warning && (
        <p className={css.warning} data-part="memory-warning" role="status">
          <Icon name="warning" /> {warning}
          <button
            type="button"
            className="textlink"
            onClick={() => put({ table: 'growth', sort: '', q: '' })}
          >
            Who holds it
          </button>
        </p>
      )}
      <div className={css.top}>
        <Panel
          title={`${name} memory`}
          note={
            device.relative
              ? 'the change since the trace began: totals are not recorded'
              : 'drag to select a range, click for an instant'
          }
          actions={
            <>
              {payload.devices.length > 1 && (
                <Devices
                  names={payload.devices.map(each => each.name)}
                  value={name}
                  onPick={next => select({ params: { ...keep(params, ['table', 'group']), device: next } })}
                />
              )}
              {range && (
                <>
                  <button
                    type="button"
                    className="button quiet"
                    onClick={() => change({ window: range, range: null })}
                  >
                    Zoom in
                  </button>
                  <button type="button" className="button quiet" onClick={() => change({ range: null })}>
                    Reset
                  </button>
                </>
              )}
              {window && (
                <button type="button" className="button quiet" onClick={() => change({ window: null })}>
                  Show all
                </button>
              )}
              <button
                type="button"
                className="button quiet"
                title="Save as SVG"
                aria-label="Save as SVG"
                onClick={() => svg.current && saveFile('memory.svg', svgText(svg.current), 'image/svg+xml')}
              >
                <Icon name="download" size={14} />
              </button>
            </>
          }
        >
          {curve ? (
            <Curve
              curve={curve}
              device={device}
              steps={payload.steps}
              at={state.at}
              range={range}
              onAt={at => change({ at })}
              onRange={next => change({ range: next })}
              register={node => (svg.current = node)}
            />
          ) : (
            <div className={`${curveCss.curve} skeleton`} data-part="memory-curve" />
          )}
          {window && strip && (
            <Strip curve={strip} window={window} onWindow={next => change({ window: next })} />
          )}
          <p className={css.legend}>
            <i /> allocated
            {!!device.peak_reserved_bytes && (
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
            when={since(live.time_ns, Math.max(device.end_ns, 1) / 10_000)}
            isPeak={state.at === null}
            group={state.group}
            groups={groups}
            onGroup={group => change({ group })}
            onPeak={() => change({ at: null })}
            onPick={operator => put({ q: operator, table: '', sort: '' })}
            onEvent={onEvent}
          />
        ) : (
          <section className={`panel ${liveCss.live} skeleton`} data-part="memory-live" />
        )}
      </div>
      <div className={css.tables} data-part="memory-tables">
        {state.table === 'blocks' && (
          <Blocks
            selectors={selectors}
            device={name}
            range={held}
            span={held ?? window ?? whole}
            hasModules={payload.has_modules}
            sort={params.sort ?? '-size'}
            search={params.q ?? ''}
            state={params.state ?? ''}
            onSort={sort => put({ sort })}
            onSearch={q => put({ q })}
            onEvent={onEvent}
            before={before}
          />
        )}
        {state.table === 'operators' && operators && (
          <ByOperator operators={operators} onEvent={onEvent} before={before} />
        )}
        {state.table === 'growth' && (
          <Growth growth={growth} reason={payload.reasons.growth} onEvent={onEvent} before={before} />
        )}
      </div>
    </div>
  );
}

const STATES = [
  ['', 'any'],
  ['released', 'released'],
  ['unreleased', 'not released'],
  ['older', 'from before the trace'],
  ['replaced', 'replaced'],
] as const;

const within = (range: Range | null): Record<string, string> =>
  range ? { begin: String(range.begin), end: String(range.end) } : {};

const ready = <P,>({ data }: ReturnType<typeof useView<P>>): P | undefined =>
  data?.state === 'ready' ? data.payload : undefined;

const keep = (params: Record<string, string>, names: string[]): Record<string, string> =>
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
