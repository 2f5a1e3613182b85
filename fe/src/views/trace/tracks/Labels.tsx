import type { TracePayload } from '../../../api/types';
import { counterFormat, formatCount, plural } from '../../../base/format';
import { rowLabel, MAX_LANES, type Layout, type TrackRow, type Track } from '../../../timeline/draw/layout';
import { HEADER_PX } from '../../../timeline/draw/overlay';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import css from './Labels.module.css';

interface Props {
  payload: TracePayload;
  layout: Layout;
  /** Only rows between these are rendered, px. */
  from: number;
  to: number;
  onFold: (key: string) => void;
  onDeep: (track: number) => void;
  onPin: (track: number) => void;
}

/** The names of the tracks, beside the drawing. */
export function Labels({ payload, layout, from, to, onFold, onDeep, onPin }: Props) {
  return (
    <div className={css.labels}>
      <div className={css.corner}>Steps</div>
      {layout.rows
        .filter(row => row.y + row.height + HEADER_PX > from && row.y < to)
        .map(row => (
          <Label key={row.key} row={row} payload={payload} onFold={onFold} onDeep={onDeep} onPin={onPin} />
        ))}
    </div>
  );
}

interface LabelProps {
  row: TrackRow;
  payload: TracePayload;
  onFold: (key: string) => void;
  onDeep: (track: number) => void;
  onPin: (track: number) => void;
}

function Label({ row, payload, onFold, onDeep, onPin }: LabelProps) {
  const { track } = row;
  const group = row.group === null ? undefined : payload.groups[row.group];
  const name = track ? track.name : (group?.name ?? '');
  const folds = row.kind === 'group' ? row.key : String(track!.id);
  return (
    <div
      className={`${css.label} ${css[row.kind] ?? ''}`}
      data-part="track-label"
      data-kind={row.kind}
      style={{ top: row.y + HEADER_PX, height: row.height }}
      data-track={track?.id}
      data-lane={row.lane}
    >
      <Button
        look="bare"
        className={`${css.twist} ${row.folded ? '' : css.open}`}
        aria-expanded={!row.folded}
        aria-label={`${row.folded ? 'Unfold' : 'Fold'} ${name}`}
        onClick={() => onFold(folds)}
      >
        <Icon name="right" size={11} />
      </Button>
      <span className={css.name} title={track ? about(track, group?.name) : name}>
        <span className="clip">{rowLabel(row, payload)}</span>
        {track && !row.folded && row.height > 34 && <small className="clip">{detail(track)}</small>}
      </span>
      {track && row.unfolds && (
        <Button
          look="bare"
          className={css.more}
          aria-expanded={row.more === 0}
          aria-label={`${row.more > 0 ? plural(track.depth - MAX_LANES, 'more lane') : `The first ${MAX_LANES} lanes`} of ${name}`}
          title={row.more > 0 ? 'Show all lanes' : `Show the first ${MAX_LANES} lanes`}
          onClick={() => onDeep(track.id)}
        >
          {row.more > 0 ? '+' : '−'}
          {track.depth - MAX_LANES}
        </Button>
      )}
      {track && (
        <Button
          look="bare"
          className={css.pin}
          aria-pressed={row.pinned}
          aria-label={`${row.pinned ? 'Unpin' : 'Pin'} ${name}`}
          title={row.pinned ? 'Unpin' : 'Pin to the top'}
          onClick={() => onPin(track.id)}
        >
          <Icon name="pin" size={12} />
        </Button>
      )}
    </div>
  );
}

function detail(track: Track): string {
  if (track.kind === 'counter') {
    return range(track);
  }
  if (track.kind === 'blame') {
    return '';
  }
  const role = track.role ? `${track.role} ` : '';
  return `${role}${track.thread ?? ''}`;
}

function range(track: Track): string {
  if (track.low === null || track.high === null) {
    return '';
  }
  const say = counterFormat(track.unit);
  return `${say(track.low)} to ${say(track.high)}`;
}

function about(track: Track, group: string | undefined): string {
  const lines = [`${group ? `${group} · ` : ''}${track.name}`];
  if (track.thread !== null) {
    lines.push(`process/thread ${track.thread}`);
  }
  if (track.slices > 0) {
    lines.push(plural(track.slices, 'slice'));
  }
  if (track.python_slices > 0) {
    lines.push(`including ${formatCount(track.python_slices)} Python frames`);
  }
  if (track.untimed > 0) {
    lines.push(`${plural(track.untimed, 'slice')} without a time, not drawn`);
  }
  if (track.instants > 0) {
    lines.push(plural(track.instants, 'instant'));
  }
  if (track.samples > 0) {
    lines.push(`${plural(track.samples, 'sample')}, ${range(track)}`);
  }
  return lines.join('\n');
}
