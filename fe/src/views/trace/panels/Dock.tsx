// The timeline with the details of the selection below it, or on the right if the window is wide enough.
import { useState, type CSSProperties, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';
import { readSetting, writeSetting } from '../../../base/browser/settings';
import { Button } from '../../../widgets/inputs/Button';
import css from './Dock.module.css';

type Side = 'right' | 'below';

/** Least width of the page that docks the panel on the right, px; a table needs more. */
const MIN_WIDTH_PX = { details: 1280, table: 1800 };
/** Smallest size of the panel, and how much a press of a key changes it, px. */
const MIN_SIZE_PX = 140;
const STEP_PX = 20;
/** Initial sizes, px; a table shows some rows. */
const DEFAULT_SIZES = { details: { right: 360, below: 200 }, table: { right: 620, below: 280 } };

const savedSide = (): Side | null => {
  const saved = readSetting('dock');
  return saved === 'right' || saved === 'below' ? saved : null;
};

const savedSize = (side: Side): number | null => {
  const saved = readSetting(`dock.${side}`);
  return typeof saved === 'number' && saved >= MIN_SIZE_PX ? saved : null;
};

interface Props {
  panel: ReactNode;
  holds: keyof typeof MIN_WIDTH_PX;
  children: ReactNode;
}

export function Dock({ panel, holds, children }: Props) {
  const [chosen, setChosen] = useState(savedSide);
  const side = chosen ?? (window.innerWidth >= MIN_WIDTH_PX[holds] ? 'right' : 'below');
  const [sizes, setSizes] = useState(() => ({ right: savedSize('right'), below: savedSize('below') }));
  const size = sizes[side] ?? DEFAULT_SIZES[holds][side];
  const move = (next: Side) => {
    setChosen(next);
    writeSetting('dock', next);
  };
  const resize = (wanted: number, room: number) => {
    const next = Math.round(Math.max(MIN_SIZE_PX, Math.min(wanted, room * 0.7)));
    setSizes({ ...sizes, [side]: next });
    writeSetting(`dock.${side}`, next);
  };
  const other: Side = side === 'right' ? 'below' : 'right';
  const room = (event: { currentTarget: Element }) =>
    event.currentTarget.parentElement!.getBoundingClientRect();
  const onKeyDown = (event: KeyboardEvent) => {
    const [more, less] = side === 'right' ? ['ArrowLeft', 'ArrowRight'] : ['ArrowUp', 'ArrowDown'];
    if (event.key === more || event.key === less) {
      event.preventDefault();
      event.stopPropagation();
      const box = room(event);
      resize(size + (event.key === more ? STEP_PX : -STEP_PX), side === 'right' ? box.width : box.height);
    }
  };
  const onPointerMove = (event: PointerEvent) => {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) {
      const box = room(event);
      resize(
        side === 'right' ? box.right - event.clientX : box.bottom - event.clientY,
        side === 'right' ? box.width : box.height,
      );
    }
  };
  return (
    <div className={`${css.dock} ${css[side]}`} style={{ '--dock': `${size}px` } as CSSProperties}>
      {children}
      {panel && (
        <>
          <div
            role="separator"
            tabIndex={0}
            className={css.edge}
            data-part="dock-edge"
            aria-label="Size of the details panel"
            aria-orientation={side === 'right' ? 'vertical' : 'horizontal'}
            aria-valuenow={size}
            aria-valuemin={MIN_SIZE_PX}
            onKeyDown={onKeyDown}
            onPointerDown={event => event.currentTarget.setPointerCapture(event.pointerId)}
            onPointerMove={onPointerMove}
          />
          <div className={css.panel} data-part="dock" data-side={side}>
            <div className={css.parts}>{panel}</div>
            <Button look="text" className={css.move} onClick={() => move(other)}>
              {other === 'right' ? 'Dock on the right' : 'Dock below'}
            </Button>
          </div>
        </>
      )}
    </div>
  );
}
