// The timeline and, once something is selected, what is known of it: below, or at the right where there is room.
import { useState, type CSSProperties, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';
import { readSetting, writeSetting } from '../../../base/browser/settings';
import { Button } from '../../../widgets/inputs/Button';
import css from './Dock.module.css';

type Side = 'right' | 'below';

/** From this width on there is room for it beside the tracks, all of which then stay in sight; a table needs more. */
const ROOM = { details: 1280, table: 1800 };
const LEAST = 140;
const STEP = 20;
/** A table shows some rows from the start. */
const SIZES = { details: { right: 360, below: 200 }, table: { right: 620, below: 280 } };

const keptSide = (): Side | null => {
  const kept = readSetting('dock');
  return kept === 'right' || kept === 'below' ? kept : null;
};

const keptSize = (side: Side): number | null => {
  const kept = readSetting(`dock.${side}`);
  return typeof kept === 'number' && kept >= LEAST ? kept : null;
};

interface Props {
  panel: ReactNode;
  holds: keyof typeof ROOM;
  children: ReactNode;
}

export function Dock({ panel, holds, children }: Props) {
  const [chosen, setChosen] = useState(keptSide);
  const side = chosen ?? (window.innerWidth >= ROOM[holds] ? 'right' : 'below');
  const [sizes, setSizes] = useState(() => ({ right: keptSize('right'), below: keptSize('below') }));
  const size = sizes[side] ?? SIZES[holds][side];
  const move = (next: Side) => {
    setChosen(next);
    writeSetting('dock', next);
  };
  const resize = (wanted: number, room: number) => {
    const next = Math.round(Math.max(LEAST, Math.min(wanted, room * 0.7)));
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
      resize(size + (event.key === more ? STEP : -STEP), side === 'right' ? box.width : box.height);
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
            aria-label="Size of the details"
            aria-orientation={side === 'right' ? 'vertical' : 'horizontal'}
            aria-valuenow={size}
            aria-valuemin={LEAST}
            onKeyDown={onKeyDown}
            onPointerDown={event => event.currentTarget.setPointerCapture(event.pointerId)}
            onPointerMove={onPointerMove}
          />
          <div className={css.panel} data-part="dock" data-side={side}>
            <div className={css.parts}>{panel}</div>
            <Button look="text" className={css.move} onClick={() => move(other)}>
              {other === 'right' ? 'Dock at the right' : 'Dock below'}
            </Button>
          </div>
        </>
      )}
    </div>
  );
}
