import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import type { CallNode, CallTreeLevel } from '../../api/types';
import { formatDuration, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Panel } from '../../widgets/Panel';
import { Picker } from '../../widgets/inputs/Picker';
import { onTimeline } from '../_shared/modules/select';
import css from './CallTree.module.css';

const PAGE = 200;
const DEEPEST_ALONE = 40;

/** What a thread called, level by level: a level is fetched when the call around it is opened. */
export function CallTree({ hasDevice }: { hasDevice: boolean }) {
  const { selection, select } = useSelection();
  const { thread } = selection.params;
  const top = useCalls(thread === undefined ? {} : { thread }, 1);
  const known = top.data?.state === 'ready' ? top.data.payload : undefined;
  const [hot, setHot] = useState(0);
  return (
    <Panel
      title="Call tree"
      note="in order of time; a level is read when it is opened"
      actions={
        known && (
          <>
            {known.longest !== null && (
              <Button
                onClick={() => setHot(hot + 1)}
                title="Open the longest call, the longest in it, and so on"
              >
                Hottest path
              </Button>
            )}
            <Picker
              name="Thread"
              value={known.thread}
              options={known.threads.map(each => ({
                value: each.thread,
                label: each.name,
                detail: each.role || undefined,
              }))}
              onPick={picked => select({ params: { ...selection.params, thread: picked } })}
            />
          </>
        )
      }
    >
      {top.error && <p className="status error">{top.error.message}</p>}
      {known && (
        <div
          className={`${css.calls} ${hasDevice ? css.withDevice : ''}`}
          role="treegrid"
          aria-label="Call tree"
        >
          <div className={`${css.row} ${css.head}`} role="row">
            <span role="columnheader">Call</span>
            <span role="columnheader">Module</span>
            <span role="columnheader" className="num">
              Host total
            </span>
            <span role="columnheader" className="num">
              Host self
            </span>
            {hasDevice && (
              <span role="columnheader" className="num">
                Device
              </span>
            )}
          </div>
          <Level key={known.thread} thread={known.thread} depth={0} hasDevice={hasDevice} hot={hot} />
        </div>
      )}
    </Panel>
  );
}

function useCalls(of: Record<string, string>, limit: number) {
  const { selection } = useSelection();
  const { run, worker, span } = selection;
  return useView<CallTreeLevel>('modules/calls', { run, worker, span }, { ...of, limit: String(limit) });
}

interface LevelProps {
  thread: string;
  parent?: CallNode;
  depth: number;
  hasDevice: boolean;
  /** How often the hottest path was asked for, of a level that is on it; 0 elsewhere. */
  hot: number;
}

function Level({ thread, parent, depth, hasDevice, hot }: LevelProps) {
  const [most, setMost] = useState(PAGE);
  const answer = useCalls(parent ? { parent: String(parent.event) } : { thread }, most);
  const level = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const indent = { paddingLeft: 20 + 14 * depth };
  const longest = hot > 0 ? (level?.longest ?? -1) : -1;
  if (longest >= most) {
    setMost(PAGE * Math.ceil((longest + 1) / PAGE));
  }
  if (answer.error) {
    return (
      <p className="status error" style={indent}>
        {answer.error.message}
      </p>
    );
  }
  if (!level) {
    return (
      <p className="dim" style={indent}>
        Reading…
      </p>
    );
  }
  // A call that is alone opens by itself: Python nests deep before anything branches.
  const single = level.total === 1 && depth < DEEPEST_ALONE;
  return (
    <>
      {level.rows.map((node, i) => (
        <Call
          key={node.event}
          node={node}
          thread={thread}
          depth={depth}
          opened={single}
          hasDevice={hasDevice}
          hot={i === longest ? hot : 0}
        />
      ))}
      {level.rows.length < level.total && (
        <p style={indent}>
          <Button onClick={() => setMost(most + PAGE)}>
            Show more: {plural(level.total - level.rows.length, 'call')} left
          </Button>
        </p>
      )}
    </>
  );
}

interface CallProps extends LevelProps {
  node: CallNode;
  opened: boolean;
}

function Call({ node, thread, depth, opened, hasDevice, hot }: CallProps) {
  const { select } = useSelection();
  const [open, setOpen] = useState(opened || hot > 0);
  const [asked, setAsked] = useState(hot);
  if (asked !== hot) {
    setAsked(hot);
    setOpen(open || hot > 0);
  }
  const opens = node.children > 0;
  const row = useRef<HTMLDivElement>(null);
  const end = opens ? 0 : hot;
  useEffect(() => {
    if (end > 0) {
      row.current?.scrollIntoView({ block: 'nearest' });
      row.current?.focus();
    }
  }, [end]);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      event.preventDefault();
      setOpen(event.key === 'ArrowRight');
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const rows = [
        ...event.currentTarget
          .closest('[role=treegrid]')!
          .querySelectorAll<HTMLElement>('[role=row][aria-level]'),
      ];
      rows[rows.indexOf(event.currentTarget) + (event.key === 'ArrowDown' ? 1 : -1)]?.focus();
    } else if (event.key === 'Enter') {
      select(onTimeline(node.event, node.kind === 'python'));
    }
  };
  return (
    <>
      <div
        ref={row}
        role="row"
        tabIndex={0}
        className={`${css.row} ${css.body} ${hot > 0 ? css.hot : ''}`}
        aria-level={depth + 1}
        aria-expanded={opens ? open : undefined}
        onKeyDown={onKeyDown}
      >
        <span role="gridcell" className="clip" style={{ paddingLeft: 14 * depth }} title={node.name}>
          <Button
            look="bare"
            className={`${css.twist} ${open ? css.open : ''}`}
            style={opens ? undefined : { visibility: 'hidden' }}
            tabIndex={-1}
            aria-label={open ? 'Fold' : 'Unfold'}
            onClick={() => setOpen(!open)}
          >
            <Icon name="right" size={12} />
          </Button>
          <i className={`${css.kind} ${css[node.kind] ?? ''}`} title={KIND[node.kind]} />
          <Button
            look="bare"
            className={`${css.name} mono`}
            tabIndex={-1}
            title={`${node.name}\nShow on timeline`}
            onClick={() => select(onTimeline(node.event, node.kind === 'python'))}
          >
            {node.name}
          </Button>
        </span>
        <span role="gridcell" className="clip dim">
          {node.module}
        </span>
        <span role="gridcell" className="num">
          {formatDuration(node.duration_ns)}
        </span>
        <span role="gridcell" className="num">
          {formatDuration(node.self_ns)}
        </span>
        {hasDevice && (
          <span role="gridcell" className="num">
            {node.device_ns > 0 ? formatDuration(node.device_ns) : <span className="dim">–</span>}
          </span>
        )}
      </div>
      {open && opens && (
        <Level thread={thread} parent={node} depth={depth + 1} hasDevice={hasDevice} hot={hot} />
      )}
    </>
  );
}

const KIND: Record<string, string> = {
  cpu_op: 'operator',
  annotation: 'annotation',
  python: 'Python frame',
  runtime: 'runtime call',
  driver: 'driver call',
};
