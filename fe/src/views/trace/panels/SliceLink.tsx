import type { TraceRef } from '../../../api/types';
import { Button } from '../../../widgets/inputs/Button';

interface Props {
  label: string;
  to: TraceRef;
  onEvent: (event: number) => void;
}

/** Another slice by its short name; the whole name is on hover. */
export function SliceLink({ label, to, onEvent }: Props) {
  return (
    <span>
      <span className="dim">{label}</span>{' '}
      <Button look="text" title={to.name} onClick={() => onEvent(to.event)}>
        {to.short_name}
      </Button>
    </span>
  );
}
