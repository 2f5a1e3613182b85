import rowDetailCss from '../../../widgets/table/RowDetail.module.css';

/** What is known of a row, name by name; what is not known is left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: string | null])[] }) {
  return (
    <dl className={rowDetailCss.facts}>
      {facts
        .filter(([, value]) => value !== null && value !== '')
        .flatMap(([name, value]) => [<dt key={`${name} of`}>{name}</dt>, <dd key={name}>{value}</dd>])}
    </dl>
  );
}
