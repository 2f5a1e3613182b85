// Rows of the table, flame graph and timeline links of Idle time.
import type { IdleFlamePayload, IdlePayload, IdleRow } from '../../api/types';
import { formatCount } from '../../base/format';
import type { FlameNode } from '../../widgets/charts/flame/layout';
import { causeColor, causeTitle, noHostDelay } from '../../base/causes';

/** A cause with its subjects below it, or a subject. */
export interface CauseRow {
  key: string;
  cause: string;
  title: string;
  /** The subject in full; the title may be shortened. */
  fullTitle: string;
  of: IdleRow | null;
  time: number;
  gaps: number;
  median: number | null;
  /** Upper bound of how much shorter a step would be if the host took no time here. */
  gain: number | null;
  emptied: number;
  emptiedBy: string | null;
  begin: number;
  end: number;
  event: number | null;
  below?: CauseRow[];
}

/** Unit of times: " per step" if they are means of several steps. */
export const perStep = ({ counted, step_noun: noun }: IdlePayload): string =>
  counted > 1 ? ` per ${noun}` : '';

/** Return the causes, most time first, each with its subjects; times are per step. */
export function causeRows({ causes, sums, counted, by }: IdlePayload): CauseRow[] {
  const steps = Math.max(counted, 1);
  const groups = new Map<string, IdleRow[]>();
  for (const row of causes) {
    groups.set(row.cause, [...(groups.get(row.cause) ?? []), row]);
  }
  return [...groups]
    .map(([cause, rows]) => {
      const longest = rows.reduce((max, row) => (length(row) > length(max) ? row : max));
      const total = sums.find(each => each.cause === cause);
      const callers = rows.filter(row => row.emptied_by !== null);
      return {
        key: cause,
        cause,
        title: causeTitle(cause),
        fullTitle: causeTitle(cause),
        of: null,
        time: sum(rows.map(row => row.time_ns)) / steps,
        gaps: total?.gaps ?? 0,
        gain: total?.gain_ns ?? null,
        median: rows.length === 1 ? rows[0]!.median_ns : null,
        emptied: sum(rows.map(row => row.emptied_ns)) / steps,
        emptiedBy: callers.toSorted((a, b) => b.emptied_ns - a.emptied_ns)[0]?.emptied_by ?? null,
        begin: longest.begin_ns,
        end: longest.end_ns,
        event: longest.event,
        below: rows.map(row => ({
          key: row.others > 0 ? `${cause}/…` : `${cause}/${row.subject ?? ''}`,
          cause,
          title: subjectTitle(row, by),
          fullTitle: row.subject ?? subjectTitle(row, by),
          of: row,
          time: row.time_ns / steps,
          gaps: row.gaps,
          gain: row.gain_ns,
          median: row.others > 0 ? null : row.median_ns,
          emptied: row.emptied_ns / steps,
          emptiedBy: row.emptied_by,
          begin: row.begin_ns,
          end: row.end_ns,
          event: row.event,
        })),
      };
    })
    .toSorted((a, b) => b.time - a.time);
}

function subjectTitle(row: IdleRow, by: IdlePayload['by']): string {
  if (row.others > 0) {
    return `${formatCount(row.others)} more`;
  }
  return (
    row.short_subject ??
    (by === 'emptied_by' ? notDrainedText(row.cause) : (noHostDelay(row.cause) ?? NOT_RECORDED[by]))
  );
}

/** Text instead of an unknown slice to blame; the host may not be late at all. */
export const missingSliceText = (cause: string): string => noHostDelay(cause) ?? NOT_RECORDED.cause;

/** Text instead of a call that drained the queue: only before a launch did the device catch up with the host. */
export const notDrainedText = (cause: string): string =>
  cause === 'launch_latency' ? 'caught up' : (noHostDelay(cause) ?? 'caught up');

const NOT_RECORDED = {
  cause: 'nothing recorded',
  operator: 'outside operators',
  module: 'outside modules',
  frame: 'no source line recorded',
};

const length = (row: IdleRow): number => row.end_ns - row.begin_ns;
const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

/** Timeline parameters that show a segment. A device's opens with everything known about it. While one stream waits
 * another may work, so a stream's opens as a time range with the event to blame. */
export function onTimeline(
  { device, stream }: Pick<IdlePayload, 'device' | 'stream'>,
  { begin, end, event }: Pick<CauseRow, 'begin' | 'end' | 'event'>,
): Record<string, string> {
  const margin = Math.max(Math.floor((end - begin) / 4), 1000);
  const at = `${begin - margin}-${end + margin}`;
  if (stream === null) {
    return { moment: `${device}:${begin}`, at };
  }
  const area = `${begin}-${end}`;
  return event === null ? { area, at } : { area, at, event: String(event) };
}

/** Categories of device work, as named by the device-time track of the timeline. */
export type Work = 'compute' | 'exposed_communication' | 'exposed_copy';

/** Timeline parameters that show the longest stretch of such work in the counted steps; for a stream, the steps. */
export function workOnTimeline(
  { device, stream, steps }: Pick<IdlePayload, 'device' | 'stream' | 'steps'>,
  step: string | undefined,
  work: Work,
): Record<string, string> {
  const chosen = steps.filter(each => (step === undefined ? each.typical : each.name === step));
  const counted = chosen.length > 0 ? chosen : steps;
  const begin = Math.min(...counted.map(each => each.start_ns));
  const end = Math.max(...counted.map(each => each.start_ns + each.duration_ns));
  return stream === null ? { moment: `${device}:${begin}-${end}:${work}` } : { area: `${begin}-${end}` };
}

/** Return the named parameters of the view that are set. */
export function pickParams(params: Record<string, string>, ...names: string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap(name => (params[name] === undefined ? [] : [[name, params[name]] as const])),
  );
}

export function buildIdleFlame({ frames, total_ns: total }: IdleFlamePayload): FlameNode {
  const nodes = frames.map((frame): FlameNode => ({
    name: frame.parent === null ? causeTitle(frame.cause) : frame.short_name,
    value: frame.value_ns,
    children: [],
    data: frame.event,
    color: causeColor(frame.cause),
  }));
  const root: FlameNode = { name: 'idle time', value: total, children: [] };
  frames.forEach((frame, i) =>
    (frame.parent === null ? root : nodes[frame.parent]!).children.push(nodes[i]!),
  );
  return root;
}
