// The address map of a snapshot: each segment as a bar with its blocks where they lie.
import { memo } from 'react';
import type { AddressMap as MapPayload, MemoryFileInfo, Selectors } from '../../../api/types';
import { formatBytes, formatCount, plural } from '../../../base/format';
import { useView } from '../../../state/queries';
import { Panel } from '../../../widgets/Panel';
import { memoryCategoryColor } from './categories';
import css from './Snapshot.module.css';

interface Props {
  selectors: Selectors;
  file: MemoryFileInfo;
  device: number;
}

/** Browsers cut coordinates off at 2^25, which is less than the bytes of a segment. */
const UNITS = 10_000;

export const SegmentMap = memo(function AddressMap({ selectors, file, device }: Props) {
  const { data, error } = useView<MapPayload>('memory/map', selectors, {
    file: String(file.file),
    device: String(device),
  });
  const map = data?.state === 'ready' ? data.payload : undefined;
  if (!map) {
    return <Panel title="Segments">{error && <p className="dim">{error.message}</p>}</Panel>;
  }
  const widest = map.segments[0]?.bytes ?? 1;
  return (
    <Panel
      title="Segments"
      note={
        `${formatCount(map.total_segments)} at the end of the recording; ` +
        `${formatBytes(map.free_bytes)} free, the largest free block is ${formatBytes(map.largest_free_bytes)}`
      }
    >
      <ol className={css.segments} data-part="segments">
        {map.segments.map(segment => (
          <li key={segment.address} title={`${segment.address}, stream ${segment.stream}, ${segment.kind}`}>
            <span className="mono dim">{segment.address}</span>
            <svg
              className={css.map}
              viewBox={`0 0 ${UNITS} 1`}
              preserveAspectRatio="none"
              style={{ width: `${Math.max((segment.bytes / widest) * 100, 4)}%` }}
              role="img"
              aria-label={`${formatBytes(segment.allocated_bytes)} of ${formatBytes(segment.bytes)} in use`}
            >
              {segment.pieces.map(([offset, bytes, kind]) => (
                <rect
                  key={offset}
                  x={(offset / segment.bytes) * UNITS}
                  width={(bytes / segment.bytes) * UNITS}
                  height={1}
                  fill={memoryCategoryColor(kind)}
                >
                  <title>{`${kind}: ${formatBytes(bytes)}`}</title>
                </rect>
              ))}
            </svg>
            <span className="num">
              {formatBytes(segment.allocated_bytes)} of {formatBytes(segment.bytes)}
            </span>
            <span className="num dim">{plural(segment.blocks, 'block')}</span>
          </li>
        ))}
      </ol>
      {map.total_segments > map.segments.length && (
        <p className="dim">
          The largest {formatCount(map.segments.length)} of {plural(map.total_segments, 'segment')}.
        </p>
      )}
    </Panel>
  );
});
