// The timeline and, once something is selected, what is known of it: below, or at the right where there is room.
import { useState, type CSSProperties, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';
import { readSetting, writeSetting } from '../../../base/browser/settings';
import { Button } from '../../../widgets/inputs/Button';
import css from './Dock.module.css';

type Side = 'right' | 'below';

/** From this width on a panel below would be half empty. */
const WIDE = 1800;
const LEAST = 140;
const STEP = 20;
const SIZES: Record<Side, number> = { right: 380, below: 220 };

const keptSide = (): Side => {
  const kept = readSetting('dock');
  return kept === 'right' || kept === 'below' ? kept : window.innerWidth >= WIDE ? 'right' : 'below';
};

const keptSize = (side: Side): number => {
  const kept = readSetting(`dock.${side}`);
  return typeof kept === 'number' && kept >= LEAST ? kept : SIZES[side];
};

export function Dock({ panel, children }: { panel: ReactNode; children: ReactNode }) {
  const [side, setSide] = useState(keptSide);
  const [size, setSize] = useState(() => keptSize(side));
  const move = (next: Side) => {
    setSide(next);
    setSize(keptSize(next));
    writeSetting('dock', next);
  };
  const resize = (wanted: number, room: number) => {
    const next = Math.round(Math.max(LEAST, Math.min(wanted, room * 0.7)));
    setSize(next);
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
