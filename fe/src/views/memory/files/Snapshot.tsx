// A CUDA memory snapshot: why it ran out, its history by category, what is in use at an instant, and its segments.
import { useState } from 'react';
import type { MemoryFileInfo, MemorySnapshot, Selectors } from '../../../api/types';
import { deviceName, formatBytes, formatCount, formatRatio } from '../../../base/format';
import { useView, useWorkers } from '../../../state/queries';
import { Answer } from '../../../widgets/Answer';
import { Panel } from '../../../widgets/Panel';
import { Select } from '../../../widgets/inputs/Select';
import { Sentence } from '../../../widgets/Sentence';
import { SavePicture } from '../../../widgets/charts/SavePicture';
import { SegmentMap } from './SegmentMap';
import { UnreadFile } from './UnreadFile';
import { Frames } from './Frames';
import { SnapshotHistory } from './SnapshotHistory';
import { SnapshotInstant } from './SnapshotInstant';
import { SnapshotPair } from './SnapshotPair';
import { RankPeaks, useSnapshotRanks } from './RankPeaks';
import pageCss from '../index.module.css';

interface Props {
  selectors: Selectors;
  file: MemoryFileInfo;
  crumb: string;
  files: React.ReactNode;
}

/** An instant that was chosen; undefined: the peak. */
type Chosen = number | null | undefined;

export function Snapshot({ selectors, file, crumb, files }: Props) {
  const [device, setDevice] = useState('');
  const [chosen, setChosen] = useState<Chosen>(undefined);
  const { data, error } = useView<MemorySnapshot>('memory/snapshot', selectors, {
    file: String(file.file),
    ...(device && { device }),
  });
  const workers = useWorkers(selectors.run);
  const several = (workers.data?.workers.length ?? 0) > 1;
  const snapshot = data?.state === 'ready' ? data.payload : undefined;
  const { ranks } = useSnapshotRanks(selectors, several);
  const shownDevice = snapshot?.devices.find(each => each.id === snapshot.device);
  if (!snapshot || !shownDevice) {
    return <UnreadFile file={file} crumb={crumb} files={files} error={error} />;
  }
  const remedies = snapshot.oom.at(-1)?.remedies ?? [];
  const growth = snapshot.growth
    ? snapshot.growth.leaks.length === 0 && snapshot.growth.summary
    : snapshot.reasons.growth;
  const entry = chosen === undefined ? snapshot.peak_entry : chosen;
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
            {snapshot.oom.length === 0 && ranks && ranks.failures.length > 0 && (
              <span data-part="failures">
                {' '}
                <Sentence text={ranks.failures} />
              </span>
            )}
          </>
        }
      >
        <Sentence text={snapshot.headline} />
      </Answer>
      <div className={pageCss.tools} data-part="file-tools">
        {files}
        {snapshot.reasons.incomplete && (
          <p className={pageCss.warning} data-part="incomplete">
            Incomplete: <Sentence text={snapshot.reasons.incomplete} />.
          </p>
        )}
        {snapshot.devices.length > 1 && (
          <Select
            label="Device"
            value={String(snapshot.device)}
            options={snapshot.devices.map(each => [String(each.id), deviceName('CUDA', each.id)] as const)}
            onChange={value => {
              setDevice(value);
              setChosen(undefined);
            }}
          />
        )}
      </div>
      <div className={pageCss.top}>
        <Panel
          title="In use by category"
          note={peaks(snapshot, shownDevice.entries)}
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
            <SnapshotHistory snapshot={snapshot} entry={entry} onPick={setChosen} />
          )}
          {growth && (
            <p className="dim" data-part="growth">
              <Sentence text={growth} />
            </p>
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
        <SnapshotInstant
          selectors={selectors}
          file={file}
          snapshot={snapshot}
          entry={entry}
          onPick={setChosen}
        />
      </div>
      {several && <RankPeaks selectors={selectors} />}
      <SnapshotPair selectors={selectors} device={snapshot.device} path={file.path} />
      <SegmentMap selectors={selectors} file={file} device={snapshot.device} />
    </div>
  );
}

/** The entries of a history and its peaks, inside and outside of steps where these are recorded. */
function peaks(snapshot: MemorySnapshot, entries: number): string {
  const device = snapshot.devices.find(each => each.id === snapshot.device);
  const counted = typeof device?.requested_bytes === 'number' ? ' requested' : '';
  const parts = [
    `${formatCount(entries)} ${entries === 1 ? 'entry' : 'entries'}`,
    `peak ${formatBytes(snapshot.peak_allocated_bytes)}${counted}`,
    ...(snapshot.step_peak ? [`in steps ${formatBytes(snapshot.step_peak.bytes)}`] : []),
    ...(snapshot.outside_peak ? [`outside of steps ${formatBytes(snapshot.outside_peak.bytes)}`] : []),
    ...(snapshot.unknown_ratio ? [`${formatRatio(snapshot.unknown_ratio)} of the peak unknown`] : []),
  ];
  return parts.join('; ');
}
