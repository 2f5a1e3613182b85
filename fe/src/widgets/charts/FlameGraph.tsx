// A tree of nested times: width is time, the caller above what it calls.
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react';
import { formatRatio } from '../../base/format';
import { layout, type Box, type FlameNode } from './flame';
import { useWidth } from './useWidth';
import css from './FlameGraph.module.css';

export type { FlameNode } from './flame';

interface Props {
  root: FlameNode;
  color: string;
  format: (value: number) => string;
  /** Names that are found are lit, all others fade. */
  highlight?: (name: string) => boolean;
  /** A click on the node that is zoomed to already, or Enter twice. */
  onOpen?: (node: FlameNode) => void;
  maxHeight?: number;
}

const LINE = 20;

export function FlameGraph({ root, color, format, highlight, onOpen, maxHeight = 420 }: Props) {
  const { ref, width } = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [trail, setTrail] = useState<FlameNode[]>([]);
  const [known, setKnown] = useState(root);
  const [focus, setFocus] = useState<FlameNode | null>(null);
  if (known !== root) {
    setKnown(root);
    setTrail([]);
    setFocus(null);
  }
  const zoomed = trail[trail.length - 1] ?? root;
  const boxes = useMemo(() => layout(zoomed, trail, width), [zoomed, trail, width]);
  const rows = boxes.reduce((most, box) => Math.max(most, box.depth + 1), 1);
  const height = rows * LINE;

  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (context && width > 0) {
      paint(context, boxes, { width, height, color, highlight, focus });
    }
    // A theme change restyles the page: the colors are read anew with the next paint.
  }, [boxes, width, height, color, highlight, focus]);

  const zoom = (node: FlameNode) => {
    if (node === zoomed && node !== root) {
      onOpen?.(node);
      return;
    }
    const box = boxes.find(candidate => candidate.node === node);
    setTrail(node === root || !box ? [] : box.path);
    setFocus(node);
  };
  const at = (x: number, y: number) =>
    boxes.find(box => box.depth === Math.floor(y / LINE) && x >= box.x && x < box.x + box.width)?.node ??
    null;
  const onKeyDown = (event: KeyboardEvent) => {
    const here = boxes.find(box => box.node === focus) ?? boxes[0];
    if (!here) {
      return;
    }
    const row = boxes.filter(box => box.depth === here.depth);
    const place = row.indexOf(here);
    const middle = here.x + here.width / 2;
    const next: Record<string, Box | undefined> = {
      ArrowLeft: row[place - 1],
      ArrowRight: row[place + 1],
      ArrowUp: boxes.find(
        box => box.depth === here.depth - 1 && box.x <= middle && middle <= box.x + box.width,
      ),
      ArrowDown: boxes.find(box => box.depth === here.depth + 1 && box.x >= here.x - 0.01),
    };
    if (event.key in next) {
      event.preventDefault();
      setFocus((next[event.key] ?? here).node);
    } else if (event.key === 'Enter') {
      zoom(here.node);
    } else if (event.key === 'Escape' && trail.length > 0) {
      event.stopPropagation();
      setTrail(trail.slice(0, -1));
    }
  };
  const told = focus ?? zoomed;
  return (
    <div className={css.flame} data-part="flame">
      <div className={css.crumbs} data-part="breadcrumbs">
        {[root, ...trail].map((node, i) => (
          <span key={`${i} ${node.name}`}>
            {i > 0 && '› '}
            <button type="button" className="textlink" onClick={() => setTrail(trail.slice(0, i))}>
              {i === 0 ? 'all' : node.name}
            </button>
          </span>
        ))}
      </div>
      <div
        ref={ref}
        className={css.keys}
        style={{ maxHeight }}
        role="tree"
        tabIndex={0}
        aria-label={`${told.name}: ${format(told.value)}`}
        onKeyDown={onKeyDown}
        onMouseMove={event => setFocus(at(event.nativeEvent.offsetX, event.nativeEvent.offsetY))}
        onMouseLeave={() => setFocus(null)}
        onClick={event => {
          const node = at(event.nativeEvent.offsetX, event.nativeEvent.offsetY);
          if (node) {
            zoom(node);
          }
        }}
      >
        <canvas
          ref={canvas}
          width={Math.max(1, Math.round(width * devicePixelRatio))}
          height={Math.max(1, Math.round(height * devicePixelRatio))}
          style={{ height }}
        />
      </div>
      <p className={css.hover} data-part="flame-hover" aria-live="polite">
        {told.name} <strong>{format(told.value)}</strong>
        {root.value > 0 && `, ${formatRatio(told.value / root.value)}`}
        {told.note && ` · ${told.note}`}
      </p>
    </div>
  );
}

interface Look {
  width: number;
  height: number;
  color: string;
  highlight?: (name: string) => boolean;
  focus: FlameNode | null;
}

function paint(context: CanvasRenderingContext2D, boxes: Box[], look: Look): void {
  const style = getComputedStyle(context.canvas);
  const token = (name: string) => style.getPropertyValue(name).trim();
  const base = look.color.startsWith('var(') ? token(look.color.slice(4, -1)) : look.color;
  const ink = token('--tx');
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, look.width, look.height);
  context.font = `11px ${token('--mono') || 'monospace'}`;
  context.textBaseline = 'middle';
  const letter = context.measureText('m').width;
  for (const { node, x, width, depth, above } of boxes) {
    const lit = look.highlight ? look.highlight(node.name) : !above;
    context.globalAlpha = node === look.focus ? 0.75 : lit ? 0.34 + 0.08 * (hash(node.name) % 3) : 0.12;
    context.fillStyle = base;
    context.fillRect(x, depth * LINE, Math.max(width - 0.75, 0.5), LINE - 1);
    context.globalAlpha = 1;
    const letters = Math.floor((width - 8) / letter);
    if (letters >= 3) {
      context.fillStyle = ink;
      const text = node.name.length > letters ? `${node.name.slice(0, letters - 1)}…` : node.name;
      context.fillText(text, x + 4, depth * LINE + LINE / 2);
    }
  }
}

function hash(text: string): number {
  let value = 0;
  for (let i = 0; i < text.length; i++) {
    value = (value * 31 + text.charCodeAt(i)) >>> 0;
  }
  return value;
}
