import { Fragment } from 'react';
import { CATEGORY_TITLE, categoryColor, type Category } from '../../base/category';
import { saveFile, toCsv } from '../../base/browser/save';
import { durationParts, exactDuration, formatRatio } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { CopyButton } from '../../widgets/inputs/CopyButton';
import { Icon } from '../../widgets/Icon';
import { Meter } from '../../widgets/charts/Meter';
import { Panel } from '../../widgets/Panel';
import { Term, Tip } from '../../widgets/Term';
import { Range } from './Range';
import { COMMUNICATION_PARTS, communicationParts, extremes, rows, type Shown } from './select';
import type { Overview } from '../../api/types';
import { plainText, type Phrase } from '../../base/text';
import css from './Breakdown.module.css';

interface Props {
  overview: Overview;
  now: Shown;
  /** The average is shown, not one step. */
  ofAverage: boolean;
  /** The files of other ranks are still compared, which tells more of communication. */
  comparing: boolean;
  /** Opens what a row counts. */
  onOpen: (category: Category) => void;
  onStep: (step: string) => void;
}

export function Breakdown({ overview, now, ofAverage, comparing, onOpen, onStep }: Props) {
  const found = rows(overview, now);
  const parts = ofAverage ? communicationParts(overview) : [];
  const complete = overview.steps.filter(step => step.complete);
  const whole = extremes(complete, step => step.duration_ns);
  const several = complete.length > 1;
  const csv = () =>
    toCsv(
      ['category', 'ns', 'share', 'least_ns', 'most_ns'],
      found.map(row => [
        row.title,
        row.average,
        row.share,
        row.extremes?.least.ns ?? null,
        row.extremes?.most.ns ?? null,
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
      <table>
        <thead>
          <tr>
            <th scope="col">Category</th>
            <th scope="col" className="num">
              Time
            </th>
            <th scope="col">Share of step</th>
            {several && (
              <th scope="col" className="num">
                Least – most
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
                    {several && <td aria-label="not known of each step" />}
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
                    {several && <td aria-label="not known of each step" />}
                  </tr>
                ))}
            </Fragment>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Step</th>
            <td className="num">
              <Duration ns={now.duration} />
            </td>
            <td className="num">100%</td>
            {several && (
              <td className="num dim">{whole && <Range of="Step" {...whole} onStep={onStep} />}</td>
            )}
          </tr>
        </tfoot>
      </table>
    </Panel>
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

export function Duration({ ns }: { ns: number }) {
  const { value, unit } = durationParts(ns);
  return (
    <span title={exactDuration(ns)}>
      {value} <span className="unit">{unit}</span>
    </span>
  );
}

export function Unknown({ reason }: { reason: readonly Phrase[] | undefined }) {
  return (
    <span className="dim">
      not known
      <Tip
        label="Why is it not known?"
        entry={{ title: 'Not known', text: reason ? plainText(reason) : 'The trace does not say.' }}
      />
    </span>
  );
}
