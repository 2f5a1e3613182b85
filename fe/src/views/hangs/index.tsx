// Who a hung job waits for: the last collectives by rank, the verdict with its evidence, stacks, and groups.
import type { HangsPayload } from '../../api/types';
import { formatCount, plural } from '../../base/format';
import { Answer } from '../../widgets/Answer';
import { Panel } from '../../widgets/Panel';
import { Sentence, TextWithCode } from '../../widgets/Sentence';
import { Calls } from './Calls';
import { HangGroups, HangRanks } from './Tables';
import { Stacks } from './Stacks';
import { formatRanks, formatTime, VERDICT_NAMES } from './select';
import css from './index.module.css';

export default function HangsView({ payload, run }: { payload: HangsPayload; run: string }) {
  const read = payload.ranks.filter(rank => rank.state === 'ready').length;
  const asOf =
    payload.as_of_ns === null ? 'time of the dumps unknown' : `as of ${formatTime(payload.as_of_ns)}`;
  const { verdict } = payload.verdict;
  // Sends and receives have no table of calls: the stacks stand in its place.
  const isDrawn = payload.calls.length > 0 || payload.stacks.length === 0;
  const healthy = verdict === 'finished' || verdict === 'running';
  return (
    <div className={css.view}>
      <Answer
        crumb={[
          run,
          `${formatCount(read)} of ${plural(payload.ranks.length, 'flight recorder')} read`,
          asOf,
        ].join(' · ')}
        why={payload.explanation.length > 0 && <Sentence text={payload.explanation} />}
      >
        <Sentence text={payload.headline} />
      </Answer>
      {payload.problems.map(problem => (
        <p key={problem} className={css.problem}>
          {problem}
        </p>
      ))}
      <div className={css.columns}>
        <div className={css.column}>
          {isDrawn && <Calls payload={payload} />}
          {payload.stacks.length > 0 && <Stacks stacks={payload.stacks} />}
          {payload.groups.length > 0 && <HangGroups groups={payload.groups} />}
        </div>
        <Panel
          title="Verdict"
          actions={
            <span className={`badge ${healthy ? 'ok' : verdict === 'unknown' ? 'warn' : 'bad'}`}>
              {VERDICT_NAMES[verdict]}
            </span>
          }
        >
          <dl className={css.facts}>
            {payload.facts.map(({ title, text }) => (
              <div key={title}>
                <dt>{title}</dt>
                <dd>{text}</dd>
              </div>
            ))}
          </dl>
          {payload.verdict.why_unknown && (
            <p className={css.why}>
              <TextWithCode text={payload.verdict.why_unknown} />
            </p>
          )}
          {payload.ruled_out.length > 0 && (
            <>
              <h3 className={css.heading}>Ruled out</h3>
              <ul className={css.ruled}>
                {payload.ruled_out.map(({ title, text }) => (
                  <li key={title}>
                    {title}
                    <span>{text}</span>
                  </li>
                ))}
              </ul>
            </>
          )}
        </Panel>
      </div>
      <HangRanks ranks={payload.ranks} culprits={formatRanks(payload.verdict.culprit_ranks)} />
    </div>
  );
}
