import { Modal } from '@mantine/core';
import { PAGE_KEYS, TIMELINE_KEYS, type Shortcut } from '../base/shortcuts';
import css from './Shortcuts.module.css';

export function Shortcuts({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Modal
      opened={open}
      onClose={onClose}
      title="Shortcuts"
      size={860}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <div className={css.sheet}>
        <Keys title="Everywhere" keys={PAGE_KEYS} />
        <Keys title="Timeline" keys={TIMELINE_KEYS} />
      </div>
    </Modal>
  );
}

function Keys({ title, keys }: { title: string; keys: readonly Shortcut[] }) {
  return (
    <section>
      <h3>{title}</h3>
      <dl className={css.shortcuts}>
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
