// Where a kernel comes from: the part of the program that it runs, and the source generated for it.
import type { OriginEvent } from '../../../api/types';
import { TextWithCode } from '../../../widgets/Sentence';
import { SourceFrame } from '../../../widgets/SourceFrame';
import css from './OriginCard.module.css';

const KNOWN_BY: Record<string, string> = {
  launch: 'known from its launch',
  'graph node': 'known from its graph node',
  capture: 'known from the capture of its graph',
  'compile record': 'known from the compile record',
};

export function OriginCard({ origin }: { origin: OriginEvent }) {
  const { modules, operator, lines, nodes, region, shapes } = origin;
  const path = [...(modules ?? []), ...(operator === null ? [] : [operator])];
  const program = lines?.map(({ file, line }) => (
    <li key={`${file}:${line}`}>
      <SourceFrame text={`${file.split(/[/\\]/).at(-1)}:${line}`} file={file} line={line} />
    </li>
  ));
  return (
    <section className={css.card} data-part="event-origin" aria-label="Where this comes from">
      <h3>
        Where this comes from
        {origin.how !== null && <span className="dim"> {KNOWN_BY[origin.how]}</span>}
      </h3>
      {path.length > 0 && <p className={css.path}>{path.join(' › ')}</p>}
      {region !== null && (
        <p>
          <span className="dim">Region</span> {region}
        </p>
      )}
      {shapes !== null && (
        <p>
          <span className="dim">Input shapes</span> <span className="mono">{shapes}</span>
        </p>
      )}
      {nodes !== null && (
        <ul className={css.chips} aria-label="Fused nodes">
          {nodes.map(node => (
            <li key={node}>{node}</li>
          ))}
        </ul>
      )}
      {origin.source === null ? (
        program && <ol className={css.lines}>{program}</ol>
      ) : (
        <div className={css.columns}>
          <ol className={css.lines} aria-label="Source lines">
            {program}
          </ol>
          <pre className={css.source} aria-label="Generated source">
            {origin.source}
          </pre>
        </div>
      )}
      {origin.reason !== null && (
        <p className="dim">
          <TextWithCode text={sentence(origin.reason)} />
        </p>
      )}
    </section>
  );
}

const sentence = (reason: string): string => `${reason[0]?.toUpperCase() ?? ''}${reason.slice(1)}.`;
