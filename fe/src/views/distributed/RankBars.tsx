// The average step of every rank: computation, overlap, exposed communication, and the rest.
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import type { DistributedPayload } from '../../api/types';
import { exactDuration, formatDuration, formatRatio, timeUnit } from '../../base/format';
import { roundTickValues } from '../../base/ticks';
import { rankName, type StepPart } from './select';
import { useWidth } from '../../widgets/charts/useWidth';
import { Button } from '../../widgets/inputs/Button';
import css from './RankBars.module.css';

type Average = DistributedPayload['averages'][number];

interface Props {
  rows: Average[];
  /** Process and devices, shown below the name of a rank. */
  places: ReadonlyMap<string, string>;
  marked: string | null;
  onPick: (worker: string) => void;
}

export const PARTS: readonly (readonly [StepPart, string, string])[] = [
  ['computation_ns', 'Computation', 'computation'],
  ['overlap_ns', 'Overlap', 'overlap'],
  ['exposed_ns', 'Exposed communication', 'communication'],
  ['other_ns', 'Neither', 'other'],
];

const ROW_HEIGHT_PX = 40;
/** Most rows in sight; of more the list scrolls. */
const MAX_VISIBLE_ROWS = 9;
const LABEL_PADDING_PX = 14;
/** On average, over the letters of a label. */
const LETTER_WIDTH_PX = 6.4;

/** A bar for each rank, with its place in the job; a click picks it. */
export function RankBars({ rows, places, marked, onPick }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const { ref, width } = useWidth<HTMLSpanElement>();
  const most = Math.max(...rows.map(row => row.duration_ns), 1);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_HEIGHT_PX,
    overscan: 6,
  });
  return (
    <>
      <div ref={scroller} className={css.bars} style={{ maxHeight: MAX_VISIBLE_ROWS * ROW_HEIGHT_PX }}>
        <div style={{ height: virtual.getTotalSize(), position: 'relative' }}>
          {virtual.getVirtualItems().map(item => {
            const row = rows[item.index]!;
            return (
              <Button
                look="bare"
                key={row.worker}
                className={css.bar}
                data-part="rank-bar"
                style={{ transform: `translateY(${item.start}px)` }}
                title={`Open the overview of ${row.worker}`}
                onClick={() => onPick(row.worker)}
              >
                <span className={css.name}>
                  <span className={row.worker === marked ? 'strong' : ''}>
                    {rankName(row.rank, row.worker)}
                  </span>
                  <span className="dim clip">{places.get(row.worker)}</span>
                </span>
                <span className={css.track}>
                  {PARTS.map(([part, title, name]) => {
                    const share = row[part] / most;
                    return (
                      row[part] > 0 && (
                        <i
                          key={part}
                          className={`${css.part} ${css[name] ?? ''}`}
                          style={{ width: `${share * 100}%` }}
                          title={`${title}: ${exactDuration(row[part])}, ${formatRatio(row[part] / (row.duration_ns || 1))}`}
                        >
                          {name !== 'overlap' && label(title, row[part], row.duration_ns, share * width)}
                        </i>
                      )
                    );
                  })}
                </span>
                <span className="num">{formatDuration(row.duration_ns)}</span>
              </Button>
            );
          })}
        </div>
      </div>
      <div className={css.axis}>
        <span />
        <span ref={ref} className={css.axisTrack}>
          {roundTickValues(0, most, 5, timeUnit(most).scale).map(tick => (
            <span key={tick} style={{ left: `${(tick / most) * 100}%` }}>
              {tick === 0 ? '0' : formatDuration(tick)}
            </span>
          ))}
        </span>
        <span />
      </div>
    </>
  );
}

/** Return the longest label of a part that fits its width in pixels: title, time, and share of the step. */
function label(title: string, ns: number, step: number, width: number): string {
  const time = formatDuration(ns);
  const labels = [`${title} ${time} · ${formatRatio(ns / (step || 1))}`, `${title} ${time}`, time];
  return labels.find(text => LABEL_PADDING_PX + LETTER_WIDTH_PX * text.length <= width) ?? '';
}
