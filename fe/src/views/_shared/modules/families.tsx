// What sort of kernels a module launches, as a bar of their shares; a filter of the table finds them by name.
import type { FamilyPart } from '../../../api/types';
import { familyColor } from '../../../base/family';
import { formatRatio } from '../../../base/format';
import type { Column } from '../../../widgets/table/columns';
import css from './families.module.css';

export function familyColumn<R>(of: (row: R) => readonly FamilyPart[]): Column<R> {
  return {
    id: 'families',
    title: 'Kernel families',
    kind: 'text',
    value: row => told(of(row)) || null,
    reason: 'It launched no device work.',
    render: row => <Shares families={of(row)} />,
    width: 140,
    grow: false,
  };
}

function Shares({ families }: { families: readonly FamilyPart[] }) {
  return (
    <span className={css.shares} title={told(families)}>
      {families.map(({ family, device_ns }) => (
        <i key={family} style={{ flexGrow: device_ns, background: familyColor(family) }} />
      ))}
    </span>
  );
}

/** "matrix product 82%, norm 18%". */
function told(families: readonly FamilyPart[]): string {
  const whole = families.reduce((sum, part) => sum + part.device_ns, 0);
  return families.map(part => `${part.family} ${formatRatio(part.device_ns / whole)}`).join(', ');
}
