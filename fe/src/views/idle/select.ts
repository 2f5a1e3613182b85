// The idle time as the page shows it: rows by cause, the parts of a step, the flame graph, what opens the timeline.
import type { IdleFlamePayload, IdlePayload, IdleRow } from '../../api/types';
import { formatCount } from '../../base/format';
import type { FlameNode } from '../../widgets/charts/flame/layout';
import { causeColor, causeTitle } from '../../base/causes';

/** A cause with its subjects below it, or a subject. */
export interface Row {
  key: string;
  cause: string;
  title: string;
  /** The subject in full, where its title is shorter. */
  whole: string;
  of: IdleRow | null;
  time: number;
  gaps: number;
  median: number | null;
  /** By which a step would be shorter, at most, if the host took no time here. */
  gain: number | null;
  emptied: number;
  emptiedBy: string | null;
  begin: number;
  end: number;
  event: number | null;
  below?: Row[];
}

/** What the times of rows refer to: of one step, or of the whole trace, that needs no word. */
export const perStep = ({ counted }: IdlePayload): string => (counted > 1 ? ' per step' : '');

/** The causes, most time first, each with its subjects; times are per step. */
export function causeRows({ causes, sums, counted, by }: IdlePayload): Row[] {
  const steps = Math.max(counted, 1);
  const groups = new Map<string, IdleRow[]>();
  for (const row of causes) {
    groups.set(row.cause, [...(groups.get(row.cause) ?? []), row]);
  }
  return [...groups]
    .map(([cause, rows]) => {
      const longest = rows.reduce((most, row) => (length(row) > length(most) ? row : most));
      const whole = sums.find(each => each.cause === cause);
      const callers = rows.filter(row => row.emptied_by !== null);
      return {
        key: cause,
        cause,
        title: causeTitle(cause),
        whole: causeTitle(cause),
        of: null,
        time: sum(rows.map(row => row.time_ns)) / steps,
        gaps: whole?.gaps ?? 0,
        gain: whole?.gain_ns ?? null,
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
          whole: row.subject ?? subjectTitle(row, by),
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
  return row.short_subject ?? (by === 'emptied_by' ? 'caught up' : (NOT_LATE[row.cause] ?? NOTHING[by]));
}

/** What is said of the host where the slice to blame is not known: it may not be late at all. */
export const blameless = (cause: string): string => NOT_LATE[cause] ?? NOTHING.cause;

const SUBMITTED = 'the work is submitted';
const UNKNOWN = 'when it was submitted is not recorded';

const NOT_LATE: Record<string, string> = {
  launch_latency: SUBMITTED,
  kernel_gap: SUBMITTED,
  graph_gap: SUBMITTED,
  waits_for_stream: SUBMITTED,
  device_wait: SUBMITTED,
  unlinked: UNKNOWN,
  before_recording: UNKNOWN,
  tail: 'no work follows',
};

const NOTHING = {
  cause: 'nothing recorded',
  operator: 'outside operators',
  module: 'outside modules',
  frame: 'no line of the program recorded',
};

const length = (row: IdleRow): number => row.end_ns - row.begin_ns;
const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

/** Parameters that show a part on the timeline: a device's with all that is known of it; where one stream waits,
 * another may work, so a stream's is a stretch with what is to blame. */
export function onTimeline(
  { device, stream }: Pick<IdlePayload, 'device' | 'stream'>,
  { begin, end, event }: Pick<Row, 'begin' | 'end' | 'event'>,
): Record<string, string> {
  const margin = Math.max(Math.floor((end - begin) / 4), 1000);
  const at = `${begin - margin}-${end + margin}`;
  if (stream === null) {
    return { moment: `${device}:${begin}`, at };
  }
  const area = `${begin}-${end}`;
  return event === null ? { area, at } : { area, at, event: String(event) };
}

/** What the device works on, as the track of what its time goes to calls it. */
export type Work = 'compute' | 'exposed_communication' | 'exposed_copy';

/** What shows the longest stretch of that work in the steps that are counted; of one stream these steps. */
export function workOnTimeline(
  { device, stream, steps }: Pick<IdlePayload, 'device' | 'stream' | 'steps'>,
  step: string | undefined,
  work: Work,
): Record<string, string> {
  const chosen = steps.filter(each => (step === undefined ? each.complete : each.name === step));
  const counted = chosen.length > 0 ? chosen : steps;
  const begin = Math.min(...counted.map(each => each.start_ns));
  const end = Math.max(...counted.map(each => each.start_ns + each.duration_ns));
  return stream === null ? { moment: `${device}:${begin}-${end}:${work}` } : { area: `${begin}-${end}` };
}

/** What the panels below ask for, from the parameters of the view. */
export function chosen(params: Record<string, string>, ...names: string[]): Record<string, string> {
  return Object.fromEntries(
    names.flatMap(name => (params[name] === undefined ? [] : [[name, params[name]] as const])),
  );
}

export function flameRoot({ frames, total_ns: total }: IdleFlamePayload): FlameNode {
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
