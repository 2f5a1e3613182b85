import { useEffect, useState } from 'react';
import type { Overview, ViewAnswer } from '../../api/types';
import type { Category } from '../../base/category';
import { formatDuration } from '../../base/format';
import { firstSentence } from '../../base/text';
import { useView, useWorkers } from '../../state/queries';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Answer } from '../../widgets/Answer';
import { HowWeKnow } from '../../widgets/HowWeKnow';
import { Opening } from '../../widgets/Opening';
import { Panel } from '../../widgets/Panel';
import { ReservedWidth } from '../../widgets/Pending';
import { Sentence } from '../../widgets/Sentence';
import { Term } from '../../widgets/Term';
import { SavePicture } from '../../widgets/charts/SavePicture';
import { useStepWords } from '../../state/steps';
import { Advice } from './Advice';
import { MAX_RANK_BARS } from './RankPicture';
import { Breakdown } from './Breakdown';
import { Configuration, DeviceCard } from './Devices';
import { Hardware } from './Hardware';
import { NextQuestion, useNextAnswer } from './NextQuestion';
import { communicates, evidence, shown } from './select';
import { StepBar } from './StepBar';
import { Story } from '../../widgets/Story';
import { StepColumns } from './StepColumns';
import css from './index.module.css';

/** How long all answers are waited for, ms: what comes in time is drawn at once, without room for what may come. */
export const GRACE_MS = 500;

/** Letters reserved in the headline until it says what to do first, and in a job until it names a late rank. */
const START_LETTERS = 60;
const LATE_RANK_LETTERS = 100;
/** Letters reserved below it: the critical path and leaks, and the comparison with other ranks. */
const EVIDENCE_LETTERS = 90;
const RANKS_LETTERS = 240;

interface Props {
  payload: Overview;
  crumb: string;
  run: string;
  worker: string;
  span: string;
}

/** Returns whether files of other ranks are still being read; until then the answer is that of this file alone. */
const stillCompared = (answer: ViewAnswer<Overview> | undefined): boolean =>
  answer?.state !== 'ready' || (answer.loading > 0 && answer.payload.beside.length === 0);

export default function OverviewView({ payload: first, crumb, run, worker, span }: Props) {
  const { selection, select } = useSelection();
  const full = useView<Overview>('overview', { run, worker, span }, {}, first.preview);
  const others = useWorkers(communicates(first) ? run : undefined).data?.workers;
  const workers = others?.length ?? 1;
  // A job of which one rank is here has nothing to compare with, and no room is left for what that would say.
  const compares = communicates(first) && (others === undefined || workers > 1);
  const ranks = useView<Overview>('overview/ranks', { run, worker, span }, {}, compares);
  const ready = [ranks.data, full.data].find(data => data?.state === 'ready');
  const payload = ready?.payload ?? first;
  const say = useStepWords();
  const coming = payload.preview && !full.error;
  const comparing = compares && !ranks.error && stillCompared(ranks.data);
  // What to do first may be to find out why another rank is late: no other advice stands there until that is known.
  const headline = comparing ? firstSentence(payload.headline) : payload.headline;
  const failed = full.error ? [{ text: full.error.message }] : undefined;
  const chosen = payload.steps.some(step => step.name === selection.params.step)
    ? selection.params.step
    : undefined;
  const now = shown(payload, chosen);
  const hasSeveralSteps = payload.steps.length > 1;
  const isAnswered = !coming && !comparing && payload.recommendations.length === 0;
  const next = useNextAnswer(payload, { run, worker, span }, isAnswered);
  const waits = useGrace(coming || comparing || next?.found === null, crumb, GRACE_MS);
  if (waits) {
    return <Opening title="Overview" crumb={crumb} />;
  }
  const advice = (
    <Advice
      items={payload.recommendations}
      none={payload.no_advice}
      error={full.error?.message}
      coming={coming ? 'replay' : comparing && workers > 1 ? 'ranks' : null}
      step={shown(payload, undefined)}
      ranks={workers > 1 && workers <= MAX_RANK_BARS ? { count: workers, run, span } : null}
    />
  );
  const howWeKnow = payload.gains.length > 0 && (
    <HowWeKnow>
      <p>
        <Sentence text={payload.gains} />
      </p>
    </HowWeKnow>
  );
  if (!now) {
    return (
      <>
        <Answer crumb={crumb} why={<Sentence text={payload.reasons.average ?? []} />}>
          <Sentence text={headline} />
        </Answer>
        {advice}
        {howWeKnow}
      </>
    );
  }
  const gpu =
    payload.devices.length === 0
      ? null
      : payload.devices.every(device => device.kind === 'CUDA' || device.kind === 'ROCm')
        ? 'GPU'
        : 'Device';
  const choose = (step: string | undefined) => {
    const { step: _, ...rest } = selection.params;
    select({ params: step === undefined ? rest : { ...rest, step } });
  };
  const open = (category: Category) => select(evidence(payload, category, chosen));
  return (
    <>
      <Story coming={coming || comparing}>
        <Answer
          key={coming || comparing ? 'first' : 'final'}
          crumb={crumb}
          why={
            <>
              <Sentence text={payload.explanation} />
              {coming && <ReservedWidth letters={EVIDENCE_LETTERS} />}
            </>
          }
        >
          <Sentence text={headline} />
          {(coming || comparing) && <ReservedWidth letters={comparing ? LATE_RANK_LETTERS : START_LETTERS} />}
        </Answer>
        {payload.beside.length > 0 && (
          <p className={css.beside} data-part="beside">
            <Sentence text={payload.beside} />
          </p>
        )}
        {comparing && (
          <p className={`${css.beside} ${css.reserved}`}>
            <ReservedWidth letters={RANKS_LETTERS} />
          </p>
        )}
      </Story>
      <Story coming={coming || comparing}>
        {advice}
        {next && <NextQuestion answer={next} />}
      </Story>
      <Panel
        title={`${now.title}, ${formatDuration(now.duration)}`}
        note={
          <>
            <Term id="step" /> each category counts only time not counted to its left
          </>
        }
        actions={
          <>
            {chosen !== undefined && <Button onClick={() => choose(undefined)}>Show the average</Button>}
            <SavePicture name={chosen === undefined ? 'average_step' : `step_${chosen}`} />
          </>
        }
      >
        <StepBar now={now} device={gpu} onOpen={open} />
      </Panel>
      <div className={css.grid}>
        <div className={css.column}>
          {hasSeveralSteps && (
            <Panel
              title={say('Step by step')}
              note={say('click a step to see only that one')}
              actions={<SavePicture name="steps" />}
            >
              <StepColumns overview={payload} chosen={chosen} onChoose={choose} />
            </Panel>
          )}
          {payload.devices.map(device => (
            <DeviceCard key={device.id} device={device} />
          ))}
          {!hasSeveralSteps && <Configuration overview={payload} />}
        </div>
        <div className={css.column}>
          <Breakdown
            overview={payload}
            now={now}
            ofAverage={chosen === undefined}
            comparing={comparing && workers > 1}
            onOpen={open}
            onStep={choose}
          />
          {payload.devices.length > 0 && (
            <Hardware use={payload.hardware} reason={payload.reasons.hardware ?? failed} />
          )}
          {hasSeveralSteps && <Configuration overview={payload} />}
        </div>
      </div>
      {howWeKnow}
    </>
  );
}

/** Return whether something still `pending` may be waited for: for `ms` from when `of` was opened. */
function useGrace(pending: boolean, of: string, ms: number): boolean {
  const [over, setOver] = useState<string>();
  useEffect(() => {
    const timer = setTimeout(() => setOver(of), ms);
    return () => clearTimeout(timer);
  }, [of, ms]);
  return pending && over !== of;
}
