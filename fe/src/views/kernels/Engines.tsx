import type { KernelsPayload } from '../../api/types';
import { formatCount, formatDuration, formatRatio } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { Panel } from '../../widgets/Panel';
import { Sentence } from '../../widgets/Sentence';
import css from './Engines.module.css';

interface Props {
  engines: NonNullable<KernelsPayload['engines']>;
  onOpen: (event: number) => void;
}

/** Compiled graphs that are listed, longest first. */
const MAX_RECIPES = 12;

/** The engines of a Gaudi card: how busy each class is, and the compiled graphs that ran on them. */
export function Engines({ engines, onOpen }: Props) {
  const hidden = engines.recipes.length - MAX_RECIPES;
  return (
    <Panel title="Engines" className={css.panel}>
      <p>
        <Sentence text={engines.headline} />
      </p>
      <div className={css.tables}>
        <table className={css.figures} aria-label="Engines by class">
          <thead>
            <tr>
              <th>Engines</th>
              <th>Count</th>
              <th>Busy</th>
              <th>Share</th>
            </tr>
          </thead>
          <tbody>
            {engines.classes.map(each => (
              <tr key={each.name}>
                <td>{each.name}</td>
                <td>{formatCount(each.engines)}</td>
                <td>{formatDuration(each.busy_ns)}</td>
                <td>{each.share === null ? 'unknown' : formatRatio(each.share)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {engines.recipes.length > 0 && (
          <table className={css.figures} aria-label="Recipes">
            <thead>
              <tr>
                <th>Recipe</th>
                <th>Nodes</th>
                <th>Busy</th>
              </tr>
            </thead>
            <tbody>
              {engines.recipes.slice(0, MAX_RECIPES).map(each => (
                <tr key={each.id}>
                  <td>
                    <Button look="text" onClick={() => onOpen(each.event)}>
                      {each.name || `recipe ${each.id}`}
                    </Button>
                  </td>
                  <td>{formatCount(each.nodes)}</td>
                  <td>{formatDuration(each.busy_ns)}</td>
                </tr>
              ))}
            </tbody>
            {hidden > 0 && <caption>and {formatCount(hidden)} with less time</caption>}
          </table>
        )}
      </div>
    </Panel>
  );
}
