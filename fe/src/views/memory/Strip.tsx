import { scaleLinear } from 'd3-scale';
import { useMemo } from 'react';
import type { MemoryCurve } from '../../api/types';
import { useWidth } from '../../widgets/charts/useWidth';
import { bounds, decode, surface } from './curve';
import type { TimeRange } from './state';
import css from './Strip.module.css';

/** Px. */
const HEIGHT = 28;

interface Props {
  curve: MemoryCurve;
  window: TimeRange;
  onWindow: (window: TimeRange) => void;
}

/** All of the recording, small, with the part that is shown; a click moves there. */
export function Strip({ curve, window, onWindow }: Props) {
  const { ref, width } = useWidth();
  const data = useMemo(() => decode(curve), [curve]);
  const { low, high } = useMemo(() => bounds(data), [data]);
  const span = Math.max(data.end - data.begin, 1);
  const x = scaleLinear([data.begin, data.begin + span], [0, width]);
  const y = scaleLinear([low, high > low ? high : low + 1], [HEIGHT - 2, 2]);
  return (
    <div ref={ref} className={css.strip} data-part="memory-strip">
      {width > 0 && (
        // oxlint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/click-events-have-key-events -- the curve above has the keys
        <svg
          width={width}
          height={HEIGHT}
          onClick={event => {
            const px = event.clientX - event.currentTarget.getBoundingClientRect().left;
            const middle = x.invert(px);
            const half = (window.end - window.begin) / 2;
            const begin = Math.min(Math.max(middle - half, data.begin), data.end - 2 * half);
            onWindow({ begin, end: begin + 2 * half });
          }}
        >
          <path d={surface(data, data.allocated, x, y)} className={css.area} />
          <rect
            x={x(window.begin)}
            width={Math.max(x(window.end) - x(window.begin), 3)}
            y={0.5}
            height={HEIGHT - 1}
            className={css.shown}
          />
        </svg>
      )}
    </div>
  );
}
