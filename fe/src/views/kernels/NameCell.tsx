import { CopyButton } from '../../widgets/inputs/CopyButton';
import { Button } from '../../widgets/inputs/Button';
import { Icon } from '../../widgets/Icon';
import { Name } from '../../widgets/Name';
import css from './NameCell.module.css';

interface Props {
  name: string;
  short: string;
  onShow: () => void;
}

/** The name of a row, with buttons to show its slice and to copy it. */
export function NameCell({ name, short, onShow }: Props) {
  return (
    <span className={css.named}>
      <Name text={short} title={name} />
      <span className={css.buttons}>
        <Button
          look="quiet"
          title="Show the first on the timeline"
          aria-label="Show the first on the timeline"
          onClick={event => {
            event.stopPropagation(); // else the click would also select the row
            onShow();
          }}
        >
          <Icon name="timeline" size={14} />
        </Button>
        <CopyButton label="Copy the full name" text={() => name} />
      </span>
    </span>
  );
}
