// The history of a snapshot on one axis: bytes in use by category, reserved bytes, and failed allocations.
import { bisectRight } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { useMemo } from 'react';
import type { MemorySnapshot } from '../../../api/types';
import { decodeFloats } from '../../../base/base64';
import { formatBytes, formatCount } from '../../../base/format';
import { GridLines } from '../../../widgets/charts/GridLines';
import { useWidth } from '../../../widgets/charts/useWidth';
import { bounds, byteTicks, outline, stacked, type DecodedCurve } from '../curve';
import { memoryCategoryColor } from './categories';
import css from './Snapshot.module.css';
import curveCss from '../MemoryChart.module.css';

interface Props {
  snapshot: MemorySnapshot;
  /** The chosen entry, null for the state of the snapshot itself. */
  entry: number | null;
  onPick: (entry: number) => void;
}

/** Layout, px. */
const HEIGHT = 300;
const LEFT = 64;
const BOTTOM = 24;

export function SnapshotHistory({ snapshot, entry, onPick }: Props) {
  const { ref, width } = useWidth();
  const data = useMemo(() => {
    const last = decodeFloats(snapshot.reserved_last);
    const time = decodeFloats(snapshot.entry);
    const curve: DecodedCurve = {
      begin: time[0] ?? 0,
      end: (time[time.length - 1] ?? 0) + 1,
      time,
      allocated: {
        min: decodeFloats(snapshot.allocated_min),
        max: decodeFloats(snapshot.allocated_max),
        last: decodeFloats(snapshot.allocated_last),
      },
      reserved: { min: last, max: last, last },
    };
    return {
      curve,
      peaks: decodeFloats(snapshot.peak_of_point),
      sizes: snapshot.category_bytes.map(decodeFloats),
      high: bounds(curve).high,
    };
  }, [snapshot]);
  const { curve, peaks, sizes } = data;
  const entries = snapshot.devices.find(each => each.id === snapshot.device)?.entries ?? 0;
  const top = data.high * 1.06 || 1;
  const x = scaleLinear([0, Math.max(entries, 1)], [LEFT, width - 8]);
  const y = scaleLinear([0, top], [HEIGHT - BOTTOM, 12]);
  const paths = useMemo(
    () =>
      width > 0
        ? stacked(
            curve.time,
            sizes,
            entries,
            scaleLinear([0, Math.max(entries, 1)], [LEFT, width - 8]),
            scaleLinear([0, top], [HEIGHT - BOTTOM, 12]),
          )
        : [],
    [curve, sizes, entries, width, top],
  );
  const pointAt = (value: number) => Math.max(bisectRight(curve.time, value) - 1, 0);
  // A click opens the moment of its point when most is in use, as the areas show it.
  const pick = (point: number) => {
    const chosen = peaks[Math.min(Math.max(point, 0), peaks.length - 1)];
    if (chosen !== undefined) {
      onPick(chosen);
    }
  };
  return (
    <>
      <div ref={ref} className={curveCss.curve} data-part="memory-curve" style={{ minHeight: HEIGHT }}>
        {width > 0 && (
          <svg
            width={width}
            height={HEIGHT}
            role="slider"
            tabIndex={0}
            aria-label="Memory in use over the entries of the history; arrow keys choose an instant"
            aria-valuemin={0}
            aria-valuemax={Math.max(entries - 1, 0)}
            aria-valuenow={entry ?? Math.max(entries - 1, 0)}
            data-picture={`Memory of device ${snapshot.device} by category over the entries of the history`}
            onClick={event => {
              const px = event.clientX - event.currentTarget.getBoundingClientRect().left;
              pick(pointAt(x.invert(px)));
            }}
            onKeyDown={event => {
              const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
              if (step) {
                event.preventDefault();
                pick(pointAt(entry ?? entries) + step);
              }
            }}
          >
            <GridLines ticks={byteTicks(0, top, 5)} y={y} left={LEFT} right={width - 8} label={formatBytes} />
            {paths.map((path, i) => (
              <path
                key={snapshot.categories[i]}
                d={path}
                fill={memoryCategoryColor(snapshot.categories[i]!)}
                data-legend={snapshot.categories[i]}
              />
            ))}
            <path
              d={outline({ ...curve, end: entries }, curve.reserved, x, y)}
              className={curveCss.reserved}
              data-legend="reserved by the allocator"
            />
            {snapshot.out_of_memory.map(each => (
              <g key={each.entry} className={css.failure} data-part="oom-mark">
                <line x1={x(each.entry)} x2={x(each.entry)} y1={8} y2={HEIGHT - BOTTOM} />
                <title>{`Out of memory: ${formatBytes(each.bytes)} requested, entry ${formatCount(each.entry)}`}</title>
              </g>
            ))}
            {entry !== null && (
              <g className={curveCss.instant} data-part="instant">
                <line x1={x(entry)} x2={x(entry)} y1={8} y2={HEIGHT - BOTTOM} />
              </g>
            )}
            <text x={LEFT} y={HEIGHT - 6} className="dim">
              entry 0
            </text>
            <text x={width - 8} y={HEIGHT - 6} textAnchor="end" className="dim">
              {formatCount(Math.max(entries - 1, 0))}
            </text>
          </svg>
        )}
      </div>
      <ul className={css.legend} data-part="snapshot-legend">
        {snapshot.categories.map(category => (
          <li key={category}>
            <i className="dot" style={{ background: memoryCategoryColor(category) }} /> {category}
          </li>
        ))}
        <li>
          <i className={css.dashed} /> reserved
        </li>
        {snapshot.out_of_memory.length > 0 && (
          <li>
            <i className={css.failed} /> out of memory
          </li>
        )}
      </ul>
    </>
  );
}
