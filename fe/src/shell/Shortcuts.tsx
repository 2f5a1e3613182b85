import { Modal } from '@mantine/core';
import css from './Shortcuts.module.css';

const KEYS = [
  ['r', 'Choose a run'],
  ['w', 'Choose a worker'],
  ['h', 'Trace health'],
  ['t', 'Theme: as host, light, dark'],
  ['← →', 'Previous, next step in the chart'],
  ['Enter', 'Show the focused step alone, or the average again'],
  ['Esc', 'Close'],
  ['?', 'This sheet'],
] as const;

export function Shortcuts({ open, onClose }: { open: boolean; onClose: () => void }) {
  return (
    <Modal
      opened={open}
      onClose={onClose}
      title="Shortcuts"
      size={420}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <dl className={css.shortcuts}>
        {KEYS.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}
