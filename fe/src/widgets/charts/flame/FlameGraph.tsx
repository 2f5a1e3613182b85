// A tree of nested times: width is time, the caller above what it calls.
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { Button } from '../../inputs/Button';
import { Checkbox } from '../../inputs/Checkbox';
import { Select } from '../../inputs/Select';
import { formatRatio } from '../../../base/format';
import { arrange, choices, type Arrangement } from './arrange';
import { layout, LINE, relatives, target, type Box, type FlameNode } from './layout';
import { paintFlame } from './paint';
import { useWidth } from '../useWidth';
import css from './FlameGraph.module.css';

export type { FlameNode } from './layout';

interface Props {
  /** What is drawn, the arrangement aside, which is chosen here. */
  root: FlameNode;
  color: string;
  format: (value: number) => string;
  /** Names that are found are lit, all others fade. */
  highlight?: (name: string) => boolean;
  /** A click on the node that is zoomed to already, or Enter twice. */
  onOpen?: (node: FlameNode) => void;
  maxHeight?: number;
}

const KEYS = 'Arrow keys move to the caller, the first call and the siblings; Enter zooms in, Escape out.';

export function FlameGraph({ root: given, color, format, highlight, onOpen, maxHeight = 420 }: Props) {
  const { ref, width } = useWidth();
  const id = useId();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [how, setHow] = useState<Arrangement>({ byCall: false, merged: true, folded: true });
  const root = useMemo(() => arrange(given, how), [given, how]);
  const [known, setKnown] = useState(root);
  const [trail, setTrail] = useState<FlameNode[]>([]);
  const [pointed, setPointed] = useState<FlameNode | null>(null);
  const [active, setActive] = useState<FlameNode | null>(null);
  const [focused, setFocused] = useState(false);
  if (known !== root) {
    setKnown(root);
    setTrail([]);
    setPointed(null);
    setActive(null);
  }
  const zoomed = trail[trail.length - 1] ?? root;
  const boxes = useMemo(() => layout(zoomed, trail, width), [zoomed, trail, width]);
  const here = boxes.find(box => box.node === active) ?? boxes.find(box => box.node === zoomed);
  const lit = pointed ?? (focused ? (here?.node ?? null) : null);
  const height = LINE * boxes.reduce((most, box) => Math.max(most, box.depth + 1), 1);

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (context && width > 0) {
      paintFlame(context, boxes, { width, height, color, highlight, lit });
    }
    // A theme change restyles the page: the colors are read anew with the next paint.
  }, [boxes, width, height, color, highlight, lit]);

  const zoom = (node: FlameNode) => {
    if (node === zoomed && node !== root) {
      onOpen?.(node);
      return;
    }
    const box = boxes.find(candidate => candidate.node === node);
    setTrail(node === root || !box ? [] : box.path);
    setActive(node);
  };
  const nodeAt = ({ offsetX: x, offsetY: y }: { offsetX: number; offsetY: number }): FlameNode | null =>
    boxes.find(box => box.depth === Math.floor(y / LINE) && x >= box.x && x < box.x + box.width)?.node ??
    null;
  const onKeyDown = (event: KeyboardEvent) => {
    if (!here) {
      return;
    }
    if (MOVES.has(event.key)) {
      event.preventDefault();
      const next = target(boxes, here, event.key) ?? here;
      setPointed(null);
      setActive(next.node);
      scrollTo(event.currentTarget, next.depth * LINE);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      zoom(here.node);
    } else if (event.key === 'Escape' && trail.length > 0) {
      event.stopPropagation();
      setActive(zoomed);
      setTrail(trail.slice(0, -1));
    }
  };
  const shown = lit ?? zoomed;
  return (
    <div className={css.flame} data-part="flame">
      <div className={css.head}>
        <div className={css.crumbs} data-part="breadcrumbs">
          {[root, ...trail].map((node, i) => (
            <span key={`${i} ${node.name}`}>
              {i > 0 && '› '}
              {i === trail.length ? (
                <span aria-current="true">{i === 0 ? 'all' : node.name}</span>
              ) : (
                <Button look="text" onClick={() => setTrail(trail.slice(0, i))}>
                  {i === 0 ? 'all' : node.name}
                </Button>
              )}
            </span>
          ))}
        </div>
        <Choices root={given} how={how} onChange={setHow} />
      </div>
      <div
        ref={ref}
        className={css.keys}
        style={{ maxHeight }}
        role="tree"
        tabIndex={0}
        aria-label={`Flame graph of ${root.name}`}
        aria-describedby={`${id}-keys`}
        aria-activedescendant={here ? `${id}-${boxes.indexOf(here)}` : undefined}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onKeyDown={onKeyDown}
        onMouseMove={event => setPointed(nodeAt(event.nativeEvent))}
        onMouseLeave={() => setPointed(null)}
        onClick={event => {
          const node = nodeAt(event.nativeEvent);
          if (node) {
            zoom(node);
          }
        }}
      >
        <canvas
          ref={canvas}
          data-picture={`${zoomed.name}, ${format(zoomed.value)}: callers above what they call, as wide as they take`}
          width={Math.max(1, Math.round(width * devicePixelRatio))}
          height={Math.max(1, Math.round(height * devicePixelRatio))}
          style={{ height }}
        />
        <span id={`${id}-keys`} hidden>
          {KEYS}
        </span>
        {here && <Items id={id} boxes={boxes} here={here} format={format} />}
      </div>
      <p className={css.hover} data-part="flame-hover">
        {shown.name} <strong>{format(shown.value)}</strong>
        {root.value > 0 && `, ${formatRatio(shown.value / root.value)}`}
        {shown.note && ` · ${shown.note}`}
      </p>
    </div>
  );
}

const ORDERS = [
  ['heaviest', 'heaviest first'],
  ['call', 'call order'],
] as const;

interface ChoicesProps {
  root: FlameNode;
  how: Arrangement;
  onChange: (how: Arrangement) => void;
}

/** How the graph is arranged; only what makes a difference to it can be chosen. */
function Choices({ root, how, onChange }: ChoicesProps) {
  const { order, merge, fold } = useMemo(() => choices(root), [root]);
  return (
    <div className={css.choices}>
      {merge && (
        <Checkbox
          label="Merge repeats"
          title="Calls of one kind beside each other are one box"
          checked={how.merged}
          onChange={merged => onChange({ ...how, merged })}
        />
      )}
      {fold && (
        <Checkbox
          label="Fold libraries"
          title="Frames of installed packages give way to what they call"
          checked={how.folded}
          onChange={folded => onChange({ ...how, folded })}
        />
      )}
      {order && (
        <Select
          label="Order"
          value={how.byCall ? 'call' : 'heaviest'}
          options={ORDERS}
          onChange={picked => onChange({ ...how, byCall: picked === 'call' })}
        />
      )}
    </div>
  );
}

const MOVES = new Set(['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End']);

function scrollTo(scroller: Element, top: number): void {
  scroller.scrollTop = Math.min(Math.max(scroller.scrollTop, top + LINE - scroller.clientHeight), top);
}

interface ItemsProps {
  id: string;
  boxes: Box[];
  here: Box;
  format: (value: number) => string;
}

/** What the canvas shows, for those who do not see it: the box that the keys are at, its siblings and its callers. */
function Items({ id, boxes, here, format }: ItemsProps) {
  const callers: Box[] = [];
  for (let { parent } = relatives(boxes, here); parent; { parent } = relatives(boxes, parent)) {
    callers.unshift(parent);
  }
  const { siblings, children } = relatives(boxes, here);
  return (
    <div className={css.items}>
      {[...callers, ...siblings].map(box => {
        const peers = siblings.includes(box) ? siblings : relatives(boxes, box).siblings;
        return (
          <span
            key={boxes.indexOf(box)}
            id={`${id}-${boxes.indexOf(box)}`}
            role="treeitem"
            tabIndex={-1}
            aria-level={box.depth + 1}
            aria-setsize={peers.length}
            aria-posinset={peers.indexOf(box) + 1}
            aria-selected={box === here}
            aria-expanded={(box === here ? children.length > 0 : callers.includes(box)) || undefined}
          >
            {box.node.name} {format(box.node.value)}
          </span>
        );
      })}
    </div>
  );
}
