import { CopyButton } from '../../../widgets/inputs/CopyButton';
import { Button } from '../../../widgets/inputs/Button';
import { Icon } from '../../../widgets/Icon';
import css from './Named.module.css';

interface Props {
  name: string;
  short: string;
  onShow: () => void;
}

/** The name of a row, with the way to its slice and to the clipboard. */
export function Named({ name, short, onShow }: Props) {
  return (
    <span className={css.named}>
      <span className="clip" title={name}>
        {short}
      </span>
      <Button
        look="quiet"
        title="Show the first on the timeline"
        aria-label="Show the first on the timeline"
        onClick={event => {
          event.stopPropagation(); // the row would be chosen, too
          onShow();
        }}
      >
        <Icon name="timeline" size={14} />
      </Button>
      <CopyButton label="Copy the whole name" text={() => name} />
    </span>
  );
}
