import { Modal } from '@mantine/core';
import { useStepWords } from '../state/steps';
import css from './Shortcuts.module.css';

type Shortcut = readonly [key: string, action: string];

const PAGE_KEYS: readonly Shortcut[] = [
  ['r', 'Choose a run'],
  ['w', 'Choose a worker; on the timeline, zoom in'],
  ['h', 'Trace health'],
  ['t', 'Theme: auto, light, dark'],
  ['← →', 'Previous / next step in the chart'],
  ['Enter', 'Show only the focused step, or the average again'],
  ['Esc', 'Close'],
  ['?', 'Keyboard shortcuts'],
];

const TIMELINE_KEYS: readonly Shortcut[] = [
  ['W / S', 'Zoom in / out'],
  ['A / D', 'Move earlier / later'],
  ['F, double click', 'Zoom to the selection; without one, show everything'],
  ['Backspace', 'Back to the previous time window'],
  ['M', 'Mark the selected slice, or clear the marks'],
  ['P', 'Unfold / fold Python frames'],
  ['Enter', 'With the tracks focused, select a visible slice'],
  ['← →', 'Previous / next slice on the track; without one, move earlier / later'],
  ['↑ ↓', 'Enclosing / nested slice; without one, the track above / below'],
  ['E', 'Summarize the visible time window'],
  ['C', 'Highlight the critical path, or nothing'],
  ['[ ]', 'Back / forward along the highlighted path; without one, along the flow'],
  ['/', 'Find; Enter and Shift+Enter go to the next and previous match'],
  ['Esc', 'Clear the selection'],
  ['drag', 'Select a time range'],
  ['wheel', 'Scroll the tracks'],
  ['Ctrl + wheel, ⌘ + wheel, pinch', 'Zoom at the pointer'],
  ['Shift + drag, Shift + wheel', 'Pan'],
];

/** The list of keyboard shortcuts. */
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
  const say = useStepWords();
  return (
    <section>
      <h3>{title}</h3>
      <dl className={css.shortcuts}>
        {keys.map(([key, action]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{say(action)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
