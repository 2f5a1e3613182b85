// One collective across the ranks: when each arrived, how long it waited, what it did before.
import type { CollectivePayload, Selectors } from '../../api/types';
import { CATEGORY_TITLE, type Category } from '../../base/category';
import { exactDuration, formatBytes, formatCount, formatDuration } from '../../base/format';
import { useView } from '../../state/queries';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { useStepWords } from '../../state/steps';
import { MAX_COMPARED_RANKS, rankName } from './select';
import rowDetailCss from '../../widgets/table/RowDetail.module.css';
import css from './Instance.module.css';

/** Most ranks with a line of their own. */
const MAX_LISTED_RANKS = 64;

interface Props {
  selectors: Selectors;
  id: number;
  onClose: () => void;
  onEvent: (worker: string, span: string, event: number) => void;
  onMerged: (workers: string[], params: Record<string, string>) => void;
}

export function InstanceDetail({ selectors, id, onClose, onEvent, onMerged }: Props) {
  const { data, error } = useView<CollectivePayload>('distributed/collective', selectors, {
    collective: String(id),
  });
  const say = useStepWords();
  const collective = data?.state === 'ready' ? data.payload : undefined;
  if (!collective) {
    return (
      <aside className={rowDetailCss.detail} data-part="row-detail">
        {error ? error.message : <span className="dim">Reading</span>}
      </aside>
    );
  }
  const { instance, participants } = collective;
  const timed = participants.filter(each => each.start_ns !== null && each.end_ns !== null);
  const begin = Math.min(...timed.map(each => each.start_ns!));
  const length = Math.max(Math.max(...timed.map(each => each.end_ns!)) - begin, 1);
  return (
    <aside className={rowDetailCss.detail} data-part="row-detail">
      <header>
        <h2>{instance.name}</h2>
        <Button look="quiet" title="Close" onClick={onClose}>
          <Icon name="close" size={14} />
        </Button>
      </header>
      <p className="dim">
        {[
          instance.step !== null && `${say('step')} ${instance.step}`,
          instance.sequence !== null && `sequence number ${formatCount(instance.sequence)}`,
          instance.bytes !== null && formatBytes(instance.bytes),
          instance.dtype,
          instance.skew_ns !== null && `${formatDuration(instance.skew_ns)} between first and last arrival`,
        ]
          .filter(Boolean)
          .join(' · ')}
      </p>
      {instance.mismatch && <p className="status warning">{instance.mismatch}</p>}
      {timed.length > 1 && (
        <Button
          onClick={() =>
            onMerged(timelineRanks(timed, instance.late_worker, collective.median_worker), {
              at: `${Math.floor(begin - length / 3)}-${Math.ceil(begin + 1.5 * length)}`,
            })
          }
        >
          Ranks on one timeline
        </Button>
      )}
      <ol className={css.arrivals}>
        {participants.slice(0, MAX_LISTED_RANKS).map(each => (
          <li key={each.worker}>
            <Button
              look="bare"
              className={css.arrival}
              data-part="arrival"
              title={`Show it on the timeline of ${each.worker}`}
              onClick={() => onEvent(each.worker, each.span, each.event)}
            >
              <span className={each.worker === instance.late_worker ? 'strong' : ''}>
                {rankName(each.rank, each.worker)}
              </span>
              <span className={css.track}>
                {each.start_ns !== null && each.end_ns !== null && (
                  <i
                    title={each.latency_ns === null ? undefined : exactDuration(each.latency_ns)}
                    style={{
                      left: `${((each.start_ns - begin) / length) * 100}%`,
                      width: `max(2px, ${((each.end_ns - each.start_ns) / length) * 100}%)`,
                    }}
                  />
                )}
              </span>
              <span className="num">{each.latency_ns === null ? '–' : formatDuration(each.latency_ns)}</span>
            </Button>
          </li>
        ))}
        {participants.length > MAX_LISTED_RANKS && (
          <li className="dim">and {formatCount(participants.length - MAX_LISTED_RANKS)} more ranks</li>
        )}
      </ol>
      {participants
        .filter(
          each =>
            each.before !== null &&
            (each.worker === instance.late_worker || each.worker === collective.median_worker),
        )
        .map(each => (
          <section key={each.worker}>
            <h3>
              {rankName(each.rank, each.worker)}{' '}
              <span className="dim">
                {each.worker === instance.late_worker ? 'arrived last' : 'arrived in the median position'};{' '}
                {formatDuration(each.before!.window_ns)} since the previous collective
              </span>
            </h3>
            <dl className={rowDetailCss.facts}>
              {each
                .before!.categories.filter(row => row.ns > 0)
                .map(row => (
                  <div key={row.name} className={css.fact}>
                    <dt>{CATEGORY_TITLE[row.name as Category] ?? row.name}</dt>
                    <dd>{formatDuration(row.ns)}</dd>
                  </div>
                ))}
              {[...each.before!.host.slice(0, 4), ...each.before!.kernels.slice(0, 3)].map(row => (
                <div key={row.name} className={css.fact}>
                  <dt className="clip" title={row.name}>
                    {row.short_name}
                  </dt>
                  <dd>{formatDuration(row.ns)}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
    </aside>
  );
}

/** The ranks to compare on one timeline: the last and the middle one to arrive, and others, by rank. */
function timelineRanks(all: CollectivePayload['participants'], ...named: (string | null)[]): string[] {
  const chosen = new Set(named.filter(worker => worker !== null));
  for (const { worker } of all) {
    if (chosen.size < MAX_COMPARED_RANKS) {
      chosen.add(worker);
    }
  }
  return all.map(each => each.worker).filter(worker => chosen.has(worker));
}
