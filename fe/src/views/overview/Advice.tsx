import type { Recommendation } from '../../api/types';
import { Icon } from '../../widgets/Icon';
import { Sentence } from '../../widgets/Sentence';
import { Panel } from '../../widgets/Panel';
import { Tip } from '../../widgets/Term';
import { gainText } from './select';
import css from './Advice.module.css';

const SEVERITY = { warning: 'Worth doing', info: 'Consider', error: 'Problem' } as const;

export function Advice({ items }: { items: Recommendation[] }) {
  return (
    <Panel title="What to do" note={<span className="badge neutral">{items.length}</span>}>
      {items.length === 0 && <p className="dim">No recommendation applies to this trace.</p>}
      {items.map(item => {
        const severity = item.severity === 'warning' || item.severity === 'error' ? item.severity : 'info';
        return (
          <article key={item.id} className={css.advice}>
            <span className={`status ${severity}`} title={SEVERITY[severity]}>
              <Icon name={severity === 'info' ? 'info' : 'warning'} />
            </span>
            <h3>
              <Sentence text={item.title} />
              <Tip label="Why is this shown?" entry={{ title: 'Shown because', text: `${item.rule}.` }} />
            </h3>
            {item.gain_ns !== null && item.gain_ns !== undefined && (
              <span className={css.gain}>{gainText(item.gain_ns)}</span>
            )}
            <p>
              <Sentence text={item.text} />
            </p>
          </article>
        );
      })}
    </Panel>
  );
}
