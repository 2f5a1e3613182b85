// How much of their peak the devices use: each figure with what it means and which peak it refers to.
import type { HardwareUse } from '../../api/types';
import { formatNumber, formatRatio } from '../../base/format';
import { plainText, type Phrase } from '../../base/text';
import type { TermId } from '../../base/glossary';
import { useSelection } from '../../state/selection';
import { Button } from '../../widgets/inputs/Button';
import { Meter } from '../../widgets/charts/Meter';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import { Term, Tip } from '../../widgets/Term';
import css from './Devices.module.css';

const METERS = [
  ['mfu', 'MFU'],
  ['hfu', 'HFU'],
  ['coverage', 'Modeled'],
] as const satisfies readonly (readonly [TermId, string])[];

interface Props {
  use: HardwareUse | null;
  /** Why there is none; undefined while it is still to come. */
  reason: readonly Phrase[] | undefined;
}

export function Hardware({ use, reason }: Props) {
  const { select } = useSelection();
  const unknown = use === null && reason !== undefined;
  return (
    <Panel
      title="Achieved vs. peak"
      note={use?.peaks && <span title={use.sources.join('; ')}>{use.peaks}</span>}
      actions={
        !unknown && (
          <Button look="quiet" onClick={() => select({ view: 'roofline', params: {} })}>
            Roofline
          </Button>
        )
      }
    >
      {unknown ? (
        <p className="dim">
          Unknown: <Sentence text={reason} />.
        </p>
      ) : (
        <dl className={css.meters}>
          {METERS.map(([key, title]) => (
            <div key={key}>
              <dt>
                {title}
                <Term id={key} />
              </dt>
              <dd>
                {use ? (
                  <Ratio
                    title={title}
                    ratio={use[key]}
                    isLowerBound={key !== 'coverage' && !use.complete}
                    reason={use.reasons[key]}
                  />
                ) : (
                  <span className="dim">computing…</span>
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </Panel>
  );
}

interface RatioProps {
  title: string;
  ratio: number | null;
  isLowerBound: boolean;
  reason: readonly Phrase[] | undefined;
}

function Ratio({ title, ratio, isLowerBound, reason }: RatioProps) {
  if (ratio === null) {
    return (
      <span className={`dim ${css.unknown}`}>
        unknown
        {reason && <Tip label="Why?" entry={{ title, text: `${plainText(reason)}.` }} />}
      </span>
    );
  }
  return (
    <>
      <Meter ratio={ratio} color="var(--c-kernel)" />
      <span className="num">{isLowerBound ? formatLowerBound(ratio) : formatRatio(ratio)}</span>
    </>
  );
}

/** A lower bound needs a value, however small: "at least less than 0.1%" would be useless. */
const formatLowerBound = (ratio: number): string =>
  `≥ ${ratio < 0.001 ? `${formatNumber(100 * ratio, 2)}%` : formatRatio(ratio)}`;
