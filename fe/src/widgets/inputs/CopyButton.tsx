import { useState } from 'react';
import { Button } from './Button';
import { copyText } from '../../base/browser/save';
import { Icon, type IconName } from '../Icon';

interface Props {
  text: () => string;
  label: string;
  icon?: IconName;
  showLabel?: boolean;
}

/** Time that the label says whether it copied. */
const CONFIRMATION_MS = 1600;

/** A button that copies text and then confirms it in its label. */
export function CopyButton({ text, label, icon = 'copy', showLabel = false }: Props) {
  const [done, setDone] = useState<boolean | null>(null);
  const copy = async () => {
    setDone(await copyText(text()));
    setTimeout(() => setDone(null), CONFIRMATION_MS);
  };
  const status = done === null ? label : done ? 'Copied' : 'The browser blocked copying';
  return (
    <Button look={showLabel ? 'framed' : 'quiet'} onClick={copy} title={label} aria-label={label}>
      <Icon name={done ? 'check' : icon} size={14} />
      {(showLabel || done !== null) && <span aria-live="polite">{status}</span>}
    </Button>
  );
}
