import { formatDuration } from '../../base/format';
import { Button } from '../../widgets/inputs/Button';
import { range, type Extreme } from './select';

interface Props {
  of: string;
  least: Extreme;
  most: Extreme;
  onStep: (step: string) => void;
}

/** From the least to the most of all steps; each shows its step alone. Ends that read alike are one. */
export function Range({ of, least, most, onStep }: Props) {
  const [from, to] = range(least.ns, most.ns);
  if (to.startsWith(`${from} `)) {
    return <>{to}</>;
  }
  const link = (text: string, { step, ns }: Extreme, which: string) => (
    <Button
      look="link"
      title={`Show step ${step} alone`}
      aria-label={`${text}: step ${step} has the ${which} of ${of}, ${formatDuration(ns)}`}
      onClick={() => onStep(step)}
    >
      {text}
    </Button>
  );
  return (
    <>
      {link(from, least, 'least')} – {link(to, most, 'most')}
    </>
  );
}
