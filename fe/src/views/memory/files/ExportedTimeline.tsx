// An exported memory timeline: what kinds of tensors fill the memory, stacked.
import { bisectRight } from 'd3-array';
import { scaleLinear } from 'd3-scale';
import { useMemo, useState } from 'react';
import type { MemoryFileInfo, MemoryTimeline, Selectors } from '../../../api/types';
import { decodeFloats } from '../../../base/base64';
import { formatBytes, plural } from '../../../base/format';
import { useView } from '../../../state/queries';
import { formatOffset, ticks } from '../../../base/ticks';
import { Answer } from '../../../widgets/Answer';
import { Sentence } from '../../../widgets/Sentence';
import { Panel } from '../../../widgets/Panel';
import { SavePicture } from '../../../widgets/charts/SavePicture';
import { GridLines } from '../../../widgets/charts/GridLines';
import { useWidth } from '../../../widgets/charts/useWidth';
import { byteTicks, stacked } from '../curve';
import { UnreadFile } from './UnreadFile';
import pageCss from '../index.module.css';
import css from './ExportedTimeline.module.css';
import curveCss from '../MemoryChart.module.css';

interface Props {
  selectors: Selectors;
  file: MemoryFileInfo;
  crumb: string;
  files: React.ReactNode;
}

const POINTS = '1200';
/** Layout, px. */
const HEIGHT = 340;
const LEFT = 64;
const BOTTOM = 24;

/** Each kind has its color, whichever others occur. */
const COLORS: Record<string, string> = {
  parameter: 'var(--m-parameter)',
  'optimizer state': 'var(--c-dataloader)',
  input: 'var(--c-other)',
  temporary: 'var(--c-runtime)',
  activation: 'var(--c-communication)',
  gradient: 'var(--c-cpu_exec)',
  'autograd detail': 'var(--c-memcpy)',
  unknown: 'var(--ln-2)',
};
const colorOf = (category: string): string => COLORS[category] ?? 'var(--ln-2)';

export function ExportedTimeline({ selectors, file, crumb, files }: Props) {
  const { data, error } = useView<MemoryTimeline>('memory/timeline', selectors, {
    file: String(file.file),
    points: POINTS,
  });
  const timeline = data?.state === 'ready' ? data.payload : undefined;
  if (!timeline) {
    return <UnreadFile file={file} crumb={crumb} files={files} error={error} />;
  }
  return (
    <div className={pageCss.view}>
      <Answer
        crumb={`${crumb} · ${file.name}`}
        why={`${plural(timeline.events, 'event')} of an exported timeline.`}
      >
        <Sentence text={timeline.headline} />
      </Answer>
      <div className={pageCss.tools} data-part="file-tools">
        {files}
      </div>
      <Panel
        title="Memory by kind of tensor"
        note="stacked; the dashed line is the peak"
        actions={<SavePicture name={`memory_by_kind_of_${file.name}`} />}
      >
        <Stack timeline={timeline} />
      </Panel>
    </div>
  );
}

function Stack({ timeline }: { timeline: MemoryTimeline }) {
  const { ref, width } = useWidth();
  const [pointed, setPointed] = useState<number | null>(null);
  const data = useMemo(
    () => ({ time: decodeFloats(timeline.time), sizes: timeline.sizes.map(decodeFloats) }),
    [timeline],
  );
  const { begin_ns: begin, end_ns: end } = timeline;
  const high = timeline.peak_bytes * 1.06 || 1;
  const inner = Math.max(width - LEFT - 8, 1);
  const x = scaleLinear([begin, Math.max(end, begin + 1)], [LEFT, LEFT + inner]);
  const y = scaleLinear([0, high], [HEIGHT - BOTTOM, 12]);
  const paths = width > 0 ? stacked(data.time, data.sizes, end, x, y) : [];
  const at = pointed === null ? timeline.peak_time_ns : x.invert(pointed);
  const index = pointed === null ? -1 : bisectRight(data.time, at) - 1;
  const sizes = index < 0 ? timeline.peak_sizes : data.sizes.map(column => column[index] ?? 0);
  return (
    <div className={css.kinds}>
      <div ref={ref} className={curveCss.curve} data-part="memory-curve" style={{ minHeight: HEIGHT }}>
        {width > 0 && (
          <svg
            width={width}
            height={HEIGHT}
            role="img"
            aria-label="Memory by kind over time"
            data-picture="Memory by kind of tensor over time, stacked; sizes at the peak"
            onPointerMove={event => {
              const px = event.clientX - event.currentTarget.getBoundingClientRect().left;
              setPointed(px >= LEFT ? px : null);
            }}
            onPointerLeave={() => setPointed(null)}
          >
            <GridLines
              ticks={byteTicks(0, high, 6)}
              y={y}
              left={LEFT}
              right={width - 8}
              label={formatBytes}
            />
            {paths.map((path, i) => (
              <path
                key={timeline.categories[i]}
                d={path}
                fill={colorOf(timeline.categories[i]!)}
                data-legend={`${timeline.categories[i]} ${formatBytes(timeline.peak_sizes[i] ?? 0)}`}
              />
            ))}
            <line
              x1={LEFT}
              x2={width - 8}
              y1={y(timeline.peak_bytes)}
              y2={y(timeline.peak_bytes)}
              className={curveCss.reserved}
              data-legend={`peak ${formatBytes(timeline.peak_bytes)}`}
            />
            {ticks({ begin, end }, inner, begin).map(tick => (
              <text
                key={tick.time}
                x={Math.min(x(tick.time), width - 30)}
                y={HEIGHT - 6}
                textAnchor="middle"
                className="dim"
              >
                {tick.label}
              </text>
            ))}
            {pointed !== null && (
              <g className={`${curveCss.instant} ${curveCss.faint}`}>
                <line x1={pointed} x2={pointed} y1={8} y2={HEIGHT - BOTTOM} />
              </g>
            )}
          </svg>
        )}
      </div>
      <table className={css.list} data-part="kind-list">
        <caption className="dim">
          {pointed === null ? 'At the peak, ' : 'At '}
          {formatOffset(Math.round(at - begin), Math.max((end - begin) / 1000, 1))}
        </caption>
        <tbody>
          {timeline.categories.map((category, i) => (
            <tr key={category}>
              <td>
                <i className="dot" style={{ background: colorOf(category) }} /> {category}
              </td>
              <td className="num">{formatBytes(sizes[i] ?? 0)}</td>
            </tr>
          ))}
          <tr className="strong">
            <td>all</td>
            <td className="num">{formatBytes(sizes.reduce((all, size) => all + size, 0))}</td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}
