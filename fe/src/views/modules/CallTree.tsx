import { useEffect, useRef, useState, type KeyboardEvent } from 'react';
import type { CallNode, CallTreeLevel } from '../../api/types';
import { formatDuration, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Name, Names } from '../../widgets/Name';
import { Panel } from '../../widgets/Panel';
import { Picker } from '../../widgets/inputs/Picker';
import { timelineTarget } from '../_shared/modules/select';
import css from './CallTree.module.css';

/** Rows of a level that are requested at first, and added by each click. */
const PAGE = 200;
/** Levels with a single call open by themselves down to this depth; recursion would go on. */
const MAX_AUTO_DEPTH = 40;

/** The calls of a thread as a tree; a level is fetched when its parent is expanded. */
export function CallTree({ hasDevice }: { hasDevice: boolean }) {
  const { selection, select } = useSelection();
  const { thread } = selection.params;
  const top = useCalls(thread === undefined ? {} : { thread }, 1);
  const level = top.data?.state === 'ready' ? top.data.payload : undefined;
  const [hot, setHot] = useState(0);
  return (
    <Panel
      title="Call tree"
      note="in order of time; levels load as you expand them"
      actions={
        level && (
          <>
            {level.longest !== null && (
              <Button
                onClick={() => setHot(hot + 1)}
                title="Expand the longest call, the longest call in it, and so on"
              >
                Hottest path
              </Button>
            )}
            <Picker
              name="Thread"
              value={level.thread}
              options={level.threads.map(thread => ({
                value: thread.thread,
                label: thread.name,
                detail: thread.role || undefined,
              }))}
              onPick={picked => select({ params: { ...selection.params, thread: picked } })}
            />
          </>
        )
      }
    >
      {top.error && <p className="status error">{top.error.message}</p>}
      {level && (
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
          <Level key={level.thread} thread={level.thread} depth={0} hasDevice={hasDevice} hot={hot} />
        </div>
      )}
    </Panel>
  );
}

function useCalls(selector: Record<string, string>, limit: number) {
  const { selection } = useSelection();
  const { run, worker, span } = selection;
  return useView<CallTreeLevel>(
    'modules/calls',
    { run, worker, span },
    { ...selector, limit: String(limit) },
  );
}

interface LevelProps {
  thread: string;
  parent?: CallNode;
  depth: number;
  hasDevice: boolean;
  /** How often the hottest path was requested, for a level on it; 0 elsewhere. */
  hot: number;
}

function Level({ thread, parent, depth, hasDevice, hot }: LevelProps) {
  const [limit, setLimit] = useState(PAGE);
  const answer = useCalls(parent ? { parent: String(parent.event) } : { thread }, limit);
  const level = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  const indent = { paddingLeft: 20 + 14 * depth };
  const longest = hot > 0 ? (level?.longest ?? -1) : -1;
  if (longest >= limit) {
    setLimit(PAGE * Math.ceil((longest + 1) / PAGE));
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
        Loading…
      </p>
    );
  }
  // An only child expands by itself, because Python nests deep before anything branches.
  const single = level.total === 1 && depth < MAX_AUTO_DEPTH;
  return (
    <Names of={level.rows.map(node => node.name)}>
      {level.rows.map((node, i) => (
        <Call
          key={node.event}
          node={node}
          thread={thread}
          depth={depth}
          initiallyOpen={single}
          hasDevice={hasDevice}
          hot={i === longest ? hot : 0}
        />
      ))}
      {level.rows.length < level.total && (
        <p style={indent}>
          <Button onClick={() => setLimit(limit + PAGE)}>
            Show more: {plural(level.total - level.rows.length, 'call')} left
          </Button>
        </p>
      )}
    </Names>
  );
}

interface CallProps extends LevelProps {
  node: CallNode;
  initiallyOpen: boolean;
}

function Call({ node, thread, depth, initiallyOpen, hasDevice, hot }: CallProps) {
  const { select } = useSelection();
  const [open, setOpen] = useState(initiallyOpen || hot > 0);
  const [lastHot, setLastHot] = useState(hot);
  if (lastHot !== hot) {
    setLastHot(hot);
    setOpen(open || hot > 0);
  }
  const hasChildren = node.children > 0;
  const row = useRef<HTMLDivElement>(null);
  const end = hasChildren ? 0 : hot;
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
      select(timelineTarget(node.event, node.kind === 'python'));
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
        aria-expanded={hasChildren ? open : undefined}
        onKeyDown={onKeyDown}
      >
        <span role="gridcell" className="clip" style={{ paddingLeft: 14 * depth }} title={node.name}>
          <Button
            look="bare"
            className={`${css.twist} ${open ? css.open : ''}`}
            style={hasChildren ? undefined : { visibility: 'hidden' }}
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
            onClick={() => select(timelineTarget(node.event, node.kind === 'python'))}
          >
            <Name
              text={node.name}
              end={node.kind === 'python' ? node.name.lastIndexOf('/') + 1 : 0}
              title=""
            />
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
      {open && hasChildren && (
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
