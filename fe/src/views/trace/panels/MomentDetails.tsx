// Why a device is idle at the selected moment: the cause, what drained the queue, and the entire gap.
import type { TraceMoment } from '../../../api/types';
import { causeColor, causeTitle, noHostDelay } from '../../../base/causes';
import { exactDuration, formatCount, formatDuration } from '../../../base/format';
import { capitalize } from '../../../base/text';
import { useStepWords } from '../../../state/steps';
import { Sentence } from '../../../widgets/Sentence';
import { Button } from '../../../widgets/inputs/Button';
import type { Moment } from '../state';
import css from './Details.module.css';
import { PanelHead, SliceLink } from './PanelHead';

interface Props {
  moment: TraceMoment;
  time: (ns: number) => string;
  onEvent: (event: number) => void;
  onMoment: (moment: Moment) => void;
  onZoom: () => void;
  onClose: () => void;
}

export function MomentDetails({ moment, time, onEvent, onMoment, onZoom, onClose }: Props) {
  const say = useStepWords();
  const { device, category, parts, subject, operator } = moment;
  const title = causeTitle(category);
  return (
    <section
      className={css.details}
      data-part="moment-details"
      aria-label="Selected part of the device's time"
    >
      <PanelHead
        color={causeColor(category)}
        title={title}
        fullTitle={title}
        onZoom={onZoom}
        onClose={onClose}
      />
      <p className="dim">
        <Sentence text={moment.headline} /> <Sentence text={moment.emptied} />{' '}
        <Sentence text={moment.evidence} />
      </p>
      <div className={css.links} data-part="moment-links">
        {subject ? (
          <SliceLink
            label={moment.gap_begin_ns === null ? 'Running' : 'Cause'}
            to={subject}
            onEvent={onEvent}
          />
        ) : (
          <span className="dim">{capitalize(noHostDelay(category) ?? 'nothing was recorded there')}.</span>
        )}
        {operator && <SliceLink label="Operator" to={operator} onEvent={onEvent} />}
        {moment.emptied_by && <SliceLink label="Drained by" to={moment.emptied_by} onEvent={onEvent} />}
      </div>
      <dl className={css.facts}>
        <div>
          <dt>Duration</dt>
          <dd title={exactDuration(moment.end_ns - moment.begin_ns)}>
            {formatDuration(moment.end_ns - moment.begin_ns)}
          </dd>
        </div>
        <div>
          <dt>Start</dt>
          <dd>{time(moment.begin_ns)}</dd>
        </div>
        <div>
          <dt>{say('Step')}</dt>
          <dd className="clip" title={moment.step}>
            {moment.step}
          </dd>
        </div>
      </dl>
      {parts.length > 1 && (
        <>
          <h3>Entire gap</h3>
          <ol className={css.edges}>
            {parts.map(part => (
              <li key={part.begin_ns}>
                <i className="dot" style={{ background: causeColor(part.category) }} />{' '}
                <Button
                  look="text"
                  disabled={part.begin_ns === moment.begin_ns}
                  onClick={() => onMoment({ device, at: part.begin_ns, until: null, category: '' })}
                >
                  {causeTitle(part.category)}
                </Button>{' '}
                {formatDuration(part.end_ns - part.begin_ns)}{' '}
                <span className="dim clip" title={part.name ?? ''}>
                  {part.name}
                </span>
              </li>
            ))}
            {moment.more > 0 && <li className="dim">and {formatCount(moment.more)} shorter parts</li>}
          </ol>
        </>
      )}
    </section>
  );
}
