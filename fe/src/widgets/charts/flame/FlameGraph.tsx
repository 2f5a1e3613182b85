// A flame graph: the width of a box is its time, and callers are above the calls they make.
import { useEffect, useId, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { formatRatio } from '../../../base/format';
import { shorten } from '../../../base/text';
import { Button } from '../../inputs/Button';
import { Checkbox } from '../../inputs/Checkbox';
import { Select } from '../../inputs/Select';
import { useWidth } from '../useWidth';
import { arrange, availableOptions, type FlameArrangement } from './arrange';
import { findRelatives, layOutBoxes, moveTarget, FRAME_HEIGHT, type Box, type FlameNode } from './layout';
import css from './FlameGraph.module.css';

export type { FlameNode } from './layout';

interface Props {
  /** The tree before it is arranged as the user chooses. */
  root: FlameNode;
  color: string;
  format: (value: number) => string;
  /** Whether a node of this name is highlighted; the others are dimmed. */
  highlight?: (name: string) => boolean;
  /** The zoomed node was clicked, or Enter was pressed on it. */
  onOpen?: (node: FlameNode) => void;
  maxHeight?: number;
}

const KEY_HELP =
  'Arrow keys move to the caller, the first call, and the siblings; Enter zooms in, Escape zooms out.';

export function FlameGraph({ root: original, color, format, highlight, onOpen, maxHeight = 420 }: Props) {
  const { ref, width } = useWidth();
  const id = useId();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [arrangement, setArrangement] = useState<FlameArrangement>({
    byCall: false,
    merged: true,
    folded: true,
  });
  const root = useMemo(() => arrange(original, arrangement), [original, arrangement]);
  const [lastRoot, setLastRoot] = useState(root);
  const [trail, setTrail] = useState<FlameNode[]>([]);
  const [pointed, setPointed] = useState<FlameNode | null>(null);
  const [active, setActive] = useState<FlameNode | null>(null);
  const [focused, setFocused] = useState(false);
  if (lastRoot !== root) {
    setLastRoot(root);
    setTrail([]);
    setPointed(null);
    setActive(null);
  }
  const zoomed = trail[trail.length - 1] ?? root;
  const boxes = useMemo(() => layOutBoxes(zoomed, trail, width), [zoomed, trail, width]);
  const current = boxes.find(box => box.node === active) ?? boxes.find(box => box.node === zoomed);
  const highlighted = pointed ?? (focused ? (current?.node ?? null) : null);
  const height = FRAME_HEIGHT * boxes.reduce((max, box) => Math.max(max, box.depth + 1), 1);

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (context && width > 0) {
      paintFlame(context, boxes, { width, height, color, highlight, highlighted });
    }
    // After a change of the theme, the next paint reads the new colors.
  }, [boxes, width, height, color, highlight, highlighted]);

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
    boxes.find(box => box.depth === Math.floor(y / FRAME_HEIGHT) && x >= box.x && x < box.x + box.width)
      ?.node ?? null;
  const onKeyDown = (event: KeyboardEvent) => {
    if (!current) {
      return;
    }
    if (MOVE_KEYS.has(event.key)) {
      event.preventDefault();
      const next = moveTarget(boxes, current, event.key) ?? current;
      setPointed(null);
      setActive(next.node);
      scrollIntoView(event.currentTarget, next.depth * FRAME_HEIGHT);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      zoom(current.node);
    } else if (event.key === 'Escape' && trail.length > 0) {
      event.stopPropagation();
      setActive(zoomed);
      setTrail(trail.slice(0, -1));
    }
  };
  const shown = highlighted ?? zoomed;
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
        <ArrangementOptions root={original} arrangement={arrangement} onChange={setArrangement} />
      </div>
      <div
        ref={ref}
        className={css.keys}
        style={{ maxHeight }}
        role="tree"
        tabIndex={0}
        aria-label={`Flame graph of ${root.name}`}
        aria-describedby={`${id}-keys`}
        aria-activedescendant={current ? `${id}-${boxes.indexOf(current)}` : undefined}
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
          data-picture={`${zoomed.name}, ${format(zoomed.value)}: callers above the calls they make, width is time`}
          width={Math.max(1, Math.round(width * devicePixelRatio))}
          height={Math.max(1, Math.round(height * devicePixelRatio))}
          style={{ height }}
        />
        <span id={`${id}-keys`} hidden>
          {KEY_HELP}
        </span>
        {current && <AccessibleItems id={id} boxes={boxes} current={current} format={format} />}
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

interface ArrangementOptionsProps {
  root: FlameNode;
  arrangement: FlameArrangement;
  onChange: (arrangement: FlameArrangement) => void;
}

/** The options of the arrangement that make a difference for this tree. */
function ArrangementOptions({ root, arrangement, onChange }: ArrangementOptionsProps) {
  const { order, merge, fold } = useMemo(() => availableOptions(root), [root]);
  return (
    <div className={css.choices}>
      {merge && (
        <Checkbox
          label="Merge repeats"
          title="Draw calls of one kind with the same caller as one box"
          checked={arrangement.merged}
          onChange={merged => onChange({ ...arrangement, merged })}
        />
      )}
      {fold && (
        <Checkbox
          label="Fold libraries"
          title="Replace frames of installed packages with what they call"
          checked={arrangement.folded}
          onChange={folded => onChange({ ...arrangement, folded })}
        />
      )}
      {order && (
        <Select
          label="Order"
          value={arrangement.byCall ? 'call' : 'heaviest'}
          options={ORDERS}
          onChange={picked => onChange({ ...arrangement, byCall: picked === 'call' })}
        />
      )}
    </div>
  );
}

const MOVE_KEYS = new Set(['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End']);

/** Scroll so that the row that starts at `top` is visible. */
function scrollIntoView(scroller: Element, top: number): void {
  scroller.scrollTop = Math.min(
    Math.max(scroller.scrollTop, top + FRAME_HEIGHT - scroller.clientHeight),
    top,
  );
}

interface AccessibleItemsProps {
  id: string;
  boxes: Box[];
  current: Box;
  format: (value: number) => string;
}

/** The canvas for screen readers: the current box, its siblings, and its callers. */
function AccessibleItems({ id, boxes, current, format }: AccessibleItemsProps) {
  const callers: Box[] = [];
  for (let { parent } = findRelatives(boxes, current); parent; { parent } = findRelatives(boxes, parent)) {
    callers.unshift(parent);
  }
  const { siblings, children } = findRelatives(boxes, current);
  return (
    <div className={css.items}>
      {[...callers, ...siblings].map(box => {
        const peers = siblings.includes(box) ? siblings : findRelatives(boxes, box).siblings;
        return (
          <span
            key={boxes.indexOf(box)}
            id={`${id}-${boxes.indexOf(box)}`}
            role="treeitem"
            tabIndex={-1}
            aria-level={box.depth + 1}
            aria-setsize={peers.length}
            aria-posinset={peers.indexOf(box) + 1}
            aria-selected={box === current}
            aria-expanded={(box === current ? children.length > 0 : callers.includes(box)) || undefined}
          >
            {box.node.name} {format(box.node.value)}
          </span>
        );
      })}
    </div>
  );
}

interface PaintOptions {
  width: number;
  height: number;
  color: string;
  highlight?: (name: string) => boolean;
  /** The node under the pointer or the keyboard focus. */
  highlighted: FlameNode | null;
}

function paintFlame(context: CanvasRenderingContext2D, boxes: Box[], options: PaintOptions): void {
  const style = getComputedStyle(context.canvas);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const resolveColor = (color: string) => (color.startsWith('var(') ? token(color.slice(4, -1)) : color);
  const ink = token('--tx');
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, options.width, options.height);
  context.font = `11px ${token('--mono') || 'monospace'}`;
  context.textBaseline = 'middle';
  const letterWidth = context.measureText('m').width;
  for (const { node, x, width, depth, isCaller } of boxes) {
    const emphasized = options.highlight ? options.highlight(node.name) : !isCaller;
    context.globalAlpha =
      node === options.highlighted ? 0.75 : emphasized ? 0.34 + 0.08 * (hashCode(node.name) % 3) : 0.12;
    context.fillStyle = resolveColor(node.color ?? options.color);
    context.fillRect(x, depth * FRAME_HEIGHT, Math.max(width - 0.75, 0.5), FRAME_HEIGHT - 1);
    context.globalAlpha = 1;
    const letters = Math.floor((width - 8) / letterWidth);
    if (letters >= 3) {
      context.fillStyle = ink;
      context.fillText(shorten(node.name, letters), x + 4, depth * FRAME_HEIGHT + FRAME_HEIGHT / 2);
    }
  }
}

/** Return a number that is the same for equal names, to vary their shades. */
function hashCode(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    value = (value * 31 + text.charCodeAt(i)) >>> 0;
  }
  return value;
}
