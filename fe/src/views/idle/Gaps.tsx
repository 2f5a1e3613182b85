// Detail of a row: its gaps, longest first, each with a link to the timeline.
import type { IdleGapsPayload, IdlePayload } from '../../api/types';
import { formatDuration, formatRatio, plural } from '../../base/format';
import { useView } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Name, Names } from '../../widgets/Name';
import { RowDetail } from '../../widgets/table/RowDetail';
import rowDetailCss from '../../widgets/table/RowDetail.module.css';
import { causeColor } from '../../base/causes';
import { useStepWords } from '../../state/steps';
import { missingSliceText, pickParams, onTimeline, perStep, type CauseRow } from './select';
import css from './Gaps.module.css';

/** Gaps that are requested and listed, longest first. */
const MAX_GAPS = 50;

export function Gaps({
  payload,
  row,
  onClose,
}: {
  payload: IdlePayload;
  row: CauseRow;
  onClose: () => void;
}) {
  const { selection, select } = useSelection();
  const say = useStepWords();
  const { run, worker, span, params } = selection;
  const idle = payload.idle_ns / Math.max(payload.counted, 1);
  const subject = row.of?.subject;
  const requested = {
    ...pickParams(params, 'by', 'step', 'device', 'stream'),
    cause: row.cause,
    ...(typeof subject === 'string' ? { subject } : {}),
    limit: String(MAX_GAPS),
  };
  const answer = useView<IdleGapsPayload>('idle/gaps', { run, worker, span }, requested);
  const gaps = answer.data?.state === 'ready' ? answer.data.payload : undefined;
  return (
    <RowDetail
      label={`Gaps of ${row.title}`}
      title={
        <>
          <i className="dot" style={{ background: causeColor(row.cause) }} />
          {row.title}
        </>
      }
      fullName={row.fullTitle}
      onClose={onClose}
    >
      <p className="dim">
        {formatDuration(row.time)}
        {perStep(payload)}, {formatRatio(idle > 0 ? row.time / idle : 0)} of the idle time
      </p>
      <div className={rowDetailCss.actions}>
        <Button
          className="strong"
          onClick={() => select({ view: 'trace', params: onTimeline(payload, row) })}
        >
          <Icon name="timeline" size={14} /> Show the longest on the timeline
        </Button>
      </div>
      {answer.error && <p className="status error">{answer.error.message}</p>}
      {gaps && (
        <>
          <h3>
            {gaps.total > MAX_GAPS
              ? `The ${MAX_GAPS} longest of ${plural(gaps.total, 'part')}`
              : `${plural(gaps.total, 'part')}, longest first`}
          </h3>
          <Names of={gaps.rows.flatMap(gap => gap.short_name ?? [])}>
            <ul className={css.gaps}>
              {gaps.rows.map(gap => (
                <li key={gap.begin_ns}>
                  <Button
                    look="text"
                    onClick={() =>
                      select({
                        view: 'trace',
                        params: onTimeline(payload, {
                          begin: gap.begin_ns,
                          end: gap.end_ns,
                          event: gap.event,
                        }),
                      })
                    }
                  >
                    {formatDuration(gap.end_ns - gap.begin_ns)}
                  </Button>
                  <Name text={gap.short_name ?? missingSliceText(row.cause)} title={gap.name ?? undefined} />
                  <span className="dim">
                    {say('step')} {gap.step}
                  </span>
                </li>
              ))}
            </ul>
          </Names>
        </>
      )}
    </RowDetail>
  );
}
