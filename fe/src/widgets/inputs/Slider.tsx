import { Slider as MantineSlider } from '@mantine/core';
import css from './Slider.module.css';

interface Props {
  label: string;
  value: number;
  step: number;
  /** The text of a value, also for screen readers. */
  format: (value: number) => string;
  onChange: (value: number) => void;
}

const CLASSES = {
  root: css.root,
  trackContainer: css.trackContainer,
  track: css.track,
  bar: css.bar,
  thumb: css.thumb,
};

/** A slider from 0 to 100. */
export function Slider({ label, value, step, format, onChange }: Props) {
  return (
    <div className={css.field}>
      <span className="dim" aria-hidden>
        {label}
      </span>
      <MantineSlider
        unstyled
        classNames={CLASSES}
        label={null}
        min={0}
        max={100}
        step={step}
        value={value}
        onChange={onChange}
        thumbLabel={label}
        thumbValueText={format}
      />
      <b>{format(value)}</b>
    </div>
  );
}
