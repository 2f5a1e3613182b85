import { Fragment } from 'react';
import { CATEGORY_TITLE, categoryColor, type Category } from '../../base/category';
import { saveFile, toCsv } from '../../base/browser/save';
import { durationParts, exactDuration, formatDuration, formatRatio } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { CopyButton } from '../../widgets/inputs/CopyButton';
import { Icon } from '../../widgets/Icon';
import { Meter } from '../../widgets/charts/Meter';
import { Panel } from '../../widgets/Panel';
import { Term, Tip } from '../../widgets/Term';
import { useStepWords } from '../../state/steps';
import {
  COMMUNICATION_PARTS,
  splitCommunication,
  extremes,
  range,
  rows,
  type Extreme,
  type Shown,
} from './select';
import type { Overview } from '../../api/types';
import { plainText, type Phrase } from '../../base/text';
import css from './Breakdown.module.css';

interface Props {
  overview: Overview;
  now: Shown;
  /** Whether the average is shown, not a single step. */
  ofAverage: boolean;
  /** Other ranks are still being compared, which will split up communication. */
  comparing: boolean;
  /** Opens what a row counts. */
  onOpen: (category: Category) => void;
  onStep: (step: string) => void;
}

export function Breakdown({ overview, now, ofAverage, comparing, onOpen, onStep }: Props) {
  const say = useStepWords();
  const found = rows(overview, now);
  const parts = ofAverage ? splitCommunication(overview) : [];
  const complete = overview.steps.filter(step => step.complete);
  const durations = extremes(complete, step => step.duration_ns);
  const several = complete.length > 1;
  const csv = () =>
    toCsv(
      ['category', 'ns', 'share', 'least_ns', 'most_ns'],
      found.map(row => [
        row.title,
        row.average,
        row.share,
        row.extremes?.min.ns ?? null,
        row.extremes?.max.ns ?? null,
      ]),
    );
  return (
    <Panel
      title="Breakdown"
      note={<Term id="breakdown" />}
      actions={
        <>
          <CopyButton text={csv} label="Copy as CSV" />
          <Button
            look="quiet"
            title="Save as CSV"
            aria-label="Save as CSV"
            onClick={() => saveFile('breakdown.csv', csv(), 'text/csv')}
          >
            <Icon name="download" size={14} />
          </Button>
        </>
      }
    >
      <div className="scroll">
        <table>
          <thead>
            <tr>
              <th scope="col">Category</th>
              <th scope="col" className="num">
                Time
              </th>
              <th scope="col">{say('Share of step')}</th>
              {several && (
                <th scope="col" className="num">
                  Min – max
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {found.map(row => (
              <Fragment key={row.category}>
                <tr>
                  <th scope="row">
                    <i className="dot" style={{ background: categoryColor(row.category) }} />
                    {CATEGORY_TITLE[row.category]}
                    <Term id={row.category} />
                  </th>
                  <td className="num">
                    {row.average === null ? (
                      <Unknown reason={row.reason} />
                    ) : (
                      <Button look="link" title="Show it" onClick={() => onOpen(row.category)}>
                        <Duration ns={row.average} />
                      </Button>
                    )}
                  </td>
                  <td>{row.share !== null && <Share ratio={row.share} category={row.category} />}</td>
                  {several && (
                    <td className="num dim">
                      {row.average !== null && row.extremes && (
                        <Range of={row.title} {...row.extremes} onStep={onStep} />
                      )}
                    </td>
                  )}
                </tr>
                {row.category === 'communication' &&
                  ofAverage &&
                  comparing &&
                  COMMUNICATION_PARTS.map(title => (
                    <tr key={title} className={css.part}>
                      <th scope="row">{title}</th>
                      <td className="num" aria-label="being compared" />
                      <td aria-label="being compared" />
                      {several && <td aria-label={say('unknown per step')} />}
                    </tr>
                  ))}
                {row.category === 'communication' &&
                  parts.map(part => (
                    <tr key={part.title} className={css.part}>
                      <th scope="row">{part.title}</th>
                      <td className="num">
                        <Duration ns={part.ns} />
                      </td>
                      <td>{part.share !== null && <Share ratio={part.share} category="communication" />}</td>
                      {several && <td aria-label={say('unknown per step')} />}
                    </tr>
                  ))}
              </Fragment>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">{say('Step')}</th>
              <td className="num">
                <Duration ns={now.duration} />
              </td>
              <td className="num">100%</td>
              {several && (
                <td className="num dim">
                  {durations && <Range of={say('Step')} {...durations} onStep={onStep} />}
                </td>
              )}
            </tr>
          </tfoot>
        </table>
      </div>
    </Panel>
  );
}

interface RangeProps {
  of: string;
  min: Extreme;
  max: Extreme;
  onStep: (step: string) => void;
}

/** The minimum and maximum over all steps; each shows its step alone. Ends that read alike are one. */
function Range({ of, min, max, onStep }: RangeProps) {
  const say = useStepWords();
  const [from, to] = range(min.ns, max.ns);
  if (to.startsWith(`${from} `)) {
    return <>{to}</>;
  }
  const link = (text: string, { step, ns }: Extreme, which: string) => (
    <Button
      look="link"
      title={`${say('Show step')} ${step} alone`}
      aria-label={`${text}: ${say('step')} ${step} has the ${which} of ${of}, ${formatDuration(ns)}`}
      onClick={() => onStep(step)}
    >
      {text}
    </Button>
  );
  return (
    <>
      {link(from, min, 'least')} – {link(to, max, 'most')}
    </>
  );
}

function Share({ ratio, category }: { ratio: number; category: Category }) {
  return (
    <span className={css.share}>
      <Meter ratio={ratio} color={categoryColor(category)} />
      <span className="num">{formatRatio(ratio)}</span>
    </span>
  );
}

function Duration({ ns }: { ns: number }) {
  const { value, unit } = durationParts(ns);
  return (
    <span title={exactDuration(ns)}>
      {value} <span className="unit">{unit}</span>
    </span>
  );
}

function Unknown({ reason }: { reason: readonly Phrase[] | undefined }) {
  return (
    <span className="dim">
      unknown
      <Tip
        label="Why is it unknown?"
        entry={{ title: 'Unknown', text: reason ? plainText(reason) : "The trace doesn't say." }}
      />
    </span>
  );
}
