// A CUDA memory snapshot: what the allocator of a device had allocated when it was taken, and its history.
import { scaleLinear } from 'd3-scale';
import { useMemo, useState } from 'react';
import type { MemoryFileInfo, MemorySnapshot, Selectors } from '../../../api/types';
import { decodeFloats } from '../../../base/base64';
import { deviceName, formatBytes, formatCount, formatRatio, plural } from '../../../base/format';
import { useView } from '../../../state/queries';
import { Answer } from '../../../widgets/Answer';
import { Panel } from '../../../widgets/Panel';
import { Select } from '../../../widgets/inputs/Select';
import { Sentence } from '../../../widgets/Sentence';
import { SourceFrame } from '../../../widgets/SourceFrame';
import { SavePicture } from '../../../widgets/charts/SavePicture';
import { Grid } from '../../../widgets/charts/Grid';
import { useWidth } from '../../../widgets/charts/useWidth';
import { bounds, byteTicks, outline, surface, type Curve } from '../curve';
import { FileState } from './FileState';
import pageCss from '../index.module.css';
import liveCss from '../Live.module.css';
import panelCss from '../../../widgets/Panel.module.css';
import css from './Snapshot.module.css';
import sourceFrameCss from '../../../widgets/SourceFrame.module.css';
import curveCss from '../Curve.module.css';

interface Props {
  selectors: Selectors;
  file: MemoryFileInfo;
  crumb: string;
  files: React.ReactNode;
}

const LIMIT = '200';
const HEIGHT = 220;
const LEFT = 64;

export function Snapshot({ selectors, file, crumb, files }: Props) {
  const [device, setDevice] = useState('');
  const { data, error } = useView<MemorySnapshot>('memory/snapshot', selectors, {
    file: String(file.file),
    limit: LIMIT,
    ...(device && { device }),
  });
  const snapshot = data?.state === 'ready' ? data.payload : undefined;
  const shownDevice = snapshot?.devices.find(each => each.id === snapshot.device);
  if (!snapshot || !shownDevice) {
    return <FileState file={file} crumb={crumb} files={files} error={error} />;
  }
  const remedies = snapshot.oom.at(-1)?.remedies ?? [];
  const top = snapshot.stacks[0];
  const known = (top?.frames.length ?? 0) > 0;
  return (
    <div className={pageCss.view}>
      <Answer
        crumb={`${crumb} · ${file.name}`}
        why={
          <>
            <Sentence text={snapshot.details} />
            {remedies.map((remedy, i) => (
              // oxlint-disable-next-line react/no-array-index-key -- a fixed list, most effective first
              <span key={i} data-part="remedy">
                {' '}
                <Sentence text={remedy} />
              </span>
            ))}
          </>
        }
      >
        <Sentence text={snapshot.headline} />
      </Answer>
      <div className={pageCss.tools} data-part="file-tools">
        {files}
        {snapshot.devices.length > 1 && (
          <Select
            label="Device"
            value={String(snapshot.device)}
            options={snapshot.devices.map(each => [String(each.id), deviceName('CUDA', each.id)] as const)}
            onChange={setDevice}
          />
        )}
      </div>
      <div className={pageCss.top}>
        <Panel
          title="Recorded history"
          note={`${formatCount(shownDevice.entries)} ${shownDevice.entries === 1 ? 'entry' : 'entries'}; peak ${formatBytes(snapshot.peak_allocated_bytes)}`}
          actions={
            !snapshot.reasons.entry && (
              <SavePicture name={`history_of_${file.name}_device_${snapshot.device}`} />
            )
          }
        >
          {snapshot.reasons.entry ? (
            <p className="dim">
              <Sentence text={snapshot.reasons.entry} />
            </p>
          ) : (
            <History snapshot={snapshot} />
          )}
          {snapshot.out_of_memory.map(each => (
            <details key={each.entry} className="status error" data-part="allocation-error">
              <summary>
                An allocation of {formatBytes(each.bytes)} failed
                {each.device_free_bytes !== null && `; ${formatBytes(each.device_free_bytes)} were free`}
              </summary>
              <Frames frames={each.frames} />
            </details>
          ))}
        </Panel>
        <section className={`panel ${liveCss.live}`} data-part="memory-live">
          <header className={panelCss.head}>
            <h2>In use by stack</h2>
            <span className={panelCss.note}>
              {formatBytes(shownDevice.allocated_bytes)}, {plural(snapshot.total_stacks, 'stack')}
            </span>
          </header>
          {!known && snapshot.reasons.stacks && (
            <p className={`dim ${pageCss.pad}`}>
              <Sentence text={snapshot.reasons.stacks} />
            </p>
          )}
          <ol className={liveCss.rows} data-part="live-rows">
            {snapshot.stacks.map((stack, i) => (
              // oxlint-disable-next-line react/no-array-index-key -- a fixed list, largest first
              <li key={i}>
                <details>
                  <summary className={liveCss.row}>
                    <span className="clip" title={stack.frames[0]?.text}>
                      {stack.frames[0]?.text ?? 'no stack recorded'}
                    </span>
                    <span className="num dim">{formatCount(stack.blocks)}</span>
                    <span className={liveCss.bar}>
                      <i style={{ width: `${(stack.bytes / (shownDevice.allocated_bytes || 1)) * 100}%` }} />
                    </span>
                    <span className="num">{formatBytes(stack.bytes)}</span>
                    <span className="num dim">
                      {formatRatio(stack.bytes / (shownDevice.allocated_bytes || 1))}
                    </span>
                  </summary>
                  <Frames frames={stack.frames} />
                </details>
              </li>
            ))}
          </ol>
        </section>
      </div>
      <Panel
        title="Segments"
        note={`${formatCount(snapshot.total_segments)}, one per cudaMalloc; the filled part is in use`}
      >
        <ol className={css.segments} data-part="segments">
          {snapshot.segments.map(segment => (
            <li key={segment.address} title={`${segment.address}, stream ${segment.stream}, ${segment.kind}`}>
              <span className="mono dim">{segment.address}</span>
              <span className={liveCss.bar}>
                <i style={{ width: `${(segment.allocated_bytes / (segment.bytes || 1)) * 100}%` }} />
              </span>
              <span className="num">
                {formatBytes(segment.allocated_bytes)} of {formatBytes(segment.bytes)}
              </span>
              <span className="num dim">{plural(segment.blocks, 'block')}</span>
            </li>
          ))}
        </ol>
      </Panel>
    </div>
  );
}

function Frames({ frames }: { frames: MemorySnapshot['stacks'][number]['frames'] }) {
  return (
    <ol className={sourceFrameCss.frames}>
      {frames.map((frame, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- recursion repeats a frame
        <li key={i}>
          <SourceFrame text={frame.text} file={frame.file} line={frame.line} />
        </li>
      ))}
    </ol>
  );
}

function History({ snapshot }: { snapshot: MemorySnapshot }) {
  const { ref, width } = useWidth();
  const curve = useMemo<Curve>(() => {
    const last = decodeFloats(snapshot.reserved_last);
    const time = decodeFloats(snapshot.entry);
    return {
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
  }, [snapshot]);
  const { low, high } = useMemo(() => bounds(curve), [curve]);
  const top = high * 1.06 || 1;
  const x = scaleLinear([curve.begin, curve.end], [LEFT, width - 8]);
  const y = scaleLinear([low, top], [HEIGHT - 24, 12]);
  return (
    <div ref={ref} className={curveCss.curve} data-part="memory-curve" style={{ minHeight: HEIGHT }}>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label="Memory over the entries of the history"
          data-picture={`Memory of device ${snapshot.device} over the entries of the history`}
        >
          <Grid ticks={byteTicks(low, top, 5)} y={y} left={LEFT} right={width - 8} label={formatBytes} />
          <path d={surface(curve, curve.allocated, x, y)} className={curveCss.area} />
          <path
            d={outline(curve, curve.reserved, x, y)}
            className={curveCss.reserved}
            data-legend="reserved by the allocator"
          />
          <path
            d={outline(curve, curve.allocated, x, y)}
            className={curveCss.allocated}
            data-legend="allocated"
          />
          <text x={LEFT} y={HEIGHT - 6} className="dim">
            entry {formatCount(curve.begin)}
          </text>
          <text x={width - 8} y={HEIGHT - 6} textAnchor="end" className="dim">
            {formatCount(curve.end - 1)}
          </text>
        </svg>
      )}
    </div>
  );
}
