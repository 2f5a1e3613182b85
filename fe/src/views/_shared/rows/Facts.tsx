import rowDetailCss from '../../../widgets/table/RowDetail.module.css';

/** A list of names and values; missing values are left out. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: string | null])[] }) {
  return (
    <dl className={rowDetailCss.facts}>
      {facts
        .filter(([, value]) => value !== null && value !== '')
        .flatMap(([name, value]) => [<dt key={`${name} of`}>{name}</dt>, <dd key={name}>{value}</dd>])}
    </dl>
  );
}
